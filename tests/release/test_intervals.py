"""Intervals for the noise in coefficients: they cover what they say, and there are none where nothing can be said."""

from __future__ import annotations

import dataclasses
import math
import warnings

import numpy as np
import pandas as pd
import pytest

from expost import AccuracyFirstModel, ErrorRate, Release, Schema
from expost.mechanisms import mechanism_of
from expost.mechanisms.objective.perturbation import ObjectiveRows, Shot
from expost.release import Promise
from expost.release.card import COVERAGE, noise_interval, units
from expost.release.effects import effects
from expost.release.page import report
from expost.release.scoring import scorer_of
from expost.search import run_search
from expost.search.levels import StagedSearch
from expost.solve.losses import CappedLogisticLoss, LogisticLoss
from expost.solve.perturbed import PerturbedObjective
from expost.solve.problem import Problem
from expost.table.encoding import Encoding
from expost.table.shape import block_geometry
from tests.helpers import at_most_by_chance, classification_rows
from tests.release.model_helpers import AMOUNT, released

RUNS = 300


def runs(noise: str, **options) -> tuple[np.ndarray, list[Release]]:
    """Return the noiseless parameters and many releases of them."""
    rows = classification_rows()
    problem = Problem.of(LogisticLoss(), n=rows.n, p=rows.p, regularization=0.05)
    generator = mechanism_of("output", noise=noise).on(rows, problem)
    made = [run_search(generator, problem, random_state=seed, **options) for seed in range(RUNS)]
    return generator.risk.optimum, made


def misses(truth: np.ndarray, made: list[Release], shrink: float = 1.0) -> int:
    """Count runs in which the first coefficient's interval does not cover."""
    return sum(
        abs(release.hypothesis[0] - truth[0]) > shrink * noise_interval(release).width
        for release in made
        if noise_interval(release).kind == "interval"
    )


@pytest.mark.parametrize("noise", ["laplace", "spherical"])
def test_intervals_cover_and_narrower_ones_do_not(noise):
    """False alarms have probability RARE, as for all statistical tests here."""
    truth, made = runs(noise, method="fixed", max_epsilon=0.5)
    assert all(noise_interval(release).kind == "interval" for release in made)
    allowed = at_most_by_chance(RUNS, 1 - COVERAGE)
    assert misses(truth, made) <= allowed
    assert misses(truth, made, shrink=0.3) > allowed  # what the test would catch


def test_a_rescaled_model_has_no_interval():
    truth, made = runs("laplace", method="fixed", max_epsilon=0.5)
    inside = made[0]
    radius = float(np.linalg.norm(inside.hypothesis))
    for known in ({"radius": radius}, {"radius": None}):
        rescaled = inside.with_details(parameters={**inside.parameters, **known})
        assert noise_interval(rescaled).kind == "none"
    assert truth.shape == (len(inside.hypothesis),)


def test_levels_make_intervals_wider():
    release = Release(
        status="released",
        method="above_threshold",
        perturbation="output",
        epsilon_generation=2.0,
        hypothesis=[0.5, 0.1],
        parameters={"noise_sensitivity": 0.02, "radius": 3.0},
    )
    one, many = noise_interval(release), noise_interval(release.with_details(n_levels=32))
    assert one.width == pytest.approx(0.01 * math.log(10), rel=1e-3)
    assert many.width == pytest.approx(0.01 * math.log(320), rel=1e-3)
    assert "whichever of the 32 levels" in many.statement
    for known in ({"continues": "a1f", "epsilon_increment": 0.1}, {}):
        details = {"parameters": {**release.parameters, **known}} if known else {"unit": "person"}
        assert noise_interval(release.with_details(**details)).kind == "none"
    assert noise_interval(release.with_details(method="doubling")).kind == "none"


def test_a_promised_excess_risk_bounds_the_distance():
    promise = Promise(
        "… against the unconstrained optimum", excess_risk=0.02, regularization=0.01, failure_probability=0.1
    )
    release = Release(status="released", method="auto", epsilon_generation=1.0, hypothesis=[0.5], promise=promise)
    found = noise_interval(release)
    assert (found.kind, found.width) == ("bound", pytest.approx(2.0))
    assert "A bound, not an estimate" in found.statement
    other = dataclasses.replace(promise, statement="… against the best in a ball")
    assert noise_interval(release.with_details(promise=other)).kind == "none"


