"""Columns of numbers: bounded, scaled and counted as cell by cell would be, however they come."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa

from expost.table.bounds import Bounds
from expost.table.encoding import Encoding
from expost.table.schema import Schema

BOUNDS = {"a": [0, 1], "b": [-3.3, 7.1], "c": [1e-49, 2e-49], "d": [0, 1e50], "e": [0.1, 0.1 + 2**-55 * 4]}


def by_itself(cell, low, high, unit):
    """Return one number in fixed point, in Python's floats."""
    if math.isnan(cell):
        return 0
    bounds = Bounds((low,), (high,))
    scaled = (min(max(cell, low), high) - float(bounds.center[0])) / float(bounds.half_range[0])
    return int(min(max(scaled, -1.0), 1.0) * unit)


def test_they_are_what_each_cell_would_be_by_itself():
    rng = np.random.default_rng(0)
    columns = {name: rng.uniform(low - (high - low), high + (high - low), 3000) for name, (low, high) in BOUNDS.items()}
    columns["a"][:3] = np.nan, np.inf, -np.inf
    columns["b"][5] = -9.0
    columns["f"] = rng.integers(-5, 50, 3000)
    table = {**columns, "y": rng.choice(["no", "yes"], 3000)}
    described = {name: {"bounds": pair} for name, pair in BOUNDS.items()}
    described["f"] = {"bounds": [0, 40], "missing": "indicator"}
    encoding = Encoding(
        Schema.from_dict({"target": "y", "classes": ["no", "yes"], "missing": [-9], "columns": described})
    )
    rows, *counts = encoding.encode_and_count(pa.table(table), "clip")
    for j, (name, (low, high)) in enumerate({**BOUNDS, "f": (0, 40)}.items(), start=1):
        cells = [math.nan if cell == -9 else float(cell) for cell in columns[name]]
        assert rows.x[:, j].tolist() == [by_itself(cell, float(low), float(high), encoding.unit) for cell in cells]
        tally = next(tally for tally in counts[0] if tally.name == name)
        assert tally.missing == sum(map(math.isnan, cells))
        assert tally.outside == sum(cell < low or cell > high for cell in cells)
    assert counts[0][1].missing == 1
    loose = {name: list(cells) for name, cells in table.items()}  # cells of a list, each with a type of its own
    same, *found = encoding.encode_and_count(loose, "clip")
    assert np.array_equal(rows.x, same.x)
    assert counts == found


def test_a_forgotten_mark_would_be_noticed():
    described = {"target": "y", "classes": [0, 1], "columns": {"a": {"bounds": [-10, 10]}}}
    table = {"a": np.array([1.0, -9.0]), "y": np.array([0, 1])}
    encodings = [Encoding(Schema.from_dict({**described, "missing": marks})) for marks in ([-9], [])]
    assert [encoding.encode_and_count(table, "clip")[1][0].missing for encoding in encodings] == [1, 0]
