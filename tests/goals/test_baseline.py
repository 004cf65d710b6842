"""The best constant: its loss, how far one row moves it and what it leaves on the table, against exact arithmetic."""

from fractions import Fraction

import numpy as np
import pytest

from expost.goals.relative_excess_risk import ConstantScale, constant_gain, constant_gain_error, constant_sensitivity
from expost.passes.sums import Sums
from expost.solve.losses import LogisticLoss, SquaredLoss
from expost.table.rows import ONE, Rows
from tests.goals.helpers import settle

LOSSES = [SquaredLoss(), LogisticLoss()]


def rows_of(x, y):
    return Rows(np.asarray(x, dtype=np.int32), np.asarray(y, dtype=np.int32))


def random_targets(loss, rng, n):
    y = rng.integers(-ONE, ONE + 1, n) if loss.labels == "real" else rng.choice([-ONE, ONE], n)
    return y.astype(np.int32)


def best_constant(loss, y):
    """Return min over u of mean φ(u, y) by brute force."""
    targets = y / ONE
    grid = np.linspace(-1, 1, 4001) if loss.labels == "real" else np.linspace(-12, 12, 4001)
    return min(float(loss.value(np.full(len(y), u), targets).mean()) for u in grid)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_the_gain_is_that_of_the_best_constant(loss):
    rng = np.random.default_rng(0)
    for _ in range(5):
        n = int(rng.integers(5, 60))
        y = random_targets(loss, rng, n)
        generator, _, _ = settle(rows_of(rng.integers(-ONE // 2, ONE // 2, (n, 2)), y), loss, 0.1)
        at_zero = float(loss.value(np.zeros(n), y / ONE).mean())
        gain = constant_gain(generator.risk, loss)
        assert at_zero - gain <= best_constant(loss, y) + constant_gain_error(n)
        assert at_zero - gain == pytest.approx(best_constant(loss, y), abs=1e-4)


def test_one_row_moves_the_variance_by_no_more_than_its_sensitivity_and_sometimes_by_all_of_it():
    rng = np.random.default_rng(1)
    largest = Fraction(0)
    for n in (2, 3, 10):
        bound = Fraction(constant_sensitivity(SquaredLoss(), n))
        cases = [(np.full(n, -1), 1)] + [(rng.choice([-1, 0, 1], n), int(rng.choice([-1, 1]))) for _ in range(50)]
        for y, new in cases:
            other = y.copy()
            other[0] = new
            moved = abs(_half_variance(other) - _half_variance(y))
            assert moved <= bound
            largest = max(largest, moved / bound)
    assert largest > Fraction(999, 1000)  # so half of it, a broken sensitivity, would be caught


def _half_variance(y):
    values = [Fraction(int(v)) for v in y]
    mean = sum(values) / len(values)
    return sum((v - mean) ** 2 for v in values) / len(values) / 2


def test_one_row_moves_the_entropy_by_no_more_than_its_sensitivity_and_sometimes_by_all_of_it():
    for n in (1, 2, 7, 40):
        bound = constant_sensitivity(LogisticLoss(), n)
        shares = np.arange(n + 1) / n
        with np.errstate(all="ignore"):
            entropy = np.nan_to_num(-shares * np.log(shares)) + np.nan_to_num(-(1 - shares) * np.log(1 - shares))
        steps = np.abs(np.diff(entropy))
        assert (steps <= bound + 1e-15).all()
        assert steps.max() == pytest.approx(bound, abs=1e-9)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_one_row_moves_the_gap_by_no_more_than_its_sensitivity(loss):
    """Rows and targets at corners come close; a fifth of the sensitivity, a broken one, is exceeded."""
    rng, n, closest = np.random.default_rng(2), 12, 0.0
    corners = np.vstack([np.eye(2), -np.eye(2)]).astype(np.int32) * ONE
    for _ in range(150):
        x, y = corners[rng.integers(4, size=n)], np.full(n, rng.choice([-ONE, ONE]), dtype=np.int32)
        gaps = []
        for _ in range(2):
            x, y = x.copy(), y.copy()
            generator, problem, _ = settle(rows_of(x, y), loss, 0.05)
            gaps.append(generator.risk.excess(np.zeros(2)) - constant_gain(generator.risk, loss))
            x[0], y[0] = corners[rng.integers(4)], -y[0]
        error = generator.risk.excess_error_bound(0.0) + constant_gain_error(n)
        scale = ConstantScale.of(loss, n, radius=problem.radius, error_bound=error)
        assert abs(gaps[0] - gaps[1]) <= scale.sensitivity
        closest = max(closest, abs(gaps[0] - gaps[1]) / scale.sensitivity)
    assert closest > 0.2


def test_sums_made_by_hand_may_lack_what_a_constant_needs():
    from expost import RelativeExcessRisk
    from expost.search import run_search
    from expost.solve.problem import Problem
    from tests.helpers import CountingSource

    sums = Sums(1000, 1, np.array([[1000 * 2**38]]), np.array([1000 * 2**37]), 1000 * 2**39)
    problem, source = Problem.of(SquaredLoss(), n=1000, p=1, regularization=0.1), CountingSource()
    with pytest.raises(ValueError, match="say nothing of Σy"):
        run_search(sums, problem, RelativeExcessRisk(0.5), random_state=source)
    assert source.drawn == 0
    assert (sums + sums).target_sum is None
