"""Throw mutated files and arguments at the command line, seeded and bounded: ``make fuzz``.

``python tools/fuzz.py`` runs 20,000 cases: releases, evaluations, ledgers, schemas, project files, sealed paths, tables
of every kind and arguments, in the shares of :data:`SHARES`. Every case is a function of ``--seed``, its kind and its
number, and is run again by ``--only KIND --case NUMBER``. Commands are called in this process, in worker processes that
are limited in memory and watched. What is asserted of each call:

- nothing is raised but ``SystemExit``, and neither a traceback nor a warning of Python's is printed;
- the exit status is one that the command's help lists;
- a mistake (2) is said on standard error, in a line, and leaves no new file; no file is ever left half-written;
- no control characters are printed (``predict`` writes labels to pipes exactly: what it prints is left out);
- it ends within :data:`SECONDS`, and within :data:`MEMORY`.

Not called: what runs experiments for minutes (``demo``, ``reproduce``, ``compare``), or serves until interrupted.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import faulthandler
import gzip
import importlib
import io
import json
import math
import os
import random
import re
import resource
import shutil
import signal
import sqlite3
import sys
import tempfile
import time
import traceback
import warnings
import webbrowser
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

SHARES = {
    "releases": 8,
    "evaluations": 3,
    "ledgers": 3,
    "schemas": 3,
    "projects": 1,
    "sealed": 1,
    "csv": 3,
    "parquet": 1,
    "doors": 3,
    "arguments": 2,
}
CASES, SECONDS, MEMORY = 20_000, 30, 3 << 30
_CHUNK = 50
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_TEXTS = [
    "",
    " ",
    "x",
    "\x1b[2J\x1b[1;1H",
    "a\nb",
    "\u202egnp.exe",
    "\x00",
    "\x9b31m",
    "=cmd()",
    "é" * 300,
    "../../x",
    "'",
]
_NUMBERS = [
    0,
    -1,
    1,
    2,
    0.5,
    -0.0,
    1e-300,
    5e-324,
    1e300,
    1.7976931348623157e308,
    2**31,
    2**63,
    10**30,
    -(10**30),
    1e19,
]
_WORDS = ["nan", "inf", "-inf", "1e999", "0x10", "1_000", "true", "auto", "-", "--", "-1", "1e-9", "0.3", "3", "1e6"]

Command = list[str]


class TimeOut(BaseException):
    """A case took too long."""


# --- material to mutate ----------------------------------------------------------------------------------------------


def material(folder: Path) -> None:
    """Make releases of every kind, an evaluation, a ledger, a schema and tables, by the commands themselves."""
    numbers = ["--task", "regression", "--target", "y", "--bounds", "0", "1", "--target-bounds", "0", "3"]
    classes = ["--task", "classification", "--target", "c", "--bounds", "0", "1", "--classes", "no", "yes"]
    columns = ["--columns", "a", "b", "--seed", "1", "--max-epsilon", "inf"]
    rng = random.Random(0)
    rows = [(rng.random(), rng.random()) for _ in range(4000)]
    lines = [f"{a:.4f},{b:.4f},{a + 2 * b:.4f},{'yes' if a + b > 1 else 'no'}" for a, b in rows]
    (folder / "numbers.csv").write_text("\n".join(["a,b,y,c", *lines]) + "\n")
    (folder / "few.csv").write_text("\n".join(["a,b,y,c", *lines[:30]]) + "\n")
    (folder / "folder").mkdir()
    schema = ["--schema", "survey.toml", "--seed", "1"]
    strict = ["--error-rate", "0.05", "--max-epsilon", "3"]
    kept = ["--keep-path", "kept", "--key", "key", "--later", "0.01", "0.005", "--keep-statistics"]
    for command in (
        ["example", "survey", "--rows", "3000"],
        ["key", "key"],
        ["fit", "survey.csv", *schema, "--log-loss", "0.6", "--max-epsilon", "100", "--output", "labels.json"],
        [
            "fit",
            "survey.csv",
            *schema,
            *strict,
            "--when-short",
            "discard",
            "--output",
            "survey.json",
        ],  # survey-refused.json
        ["fit", "survey.csv", *schema, *strict, "--output", "survey.json"],  # saved under other names
        ["fit", "survey.csv", *schema, "--error-rate", "0.3", "--delta", "1e-6", "--output", "delta.json"],
        ["fit", "numbers.csv", *numbers, *columns, "--excess-risk", "0.02", *kept, "--output", "kept.json"],
        ["fit", "numbers.csv", *numbers, *columns, "--r2", "0.5", "--delta", "1e-6", "--output", "clock.json"],
        ["fit", "numbers.csv", *classes, *columns, "--excess-risk", "0.2", "--output", "logistic.json"],
        ["refine", "kept.json", "--path", "kept", "--key", "key", "--excess-risk", "0.01", "--output", "finer.json"],
        ["evaluate", "labels.json", "survey.csv", "--seed", "1", "--margin", "0.1", "--output", "worth.json"],
        ["ledger", "create", "book.db", "--dataset", "d", "--cap", "1e6"],
        ["ledger", "create", "book.db", "--dataset", "at-delta", "--cap", "1e6", "--delta", "1e-5"],
    ):
        status, out, err, _ = called(command, folder)
        if status not in (0, 3, 5):
            raise RuntimeError(f"{command}: {status} {out} {err}")
    for name in ("labels", "survey-refused", "logistic", "worth"):  # as if the noise had come from the secure source
        raw = json.loads((folder / f"{name}.json").read_text())
        (folder / f"{name}.json").write_text(json.dumps({**raw, "secure": True}))
        if name != "worth":
            called(["ledger", "book", "book.db", f"{name}.json", "--dataset", "d", "--reason", "a test"], folder)
    (folder / "few-survey.csv").write_text("".join((folder / "survey.csv").read_text().splitlines(True)[:120]))
    (folder / "project.toml").write_text("".join(f'{name} = "a text"\n' for name in ("purpose", "curator", "sources")))
    for name, ending in ENDINGS.items():
        if json.loads((folder / f"{name}.json").read_text())["status"] != ending:
            raise RuntimeError(f"{name}.json was to be {ending}")
    doors(folder)


def doors(folder: Path) -> None:
    """Write the table in every other format that is read."""
    import duckdb
    import openpyxl
    import pyarrow.csv
    import pyarrow.feather
    import pyarrow.parquet

    lines = (folder / "few-survey.csv").read_text().splitlines()
    names, rows = lines[0].split(","), [line.split(",") for line in lines[1:]]
    table = pyarrow.csv.read_csv(folder / "few-survey.csv")
    pyarrow.parquet.write_table(table, folder / "survey.parquet")
    pyarrow.feather.write_feather(table, folder / "survey.feather")
    (folder / "survey.tsv").write_text("\n".join(line.replace(",", "\t") for line in lines) + "\n")
    (folder / "survey.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in table.to_pylist()))
    book = openpyxl.Workbook()
    for line in (names, *rows):
        book.active.append(line)
    book.save(folder / "survey.xlsx")
    marks = ", ".join("?" * len(names))
    with contextlib.closing(sqlite3.connect(folder / "survey.db")) as base:
        base.execute(f"CREATE TABLE survey ({', '.join(names)})")
        base.executemany(f"INSERT INTO survey VALUES ({marks})", rows)
        base.commit()
    with duckdb.connect(str(folder / "survey.duckdb")) as other:
        other.execute(f"CREATE TABLE survey AS SELECT * FROM '{folder / 'few-survey.csv'}'")


#: What the search of each release has to end in: one that ends otherwise would be mutated in vain.
ENDINGS = {
    **dict.fromkeys(("labels", "delta", "kept", "clock", "logistic", "finer", "worth"), "released"),
    "survey-short": "short",
    "survey-refused": "refused",
}
RELEASES = ("labels", "survey-short", "survey-refused", "delta", "kept", "clock", "logistic", "finer")
TABLES = dict.fromkeys(("labels", "survey-short", "survey-refused", "delta"), "few-survey.csv")


# --- mutations -------------------------------------------------------------------------------------------------------


def hostile(rng: random.Random) -> Any:
    """Return a value that somebody might put anywhere."""
    deep: Any = "x"
    for _ in range(rng.choice([3, 40, 400])):
        deep = [deep]
    odd = [None, True, False, [], {}, [[]], {"float": "nan"}, {"float": "inf"}, {"float": 1}, deep, "x" * 200_000]
    return rng.choice([rng.choice(_TEXTS), rng.choice(_NUMBERS), rng.choice(odd), rng.choice(_TEXTS + _NUMBERS)])


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every container and key in a tree."""
    for key in list(value) if isinstance(value, dict) else range(len(value)):
        yield value, key
        if isinstance(value[key], dict | list):
            yield from places(value[key])


