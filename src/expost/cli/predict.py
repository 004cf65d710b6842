"""``expost predict``: what a released model says of the rows of a file."""

from __future__ import annotations

import argparse
import csv
import io
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from expost import validation
from expost.cli.options import DATA, add_file_options, check_release, check_tables, file_options
from expost.cli.output import add_output, check_output, why
from expost.cli.terminal import print_line, unwritten
from expost.table.formats import file_of
from expost.whole import whole_file

if TYPE_CHECKING:
    from expost.release.release import Release

DESCRIPTION = (
    "Predict the rows of a file with a released model. The release is all it takes, and nothing is spent. Prints CSV "
    "with one line for each row, in their order."
)
EXAMPLES = ("expost predict survey-satisfied.json new.csv --keep id --output answers.csv",)
EXITS = {0: "predicted", 2: "a mistake in the arguments or files; nothing was written"}


def add_arguments(predict: argparse.ArgumentParser) -> None:
    """Add the options."""
    predict.add_argument("model", type=Path, help="a release, as expost fit saves it")
    predict.add_argument("data", type=Path, help=f"{DATA}; needs no target")
    add_file_options(predict)
    predict.add_argument(
        "--probabilities", action="store_true", help="add the probability of each class (models for a log loss)"
    )
    predict.add_argument(
        "--cut-off",
        type=float,
        metavar="P",
        help="give the positive label where its probability is above P, not a half (models for a log loss)",
    )
    predict.add_argument(
        "--on-invalid",
        default="error",
        choices=("error", "clip"),
        help="what cells do that cannot be read: stop, or count as missing (default: %(default)s)",
    )
    predict.add_argument(
        "--keep", nargs="+", default=[], metavar="COL", help="columns to write beside the predictions, such as ids"
    )
    add_output(predict, "where to write (default: standard output)")


def run(options: argparse.Namespace) -> int:
    """Predict; returns the exit status."""
    if options.cut_off is not None:
        validation.share("--cut-off", options.cut_off)
    check_release(options.model)
    check_tables(options.data)
    check_output(options.output, force=options.force, inputs=(options.model, file_of(options.data)))
    pieces = _predicted(read_release(options.model), options)
    if options.output is None:
        _print([text for text, _ in pieces])  # all of it, or none if a row cannot be read
        return 0
    many = 0
    with whole_file(options.output, force=options.force) as stream:
        for text, rows in pieces:
            stream.write(text.encode())
            many += rows
    print_line(f"wrote {many:,} prediction{'' if many == 1 else 's'} to {options.output}")
    return 0


def _print(pieces: list[str]) -> None:
    out: Any = sys.stdout
    try:
        for text in pieces:  # labels are data: they are not to be spelled out in other letters, as messages are
            text.encode(out.encoding or "utf-8")
    except UnicodeEncodeError:
        raise ValueError(
            "standard output cannot hold every letter of the labels; write to a file with --output"
        ) from None
    out.write_data(pieces)
    failure = unwritten()
    if failure is not None and not isinstance(failure, BrokenPipeError):  # whoever reads has not seen enough
        raise ValueError(f"standard output failed ({why(failure)}); write to a file with --output")


def read_release(path: Path) -> Release:
    """Read a release from its file, or say what is wrong with that."""
    from expost.release.release import Release
    from expost.release.stored import LARGEST

    check_release(path)
    if path.stat().st_size > LARGEST:
        raise ValueError(f"{path} is not a release: it has more than {LARGEST:,} bytes")
    try:
        return Release.from_json(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not a release: it is not text in UTF-8") from None
    except ValueError as error:
        raise ValueError(f"{path} cannot be used: {error}") from None


def _predicted(release: Release, options: argparse.Namespace) -> Iterator[tuple[str, int]]:
    """Yield the predictions as CSV, some rows at a time, and how many they are; the header comes first."""
    from expost.release.scoring import scorer_of
    from expost.table.files import open_disk

    scorer = scorer_of(release)
    disk = open_disk(options.data, **file_options(options))
    inputs = [file.path for file in disk.files]
    check_output(options.output, force=options.force, inputs=inputs)  # which may be one of a folder
    kept = [name.strip() for name in options.keep]
    answer = release.target or "prediction"
    if options.probabilities:
        scorer.require_odds()
    chances = [f"P({label})" for label in scorer.classes or ()] if options.probabilities else []
    for name in kept:
        if name in (answer, *chances):
            raise ValueError(f"--keep {name}: that is a column of the predictions; rename it in {options.data}")
    if answer in chances:
        raise ValueError(f"the answers and their probabilities are both called {answer!r}; leave out --probabilities")
    yield _lines([list(dict.fromkeys([*kept, answer, *chances]))]), 0
    for rows, margins in scorer.pieces(disk, options.on_invalid, kept):
        columns: dict[str, list[Any]] = {name: list(map(_written, rows[name].cells())) for name in kept}
        columns[answer] = scorer.answers(margins, options.cut_off).tolist()
        if chances:
            columns |= zip(chances, scorer.chances(margins).T.tolist(), strict=True)
        yield _lines(zip(*columns.values(), strict=True)), len(rows)


def _written(cell: Any) -> Any:
    """Return a kept cell as it is written: one that is no single cell as JSON, and of a line that has none nothing."""
    if type(cell) is tuple:
        return None
    return json.dumps(cell) if type(cell) in (list, dict) else cell


def _lines(rows: Iterable[Iterable[Any]]) -> str:
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows(rows)
    return stream.getvalue()
