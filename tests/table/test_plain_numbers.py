"""Columns of plain numbers together: what each would be by itself."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from expost.table.encoding import Encoding
from expost.table.parts import PlainNumbers
from expost.table.schema import Schema

BOUNDS = {"a": [0, 1], "b": [-3.3, 7.1], "c": [1e-49, 2e-49], "d": [0, 1e50], "e": [0.1, 0.1 + 2**-55 * 4]}


def test_they_are_what_each_would_be_by_itself(monkeypatch):
    rng = np.random.default_rng(0)
    columns = {name: rng.uniform(low - (high - low), high + (high - low), 3000) for name, (low, high) in BOUNDS.items()}
    columns["a"][:3] = np.nan, np.inf, -np.inf
    columns["b"][5] = -9.0
    table = pa.table({**columns, "f": rng.integers(-5, 50, 3000), "y": rng.choice(["no", "yes"], 3000)})
    described = {name: {"bounds": pair} for name, pair in BOUNDS.items()}
    described["f"] = {"bounds": [0, 40], "missing": "indicator"}
    encoding = Encoding(
        Schema.from_dict({"target": "y", "classes": ["no", "yes"], "missing": [-9], "columns": described})
    )
    together, counts = encoding.encode(table, "clip"), encoding.tallies(table)
    monkeypatch.setattr(Encoding, "_plain_numbers", lambda *_: {})
    apart = encoding.encode(table, "clip")
    assert np.array_equal(together.x, apart.x)
    assert counts == encoding.tallies(table)
    assert counts[0][1].missing == 1


def test_a_forgotten_mark_would_be_noticed():
    column, bounds = (
        np.array([1.0, -9.0]),
        Encoding(Schema.from_dict({"target": "y", "classes": [0, 1], "columns": {"a": {"bounds": [-10, 10]}}}))
        ._parts[0]
        .bounds,
    )
    out = np.zeros((2, 1), dtype=np.int32)
    assert PlainNumbers(bounds, [-9.0]).fill([column], [0], out, 100)[1].tolist() == [True]
    assert PlainNumbers(bounds, []).fill([column], [0], out, 100)[1].tolist() == [False]
