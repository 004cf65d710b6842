"""Attempts to refute the sensitivities of the certified search: brute force over neighbours, exact laws of one test.

Nothing here is left to chance (seeds are fixed and every bound is meant to hold always), so the false-alarm rate is
zero. Each check is paired with a bound that is too small and has to be caught.
"""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from expost import Rows, SeededSource, sums_of
from expost.erm.gradient_sensitivity import gradient_sensitivity
from expost.erm.losses import HuberLoss, LogisticLoss, Loss, SmoothedHingeLoss, SquaredLoss
from expost.erm.minimise import minimise
from expost.erm.risk import RidgeRisk
from expost.erm.sums import Sums
from expost.noise.spherical import uniforms
from expost.search import few_statistics, noisy_value, stationarity
from expost.search.account import Account
from expost.search.few_statistics import FewPlan
from expost.search.plan import Problem
from expost.search.query import ErrorQuery
from expost.search.stationarity import OneTest

ONE = 1 << 20
LOSSES = [SquaredLoss(), LogisticLoss(), HuberLoss(0.25), HuberLoss(1.5), SmoothedHingeLoss(0.5), SmoothedHingeLoss(3)]


def fixed_rows(x, y) -> Rows:
    x = np.atleast_2d(np.asarray(x, dtype=float))
    x = x / np.maximum(1.0, np.abs(x).sum(axis=1, keepdims=True) * (1 + 1e-9))
    return Rows(np.trunc(x * ONE).astype(np.int32), np.trunc(np.asarray(y, dtype=float) * ONE).astype(np.int32))


# --- S(m) ----------------------------------------------------------------------------------------------------------


def largest_gradient_change(loss: Loss, m: float, rng: np.random.Generator, tries: int = 4000) -> float:
    """Search neighbours (two rows of ℓ₁ norm 1) and θ with ‖θ‖_∞ = m for the largest ‖∇φ − ∇φ′‖₂."""
    best = 0.0
    for p in (1, 2, 3, 5):
        theta = m * rng.choice([-1.0, 1.0], size=(tries, p)) * np.where(rng.random((tries, p)) < 0.8, 1.0, rng.random())

        def row(p=p):
            x = rng.standard_normal((tries, p)) * (rng.random((tries, p)) < 0.6)
            corner = np.eye(p)[rng.integers(p, size=tries)] * rng.choice([-1.0, 1.0], size=(tries, 1))
            x = np.where(rng.random((tries, 1)) < 0.4, corner, x)
            norm = np.abs(x).sum(axis=1, keepdims=True)
            return np.divide(x, norm, out=np.zeros_like(x), where=norm > 0)

        x, other, y = row(), row(), rng.choice([-1.0, 1.0], size=tries)
        mixed = rng.random((tries, 1))
        for second in (other, mixed * other - (1 - mixed) * x, -x):
            for target in (y, -y):
                change = loss.derivative((x * theta).sum(1), y)[:, None] * x
                change = change - loss.derivative((second * theta).sum(1), target)[:, None] * second
                best = max(best, float(np.linalg.norm(change, axis=1).max()))
    return best


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_no_neighbours_move_a_gradient_further(loss):
    rng = np.random.default_rng(1)
    for m in (0.0, 0.05, 0.25, 0.5, 0.9, 1.0, 1.3, 4.0, 20.0):
        assert largest_gradient_change(loss, m, rng) <= gradient_sensitivity(loss, m)


@pytest.mark.parametrize(("loss", "m"), [(SquaredLoss(), 0.0), (SquaredLoss(), 4.0), (LogisticLoss(), 0.25)], ids=repr)
def test_a_hundredth_less_would_be_refuted(loss, m):
    assert largest_gradient_change(loss, m, np.random.default_rng(1)) > 0.99 * gradient_sensitivity(loss, m)


class OneSided(Loss):
    """Steeper on one side of the target than on the other: not symmetric."""

    labels = "real"
    name, curvature, null_value, pull = "one-sided", 1.0, 0.5, 0.25

    def value(self, u, y):
        return 0.5 * np.where(u > y, 1.0, 0.1) * (u - y) ** 2

    def derivative(self, u, y):
        return np.where(u > y, 1.0, 0.1) * (u - y)

    def second_derivative(self, u, y):
        return np.where(u > y, 1.0, 0.1)

    def lipschitz(self, radius):
        return 1.0 + radius

    def spread(self, radius):
        return 0.5 * (1.0 + radius) ** 2


def test_a_loss_of_ones_own_gets_the_general_bound():
    rng = np.random.default_rng(2)
    for m in (0.0, 0.5, 2.0):
        assert largest_gradient_change(OneSided(), m, rng) <= gradient_sensitivity(OneSided(), m) == 2 * (1 + m)


