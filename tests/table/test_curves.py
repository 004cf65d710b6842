"""Curves: hats and steps in whole numbers, coarser views of them, and what a row can move."""

from __future__ import annotations

from datetime import UTC, date, datetime, tzinfo
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from expost.exceptions import InvalidRows
from expost.table import Categorical, Dated, Encoding, Numeric, Rows, Schema
from expost.table.kinds import kind_from_dict
from expost.table.shape import Geometry, block_geometry
from expost.table.views import View, seen_at, views_of, with_views

COLUMNS: dict[str, Any] = {
    "age": {"bounds": [17, 90]},
    "gain": {"bounds": [0, 1e5], "transform": "log1p"},
    "marked": {"bounds": [0, 1], "missing": "indicator"},
    "straight": {"bounds": [0, 1], "curve": False},
    "hours": {"bounds": [1, 99], "steps": [20, 35, 40, 41]},
    "knots": {"bounds": [0, 10], "knots": [2, 3], "missing": "middle"},
    "born": {"bounds": ["1950-01-01", "2020-12-31"]},
    "grade": {"categories": list("ABCDEFGHIJ"), "ordered": True, "other": True},
    "sex": {"categories": ["F", "M"]},
}
SCHEMA = Schema.from_dict({"target": "y", "target_bounds": [0, 1], "curves": "auto", "columns": COLUMNS})
ENCODING = Encoding(SCHEMA)
CELLS: dict[str, list[Any]] = {
    "numbers": [17, 90, 41, 40, 0, 1, 0.5, 9.99, 1e300, -1e300, np.inf, -np.inf, np.nan, None, "", "x", 7298, 3.3],
    "dates": ["1950-01-01", "2020-12-31", "1999-02-03T04:05:06", "0001-01-01", None, "x", 3, "", "NaT"],
    "labels": [*"ABCDEFGHIJ", "F", "M", "other", None, 7],
}


