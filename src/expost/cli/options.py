"""What the sub-commands share: bounds, labels, goals, files and ledgers as the command line states them.

What is wrong with a file or a number is said before anything is imported. Nothing is read here but names and
permissions, which are public.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import reduce
from itertools import product
from operator import and_
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from expost import defaults, goals, validation
from expost.goals.flags import FLAGS, Flag
from expost.shown import exact

if TYPE_CHECKING:
    from expost.account.ledger import Ledger
    from expost.table.files import Table
    from expost.table.schema import Schema
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
        read = _bounds_in(options.bounds_file)
        # one file may serve several choices of columns
        stated |= {name: pair for name, pair in read.items() if options.columns is None or name in options.columns}
    by_itself: dict[str, tuple[float, float]] = {}
    for name, low, high in options.column_bounds:
        try:
            pair = float(low), float(high)
        except ValueError:
            raise ValueError(f"--column-bounds {name} {low} {high}: the bounds must be two numbers") from None
        if name in by_itself:
            raise ValueError(f"--column-bounds {name} is stated more than once")
        by_itself[name] = pair
    return stated | by_itself or None


def _bounds_in(path: Path) -> dict[str, tuple[float, float]]:
    """Read a file of bounds, field by field: two numbers for each column, and each column once."""
    must = f'{path} must hold {{"column": [lower, upper], …}}'
    try:
        read = json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=_Fields)
    except (ValueError, RecursionError):
        raise ValueError(f"{must}, which is JSON in UTF-8") from None
    if not isinstance(read, _Fields):
        raise ValueError(must)
    found: dict[str, tuple[float, float]] = {}
    for name, pair in read:
        if name in found:
            raise ValueError(f"{must}: column {name!r} is stated more than once")
        numbers = [bound for bound in pair if type(bound) in (int, float)] if isinstance(pair, list) else []
        bounds = [validation.as_float(bound) for bound in numbers if math.isfinite(validation.as_float(bound))]
        if len(bounds) != 2 or len(pair) != 2:
            raise ValueError(f"{must}: of column {name!r} it has something else than two numbers")
        found[name] = bounds[0], bounds[1]
    return found


class _Fields(list[tuple[str, Any]]):
    """The fields of an object in JSON, in order."""


def stated_classes(stated: Sequence[str] | None, table: Table | TableOnDisk) -> Any:
    """Return the labels in the type the column has: the command line only knows strings."""
    if stated is None:
        return None
    if table.y.dtype.kind in "OUST":
        return list(stated)
    try:
        return [_label(text, table.y.dtype.kind) for text in stated]
    except (ValueError, KeyError):
        raise ValueError(f"--classes {' '.join(stated)}: the target column holds {table.y.dtype} values") from None


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


def add_goals(parser: argparse.ArgumentParser, title: str, wanted: Callable[[Flag], bool], **how: Any) -> None:
    """Add the flags of those goals that are wanted, and what errors cost."""
    group = parser.add_argument_group(title)
    for flag in filter(wanted, FLAGS.values()):
        group.add_argument(flag.name, type=float, metavar=flag.metavar, help=flag.help, **how)
    group.add_argument(
        "--cost", type=_costs, metavar="fp=A,fn=B", help="what a false positive and a false negative cost"
    )


def add_class_weight(parser: argparse._ActionsContainer) -> None:
    """Add the public weights of labels in the loss."""
    parser.add_argument(
        "--class-weight",
        type=_weights,
        metavar="NEG=A,POS=B",
        help="how much a row counts for by its label, yes=5,no=1 say, in what is minimised; goals count rows alike "
        "(--class-weight=-1=1,1=5 where a dash comes first)",
    )


def _weights(text: str) -> dict[str, float]:
    """Read weights of labels, which may have commas and equals signs in them."""
    if text.strip() == "balanced":
        raise argparse.ArgumentTypeError(f"{validation.BALANCED}, such as no=1,yes=5")
    one = "(.+?)=([^=,]+)"
    whole = re.fullmatch(f"{one}(?:,{one})?", text)
    parts = [part for part in whole.groups() if part] if whole else []
    try:
        found = {label.strip(): float(number) for label, number in zip(parts[::2], parts[1::2], strict=True)}
    except ValueError:
        found = {}
    if 2 * len(found) != len(parts) or not found or not all(0.0 < value < math.inf for value in found.values()):
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive weight for each label, such as no=1,yes=5")
    return found


def class_weight_option(weights: Mapping[str, float] | None) -> str:
    """Return weights as the command line states them, after a space; nothing where none are."""
    if weights is None:
        return ""
    text = ",".join(f"{label}={exact(value)}" for label, value in weights.items())
    return f" --class-weight{'=' if text.startswith('-') else ' '}{shlex.quote(text)}"  # -1=1,1=5 looks like an option


def add_failure_probability(parser: argparse._ActionsContainer, of: str) -> None:
    """Add the chance over the noise that something stated is wrong."""
    parser.add_argument(
        "--failure-probability",
        type=float,
        default=defaults.FAILURE_PROBABILITY,
        metavar="G",
        help=f"{of} (default: %(default)s)",
    )


def add_promise_options(parser: argparse._ActionsContainer, *, lifted: bool) -> None:
    """Add the options of a fit, or of one that is planned; whether its budget may be ``lifted`` by stating inf."""
    add_failure_probability(parser, "of the accuracy promise")
    parser.add_argument(
        "--max-epsilon",
        type=float,
        metavar="E",
        help=f"no outcome may cost more (default: {defaults.MAX_EPSILON:g}{'; inf lifts it' if lifted else ''})",
    )
    parser.add_argument(
        "--delta",
        type=float,
        default=0.0,
        metavar="D",
        help="accept approximate privacy, say 1e-6, with a schema or for regression (default: 0, pure)",
    )
    parser.add_argument("--on-invalid", default="error", choices=("error", "clip"), help="what bad cells do")
    parser.set_defaults(lifted=lifted)


def check_numbers(options: argparse.Namespace) -> None:
    """Complain about numbers out of their range, before anything is imported that would take time."""
    check_goals(options)
    if hasattr(options, "margin"):
        validation.share("--margin", options.margin)
    validation.failure_probability(options.failure_probability)
    if options.max_epsilon != math.inf or not options.lifted:
        validation.budget(options.max_epsilon)
    validation.delta(options.delta)


def check_goals(options: argparse.Namespace) -> None:
    """Complain about goals whose numbers are out of their range, or that do not go together."""
    for _, flag, value in _goals_in(options):
        flag.check(value)
    _check_joined(options)


def _goals_in(options: argparse.Namespace) -> Iterator[tuple[str, Flag, float]]:
    """Yield the goals that were stated, in the order of their flags: name, flag and number."""
    for name, flag in FLAGS.items():
        stated = getattr(options, flag.attribute, None)
        for value in stated if isinstance(stated, list) else [] if stated is None else [stated]:
            yield name, flag, value


def _costs(text: str) -> dict[str, float]:
    """Read what errors cost."""
    parts = [part.partition("=") for part in text.replace(" ", "").split(",")]
    try:
        found = {name.lower(): float(value) for name, _, value in parts}
    except ValueError:
        found = {}
    if set(found) != {"fp", "fn"} or len(parts) != 2 or not all(0.0 < value < math.inf for value in found.values()):
        raise argparse.ArgumentTypeError(f"{text!r} is not two positive costs, such as fp=1,fn=20")
    return {"false_positive": found["fp"], "false_negative": found["fn"]}


def _check_joined(options: argparse.Namespace) -> None:
    """Complain about goals that go with others and are alone, or go with none and are not."""
    stated = {flag.name: flag for _, flag, _ in _goals_in(options)}
    cost = FLAGS["MeanCost"]
    if (cost.name in stated) != (getattr(options, "cost", None) is not None):
        raise ValueError(f"{cost.name} and --cost go together: {cost.name} 0.3 {cost.given}, say")
    for flag in stated.values():
        if flag.beside and not any(other.joins for other in stated.values() if other is not flag):
            raise ValueError(f"{flag.name} alone is met by always giving one label; state {flag.beside} beside it")
    several = any(isinstance(getattr(options, flag.attribute, None), list) for flag in stated.values())
    if len(stated) > 1 and not several and not all(flag.joins for flag in stated.values()):
        raise ValueError(f"{' and '.join(stated)} are no goal together: state one of them")


def stated_goals(options: argparse.Namespace) -> list[goals.Goal]:
    """Return the goals that were stated, in the order of their flags.

    Where one is among them that is no goal alone, all about outcomes of rows are joined, each number with each.
    """
    found: dict[Flag, list[goals.Goal]] = {}
    for name, flag, value in _goals_in(options):
        margin = {"margin": options.margin} if hasattr(options, "margin") else {}
        costs = options.cost if flag.given else {}
        found.setdefault(flag, []).append(getattr(goals, name).stated(value, **margin, **costs))
    joined = [made for flag, made in found.items() if flag.joins] if any(flag.beside for flag in found) else []
    apart = [goal for flag, made in found.items() if not (joined and flag.joins) for goal in made]
    return [reduce(and_, each) for each in product(*joined) if each] + apart


def stated_goal(options: argparse.Namespace) -> goals.Goal | None:
    """Return the goal of a fit: what was stated, all of it at once."""
    made = stated_goals(options)
    return reduce(and_, made) if made else None


def check_tables(path: Path) -> None:
    """Complain about a file, folder, pattern of tables or database that cannot be read."""
    from expost.table.formats import ENDINGS, database_in, ends, require_package_for

    database = database_in(path)
    if database is not None:
        check_input(database[1], "database")
        require_package_for(path)
    elif not path.is_dir() and (path.exists() or not any(mark in str(path) for mark in "*?[")):
        check_input(path)
        if not ends(path, ENDINGS):
            raise ValueError(f"cannot tell the type of {path}; its name must end in {', '.join(ENDINGS)}")
        require_package_for(path)


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


#: What may be named where rows are read in pieces.
DATA = (
    "a .csv, .tsv, .txt, .jsonl, .parquet or .feather file, a folder or a 'pattern*' of them, a workbook (.xlsx), or "
    "sqlite:FILE or duckdb:FILE with --query"
)


def add_file_options(parser: argparse.ArgumentParser, *, decimal: bool = True) -> None:
    """Add the options of CSV files, databases and workbooks."""
    rows = parser.add_argument_group("databases and workbooks")
    rows.add_argument("--query", metavar="SQL", help="which rows of a database: 'select ...'")
    rows.add_argument("--sheet", metavar="NAME", help="of a workbook (default: its first)")
    group = parser.add_argument_group("CSV files")
    group.add_argument(
        "--separator", metavar="CHAR", help="between cells, or the word tab (default: as the first line has it)"
    )
    if decimal:
        group.add_argument("--decimal", default=".", choices=(".", ","), help="before fractions (default: a point)")
    group.add_argument("--encoding", default="utf-8", metavar="NAME", help="(default: %(default)s)")


def add_person_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that name the privacy unit."""
    group = parser.add_argument_group("several rows of one person (with a schema, which may say so too)")
    group.add_argument("--person", metavar="COL", help="whose a row is: the guarantee is then about persons")
    group.add_argument("--rows-per-person", type=int, metavar="K", help="how many rows of each person count")


