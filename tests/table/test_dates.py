"""A date means the same whatever holds it, and is written so that it reads back as it was."""

from __future__ import annotations

import datetime
import zoneinfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest

from expost import AccuracyFirstModel, ErrorRate, Release
from expost.table.encoding import Encoding
from expost.table.schema import Schema
from tests.release.model_helpers import released

STEPS = {"bounds": ["2020-01-01", "2020-01-05"], "steps": ["2020-01-02", "2020-01-03", "2020-01-04"]}
DAYS = Schema.from_dict({"target": "y", "target_bounds": [-90, 90], "columns": {"when": STEPS}})
LINE = Schema.from_dict({"target": "y", "target_bounds": [-90, 90], "columns": {"when": {"bounds": STEPS["bounds"]}}})
# on every boundary of a day, and a microsecond before it
LOCAL = [
    datetime.datetime(2020, 1, day, tzinfo=None) - datetime.timedelta(microseconds=off)
    for day in range(1, 6)
    for off in (1, 0, -3_600_000_000 * 7)
]


def held(zone: str) -> dict[str, object]:
    """Return the same times in containers of every kind, with that zone declared."""
    at = [time.replace(tzinfo=zoneinfo.ZoneInfo(zone)) for time in LOCAL]
    series = pd.Series(pd.DatetimeIndex(LOCAL).tz_localize(zone))
    arrow = pa.array(at, pa.timestamp("us", zone))
    return {
        "pandas": pd.DataFrame({"when": series}),
        "pandas, in nanoseconds": pd.DataFrame({"when": series.astype(f"datetime64[ns, {zone}]")}),
        "pandas, by category": pd.DataFrame({"when": series.astype("category")}),
        "pandas, held by Arrow": pd.DataFrame({"when": series.astype(pd.ArrowDtype(arrow.type))}),
        "objects": {"when": at},
        "text": {"when": [time.isoformat() for time in at]},
        "Arrow": pa.table({"when": arrow}),
        "Arrow, by number": pa.table({"when": arrow.dictionary_encode()}),
        "Arrow, in chunks": pa.table({"when": pa.chunked_array([arrow[:4], arrow[4:]])}),
        "Polars": pl.DataFrame({"when": at}),
    }


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/New_York", "UTC"])
@pytest.mark.parametrize("schema", [DAYS, LINE], ids=["steps", "line"])
def test_times_with_a_zone_are_what_its_clocks_show(schema, zone, tmp_path):
    release = released(schema)
    expected = release.predict({"when": [time.isoformat() for time in LOCAL]}).tolist()
    assert len(set(expected)) >= 4
    tables = held(zone)
    pa.parquet.write_table(tables["Arrow"], tmp_path / "times.parquet")
    for name, table in {**tables, "Parquet": tmp_path / "times.parquet"}.items():
        assert release.predict(table, on_invalid="clip").tolist() == expected, name


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/New_York", "UTC"])
def test_the_exported_model_reads_them_alike(zone):
    tables, release = held(zone), released(DAYS)
    model = release.to_sklearn()
    expected = release.predict(tables["text"])
    frames = [tables["pandas"], tables["pandas, in nanoseconds"], tables["pandas, held by Arrow"]]
    for frame in [*frames, pd.DataFrame(tables["text"]), pd.DataFrame({"when": LOCAL}), pl.DataFrame({"when": LOCAL})]:
        assert model.predict(frame) == pytest.approx(expected, abs=1e-9)
    text = [
        "2020-01-03T00:00:00Z",
        "2020-01-02T23:30-05:00",
        "2020-01-02 23:59:59.999999+0900",
        "2020-01-03",
        None,
        "NaT",
    ]
    assert model.predict(pd.DataFrame({"when": text})) == pytest.approx(release.predict({"when": text}), abs=1e-9)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_every_unit_of_time_is_read_alike(unit):
    """A whole day begins the next step, not a rounding before it, whatever it was counted in."""
    release, times = released(DAYS), np.array(["2020-01-02", "2020-01-03", "2020-01-04"], dtype=f"datetime64[{unit}]")
    expected = release.predict({"when": ["2020-01-02", "2020-01-03", "2020-01-04"]}).tolist()
    assert release.predict(pd.DataFrame({"when": times})).tolist() == expected
    assert release.predict(pa.table({"when": times})).tolist() == expected
    assert release.to_sklearn().predict(pd.DataFrame({"when": times})).tolist() == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("end", [2**63 - 1, 1 - 2**63])
