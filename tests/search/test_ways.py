"""Which way a search at a δ goes: by public numbers before it begins, by released ones where it turns; it says so."""

from __future__ import annotations

import math

import numpy as np
import pytest

import expost
from expost import R2, AccuracyFirstModel, ErrorRate, LogLoss
from expost.account.composition import ROW, Unit
from expost.exceptions import AccuracyNotReached, TargetUnreachable
from expost.mechanisms.descent.gradient_descent import DescentPlan, GradientDescent, Walk
from expost.mechanisms.moments.gaussian_moments import MomentsPlan
from expost.mechanisms.objective.chain import ChainPlan, GaussianChainPlan, PerturbedLevels
from expost.release.card import noise_interval
from expost.search.levels import StagedSearch
from expost.search.request import staged_request
from expost.search.run import settle
from expost.table.shape import Block, Geometry
from tests.estimators.model_helpers import AMOUNT, LABELS, table

N, DELTA = 30_000, 1e-6
PERSONS = Unit(3, N // 3, "who")


def shape(columns: int, categories: int = 10) -> Geometry:
    """Rows of a few numbers and as many categories."""
    scale = math.sqrt(columns + 1)
    blocks = (Block(2, "box", 1 / scale), *(Block(categories, "l1", 1 / scale) for _ in range(columns - 1)))
    return Geometry(blocks, 1.0, "blocks", scale=scale)


def asked(way=None, goal=ErrorRate(0.2), columns=5, n=N, budget=10.0, unit=ROW):  # noqa: B008
    made = shape(columns)
    pure = made if way is None else None
    return staged_request(way, goal, made, n, 0.1, budget, DELTA, unit, pure=pure)


# --- before it begins ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("goal", [ErrorRate(0.2), LogLoss(0.4), R2(0.8)], ids=lambda goal: goal.name)
@pytest.mark.parametrize("unit", [ROW, PERSONS], ids=["rows", "persons"])
@pytest.mark.parametrize("columns", [1, 5, 30])
def test_descent_goes_first_and_may_turn_to_pure_noise(goal, unit, columns):
    request = asked(goal=goal, columns=columns, unit=unit, budget=10.0 / unit.rows)
    plan = settle(request)
    assert request.mechanism == GradientDescent(shape(columns), shape(columns))
    assert type(plan) is DescentPlan
    assert type(plan.then) is ChainPlan
    assert plan.then.then is None
    for both in ("goal", "loss", "n", "failure_probability", "budget", "delta", "unit"):
        assert getattr(plan, both) == getattr(plan.then, both)
    assert request.reason == ""


@pytest.mark.parametrize(
    ("way", "kind"), [("descent", DescentPlan), ("objective", GaussianChainPlan), ("covariance", MomentsPlan)]
)
def test_a_way_that_is_stated_is_gone_to_its_end(way, kind):
    plan = settle(asked(way))
    assert type(plan) is kind
    assert plan.then is None
    with pytest.raises(ValueError, match="perturbation must be"):
        asked("output")


def test_budgets_that_are_shared_have_no_pure_way():
    """Gaussian costs add in squares there, pure ones would not."""
    with expost.budget(epsilon=1.0, delta=DELTA):
        request = asked()
        assert request.mechanism == GradientDescent(shape(5))
        assert settle(request).then is None
    assert settle(asked()).then is not None


def test_pure_noise_goes_first_where_descent_is_out_of_reach():
    """Many narrow columns, and a budget that descent's first stage would not fit in."""
    found = []
    for budget in np.geomspace(0.01, 3.0, 40):
        here = [
            kind.settled(ErrorRate(0.2), ErrorRate(0.2).chain().loss, shape(5), 2000, 0.1, budget, DELTA).missing()
            for kind in (DescentPlan, ChainPlan)
        ]
        request = asked(n=2000, budget=float(budget))
        pure = bool(here[0]) and not here[1]
        assert request.mechanism.gaussian != pure
        assert bool(request.reason) == pure
        if pure:
            assert "drown in the noise that hides one row" in request.reason
            assert type(settle(request)) is ChainPlan
            assert request.delta == DELTA
        elif here[0]:
            with pytest.raises(TargetUnreachable, match="Nothing was spent"):
                settle(request)
        else:
            assert type(settle(request)) is DescentPlan
        found.append((pure, bool(here[0])))
    assert {(True, True), (False, True), (False, False)} == set(found)


@pytest.mark.parametrize("unit", [ROW, Unit(5, 400, "who")], ids=["rows", "persons"])
def test_what_a_person_can_do_is_what_a_row_of_that_weight_can(unit):
    """m persons of k rows are m rows of which each is k times as heavy: the same budgets are out of reach."""
    goal = ErrorRate(0.2)
    for budget in np.geomspace(0.02, 3.0, 12):
        for kind in (DescentPlan, ChainPlan):
            alone = kind.settled(goal, goal.chain().loss, shape(2), 400, 0.1, budget, DELTA)
            given = (400 * unit.rows, 0.1, unit.share(budget), DELTA, unit)
            several = kind.settled(goal, goal.chain().loss, shape(2), *given)
            assert several.missing() == pytest.approx(alone.missing(), rel=0.05)


# --- while it goes ---------------------------------------------------------------------------------------------------


@pytest.fixture
def stalled(monkeypatch):
    """Descent that gets nowhere, whatever it pays."""
    usual = Walk.stage
    monkeypatch.setattr(Walk, "stage", lambda self, rho, source: 0.0 * usual(self, rho, source))


def fit(goal=ErrorRate(0.25), schema=LABELS, rows=None, **options):  # noqa: B008
    given = {"delta": DELTA, "random_state": 1, "max_epsilon": 10.0, **options}
    return AccuracyFirstModel(schema, goal, **given).fit(table() if rows is None else rows).release_


def persons(k: int = 2) -> dict[str, list]:
    cells = {name: [cell for cell in cells[: 3000 // k] for _ in range(k)] for name, cells in table().items()}
    return {**cells, "who": [i // k for i in range(len(cells["hours"]))]}


def turned(release) -> bool:
    return any("turned to another way" in reason for reason in release.parameters["reasons"])


@pytest.mark.parametrize(
    ("schema", "goal"),
    [(LABELS, ErrorRate(0.25)), (LABELS, LogLoss(0.5)), (AMOUNT, R2(0.5))],
    ids=["labels", "odds", "numbers"],
)
@pytest.mark.parametrize("whose", ["rows", "persons"])
@pytest.mark.usefixtures("stalled")
def test_a_search_that_stalls_turns(schema, goal, whose):
    of = {"rows": persons(), "person": "who", "rows_per_person": 2} if whose == "persons" else {}
    release = fit(goal, schema, **of)
    reasons = release.parameters["reasons"]
    (at,) = [k for k, reason in enumerate(reasons) if "turned to another way" in reason]
    assert "gradient descent" in reasons[at - 1]
    assert reasons[at + 1].startswith("objective perturbation: ")
    assert (release.status, release.delta) == ("released", DELTA)
    assert (release.noise, release.perturbation) == ("exact", "objective")
    assert "generation noise" in release.exact
    assert "sums of clipped gradients" not in release.exact
    assert release.epsilon <= release.epsilon_worst_case <= 10.0
    assert release.unit == ("person" if of else "row")
    assert "noise_reach" not in release.parameters  # descent's own noise is not in it
    assert noise_interval(release).kind == "none"


@pytest.mark.usefixtures("stalled")
def test_what_is_booked_after_a_turn_is_the_sum(monkeypatch):
    """Gaussian steps before it and pure ones after it: the curve has both, and the clock's end is not passed."""
    drawn = []
    usual = PerturbedLevels.stage

    def stage(self, *given):
        model = usual(self, *given)
        drawn.append(self.drawn)
        return model

    monkeypatch.setattr(PerturbedLevels, "stage", stage)
    release = fit(max_epsilon=4.0)
    assert turned(release)
    assert release.curve["rho"] > 0
    last = drawn[-1].epsilon
    assert release.curve["pure"] >= last > 0


@pytest.mark.usefixtures("stalled")
@pytest.mark.parametrize("budget", [1.2, 1.5, 4.0])
@pytest.mark.parametrize("whose", ["rows", "persons"])
def test_no_outcome_exceeds_the_budget(budget, whose):
    of = {"rows": persons(), "person": "who", "rows_per_person": 2} if whose == "persons" else {}
    ends = set()
    for seed in range(6):
        try:
            release = fit(ErrorRate(0.12), max_epsilon=budget, random_state=seed, **of)
        except AccuracyNotReached as refusal:
            release = refusal.release
        assert 0 < release.epsilon <= release.epsilon_worst_case <= budget * (1 + 1e-12)
        ends.add(turned(release))
    assert True in ends


@pytest.mark.usefixtures("stalled")
def test_stated_descent_and_shared_budgets_do_not_turn():
    with pytest.raises(AccuracyNotReached) as refusal:
        fit(perturbation="descent")
    assert not turned(refusal.value.release)
    assert refusal.value.release.noise == "exact"
    with expost.budget(epsilon=5.0, delta=DELTA), pytest.raises(AccuracyNotReached) as refusal:
        fit(max_epsilon=4.0)
    assert not turned(refusal.value.release)


def test_a_search_that_gets_there_does_not_turn():
    release = fit()
    assert not turned(release)
    assert (release.noise, release.perturbation) == ("exact", "gradient descent")


@pytest.mark.usefixtures("stalled")
def test_the_promise_is_kept_across_a_turn():
    """The parts of γ go on: levels after a turn do not begin with the first one's part again."""
    asked, usual = [], StagedSearch._passes

    def noted(self, model, level):
        asked.append(self.plan.gamma(self.stages))
        return usual(self, model, level)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StagedSearch, "_passes", noted)
        release = fit(failure_probability=0.2)
    assert turned(release)
    assert asked == sorted(asked, reverse=True)
    assert len(set(asked)) == len(asked) >= 3
    assert math.fsum(asked) <= 0.2


@pytest.mark.usefixtures("stalled")
def test_what_would_be_given_up_is_turned_from_first(monkeypatch):
    """Where descent no longer improves the other way may: it is tried before a refusal, however little was spent."""
    assert turned(fit(ErrorRate(0.2), max_epsilon=1.5))
    monkeypatch.setattr(StagedSearch, "_futile", lambda self, *more: self.plan.then is None and self.stages > 3)
    with pytest.raises(AccuracyNotReached, match="improved too little") as refusal:
        fit(ErrorRate(0.03))
    assert turned(refusal.value.release)


@pytest.mark.usefixtures("stalled")
def test_turning_reads_released_numbers_only(monkeypatch):
    """With every test's answer the same, the rows change nothing about where it turns."""
    monkeypatch.setattr(StagedSearch, "_passes", lambda self, model, level: self.stages == 7)
    flipped = {**table(), "income": ["low", "high"] * 1500}
    one, other = fit(max_epsilon=4.0), fit(max_epsilon=4.0, rows=flipped)
    assert turned(one)
    assert one.parameters["reasons"][:2] == other.parameters["reasons"][:2]
    assert one.level == other.level == 6


def test_log_loss_is_not_left_to_least_squares():
    """They estimate no probabilities: 9 of 9 such searches were refused with the budget spent."""
    rng = np.random.default_rng(0)
    x = rng.choice(["a", "b"], (10_000, 8))
    odds = np.where(x == "a", 4.0, -4.0) @ [1, 1, 1, 0.5, 0.5, 0.25, 0, 0]
    cells = {f"x{k}": x[:, k] for k in range(8)}
    cells["y"] = np.where(rng.random(len(odds)) < 1 / (1 + np.exp(-odds)), "yes", "no")
    columns = {f"x{k}": {"categories": ["a", "b"]} for k in range(8)}
    schema = {"target": "y", "classes": ["no", "yes"], "columns": columns}
    for seed in (1, 2, 3):
        model = AccuracyFirstModel(schema, LogLoss(0.2), delta=DELTA, max_epsilon=2.0, random_state=seed).fit(cells)
        assert model.release_.epsilon < 1.0
        assert "second moments" not in " ".join(model.release_.parameters["reasons"])
    priced = expost.plan(schema, LogLoss(0.2), rows=10_000, delta=DELTA, max_epsilon=2.0, worlds=3).goals[0].methods
    (taken,) = [way for way in priced if way.taken]
    assert math.isfinite(taken.typical)
