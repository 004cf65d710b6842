"""Which rows, or persons with theirs, a fit holds out, so that an evaluation finds them again: the curator's own.

Privacy rests on nobody knowing it (`expost.search.new_rows`): it is in no release, is not shown and not pickled. Where
an evaluation is wanted it is kept, as bits in a file beside the release. Whoever reads that file learns who was held
out, and ε says nothing of what they learn from both. So it is kept as the table is, and deleted when no evaluation is
wanted any more.

*The file*: a mark with the version; SHA-256 of the release's id; how many units there are, and how many of them are
held out, 8 bytes each; a bit for each unit, in the order of the table; SHA-256 of all that. It is read as a file from a
stranger: each field is checked against the release, and what is left over is refused.
"""

from __future__ import annotations

import hashlib
import os
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from expost import defaults
from expost.exceptions import UNSPENT
from expost.numeric import Private
from expost.table.rows import Rows, RowSource, declared, given_up
from expost.table.streamed import PersonSource
from expost.whole import write_whole

if TYPE_CHECKING:
    from expost.release.release import Release

_MARK = b"expost held out 1\n"
_DIGEST, _NUMBER = hashlib.sha256().digest_size, 8
_MANY = (
    "which rows are held out is drawn among rows that are kept in memory, and these are too many, or with a cluster: "
    f"pass engine=LocalEngine(memory=...) with more megabytes. {UNSPENT}"
)


class HeldOut(Private):
    """Which units are held out; private.

    Parameters
    ----------
    held
        Whether each unit is, in the order of the table: persons in that of their first rows.
    rows
        How many rows a unit has.
    release_id
        Of which fit, once there is one.

    Examples
    --------
    >>> HeldOut(np.array([True, False, False]))
    HeldOut(units=3, held_out=1)
    """

    def __init__(self, held: npt.NDArray[np.bool_], rows: int = 1, release_id: str = "") -> None:
        self._held, self.rows, self.release_id = held, rows, release_id

    def __repr__(self) -> str:
        return f"HeldOut(units={len(self._held)}, held_out={self.many})"

    @property
    def many(self) -> int:
        """How many units are held out; public."""
        return int(self._held.sum())

    def parted(self, rows: Any) -> tuple[Any, Any]:
        """Return the rows of the units that are not held out, and of those that are: of rows in memory, or persons."""
        if isinstance(rows, PersonSource):
            return rows.parted(self._held)
        if not isinstance(rows, Rows):
            raise ValueError(_MANY)
        held = np.repeat(self._held, self.rows)
        both = (Rows(given_up(rows.x[some]), given_up(rows.y[some]), **declared(rows)) for some in (~held, held))
        fitted, apart = both
        return fitted, apart

    def again(self, rows: Rows | RowSource) -> Any:
        """Return the rows that are held out, if the table has as many as the fit had."""
        units = rows.persons if isinstance(rows, PersonSource) else rows.n // self.rows
        if units != len(self._held):
            noun = "person" if isinstance(rows, PersonSource) or self.rows > 1 else "row"
            raise ValueError(
                f"this table has {units:,} {noun}s and the fit had {len(self._held):,}, of which {self.many:,} were "
                f"held out: pass the same table, in the same order. {UNSPENT}"
            )
        return self.parted(rows)[1]

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write it to a file that its owner alone may read, completely or not at all."""
        numbers = (number.to_bytes(_NUMBER, "big") for number in (len(self._held), self.many))
        content = _MARK + _digest(self.release_id.encode()) + b"".join(numbers) + np.packbits(self._held).tobytes()
        write_whole(Path(path), content + _digest(content), force=force, mode=0o600)

    @classmethod
    def of(cls, given: Any, release: Release) -> HeldOut:
        """Return what a fit kept, or read it from its file; a ``ValueError`` if it is not that of this release."""
        if not release.held_out:
            raise ValueError(f"this model was fitted to all rows: only a fit with holdout keeps rows out. {UNSPENT}")
        if isinstance(given, str | os.PathLike):
            return cls._read(Path(given), release)
        if not isinstance(given, HeldOut):
            raise ValueError(
                "new_rows takes what the fit kept of who was held out, model.held_out_, or the file that expost fit "
                f"wrote it to ({defaults.HELD_OUT}), got {given!r}. {UNSPENT}"
            )
        if given.release_id != release.id:
            raise ValueError(f"what says who was held out belongs to another release. {UNSPENT}")
        return given

    @classmethod
    def _read(cls, path: Path, release: Release) -> HeldOut:
        if not path.is_file():
            raise ValueError(
                f"there is no {path}, which says who was held out: expost fit --new-rows writes it beside the release, "
                f"and --held-out names it; without it evaluate on other rows. {UNSPENT}"
            )

        def wrong(what: str) -> ValueError:
            return ValueError(f"{path} does not say who was held out: {what}. {UNSPENT}")

        k = int(release.parameters.get("rows_per_person", 1))
        units, many = int(release.parameters.get("n", 0)) // k, release.held_out // k
        places = np.cumsum([0, len(_MARK), _DIGEST, _NUMBER, _NUMBER, -(-units // 8), _DIGEST]).tolist()
        if path.stat().st_size != places[-1]:
            raise wrong("it is no such file, or of another release, or cut short")
        content = path.read_bytes()
        mark, of, n, m, bits, digest = (content[a:b] for a, b in pairwise(places))
        if mark != _MARK:
            raise wrong("it is no such file of this version")
        if digest != _digest(content[: places[-2]]):
            raise wrong("it was changed")
        if of != _digest(release.id.encode()):
            raise wrong("it belongs to another release")
        found = np.unpackbits(np.frombuffer(bits, dtype=np.uint8)).astype(bool)
        held = cls(found[:units], k, release.id)
        if (int.from_bytes(n, "big"), int.from_bytes(m, "big"), held.many) != (units, many, many) or found[
            units:
        ].any():
            raise wrong("its numbers are not those of the release")
        return held


def held_out_beside(release: Path) -> Path:
    """Return what the file beside a release is called: two releases that end in anything but .json share none.

    Examples
    --------
    >>> [held_out_beside(Path(name)).name for name in ("m.json", "m.v1", "m.v2")]
    ['m.held-out', 'm.v1.held-out', 'm.v2.held-out']
    """
    return release.with_name(release.name.removesuffix(".json") + defaults.HELD_OUT)


def _digest(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()
