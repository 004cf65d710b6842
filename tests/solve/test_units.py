"""Integer arithmetic: against decimal and rational arithmetic, and against floating point."""

from __future__ import annotations

import decimal
from fractions import Fraction

import numpy as np
import pytest

from expost.solve.ball import _jacobi, symmetric_eigen
from expost.solve.exact import eliminate, on_ball
from expost.solve.losses import Loss, SquaredLoss, array_to_units, norm, sigmoid, to_floats, to_units
from tests.solve.helpers import LOSSES


def test_floats_survive_the_way_there_and_back() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=100) * 10.0 ** rng.uniform(-10, 10, size=100)
    np.testing.assert_array_equal(to_floats(array_to_units(values, 120), 120), values)
    assert to_units(-0.1, 3) == -1  # down, not towards zero
    assert norm(np.array([2, 3], dtype=object)) == 3


@pytest.mark.parametrize("bits", [100, 340])
def test_exponentials_are_right_to_a_unit(bits: int) -> None:
    rng = np.random.default_rng(1)
    z = np.concatenate([[0.0, np.log(2.0)], rng.uniform(0, 5, size=50), 10.0 ** rng.uniform(-9, 7.5, size=50)])
    units = array_to_units(z, bits)
    with decimal.localcontext() as context:
        context.prec = 200
        one = decimal.Decimal(2) ** bits
        for unit, falling, rising in zip(units, sigmoid(-units, bits), sigmoid(units, bits), strict=True):
            exact = (-decimal.Decimal(unit) / one).exp()
            assert abs(falling - one * exact / (1 + exact)) < 2
            assert abs(rising - one / (1 + exact)) < 2
    np.testing.assert_array_equal(sigmoid(-units, bits) <= (1 << bits) // 2, True)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_slopes_in_units_are_those_in_floating_point(loss: Loss) -> None:
    rng = np.random.default_rng(2)
    u = np.concatenate([rng.normal(size=100), 50.0 * rng.normal(size=100), [0.0, 0.5, 0.9, 1.0, 1.1]])
    y = np.sign(rng.normal(size=u.size)) * (1.0 if loss.labels == "binary" else rng.uniform(size=u.size))
    slopes = to_floats(loss.derivative_in_units(array_to_units(u, 200), array_to_units(y, 200), 200), 200)
    np.testing.assert_allclose(slopes, loss.derivative(u, y), rtol=16 * 2.0**-53, atol=1e-15)
    assert loss.has_units


def test_elimination_against_rational_arithmetic() -> None:
    rng = np.random.default_rng(3)
    for p in (1, 2, 7):
        a = rng.integers(-5, 6, size=(p, p))
        matrix = (a @ a.T + np.eye(p, dtype=np.int64)).astype(object)
        exact = [Fraction(int(v)) for v in rng.integers(-9, 10, size=p)]
        vector = np.array([sum(int(m) * e for m, e in zip(row, exact, strict=True)) for row in matrix], dtype=object)
        solved = eliminate(matrix << 200, np.array([int(v) for v in vector], dtype=object) << 200, 200)
        assert all(
            abs(Fraction(int(s), 1 << 200) - e) < Fraction(1, 1 << 150) for s, e in zip(solved, exact, strict=True)
        )


@pytest.mark.parametrize("power", [1, 3])
@pytest.mark.parametrize("share", [1e-9, 0.3, 0.999999, 1.0, 1.5])
@pytest.mark.parametrize("slope", [1.0, 1e-30, 1e30])  # the right one, and useless ones: bisection is left
def test_the_multiplier_is_found(power: int, share: float, slope: float) -> None:
    bits, asked = 300, []

    def solve(nu: int) -> np.ndarray:
        asked.append(nu)
        return np.array([(1 << (power + 1) * bits) // ((1 << bits) + nu) ** power], dtype=object)  # (1 + ν)^−power

    def rate(theta: np.ndarray, nu: int) -> float:
        return slope * power / (1.0 + nu / (1 << bits))

    theta = on_ball(solve, rate, to_units(share, bits), 1 << bits + 40, 1 << bits, bits)
    assert to_floats(theta, bits)[0] == pytest.approx(min(share, 1.0), rel=2.0**-52)
    assert len(asked) < (20 if slope == 1.0 else 220)


def test_eigenvalues_where_lapack_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(4)
    matrices = [np.zeros((3, 3)), np.eye(4), np.diag([3.0, -1.0]), np.ones((5, 5))]
    for p in (1, 2, 9, 30):
        a = rng.normal(size=(p, p)) * 10.0 ** rng.uniform(-8, 8, size=(p, 1))
        matrices.append(a + a.T)
    expected = [np.linalg.eigh(matrix)[0] for matrix in matrices]

    def gives_up(matrix: np.ndarray) -> None:
        raise np.linalg.LinAlgError("Eigenvalues did not converge")

    monkeypatch.setattr(np.linalg, "eigh", gives_up)
    for matrix, known in zip(matrices, expected, strict=True):
        values, vectors = symmetric_eigen(matrix)
        scale = np.abs(matrix).max() + 1e-300
        np.testing.assert_allclose(values / scale, known / scale, atol=1e-13)
        np.testing.assert_allclose(vectors.T @ vectors, np.eye(len(matrix)), atol=1e-13)
        np.testing.assert_allclose(vectors @ np.diag(values) @ vectors.T / scale, matrix / scale, atol=1e-12)
    assert _jacobi(np.ones((1, 1)))[0] == 1.0


def test_a_loss_without_units_says_so() -> None:
    class Plain(SquaredLoss):
        derivative_in_units = Loss.derivative_in_units

    assert not Plain().has_units
    with pytest.raises(NotImplementedError):
        Plain().derivative_in_units(np.zeros(1, object), np.zeros(1, object), 64)