def mutated_tree(rng: random.Random, raw: Any) -> Any:
    """Change a tree in one place; the top is taken more often than its many numbers."""
    found = list(places(raw))
    home, key = rng.choice(found if rng.random() < 0.5 else [place for place in found if isinstance(place[1], str)])
    how = rng.randrange(7)
    if how <= 2:
        home[key] = hostile(rng)
    elif how == 3:
        del home[key]
    elif how == 4 and isinstance(home, dict):
        home[rng.choice(_TEXTS)] = home.pop(key) if rng.random() < 0.5 else home[key]
    elif how == 5:
        other, place = rng.choice(found)
        home[key], other[place] = other[place], home[key]
    elif isinstance(home[key], list) and home[key]:
        home[key] = home[key][:-1] if rng.random() < 0.5 else [*home[key], rng.choice(home[key])]
    elif isinstance(home[key], int | float):
        home[key] = rng.choice([str(home[key]), -home[key], home[key] * 2, int(home[key]), [home[key]]])
    else:
        home[key] = hostile(rng)
    return raw


def consistent(raw: Any) -> Any:
    """Let the sums agree again, so that what comes after them is reached."""
    with contextlib.suppress(Exception):
        from expost.account.composition import add_losses

        parts = [raw.get(f"epsilon_{name}", 0.0) for name in ("generation", "test", "probe", "conversion")]
        raw["epsilon"] = add_losses(*parts)
        raw["risk_factor"] = math.exp(raw["epsilon"])
        raw["epsilon_worst_case"] = {"float": "inf"}
    return raw


