"""Moments released again and again: what a release costs at most over pairs of rows, and what an average is worth."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from expost.mechanisms.moments.gaussian_moments import AveragedMoments, MomentNoise, packed
from expost.noise import SeededSource
from expost.passes.sums import SUM_UNIT, sums_over
from expost.table.rows import ONE, MemorySource, Rows
from expost.table.shape import Block, Geometry, l1_ball, l2_ball

UNIT = 1 / math.sqrt(3)
TABLE = Geometry((Block(1, "box", UNIT), Block(3, "l1", UNIT), Block(2, "l2", UNIT)), 1.0, "blocks", scale=1 / UNIT)
BALL = l2_ball(3)


def rows_of(shape):
    """Rows at the edge of a shape, many angles between them, and targets −1 and 1."""
    if shape is BALL:
        angles = np.linspace(0, np.pi, 25)
        return [[math.cos(a), math.sin(a), 0.0] for a in angles]
    corner = UNIT * (1 - 1e-6)
    parts = itertools.product((-1, 1), range(3), (-1, 1), np.linspace(0, 2 * np.pi, 9))
    return [
        [corner * sign, *(corner * way * (j == k) for k in range(3)), corner * math.cos(a), corner * math.sin(a)]
        for sign, j, way, a in parts
    ]


def deviations(noise, rho):
    """The deviations that noise is drawn with, found by drawing it in the place of a recorder."""
    seen = np.zeros(noise.geometry.columns * (noise.geometry.columns + 3) // 2)
    usual = np.ones  # each group is filled with its own deviation
    from expost.mechanisms.moments import gaussian_moments as moments

    kept, moments.discrete_gaussian = moments.discrete_gaussian, lambda sigma, size, random_state: sigma * usual(size)
    try:
        seen[:] = noise.draw(rho, SeededSource(0)).astype(float)
    finally:
        moments.discrete_gaussian = kept
    return seen


def largest_cost(shape, scale):
    """ρ over pairs of rows, from the exact sums and the deviations of the noise."""
    changes = []
    for x in rows_of(shape):
        for y in (-ONE, ONE):
            row = Rows(np.trunc(np.array([x]) * ONE).astype(np.int32), np.array([y], dtype=np.int32), norm="l2")
            changes.append(packed(sums_over(MemorySource(row))).astype(float) / scale)
    pairs = np.array(changes)
    gram = pairs @ pairs.T
    return float((np.diag(gram)[:, None] + np.diag(gram)[None] - 2 * gram).max() / 2)


@pytest.mark.parametrize(("shape", "least"), [(BALL, 0.99), (TABLE, 0.9)])
def test_no_pair_of_rows_costs_more_and_some_cost_nearly_that(shape, least):
    noise = MomentNoise(shape, 1.5)
    assert least * 0.01 < largest_cost(shape, deviations(noise, 0.01)) <= 0.01


def test_control_off_diagonals_stand_for_two():
    """A quarter of the diagonal's variance above it, as if the matrix had one such entry and not two, is too little."""
    scale = deviations(MomentNoise(BALL, 1.5), 0.01)
    scale[3:6] /= math.sqrt(2.0)
    assert largest_cost(BALL, scale) > 0.0105


def test_a_person_with_three_rows_is_nine_times_the_noise_squared():
    one, three = (deviations(MomentNoise(BALL, 1.5, rows=k), 0.01) for k in (1, 3))
    np.testing.assert_allclose(three, 3 * one, rtol=1e-9)


def test_an_average_is_worth_the_sum_of_its_costs():
    """Its deviation is that of one release at the sum, and that is what is drawn; five deviations of 1300 numbers."""
    shape = l1_ball(50)
    noise, rhos = MomentNoise(shape), (0.001, 0.0015, 0.004)
    averaged, source = AveragedMoments(noise), SeededSource(5)
    for rho in rhos:
        averaged.add(noise.draw(rho, source), rho)
    assert math.isclose(averaged.rho, sum(rhos), rel_tol=1e-6)
    assert averaged.rho <= sum(rhos)
    gram, moment = averaged.moments
    entries = np.concatenate([gram[np.triu_indices(50, 1)] * math.sqrt(2.0), np.diag(gram)]) / averaged.sigma
    assert abs(np.mean(entries**2) - 1) < 5 * math.sqrt(2 / entries.size)
    assert abs(np.mean((moment / averaged.tau) ** 2) - 1) < 5 * math.sqrt(2 / 50)


def test_control_equal_weights_throw_precision_away():
    noise, rhos = MomentNoise(l1_ball(50)), (0.001, 0.0015, 0.004)
    equal = sum(noise.sigma(rho) ** 2 for rho in rhos) / 9
    assert equal > 1.3 * noise.sigma(sum(rhos)) ** 2


def test_sums_are_read_back_without_noise():
    """Averaging and scaling lose nothing but a rounding."""
    x, y = np.array([[3, -4], [5, 1]], dtype=np.int32) * 1000, np.array([7, -9], dtype=np.int32)
    sums = sums_over(MemorySource(Rows(x, y)))
    averaged = AveragedMoments(MomentNoise(l1_ball(2)))
    for rho in (0.1, 0.37):
        averaged.add(packed(sums), rho)
    gram, moment = averaged.moments
    np.testing.assert_allclose(gram * SUM_UNIT, x.T.astype(float) @ x, rtol=1e-11)
    np.testing.assert_allclose(moment * SUM_UNIT, x.T.astype(float) @ y, rtol=1e-11)
