"""Ridge regression through Huber's loss: the inequality, the test that it rests on, and what it costs."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from expost import AccuracyFirstRidge, ExcessRisk
from expost.account.account import Account
from expost.goals.measure import mean_left_out, mean_left_out_error
from expost.mechanisms import ThroughHuber, mechanism_for
from expost.mechanisms.moments.covariance import RidgeCertificate
from expost.noise import SeededSource
from expost.passes.sums import sums_over
from expost.search import METHODS, run_search
from expost.search.request import Request
from expost.solve.losses import HuberLoss, SquaredLoss
from expost.solve.problem import Problem
from expost.solve.row_sums import Passes
from expost.table.rows import ONE, Rows
from expost.table.shape import Geometry, l1_ball
from tests.helpers import RARE


def contrary_rows(n: int = 20_000, share: float = 0.3, p: int = 20) -> Rows:
    """Rows of which most say 1 and some −1: Huber's best model is not the best one, and residuals reach 2."""
    x = np.zeros((n, p), dtype=np.int32)
    x[np.arange(n), np.arange(n) % p] = ONE
    y = np.where(np.arange(n) < share * n, -ONE, ONE).astype(np.int32)
    return Rows(x, y)


def agreeing_rows(n: int = 10_000, p: int = 40) -> Rows:
    rng = np.random.default_rng(1)
    x = np.zeros((n, p))
    x[np.arange(n), rng.integers(0, p, n)] = rng.uniform(0.5, 1, n)
    y = x @ rng.choice([-0.8, 0.8], p)
    return Rows(np.trunc(x * ONE).astype(np.int32), np.trunc(y * ONE).astype(np.int32))


def settled(problem: Problem, alpha: float, gamma: float, shape: Geometry, *, budget: float | None = None):
    request = Request(problem, ExcessRisk(alpha), METHODS["auto"], ThroughHuber(shape), gamma, max_epsilon=budget)
    return request.plan()


def passes(rows: Rows) -> Passes:
    return Passes.over(HuberLoss(1.0), rows)


def minimum(loss, x, y, lam) -> float:
    theta = np.zeros(x.shape[1])
    for _ in range(200):  # Newton's steps, halved where the kink makes them too long
        u = x @ theta
        gradient = loss.derivative(u, y) @ x / len(y) + lam * theta
        hessian = (x.T * loss.second_derivative(u, y)) @ x / len(y) + lam * np.eye(len(theta))
        step, length = np.linalg.solve(hessian, gradient), 1.0
        while length > 1e-9 and value(loss, x, y, lam, theta - length * step) > value(loss, x, y, lam, theta):
            length /= 2
        theta = theta - length * step
    return value(loss, x, y, lam, theta)


def value(loss, x, y, lam, theta) -> float:
    return float(np.mean(loss.value(x @ theta, y)) + lam / 2 * theta @ theta)


def test_the_inequality_that_everything_rests_on():
    """L(θ) − min L ≤ L_H(θ) − min L_H + q(θ); without q it fails."""
    rng = np.random.default_rng(0)
    without = 0
    for _ in range(60):
        p, lam, limit = int(rng.integers(1, 4)), 10 ** rng.uniform(-3, -1), rng.choice([1.0, 1.5])
        x = rng.uniform(-1, 1, (30, p)) / p
        y = rng.choice([-1.0, 1.0], 30) * rng.uniform(0.5, 1, 30)
        theta = rng.normal(0, 3, p)
        squared, huber = SquaredLoss(), HuberLoss(float(limit))
        left = value(squared, x, y, lam, theta) - minimum(squared, x, y, lam)
        right = value(huber, x, y, lam, theta) - minimum(huber, x, y, lam)
        beyond = float(np.mean(0.5 * np.maximum(np.abs(y - x @ theta) - limit, 0) ** 2))
        assert left <= right + beyond + 1e-9
        without += left > right + 1e-9
    assert without > 20


def test_what_lies_beyond_moves_by_its_sensitivity_and_no_more():
    rng = np.random.default_rng(2)
    worst = 0.0
    for _ in range(300):
        n, p, limit = 5, 3, float(rng.choice([1.0, 1.3, 2.0]))
        theta = rng.uniform(-2, 2, p)
        m = float(np.abs(theta).max())
        rows = rng.integers(0, p, n + 1), rng.choice([-1, 1], n + 1), rng.choice([-1.0, 1.0], n + 1)
        terms = [0.5 * max(0.0, abs(y - sign * theta[j]) - limit) ** 2 for j, sign, y in zip(*rows, strict=True)]
        moved = abs(terms[-1] - terms[0]) / n
        bound = HuberLoss(limit).left_out_sensitivity(m, n)
        assert moved <= bound
        worst = max(worst, moved / bound)
    assert worst > 0.9  # half the sensitivity would not do


@pytest.mark.parametrize("limit", [1.0, 1.7])
def test_rounding_of_what_lies_beyond_is_bounded(limit):
    rows = agreeing_rows(n=300, p=5)
    theta = np.random.default_rng(3).uniform(-3, 3, 5)
    coefficients = [Fraction(t) for t in theta.tolist()]
    exact = Fraction(0)
    for x, y in zip(rows.x.tolist(), rows.y.tolist(), strict=True):
        residual = Fraction(y, ONE) - sum(Fraction(c, ONE) * t for c, t in zip(x, coefficients, strict=True))
        exact += max(Fraction(0), abs(residual) - Fraction(limit)) ** 2 / 2 / rows.n
    error = mean_left_out_error(rows.n, rows.p, float(np.abs(theta).max()), float(np.linalg.norm(theta)), limit)
    assert exact > 0
    assert (
        abs(Fraction(mean_left_out(passes(rows), theta, HuberLoss(limit), float(np.abs(theta).max()))) - exact)
        <= Fraction(error)
        < Fraction(1, 10**11)
    )