def mutated_bytes(rng: random.Random, content: bytes) -> bytes:
    """Flip, cut, repeat or insert bytes."""
    for _ in range(rng.choice([1, 1, 2, 8])):
        at, more = rng.randrange(len(content) + 1), rng.randrange(1, 40)
        content = rng.choice(
            [
                content[:at] + bytes([rng.randrange(256)]) + content[at + 1 :],
                content[:at] + content[at + more :],
                content[:at],
                content[:at] + content[at : at + more] * 3 + content[at + more :],
                content[:at] + rng.choice(_TEXTS).encode() + content[at:],
                content[:at]
                + rng.choice([b"\xff", b"\x00", b'"', b"\r", b"\xef\xbb\xbf", b";", b"[" * 2000])
                + content[at:],
            ]
        )
        content = content or b"\n"
    return content


def mutated_lines(rng: random.Random, text: str) -> str:
    """Change words and lines of a text."""
    lines = text.splitlines()
    for _ in range(rng.choice([1, 1, 2, 4])):
        at = rng.randrange(len(lines))
        words = list(re.finditer(r"-?[\d.]+|\"[^\"]*\"|\w+", lines[at]))
        value = rng.choice([json.dumps(rng.choice(_TEXTS)), str(rng.choice(_NUMBERS)), rng.choice(_WORDS)])
        if words and rng.random() < 0.7:
            word = rng.choice(words)
            lines[at] = lines[at][: word.start()] + value + lines[at][word.end() :]
        else:
            lines[at : at + 1] = rng.choice(
                [[], [lines[at]] * 2, [lines[at], rng.choice(lines)], [value], [lines[at] + value]]
            )
        lines = lines or [""]
    return "\n".join(lines) + "\n"


# --- cases: files are written, commands returned ---------------------------------------------------------------------


def release_case(rng: random.Random, folder: Path) -> list[Command]:
    """Return commands on a mutated release."""
    name = rng.choice(RELEASES)
    text = (folder / f"{name}.json").read_text(encoding="utf-8")
    if rng.random() < 0.1:
        content = mutated_bytes(rng, text.encode())
    else:
        raw = json.loads(text)
        for _ in range(rng.choice([1, 1, 1, 2, 3])):
            raw = mutated_tree(rng, raw)
        content = json.dumps(consistent(raw) if rng.random() < 0.8 else raw).encode()
    (folder / "case.json").write_bytes(content)
    table, out = TABLES.get(name, "few.csv"), ["--output", "out.file"]
    opened = ["--path", "kept", "--key", "key", "--excess-risk", rng.choice(["0.01", "0.005", "0.007"])]
    booked = ["--dataset", rng.choice(["d", "at-delta"]), "--reason", "because"]
    choices: list[list[Command]] = [
        [["predict", "case.json", table]],
        [["predict", "case.json", table, "--probabilities", "--keep", "a", "--on-invalid", "clip", *out]],
        [["predict", "case.json", table, "--on-invalid", "clip", *out]],
        [["report", "case.json", *out]],
        [["export", "case.json", "--output", "out.joblib"]],
        [["refit", "case.json", "--regularization", "0.05", *out]],
        [["refit", "case.json", "--columns", "a", "--json"]],
        [["refine", "case.json", *opened, *rng.choice([["--json"], out, []])]],
        [
            ["ledger", "book", "book.db", "case.json", *booked],
            ["ledger", "show", "book.db"],
            ["ledger", "history", "book.db"],
        ],
        [["ledger", "book", "book.db", "case.json", *booked], ["ledger", "export", "book.db"]],
        [["ledger", "settle", "book.db", "a", "--release", "case.json", "--dataset", "d", "--reason", "x"]],
        [["report", "case.json", "--ledger", "book.db", "--dataset", "d", *out]],
    ]
    if rng.random() < 0.02:
        return [["explore", "--release", "case.json", "--worlds", "1", "--rows", "500", "--no-open", *out]]
    return rng.choice(choices)