def anything(n: int, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    kinds = {"born": "dates", "grade": "labels", "sex": "labels"}
    pick = {name: CELLS[kinds.get(name, "numbers")] for name in COLUMNS}
    table = {name: [cells[i] for i in rng.integers(len(cells), size=n)] for name, cells in pick.items()}
    return {**table, "y": rng.random(n).tolist()}


def moved_most(rows: np.ndarray, geometry: Geometry, unit: float) -> float:
    """Return how far one row replaced by another moves the log density of noise made for ε = 1, at most.

    Slopes a, a′ in [−1, 1]: Σ_j w_j‖a·x_j − a′·x′_j‖ is convex in them, so it is largest at ends.
    """
    worst, weights = 0.0, geometry.weights(1.0, 1.0)
    first, second = rows[: len(rows) // 2] / unit, rows[len(rows) // 2 :] / unit
    for sign in (-1.0, 1.0):
        place, total = 0, np.zeros(len(first))
        for block, weight in zip(geometry.blocks, weights, strict=True):
            part = np.abs(first - sign * second)[:, place : place + block.size]
            total += weight * (part.max(axis=1) if block.norm == "box" else part.sum(axis=1))
            place += block.size
        worst = max(worst, float(total.max()))
    return worst


def views() -> list[View | None]:
    return [None, *views_of(ENCODING)]


@pytest.mark.parametrize("view", views(), ids=lambda view: "rows" if view is None else f"{view.intervals} intervals")
def test_no_row_moves_a_gradient_further_than_was_charged(view):
    """Rows of whatever there may be, in every view: blocks within c in whole numbers, and noise that hides a row."""
    rows = ENCODING.encode(anything(4000, 0), on_invalid="clip")
    shown, shape = (ENCODING, rows.x) if view is None else (view, view.seen(rows.x))
    Rows(shape, rows.y, **shown.declares)  # which checks every block
    geometry = block_geometry(shown)
    most = moved_most(shape.astype(float), geometry, 2.0**20)
    assert 0.9 < most <= 1.0  # nothing is charged for nothing, either
    radius = 1.0 if view is None else view.radius
    assert np.linalg.norm(shape / 2.0**20, axis=1).max() <= radius


def test_imputed_hats_and_a_mark_would_not_be_hidden(monkeypatch):
    """The broken variant: a missing number has the hats of the middle and a mark, ℓ₁ norm 2."""
    write = Numeric.write

    def imputed(self, read, out, unit):
        found = write(self, read, out, unit)
        if self.shape is not None and self.marked:
            self.shape.write(np.where(np.isnan(read), self.middle, read), out[:, : self.shape.width], unit)
            out[:, -1] = np.where(np.isnan(read), unit, 0)
        return found

    encoding = Encoding(Schema("y", {"a": {"bounds": [0, 1], "curve": True}}, target_bounds=(0, 1)))
    table = {"a": [None, 0.25, None, 0.75], "y": [0, 1, 0, 1]}
    assert moved_most(encoding.encode(table).x.astype(float), block_geometry(encoding), 2.0**20) <= 1.0
    monkeypatch.setattr(Numeric, "write", imputed)
    with pytest.raises(ValueError, match="norm above 1"):
        encoding.encode(table)
    broken = encoding.encoded(encoding.open(table))[0]
    assert moved_most(broken.astype(float), block_geometry(encoding), 2.0**20) > 1.2


def test_hats_add_up_and_interpolate():
    kind = Numeric((0, 1000), transform="sqrt", knots=[0, 10, 100, 1000])
    values = np.concatenate([np.random.default_rng(0).uniform(-5, 1100, 500), [0, 10, 100, 1000, np.nan]])
    out = np.full((len(values), 5), -1, dtype=np.int32)
    kind.write(values, out, 9973)
    assert (out.sum(axis=1) == 9973).all()
    assert (out >= 0).all()
    assert ((out > 0).sum(axis=1) <= 2).all()
    assert out[-5:].argmax(axis=1).tolist() == [0, 1, 2, 3, 4]
    back = (out[:-1, :4] / 9973) @ np.sqrt([0, 10, 100, 1000])
    np.testing.assert_allclose(back, np.sqrt(np.clip(values[:-1], 0, 1000)), atol=0.01)


def test_steps_begin_where_they_are_stated():
    kind = Numeric((1, 99), steps=[1, 20, 35, 40, 41])
    assert kind.names("h") == ("h[1, 20)", "h[20, 35)", "h[35, 40)", "h[40, 41)", "h[41, 99]", "h=(missing)")
    out = np.zeros((7, 6), dtype=np.int32)
    kind.write(np.array([1, 19.9, 20, 40, 41, 200, np.nan]), out, 1)
    assert out.argmax(axis=1).tolist() == [0, 0, 1, 3, 4, 4, 5]
    assert (out.sum(axis=1) == 1).all()


def test_models_of_views_are_models_of_rows():
    """Lifted, a model says of a row what it says of what is seen of it; straight lines and wide curves stay so."""
    rows = ENCODING.encode(anything(500, 1), on_invalid="clip")
    ladder = views_of(ENCODING)
    assert [view.intervals for view in ladder] == [1, 4, 8]
    rng = np.random.default_rng(2)
    for view in ladder:
        theta = rng.normal(size=view.columns)
        np.testing.assert_allclose(rows.x @ view.lifted(theta), view.seen(rows.x) @ theta, atol=4 * view.columns)
        np.testing.assert_allclose(view.lifted(view.nearest(view.lifted(theta))), view.lifted(theta), atol=1e-9)
    numbers = Encoding(Schema("y", {"a": {"bounds": [0, 5]}}, target_bounds=(0, 1), curves="auto"))
    line, wide, fine = views_of(numbers)
    theta = np.array([0.3, -0.7])
    for finer in (wide, fine):
        np.testing.assert_allclose(finer.lifted(finer.nearest(line.lifted(theta))), line.lifted(theta), atol=1e-9)
    straight = Encoding(Schema("y", {"a": {"bounds": [0, 5]}}, target_bounds=(0, 1)))
    table = {"a": [0.0, 1.0, 4.9, None], "y": [0, 0, 0, 0]}
    assert np.abs(line.seen(numbers.encode(table).x) - straight.encode(table).x).max() <= 20  # of a million


def test_views_that_would_make_rows_longer_are_refused():
    pieces = views_of(ENCODING)[1].pieces
    with pytest.raises(ValueError, match="must not make rows longer"):
        View(4, tuple((first, 2 * made, boxed) for first, made, boxed in pieces), ENCODING)
    with pytest.raises(ValueError, match="one block of the rows"):
        View(4, ((0, np.eye(1), True), (1, np.eye(5), False)), ENCODING)


def test_finer_views_come_as_noise_falls_and_later_where_they_have_more():
    geometry = with_views(ENCODING, block_geometry)
    shapes = [seen_at(geometry, level, lambda shape: shape.noise) for level in (1.0, 100.0, 1e3, 1e6)]
    assert [shape.columns for shape in shapes] == sorted(shape.columns for shape in shapes)
    assert shapes[0] is geometry.coarsest
    assert shapes[-1] is geometry
    assert seen_at(geometry, 100.0, lambda shape: shape.noise, 100.0) is geometry.coarsest


def test_many_numbers_are_seen_coarsely():
    def made(many: int) -> Encoding:
        columns = {f"c{j}": {"bounds": [0, 1]} for j in range(many)}
        return Encoding(Schema("y", columns, target_bounds=(0, 1), curves="auto"))

    assert len(made(10).names) == 1 + 10 * 18
    assert len(made(60).names) == 1 + 60 * 10
    assert made(500).blocks == ((501, "box"),)


def test_what_is_stated_comes_back():
    assert Schema.from_dict(SCHEMA.to_dict()) == SCHEMA
    text = SCHEMA.to_toml()
    assert 'curves = "auto"' in text
    assert 'born = { bounds = ["1950-01-01", "2020-12-31"] }' in text
    assert "steps = [20, 35, 40, 41]" in text
    assert kind_from_dict({"bounds": [date(1950, 1, 1), date(2020, 12, 31)]}) == Dated(("1950-01-01", "2020-12-31"))
    assert SCHEMA.fingerprint() != Schema.from_dict({**SCHEMA.to_dict(), "curves": None}).fingerprint()
    assert not Schema.from_dict({"target": "y", "target_bounds": [0, 1], "columns": COLUMNS}).kinds["age"].bends


def test_ordered_categories_start_as_ranks():
    encoding = Encoding(Schema("y", {"g": Categorical(list("ABCDE"), ordered=True)}, target_bounds=(0, 1)))
    rows = encoding.encode({"g": [*"ABCDE", None], "y": [0] * 6})
    line = views_of(encoding)[0]
    ranks = line.seen(rows.x)[:, 1] * encoding.scale / 2**20
    assert ranks.round(3).tolist() == [-1.0, -0.5, 0.0, 0.5, 1.0, 0.0]
    assert np.array_equal(rows.x[:, 1:] > 0, np.eye(6))


class Trap(tzinfo):
    """A time zone whose methods raise: reading a date must not ask it."""

    def utcoffset(self, _):
        raise RuntimeError("asked")

    tzname = dst = utcoffset


class Odd(datetime):
    def toordinal(self):
        raise RuntimeError("asked")


def test_dates_however_they_come():
    encoding = Encoding(Schema("y", {"born": Dated(("1950-01-01", "2020-12-31"))}, target_bounds=(0, 1)))
    whole = ["1960-02-29", "1999-12-31", "2030-01-01", None]
    stamps = pd.to_datetime(pd.Series(whole))
    columns = {
        "text": whole,
        "bytes": [None if cell is None else cell.encode() for cell in whole],
        "dates": [None if cell is None else date.fromisoformat(cell) for cell in whole],
        "times": [None if cell is None else datetime.fromisoformat(cell).replace(tzinfo=Trap()) for cell in whole],
        "odd": [None if cell is None else Odd.fromisoformat(cell) for cell in whole],
        "pandas": stamps,
        "pandas zone": stamps.dt.tz_localize("UTC"),
        "objects": stamps.astype(object),
        "numpy": np.array(whole, dtype="datetime64[D]"),
        "cells": list(np.array(whole, dtype="datetime64[ns]")),
        "arrow": pa.array(stamps).cast(pa.timestamp("ms", "UTC")),
        "arrow days": pa.array([None if cell is None else date.fromisoformat(cell) for cell in whole]),
        "polars": pl.Series(whole).str.to_date(),
        "dictionary": pa.array(whole).dictionary_encode(),
    }
    found = {name: encoding.encode({"born": cells, "y": [0] * 4}).x[:, 1].tolist() for name, cells in columns.items()}
    assert found["text"][-1] == 0
    assert found["text"][2] == encoding.unit
    assert all(cells == found["text"] for cells in found.values()), found
    with pytest.raises(ValueError, match="must hold real numbers"):  # its declared type is public
        Encoding(Schema("y", {"born": Numeric((0, 1))}, target_bounds=(0, 1))).encode({"born": stamps, "y": [0] * 4})


def test_no_date_raises_or_moves_another():
    encoding = Encoding(Schema("y", {"born": Dated(("1950-01-01", "2020-12-31"), knots=4)}, target_bounds=(0, 1)))
    good = ["1970-01-01", "2001-07-08"]
    hostile = [datetime.max.replace(tzinfo=UTC), "9999-99-99", "0" * 10_000, 10**30, np.nan, np.datetime64("NaT"), [],
               np.datetime64(2**62, "Y"), object(), True, "２０２０-01-01"]  # fmt: skip
    expected = encoding.encode({"born": good, "y": [0, 0]}).x
    for cell in hostile:
        rows = encoding.encode({"born": [*good, cell], "y": [0, 0, 0]}, on_invalid="clip").x
        np.testing.assert_array_equal(rows[:2], expected)
    years = np.array([2**60, 0, -(2**60)]).astype("datetime64[Y]")
    assert encoding.encode({"born": years, "y": [0, 0, 0]}).x[:, 1:].argmax(axis=1).tolist() == [3, 1, 0]


def test_what_is_no_date_is_said_to_the_curator():
    encoding = Encoding(Schema("y", {"born": Dated(("1950-01-01", "2020-12-31"))}, target_bounds=(0, 1)))
    with pytest.raises(InvalidRows, match=r"not dates in column\(s\) born \(1\).*Write dates as"):
        encoding.encode({"born": ["1999-01-01", "31.12.1999"], "y": [0, 0]})
    with pytest.raises(InvalidRows, match="almost no readable date"):
        encoding.encode({"born": ["31.12.1999"] * 500, "y": [0] * 500})