def test_noise_on_the_gradient_moves_parameters_by_less_than_is_stated():
    """Over made-up rows, beside the model that the same rows and λ give without noise.

    Rows that hardly bend the loss, all but alike, come near the bound; a tenth of it does not do even here.
    """
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.uniform(0, 1, 4000), "b": np.full(4000, 0.5)})
    table["y"] = np.where(table.a > 0.3, "yes", "no")
    schema = Schema.from_dict(
        {"target": "y", "classes": ["no", "yes"], "columns": {name: {"bounds": [0, 1]} for name in "ab"}}
    )
    parts = []
    for seed in range(5):
        release = AccuracyFirstModel(schema, ErrorRate(0.2), random_state=seed).fit(table).release_
        found = noise_interval(release)
        assert found.kind == "bound"
        away = np.linalg.norm(np.array(release.hypothesis) - without_noise(table, schema, release))
        parts.append(away / found.width)
        assert f"{found.width:.3g} in scaled units" in found.statement
        assert "at worst" in report(release)
    assert 0.1 < max(parts) < 1.0


def test_the_noise_of_earlier_levels_is_counted():
    """Columns that never vary have coefficients of exactly 0 without noise, whatever the levels: theirs is noise alone.

    With hundreds of them the last level's reach alone would not cover it.
    """
    rng, many, n = np.random.default_rng(2), 60, 4000
    table = pd.DataFrame({"a": rng.uniform(0.48, 0.52, n)} | {f"b{j}": np.full(n, 0.5) for j in range(many)})
    table["y"] = np.where(table.a > 0.5, "yes", "no")
    columns = {name: {"bounds": [0, 1]} for name in table.columns if name != "y"}
    schema = Schema.from_dict({"target": "y", "classes": ["no", "yes"], "columns": columns})
    later = []
    for seed in range(4):
        release = AccuracyFirstModel(schema, ErrorRate(0.1), max_epsilon=300.0, random_state=seed).fit(table).release_
        noise = np.linalg.norm(np.array(release.hypothesis)[-many:])
        assert noise <= noise_interval(release).width
        later.append(release.level > 0)
    assert any(later)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_no_coefficient_scatters_further_than_is_stated(delta):
    """Columns that never vary have the noise alone as coefficients: their mean square is a mean of many such variances.

    Gaussian noise attains the bound: a mean of 60 squares exceeds 1.55² of it with probability below RARE. Half of the
    bound would not do there, nor a third for noise that follows boxes.
    """
    rng, many, n = np.random.default_rng(3), 60, 4000
    table = pd.DataFrame({"a": rng.uniform(0, 1, n)} | {f"b{j}": np.full(n, 0.5) for j in range(many)})
    table["y"] = np.where(table.a > 0.3, "yes", "no")
    columns = {name: {"bounds": [0, 1]} for name in table.columns if name != "y"}
    schema = Schema.from_dict({"target": "y", "classes": ["no", "yes"], "columns": columns})
    options = {"max_epsilon": 300.0, "delta": delta, "perturbation": "objective"}
    parts = []
    for seed in range(4):
        release = AccuracyFirstModel(schema, ErrorRate(0.2), random_state=seed, **options).fit(table).release_
        scatter = math.sqrt(np.mean(np.square(np.array(release.hypothesis)[-many:])))
        parts.append(scatter / release.parameters["noise_spread"])
        assert release.parameters["noise_spread"] < release.parameters.get("noise_reach", math.inf) / 4
    assert max(parts) < 1.55
    assert (2 if delta else 3) * max(parts) > 1.55


def drawn_beside_the_band(releases) -> float:
    """Root mean square of what columns are drawn to add at their lower bounds, in units of the band there."""
    parts = [effect.y[0] / effect.band[0] for release in releases for effect in effects(release)[1:]]
    return math.sqrt(np.mean(np.square(parts)))


