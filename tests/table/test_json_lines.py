"""Lines of JSON, each read by itself: whatever stands in one, nothing is said, and no other row changes."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from expost import Schema
from expost.exceptions import InvalidRows
from expost.table.encoding import Encoding
from expost.table.files import open_disk
from expost.table.json_lines import JsonLines
from expost.table.kinds import Boolean, Categorical, Dated, Numeric
from expost.table.streamed import EncodedSource, PersonSource
from tests.helpers import cut

from .hostile import SECRET, shows, silence

COLUMNS = {
    "age": Numeric((0, 100)),
    "job": Categorical(["a", "b", 3], other=True),
    "vip": Boolean(),
    "born": Dated(("1950-01-01", "2020-12-31")),
}
SCHEMA = Schema("y", COLUMNS, classes=(0, "yes"), missing=("", "?", -999))
GOOD = [
    {"age": 31.5, "job": "a", "vip": True, "born": "1970-01-01", "y": 0},
    {"age": "47", "job": 3, "vip": "no", "born": None, "y": "yes"},
    {"y": "yes", "age": -999, "extra": [1, {"deep": None}]},
]
CELLS = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.text(max_size=6),
        st.sampled_from([10**400, -(10**300), "\ud800", SECRET, "9" * 5000, "nan", -0.0, 2**63, "\x00", "yes"]),
    ),
    lambda cells: st.one_of(st.lists(cells, max_size=3), st.dictionaries(st.text(max_size=3), cells, max_size=3)),
    max_leaves=5,
)
ROWS = st.dictionaries(st.sampled_from([*COLUMNS, "y", "who", " age"]), CELLS).map(json.dumps).map(str.encode)
BROKEN = [
    b"", b" ", b"{", b"[]", b"null", b"31", b'"text"', b'{"age": 1', b"\xff\xfe", b'{"age": \xff}', b"{" * 100_000,
    b"[" * 100_000, b'{"age": ' + b"9" * 5000 + b"}", b'{"age": NaN, "y": -Infinity}', b'{"age": 1e999}',
    b'{"age": 1} {"age": 2}', b'{"age": "' + b"x" * (1 << 22) + b'"}', b'{"\\ud800": 1}', b"\r", b'{"age": 1}\r',
    b'{"job": "\\ud83d\\ude00", "y": "\\udc00"}',
]  # fmt: skip


def encoded(path, schema=SCHEMA, kind=EncodedSource):
    source = kind(open_disk(path), Encoding(schema))
    batches = [batch.repeated() for part in source.parts() for batch in source.read(part)]
    return np.concatenate([batch.x for batch in batches]), np.concatenate([batch.y for batch in batches])


def lines(rows):
    return [json.dumps(row).encode() for row in rows]


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(one=st.one_of(ROWS, st.sampled_from(BROKEN), st.binary(max_size=30)), place=st.integers(0, 3))
def test_a_row_replaced_by_anything_leaves_the_others_alone(tmp_path, one, place):
    rows = lines(GOOD)
    alone = encoded(write(tmp_path, rows))
    with silence():
        x, y = encoded(write(tmp_path, [*rows[:place], one.replace(b"\n", b" "), *rows[place:]]))
    assert len(x) == 4
    kept = np.delete(np.arange(4), place)
    np.testing.assert_array_equal(x[kept], alone[0])
    np.testing.assert_array_equal(y[kept], alone[1])


def write(folder, rows, name="t.jsonl"):
    path = folder / name
    data = b"\n".join(rows) + b"\n"
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


@pytest.mark.parametrize("line", BROKEN, ids=range(len(BROKEN)))
def test_every_cut_gives_the_same_cells(tmp_path, line):
    path = write(tmp_path, [line, *lines(GOOD), line])
    expected = JsonLines(path).whole(["age", "job", "y"])
    packed = JsonLines(write(tmp_path, [line, *lines(GOOD), line], "t.jsonl.gz"))
    for size in (7, 50, 10_000) if len(line) < 10_000 else (10_000_000,):
        for file in (cut(JsonLines(path), size), packed):
            read = [c for part in file.parts() for c in file.read(part, ["age", "job", "y"], frozenset(), 10)]
            for name in ("age", "job", "y"):
                cells = [cell for columns in read for cell in columns[name].cells()]
                assert repr(cells) == repr(expected[name].cells())
            assert file.count() == 5


def test_what_cells_are(tmp_path):
    whole = JsonLines(write(tmp_path, [*lines(GOOD), *BROKEN[12:14]])).whole(["age", "job"])
    assert whole["age"].cells()[:4] == [31.5, "47", -999, float("inf")]
    assert whole["job"].cells()[:3] == ["a", 3, None]
    x, _ = encoded(write(tmp_path, [b'{"age": 50, "job": "\\ud800"}', b'{"age": "50", "job": "z"}']))
    np.testing.assert_array_equal(x[0], x[1])


def test_nested_values_are_errors_that_quote_nothing(tmp_path):
    rows = [{"age": 31, "job": "a", "vip": True, "born": None, "y": 0}] * 150
    rows += [{"age": 47, "job": "b", "vip": False, "born": "1999-01-01", "y": "yes"}] * 150
    encoding = Encoding(SCHEMA)
    with pytest.raises(InvalidRows, match=r"cells that are not numbers in column\(s\) age \(1\)") as caught:
        encoding.encode(write(tmp_path, lines([*rows, {"age": [SECRET], "y": 0}])))
    assert SECRET not in shows(caught.value)
    with pytest.raises(InvalidRows, match=r"labels that are neither class in the target y \(1\)"):
        encoding.encode(write(tmp_path, [*lines(rows), b"no object"]))


def test_persons_by_cells_of_any_type(tmp_path):
    schema = Schema("y", COLUMNS, classes=(0, "yes"), person="who", rows_per_person=2)
    rows = [GOOD[0] | {"who": who} for who in (7, "7", 7.0, [7], {"id": 7}, None, True)]
    x, _ = encoded(write(tmp_path, lines(rows)), schema, PersonSource)
    # 7 in three ways is one person; what is no single cell is one together; None and true are one each
    assert len(x) == 2 * 4
