"""Dates and times as numbers: days since 1970-01-01, hours and minutes as parts of a day, time zones left aside.

A date is what clocks show at its place: of a time with a zone the fields are read, and the zone is not. It is read to
the microsecond, and what is finer is cut off, so that a table means the same whatever holds it.

A cell is read by itself: text as ISO 8601 has it, dates and times of Python and pandas, NumPy's. What a subclass of
them, or a time zone, overrides is not called: the fields are read by methods of Python's own classes. Whatever else is
in a cell is no date.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from expost.table.cells import is_na

_FIRST: Final = date(1970, 1, 1).toordinal()
_DAY: Final = 86_400_000_000  # microseconds
_LONGEST: Final = 40  # letters of a date
# Microseconds in a unit of NumPy's, and how many units are in a microsecond.
_COARSER: Final = {"W": 7 * _DAY, "D": _DAY, "h": _DAY // 24, "m": 60_000_000, "s": 1_000_000, "ms": 1_000, "us": 1}
_FINER: Final = {"ns": 10**3, "ps": 10**6, "fs": 10**9, "as": 10**12}
_NONE: Final = np.iinfo(np.int64).min  # NumPy's "no time"
_CALENDAR: Final = 1e7  # days: more than any calendar has
_NO_DATE: Final = 'dates must be of the years 1 to 9999 and to the microsecond; write one as "2020-12-31T23:59:59"'
_FURTHEST: Final = 2**62  # microseconds: a hundred thousand years, with room to add to


def day(cell: Any) -> float | None:
    """Read one cell as days since 1970: NaN if it is missing, None if it is no date.

    Examples
    --------
    >>> day("1970-01-02"), day(" 1970-01-01T12:00 "), day(datetime(1969, 12, 31)), day(np.datetime64("1971"))
    (1.0, 0.5, -1.0, 365.0)
    >>> day("yesterday"), day(1970), day(None)
    (None, None, nan)
    """
    if cell is None or is_na(cell):
        return float("nan")
    kind = type(cell)
    if issubclass(kind, str):
        return _of_text(str.__str__(cell))
    if issubclass(kind, bytes):
        return _of_text(bytes.__bytes__(cell).decode("utf-8", "replace"))
    if issubclass(kind, datetime):
        return _of_time(cell)
    if issubclass(kind, date):
        return float(date.toordinal(cell) - _FIRST)
    if kind is np.datetime64 or (kind is np.ndarray and cell.ndim == 0 and cell.dtype.kind == "M"):
        return float(days_of_array(np.asarray(cell).reshape(1))[0])
    if kind is float or kind is np.float64:
        return float(cell) if cell != cell else None  # NaN is missing, as everywhere
    return None


def _of_text(text: str) -> float | None:
    text = text.strip()
    if len(text) > _LONGEST:
        return None
    if text.lower() == "nat":
        return float("nan")
    try:
        return _of_time(datetime.fromisoformat(text))
    except ValueError:
        return None


def _of_time(cell: datetime) -> float:
    read = (getattr(datetime, name).__get__(cell) for name in ("hour", "minute", "second", "microsecond"))
    hour, minute, second, micro = read
    days = date.toordinal(cell) - _FIRST
    return float(1_000_000 * (86_400 * days + 3600 * hour + 60 * minute + second) + micro) / _DAY


def microseconds(values: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return microseconds since 1970 of NumPy's dates, what is finer cut off; the smallest integer where there is none.

    Those beyond a hundred thousand years are that far away. No entry can raise or change another.
    """
    unit, many = np.datetime_data(values.dtype)
    whole = values.astype(np.int64)
    gone = whole == _NONE
    if unit == "generic":
        return np.full(whole.shape, _NONE)
    if unit in ("Y", "M"):
        limit = 12 * 10**5 // many
        days = (np.clip(whole, -limit, limit) * many).astype(f"datetime64[{unit}]").astype("datetime64[D]")
        whole, unit, many = days.astype(np.int64), "D", 1
    if unit in _COARSER:
        limit = _FURTHEST // (_COARSER[unit] * many)
        found = np.clip(whole, -limit, limit) * (_COARSER[unit] * many)
    else:
        limit = -(_NONE + 1) // many
        found = np.clip(whole, -limit, limit) * many // _FINER[unit]
    return np.where(gone, _NONE, found)


def days_of_array(values: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Return days since 1970 of NumPy's dates, as text of the same time is read, NaN where there is none."""
    found = microseconds(values)
    return np.where(found == _NONE, np.nan, found.astype(np.float64) / _DAY)


def to_days(stated: Any) -> float:
    """Return a stated date as days since 1970, or complain."""
    if isinstance(stated, int | float) and not isinstance(stated, bool):
        return float(stated)
    read = day(stated)
    if read is None or read != read:
        raise ValueError(f'{stated!r} is no date; write one as "2020-12-31"')
    return read


def from_days(days: float, step: int = 1) -> str:
    """Return days since 1970 as a date, with a time of day if it has one.

    It is the nearest multiple of ``step`` microseconds, and a coarser one where that is read back as the same number.

    Examples
    --------
    >>> from_days(31.0), from_days(0.75), from_days(1 / 7, 1_000_000), from_days(to_days("1970-01-01T00:00:00.5"))
    ('1970-02-01', '1970-01-01T18:00:00', '1970-01-01T03:25:43', '1970-01-01T00:00:00.500')
    """
    if not abs(days) < _CALENDAR:
        raise ValueError(_NO_DATE)
    nearest = round(Fraction(days) * _DAY)
    for coarse in (_DAY, 1_000_000, 1_000, 1):
        count = max(coarse, step) * round(nearest / max(coarse, step))
        if float(count) / _DAY == days or coarse <= step:
            break
    try:
        found = datetime(1970, 1, 1) + timedelta(microseconds=count)
    except OverflowError:
        if days >= date.max.toordinal() + 1 - _FIRST or step == 1:
            raise ValueError(_NO_DATE) from None
        return from_days(days)  # rounded beyond the last day
    if not count % _DAY:
        return found.date().isoformat()
    fine = 1_000 if count % 1_000_000 else 0
    return found.isoformat(timespec="seconds" if not fine else "microseconds" if count % fine else "milliseconds")


def require_written(days: float) -> None:
    """Complain about days since 1970 that no text can state, which would be read back as something else."""
    if to_days(from_days(days)) != days:
        raise ValueError(_NO_DATE)
