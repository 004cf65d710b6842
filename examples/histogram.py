"""A histogram that is accurate enough, as privately as the data allow.

Nothing in the search is about regression. Here the hypotheses are noisy counts, revealed with less and less noise;
the error of a hypothesis is its largest deviation from the true counts; and the test stops at the first one whose
error passes. The release says what that cost.

    python examples/histogram.py          # noise that protects
    python examples/histogram.py --seed 1 # noise that can be repeated, and protects nobody
"""

from __future__ import annotations

import argparse

import numpy as np
from numpy.typing import NDArray

from expost import Release
from expost.account import geometric_levels
from expost.exceptions import AccuracyNotReached
from expost.goals.measure import ErrorMeasure
from expost.noise import NoisePath
from expost.search import search_path
from expost.search.above_threshold import AboveThreshold, calibrate

# Replacing one row takes it out of one bin and puts it into another: two counts move by one each.
COUNTS_SENSITIVITY = 2
# For fixed noisy counts, the largest deviation from the true ones then moves by at most one.
ERROR_SENSITIVITY = 1.0
# Far beyond any error of interest, and exact in floating point. Cutting errors off there keeps their sensitivity.
LARGEST_ERROR = 2**40


def private_histogram(
    counts: NDArray[np.int64],
    max_error: float,
    *,
    failure_probability: float = 0.05,
    max_epsilon: float = 2.0,
    n_levels: int = 40,
    random_state: int | None = None,
) -> Release:
    """Release counts none of which is off by more than ``max_error`` (with probability 1 − ``failure_probability``).

    Raises :class:`expost.exceptions.AccuracyNotReached` if no level of noise within ``max_epsilon`` is small enough.
    """

    def worst_deviation(noisy: NDArray[np.int64]) -> float:
        return float(min(int(abs(noisy - counts).max()), LARGEST_ERROR))

    error = ErrorMeasure(worst_deviation, sensitivity=ERROR_SENSITIVITY)
    test = calibrate(
        "tight",
        target=max_error,
        failure_probability=failure_probability,
        n_tests=n_levels,
        sensitivity=error.effective_sensitivity,
    )
    last = max_epsilon - test.epsilon
    if last <= 0:
        raise ValueError(f"testing alone costs {test.epsilon:.3g}; allow a larger max_error or max_epsilon")
    levels = geometric_levels(last / 1000, last, n_levels)
    # One seed may not serve two sources: the test would know the noise it is testing.
    seeds = (None, None) if random_state is None else (2 * random_state, 2 * random_state + 1)
    path = NoisePath(counts, COUNTS_SENSITIVITY, levels, random_state=seeds[0])
    return search_path(path, AboveThreshold(error, test, n_levels, random_state=seeds[1]))


def main() -> None:
    """Count the ages of a generated town by decade and release the histogram."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--seed", type=int, default=None, help="for repeatable noise, which protects nobody")
    seed = parser.parse_args().seed
    rng = np.random.default_rng(0)
    ages = np.clip(rng.normal(45, 22, size=60_000), 0, 99)
    counts, edges = np.histogram(ages, bins=10, range=(0, 100))
    try:
        release = private_histogram(counts, max_error=100, random_state=seed)
    except AccuracyNotReached as refused:  # now and then the noise of the test alone rejects everything
        print(refused)
        return
    print(f"released at level {release.level} of {release.n_levels} with epsilon = {release.epsilon:.3f}")
    print(f"({release.epsilon_test:.3f} for testing, {release.epsilon_generation:.3f} for the counts themselves;")
    print(f" no outcome would have cost more than {release.epsilon_worst_case:.3f}; {release.neighbours})")
    print("ages      true  released   (the town is generated, so we may look at the truth)")
    for low, true, noisy in zip(edges, counts, release.hypothesis, strict=False):
        print(f"{low:3.0f}-{low + 10:3.0f}  {true:6d}  {noisy:8d}")


if __name__ == "__main__":
    main()