@pytest.mark.parametrize(("curves", "delta", "asked"), [(None, 0.0, 0.45), (None, 1e-6, 0.45), ("auto", 0.0, 0.2)])
def test_the_band_is_how_far_noise_alone_scatters(curves, delta, asked):
    """Columns of which no row is anywhere but in the middle: what they are drawn to add at their ends is noise alone.

    The root mean square of 15 columns in 8 fits is within 0.25 of 1, four of its standard deviations (boxes share
    how long noise is); with half of the noise it is not. A level that begins anew forgets the noise before it.
    """
    rng, many, n = np.random.default_rng(4), 15, 3000
    table = pd.DataFrame({"a": rng.uniform(0, 1, n)} | {f"b{j}": np.full(n, 0.5) for j in range(many)})
    table["y"] = np.where(np.abs(table.a - 0.5) > 0.25, "yes", "no")
    columns = {name: {"bounds": [0, 1]} for name in table.columns if name != "y"}
    shape = {} if curves is None else {"curves": curves}
    schema = Schema.from_dict({"target": "y", "classes": ["no", "yes"], "columns": columns, **shape})
    options = {"max_epsilon": 300.0, "delta": delta, "perturbation": "objective", "when_short": "keep"}
    releases = []
    for seed in range(8):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = AccuracyFirstModel(schema, ErrorRate(asked), random_state=seed, **options)
            releases.append(model.fit(table).release_)
    assert abs(drawn_beside_the_band(releases) - 1.0) < 0.25

    def halved(levels):
        return [{**level, "deviations": [each / 2 for each in level["deviations"]]} for level in levels]

    assert drawn_beside_the_band([noisy(release, halved) for release in releases]) > 1.5
    assert max(release.level for release in releases) > 0
    wrong = noisy(releases[0], lambda levels: [{**level, "sizes": [1], "deviations": [1.0]} for level in levels])
    with pytest.raises(ValueError, match="noise of other columns"):
        effects(wrong)


@pytest.mark.parametrize("known", [True, False])
def test_a_search_that_goes_on_but_begins_anew_forgets_the_noise_before_it(known):
    """Its first level is centred at zero: what the release before it says of noise, if it does, says nothing of it."""
    age = np.random.default_rng(0).uniform(0, 80, 3000)
    table = {"age": age, "late": np.where(age > 40, "yes", "no")}
    schema = {"target": "late", "classes": ["no", "yes"], "columns": {"age": {"bounds": [0, 80]}}}
    model = AccuracyFirstModel(schema, ErrorRate(0.4), random_state=1, max_epsilon=9).fit(table)
    before = model.release_
    if not known:
        said = {
            name: value for name, value in before.parameters.items() if name not in ("noise_spread", "noise_levels")
        }
        before = before.with_details(parameters=said)
    after = model.refine(table, goal=ErrorRate(0.02), release=before).release_
    assert after.parameters["typical_noise"] < before.parameters["typical_noise"] / 4  # why it begins anew
    [level] = after.parameters["noise_levels"]
    [effect] = effects(after)
    assert math.hypot(*level["deviations"]) <= after.parameters["noise_spread"] * (1 + 1e-9)
    assert max(effect.band) <= max(effect.worst)


def rows_at_a_delta() -> tuple[pd.DataFrame, Schema]:
    rng, n = np.random.default_rng(6), 4000
    table = pd.DataFrame({f"x{j}": rng.uniform(0, 1, n) for j in range(3)})
    table["k"] = rng.choice(list("pqrs"), n, p=[0.5, 0.3, 0.15, 0.05])
    signal = table.x0 + 0.5 * table.x1 + 0.3 * (table.k == "q") + rng.normal(0, 0.3, n)
    table["y"] = np.where(signal > 0.9, "yes", "no")
    columns = {f"x{j}": {"bounds": [0, 1]} for j in range(3)} | {"k": {"categories": list("pqrs")}}
    return table, Schema.from_dict({"target": "y", "classes": ["no", "yes"], "columns": columns})


@pytest.mark.parametrize("way", ["descent", "covariance"])
def test_the_band_at_a_delta_is_how_far_refits_scatter(way):
    """What 24 fits to the same rows add differs by about a band: the root mean square is within 0.35 of 1.

    That is four of its standard deviations (seven numbers are drawn in each fit); with half of the noise it is not.
    """
    table, schema = rows_at_a_delta()
    options = {"max_epsilon": 8.0, "delta": 1e-6, "perturbation": way}
    drawn, bands = [], []
    for seed in range(24):
        release = AccuracyFirstModel(schema, ErrorRate(0.3), random_state=seed, **options).fit(table).release_
        if release.level == 0:  # others have less noise
            shown = [(y, w) for each in effects(release) for y, w in zip(each.y[::25], each.band[::25], strict=True)]
            shown += [(y, w) for y, w in zip(effects(release)[-1].y[1:], effects(release)[-1].band[1:], strict=True)]
            drawn.append([y for y, w in shown if w > 0.0])
            bands.append([w for _, w in shown if w > 0.0])
        assert "noise_spread" not in release.parameters
        assert Release.from_json(release.to_json()) == release
    assert len(drawn) > 20
    away = (np.array(drawn) - np.mean(drawn, axis=0)) * math.sqrt(len(drawn) / (len(drawn) - 1))
    parts = math.sqrt(np.mean(np.square(away / np.array(bands))))
    assert abs(parts - 1.0) < 0.35
    assert 2.0 * parts > 1.35


