"""One row per trial, as text that comes out the same to the byte: floats by ``repr``, no times, no paths.

A run appends to a partial file and is resumed from it; only when all rows are there is the sorted, compressed file
written, in one step.
"""

from __future__ import annotations

import dataclasses
import gzip
import io
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, get_type_hints

FINAL = "simulated-trials.csv.gz"  # a table has no place for a remark: its name says what it is
PARTIAL = "simulated-trials.partial.csv"


@dataclass(frozen=True)
class Row:
    """What one trial came to.

    ``epsilon`` is the ex-post privacy loss, a refusal's included; ``excess_risk`` and ``norm`` are empty for a refusal
    and true values otherwise, which only a simulation may write down. ``level`` counts from 0 and is empty for methods
    without levels. What ``epsilon`` has beyond generation and test is the price of measuring the data beforehand. The
    oracle's row has as ``excess_risk`` the quantile, and as ``norm`` the mean, over its draws.
    """

    dataset: str
    method: str
    calibration: str
    perturbation: str
    alpha: float
    trial: int
    seed: int
    status: str
    epsilon: float
    epsilon_generation: float
    epsilon_test: float
    level: int | None
    n_levels: int | None
    excess_risk: float | None
    norm: float | None
    null_excess_risk: float

    @property
    def key(self) -> tuple[str, float, int]:
        """What identifies the trial within an experiment."""
        return (self.method, self.alpha, self.trial)

    def line(self) -> str:
        """Return the row as a line of the file."""
        values = (getattr(self, name) for name in COLUMNS)
        return ",".join("" if value is None else str(value) for value in values) + "\n"

    @classmethod
    def parse(cls, line: str) -> Row:
        """Read a line; anything but a whole row is a ``ValueError``."""
        cells = line.rstrip("\n").split(",")
        if not line.endswith("\n") or len(cells) != len(COLUMNS):
            raise ValueError("not a whole row")
        return cls(**{name: _read(cell, _KINDS[name]) for name, cell in zip(COLUMNS, cells, strict=True)})


COLUMNS = tuple(item.name for item in dataclasses.fields(Row))
HEADER = ",".join(COLUMNS) + "\n"
_KINDS = get_type_hints(Row)


def _read(cell: str, kind: Any) -> Any:
    if kind in (str, int, float):
        return kind(cell)
    if cell == "":
        return None
    return int(cell) if kind == int | None else float(cell)


def read_rows(folder: Path) -> list[Row]:
    """Return the finished rows of a folder, whether or not its run came to an end."""
    found: dict[tuple[str, float, int], Row] = {}
    for row in (*_read_final(folder / FINAL), *_read_partial(folder / PARTIAL)):
        found[row.key] = row
    return list(found.values())


def _read_final(path: Path) -> Iterator[Row]:
    if not path.is_file():
        return
    with gzip.open(path, "rt", encoding="utf-8", newline="") as stream:
        lines = stream.readlines()
    if not lines or lines[0] != HEADER:
        raise ValueError(f"{path} is not a table of trials")
    yield from map(Row.parse, lines[1:])


def _read_partial(path: Path) -> Iterator[Row]:
    if not path.is_file():
        return
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True)
    if lines and lines[0].endswith("\n") and lines[0] != HEADER:
        raise ValueError(f"{path} is not a table of trials")
    for line in lines[1:]:
        try:
            yield Row.parse(line)
        except ValueError:
            continue  # the line a killed run was writing: its trial is run again


class Journal:
    """The partial file, open for appending: each row is on its way to disk before the next is worked on."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / PARTIAL

    def __enter__(self) -> Journal:
        self._stream = self._path.open("ab+")
        self._stream.seek(0)
        whole = self._stream.read().rfind(b"\n") + 1
        self._stream.truncate(whole)  # a torn last line would grow into a wrong one
        if whole == 0:
            self._stream.write(HEADER.encode())
            self._stream.flush()
        return self

    def append(self, row: Row) -> None:
        """Add a row."""
        self._stream.write(row.line().encode())
        self._stream.flush()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stream.close()


def write_final(folder: Path, rows: Iterable[Row], methods: Sequence[str]) -> Path:
    """Write all rows, sorted and compressed, and drop the partial file."""
    order = {name: k for k, name in enumerate(methods)}
    ranked = sorted(rows, key=lambda row: (order[row.method], row.alpha, row.trial))
    text = HEADER + "".join(row.line() for row in ranked)
    packed = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=packed, mtime=0) as stream:  # no name and no time inside
        stream.write(text.encode())
    write_whole(folder / FINAL, packed.getvalue())
    (folder / PARTIAL).unlink(missing_ok=True)
    return folder / FINAL


def write_whole(path: Path, content: bytes) -> None:
    """Write a file completely or not at all."""
    fresh = path.with_name(f".{path.name}.new")
    fresh.write_bytes(content)
    os.replace(fresh, path)
