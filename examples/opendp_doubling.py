"""Doubling around a measurement of OpenDP: counts by category that are accurate enough, at an ε nobody had to guess.

OpenDP makes the noise and proves what a measurement costs; expost decides how much of it is needed, and adds up what
was spent. A measurement's map is asked what it costs, and for a distance of 2: OpenDP's neighbours differ by a row
added or removed, a release's by a row replaced, which is one taken out and one put in.

    pip install opendp
    python examples/opendp_doubling.py
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import numpy as np
import opendp.prelude as dp

from expost import Release
from expost.exceptions import AccuracyNotReached
from expost.goals.measure import ErrorMeasure
from expost.search import DoublingPlan, doubling_search

dp.enable_features("contrib")

REPLACED = 2  # symmetric distance between data sets in which one row is replaced
LARGEST_ERROR = 2.0**40  # far beyond any error of interest; cutting errors off there keeps their sensitivity


def counting(categories: Sequence[str], scale: float) -> Any:
    """Return the measurement that counts rows by category, the last count being all other rows."""
    space = dp.vector_domain(dp.atom_domain(T=str)), dp.symmetric_distance()
    return space >> dp.t.then_count_by_categories(categories=list(categories)) >> dp.m.then_laplace(scale=scale)


def counting_at(categories: Sequence[str], epsilon: float) -> Any:
    """Return the measurement with the least noise whose map says that it costs at most ε."""
    measurement = dp.binary_search_chain(lambda scale: counting(categories, scale), d_in=REPLACED, d_out=epsilon)
    assert measurement.map(REPLACED) <= epsilon
    return measurement


def private_counts(
    rows: Sequence[str],
    categories: Sequence[str],
    max_error: float,
    *,
    failure_probability: float = 0.05,
    first: float = 0.001,
    last: float = 2.0,
    random_state: int | None = None,
) -> Release:
    """Release counts none of which is off by more than ``max_error``, with probability 1 − ``failure_probability``.

    Raises :class:`expost.exceptions.AccuracyNotReached` if no round up to ε = ``last`` passes. ``random_state`` seeds
    the tests; OpenDP's own noise cannot be seeded.
    """
    data = list(rows)
    true = np.array([data.count(category) for category in categories])
    true = np.append(true, len(data) - true.sum())

    def worst_deviation(counts: Sequence[int]) -> float:
        return min(float(np.abs(np.array(counts, dtype=np.float64) - true).max()), LARGEST_ERROR)

    # a replaced row moves two true counts by one each, and so the largest deviation by at most one
    measure = ErrorMeasure(worst_deviation, sensitivity=1.0)
    plan = DoublingPlan.of(
        target=max_error,
        failure_probability=failure_probability,
        sensitivity=measure.effective_sensitivity,
        first=first,
        last=last,
        calibration="tight",
    )
    return doubling_search(
        lambda epsilon: counting_at(categories, epsilon)(data),
        measure,
        plan,
        noise="exact",  # OpenDP samples the discrete Laplace law exactly
        random_state=random_state,
    )


def main() -> None:
    """Count how a generated town heats its homes."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.parse_args()
    heats = ["gas", "electric", "district", "wood"]
    rng = np.random.default_rng(0)
    rows = [str(value) for value in rng.choice([*heats, "other"], size=30_000, p=[0.5, 0.2, 0.15, 0.1, 0.05])]
    try:
        release = private_counts(rows, heats, max_error=150)
    except AccuracyNotReached as refused:  # now and then the noise of the tests alone rejects everything
        print(refused)
        return
    print(f"released in round {release.level + 1} of {release.n_levels} with epsilon = {release.epsilon:.3f}")
    print(f"({release.epsilon_test:.3f} for testing, {release.epsilon_generation:.3f} for OpenDP's measurements;")
    print(f" no outcome would have cost more than {release.epsilon_worst_case:.3f}; {release.neighbours})")
    print(f"claimed, not checked: {release.claims[0]}")
    for heat, count in zip([*heats, "other"], release.hypothesis, strict=True):
        print(f"{heat:<10} {count:6d}")


if __name__ == "__main__":
    main()
