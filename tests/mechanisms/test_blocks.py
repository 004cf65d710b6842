"""Noise of a shape against its exact laws, and the promise that its density hides a row."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from expost.mechanisms.objective.draws import block_noise
from expost.noise import SeededSource
from expost.noise.spherical import uniforms
from expost.table.shape import Block, Geometry
from tests.noise.helpers import RARE

ORDERS = {"box": np.inf, "l1": 1, "l2": 2}
DRAWS = 4000
SHAPES = [("box", 1), ("box", 4), ("l1", 1), ("l1", 5), *(("l2", size) for size in (1, 2, 3, 4, 7))]
each_shape = pytest.mark.parametrize(("norm", "size"), SHAPES)


def draws(norm: str, size: int, weight: float = 1.0, seed: int = 0) -> np.ndarray:
    source = SeededSource(seed)
    return np.array([block_noise([(size, norm)], [weight], source) for _ in range(DRAWS)])


def density_norm_law(sample: np.ndarray, norm: str) -> float:
    """p-value of the law of the norm: any density ∝ e^(−‖b‖) has a norm of density ∝ r^(d−1)e^(−r)."""
    lengths = np.linalg.norm(sample, ord=ORDERS[norm], axis=1)
    return float(stats.kstest(lengths, stats.gamma(sample.shape[1]).cdf).pvalue)


@each_shape
def test_the_norm_is_gamma(norm: str, size: int) -> None:
    # fails by chance with probability RARE
    assert density_norm_law(draws(norm, size), norm) > RARE
    assert density_norm_law(draws(norm, size, weight=8.0) * 8.0, norm) > RARE


def test_a_box_of_one_exponential_too_few_is_noticed() -> None:
    source = SeededSource(1)
    size = 4
    wrong = np.array(
        [-np.log(uniforms(size, source)).sum() * (2 * uniforms(size, source) - 1) for _ in range(DRAWS)]
    )  # Gamma(d) times the cube: a factor short
    assert density_norm_law(wrong, "box") < RARE


@each_shape
def test_the_direction_is_independent_of_the_norm_and_right(norm: str, size: int) -> None:
    # b/‖b‖ of a density that depends on ‖b‖ alone is distributed by the cone measure; each fails by chance with RARE
    sample = draws(norm, size, seed=2)
    lengths = np.linalg.norm(sample, ord=ORDERS[norm], axis=1)
    first = sample[:, 0] / lengths
    assert stats.binomtest(int((first > 0).sum()), DRAWS).pvalue > RARE
    if size > 1:
        assert stats.spearmanr(np.abs(first), lengths).pvalue > RARE
        tops = np.abs(sample).argmax(axis=1)
        assert stats.chisquare(np.bincount(tops, minlength=size)).pvalue > RARE


@pytest.mark.parametrize("size", [2, 3, 4, 7])
def test_every_coordinate_of_a_direction_is_beta(size: int) -> None:
    """Whichever pair it is of, and the one that is in none where their number is odd. RARE each."""
    sample = draws("l2", size, seed=8)
    for column in (sample / np.linalg.norm(sample, axis=1)[:, None]).T:
        half = (size - 1) / 2
        assert stats.kstest((1 + column) / 2, stats.beta(half, half).cdf).pvalue > RARE
        assert stats.kstest((1 + column) / 2, stats.beta(half + 2, half + 2).cdf).pvalue < RARE
    signs = (sample > 0) @ (1 << np.arange(size))
    assert stats.chisquare(np.bincount(signs, minlength=1 << size)).pvalue > RARE


@pytest.mark.parametrize("size", [1, 3])
def test_marginals(size: int) -> None:
    # ℓ₁: each coordinate is Laplace. Box: a uniform times an independent Gamma(d + 1), by quadrature. RARE each.
    assert stats.kstest(draws("l1", size, seed=3)[:, -1], stats.laplace.cdf).pvalue > RARE
    points = (np.arange(4000) + 0.5) / 4000
    reach = stats.gamma(size + 1).ppf(points)
    cdf = np.vectorize(lambda b: np.clip((b / reach + 1) / 2, 0, 1).mean())
    assert stats.kstest(draws("box", size, seed=4)[:800, 0], cdf).pvalue > RARE
    assert stats.kstest(draws("box", size, seed=4)[:, 0], stats.norm(scale=np.sqrt(2)).cdf).pvalue < RARE


@each_shape
def test_second_moments_are_those_of_the_block(norm: str, size: int) -> None:
    squares = (draws(norm, size, weight=2.0, seed=5) ** 2).sum(axis=1) * 4.0
    square = Block(size, norm, 1.0).square
    # a mean of 4000 terms with a finite variance: five of its standard errors, 6·10⁻⁷ two-sided
    assert abs(squares.mean() - square) < 5 * squares.std() / np.sqrt(DRAWS)
    assert abs(squares.mean() - 0.7 * square) > 5 * squares.std() / np.sqrt(DRAWS)


def test_blocks_are_independent_and_in_order() -> None:
    source = SeededSource(6)
    weights = [1.0, 100.0, 0.01]
    sample = np.array([block_noise([(2, "box"), (3, "l1"), (2, "l2")], weights, source) for _ in range(DRAWS)])
    assert sample.shape == (DRAWS, 7)
    parts = [sample[:, :2], sample[:, 2:5], sample[:, 5:]]
    for part, weight, norm in zip(parts, weights, ORDERS, strict=True):
        assert density_norm_law(part * weight, norm) > RARE
    sizes = [np.linalg.norm(part, axis=1) for part in parts]
    for i, j in ((0, 1), (0, 2), (1, 2)):
        assert stats.spearmanr(sizes[i], sizes[j]).pvalue > RARE


def log_density(geometry: Geometry, weights: tuple[float, ...], b: np.ndarray) -> float:
    total, place = 0.0, 0
    for block, weight in zip(geometry.blocks, weights, strict=True):
        total -= weight * np.linalg.norm(b[place : place + block.size], ord=ORDERS[block.norm])
        place += block.size
    return total


def extreme(rng: np.random.Generator, block: Block) -> np.ndarray:
    """A vector of the block's radius, often a corner of its ball."""
    v = rng.choice([-1.0, 1.0], block.size) if rng.random() < 0.5 else rng.normal(size=block.size)
    if rng.random() < 0.3:
        v = np.eye(block.size)[rng.integers(block.size)]
    return v * (block.radius / np.linalg.norm(v, ord=ORDERS[block.norm]))


