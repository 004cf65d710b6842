"""Objectives perturbed with Gaussian noise in stages: the promise and its failures, the budget, what is booked."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
from scipy import stats

from expost import R2, AccuracyFirstModel, ErrorRate, LogLoss, MeanSquaredError
from expost.account.account import Account
from expost.account.composition import NOTHING, Curve, Unit
from expost.goals import labels_and_base_rate as counts, yardstick
from expost.mechanisms import ObjectivePerturbation
from expost.mechanisms.objective import gaussian_objective as gaussian_chain
from expost.mechanisms.objective.chain import GaussianChainPlan
from expost.noise import SeededSource
from expost.search import levels as staged, noisy_test as pure_looks
from expost.solve.problem import Problem
from tests.estimators.model_helpers import AMOUNT, LABELS, table
from tests.helpers import watch_paths
from tests.mechanisms.test_chain import SHAPE, rows

N, DELTA = 2000, 1e-6


@cache
def generator(goal):
    loss = goal.chain().loss
    problem = Problem.of(loss, n=N, p=2, regularization=1.0)
    return ObjectivePerturbation(SHAPE, gaussian=True).on(rows(loss.labels == "binary", N), problem)


def run(goal, seed=0, budget=6.0, gamma=0.1):
    plan = GaussianChainPlan.of(goal, goal.chain().loss, SHAPE, N, gamma, budget, DELTA)
    account = Account("auto", plan.worst_case, secure=False, delta=DELTA)
    return plan.search(generator(goal), account, SeededSource(seed))


def missed(goal, release) -> bool:
    return goal.shortfall(generator(goal).rows.passes, np.array(release.hypothesis)) > 0


GOALS = [ErrorRate(0.2), LogLoss(0.45), R2(0.6), MeanSquaredError(0.12)]


@pytest.mark.parametrize("goal", GOALS, ids=lambda goal: goal.name)
def test_goals_are_met(goal):
    release = run(goal)
    assert release.status == "released"
    assert not missed(goal, release)
    assert (release.delta, release.noise) == (DELTA, "exact")
    assert "objective perturbation with Gaussian noise" in release.parameters["reasons"][-1]


class TestPromise:
    """Goals that no model meets: whatever is released breaks the promise. False alarm below one seed in 10⁶."""

    GAMMA, RUNS = 0.1, 36
    HOPELESS = (ErrorRate(0.097), R2(0.858))  # the best line gets 0.0985 wrong, and explains 0.853

    def broken(self, goal):
        found = [run(goal, [7, seed], budget=3.0, gamma=self.GAMMA) for seed in range(self.RUNS)]
        assert all(missed(goal, release) for release in found if release.status == "released")
        return stats.binomtest(
            sum(release.status == "released" for release in found), self.RUNS, self.GAMMA, alternative="greater"
        ).pvalue

    @pytest.mark.parametrize("goal", HOPELESS, ids=lambda goal: goal.name)
    def test_it_is_kept(self, goal):
        assert self.broken(goal) > 1e-6

    @pytest.mark.parametrize("goal", HOPELESS, ids=lambda goal: goal.name)
    def test_control_without_margins(self, goal, monkeypatch):
        monkeypatch.setattr(pure_looks.NoisyValue, "margin", lambda self, rho, failure: 0.0)
        monkeypatch.setattr(pure_looks, "laplace_deviations", lambda gamma, levels: 0.0)
        assert self.broken(goal) < 1e-6


@pytest.mark.parametrize("goal", [ErrorRate(0.05), R2(0.9)], ids=lambda goal: goal.name)
def test_a_refusal_stays_within_the_budget_and_uses_it(goal, monkeypatch):
    monkeypatch.setattr(staged.StagedSearch, "_futile", lambda self, *more: False)  # it is not given up before
    release = run(goal, budget=2.5)
    assert release.status == "short"
    assert 0.5 < release.epsilon <= 2.5 == release.epsilon_worst_case


@pytest.mark.parametrize("goal", [ErrorRate(0.1), R2(0.8)], ids=lambda goal: goal.name)
def test_what_is_charged_is_what_was_drawn(goal, monkeypatch):
    """Every model's curve, its Jacobian and solver among it, and every look."""
    shots, looks = [], []
    usual = gaussian_chain.GaussianShot.draw

    def draw(self, *given):
        shots.append(self)
        return usual(self, *given)

    monkeypatch.setattr(gaussian_chain.GaussianShot, "draw", draw)
    gaussian = pure_looks.NoisyValue.ask
    monkeypatch.setattr(
        pure_looks.NoisyValue,
        "ask",
        lambda self, value, rho, source: (looks.append(Curve.gaussian(rho)), gaussian(self, value, rho, source))[1],
    )
    paths = watch_paths(monkeypatch, pure_looks, yardstick, counts)
    release = run(goal, 3)
    pure = [Curve.ex_post(path[-1]) for path in paths if path]
    booked = sum([*(shot.curve for shot in shots), *looks, *pure], NOTHING)
    assert len(pure) >= 2
    np.testing.assert_allclose(release.account_curve().losses, booked.losses, rtol=1e-9)
    assert shots[0].center_norm == 0.0
    assert all(shot.jacobian > 0 for shot in shots)