def stated_schema(options: argparse.Namespace) -> Schema:
    """Return the schema in the file that was named, with the persons that were stated beside it."""
    from expost.table.schema import Schema

    schema = Schema.from_toml(options.schema)
    try:
        return schema.with_person(options.person, options.rows_per_person)
    except ValueError as error:
        said = str(error).replace("rows_per_person", "--rows-per-person").replace("without person", "without --person")
        raise ValueError(said) from None


def file_options(options: argparse.Namespace) -> dict[str, Any]:
    """Return them as arguments of the functions that read files."""
    separator = "\t" if options.separator in ("tab", "\\t") else options.separator
    names = ("decimal", "encoding", "query", "sheet")
    return {name: getattr(options, name) for name in names if hasattr(options, name)} | {"separator": separator}


#: Bytes from which on a file without a schema is read in pieces; smaller ones are read whole.
LARGE = 64 << 20
_PACKED = 20  # tables shrink to a twentieth at the least, and what shrinks further is hardly one


def add_engine(parser: argparse.ArgumentParser, *, searches: bool = True) -> None:
    """Add the options; a command that searches makes as many passes as it takes."""
    group = parser.add_argument_group("large tables")
    group.add_argument(
        "--engine",
        default="local",
        choices=("local", "dask"),
        help="who makes passes over the rows: threads here, or a Dask cluster; same result (default: %(default)s)",
    )
    group.add_argument("--scheduler", metavar="ADDRESS", help="of the Dask cluster, such as tcp://10.0.0.1:8786")
    group.add_argument(
        "--memory",
        type=float,
        metavar="MB",
        help="keep rows in memory that take up at most so many megabytes, at 4 bytes a cell (default: 128)",
    )
    where = group.add_mutually_exclusive_group()
    where.add_argument(
        "--scratch",
        type=Path,
        metavar="FOLDER",
        help="where rows that are too many for memory are kept between passes: encrypted, in a file without a name "
        "whose key is gone with the process (default: where temporary files go, if that is a disk with room)",
    )
    where.add_argument(
        "--no-scratch",
        dest="scratch",
        action="store_false",
        default=None,
        help="write rows nowhere; read the files again for every pass, which takes several times as long",
    )
    group.add_argument(
        "--progress", action="store_true", help="say on stderr how long passes take, also where it is no terminal"
    )
    if searches:
        group.add_argument(
            "--constant-passes",
            type=int,
            metavar="N",
            help="make N passes over the rows, however few a search needs, so that whoever counts them learns nothing; "
            "should it need more, 2N, or 3N (default: as many as it takes)",
        )


