"""The tail bound against exact sums."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from expost.noise.gaussian import deviations, reach


def exact_tail(sigma, m):
    grid = np.arange(-int(60 * sigma) - 60, int(60 * sigma) + 61)
    mass = np.exp(-0.5 * (grid / sigma) ** 2)
    return mass[grid >= m].sum() / mass.sum()


@pytest.mark.parametrize("sigma", [0.2, 0.7, 1.0, 3.0, 57.0])
@pytest.mark.parametrize("probability", [0.4, 0.1, 1e-3, 1e-9])
def test_reach_holds(sigma, probability):
    assert exact_tail(sigma, reach(sigma, probability)) <= probability


def test_control_continuous_tail_is_too_short():
    """Without the unit that the lemma takes, the bound is broken: P(X ≥ m) exceeds P(N ≥ m)."""
    sigma = 1.0
    broken = [p for p in (0.4, 0.16, 0.1, 0.024) if exact_tail(sigma, reach(sigma, p) - 1) > p]
    assert broken


def test_deviations():
    for probability in (0.4, 1e-3, 1e-9):
        assert stats.norm.sf(deviations(probability)) <= probability
    assert deviations(0.7) == 0.0
