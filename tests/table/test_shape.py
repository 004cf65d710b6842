"""Shares, weights and the size of noise of a shape, against exact arithmetic and small perturbations."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st

from expost.table.shape import Block, Geometry, l1_ball, l2_ball

blocks = st.builds(
    Block,
    size=st.integers(1, 200),
    norm=st.sampled_from(["box", "l1", "l2"]),
    radius=st.floats(1e-6, 1e6),
)
geometries = st.lists(blocks, min_size=1, max_size=8).map(lambda parts: Geometry(tuple(parts), 1.0, "any"))


def noise_square(geometry: Geometry, shares: tuple[float, ...]) -> float:
    """E‖b‖² at κ = ½ and ε = 1, from the law of each block and its share."""
    return math.fsum(
        block.square * (block.radius / share) ** 2 for block, share in zip(geometry.blocks, shares, strict=True)
    )


@given(geometries)
def test_shares_are_positive_and_add_up_to_one(geometry: Geometry) -> None:
    assert min(geometry.shares) > 0
    assert abs(sum(map(Fraction, geometry.shares)) - 1) < Fraction(1, 10**14)


@given(geometries, st.data())
def test_shares_are_the_best(geometry: Geometry, data: st.DataObject) -> None:
    best = noise_square(geometry, geometry.shares)
    changes = data.draw(st.lists(st.floats(-0.5, 0.5), min_size=len(geometry.blocks), max_size=len(geometry.blocks)))
    moved = [share * math.exp(change) for share, change in zip(geometry.shares, changes, strict=True)]
    others = tuple(share / math.fsum(moved) for share in moved)
    assert noise_square(geometry, others) >= best * (1 - 1e-12)


def test_shares_by_the_square_root_would_not_be_the_best() -> None:
    geometry = Geometry((Block(5, "box", 1.0), Block(40, "l1", 0.5)), 2.0, "two")
    roots = [math.sqrt(block.square * block.radius**2) for block in geometry.blocks]
    assert noise_square(geometry, tuple(root / sum(roots) for root in roots)) > 1.001 * noise_square(
        geometry, geometry.shares
    )


@given(geometries)
def test_the_noise_is_that_of_its_shares(geometry: Geometry) -> None:
    assert geometry.noise**2 == pytest.approx(noise_square(geometry, geometry.shares), rel=1e-12)


@given(geometries, st.floats(1e-9, 1e3), st.floats(1e-6, 1.0))
def test_weights_never_add_up_to_more_than_epsilon(geometry: Geometry, epsilon: float, slope: float) -> None:
    spent = sum(
        Fraction(weight) * 2 * Fraction(slope) * Fraction(block.radius)
        for weight, block in zip(geometry.weights(epsilon, slope), geometry.blocks, strict=True)
    )
    assert Fraction(epsilon) * (1 - Fraction(1, 10**11)) < spent <= Fraction(epsilon)


@pytest.mark.parametrize("size", [1, 2, 3, 10])
def test_squares_are_integrals(size: int) -> None:
    # E‖b‖₂² = E[R²]·E‖direction‖₂², by the radial law Gamma(d) and, in a box, d coordinates of one face
    second = size * (size + 1)  # E R² for Gamma(d)
    face = 1 + (size - 1) / 3  # one coordinate is ±1, the others are uniform
    assert Block(size, "box", 1.0).square == pytest.approx(second * face)
    assert Block(size, "l2", 1.0).square == pytest.approx(second)
    assert Block(size, "l1", 1.0).square == pytest.approx(2 * size)


def test_one_column_is_the_same_in_every_norm() -> None:
    assert len({Geometry((Block(1, norm, 0.7),), 1.0, norm).noise for norm in ("box", "l1", "l2")}) == 1


def test_balls() -> None:
    for p in (1, 4, 50):
        assert l1_ball(p).columns == l2_ball(p).columns == p
        assert l1_ball(p).noise == pytest.approx(math.sqrt(2 * p))
        assert l2_ball(p).noise == pytest.approx(math.sqrt(p * (p + 1)))


@pytest.mark.parametrize(
    ("size", "norm", "radius"),
    [(0, "l1", 1.0), (2, "l3", 1.0), (2, "l1", 0.0), (2, "l1", -1.0), (2, "box", np.inf), (2, "box", np.nan)],
)
def test_blocks_that_make_no_sense(size: int, norm: str, radius: float) -> None:
    with pytest.raises(ValueError, match="block needs"):
        Block(size, norm, radius)
