"""The quantile of a Laplace vector's length: above the truth, and not by much."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, stats

from expost.noise.tails import laplace_norm

RARE = 1e-6


def tail_of_two(q: float) -> float:
    """P(b₁² + b₂² > q²) for Lap(1) variables: |b| is exponential."""
    inside, _ = integrate.quad(lambda y: math.exp(-y) * -math.expm1(-math.sqrt(q * q - y * y)), 0.0, q, limit=200)
    return 1.0 - inside


@pytest.mark.parametrize("gamma", [0.5, 0.1, 0.01, 1e-4, 1e-8])
def test_one_column_is_exact(gamma: float) -> None:
    assert math.exp(-laplace_norm(1, gamma)) == pytest.approx(gamma, rel=1e-10)
    assert math.exp(-laplace_norm(1, gamma)) <= gamma


@pytest.mark.parametrize("gamma", [0.5, 0.1, 0.01, 1e-4, 1e-6])
def test_two_columns_by_integration(gamma: float) -> None:
    q = laplace_norm(2, gamma)
    assert tail_of_two(q) <= gamma * (1 + 1e-9)
    assert tail_of_two(0.99 * q) > gamma  # not wasteful, and a quantile a hundredth too short is noticed


@pytest.mark.parametrize("p", [2, 5, 38, 104])
@pytest.mark.parametrize("gamma", [0.3, 0.06])
def test_simulated_lengths(p: int, gamma: float) -> None:
    runs = 20_000
    lengths = np.linalg.norm(np.random.default_rng(p).laplace(size=(runs, p)), axis=1)
    q = laplace_norm(p, gamma)
    # one-sided binomial tests: each raises a false alarm with probability 10⁻⁶
    assert (lengths > q).sum() <= stats.binom.isf(RARE, runs, gamma)
    assert (lengths > q / 1.02).sum() >= stats.binom.isf(1 - RARE, runs, gamma)  # within a fiftieth
    assert (lengths > 0.92 * q).sum() > stats.binom.isf(RARE, runs, gamma)  # shorter ones are noticed


def test_it_grows_with_columns_and_with_certainty() -> None:
    by_columns = [laplace_norm(p, 0.1) for p in (1, 2, 3, 10, 30, 100, 300)]
    assert by_columns == sorted(by_columns)
    by_gamma = [laplace_norm(7, gamma) for gamma in (0.5, 0.1, 1e-2, 1e-4, 1e-8)]
    assert by_gamma == sorted(by_gamma)
    assert laplace_norm(300, 0.1) == pytest.approx(math.sqrt(600), rel=0.1)  # E b² is 2


def test_what_cannot_be_had_is_refused() -> None:
    for gamma in (0.0, 1.0, -0.1, math.nan):
        with pytest.raises(ValueError, match="strictly between"):
            laplace_norm(3, gamma)


def test_where_the_tail_drowns_in_rounding_a_union_over_coordinates_holds() -> None:
    found = laplace_norm(50, 1e-13)
    assert math.sqrt(50) * math.log(50 / 1e-13) <= found < laplace_norm(50, 1e-9) * 20