def evaluation_case(rng: random.Random, folder: Path) -> list[Command]:
    """Return commands on a mutated evaluation, or that evaluate a mutated release."""
    name = rng.choice(["worth", "worth", "labels", "delta", "survey-short"])
    raw = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        raw = mutated_tree(rng, raw)
    (folder / "case.json").write_text(json.dumps(consistent(raw) if rng.random() < 0.8 else raw))
    out = ["--output", "out.file"]
    if name == "worth":
        booked = ["ledger", "book", "book.db", "case.json", "--dataset", rng.choice(["d", "at-delta"]), "--reason", "x"]
        return rng.choice(
            [
                [["report", "labels.json", "--evaluation", "case.json", *out]],
                [["report", "case.json", *out]],
                [["evaluate", "case.json", "few-survey.csv", "--seed", "1", *out]],
                [booked, ["ledger", "show", "book.db"], ["ledger", "export", "book.db"]],
            ]
        )
    stated = rng.choice([[], ["--public-rows"], ["--new-rows"], ["--cut-off", "0.3"], ["--bins", "3"]])
    return [["evaluate", "case.json", "few-survey.csv", "--seed", "1", "--max-epsilon", "1e6", *stated, *out]]


def project_case(rng: random.Random, folder: Path) -> list[Command]:
    """Return reports and registry entries with a mutated project file, or texts of one."""
    (folder / "case.toml").write_text(mutated_lines(rng, (folder / "project.toml").read_text()), errors="replace")
    if rng.random() < 0.2:
        (folder / "case.toml").write_bytes(mutated_bytes(rng, (folder / "project.toml").read_bytes()))
    release, stated = f"{rng.choice(RELEASES)}.json", ["--project", "case.toml"]
    if rng.random() < 0.5:
        stated += [rng.choice(["--purpose", "--contact", "--data-set"]), rng.choice(_TEXTS).replace("\x00", "")]
    return [["report", release, *stated, *rng.choice([["--registry"], ["--output", "out.file"]])]]


def sealed_case(rng: random.Random, folder: Path) -> list[Command]:
    """Return refinements along a mutated path, or with a mutated key."""
    which = rng.choice(["kept", "kept", "key"])
    (folder / "case.bytes").write_bytes(mutated_bytes(rng, (folder / which).read_bytes()))
    (folder / "case.bytes").chmod(0o600)  # a key that others may read is refused
    opened = ["--path", "kept", "--key", "case.bytes"] if which == "key" else ["--path", "case.bytes", "--key", "key"]
    return [["refine", "kept.json", *opened, "--excess-risk", rng.choice(["0.01", "0.005"]), "--json"]]


def ledger_case(rng: random.Random, folder: Path) -> list[Command]:
    """Return commands on a mutated ledger: bytes of the file, or cells of its tables."""
    shutil.copy(folder / "book.db", folder / "case.db")
    if rng.random() < 0.5:
        (folder / "case.db").write_bytes(mutated_bytes(rng, (folder / "case.db").read_bytes()))
    else:
        with contextlib.closing(sqlite3.connect(folder / "case.db")) as base:
            tables = [name for (name,) in base.execute("SELECT name FROM sqlite_master WHERE type='table'")]
            table = rng.choice(tables)
            column = rng.choice([row[1] for row in base.execute(f'PRAGMA table_info("{table}")')])
            value = hostile(rng)
            value = json.dumps(value) if isinstance(value, list | dict) else value
            value = str(value) if isinstance(value, int) and abs(value) >= 2**63 else value
            if rng.random() < 0.3:
                found = base.execute(f'SELECT "{column}" FROM "{table}"').fetchall()
                value = (
                    mutated_bytes(rng, str(rng.choice(found)[0]).encode()).decode("utf-8", "replace")
                    if found
                    else value
                )
            with contextlib.suppress(sqlite3.Error):  # triggers refuse some changes
                triggers = [name for (name,) in base.execute("SELECT name FROM sqlite_master WHERE type='trigger'")]
                for name in triggers if rng.random() < 0.8 else []:
                    base.execute(f'DROP TRIGGER "{name}"')
                where = "" if rng.random() < 0.5 else " WHERE rowid = 1"
                base.execute(f'UPDATE "{table}" SET "{column}" = ?{where}', (value,))
                base.commit()
    data = ["--dataset", rng.choice(["d", "d", "at-delta", "none"])]
    fit = ["fit", "few-survey.csv", "--schema", "survey.toml", "--error-rate", "0.45", "--max-epsilon", "1", "--json"]
    return rng.choice(
        [
            [["ledger", "show", "case.db"], ["ledger", "history", "case.db"], ["ledger", "export", "case.db"]],
            [["ledger", "book", "case.db", "labels.json", *data], ["ledger", "show", "case.db"]],
            [["ledger", "settle", "case.db", "a", "--worst-case", "--reason", "x", *data]],
            [["ledger", "create", "case.db", "--dataset", "new", "--cap", "1"]],
            [["report", "labels.json", "--ledger", "case.db", *data, "--output", "out.file"]],
            [[*fit, "--ledger", "case.db", *data], ["ledger", "show", "case.db"]],
        ]
    )