def largest_move(geometry: Geometry, weights: tuple[float, ...], slope: float) -> float:
    """The most that a log density moves when one row is replaced, over random and extreme rows, slopes and noise."""
    rng, worst = np.random.default_rng(7), 0.0
    for _ in range(600):
        x, other = (np.concatenate([extreme(rng, block) for block in geometry.blocks]) for _ in range(2))
        other = -x if rng.random() < 0.3 else other
        v = slope * (rng.choice([1.0, rng.random()]) * x - rng.choice([1.0, rng.random()]) * other)
        b = rng.choice([0.0, 1.0, 50.0]) * rng.normal(size=x.size) if rng.random() < 0.5 else 3.0 * v
        worst = max(worst, abs(log_density(geometry, weights, b) - log_density(geometry, weights, b + v)))
    return worst


@pytest.mark.parametrize(("epsilon", "slope"), [(0.1, 0.5), (2.0, 1.0), (0.7, 0.25)])
def test_a_row_moves_the_log_density_by_epsilon_at_most(epsilon: float, slope: float) -> None:
    shapes = [
        Geometry((Block(3, "box", 0.5), Block(4, "l1", 0.25), Block(2, "l1", 0.5)), 1.0, "blocks"),
        Geometry((Block(4, "l2", 1.0),), 1.0, "ball"),
        Geometry((Block(5, "l1", 0.8),), 1.0, "ℓ₁ ball"),
    ]
    for geometry in shapes:
        move = largest_move(geometry, geometry.weights(epsilon, slope), slope)
        assert 0.999 * epsilon < move <= epsilon * (1 + 1e-14)  # attained
        halved = largest_move(geometry, geometry.weights(epsilon, slope / 2), slope)
        assert halved > 1.99 * epsilon  # a slope stated too small is noticed
