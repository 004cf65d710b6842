"""Raw cells into numbers and signs, one cell at a time.

What one cell becomes must depend on that cell alone, and no cell may raise: an exception that one row can
cause tells the world about that row. So a cell that is not a number becomes NaN here, and the caller
decides what NaN means. Array *structure* (dimensions, type of a whole column) is not private and may be
complained about.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["as_cells", "label_signs", "require_numeric", "resolve_classes", "to_floats"]

_NUMBERS = "biuf"
_LOOSE = "OUST"  # object, text and bytes: converted cell by cell


def as_cells(values: Any, ndim: int, name: str) -> npt.NDArray[Any]:
    """View caller data as an array with ``ndim`` dimensions, its cells as they are."""
    cells: npt.NDArray[Any] | None
    if hasattr(values, "__array__"):
        cells = np.asarray(values)
    else:
        try:
            cells = np.asarray(values)
        except (TypeError, ValueError, OverflowError):
            cells = None
        if cells is None or cells.dtype.kind not in _NUMBERS:
            # One text cell in a list would make NumPy turn every other row's cells into text as well.
            try:
                cells = np.asarray(values, dtype=object)
            except (TypeError, ValueError):
                cells = None
    if cells is None or cells.ndim != ndim:
        shape = "(n_rows, n_columns)" if ndim == 2 else "(n_rows,)"
        raise ValueError(f"{name} must be a dense array of shape {shape}")
    return cells


def require_numeric(cells: npt.NDArray[Any], name: str) -> None:
    """Complain about an array type that cannot hold real numbers, such as complex numbers or dates."""
    if cells.dtype.kind not in _NUMBERS + _LOOSE:
        raise ValueError(f"{name} must hold real numbers; its dtype is {cells.dtype}")


def to_floats(cells: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Convert cells to float64; a cell that is not a number becomes NaN."""
    with np.errstate(all="ignore"):
        if cells.dtype.kind in _NUMBERS:
            return cells.astype(np.float64, copy=False)
        if cells.dtype.kind == "O":
            # Ten times faster, and the same float(cell) for every cell if none of them fails: which of the
            # two ways is taken does not show in the result.
            try:
                return cells.astype(np.float64)
            except Exception:
                pass
        return np.asarray(np.frompyfunc(_float_or_nan, 1, 1)(cells)).astype(np.float64)


def resolve_classes(classes: Sequence[Any] | npt.NDArray[Any]) -> tuple[Any, Any]:
    """Check that ``classes`` is a pair of different labels, the negative one first."""
    pair = list(classes)
    if len(pair) != 2 or any(c is None or c != c for c in pair) or pair[0] == pair[1]:
        raise ValueError("classes must be a pair (negative label, positive label) of two different labels")
    return pair[0], pair[1]


def label_signs(
    labels: npt.NDArray[Any], classes: tuple[Any, Any]
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Say which labels are the positive class and which are neither class."""
    text_classes = [isinstance(c, str) for c in classes]
    kind = labels.dtype.kind
    if (kind in _NUMBERS and all(text_classes)) or (kind == "U" and not any(text_classes)):
        raise ValueError(f"labels have dtype {labels.dtype}, which classes cannot match; pass classes like them")
    vectorised = (kind == "U" and all(text_classes)) or (
        kind in _NUMBERS and all(isinstance(c, int | float | np.number | np.bool_) for c in classes)
    )
    if not vectorised:
        labels = labels.astype(object)
    negative, positive = (
        np.asarray(labels == c if vectorised else np.frompyfunc(_equal(c), 1, 1)(labels)).astype(np.bool_)
        for c in classes
    )
    return positive, ~(negative | positive)


def _float_or_nan(cell: Any) -> float:
    if isinstance(cell, np.ndarray) and cell.ndim > 0:
        return float("nan")  # NumPy versions differ in whether an array of one number is a number
    try:
        return float(cell)
    except Exception:  # whatever is wrong with this cell, its row must not be the one that raises
        return float("nan")


def _equal(label: Any) -> Any:
    def equal(cell: Any) -> bool:
        try:
            return bool(cell == label)
        except Exception:  # pandas.NA has no truth value, for one; such a label is unknown
            return False

    return equal
