"""``expost predict``: what a released model says of the rows of a file."""

from __future__ import annotations

import argparse
import csv
import io
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from expost.cli.output import add_output, check_output, write_whole
from expost.cli.paths import check_release, check_table
from expost.cli.table_options import add_file_options, file_options
from expost.cli.words import complain

if TYPE_CHECKING:
    from expost.privacy.release import Release

DESCRIPTION = (
    "Predict the rows of a file with a released model. The release is all it takes, and nothing is spent. Prints CSV "
    "with one line for each row, in their order."
)
EXAMPLES = ("expost predict survey-satisfied.json new.csv --keep id --output answers.csv",)
EXITS = {0: "predicted", 2: "a mistake in the arguments or files; nothing was written"}


def add_arguments(predict: argparse.ArgumentParser) -> None:
    """Add the options."""
    predict.add_argument("model", type=Path, help="a release, as expost fit saves it")
    predict.add_argument("data", type=Path, help="a .csv, .csv.gz or .parquet file; needs no target")
    add_file_options(predict)
    predict.add_argument(
        "--probabilities", action="store_true", help="add the probability of each class (models for a log loss)"
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
    try:
        check_release(options.model)
        check_table(options.data)
        check_output(options.output, force=options.force, inputs=(options.model, options.data))
        text, many = _predicted(read_release(options.model), options)
        if options.output is not None:
            write_whole(options.output, text, force=options.force)
            print(f"wrote {many:,} prediction{'' if many == 1 else 's'} to {options.output}")
        else:
            _print(text)
    except (ValueError, TypeError, OSError) as error:
        return complain(error, options)
    return 0


def _print(text: str) -> None:
    try:
        # labels are data: they are not to be spelled out in other letters, as messages are
        text.encode(sys.stdout.encoding or "utf-8")
        sys.stdout.write(text)
        sys.stdout.flush()
    except UnicodeEncodeError:
        raise ValueError(
            "standard output cannot hold every letter of the labels; write to a file with --output"
        ) from None
    except OSError as error:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  # so that the exit does not fail as well
        raise ValueError(f"standard output failed ({error}); write to a file with --output") from None


def read_release(path: Path) -> Release:
    """Read a release from its file, or say what is wrong with that."""
    from expost.privacy.release import Release

    if not path.is_file():
        raise ValueError(f"there is no file {path}")
    try:
        return Release.from_json(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not a release: it is not text in UTF-8") from None
    except ValueError as error:
        raise ValueError(f"{path} cannot be used: {error}") from None


def _predicted(release: Release, options: argparse.Namespace) -> tuple[str, int]:
    """Return the predictions as CSV, and how many there are."""
    from expost.data.named import read_columns
    from expost.privacy.scoring import scorer_of

    scorer = scorer_of(release)
    names = release.columns or release.parameters["columns"]
    whole = options.on_invalid == "error"
    kept = [name.strip() for name in options.keep]
    wanted = list(dict.fromkeys([*names, *kept]))
    rows = read_columns(options.data, wanted, whole_lines=whole, **file_options(options))
    columns: dict[str, list[Any]] = {name: rows[name].cells() for name in kept}
    answer = release.target or "prediction"
    if answer in columns:
        raise ValueError(f"--keep {answer}: that is the column of the predictions; rename it in {options.data}")
    columns[answer] = scorer.predict(rows, options.on_invalid).tolist()
    if options.probabilities:
        chances = scorer.probabilities(rows, options.on_invalid)
        for label, chance in zip(scorer.classes or (), chances.T.tolist(), strict=True):
            columns[f"P({label})"] = chance
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return stream.getvalue(), len(rows)