def schema_case(rng: random.Random, folder: Path) -> list[Command]:
    """Return commands on a mutated schema."""
    text = (folder / "survey.toml").read_text(encoding="utf-8")
    if rng.random() < 0.2:
        (folder / "case.toml").write_bytes(mutated_bytes(rng, text.encode()))
    else:
        (folder / "case.toml").write_text(mutated_lines(rng, text), encoding="utf-8", errors="replace")
    schema = ["--schema", "case.toml"]
    goal = rng.choice([["--error-rate", "0.45"], ["--r2", "0.1"], ["--log-loss", "0.69"]])
    choices: list[list[Command]] = [
        [["check", "few-survey.csv", *schema]],
        [["fit", "few-survey.csv", *schema, *goal, "--seed", "1", "--output", "out.file", "--report", "out.html"]],
        [["fit", "few-survey.csv", *schema, *goal, "--on-invalid", "clip", "--json"]],
    ]
    if rng.random() < 0.03:
        return [["plan", "case.toml", "--rows", "500", "--worlds", "1", *goal]]
    return rng.choice(choices)


def table_commands(rng: random.Random, name: str, numbers: bool) -> list[Command]:
    """Return commands on a table."""
    read = rng.choice([[], [], ["--separator", rng.choice([",", ";", "\t", "x"])], ["--encoding", "latin-1"]])
    clip = rng.choice([[], ["--on-invalid", "clip"]])
    if numbers:
        task = ["--task", "regression", "--target", "y", "--columns", "a", "b", "--bounds", "0", "1"]
        fit = ["fit", name, *task, "--target-bounds", "0", "3", "--excess-risk", "0.4", "--seed", "1", "--json"]
        kept = rng.choice([[], ["--keep", "c"]])
        return rng.choice(
            [[[*fit, *clip]], [["predict", "kept.json", name, *read, *clip, *kept]], [["init", name, *read]]]
        )
    schema = ["--schema", "survey.toml"]
    fit = ["fit", name, *schema, "--error-rate", "0.45", "--seed", "1", "--output", "out.file", *read]
    predict = ["predict", "labels.json", name, *read, *clip, *rng.choice([[], ["--output", "out.file"]])]
    return rng.choice(
        [[["check", name, *schema, *read]], [[*fit, *clip]], [predict], [["init", name, "--force", *read]]]
    )


def csv_case(rng: random.Random, folder: Path) -> list[Command]:
    """Return commands on a mutated CSV file, some of them compressed."""
    numbers = rng.random() < 0.4
    content = (folder / ("few.csv" if numbers else "few-survey.csv")).read_bytes()
    if rng.random() < 0.5:
        content = mutated_bytes(rng, content)
    else:
        content = mutated_lines(rng, content.decode()).encode("utf-8", "replace")
    if rng.random() < 0.2:
        content = mutated_bytes(rng, gzip.compress(content)) if rng.random() < 0.5 else gzip.compress(content)
        (folder / "case.csv.gz").write_bytes(content)
        return table_commands(rng, "case.csv.gz", numbers)
    (folder / "case.csv").write_bytes(content)
    return table_commands(rng, "case.csv", numbers)