def test_a_model_that_only_huber_likes_is_not_released():
    """Without the test the promise breaks in every run; with it, second moments take over and it is kept."""
    rows = contrary_rows()
    alpha, gamma = 0.005, 0.1
    problem = Problem.of(SquaredLoss(), n=rows.n, p=rows.p, regularization=0.01)
    generator = ThroughHuber(l1_ball(rows.p)).on(rows, problem)
    risk = generator.by_moments.risk
    plan = settled(problem, alpha, gamma, l1_ball(rows.p))
    assert plan.tries[0].loss.delta == 1.0
    over = untested = 0
    for seed in range(30):
        release = run_search(generator, problem, ExcessRisk(alpha), failure_probability=gamma, random_state=seed)
        assert release.epsilon <= release.epsilon_worst_case == plan.worst_case
        over += risk.excess(np.asarray(release.hypothesis)) > alpha
        first = plan.tries[0]
        theta = first.shot.draw(generator.perturbed(first.shot.loss), np.zeros(rows.p), SeededSource(seed))
        untested += risk.excess(theta) > alpha
    assert stats.binom.sf(over - 1, 30, gamma) > RARE
    assert untested == 30
    assert "not shown to be few enough" in " ".join(release.parameters["reasons"])


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [0.02, 0.002])
def test_the_promise_is_kept_and_cheaper(alpha):
    """Above α in at most γ of 60 runs (RARE), at less than second moments cost."""
    rows, gamma = agreeing_rows(), 0.2
    problem = Problem.of(SquaredLoss(), n=rows.n, p=rows.p, regularization=0.01)
    generator = mechanism_for(None, problem, shape=l1_ball(rows.p)).on(rows, problem)
    assert isinstance(generator.mechanism, ThroughHuber)
    risk, spent, over = generator.by_moments.risk, [], 0
    for seed in range(60):
        release = run_search(generator, problem, ExcessRisk(alpha), failure_probability=gamma, random_state=seed)
        spent.append(release.epsilon)
        over += risk.excess(np.asarray(release.hypothesis)) > alpha
    assert stats.binom.sf(over - 1, 60, gamma) > RARE
    moments = [
        run_search(sums_over(rows), problem, ExcessRisk(alpha), failure_probability=gamma, random_state=seed)
        for seed in range(5)
    ]
    assert {release.perturbation for release in moments} == {"covariance"}
    assert np.mean(spent) < 0.75 * np.mean([release.epsilon for release in moments])


@pytest.mark.parametrize("budget", [0.1, 0.3, 0.4, 0.6, 1.0, 3.0, 30.0])
def test_no_outcome_exceeds_the_budget(budget):
    """Rows that fail every test, so that as much is spent as can be."""
    rows = contrary_rows()
    problem = Problem.of(SquaredLoss(), n=rows.n, p=rows.p, regularization=0.01)
    plan = settled(problem, 0.005, 0.1, l1_ball(rows.p), budget=budget)
    if isinstance(plan, RidgeCertificate):
        unlimited = settled(problem, 0.005, 0.1, l1_ball(rows.p))
        assert budget < unlimited.null.cost + unlimited.tries[0].dearest * (1 + 1e-6)
        return
    assert plan.worst_case <= budget
    generator = ThroughHuber(l1_ball(rows.p)).on(rows, problem)
    for seed in range(5):
        release = plan.search(generator, Account("auto", plan.worst_case, False), SeededSource(seed))
        assert release.epsilon <= plan.worst_case


def test_nothing_is_tested_where_no_residual_can_exceed_the_slope():
    problem = Problem.of(SquaredLoss(), n=1000, p=2, regularization=0.1)
    (first, *_) = settled(problem, 0.05, 0.1, l1_ball(2)).tries
    account = Account("auto", math.inf, False)
    assert first.loss.delta > 1
    theta = np.array([first.loss.delta - 1.001, 0.0])
    assert first.passes(None, theta, account, SeededSource(0))  # rows are not so much as touched
    assert account.test == 0
    far = Account("auto", math.inf, False)
    assert not first.passes(None, np.array([1e6, 0.0]), far, SeededSource(0))
    assert far.test == 0  # too dear a test is not asked


def test_through_the_estimator():
    rng = np.random.default_rng(5)
    X = rng.uniform(-1, 1, (20_000, 30))
    y = np.clip(X @ rng.uniform(-0.2, 0.2, 30), -1, 1)
    model = AccuracyFirstRidge(
        excess_risk=0.01, regularization=0.01, bounds=(-1, 1), target_bounds=(-1, 1), random_state=0
    )
    easy = model.fit(X, y).release_
    assert (easy.perturbation, easy.noise) == ("covariance", "exact")  # nothing but an exact test was drawn
    assert "null model" in easy.parameters["reasons"][0]
    assert not np.asarray(easy.hypothesis).any()
    release = model.set_params(excess_risk=0.0005).fit(X, y).release_
    assert release.perturbation == "objective"
    assert (release.noise, release.exact[1]) == ("exact", "generation noise")
    assert release.epsilon > release.epsilon_generation > easy.epsilon
    assert release.promise.excess_risk == 0.0005
    assert "unconstrained optimum" in release.promise.statement
