"""``expost.plan``: fits pay what was planned, and a plan says what it knows."""

from __future__ import annotations

import dataclasses
import json
import math
import warnings
from itertools import pairwise

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from expost import (
    R2,
    AccuracyFirstLogisticRegression,
    AccuracyFirstModel,
    AccuracyFirstRidge,
    ErrorRate,
    ExcessRisk,
    LogLoss,
    MeanCost,
    MeanSquaredError,
    Precision,
    Recall,
    RelativeExcessRisk,
    Schema,
    plan,
)
from expost.datasets import make_survey
from expost.exceptions import AccuracyNotReached, LargeEpsilonWarning
from expost.planning.savings import ANY
from expost.planning.synthetic import missed_by_constant
from expost.table.encoding import Encoding
from expost.table.kinds import Numeric
from expost.table.rows import ONE
from expost.table.shape import cheapest_geometry

from .helpers import STONES, SURVEY, planned, worlds_of

N = 5000


def paid(goal, table, seed, **options) -> tuple[str, float]:
    model = AccuracyFirstModel(SURVEY, goal, random_state=seed, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LargeEpsilonWarning)
        try:
            release = model.fit(table).release_
        except AccuracyNotReached as refusal:
            release = refusal.release
    return release.status, release.epsilon


def test_fits_pay_what_was_planned():
    """No fit pays more than the worst case, on whatever rows; rows that can meet the goal mostly pay what is likely.

    The survey is not one of the made-up tables. Its seeds are fixed, so there is no false alarm.
    """
    found = []
    for price in planned(N).goals:
        way = price.cheapest
        for seed in range(5):
            status, epsilon = paid(price.goal, make_survey(N, seed=seed), seed, max_epsilon=2.0)
            assert epsilon <= way.worst_case == 2.0
            found.append(status == "released" and way.low <= epsilon <= way.high)
    assert np.mean(found) >= 0.75


def test_hopeless_rows_pay_no_more_than_the_worst_case():
    table = make_survey(N)
    table["satisfied"] = np.random.default_rng(0).permutation(table["satisfied"])
    status, epsilon = paid(ErrorRate(0.2), table, 0, max_epsilon=1.0)
    assert status != "released"
    assert 0.5 < epsilon <= plan(SURVEY, ErrorRate(0.2), rows=N, max_epsilon=1.0, worlds=1).goals[0].cheapest.worst_case


def test_looking_first_is_charged():
    free, looked = (
        plan(SURVEY, ErrorRate(0.25), rows=N, worlds=3, on_invalid=how).goals[0].cheapest for how in ("error", "clip")
    )
    assert looked.low - free.low == pytest.approx(80 / N)
    assert paid(ErrorRate(0.25), make_survey(N), 0, on_invalid="clip")[1] >= 0.9 * looked.low


def test_the_rows_asked_for_are_enough():
    """At the number of rows that a wished ε is said to need, nine in ten worlds pay no more."""
    price = planned(N).goals[1]
    wished = price.cheapest.low  # less than most paid
    rows = price.rows_for(wished)
    assert rows > N
    assert plan(SURVEY, price.goal, rows=rows, worlds=12).goals[0].cheapest.high <= wished


def test_without_a_cap_the_estimators_default_is_the_worst_case():
    assert planned(N, None, 3).goals[0].cheapest.worst_case == AccuracyFirstModel(SURVEY).max_epsilon


def test_what_no_data_set_can_reach_is_said():
    price = plan(SURVEY, ErrorRate(0.2), rows=60, max_epsilon=0.1, worlds=2).goals[0]
    assert "Nothing was spent" in price.unreachable
    assert price.rows_for(0.1) > 10_000
    assert "no;" in str(plan(SURVEY, ErrorRate(0.2), rows=60, max_epsilon=0.1, worlds=2))


def test_a_cap_that_leaves_the_constant_is_warned_about():
    (warning,) = plan(SURVEY, ErrorRate(0.2), rows=200, max_epsilon=0.5, worlds=2).warnings
    assert "little more than its constant" in warning
    assert planned(N).warnings == ()


def test_usual_goals():
    assert [price.goal for price in plan(STONES, rows=N, worlds=2).goals] == [R2(r) for r in (0.3, 0.5, 0.7, 0.8, 0.9)]


