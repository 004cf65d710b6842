"""How long noise that follows a shape gets, against draws of it."""

from __future__ import annotations

import numpy as np
import pytest

from expost.mechanisms.objective.draws import BlockNoise, _moments, block_noise
from expost.noise.source import SeededSource
from tests.helpers import at_most_by_chance

DRAWS = 4000


@pytest.mark.parametrize("norm", ["box", "l1", "l2"])
@pytest.mark.parametrize("size", [1, 4])
def test_moments(norm, size):
    """Six standard errors: false alarms have probability 2e-9 where the mean of draws is normal."""
    source = SeededSource(3)
    squares = np.array([np.sum(block_noise([(size, norm)], [1.0], source) ** 2) for _ in range(DRAWS)])
    square, fourth = _moments(size, norm)
    error = np.sqrt((fourth - square**2) / DRAWS)
    assert abs(squares.mean() - square) < 6 * error
    assert abs(squares.mean() - 0.7 * square) > 6 * error  # what it would catch
    assert np.mean(squares**2) == pytest.approx(fourth, rel=0.5)


def test_few_draws_are_longer():
    """Binomial, false alarm RARE; at two thirds of the bound there are too many."""
    blocks, weights, source = [(3, "box"), (6, "l1"), (4, "l2")], [1.0, 2.0, 0.5], SeededSource(1)
    lengths = np.array([np.linalg.norm(block_noise(blocks, weights, source)) for _ in range(DRAWS)])
    bound = BlockNoise(blocks, weights).norm(0.1)
    assert np.count_nonzero(lengths > bound) <= at_most_by_chance(DRAWS, 0.1)
    assert np.count_nonzero(lengths > bound / 1.5) > at_most_by_chance(DRAWS, 0.1)


@pytest.mark.parametrize(
    "blocks", [[(5, "l1")], [(8, "l2")], [(1, "l2")], [(6, "box")], [(3, "box"), (6, "l1"), (9, "l1")]]
)
def test_functions_scatter_no_further(blocks):
    """Of slope 1: coordinates, lengths, largest entries, and folded sums. Deviations of 4,000 draws are off by 6 %."""
    source, weights = SeededSource(4), [0.5 + j for j in range(len(blocks))]
    draws = np.array([block_noise(blocks, weights, source) for _ in range(DRAWS)])
    mixed = draws.sum(axis=1) / np.sqrt(draws.shape[1])
    made = [*draws.T, np.linalg.norm(draws, axis=1), np.abs(draws).max(axis=1), mixed, np.abs(mixed)]
    bound, most = BlockNoise(blocks, weights).spread, max(np.std(values) for values in made)
    assert most < 1.06 * bound
    assert most > 1.06 * bound / 2  # what it would catch
