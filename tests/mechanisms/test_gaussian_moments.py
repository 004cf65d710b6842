"""Norms of Gaussian noise on moments: bounds hold for averages of exact draws, also coarse ones, and are not lavish."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
from scipy import stats

from expost.mechanisms.moments.gaussian_moments import NoiseBound, matrix_norm, vector_norm
from expost.noise import SeededSource, discrete_gaussian

RUNS = 300


@cache
def norms(p, sigma, seed):
    """Operator norms of averages of two exact draws, one at twice the precision of the other, in units of σ̄."""
    first, second = sigma * math.sqrt(3.0), sigma * math.sqrt(1.5)
    source, found = SeededSource(seed), []
    upper = np.triu_indices(p)
    half = np.where(upper[0] == upper[1], 1.0, math.sqrt(0.5))
    for _ in range(RUNS):
        matrix = np.zeros((p, p))
        for scale, weight in ((first, 1 / 3), (second, 2 / 3)):
            for mark in np.unique(half):
                places = half == mark
                drawn = discrete_gaussian(scale * mark, int(places.sum()), random_state=source)
                matrix[upper[0][places], upper[1][places]] += weight * drawn
        found.append(np.abs(np.linalg.eigvalsh(matrix, UPLO="U")).max())
    return np.array(found) / sigma


@pytest.mark.parametrize(("p", "lavish"), [(1, 1.02), (3, 1.35), (12, 1.35)])
def test_matrix_norms_hold_and_are_not_lavish(p, lavish):
    """At a failure rate of one in ten; false alarm below one seed in 10⁶."""
    found, bound = norms(p, 1000.0, p), matrix_norm(p, 0.1)
    broken = int((found > bound).sum())
    assert stats.binomtest(broken, RUNS, 0.1, alternative="greater").pvalue > 1e-6
    assert bound < lavish * np.quantile(found, 0.9) + 0.1


def test_coarse_grids_are_covered():
    """σ̄ of one unit: draws are whole numbers then, and two units for each entry make up for it."""
    found = norms(4, 1.0, 2)
    bound = NoiseBound.of(4, 1.0, 1.0, 1.0, 0.2)
    broken = int((found > bound.matrix).sum())
    assert stats.binomtest(broken, RUNS, 0.1, alternative="greater").pvalue > 1e-6


def test_control_half_the_variance():
    """As if entries on the diagonal had no more variance than those off it, and those half."""
    p = 12
    wrong = matrix_norm(p, 0.1) / math.sqrt(2)
    broken = int((norms(p, 1000.0, p) > wrong).sum())
    assert stats.binomtest(broken, RUNS, 0.1, alternative="greater").pvalue < 1e-6


def test_vectors():
    lengths = np.linalg.norm(np.random.default_rng(0).normal(size=(4000, 6)), axis=1)
    assert abs((lengths > vector_norm(6, 0.1)).mean() - 0.1) < 5 * math.sqrt(0.09 / 4000)


def test_every_direction_is_covered():
    """‖Bθ − b‖ for the θ that is worst for this very noise."""
    bound = NoiseBound(2.0, 3.0)
    assert bound.lever(0.0) >= 3.0
    assert bound.lever(2.0) >= 7.0