def parquet_case(rng: random.Random, folder: Path) -> list[Command]:
    """Return commands on a mutated Parquet file, or on one with columns of other types."""
    import pyarrow as pa
    import pyarrow.parquet

    if rng.random() < 0.5:
        (folder / "case.parquet").write_bytes(mutated_bytes(rng, (folder / "survey.parquet").read_bytes()))
        return table_commands(rng, "case.parquet", False)
    table = pa.parquet.read_table(folder / "survey.parquet")
    n, place = table.num_rows, rng.randrange(table.num_columns)
    odd = [
        pa.nulls(n),
        pa.array([[1, 2]] * n),
        pa.array([{"a": 1}] * n),
        pa.array([b"\xff\x1b"] * n),
        pa.array([2**63 - 1] * n),
        pa.array([rng.choice(_TEXTS) for _ in range(n)]),
        pa.array([float("nan"), float("inf"), *[1e308] * (n - 2)]),
        pa.array([0] * n, pa.timestamp("ns")),
        pa.array([0] * n, pa.duration("s")),
        pa.array([rng.choice(["a", None]) for _ in range(n)]).dictionary_encode(),
        pa.array([1] * n, pa.decimal128(38, 10)),
        pa.array([True] * n),
    ]
    name = table.column_names[place] if rng.random() < 0.8 else rng.choice(_TEXTS)
    table = table.set_column(place, name, rng.choice(odd))
    pa.parquet.write_table(table.slice(0, rng.choice([0, 1, n, n])), folder / "case.parquet")
    return table_commands(rng, "case.parquet", False)


_FORMATS = ("survey.tsv", "survey.jsonl", "survey.feather", "survey.xlsx", "survey.db", "survey.duckdb")
_QUERIES = [
    "select * from survey",
    "select * from survey limit 0",
    "select *, * from survey",
    "select income from survey",
    "select null as income, * from survey",
    "select 1e999 as residents, x'ff' as floor_area, * from survey",
    "select cast('NaN' as double) as residents, * from survey",
    "with recursive c(x) as (select 1 union all select x + 1 from c limit 50) select x as income from c",
    "select * from survey; drop table survey",
    "delete from survey returning *",
    "pragma table_info(survey)",
    "select * from none",
    "",
    "--",
    'select 1 as "\x1b[2J"',
    "attach 'x.db' as x",
]


def door_case(rng: random.Random, folder: Path) -> list[Command]:
    """Return commands on a mutated table of another format, some of them compressed, or on a query of a database."""
    name = rng.choice(_FORMATS)
    content, ending = (folder / name).read_bytes(), name.rpartition(".")[2]
    text = ending in ("tsv", "jsonl")
    if text and rng.random() < 0.5:
        content = mutated_lines(rng, content.decode()).encode("utf-8", "replace")
    elif rng.random() < 0.7:
        content = mutated_bytes(rng, content)
    if text and rng.random() < 0.2:
        content, ending = gzip.compress(content), f"{ending}.gz"
    (folder / f"case.{ending}").write_bytes(content)
    if ending not in ("db", "duckdb"):
        return table_commands(rng, f"case.{ending}", False)
    kind = rng.choice(["sqlite", "duckdb"]) if rng.random() < 0.1 else {"db": "sqlite"}.get(ending, ending)
    query = rng.choice(_QUERIES[:1] * 4 + _QUERIES) if rng.random() < 0.8 else mutated_lines(rng, _QUERIES[0])[:-1]
    commands = table_commands(rng, f"{kind}:case.{ending}", False)
    return [[*command, "--query", query.replace("\x00", "")] for command in commands]


_POSITIONAL = {
    "data": ["few-survey.csv", "few.csv", "survey.parquet", "none.csv", "folder", "*.csv", "key"],
    "file": ["out.file", "key", "folder"],
    "schema": ["survey.toml", "none.toml", "few.csv"],
    "release": [f"{name}.json" for name in RELEASES],
    "model": [f"{name}.json" for name in RELEASES],
    "ledger": ["book.db", "new.db", "few.csv", "folder"],
    "entry": ["a", "", "\x1b[2J"],
    "name": ["survey"],
}
#: Options that take long, for ever or a cluster, and whether a run with other values of theirs ends soon.
_SMALL = {"--worlds": ["1", "0", "x"], "--rows": ["500", "1", "0", "-3", "x", "1e400"], "--port": ["99999", "-1"]}
_NEVER = {"--help", "--serve", "--engine", "--scheduler", "--workers", "--threads", "--version"}