def test_costs_read_released_numbers_only(monkeypatch):
    """With models replaced by one vector and looks by one number, the rows change nothing."""
    monkeypatch.setattr(gaussian_chain.GaussianShot, "draw", lambda *_: np.array([0.5, -1.0]))
    monkeypatch.setattr(pure_looks.NoisyValue, "ask", lambda self, value, rho, source: 1.0)
    goal = ErrorRate(0.1)
    one = run(goal, budget=2.0)
    monkeypatch.setattr(staged.StagedSearch, "_passes", lambda *_: False)
    assert run(goal, budget=2.0).level == one.level


def test_several_rows_of_a_person_cost_as_one_of_more_weight():
    """k rows in n·k: noise, Jacobian and looks are those of one row in n."""
    goal = ErrorRate(0.2)
    alone = GaussianChainPlan.of(goal, goal.chain().loss, SHAPE, N, 0.1, 6.0, DELTA)
    several = GaussianChainPlan.of(goal, goal.chain().loss, SHAPE, 3 * N, 0.1, 2.0, DELTA, Unit(3, N, "who"))
    one, three = alone.shot(alone.start), several.shot(several.start)
    assert math.isclose(one.rho, three.rho, rel_tol=1e-9)
    assert math.isclose(one.lam, three.lam, rel_tol=1e-9)
    assert math.isclose(one.typical, three.typical, rel_tol=1e-9)
    np.testing.assert_allclose(one.curve.losses, three.curve.losses, rtol=1e-2)


class TestModel:
    @pytest.mark.parametrize(("schema", "goal"), [(LABELS, ErrorRate(0.25)), (AMOUNT, R2(0.5))])
    def test_fit(self, schema, goal):
        model = AccuracyFirstModel(schema, goal, delta=1e-6, perturbation="objective", random_state=1).fit(table())
        release = model.release_
        assert (release.delta, release.perturbation, release.noise) == (1e-6, "objective", "exact")
        assert any("solver" in part for part in release.charged)
        assert len(model.predict(table())) == len(table()["hours"])

    def test_clip_and_persons(self):
        plain = {name: cells[:1500] for name, cells in table().items()}
        twice = {name: [cell for cell in cells for _ in range(2)] for name, cells in plain.items()}
        twice["who"] = [i // 2 for i in range(3000)]
        release = (
            AccuracyFirstModel(
                LABELS,
                ErrorRate(0.3),
                delta=1e-6,
                perturbation="objective",
                on_invalid="clip",
                random_state=1,
                person="who",
                rows_per_person=2,
            )
            .fit(twice)
            .release_
        )
        assert release.unit == "person"
        assert release.epsilon_probe > 0
        assert release.epsilon <= release.epsilon_worst_case <= 10.0

    def test_pure_without_a_delta(self):
        stated = AccuracyFirstModel(LABELS, ErrorRate(0.25), perturbation="objective", random_state=1).fit(table())
        usual = AccuracyFirstModel(LABELS, ErrorRate(0.25), random_state=1).fit(table())
        assert stated.release_.hypothesis == usual.release_.hypothesis
        with pytest.raises(ValueError, match="pass a delta"):
            AccuracyFirstModel(LABELS, ErrorRate(0.25), perturbation="descent").fit(table())
        with pytest.raises(ValueError, match="perturbation must be"):
            AccuracyFirstModel(LABELS, ErrorRate(0.25), perturbation="output", delta=1e-6).fit(table())
