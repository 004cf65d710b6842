"""What a search has spent so far, and the one way it becomes a release."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from expost.exceptions import AccuracyNotReached
from expost.privacy.composition import add_losses
from expost.privacy.release import FrozenMapping, Release


@dataclass
class Account:
    """Losses of the steps taken, in the three parts a release reports, and the reasons for them.

    Parameters
    ----------
    method
        What the release calls the search.
    worst_case
        Bound on every outcome, settled beforehand.
    secure
        Whether the noise may protect anyone.
    """

    method: str
    worst_case: float
    secure: bool
    probe: float = 0.0
    test: float = 0.0
    generation: float = 0.0
    reasons: list[str] = field(default_factory=list)

    @property
    def total(self) -> float:
        """Everything spent so far."""
        return add_losses(self.probe, self.test, self.generation)

    def after(self, generation: float) -> float:
        """Return what the total becomes once that much more goes to generation, rounded as it will be then."""
        return add_losses(self.probe, self.test, add_losses(self.generation, generation))

    def released(self, hypothesis: Any, **details: Any) -> Release:
        """Return the release of a hypothesis."""
        return self._release("released", hypothesis=hypothesis, **details)

    def refused(self, **details: Any) -> AccuracyNotReached:
        """Return the refusal, to be raised."""
        return AccuracyNotReached(self._release("refused", **details))

    def _release(self, status: Any, **details: Any) -> Release:
        parameters = {**details.pop("parameters", {}), "reasons": tuple(self.reasons)}
        return Release(
            status=status,
            method=self.method,
            epsilon_generation=self.generation,
            epsilon_test=self.test,
            epsilon_probe=self.probe,
            epsilon_worst_case=self.worst_case,  # Release refuses an outcome above it
            secure=self.secure,
            parameters=FrozenMapping(parameters),
            **details,
        )
