"""Frames: lengths and sums in them are exact, and models predict the same from everywhere."""

from __future__ import annotations

import numpy as np
import pytest

from expost.mechanisms.descent.clipping import Frame, typical_length
from expost.table.rows import ONE
from expost.table.shape import Block, Geometry

UNIT = int(ONE / np.sqrt(5))
SHAPE = Geometry((Block(3, "box", UNIT / ONE), Block(4, "l1", UNIT / ONE)), 1.0, "blocks", constant=0)


def rows(n=200, seed=0):
    rng = np.random.default_rng(seed)
    x = np.zeros((n, 7))
    x[:, 0] = UNIT
    x[:, 1:3] = rng.choice([-UNIT, UNIT, 0, 1, -1, UNIT // 3], (n, 2))
    x[np.arange(n), rng.integers(3, 7, n)] = UNIT
    return x


def moved(stretch=4):
    return Frame.of(SHAPE, stretch).moved(np.array([9.0, -0.7, 0.2, 0.01, -5.0, 0.3, 0.2]))


def test_the_centre_stays_where_rows_can_be_and_leaves_the_constant():
    frame = moved()
    assert frame.centre[0] == 0
    assert (np.abs(frame.centre) <= frame.weights * UNIT).all()
    assert frame.weights.tolist() == [1, 4, 4, 1, 1, 1, 1]


@pytest.mark.parametrize("frame", [Frame.of(SHAPE, 4), moved()], ids=["at zero", "moved"])
def test_lengths_and_sums_are_those_of_the_rows_themselves(frame):
    x = rows()
    whole = x.astype(np.int64).astype(object)
    tilde = (whole * frame.weights.astype(object) - frame.centre.astype(object)).tolist()
    squares = [sum(value * value for value in row) for row in tilde]
    np.testing.assert_allclose(frame.lengths(x) ** 2, squares, rtol=1e-15)
    slopes = np.random.default_rng(1).integers(-4096, 4096, len(x)).tolist()
    total = (np.array(slopes)[:, None] * x.astype(np.int64)).sum(axis=0)
    assert frame.coordinates(total) == [sum(s * row[j] for s, row in zip(slopes, tilde, strict=True)) for j in range(7)]


def test_a_model_predicts_the_same_from_everywhere():
    frame, x = moved(), rows()
    psi = np.random.default_rng(2).normal(size=7)
    seen = (x * frame.weights - frame.centre) @ psi
    np.testing.assert_allclose(x @ frame.hypothesis(psi), seen, rtol=1e-9, atol=1e-6)


def test_numbers_that_are_many_are_not_stretched():
    many = Geometry((Block(60, "box", 0.12),), 1.0, "blocks", constant=0)
    assert set(Frame.of(many, 4).weights.tolist()) == {1}


def test_without_a_constant_it_cannot_be_moved():
    plain = Geometry((Block(3, "box", 0.5),), 1.0, "blocks")
    frame = Frame.of(plain, 4)
    assert not frame.movable
    assert frame.coordinates([1, 2, 3]) == [1, 2, 3]
    assert 0 < typical_length(plain, 4, centred=True) < 1
