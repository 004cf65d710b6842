"""Gradient descent in stages: the promise and its failures, the budget, and what the search may read."""

from __future__ import annotations

import dataclasses
import math
from functools import cache

import numpy as np
import pytest
from scipy import stats

from expost import R2, AccuracyFirstModel, AccuracyNotReached, ErrorRate, LogLoss, MeanSquaredError, TargetUnreachable
from expost.data import Rows
from expost.data.fixed_point import ONE
from expost.erm import Problem
from expost.erm.geometry import Block, Geometry
from expost.erm.measures import errors
from expost.mechanisms.descent import GradientDescent
from expost.noise import SeededSource
from expost.privacy.renyi import Curve
from expost.privacy.renyi_account import RenyiAccount
from expost.search import descent, staged
from expost.search.descent import DescentPlan
from tests.estimators.model_helpers import AMOUNT, LABELS, table

N = 2000
SHAPE = Geometry((Block(2, "box", 1 / math.sqrt(2)),), 1.0, "blocks", scale=math.sqrt(2))


@cache
def rows(goal):
    labels = goal.chain().loss.labels == "binary"
    rng = np.random.default_rng(0)
    x = np.column_stack([np.ones(N), rng.uniform(-1, 1, N)])
    signal = x[:, 1] + rng.normal(0, 0.25, N)
    y = np.where(signal > 0, 1.0, -1.0) if labels else np.clip(signal, -1, 1)
    return Rows(np.trunc(x / math.sqrt(2) * ONE).astype(np.int32), np.trunc(y * ONE).astype(np.int32), norm="l2")


@cache
def generator(goal):
    return GradientDescent(SHAPE).on(rows(goal), Problem.of(goal.chain().loss, n=N, p=2, regularization=1.0))


def run(goal, seed=0, budget=6.0, gamma=0.1, delta=1e-6, **pace):
    plan = DescentPlan.of(goal, goal.chain().loss, SHAPE, N, gamma, budget, delta)
    plan = dataclasses.replace(plan, pace=dataclasses.replace(plan.pace, **pace))
    account = RenyiAccount("auto", plan.worst_case, secure=False, delta=delta)
    return plan.search(generator(goal), account, SeededSource(seed))


@cache
def least_errors() -> float:
    """What the best of many lines gets wrong."""
    objective = generator(ErrorRate(0.2)).judge
    tried = [np.array([a, 1.0]) for a in np.linspace(-0.3, 0.3, 601)]
    return min(errors(objective, theta) for theta in tried) / N


@pytest.mark.parametrize("goal", [ErrorRate(0.2), LogLoss(0.45), R2(0.6), MeanSquaredError(0.12)], ids=lambda g: g.name)
def test_goals_are_met(goal):
    release = run(goal)
    assert release.status == "released"
    assert goal.shortfall(generator(goal).judge, np.array(release.hypothesis)) <= 0
    assert (release.delta, release.noise) == (1e-6, "exact")


class TestPromise:
    """A goal that no model meets: whatever is released breaks the promise. False alarm below one seed in 10⁶."""

    GAMMA, RUNS = 0.1, 40

    def broken(self, monkeypatch):
        goal = ErrorRate(least_errors() * 0.99)
        monkeypatch.setattr(descent, "_MOST_STEPS", 8)  # how good models are does not matter
        found = [run(goal, [7, seed], budget=2.0, gamma=self.GAMMA, growth=3.0) for seed in range(self.RUNS)]
        return sum(release.status == "released" for release in found)

    def test_it_is_kept(self, monkeypatch):
        assert stats.binomtest(self.broken(monkeypatch), self.RUNS, self.GAMMA, alternative="greater").pvalue > 1e-6

    def test_control_without_margins(self, monkeypatch):
        monkeypatch.setattr(staged.GaussianValue, "margin", lambda self, rho, failure: 0.0)
        assert stats.binomtest(self.broken(monkeypatch), self.RUNS, self.GAMMA, alternative="greater").pvalue < 1e-6

    def test_failures_add_up_to_gamma(self):
        """Over every look that could be asked."""
        pace = staged.Pace()
        spent = math.fsum((1 - pace.kept) * pace.kept**stage for stage in range(200))
        assert math.isclose(spent, 1.0, rel_tol=1e-9)