def settled_passes(options: argparse.Namespace) -> AbstractContextManager[None]:
    """Return what lets every search of a command make as many passes as were stated, if any were."""
    if getattr(options, "constant_passes", None) is None:
        return nullcontext()
    from expost.passes.engine import constant_passes

    return constant_passes(options.constant_passes)


def stated_engine(options: argparse.Namespace) -> Any:
    """Return the engine that was stated."""
    if options.engine == "local":
        if options.scheduler is not None:
            raise ValueError("--scheduler goes with --engine dask")
        if options.memory is None and options.scratch is None:
            return None
        from expost.passes.engine import LocalEngine

        return LocalEngine(memory=options.memory, scratch=options.scratch)
    for name, stated in (("memory", options.memory), ("scratch", options.scratch or None)):
        if stated is not None:
            raise ValueError(f"--{name} goes with --engine local: workers read their parts of the files anew")
    from expost.passes.dask import DaskEngine

    return DaskEngine(options.scheduler)


def table_on_disk(options: argparse.Namespace) -> TableOnDisk | None:
    """Return a table without a schema that is to be read in pieces; None if it is read whole."""
    from expost.table.formats import CSV, PARQUET, ends

    engine = stated_engine(options)
    path = options.data
    usual = (options.separator, options.decimal, options.encoding) == (None, ".", "utf-8")
    usual = usual and (options.query, options.sheet) == (None, None) and ends(path, CSV + PARQUET)
    packed = _PACKED if path.suffix == ".gz" else 1
    if engine is None and usual and path.is_file() and path.stat().st_size * packed < LARGE:
        return None
    if usual and not path.exists() and not any(mark in str(path) for mark in "*?["):
        return None
    import numpy as np

    from expost.passes.kept import kept
    from expost.table.files import open_disk
    from expost.table.streamed import TableOnDisk

    stated = file_options(options)
    stated.update(separator=stated["separator"] or ("," if ends(path, CSV) or path.is_dir() else None), strip=False)
    disk = open_disk(path, **stated)
    disk = kept(disk, disk.files[0].names, engine)
    table = TableOnDisk(disk, options.target, columns=options.columns, engine=engine)
    if table.y.dtype.kind == "O" and stated_target_type(options) == "number":
        table.y.dtype = np.dtype(np.float64)  # a CSV file says nothing; the classes that were stated do
    return table


