"""Rows as the rest of the library sees them: bounded, in fixed point, and private.

Whoever holds a :class:`Rows` may rely on ‖x‖ ≤ 1, in the norm it names, and |y| ≤ 1 holding exactly for each row, and
on whatever else it declares; every sensitivity in the library starts from that. The object refuses the usual ways
private values escape: it prints no value and cannot be pickled.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, NoReturn

import numpy as np
import numpy.typing as npt

from expost.data.fixed_point import ONE

__all__ = ["Norm", "Rows", "Shape", "declared"]

Norm = Literal["l1", "l2"]
#: Number of columns, norm and radius (in units of 2⁻²⁰) of each block that rows are made of.
Shape = tuple[tuple[int, Literal["box", "l1"], int], ...]

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
    shape : tuple of (int, "box" or "l1", int), optional
        Blocks of columns, in order, none longer than its radius.
    longest : float, default=1
        No row has a larger Euclidean norm.
    constant : (int, int), optional
        A column that is the same in every row, and its value.

    Notes
    -----
    The arrays are kept as read-only views, so that what was checked is what is used. Mechanisms go by what is declared
    and never by the rows: all of it is checked here, and holds for the rows next door as well.

    Examples
    --------
    >>> import numpy as np
    >>> Rows(np.array([[ONE, 0]], dtype=np.int32), np.array([-ONE], dtype=np.int32))
    Rows(n=1, p=2)
    """

    x: npt.NDArray[np.int32]
    y: npt.NDArray[np.int32]
    norm: Norm = "l1"
    shape: Shape | None = None
    longest: float = 1.0
    constant: tuple[int, int] | None = None

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
        if self.shape is not None and sum(size for size, _, _ in self.shape) != self.p:
            raise ValueError(f"the blocks of a shape are all {self.p} columns together")
        wide, undeclared = 0, False
        for start in range(0, self.n, _CHECK_ROWS):
            # 64 bits: |−2³¹| is not an int32, and p entries may add up to more than 2³¹.
            part = self.x[start : start + _CHECK_ROWS].astype(np.int64)
            wide += int(np.count_nonzero(_too_long(part, self.norm, ONE)))
            undeclared |= any(_too_long(part[:, some], norm, most).any() for some, norm, most in self._within())
            undeclared |= self.constant is not None and bool((part[:, self.constant[0]] != self.constant[1]).any())
        if wide:
            name = {"l1": "ℓ₁", "l2": "ℓ₂"}[self.norm]
            raise ValueError(f"{wide} row(s) have an {name} norm above 1; clip them with clip_{self.norm} first")
        if undeclared:
            raise ValueError("rows are not what they are declared to be, in shape, length or constant")
        beyond = int(np.count_nonzero((self.y > ONE) | (self.y < -ONE)))
        if beyond:
            raise ValueError(f"{beyond} target(s) lie outside [-1, 1]; clip them with clip_unit first")

    def _within(self) -> Iterator[tuple[slice, str, float]]:
        """Yield columns, a norm and what it is at most, beyond the norm of whole rows."""
        place = 0
        for size, norm, unit in self.shape or ():
            yield slice(place, place + size), norm, unit
            place += size
        if self.longest < 1.0:
            yield slice(None), "l2", self.longest * ONE

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


def declared(rows: Any) -> dict[str, Any]:
    """Return what rows, or a source of them, declare of every row: for those that are made of them."""
    return {name: getattr(rows, name) for name in ("norm", "shape", "longest", "constant")}


def _too_long(part: npt.NDArray[np.int64], norm: str, most: float) -> npt.NDArray[np.bool_]:
    if norm == "l1":
        return np.asarray(np.abs(part).sum(axis=1) > most)
    beyond = np.asarray((np.abs(part) > most).any(axis=1))  # whose squares might not add up in 64 bits
    if norm == "box":
        return beyond
    square = np.where(np.asarray(beyond)[:, None], 0, part)
    return np.asarray(beyond | ((square * square).sum(axis=1) > most * most))