class TestBudget:
    @pytest.mark.parametrize("budget", [1.0, 2.5])
    def test_a_refusal_stays_within_it_and_uses_it(self, budget):
        release = run(ErrorRate(0.05), budget=budget)
        assert release.status == "refused"
        assert 0.5 * budget < release.epsilon <= budget == release.epsilon_worst_case
        assert any("budget" in reason for reason in release.parameters["reasons"])

    def test_what_is_charged_is_what_was_drawn(self, monkeypatch):
        """Every draw of noise is booked: ρ of all steps and looks, from the deviations drawn with."""
        drawn = []
        usual = descent.GradientNoise.draws

        def draws(self, steps, source):
            drawn.append(self.rho * steps)
            return usual(self, steps, source)

        monkeypatch.setattr(descent.GradientNoise, "draws", draws)
        looked = []
        ask = staged.GaussianValue.ask
        monkeypatch.setattr(
            staged.GaussianValue,
            "ask",
            lambda self, value, rho, source: (looked.append(rho), ask(self, value, rho, source))[1],
        )
        release = run(ErrorRate(0.14))
        booked = Curve.gaussian(math.fsum(drawn) + math.fsum(looked))
        np.testing.assert_allclose(release.account_curve().losses, booked.losses, rtol=1e-8)

    def test_unreachable(self):
        with pytest.raises(TargetUnreachable, match="Nothing was spent"):
            run(ErrorRate(0.2), budget=0.001)


def test_steps_read_released_numbers_only(monkeypatch):
    """With the sums of gradients replaced by zeros the path is the same for all rows."""
    monkeypatch.setattr(descent.ClippedGradients, "total", lambda self, theta: np.zeros(self.p, dtype=np.int64))
    monkeypatch.setattr(staged.GaussianValue, "ask", lambda self, value, rho, source: 1.0)
    released = [run(goal, budget=1.0) for goal in (ErrorRate(0.2), ErrorRate(0.2))]
    assert released[0] == released[1]


class TestModel:
    @pytest.mark.parametrize(("schema", "goal"), [(LABELS, ErrorRate(0.25)), (AMOUNT, R2(0.5))])
    def test_fit(self, schema, goal):
        model = AccuracyFirstModel(schema, goal, delta=1e-6, perturbation="descent", random_state=1).fit(table())
        pure = AccuracyFirstModel(schema, goal, random_state=1).fit(table())
        release = model.release_
        assert (release.delta, release.perturbation, release.noise) == (1e-6, "gradient descent", "exact")
        assert len(model.predict(table())) == len(table()["hours"])
        assert pure.release_.delta == 0.0

    def test_clip_counts_first(self):
        model = AccuracyFirstModel(LABELS, ErrorRate(0.25), delta=1e-6, on_invalid="clip", random_state=1).fit(table())
        assert model.release_.epsilon_probe > 0
        wrong = {**table(), "income": ["what"] * len(table()["hours"])}
        with pytest.raises(AccuracyNotReached) as caught:
            AccuracyFirstModel(LABELS, ErrorRate(0.25), delta=1e-6, on_invalid="clip", random_state=1).fit(wrong)
        assert caught.value.release.parameters["unfit"]

    def test_a_person_with_several_rows(self):
        """k rows move sums k times as far; the person's weight is what counts, so k hardly matters."""
        plain = table()
        known = {name: cells[:1500] for name, cells in plain.items()}
        twice = {name: [cell for cell in cells for _ in range(2)] for name, cells in known.items()}
        twice["who"] = [i // 2 for i in range(3000)]
        model = AccuracyFirstModel(
            LABELS, ErrorRate(0.3), delta=1e-6, random_state=1, person="who", rows_per_person=2
        ).fit(twice)
        alone = AccuracyFirstModel(LABELS, ErrorRate(0.3), delta=1e-6, random_state=1).fit(known)
        assert model.release_.unit == "person"
        assert 0.6 < model.release_.epsilon / alone.release_.epsilon < 1.6
        assert model.release_.epsilon_worst_case <= 10.0

    @pytest.mark.parametrize("delta", [-1e-6, 0.5, float("nan"), "small"])
    def test_a_delta_that_is_none(self, delta):
        with pytest.raises(ValueError, match="delta must be"):
            AccuracyFirstModel(LABELS, ErrorRate(0.25), delta=delta, random_state=1).fit(table())
