"""What the sub-commands share: targets, bounds and labels as the command line states them, and safe printing.

Files to read and folders to write to: what is wrong with one is said before anything is imported.

Nothing is read here but names and permissions, which are public.
"""

from __future__ import annotations

import argparse
import json
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from expost import validation
from expost.goals import FLAGS

if TYPE_CHECKING:
    from expost.goals import Goal
    from expost.table.files import Table
    from expost.table.streamed import TableOnDisk


def add_bounds(parser: argparse.ArgumentParser) -> Any:
    """Add the options that state public bounds; returns their group."""
    bounds = parser.add_argument_group("public bounds")
    bounds.add_argument("--bounds", nargs=2, type=float, metavar=("LO", "HI"), help="for every column")
    bounds.add_argument(
        "--column-bounds", nargs=3, action="append", default=[], metavar=("COL", "LO", "HI"), help="for one column"
    )
    bounds.add_argument("--bounds-file", type=Path, metavar="JSON", help='{"column": [lower, upper], …}')
    bounds.add_argument(
        "--feature-bound", type=float, metavar="F", help="ℓ₁ norm that rows are clipped to, after bounds"
    )
    bounds.add_argument("--target-bound", type=float, metavar="B", help="the target lies in [-B, B]")
    bounds.add_argument(
        "--target-bounds", nargs=2, type=float, metavar=("LO", "HI"), help="the target lies in [LO, HI]"
    )
    bounds.add_argument("--classes", nargs=2, metavar=("NEG", "POS"), help="the two class labels")
    return bounds


def stated_bounds(options: argparse.Namespace, table: Table | TableOnDisk) -> Any:
    """Join the three ways of stating bounds; the most specific wins."""
    stated: dict[str, tuple[float, float]] = {}
    if options.bounds is not None:
        stated = dict.fromkeys(table.column_names, (options.bounds[0], options.bounds[1]))
    if options.bounds_file is not None:
        try:
            read = json.loads(options.bounds_file.read_text(encoding="utf-8"))
            # one file may serve several choices of columns
            wanted = {name: pair for name, pair in read.items() if options.columns is None or name in options.columns}
            stated.update({name: (float(low), float(high)) for name, (low, high) in wanted.items()})
        except (AttributeError, TypeError, ValueError, OverflowError, RecursionError) as error:
            raise ValueError(f'{options.bounds_file} must hold {{"column": [lower, upper], …}}: {error}') from None
    for name, low, high in options.column_bounds:
        try:
            stated[name] = (float(low), float(high))
        except ValueError:
            raise ValueError(f"--column-bounds {name} {low} {high}: the bounds must be two numbers") from None
    return stated or None


def stated_classes(stated: Sequence[str] | None, table: Table | TableOnDisk) -> Any:
    """Return the labels in the type the column has: the command line only knows strings."""
    if stated is None:
        return None
    labels = [text.removeprefix(" ") for text in stated]  # the space that main puts before a negative number
    if table.y.dtype.kind in "OUST":
        return labels
    try:
        return [_label(text, table.y.dtype.kind) for text in labels]
    except (ValueError, KeyError):
        raise ValueError(f"--classes {' '.join(labels)}: the target column holds {table.y.dtype} values") from None


def stated_target_type(options: argparse.Namespace) -> Literal["inferred", "number", "text"]:
    """Return how cells of the target are to be read where no single row may decide it: as the classes were stated."""
    if options.task == "regression":
        return "number"
    if options.classes is None:
        return "inferred"  # as the classes are, which the guarantee does not cover
    try:
        for text in options.classes:
            _label(text.strip(), "f")
    except ValueError:
        return "text"
    return "number"


def _label(text: str, kind: str) -> bool | int | float:
    if kind == "b":
        return {"true": True, "1": True, "false": False, "0": False}[text.lower()]
    if kind == "f" and text.lower() in ("true", "false"):
        return float(text.lower() == "true")
    return int(text) if kind in "iu" else float(text)


def check_counts(options: argparse.Namespace) -> None:
    """Complain about anything counted that is out of its range."""
    for name in validation.COUNTS.keys() & vars(options):
        if isinstance(getattr(options, name), int):  # not left out, and no names of columns
            validation.count(f"--{name.replace('_', '-')}", getattr(options, name))


def check_numbers(options: argparse.Namespace) -> None:
    """Complain about numbers out of their range, before anything is imported that would take time."""
    for flag in FLAGS.values():
        value = getattr(options, flag.attribute)
        if value is not None:
            flag.check(value)
    validation.share("--margin", options.margin)
    validation.failure_probability(options.failure_probability)
    if options.max_epsilon != math.inf:  # which lifts the budget
        validation.budget(options.max_epsilon)
    validation.delta(getattr(options, "delta", 0.0))


def stated_goal(options: argparse.Namespace) -> Goal | None:
    """Return the goal that was stated."""
    import expost.goals

    for name, flag in FLAGS.items():
        value = getattr(options, flag.attribute)
        if value is not None:
            goal: type[Goal] = getattr(expost.goals, name)
            return goal.stated(value, options.margin)
    return None


ENDINGS = (".csv", ".csv.gz", ".parquet", ".pq")


def check_tables(path: Path) -> None:
    """Complain about a file, folder or pattern of tables that cannot be read."""
    if not path.is_dir() and (path.exists() or not any(mark in str(path) for mark in "*?[")):
        check_table(path)


def check_table(path: Path) -> None:
    """Complain about a table that cannot be read: none, a folder, no permission, of an unknown kind."""
    check_input(path)
    if not path.name.lower().endswith(ENDINGS):
        raise ValueError(f"cannot tell the type of {path}; its name must end in {', '.join(ENDINGS)}")


def check_input(path: Path, what: str = "file", hint: str = "") -> None:
    """Complain about a file that cannot be read."""
    if path.is_dir():
        raise ValueError(f"{path} is a folder, not a {what}")
    if not path.exists():
        raise ValueError(f"there is no {what} {path}{hint}")
    if not path.is_file():
        raise ValueError(f"{path} is not an ordinary file")
    if not os.access(path, os.R_OK):
        raise ValueError(f"{path} cannot be read: permission denied")


def check_schema(path: Path) -> None:
    """Complain about a schema that cannot be read."""
    check_input(path, "schema", "; expost init drafts one")


def check_release(path: Path) -> None:
    """Complain about a release that cannot be read."""
    check_input(path, "release", "; expost fit saves one")


def check_folder(path: Path) -> None:
    """Complain about a folder to write to that is a file, or cannot be made."""
    there = next(parent for parent in (path.absolute(), *path.absolute().parents) if parent.exists())
    if not there.is_dir():
        raise ValueError(f"{there} is a file; --output must name a folder")
    if not os.access(there, os.W_OK | os.X_OK):
        raise ValueError(f"{there} cannot be written to")
