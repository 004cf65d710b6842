"""Minima over the ball that are worked out only if somebody asks."""

from __future__ import annotations

import numpy as np
import pytest

from expost.mechanisms.moments.statistics import BallMinimum, Layout
from expost.passes.sums import SUM_UNIT


def test_a_minimum_said_to_lie_on_the_sphere_lies_there():
    """Exactly singular: the noisy matrix plus n·λ has a zero on its diagonal, and a minimum inside exists."""
    layout, radius = Layout(2), 3.0
    values = np.array([-2, 4, 0, 0, 1]) * SUM_UNIT  # A₁₁, A₂₂, 2·A₁₂, moments
    theta = BallMinimum(values, layout, n=4, regularization=0.5, radius=radius)
    assert theta.on_sphere
    assert np.linalg.norm(np.asarray(theta)) == pytest.approx(radius, rel=1e-9)
    nowhere = BallMinimum(values * [1, 1, 1, 0, 0], layout, n=4, regularization=0.5, radius=radius)
    assert np.linalg.norm(np.asarray(nowhere)) == pytest.approx(radius, rel=1e-9)
    inside = BallMinimum(values + SUM_UNIT, layout, n=4, regularization=0.5, radius=radius)
    assert not inside.on_sphere
    assert np.linalg.norm(np.asarray(inside)) < radius