def test_a_mean_squared_error_is_in_units_of_the_target():
    loose, strict = plan(STONES, [MeanSquaredError(1e7), MeanSquaredError(1e6)], rows=N, worlds=8).goals
    assert loose.cheapest.typical < strict.cheapest.typical


# --- what costs most -------------------------------------------------------------------------------------------------


def test_leaving_a_column_out_saves_its_noise():
    """Noise is in proportion to the shape of a row, the Jacobian's part of ε to the squared length of rows."""
    (saving,) = [s for s in planned(N).savings if (s.column, s.change) == ("heating", "leave it out")]
    rest = {name: kind for name, kind in SURVEY.columns.items() if name != "heating"}
    shapes = [cheapest_geometry(e, e.scale) for e in map(Encoding, (SURVEY, dataclasses.replace(SURVEY, columns=rest)))]
    by_noise, by_jacobian = (1 - part[1] / part[0] for part in ([s.noise * s.scale for s in shapes], [8, 7]))
    assert by_jacobian < saving.saves < by_noise
    assert saving.saves > by_noise - 0.06  # most of ε is noise
    assert not saving.estimated


def test_wide_bounds_cost():
    savings = {(s.column, s.change): s for s in plan(STONES, R2(0.6), rows=N, worlds=10).savings}
    halved, logarithm = savings[ANY, "halve the bounds"], savings["weight", 'transform = "log1p"']
    assert 0.01 < halved.saves < logarithm.saves < 0.99
    assert halved.estimated
    assert ("cut", "list half of them, other = true") in savings
    assert ("width", 'transform = "log1p"') not in savings


def test_bounds_that_are_dates_are_shown_as_dates():
    columns = {"admitted": {"bounds": ["2024-01-01", "2025-12-31"]}, "weight": {"bounds": [0, 1200]}}
    schema = Schema.from_dict({"columns": columns, "target": "price", "target_bounds": [0, 1]})
    shown = {s.column: s.now for s in plan(schema, R2(0.3), rows=N, worlds=4).savings}
    assert shown["admitted"] == "bounds 2024-01-01 to 2025-12-31"
    assert shown["weight"] == "bounds 0 to 1,200"


