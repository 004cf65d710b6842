"""Noisy gradients: what a step costs at most over every pair of rows, and what it costs exactly."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from expost.mechanisms.descent.clipping import Clip, ClippedGradients, Frame, SlopeTable
from expost.mechanisms.descent.gradient_descent import GradientDescent, GradientNoise
from expost.noise import SeededSource
from expost.solve.losses import HuberLoss, SquaredLoss
from expost.solve.problem import Problem
from expost.table.rows import ONE, Rows
from expost.table.shape import Block, Geometry

UNIT = 1 / math.sqrt(4)
SHAPE = Geometry((Block(2, "box", UNIT), Block(3, "l1", UNIT), Block(2, "l2", UNIT)), 1.0, "blocks", scale=2.0)
CORNER = int(ONE * UNIT)
CLIP = Clip.of(Frame.of(SHAPE), 0.1)


def extreme_rows():
    """Corners of the box, single indicators, points of the circle: what a row of that shape can be."""
    for a in (-1, 1):
        for b in (-1, 1):
            for j in range(3):
                for angle in np.linspace(0, np.pi, 5):
                    indicator = [CORNER if k == j else 0 for k in range(3)]
                    circle = [int(CORNER * np.cos(angle)), int(CORNER * np.sin(angle))]
                    yield [a * CORNER, b * CORNER, *indicator, *circle]


def largest_cost(noise):
    """ρ over pairs of extreme rows and targets, from the sums themselves."""
    table = SlopeTable.of(HuberLoss(0.25))
    sums = []
    for row in extreme_rows():
        for y in (-ONE, ONE):
            one = Rows(np.array([row], dtype=np.int32), np.array([y], dtype=np.int32), norm="l2")
            sums.append(ClippedGradients(one, table).total(np.zeros(7), CLIP) / noise.deviation)
    pairs = np.array(sums)
    distances = np.linalg.norm(pairs[:, None] - pairs[None], axis=2)
    return float((distances**2).max() / 2)


def test_no_pair_of_rows_costs_more_and_some_cost_it():
    worst = largest_cost(GradientNoise(7, CLIP.most, 0.01))
    assert 0.99 * 0.01 < worst <= 0.01


def test_control_the_length_of_one_row_is_not_enough():
    """Noise for C in the place of 2C: a replaced row moves the sum twice as far, and costs four times as much."""
    assert largest_cost(GradientNoise(7, CLIP.most // 2, 0.01)) > 0.039


def test_noise_has_the_deviation_that_is_charged():
    made = GradientNoise(7, CLIP.most, 0.01)
    assert math.isclose(made.deviation, 2 * CLIP.most / math.sqrt(2 * 0.01), rel_tol=1e-9)
    drawn = made.draws(4000, SeededSource(1)).astype(float)
    assert np.allclose(drawn.std(axis=0), made.deviation, rtol=0.06)  # five deviations


def test_rows_that_do_not_declare_their_constant_are_refused():
    """A row that happens to have it says nothing about the one that could stand in its place."""
    shape = Geometry((Block(3, "box", 0.5),), 1.0, "blocks", constant=0)
    problem = Problem.of(HuberLoss(0.25), n=1, p=3, regularization=1.0)
    x, y, half = np.array([[ONE // 2, 0, 0]], dtype=np.int32), np.array([0], dtype=np.int32), ONE // 2
    rows = Rows(x, y, "l2", shape=((3, "box", half),), constant=(0, half))
    GradientDescent(shape).on(rows, problem)
    for other in (None, (0, half - 1)):
        where = np.where(np.arange(3) == 0, half if other is None else other[1], 0)[None].astype(np.int32)
        with pytest.raises(ValueError, match="do not declare the constant"):
            GradientDescent(shape).on(replace(rows, x=where, constant=other), problem)


def test_refusals():
    rows = Rows(np.array([[ONE, 0, 0, 0, 0, 0, 0]], dtype=np.int32), np.array([0], dtype=np.int32), norm="l2")
    problem = Problem.of(HuberLoss(0.25), n=1, p=7, regularization=1.0)
    with pytest.raises(ValueError, match="do not declare the shape"):
        GradientDescent(SHAPE).on(rows, problem)
    with pytest.raises(ValueError, match="bounded slope"):
        GradientDescent(SHAPE).require(Problem.of(SquaredLoss(), n=1, p=7, regularization=1.0))
    with pytest.raises(ValueError, match="tested"):
        GradientDescent(SHAPE).theory_epsilon(problem, 0.1)
    with pytest.raises(ValueError, match="shape of the rows"):
        GradientDescent.of(noise="laplace", full_matrix=False)
