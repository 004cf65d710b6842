"""From a table and its schema to rows whose shape is public.

An encoded row has blocks. The first is a box: the constant and every plain number, each in [−1, 1]. After it comes one
block for each column that has indicators, in which the entries' sizes add up to at most 1: the indicators of a
category, one of which is 1, the hats or steps of a number with the mark that it is missing (`expost.table.curves`), or
a number and that mark, one of which is 0. Indicators are not centred: a row of zeros but for one 1 is short in every
norm, and centring would make it long.

How long rows are, and what 1 is in fixed point, is in :class:`~expost.table.shape.BlockRows`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from expost import validation
from expost.exceptions import InvalidRows
from expost.table.columns import Column, NamedColumns
from expost.table.entrance import OnInvalid
from expost.table.files import open_named
from expost.table.kinds import Classes, ColumnKind, Units
from expost.table.misfits import STATE_ENCODING, UNDECODED, Tally, complaints, misfits, remedies
from expost.table.persons import count_persons, slots
from expost.table.rows import ONE, Rows, given_up, room_for
from expost.table.schema import Schema
from expost.table.shape import BlockRows

CONSTANT = "(constant)"  # which is the first encoded column

Floats = npt.NDArray[np.float64]


class Encoding(BlockRows):
    """How a table with a schema becomes rows; public, and computed without looking at any row.

    Parameters
    ----------
    schema : Schema

    Attributes
    ----------
    names : tuple of str
        Names of the encoded columns, the constant first.

    Notes
    -----
    With ``on_invalid="error"`` cells that are not what the schema says, and columns that nearly never are, raise
    :class:`~expost.exceptions.InvalidRows`. That message is for the curator: whether it appears depends on single rows,
    so it is
    **not covered by the privacy guarantee**. With ``on_invalid="clip"`` no row can raise, warn or change another: what
    cannot be read is treated as missing (all indicators 0 if the schema gives missing cells none), and as a target it
    is the negative class or the middle of the bounds. Either way, numbers beyond their bounds are moved to the nearest
    and cells that are missing are what the schema says.

    Examples
    --------
    >>> schema = Schema.from_dict(
    ...     {
    ...         "target": "income",
    ...         "classes": ["low", "high"],
    ...         "columns": {"age": {"bounds": [0, 100]}, "sex": {"categories": ["F", "M"]}},
    ...     }
    ... )
    >>> encoding = Encoding(schema)
    >>> encoding.names
    ('(constant)', 'age', 'sex=F', 'sex=M', 'sex=(missing)')
    >>> encoding.blocks, encoding.square
    (((2, 'box'), (3, 'l1')), 3)
    >>> table = {"age": [100, 25, "?"], "sex": ["F", " M ", None], "income": ["low", "high", "high"]}
    >>> encoding.encode(table, on_invalid="clip")
    Rows(n=3, p=5)
    >>> (encoding.design(table) * encoding.scale).round(2)
    array([[ 1. ,  1. ,  1. ,  0. ,  0. ],
           [ 1. , -0.5,  0. ,  1. ,  0. ],
           [ 1. ,  0. ,  0. ,  0. ,  1. ]])
    """

    constant_column = 0

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        # those that are one number each stand in the box, before the others
        parts = [(name, part) for name, kind in schema.kinds.items() for part in kind.parts]
        self.parts: list[tuple[str, ColumnKind]] = sorted(parts, key=lambda item: not item[1].boxed)
        self._target: ColumnKind = schema.target_numbers if schema.classes is None else Classes(schema.classes)
        self.names = (CONSTANT, *(made for name, kind in self.parts for made in kind.names(name)))
        validation.columns(len(self.names), f" that {len(schema.columns):,} columns of the schema become")
        if len(set(self.names)) < len(self.names):
            twice = next(name for i, name in enumerate(self.names) if name in self.names[:i])
            raise ValueError(f"two encoded columns would be called {twice!r}; rename a column or a category")
        others = [len(kind.names(name)) for name, kind in self.parts if not kind.boxed]
        self.blocks = ((1 + len(self.parts) - len(others), "box"), *((width, "l1") for width in others))
        self.square = 1 + len(self.parts)

    def __repr__(self) -> str:
        return f"Encoding({len(self.schema.columns)} columns become {len(self.names)})"

    def encode(self, frame: Any, on_invalid: OnInvalid = "error") -> Rows:
        """Turn a table into bounded rows.

        Parameters
        ----------
        frame : frame of pandas, Polars or PyArrow, mapping of names to columns, path of a file, or NamedColumns
            Columns that the schema does not name are not looked at.
        on_invalid : {"error", "clip"}, default="error"
            See the class.

        Returns
        -------
        Rows
            With ‖x‖₂ ≤ 1; labels are −1 and +1, targets of a regression in [−1, 1]. Where the schema names persons,
            k rows for each (:mod:`expost.table.persons`).
        """
        return self.encode_and_count(frame, on_invalid)[0]

    def encode_and_count(self, frame: Any, on_invalid: OnInvalid = "error") -> tuple[Rows, list[Tally], Tally]:
        """Return the rows of :meth:`encode`, and how many of their cells fit, by column and of the target; private."""
        if on_invalid not in ("error", "clip"):
            raise ValueError('on_invalid must be "error" or "clip"')
        raw, schema, judged = self.open(frame), self.schema, on_invalid == "error"
        if len(raw) == 0:
            raise ValueError("there are no rows; pass at least one")
        if schema.person is not None and schema.rows_per_person is not None:
            if judged:  # all rows are, also those that fill no slot
                self.require_fit(*self.tallied(self.encoded(raw)[2], len(raw)))
                found = count_persons(raw[schema.person].cells(), 1, schema.missing)
                self.require_persons(found.unreadable, found.undecoded)
            raw = raw.taken(slots(raw[schema.person].cells(), schema.rows_per_person, schema.missing)[0])
        x, y, counts = self.encoded(raw)
        tallies, target = self.tallied(counts, len(raw))
        if judged and schema.person is None:
            self.require_fit(tallies, target)
        return Rows(given_up(np.ascontiguousarray(x)), given_up(y), **self.declares), tallies, target

    def open(self, frame: Any) -> NamedColumns:
        """Find the columns of a table that a fit needs; none is looked at."""
        return open_named(frame, self.schema.needed)

    def encoded(self, raw: NamedColumns) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[np.int64]]:
        """Return some rows and counts of their cells, which add up to those of the table (:meth:`tallied`).

        x is held column by column, as the table is: turning it around would take as long as half of the rest.
        """
        x, tallies = self._features(raw)
        y = np.empty((len(raw), 1), dtype=np.int32)
        target = self.schema.target
        every = (*tallies.values(), self._fill(target, self._target, raw[target], y, ONE))
        return x, y[:, 0], np.array([tally.counts for tally in every], dtype=np.int64)

    def tallied(self, counts: npt.NDArray[np.int64], n: int) -> tuple[list[Tally], Tally]:
        """Return what the counts of :meth:`encoded`, added up over n rows, say of each column and the target."""
        every = [*dict(self.parts).items(), (self.schema.target, self._target)]
        made = {
            name: Tally.of(name, kind.counted_as, n, row)
            for (name, kind), row in zip(every, counts.tolist(), strict=True)
        }
        return [made[name] for name in self.schema.columns], made[self.schema.target]

    def require_fit(self, tallies: list[Tally], target: Tally) -> None:
        """Raise for a table that does not fit; for the curator, not covered by the guarantee."""
        found = [*misfits(tallies, target), *complaints(tallies, target)]
        if found:
            raise InvalidRows(
                f"the table does not fit the schema: {'; '.join(found)}. This message depends on single rows and is "
                f"not covered by the privacy guarantee; expost check shows counts. {remedies(tallies, target)}"
            )

    def design(self, frame: Any, on_invalid: OnInvalid = "clip") -> Floats:
        """Return rows to predict for, encoded as :meth:`encode` does; the table needs no target.

        ``on_invalid`` says whether cells that cannot be read raise, or are treated as missing.
        """
        raw = open_named(frame, list(self.schema.columns))
        [(_, x)] = self.designs([raw], on_invalid)
        return x

    def designs(
        self, pieces: Iterable[NamedColumns], on_invalid: OnInvalid, named: Callable[[int], str] | None = None
    ) -> Iterator[tuple[NamedColumns, Floats]]:
        """Yield pieces of a table with what :meth:`design` makes of them; ``named`` names a row of the present piece.

        After one in which a cell cannot be read only counts go on, and what was counted is raised at the end.
        """
        total: list[Tally] | None = None
        first = None
        for raw in pieces:
            x, found = self._features(raw)
            tallies = list(found.values())
            total = tallies if total is None else [a + b for a, b in zip(total, tallies, strict=True)]
            if first is None and on_invalid == "error" and complaints(tallies, None):
                row, name = self._first(raw)
                place = f"row {row + 1} (counting from 1)" if named is None else named(row)
                first = f"{place}, column {name!r}"
            if first is None:
                yield raw, np.divide(x, ONE, order="C")
        if first is not None and total is not None:
            raise InvalidRows(
                f"the rows to predict for do not fit the schema: {'; '.join(complaints(total, None))}; the first is "
                f"{first}. {remedies(total, None)}"
            )

    def to_caller_units(self, theta: npt.ArrayLike) -> tuple[dict[str, float], float]:
        """Express parameters of encoded rows as coefficients of the table's own columns.

        Parameters
        ----------
        theta : array-like of shape (len(names),)

        Returns
        -------
        coefficients : dict of str to float
            By name of the encoded column, the constant left out. A number counts in its own units, after its
            transform and within its bounds (in the middle of them if it is missing), an indicator as 0 or 1, a curve
            by what it adds at each of its knots.
        intercept : float
            What is predicted, or decided by, is the intercept and all coefficients times their columns.
        """
        parameters = np.asarray(theta, dtype=np.float64)
        if parameters.shape != (len(self.names),):
            raise ValueError(f"theta must have shape ({len(self.names)},); got {parameters.shape}")
        middle, half = self._target.middle_and_half
        scaled = (parameters * half / self.scale).tolist()
        intercept = middle + scaled[0]
        coefficients: dict[str, float] = {}
        place = 1
        for column, kind in self.parts:
            center, width = kind.middle_and_half
            names = kind.names(column)
            for i, name in enumerate(names):
                coefficients[name] = scaled[place + i] / (width if i == 0 else 1.0)
            intercept -= center * coefficients[names[0]]
            place += len(names)
        return coefficients, intercept

    def require_persons(self, unreadable: int, undecoded: int) -> None:
        """Raise if there are cells in which no person can be told; for the curator, not covered by the guarantee."""
        if unreadable:
            raise InvalidRows(
                f"cells that are neither text nor numbers in {self.schema.person} ({unreadable}), so persons "
                f"cannot be told apart. This message depends on single rows and is not covered by the privacy "
                f"guarantee; make them text"
            )
        if undecoded:
            raise InvalidRows(
                f"{UNDECODED} in {self.schema.person} ({undecoded}), so persons may be taken for one another. "
                f"This message depends on single rows and is not covered by the privacy guarantee; {STATE_ENCODING}"
            )

    def _features(self, raw: NamedColumns) -> tuple[npt.NDArray[np.int32], dict[str, Tally]]:
        """Return encoded rows, held column by column, and counts of their cells, once for every column."""
        x = room_for(len(raw), len(self.names), columns=True)
        x[:, 0] = self.unit
        tallies: dict[str, Tally] = {}
        place = 1
        with np.errstate(all="ignore"):  # a warning would tell of a cell
            for name, kind in self.parts:
                width = len(kind.names(name))
                tallies[name] = self._fill(name, kind, raw[name], x[:, place : place + width], self.unit)
                place += width
        return x, tallies

    def _fill(self, name: str, kind: ColumnKind, column: Column, out: Units, unit: int) -> Tally:
        """Write the rows of a column, where 1 is ``unit``; returns counts, which are private."""
        read, missing, strange = kind.read(column, self.schema.missing)
        outside = kind.write(read, out, unit)
        unreadable, other = (0, strange.sum()) if kind.other else (strange.sum(), 0)
        undecoded, classes = column.undecoded(strange).sum(), ((read == 0).sum(), (read == 1).sum())
        counts = map(int, (missing.sum(), unreadable, outside, other, undecoded, *classes))
        return Tally.of(name, kind.counted_as, len(column), list(counts))

    def _first(self, raw: NamedColumns) -> tuple[int, str]:
        """Return the first row with a cell that cannot be read, from 0, and its column."""
        found = []
        for name, kind in self.parts:
            strange = kind.read(raw[name], self.schema.missing)[2]
            bad = raw[name].undecoded(strange) if kind.other else strange
            if bad.any():
                found.append((int(np.argmax(bad)), name))
        return min(found)
