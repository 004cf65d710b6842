"""Error counts and mean squared errors: exact or within their bounds, and never more sensitive than claimed."""

from fractions import Fraction

import numpy as np
import pytest

from expost.goals.measure import MeanSquareByRows, MeanSquareBySums
from expost.goals.squared_errors import mean_square_sensitivity
from expost.numeric import to_grid
from expost.passes.sums import sums_over
from expost.solve.losses import LogisticLoss, SquaredLoss
from expost.solve.objective import Objective
from expost.table.rows import ONE, Rows


def fixed_rows(rng, n, p, labels=False):
    x = rng.integers(-ONE // p, ONE // p + 1, (n, p)).astype(np.int32)
    y = rng.choice([-ONE, ONE], n) if labels else rng.integers(-ONE, ONE + 1, n)
    return Rows(x, y.astype(np.int32))


def objective_of(rows, loss):
    return Objective(loss, rows.x / ONE, rows.y / ONE, 0.1)


def exact_predictions(rows, theta):
    return [sum(Fraction(int(a), ONE) * Fraction(float(b)) for a, b in zip(x, theta, strict=True)) for x in rows.x]


def test_counts_are_exact_in_any_order_ties_included():
    rng = np.random.default_rng(0)
    rows = fixed_rows(rng, 60, 5, labels=True)
    for radius in (0.7, 7.0, 123.0):
        theta = to_grid(rng.uniform(-radius, radius, 5), radius)
        # rows on which the prediction is zero, or one unit of the grid away from it
        x = rows.x.copy()
        x[:20, 3:] = 0
        x[:20, 0], x[:20, 1] = x[:20, 2], -x[:20, 2]
        theta[1], theta[2] = theta[0], 0.0
        tied = Rows(x, rows.y)
        expected = sum((u > 0) != (y > 0) for u, y in zip(exact_predictions(tied, theta), tied.y, strict=True))
        for order in (slice(None), slice(None, None, -1), rng.permutation(5)):
            shuffled = Objective(LogisticLoss(), tied.x[:, order] / ONE, tied.y / ONE, 0.1)
            assert shuffled.errors(theta[order]) == expected


def test_off_the_grid_the_order_of_summation_decides():
    """Why θ is rounded: here a tie is broken by the order in which a row is added up."""
    theta, x = np.array([1.0, 2.0**-60, -1.0]), np.full(3, 0.25)

    def signs(theta):
        products = x * theta
        return {np.sign((products[a] + products[b]) + products[c]) for a, b, c in ((0, 1, 2), (1, 2, 0), (2, 0, 1))}

    assert len(signs(theta)) > 1
    assert len(signs(to_grid(theta, 1.0))) == 1


def test_the_grid_keeps_theta_and_its_bound():
    rng = np.random.default_rng(1)
    for radius in (1e-3, 0.999, 1.0, 7.0710678, 1024.0):
        theta = rng.uniform(-radius, radius, 50)
        rounded = to_grid(theta, radius)
        assert np.abs(rounded - theta).max() <= radius * 2.0**-32
        np.testing.assert_array_equal(to_grid(rounded, radius), rounded)


def test_one_row_moves_a_count_by_one():
    rng = np.random.default_rng(2)
    rows = fixed_rows(rng, 30, 3, labels=True)
    moved = set()
    for _ in range(200):
        theta = to_grid(rng.normal(size=3), 7.0)
        x, y = rows.x.copy(), rows.y.copy()
        x[0], y[0] = ONE * np.eye(3, dtype=np.int32)[rng.integers(3)] * rng.choice([-1, 1]), rng.choice([-ONE, ONE])
        neighbour = Rows(x, y)
        change = objective_of(neighbour, LogisticLoss()).errors(theta) - objective_of(rows, LogisticLoss()).errors(
            theta
        )
        moved.add(change)
    assert moved <= {-1, 0, 1}
    assert len(moved) > 1


@pytest.mark.parametrize("kind", ["sums", "rows"])
def test_mean_squares_are_within_their_bound(kind):
    rng = np.random.default_rng(3)
    rows = fixed_rows(rng, 40, 4)
    measure = (
        MeanSquareBySums(sums_over(rows)) if kind == "sums" else MeanSquareByRows(objective_of(rows, SquaredLoss()))
    )
    for size in (0.1, 1.0, 50.0):
        theta = rng.normal(size=4) * size
        u = exact_predictions(rows, theta)
        exact = sum((Fraction(int(y), ONE) - v) ** 2 for y, v in zip(rows.y, u, strict=True)) / rows.n
        bound = measure.error_bound(float(np.abs(theta).max()))
        assert abs(Fraction(measure.value(theta)) - exact) <= bound < 1e-8 * (1 + size) ** 2


def test_a_perfect_fit_is_not_negative():
    rows = Rows(np.full((3, 1), ONE // 3, dtype=np.int32), np.full(3, ONE // 3, dtype=np.int32))
    assert 0.0 <= MeanSquareBySums(sums_over(rows)).value(np.array([1.0])) < 1e-14


def test_mean_square_sensitivity_is_attained_and_never_exceeded():
    rng = np.random.default_rng(4)
    rows = fixed_rows(rng, 20, 3)
    worst = 0.0
    for _ in range(400):
        theta = rng.normal(size=3) * rng.choice([0.1, 1.0, 5.0])
        m = float(np.abs(theta).max())
        pair = []
        for _ in range(2):
            x, y = rows.x.copy(), rows.y.copy()
            if rng.random() < 0.5:  # a corner: the largest coordinate, against or along the target
                j = int(np.abs(theta).argmax())
                x[0], y[0] = 0, ONE * rng.choice([-1, 0, 1])
                x[0, j] = ONE * rng.choice([-1, 0, 1])
            else:
                x[0], y[0] = rng.integers(-ONE // 3, ONE // 3, 3), rng.integers(-ONE, ONE + 1)
            pair.append(MeanSquareBySums(sums_over(Rows(x, y))).value(theta))
        share = abs(pair[0] - pair[1]) / mean_square_sensitivity(m, 20)
        assert share <= 1 + 1e-9
        worst = max(worst, share)
    assert worst > 0.999