@pytest.mark.parametrize("unit", ["s", "ns"])
@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/New_York"])
def test_a_cell_at_the_end_of_a_calendar_is_nobodys_error(zone, unit, end):
    """It is moved into the bounds, and changes nothing about another; pandas itself would raise."""
    counts = np.array([end, 1_577_934_000 * {"s": 1, "ns": 10**9}[unit]])
    utc = pa.array(counts).cast(pa.timestamp(unit, zone))
    release = released(DAYS)
    ends = release.predict({"when": ["2020-01-05" if end > 0 else "2020-01-01"]})
    series = pd.Series(counts.view(f"datetime64[{unit}]")).dt.tz_localize("UTC").dt.tz_convert(zone)
    for table in (pa.table({"when": utc}), pd.DataFrame({"when": series})):
        far, near = release.predict(table)
        assert far == pytest.approx(ends[0])
        assert near == pytest.approx(release.predict(table[1:])[0])


def test_a_zone_that_is_nowhere_is_complained_about():
    table = pa.table({"when": pa.array([0], pa.timestamp("s", "Mars/Base"))})
    with pytest.raises(
        ValueError, match="column 'when' holds times of the zone 'Mars/Base', which Arrow does not find"
    ):
        released(DAYS).predict(table)


def described(**kind: object) -> Schema:
    return Schema.from_dict({"target": "y", "classes": ["a", "b"], "columns": {"when": kind}})


@pytest.mark.parametrize("places", ["bounds", "knots", "steps"])
@pytest.mark.parametrize("off", ["00.500", "00.123456", "01", "00.000001"])
def test_a_schema_of_dates_reads_back_as_it_was(places, off, tmp_path):
    moved = [f"2020-01-01T00:00:{off}", "2020-01-01T00:00:02.5"]
    kind = {"bounds": ["2020-01-01", "2020-01-02"], places: moved}
    schema = described(**kind)
    (tmp_path / "s.toml").write_text(schema.to_toml(), encoding="utf-8")
    for again in (Schema.from_dict(schema.to_dict()), Schema.from_toml(tmp_path / "s.toml")):
        assert getattr(again.columns["when"], places) == getattr(schema.columns["when"], places)
        assert again == schema
    whole = described(**{**kind, places: ["2020-01-01T00:00:01", "2020-01-01T00:00:03"]})
    assert schema.fingerprint() != whole.fingerprint()


def test_a_release_predicts_with_the_bounds_that_it_was_fitted_with():
    rng = np.random.default_rng(0)
    place = rng.integers(500, 2500, 20_000)
    table = pd.DataFrame({"when": np.datetime64("2020-01-01", "ms") + place, "y": np.where(place > 1500, "b", "a")})
    schema = described(bounds=["2020-01-01T00:00:00.500", "2020-01-01T00:00:02.500"])
    model = AccuracyFirstModel(schema, ErrorRate(0.1), random_state=0).fit(table)
    release = Release.from_json(model.release_.to_json())
    assert np.mean(release.predict(table) != table["y"]) <= model.release_.shown


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ({"bounds": ["2020-01-01", "2020-01-01T00:00:00.000004"], "knots": 9}, "too close to each other"),
        ({"bounds": ["1969-01-01", 1 / 7]}, "must be dates"),
        ({"bounds": ["2020-01-01", 1e9]}, "must be dates"),
        ({"bounds": ["2020-01-01", "9999-12-31T23:59:59.999999"]}, "of the years 1 to 9999"),  # no number of its own
    ],
)
def test_dates_that_cannot_be_written_are_complained_about(kind, said):
    with pytest.raises(ValueError, match=said):
        described(**kind)


@pytest.mark.parametrize("bounds", [["2020-01-01", "2020-01-01T00:00:04"], ["9999-12-31", "9999-12-31T23:59:59.9"]])
def test_knots_have_names_that_tell_them_apart(bounds):
    names = Encoding(described(bounds=bounds, knots=9)).names
    assert len(set(names)) == len(names) == 11
    assert f"when@{bounds[0]}" in names