def minimiser_moves(loss: Loss, lam: float, radius: float | None, rng: np.random.Generator) -> float:
    """Return the largest ‖θ* − θ*′‖ found, in units of the sensitivity charged."""
    worst = 0.0
    for n, p in ((1, 1), (1, 2), (2, 2), (3, 1)):
        problem = Problem.of(loss, n=n, p=p, regularization=lam, excess_risk=0.1, radius=radius)
        ball = problem.radius if problem.radius_stated else None
        for _ in range(12):
            x = rng.choice([-1.0, 0.0, 1.0], size=(n, p))
            x /= np.maximum(1.0, np.abs(x).sum(axis=1, keepdims=True))
            y = rng.choice([-1.0, 1.0], size=n)
            there = minimise(loss, x, y, lam, radius=ball)
            x2, y2 = x.copy(), y.copy()
            x2[0], y2[0] = (-x[0], y[0]) if rng.random() < 0.5 else (np.eye(p)[rng.integers(p)], -y[0])
            here = minimise(loss, x2, y2, lam, radius=ball)
            allowed = problem.output_l2_sensitivity + 2 * there.distance_bound
            worst = max(worst, float(np.linalg.norm(there.theta - here.theta)) / allowed)
    return worst


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("radius", [None, 0.003])
def test_no_neighbours_move_the_minimiser_further(loss, radius):
    rng = np.random.default_rng(3)
    assert max(minimiser_moves(loss, lam, radius, rng) for lam in (0.01, 1.0, 100.0)) <= 1


def test_a_minimiser_comes_close_to_what_is_charged():
    assert minimiser_moves(SquaredLoss(), 100.0, None, np.random.default_rng(3)) > 0.95


# --- one test ------------------------------------------------------------------------------------------------------


def chance_of_yes(test: OneTest, query: ErrorQuery, monkeypatch) -> tuple[float, float, float]:
    """Return P(yes), P(no) and the ε charged: the law is read off the implementation, not simulated."""
    seen: dict[str, float] = {}

    def answer(noise: int) -> bool:
        def planted(epsilon, sensitivity, size, *, random_state):
            seen.update(rate=epsilon / sensitivity)
            return np.full(size, noise)

        monkeypatch.setattr(stationarity, "discrete_laplace", planted)
        yes, seen["epsilon"] = test.ask(query, None, SeededSource(0))
        return yes

    low, high = -(1 << 40), 1 << 40
    assert answer(low)
    assert not answer(high)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if answer(middle) else (low, middle)
    rate = seen["rate"]

    def below(k: int) -> float:  # P(noise ≤ k) for k < 0
        return math.exp(rate * k) / (1 + math.exp(-rate))

    yes = below(low) if low < 0 else 1 - below(-low - 1)
    no = 1 - below(low) if low < 0 else below(-low - 1)
    return yes, no, seen["epsilon"]


def loss_of_a_test(monkeypatch, *, stated: float = 0.01, real: float = 0.01) -> float:
    """Return the largest log-ratio over ε, for answers a true sensitivity ``real`` apart."""
    test, worst = OneTest(0.3, 0.02, 0.6), 0.0
    for value in (0.0, 0.1003, 0.11777, 0.12, 0.25, 0.31):
        for error in (0.0, 1e-7):
            pair = [
                chance_of_yes(test, ErrorQuery(lambda _, v=v: v, sensitivity=stated, error_bound=error), monkeypatch)
                for v in (value, value + real + 2 * error)
            ]
            for side in (0, 1):
                worst = max(worst, abs(math.log(pair[0][side] / pair[1][side])) / pair[0][2])
    return worst


def test_one_test_costs_what_it_says(monkeypatch):
    assert 0.99 < loss_of_a_test(monkeypatch) <= 1 + 1e-12


def test_an_understated_sensitivity_shows(monkeypatch):
    assert loss_of_a_test(monkeypatch, stated=0.005) > 1.5


@pytest.mark.parametrize("failure", [0.3, 0.02, 1e-6])
@pytest.mark.parametrize("share", [0.1, 0.6, 0.99])
def test_a_wrong_yes_is_as_rare_as_promised(monkeypatch, failure, share):
    for target in (0.3, 0.3000001, 7.0):
        query = ErrorQuery(lambda _, t=target: t, sensitivity=0.01)
        yes, _, _ = chance_of_yes(OneTest(target, failure, share), query, monkeypatch)
        assert 0.99 * failure < yes <= failure


def test_without_a_margin_a_wrong_yes_is_common(monkeypatch):
    query = ErrorQuery(lambda _: 0.3, sensitivity=0.01)
    units = math.ceil(0.6 * 0.3 / query.grid)
    monkeypatch.setattr(stationarity, "_SLACK", -units)
    assert chance_of_yes(OneTest(0.3, 0.02, 0.6), query, monkeypatch)[0] > 0.4


