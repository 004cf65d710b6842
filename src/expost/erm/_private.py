"""What every object that holds private values has in common: it cannot be pickled or printed by accident."""

from __future__ import annotations

from typing import NoReturn, SupportsIndex


class Private:
    """Base of objects that hold values no privacy guarantee covers (sums, minimisers, true risks)."""

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        """Refuse to be pickled or copied: private values leave only through a release."""
        raise TypeError(f"{type(self).__name__} holds private values and is never pickled")