def test_an_estimated_saving_is_seen_in_fits():
    """Bounds sixteen times too wide for the only column: fits of the same rows pay more, as estimated."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, 4000)
    table = {"x": x, "y": np.where(x + rng.logistic(0, 0.15, 4000) > 0, "b", "a")}
    means = []
    for bound in (1, 16):
        schema = Schema("y", {"x": Numeric((-bound, bound))}, classes=("a", "b"))
        models = [AccuracyFirstModel(schema, ErrorRate(0.2), random_state=seed) for seed in range(10)]
        means.append(np.mean([model.fit(table).release_.epsilon for model in models]))
    assert means[0] < 0.7 * means[1]


# --- arrays ----------------------------------------------------------------------------------------------------------


def test_a_certified_price_is_paid_but_for_what_the_null_model_is_asked_for():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, size=(3000, 4))
    y = np.where(x[:, 0] > 0, "b", "a")
    model = AccuracyFirstLogisticRegression(excess_risk=0.02, bounds=1.0, classes=("a", "b"), random_state=0).fit(x, y)
    (price,) = plan(goals=ExcessRisk(0.02), rows=3000, task="classification", columns=4, worlds=3).goals
    release, worst = model.release_, price.cheapest.worst_case
    assert 0.5 * worst < release.epsilon <= worst
    assert release.epsilon_generation < worst - release.epsilon_test * (1 - 1e-9)
    assert [way.method for way in price.methods][-1] == "theory"


def test_ridge_is_within_its_range():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, size=(20_000, 4))
    y = np.clip(0.4 * x[:, 0] + rng.normal(0, 0.2, 20_000), -1, 1)
    way = (
        plan(goals=ExcessRisk(0.01), rows=20_000, task="regression", columns=4, regularization=0.003, worlds=3)
        .goals[0]
        .cheapest
    )
    assert (way.method, way.known) == ("auto", False)
    stated = {"regularization": 0.003, "fit_intercept": False, "random_state": 0}
    model = AccuracyFirstRidge(excess_risk=0.01, bounds=1.0, target_bound=1.0, **stated)
    epsilon = model.fit(x, y).release_.epsilon
    assert epsilon <= way.worst_case
    assert way.low / 2 <= epsilon <= way.high * 2


def test_arrays_scale_with_their_rows():
    """Prices at 100,000 rows come from fewer; direct runs at fewer rows agree."""
    few, many = (
        plan(goals=ExcessRisk(0.05), rows=n, task="regression", columns=3, worlds=3).goals[0].methods
        for n in (4000, 100_000)
    )
    paid_few = {(way.method, way.perturbation): way for way in few}
    for way in many:
        assert way.typical * 100_000 == pytest.approx(paid_few[way.method, way.perturbation].typical * 4000, rel=0.3)
        assert way.high <= way.worst_case * 1.001


def test_methods_that_a_cap_rules_out_are_said():
    (price,) = plan(goals=ExcessRisk(0.005), rows=4000, task="regression", columns=5, max_epsilon=0.3, worlds=2).goals
    assert not all(way.affordable for way in price.methods)
    assert all(way.worst_case <= 0.3 for way in price.methods if way.affordable)


def test_a_large_penalty_is_warned_about():
    strong, usual = (
        plan(goals=ExcessRisk(0.05), rows=4000, task="classification", columns=10, worlds=2, **stated).warnings
        for stated in ({"regularization": 0.01}, {})
    )
    assert "towards its constant" in strong[0]
    assert usual == ()


def test_tables_and_arrays_in_one_plan():
    prices = plan(SURVEY, [ErrorRate(0.25), RelativeExcessRisk(0.5)], rows=500, worlds=1).goals
    assert [len(price.methods) > 1 for price in prices] == [False, True]


# --- the object ------------------------------------------------------------------------------------------------------


def test_json_has_everything_and_no_nan():
    said = json.loads(planned(N).to_json())
    assert said["data_read"] is False
    assert Schema.from_dict(said["schema"]) == SURVEY
    for goal in said["goals"]:
        (way,) = goal["methods"]
        assert way["low"] <= way["typical"] <= way["high"]
        assert len(way["epsilons"]) == 12
    hopeless = plan(SURVEY, ErrorRate(0.001), rows=3, worlds=2)
    assert "NaN" not in hopeless.to_json()
    assert "Infinity" not in hopeless.to_json()


def test_a_plan_is_a_function_of_what_is_stated():
    first, again = (plan(SURVEY, ErrorRate(0.2), rows=900, worlds=3) for _ in range(2))
    assert first == again
    assert plan(SURVEY, ErrorRate(0.2), rows=900, worlds=3, random_state=1) != first
    with pytest.raises(dataclasses.FrozenInstanceError):
        first.rows = 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rows": 0}, "rows must be a whole number"),
        ({"rows": 2.5}, "rows must be"),
        ({"rows": 9, "goals": [0.2]}, "goals must be ErrorRate"),
        ({"rows": 9, "goals": R2(0.5)}, "R2 is for regression"),
        ({"rows": 9, "task": "regression"}, "a schema says both"),
        ({"rows": 9, "schema": None}, "state a schema, or task and columns"),
        ({"rows": 9, "schema": None, "task": "regression", "columns": 3}, "state a goal"),
        ({"rows": 9, "schema": None, "task": "regression", "columns": 3, "goals": ErrorRate(0.5)}, "classification"),
        ({"rows": 9, "failure_probability": 2}, "failure_probability"),
        ({"rows": 9, "max_epsilon": -1}, "max_epsilon"),
        ({"rows": 9, "on_invalid": "guess"}, "on_invalid"),
        ({"rows": 9, "schema": STONES, "goals": MeanSquaredError(1e9)}, "whatever the rows"),
        ({"rows": 9, "schema": "no.toml"}, "expost init"),
        ({"rows": 9, "person": "id"}, "rows_per_person"),
        ({"rows": 9, "person": "id", "rows_per_person": 2, "goals": ExcessRisk(0.1)}, "single rows"),
        ({"rows": 9, "schema": None, "task": "regression", "columns": 3, "person": "id"}, "go with a schema"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        plan(**{"schema": SURVEY, "worlds": 1, **arguments})


def test_log_losses_have_prices():
    price = plan(SURVEY, LogLoss(0.55), rows=N, worlds=4).goals[0].cheapest
    assert 0 < price.low <= price.high < math.inf


# --- persons ---------------------------------------------------------------------------------------------------------


def test_persons_cost_what_as_many_rows_do():
    """Five rows of each of a thousand persons: what is protected is a person, and the price is that of persons."""
    rows, persons = (
        plan(SURVEY, ErrorRate(0.3), rows=1000, worlds=12, max_epsilon=2.0, **stated)
        for stated in ({}, {"person": "household", "rows_per_person": 5})
    )
    assert persons.noun == "persons"
    assert "1,000 persons" in str(persons)
    assert persons.goals[0].cheapest.typical == pytest.approx(rows.goals[0].cheapest.typical, rel=0.25)
    assert persons.goals[0].cheapest.worst_case == 2.0


def test_fits_of_persons_pay_what_was_planned():
    way = plan(SURVEY, ErrorRate(0.3), rows=1000, worlds=6, max_epsilon=4.0, person="id", rows_per_person=3).goals[0]
    table = {**make_survey(3000), "id": np.repeat(np.arange(1000), 3)}
    model = AccuracyFirstModel(SURVEY, ErrorRate(0.3), person="id", rows_per_person=3, max_epsilon=4.0, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LargeEpsilonWarning)
        epsilon = model.fit(table).release_.epsilon
    assert 0 < epsilon <= min(way.cheapest.high, way.cheapest.worst_case)


# --- what is expected ------------------------------------------------------------------------------------------------


def test_prices_rise_with_strictness_whether_or_not_something_is_expected():
    goals = [ErrorRate(rate) for rate in (0.3, 0.26, 0.23)]
    for expect in (None, 0.2):
        prices = plan(SURVEY, goals, rows=5000, worlds=8, expect=expect).goals
        for looser, stricter in pairwise([price.cheapest.epsilons for price in prices]):
            assert all(less <= more for less, more in zip(looser, stricter, strict=True))


def test_an_expectation_narrows_what_is_likely_and_says_which_table_it_is_about():
    goals = [ErrorRate(0.3), ErrorRate(0.26)]
    open_ended, told = (plan(SURVEY, goals, rows=5000, worlds=16, expect=expect) for expect in (None, 0.2))
    for free, bound in zip(open_ended.goals, told.goals, strict=True):
        assert bound.cheapest.high / bound.cheapest.low < 0.5 * free.cheapest.high / free.cheapest.low
        assert free.believed is not None
        assert bound.believed is None
        assert free.believed[0] < free.believed[1] < free.goal.number
    assert "has error rate 0.2, as you expect" in " ".join(str(told).split())
    assert told.to_dict()["expect"] == 0.2


def test_tables_are_such_that_the_best_model_reaches_what_is_expected():
    """Whatever the goal; a goal for which more would be needed is out of reach."""
    for schema, goals, expect in (
        (SURVEY, (ErrorRate(0.3), ErrorRate(0.25)), ErrorRate(0.2)),
        (STONES, (R2(0.3), R2(0.5)), R2(0.6)),
    ):
        tables = dataclasses.replace(worlds_of(Encoding(schema).schema.task, N), expected=(expect, goals[0]))
        for k in range(3):
            (rows, counts), again = (tables.rows(k, goal) for goal in goals)
            assert np.array_equal(rows.y, again[0].y)
            x, y = rows.x / ONE, rows.y / ONE
            if schema is SURVEY:
                best = LogisticRegression(C=1e4, max_iter=500).fit(x, y > 0, counts)
                assert 1 - best.score(x, y > 0, counts) == pytest.approx(expect.number, abs=0.03)
            else:
                best = LinearRegression().fit(x, y, counts)
                assert best.score(x, y, counts) == pytest.approx(expect.number, abs=0.06)
    beyond = plan(SURVEY, [ErrorRate(0.3), ErrorRate(0.15)], rows=5000, worlds=3, expect=0.2).goals
    assert math.isfinite(beyond[0].cheapest.high)
    assert math.isinf(beyond[1].cheapest.low)


def test_where_little_is_asked_for_a_label_is_rare():
    """A log loss of 0.145 of balanced labels would take a model that is hardly ever in doubt."""
    schema = {"target": "died", "classes": ["no", "yes"], "columns": {name: {"bounds": [0, 1]} for name in "abcd"}}
    by_itself = plan(schema, LogLoss(0.145), rows=36_000, worlds=10)
    assert by_itself.rarer is not None
    assert 0.033 < by_itself.rarer[0] < by_itself.rarer[1] < 0.2
    assert plan(schema, ErrorRate(0.25), rows=5000, worlds=10).rarer[1] > 0.4
    told = plan(schema, LogLoss(0.145), rows=36_000, worlds=10, positives=0.04)
    assert told.rarer == pytest.approx((0.04, 0.04), abs=0.006)  # drawn row by row
    assert told.to_dict()["positives"] == 0.04
    assert "4% of the rows are positive, as you believe" in " ".join(str(told).split())


@pytest.mark.parametrize("goal", [MeanCost(0.55, false_positive=1, false_negative=20), ErrorRate(0.1), LogLoss(0.3)])
def test_no_constant_meets_the_goals_of_made_up_tables(goal):
    """Where errors cost different amounts, a constant does where a label is rare, and where it is frequent."""
    shares = worlds_of("classification", 20_000, 12).shares(goal)
    assert all(missed_by_constant(goal, share) > 0 for share in shares)
    assert min(shares) < 0.5 < max(shares) or isinstance(goal, MeanCost)


ONE_CATEGORY = {"target": "y", "classes": ["no", "yes"], "columns": {"c": {"categories": ["a", "b", "c"]}}}


@pytest.mark.parametrize("expect", [None, 0.04])
def test_tables_in_which_labels_cannot_be_told_so_well_are_said_to_be_there(expect):
    """All rows of a category have one score, so at a share of 0.3 no model may err so seldom."""
    told = plan(ONE_CATEGORY, ErrorRate(0.05), rows=5000, worlds=6, positives=0.3, expect=expect)
    text = " ".join(str(told).split())
    assert 0 < told.untold < 6
    assert f"in {told.untold} of 6 made-up tables for error rate ≤ 0.05" in text
    assert ("as you expect" in text) == (expect is not None)
    assert "in all of which" not in text
    assert expect is None or f"in {6 - told.untold} of which the best model" in text
    assert told.to_dict()["untold"] == told.untold
    easy = plan(SURVEY, ErrorRate(0.25), rows=5000, worlds=6, positives=0.3, expect=expect and 0.2)
    assert easy.untold == 0
    assert "made-up tables for" not in " ".join(str(easy).split())


def test_an_expectation_that_a_constant_meets_at_the_share_believed_is_refused():
    with pytest.raises(
        ValueError, match=r"says the same of all of them meets error rate ≤ 0.05.*expect a better model"
    ):
        plan(SURVEY, ErrorRate(0.03), rows=5000, worlds=1, positives=0.04, expect=0.05)


@pytest.mark.parametrize(
    ("schema", "goals", "positives", "message"),
    [
        (SURVEY, ErrorRate(0.2), 1.5, "positives must be"),
        (SURVEY, [LogLoss(0.1), ErrorRate(0.05)], 0.04, "says the same of all of them meets error rate ≤ 0.05"),
        (STONES, R2(0.5), 0.1, "state a schema with classes"),
        (SURVEY, ExcessRisk(0.01), 0.1, "state a schema with classes"),
    ],
)
def test_a_share_of_positive_rows_that_does_not_go_with_the_goals_is_refused(schema, goals, positives, message):
    with pytest.raises(ValueError, match=message):
        plan(schema, goals, rows=5000, worlds=1, positives=positives)


@pytest.mark.parametrize(
    ("goals", "expect", "message"),
    [
        ([ErrorRate(0.2), LogLoss(0.5)], 0.1, "goals of one kind"),
        ([Recall(0.7) & Precision(0.2)], 0.1, "goals of one kind"),
        ([ExcessRisk(0.01)], 0.1, "goals of one kind"),
        ([ErrorRate(0.2)], 1.5, "expect must be"),
    ],
)
def test_an_expectation_that_says_nothing_about_the_goals_is_refused(goals, expect, message):
    with pytest.raises(ValueError, match=message):
        plan(SURVEY, goals, rows=5000, worlds=1, expect=expect)