def test_the_error_of_a_gradient_norm_is_within_its_bound():
    for seed in range(40):
        rng = np.random.default_rng(seed)
        n, p, lam = int(rng.integers(1, 6)), int(rng.integers(1, 7)), float(10 ** rng.uniform(-9, 0))
        rows = fixed_rows(rng.standard_normal((n, p)), rng.choice([-1.0, 1.0], n))
        sums = sums_of(rows)
        risk = RidgeRisk(sums, lam, math.inf)
        theta = rng.standard_normal(p) * 10 ** rng.uniform(-3, 4)
        if seed % 2:
            theta = risk.optimum * (1 + 1e-9 * rng.standard_normal(p))
        exact = Fraction(0)
        for i in range(p):
            entry = Fraction(lam) * Fraction(float(theta[i])) - Fraction(int(sums.moment[i]), n << 40)
            entry += sum(Fraction(int(sums.gram[i, j]), n << 40) * Fraction(float(theta[j])) for j in range(p))
            exact += entry * entry
        with localcontext() as context:
            context.prec = 60
            root = (Decimal(exact.numerator) / Decimal(exact.denominator)).sqrt()
            error = abs(Decimal(risk.gradient_norm(theta)) - root)
        assert error <= risk.gradient_error_bound(float(np.linalg.norm(theta)) * (1 + 1e-12))


# --- few statistics ------------------------------------------------------------------------------------------------


def captured_units(monkeypatch, reveal, *arguments) -> tuple[np.ndarray, int]:
    """Return the integers a release adds noise to and the sensitivity charged for them."""
    seen: dict[str, int] = {}

    def planted(epsilon, sensitivity, size, *, random_state):
        seen.update(units=sensitivity)
        return np.zeros(size, dtype=np.int64)

    grids: list[float] = []
    original = noisy_value.QueryGrid.of

    def watched(sensitivity, *, error_bound=0.0):
        found = original(sensitivity, error_bound=error_bound)
        grids.append(found.grid)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(noisy_value, "discrete_laplace", planted)
        patch.setattr(noisy_value.QueryGrid, "of", staticmethod(watched))
        values = np.asarray(reveal(*arguments))
    if values.ndim == 2:  # undo what comes after the release
        rows, columns = np.triu_indices(len(values))
        values = values[rows, columns] * np.where(rows == columns, 1.0, 2.0)
    return np.rint(values / grids[-1]), seen["units"]


def shares_of_sensitivity(monkeypatch) -> dict[str, float]:
    """Return, for each statistic, the largest ℓ₁ change found over what is charged."""
    worst = {"w": 0.0, "M1": 0.0, "M2": 0.0, "M3": 0.0}
    rng = np.random.default_rng(5)
    for trial in range(60):
        p, n = int(rng.integers(1, 6)), int(rng.integers(1, 4))
        problem = Problem.of(SquaredLoss(), n=n, p=p, regularization=0.1, excess_risk=0.1)
        empty = Sums(n, p, np.zeros((p, p), np.int64), np.zeros(p, np.int64), 0)
        plan = FewPlan.of(problem, 0.03, RidgeRisk(empty, 0.1, problem.radius))
        basis = np.linalg.qr(rng.standard_normal((p, p)))[0]
        if trial % 3 == 0:
            basis = np.eye(p)
        x = rng.choice([-1.0, 0.0, 1.0], size=(n, p)) + (trial % 2) * rng.standard_normal((n, p))
        other = x.copy()
        # the rows that move most: along the largest entry, against none or against another corner
        other[0] = 0.0 if trial % 4 < 2 else np.eye(p)[rng.integers(p)]
        x[0] = np.eye(p)[int(np.abs(basis[:, 0]).argmax())]
        grams = [sums_of(fixed_rows(rows, np.ones(n))).as_floats()[0] for rows in (x, other)]
        for name, k in (("w", 1), ("M1", 1), ("M2", 2), ("M3", 3)):
            if k > p:
                continue
            reveal = few_statistics._direction if name == "w" else few_statistics._projected
            along = basis[:, 0] if name == "w" else basis[:, :k]
            rest = (along, plan, Account("test", math.inf, False), SeededSource(0))
            pair = [captured_units(monkeypatch, reveal, gram, *rest) for gram in grams]
            worst[name] = max(worst[name], float(np.abs(pair[0][0] - pair[1][0]).sum()) / pair[0][1])
    return worst


def test_few_statistics_move_no_further_than_charged(monkeypatch):
    found = shares_of_sensitivity(monkeypatch)
    assert max(found.values()) <= 1
    # and not much less, so that half of the charge would be refuted
    assert min(found["w"], found["M1"], found["M2"]) > 0.51


# --- what did not hold ---------------------------------------------------------------------------------------------


class AllOnes:
    secure = False

    def words(self, count: int) -> np.ndarray:
        return np.full(count, 0xFFFF, dtype=np.uint16)


def test_uniform_numbers_stay_below_one():
    assert uniforms(1, AllOnes())[0] < 1