def add_ledger_options(parser: argparse.ArgumentParser) -> None:
    """Add what names a ledger and a data set in it, for a fit."""
    group = parser.add_argument_group("budget of the data set (expost ledger create states it)")
    group.add_argument("--ledger", type=Path, metavar="FILE", help="the ledger that it is charged to")
    group.add_argument("--dataset", metavar="NAME", help="the data set in it that the file belongs to")
    group.add_argument(
        "--lower-max-epsilon", action="store_true", help="lower --max-epsilon to what is left of the budget"
    )


def named_ledger(options: argparse.Namespace, *, lower: bool = False) -> Ledger | None:
    """Return the ledger that was named, once it is known to be there, or None."""
    if options.ledger is None:
        if options.dataset is not None or lower:
            flag = "--dataset" if options.dataset is not None else "--lower-max-epsilon"
            raise ValueError(f"{flag} goes with --ledger; name its file")
        return None
    from expost.account.ledger import Ledger

    if options.dataset is None:
        raise ValueError("--ledger goes with --dataset: which data set of the ledger is this?")
    ledger = Ledger(options.ledger, options.dataset, when_short="lower" if lower else "refuse")
    _ = ledger.budget  # complains about a file or a data set that is not there
    return ledger


def stated_ledger(options: argparse.Namespace) -> Ledger | None:
    """Return the ledger that a fit is charged to; nothing has been read or spent."""
    ledger = named_ledger(options, lower=options.lower_max_epsilon)
    if ledger is not None and options.seed is not None:
        raise ValueError(
            "seeded noise protects nobody, and a ledger books no simulation; leave out --seed, or --ledger"
        )
    return ledger
