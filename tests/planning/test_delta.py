"""Plans at a δ: every way is priced, prices fall as rows grow, and a fit of a made-up table pays what was planned."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

from expost import R2, AccuracyFirstModel, ErrorRate, ExcessRisk, plan
from expost.cli import main
from expost.estimators.inputs import as_schema
from expost.table.encoding import Encoding
from tests.estimators.model_helpers import AMOUNT, LABELS, table

DELTA = 1e-6


def test_every_way_is_priced_and_more_rows_cost_less():
    small, large = (plan(LABELS, ErrorRate(0.3), rows=n, delta=DELTA, worlds=4) for n in (4_000, 40_000))
    ways = {"gradient descent", "objective", "covariance", "objective, pure noise"}
    assert {price.perturbation for price in small.goals[0].methods} == ways
    for one, other in zip(small.goals[0].methods, large.goals[0].methods, strict=True):
        assert one.worst_case == other.worst_case == 2.0
        if one.perturbation != "covariance":  # ε·n hardly depends on n
            assert 5 < one.typical / other.typical < 20, one.perturbation
    assert "ε at δ = 1e-06" in str(small)
    assert json.loads(small.to_json())["delta"] == DELTA
    assert small.savings == ()


WIDE = {"target": "y", "classes": [0, 1], "columns": {f"c{i}": {"bounds": [0, 1]} for i in range(60)}}


@pytest.mark.parametrize(
    ("schema", "name", "stated"),
    [(LABELS, "gradient descent", "--perturbation descent"), (WIDE, "gradient descent", "--perturbation descent")],
)
def test_what_a_fit_takes_is_priced_and_marked(schema, name, stated):
    prices = plan(schema, ErrorRate(0.3), rows=3000, delta=DELTA, worlds=2)
    assert [price.perturbation for price in prices.goals[0].methods if price.taken] == [name]
    assert "objective, pure noise" in {price.perturbation for price in prices.goals[0].methods}
    assert [line.startswith(stated) for line in str(prices).splitlines() if "what fit takes" in line] == [True]
    encoding = Encoding(as_schema(schema))
    request = AccuracyFirstModel(schema, ErrorRate(0.3), delta=DELTA).request_for(3000, encoding.schema, encoding)
    assert request.mechanism.name == name.partition(",")[0]


@pytest.mark.parametrize("perturbation", [None, pytest.param("covariance", marks=pytest.mark.slow)])
def test_a_fit_pays_what_is_planned(perturbation):
    """The table of the tests is an easy one for this goal: no dearer than the dearest world, nor ten times cheaper."""
    prices = plan(AMOUNT, R2(0.5), rows=3000, delta=DELTA, worlds=12).goals[0]
    release = AccuracyFirstModel(AMOUNT, R2(0.5), delta=DELTA, perturbation=perturbation, random_state=3).fit(table())
    name = release.release_.perturbation
    (price,) = [price for price in prices.methods if price.perturbation == name]
    assert 0.1 * price.low < release.release_.epsilon <= 1.5 * price.epsilons[-1]


@pytest.mark.parametrize(("person", "noun"), [({}, "rows"), ({"person": "who", "rows_per_person": 3}, "persons")])
def test_pure_noise_costs_what_a_plan_without_delta_says(person, noun):
    """In the same made-up tables, for persons too."""
    beside = plan(LABELS, ErrorRate(0.3), rows=4_000, delta=DELTA, worlds=3, **person)
    alone = plan(LABELS, ErrorRate(0.3), rows=4_000, worlds=3, **person).goals[0].cheapest
    (pure,) = [price for price in beside.goals[0].methods if price.perturbation == "objective, pure noise"]
    assert pure.epsilons == alone.epsilons
    assert beside.worlds == 3
    assert {len(price.epsilons) for price in beside.goals[0].methods} == {3}
    assert f"\n{noun} for ε ≤ 1: about" in str(beside)


def test_ways_to_an_excess_risk_go_by_their_own_names():
    """How the noise is stated would not tell them apart, and a fit with a schema takes no such goal."""
    said = str(plan(AMOUNT, ExcessRisk(0.02), rows=20_000, delta=DELTA, worlds=2))
    assert "certified" in said
    assert "--perturbation" not in said


def test_goals_of_arrays():
    price = plan(None, ExcessRisk(0.02), rows=20_000, task="regression", columns=4, delta=DELTA, worlds=2).goals[0]
    assert {way.method for way in price.methods} == {"auto", "certified", "stationarity"}
    assert np.isfinite(price.cheapest.typical)
    with pytest.raises(ValueError, match="state a schema for classes"):
        plan(None, ExcessRisk(0.02), rows=20_000, task="classification", columns=4, delta=DELTA)
    with pytest.raises(ValueError, match="delta must be"):
        plan(LABELS, ErrorRate(0.3), rows=4_000, delta=0.7)


@pytest.mark.parametrize("cheapest", ["objective, pure noise", "gradient descent", "objective"])
def test_the_command_goes_the_way_that_the_table_calls_cheapest(cheapest):
    """Whatever the formula in a fit would take."""
    from expost.cli.plan import _at

    found = plan(LABELS, ErrorRate(0.3), rows=4_000, delta=DELTA, worlds=2)
    ways = sorted(found.goals[0].methods, key=lambda way: way.perturbation != cheapest)
    ways = [dataclasses.replace(way, taken=way.perturbation == "gradient descent") for way in ways]
    at, said = _at(found, dataclasses.replace(found.goals[0], methods=tuple(ways)))
    expected = {
        "objective, pure noise": ("", "leave --delta out"),
        "gradient descent": (" --delta 1e-06", ""),
        "objective": (" --delta 1e-06 --perturbation objective", "follows a formula"),
    }
    assert at == expected[cheapest][0]
    assert expected[cheapest][1] in " ".join(said)
    assert bool(said) == bool(expected[cheapest][1])


def test_command_line(tmp_path, capsys):
    path = tmp_path / "schema.toml"
    path.write_text('target = "late"\nclasses = ["no", "yes"]\n[columns.hours]\nbounds = [0, 80]\n', encoding="utf-8")
    said = ["plan", str(path), "--rows", "20000", "--error-rate", "0.3", "--worlds", "2"]
    assert main([*said, "--delta", "1e-6", "--on-invalid", "clip"]) == 0
    out = capsys.readouterr().out
    assert "every gradient" in out
    assert "second moments" in out
    assert "ε at δ = 1e-06" in out
    assert main([*said, "--delta", "0.7"]) == 2
    assert "delta" in capsys.readouterr().err
