"""Rows as the rest of the library sees them: bounded, in fixed point, and private.

Whoever holds a :class:`Rows` may rely on ‖x‖ ≤ 1, in the norm it names, and |y| ≤ 1 holding exactly for each row;
every sensitivity in the library starts from that. The object refuses the usual ways private values escape: it
prints no value and cannot be pickled.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NoReturn

import numpy as np
import numpy.typing as npt

from expost.data.fixed_point import ONE

__all__ = ["Norm", "Rows"]

Norm = Literal["l1", "l2"]

_CHECK_ROWS = 65_536  # the check works on slices, so that it needs no second copy of the data


@dataclass(frozen=True, eq=False, repr=False)
class Rows:
    """Private rows in fixed-point units of 2⁻²⁰.

    Parameters
    ----------
    x : ndarray of int32, shape (n, p)
        Features; the norm of every row is at most ONE.
    y : ndarray of int32, shape (n,)
        Targets, or labels as −ONE and +ONE; at most ONE in size.
    norm : {"l1", "l2"}, default="l1"
        Which norm that is. ‖x‖₁ ≤ 1 says more than ‖x‖₂ ≤ 1: what needs only the latter takes either.

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
    norm: Norm = "l1"

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
            part = self.x[start : start + _CHECK_ROWS].astype(np.int64)
            wide += int(np.count_nonzero(_too_long(part, self.norm)))
        if wide:
            name = {"l1": "ℓ₁", "l2": "ℓ₂"}[self.norm]
            raise ValueError(f"{wide} row(s) have an {name} norm above 1; clip them with clip_{self.norm} first")
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


def _too_long(part: npt.NDArray[np.int64], norm: Norm) -> npt.NDArray[np.bool_]:
    if norm == "l1":
        return np.asarray(np.abs(part).sum(axis=1) > ONE)
    beyond = np.asarray(np.abs(part) > ONE).any(axis=1)  # whose squares might not add up in 64 bits
    square = np.where(np.asarray(beyond)[:, None], 0, part)
    return np.asarray(beyond | ((square * square).sum(axis=1) > ONE * ONE))
