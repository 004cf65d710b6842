"""A file of which every line is a row, written as an object of JSON: ``{"age": 31, "city": "Bern"}``.

Each line is read by itself, so no row changes how another is read. Cells are what JSON says they are: numbers, text,
true and false; null, and a name that the line does not have, is a missing cell. What is no single cell (a list, an
object) is neither a number nor a label, so it counts as unreadable, as do all cells of a line that is no object. No
message quotes either of them.

Such a file has no header, and may begin with the mark of UTF-8, as any text may. The names in its first line are what a
draft of a schema lists, and nothing else comes of them: a column that no line has is a column of missing cells, about
which a fit complains as about any other.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from expost.table.columns import Column, NamedColumns
from expost.table.csv_lines import LONGEST_LINE, MARK, LinesFile, split_lines

_UNREADABLE: tuple[()] = ()  # what stands for each cell of a line that is no object: no number and no label
_DIGITS = 4000  # Python refuses to read more as an integer
_MOST_LINES = 1 << 14  # read at a time


class JsonLines(LinesFile):
    r"""A file of objects in JSON, one on each line, whose rows are not in memory.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "people.jsonl")
    ...     _ = path.write_text('{"age": 31, "city": "Bern"}\n{"age": [47]}\nno object\n')
    ...     columns = JsonLines(path).whole(["age", "city"])
    >>> columns["age"].cells(), columns["city"].cells()
    ([31, [47], ()], ['Bern', None, ()])
    """

    named = False

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        block = next((block for part in self.parts()[:1] for block in self._blocks(part)), b"")
        self.names = list(_row(block.partition(b"\n")[0]) or ())  # those in the first line; none if it is no object

    def read(
        self, part: tuple[int, int], names: Sequence[str], numeric: frozenset[str], rows: int
    ) -> Iterator[NamedColumns]:
        """Yield some columns of the lines that begin in a part."""
        for block in self._blocks(part):
            lines = split_lines(block)
            for start in range(0, len(lines), _MOST_LINES):
                yield _columns(lines[start : start + _MOST_LINES], names)

    def _blocks(self, part: tuple[int, int]) -> Iterator[bytes]:
        for k, block in enumerate(super()._blocks(part)):
            yield block if k or part[0] else block.removeprefix(MARK)

    def whole(self, names: Sequence[str]) -> NamedColumns:
        """Return some columns of all lines."""
        return _columns(self._every_line("JSON lines"), names)


def _columns(lines: Iterable[bytes], names: Sequence[str]) -> NamedColumns:
    found = [_row(line) for line in lines]
    columns = {name: Column([_UNREADABLE if row is None else row.get(name) for row in found]) for name in names}
    return NamedColumns(columns, len(found))


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) <= _DIGITS else float(digits)


_DECODER = json.JSONDecoder(parse_int=_integer)  # made once, which takes longer than a line does


def _row(line: bytes) -> dict[str, Any] | None:
    """Return the cells of a line; None if it is no object, or too long."""
    if len(line) > LONGEST_LINE + 1:
        return None
    try:
        row = _DECODER.decode(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    if type(row) is not dict:
        return None
    if b"\\u" in line:  # by which a line can hold half of a letter, which no file can be written with
        return {name: _whole_letters(cell) if type(cell) is str else cell for name, cell in row.items()}
    return row


def _whole_letters(text: str) -> str:
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
