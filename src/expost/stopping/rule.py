"""What a stopping rule is: it looks at one hypothesis after another and says stop or go on."""

from __future__ import annotations

from typing import Any, Protocol


class StoppingRule(Protocol):
    """Looks at one hypothesis after another and says stop or go on."""

    @property
    def name(self) -> str:
        """What the release calls this method."""
        ...

    @property
    def secure(self) -> bool:
        """Whether its noise may protect anyone."""
        ...

    def accepts(self, hypothesis: Any) -> bool:
        """Whether to stop at this hypothesis."""
        ...

    @property
    def epsilon_stop(self) -> float:
        """Test loss so far if the rule has just accepted."""
        ...

    @property
    def epsilon_never(self) -> float:
        """Test loss if nothing was accepted."""
        ...

    @property
    def epsilon_worst_case(self) -> float:
        """Largest test loss of any outcome."""
        ...