def test_a_search_that_turned_states_the_noise_of_both_ways(monkeypatch):
    monkeypatch.setattr(StagedSearch, "_stalled", lambda self: self.plan.then is not None and self.stages == 2)
    table, schema = rows_at_a_delta()
    options = {"max_epsilon": 8.0, "delta": 1e-6, "when_short": "keep"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        release = AccuracyFirstModel(schema, ErrorRate(0.05), random_state=0, **options).fit(table).release_
    assert release.perturbation == "objective"
    others = release.parameters["noise_levels"][1:]  # the first is the descent's
    assert others
    bands = [max(effect.band) for effect in effects(release)]
    forgotten = release.with_details(parameters={**release.parameters, "noise_levels": others})
    assert all(low < high for low, high in zip([max(e.band) for e in effects(forgotten)], bands, strict=True))
    assert "typical noise" in report(release)
    assert "What it is at worst, whatever the rows are, is not known" in report(release)


def noisy(release: Release, change) -> Release:
    levels = change([dict(level) for level in release.parameters.get("noise_levels", ())])
    return release.with_details(parameters={**release.parameters, "noise_levels": levels})


def test_noise_is_handed_on_through_views():
    """Three levels that see curves more and more finely: bands are what draws of their noise scatter, within 7 %."""
    table = pd.DataFrame({"a": np.linspace(0, 1, 3000)})
    table["y"] = np.where(table.a > 0.4, "yes", "no")
    columns = {"a": {"bounds": [0, 1]}, "b": {"categories": ["x", "z"]}}
    table["b"] = "x"
    schema = {"target": "y", "classes": ["no", "yes"], "columns": columns, "curves": "auto"}
    release = AccuracyFirstModel(schema, ErrorRate(0.3), random_state=0).fit(table).release_
    scorer = scorer_of(release)
    coarse, fine = (scorer.views[intervals] for intervals in (1, 4))
    widths, deviations = (coarse.columns, fine.columns, len(scorer.theta)), (3.0, 2.0, 1.0)
    seen = [
        {"intervals": intervals, "sizes": [width], "deviations": [deviation]}
        for intervals, width, deviation in zip((1, 4, 0), widths, deviations, strict=True)
    ]
    rng, drawn = np.random.default_rng(5), []
    for _ in range(4000):
        b = [rng.normal(0, deviation, width) for width, deviation in zip(widths, deviations, strict=True)]
        drawn.append(fine.lifted(fine.nearest(coarse.lifted(b[0])) + b[1]) + b[2])
    coefficients = dict(zip(release.parameters["columns"], (np.array(drawn)[:, 1:] * units(scorer)).T, strict=True))
    knots = [name for name in coefficients if name.startswith("a@")]
    found = {effect.column: effect for effect in effects(noisy(release, lambda _: seen))}
    values = np.array([coefficients[name] for name in knots]).T
    curves = np.array([np.interp(found["a"].x, [float(name[2:]) for name in knots], each) for each in values])
    scattered = (curves - curves.mean(axis=1, keepdims=True)).std(axis=0)
    assert scattered == pytest.approx(found["a"].band, rel=0.07)
    assert (coefficients["b=z"] - coefficients["b=x"]).std() == pytest.approx(found["b"].band[1], rel=0.07)
    last = {effect.column: effect for effect in effects(noisy(release, lambda _: seen[2:]))}
    assert max(scattered / last["a"].band) > 1.5
    assert found["b"].band[1] > 1.5 * last["b"].band[1]


def without_noise(table: pd.DataFrame, schema: Schema, release: Release) -> np.ndarray:
    rows = Encoding(schema).encode(table, on_invalid="error")
    loss, lam = CappedLogisticLoss(0.5), release.parameters["regularization"]
    shot = Shot(loss, block_geometry(Encoding(schema)), rows.n, 1.0, lam)
    return PerturbedObjective(ObjectiveRows(rows, loss).passes).minimiser(
        shot.errors, np.zeros(rows.p), np.zeros(rows.p)
    )


def test_where_nothing_can_be_said_it_says_why():
    assert "holds no public number" in noise_interval(released(AMOUNT)).statement
    null = Release(status="released", method="auto", epsilon_test=0.1, hypothesis=[0.0])
    assert "No noise was added" in noise_interval(null).statement
    optimum = Release(status="released", method="auto", epsilon_generation=math.inf, hypothesis=[0.1])
    assert "no noise" in noise_interval(optimum).statement


def test_units_are_those_of_the_coefficients():
    release = released(AMOUNT)
    scorer = scorer_of(release)
    assert units(scorer) * scorer.theta[1:] == pytest.approx(release.parameters["coef"])