def argument_case(rng: random.Random, folder: Path) -> list[Command]:
    """Return a command with options of its own, and values that somebody might pass."""
    from expost.cli.command import build_parser

    name = rng.choice(["fit", "fit", "fit", "plan", "check", "init", "predict", "export", "report", "refine", "refit"])
    name = rng.choice([*[name] * 32, *["ledger"] * 6, *["evaluate"] * 4, "key", "example", "explore"])
    parser: Any = build_parser(name)[1]
    command = [name]
    if name == "ledger":
        home = next(action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
        action = rng.choice(list(home.choices))
        parser, command = home.choices[action], [name, action]
    if name in ("plan", "explore"):
        command += ["--worlds", "1", "--rows", "500", *(["--no-open"] if name == "explore" else [])]
    sound = rng.random() < 0.7  # the rest of it is as it should be
    if name == "fit" and sound:
        numbers = ["few.csv", "--task", "regression", "--target", "y", "--columns", "a", "b", "--seed", "1"]
        stated = ["--bounds", "0", "1", "--target-bounds", "0", "3", "--excess-risk", "0.4"]
        table = ["few-survey.csv", "--schema", "survey.toml", "--error-rate", "0.45", "--seed", "1"]
        command += rng.choice([[*numbers, *stated], table])
    else:
        positional = [action for action in parser._actions if not action.option_strings]
        command += [(_POSITIONAL[one.dest][0] if sound else rng.choice(_POSITIONAL[one.dest])) for one in positional]
        for action in parser._actions:
            if action.required and action.option_strings:
                stated = {"path": "kept", "key": "key", "output": "out.joblib", "dataset": "d", "excess_risk": "0.01"}
                command += [action.option_strings[-1], stated.get(action.dest, "1")]
    options = [one for one in parser._actions if one.option_strings and not set(one.option_strings) & _NEVER]
    for option in rng.sample(options, min(len(options), rng.choice([0, 1, 1, 2, 3]))):
        flag = option.option_strings[0]
        many = option.nargs if isinstance(option.nargs, int) else {"+": rng.randrange(1, 3)}.get(option.nargs, 1)
        command += [flag, *(argument(rng, option) for _ in range(many))]
    return [command]


def argument(rng: random.Random, option: argparse.Action) -> str:
    """Return a value for an option."""
    flag = option.option_strings[0]
    if flag in _SMALL:
        return rng.choice(_SMALL[flag])
    if option.choices and rng.random() < 0.8:
        return str(rng.choice(list(option.choices)))
    if option.type is Path:
        return rng.choice(["out.file", "folder", "none/x", "few.csv", "book.db", "kept", "key", rng.choice(_TEXTS[:8])])
    if option.type in (int, float) or rng.random() < 0.4:
        return rng.choice([*_WORDS, *map(str, _NUMBERS)])
    return rng.choice([*_TEXTS, *_WORDS, "a", "y", "d", "income"]).replace("\x00", "")


KINDS: dict[str, Callable[[random.Random, Path], list[Command]]] = {
    "releases": release_case,
    "evaluations": evaluation_case,
    "projects": project_case,
    "sealed": sealed_case,
    "doors": door_case,
    "ledgers": ledger_case,
    "schemas": schema_case,
    "csv": csv_case,
    "parquet": parquet_case,
    "arguments": argument_case,
}


# --- one call, and what is asserted of it ----------------------------------------------------------------------------


def _too_long(*_: Any) -> None:
    raise TimeOut


def called(command: Command, folder: Path) -> tuple[Any, str, str, str]:
    """Run a command in a folder; returns status, output, errors and what was raised, if anything was."""
    from expost.cli import main

    streams = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2)]
    signal.signal(signal.SIGALRM, _too_long)
    before, here, raised, status = (sys.stdout, sys.stderr), Path.cwd(), "", None
    os.chdir(folder)
    sys.stdout, sys.stderr = streams
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            signal.alarm(SECONDS)
            status = main(command)
    except SystemExit as stop:
        status = stop.code
    except (Exception, TimeOut) as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        raised = f"{type(error).__name__} at {Path(last.filename).name}:{last.lineno}"
    finally:
        signal.alarm(0)
        sys.stdout, sys.stderr = before
        os.chdir(here)
    said = []
    for stream in streams:
        with contextlib.suppress(ValueError):  # a command closed it
            stream.flush()
        said.append(stream.buffer.getvalue().decode("utf-8", "replace"))  # type: ignore[attr-defined]
    return status, said[0], said[1], raised


def complaints(command: Command, folder: Path) -> list[str]:
    """Run a command and return what was wrong with how it ended."""
    from expost.cli.command import COMMANDS

    there = {path.name for path in folder.iterdir()}
    status, out, err, raised = called(command, folder)
    if raised:
        return [raised]
    found = []
    exits = importlib.import_module(COMMANDS[command[0]][0]).EXITS
    if status not in exits:
        found.append(f"exit status {status} is none of {list(exits)}")
    for name, text in (("output", "" if command[0] == "predict" else out), ("errors", err)):
        if control := _CONTROL.search(text):
            found.append(f"{control[0]!r} in {name}")
    warned = re.search(r"Traceback|Warning: .*|\.py:\d+", err)
    if warned:
        found.append(f"prints {warned[0][:60]!r}")
    new = {path.name for path in folder.iterdir()} - there
    if any(name.startswith(".") for name in new):
        found.append("a temporary file is left")
    new = {name for name in new if not name.endswith(("-wal", "-shm", "-journal"))}
    lines = [line for line in err.splitlines() if not re.search(r"… \(\d+ s\)$", line)]  # signs of life
    if status == 2 and (new or out or not "".join(lines).startswith("expost") or len(lines) != 1):
        found.append(f"a mistake leaves {sorted(new)}, {len(out)} letters of output and {len(lines)} lines")
    for name in new:
        if name.endswith(".json"):
            try:
                json.loads((folder / name).read_text(encoding="utf-8"))
            except ValueError:
                found.append(f"{name} is half-written")
    return found


