"""Rows as the rest of the library sees them: bounded, in fixed point, and private.

Whoever holds a :class:`Rows` may rely on ‖x‖₁ ≤ 1 and |y| ≤ 1 holding exactly for each row; every
sensitivity in the library starts from that. The object refuses the usual ways private values escape: it
prints no value and cannot be pickled.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from expost.data.fixed_point import ONE

__all__ = ["Rows"]

_CHECK_ROWS = 65_536  # the check works on slices, so that it needs no second copy of the data


@dataclass(frozen=True, eq=False, repr=False)
class Rows:
    """Private rows in fixed-point units of 2⁻²⁰.

    Parameters
    ----------
    x : ndarray of int32, shape (n, p)
        Features; the ℓ₁ norm of every row is at most ONE.
    y : ndarray of int32, shape (n,)
        Targets, or labels as −ONE and +ONE; at most ONE in size.

    Notes
    -----
    The arrays are kept as read-only views, so that what was checked is what is used.

    Examples
    --------
    >>> import numpy as np
    >>> Rows(np.array([[ONE, 0]], dtype=np.int32), np.array([-ONE], dtype=np.int32))
    Rows(n=1, p=2)
    """

    x: npt.NDArray[np.int32]
    y: npt.NDArray[np.int32]

    def __post_init__(self) -> None:
        for name, ndim in (("x", 2), ("y", 1)):
            array = getattr(self, name)
            if not isinstance(array, np.ndarray) or array.dtype != np.int32 or array.ndim != ndim:
                raise ValueError(f"{name} must be an int32 array with {ndim} dimension(s), in fixed point")
            view = array.view()
            view.flags.writeable = False
            object.__setattr__(self, name, view)
        if len(self.x) != len(self.y):
            raise ValueError(f"x has {len(self.x)} rows and y has {len(self.y)}; they must be as many")
        wide = 0
        for start in range(0, self.n, _CHECK_ROWS):
            # 64 bits: |−2³¹| is not an int32, and p entries may add up to more than 2³¹.
            norm = np.abs(self.x[start : start + _CHECK_ROWS].astype(np.int64)).sum(axis=1)
            wide += int(np.count_nonzero(norm > ONE))
        if wide:
            raise ValueError(f"{wide} row(s) have an ℓ₁ norm above 1; clip them with clip_l1 first")
        beyond = int(np.count_nonzero((self.y > ONE) | (self.y < -ONE)))
        if beyond:
            raise ValueError(f"{beyond} target(s) lie outside [-1, 1]; clip them with clip_unit first")

    @property
    def n(self) -> int:
        """Number of rows, which is public."""
        return int(self.x.shape[0])

    @property
    def p(self) -> int:
        """Number of columns, including the constant column if there is one."""
        return int(self.x.shape[1])

    def __repr__(self) -> str:
        return f"Rows(n={self.n}, p={self.p})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("rows are private: they cannot be pickled or copied out of the process")

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        self.__reduce__()