def run_case(seed: int, kind: str, number: int, folder: Path) -> list[str]:
    """Run a case and return what went wrong; the folder is left as it was."""
    rng = random.Random(f"{seed}/{kind}/{number}")
    base = {path.name for path in folder.iterdir()}
    book = (folder / "book.db").read_bytes()
    try:
        commands = KINDS[kind](rng, folder)
        found = []
        for command in commands:
            found += [f"{' '.join(command[:2])}: {text}" for text in complaints(command, folder)]
        return found
    finally:
        for path in list(folder.iterdir()):
            if path.name not in base:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        if (folder / "book.db").read_bytes() != book:
            (folder / "book.db").write_bytes(book)


# --- the campaign ----------------------------------------------------------------------------------------------------


def run_chunk(seed: int, kind: str, numbers: Sequence[int], base: str, limited: bool = True) -> tuple[list[Any], int]:
    """Run some cases in a copy of the material; returns what was found and the memory that it took."""
    if limited:
        resource.setrlimit(resource.RLIMIT_AS, (2 * MEMORY, resource.RLIM_INFINITY))
    webbrowser.open = lambda *_, **__: True  # type: ignore[assignment]
    with tempfile.TemporaryDirectory() as copy:
        folder = Path(copy, "x")
        shutil.copytree(base, folder)
        found = []
        for number in numbers:
            if limited:
                faulthandler.dump_traceback_later(4 * SECONDS, exit=True)  # what no signal stops
            found += [(kind, number, text) for text in run_case(seed, kind, number, folder)]
        faulthandler.cancel_dump_traceback_later()
    return found, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def campaign(cases: int, seed: int, kinds: Sequence[str], processes: int) -> int:
    """Run the cases, print a line for each kind and each finding; returns how many there were."""
    started, findings, most = time.monotonic(), [], 0
    total = sum(SHARES[kind] for kind in kinds)
    many = {kind: max(1, cases * SHARES[kind] // total) for kind in kinds}
    with tempfile.TemporaryDirectory() as base:
        material(Path(base))
        for kind in kinds:
            since, own = time.monotonic(), []
            with ProcessPoolExecutor(processes) as pool:
                chunks = [range(start, min(start + _CHUNK, many[kind])) for start in range(0, many[kind], _CHUNK)]
                waiting = {pool.submit(run_chunk, seed, kind, list(chunk), base): chunk for chunk in chunks}
                for done in as_completed(waiting):
                    try:
                        found, memory = done.result()
                    except BrokenProcessPool:
                        found, memory = [(kind, waiting[done][0], f"a process was lost in {waiting[done]}")], 0
                    own += found
                    most = max(most, memory)
            findings += own
            print(
                f"{kind:<10} {many[kind]:>6} cases, {len(own)} findings, {time.monotonic() - since:.0f} s", flush=True
            )
    if most > MEMORY:
        findings.append(("all", 0, f"{most / 2**30:.1f} GB of memory were taken"))
    for (kind, text), several in collections.Counter((kind, text) for kind, _, text in findings).most_common():
        first = min(number for one, number, said in findings if (one, said) == (kind, text))
        print(f"  {several:>4} × {text}    (--seed {seed} --only {kind} --case {first})")
    took = f"{most / 2**20:.0f} MB, {time.monotonic() - started:.0f} s"
    print(f"{sum(many.values()):,} cases, seed {seed}, {len(findings)} findings, {took}")
    return len(findings)


def again(seed: int, kind: str, number: int) -> None:
    """Run one case here, show what it does, and let what it raises out."""
    with tempfile.TemporaryDirectory() as base:
        folder = Path(base)
        material(folder)
        from expost.cli import main

        os.chdir(folder)
        for command in KINDS[kind](random.Random(f"{seed}/{kind}/{number}"), folder):
            print("expost", *map(repr, command), flush=True)
            try:
                print("status", main(command))
            except SystemExit as stop:
                print("status", stop.code)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=CASES)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=list(KINDS))
    parser.add_argument("--case", type=int, help="run one case of --only here")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    stated = parser.parse_args()
    if stated.case is not None:
        again(stated.seed, stated.only, stated.case)
    else:
        sys.exit(
            campaign(stated.cases, stated.seed, [stated.only] if stated.only else list(KINDS), stated.processes) > 0
        )
