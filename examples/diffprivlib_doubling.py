"""Doubling around a model of diffprivlib: its logistic regression at an ε that was searched for and not guessed.

diffprivlib asks for ε and leaves the accuracy to luck. Around it, doubling runs the model at ε, 2ε, 4ε, … until a
private test of the error rate passes; the release adds up all rounds. That the model is ε-private is diffprivlib's
claim, and stands in the release as such. Two things are done here and not left to it: rows are moved into their bounds
and divided so that no norm exceeds ``data_norm``, and the classes are stated.

    pip install diffprivlib "scikit-learn<1.8"   # 0.6.6 cannot be imported with a newer scikit-learn
    python examples/diffprivlib_doubling.py
"""

from __future__ import annotations

import argparse
import itertools
import warnings
from typing import Any

import numpy as np
from diffprivlib.models import LogisticRegression
from numpy.typing import NDArray

from expost import Release
from expost.exceptions import AccuracyNotReached
from expost.goals.measure import ErrorMeasure
from expost.search import DoublingPlan, doubling_search


def bounded(X: NDArray[Any], lower: NDArray[Any], upper: NDArray[Any]) -> NDArray[np.float64]:
    """Return rows in the unit ball, by public bounds: each column in [−1, 1], divided by √p."""
    middle, half = (lower + upper) / 2, (upper - lower) / 2
    return np.asarray((np.clip(X, lower, upper) - middle) / half / np.sqrt(X.shape[1]) * (1 - 1e-9))


def private_classifier(
    X: NDArray[np.float64],
    y: NDArray[Any],
    error_rate: float,
    *,
    failure_probability: float = 0.1,
    first: float = 0.01,
    last: float = 10.0,
    random_state: int | None = None,
) -> Release:
    """Release a model that misclassifies at most this share of the rows, with probability 1 − ``failure_probability``.

    Rows must lie in the unit ball (see :func:`bounded`) and labels be 0 and 1. Raises
    :class:`expost.exceptions.AccuracyNotReached` if no round up to ε = ``last`` passes.
    """

    seeds = itertools.repeat(None) if random_state is None else itertools.count(2 * random_state * 1000, 2)

    def model_at(epsilon: float) -> LogisticRegression:
        # every round has noise of its own
        model = LogisticRegression(epsilon=epsilon, data_norm=1.0, C=1.0, max_iter=1000, random_state=next(seeds))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # whether the solver converged may depend on single rows
            return model.fit(X, y)

    def errors(model: LogisticRegression) -> float:
        return float(np.count_nonzero(model.predict(X) != y)) / len(y)

    # one row is right or wrong, whatever the others are; a quotient is rounded once
    measure = ErrorMeasure(errors, sensitivity=1.0 / len(y), error_bound=2.0**-52)
    plan = DoublingPlan.of(
        target=error_rate,
        failure_probability=failure_probability,
        sensitivity=measure.effective_sensitivity,
        first=first,
        last=last,
        calibration="tight",
    )
    return doubling_search(model_at, measure, plan, random_state=None if random_state is None else 2 * random_state + 1)


def main() -> None:
    """Predict who buys, in a generated shop."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--seed", type=int, default=None, help="for repeatable noise, which protects nobody")
    seed = parser.parse_args().seed
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 10, size=(20_000, 3))
    y = (X @ [2.0, -1.0, 0.5] + rng.logistic(size=20_000) > 7.5).astype(int)
    rows = bounded(X, np.zeros(3), np.full(3, 10.0))
    try:
        release = private_classifier(rows, y, error_rate=0.15, random_state=seed)
    except AccuracyNotReached as refused:
        print(refused)
        return
    print(f"released in round {release.level + 1} of {release.n_levels} with epsilon = {release.epsilon:.3f}")
    print(f"({release.epsilon_test:.3f} for testing, {release.epsilon_generation:.3f} for diffprivlib's models;")
    print(f" no outcome would have cost more than {release.epsilon_worst_case:.3f}; {release.neighbours})")
    print(f"claimed, not checked: {release.claims[0]}")
    print(f"coefficients {np.round(release.hypothesis.coef_[0], 2)}, in scaled units")


if __name__ == "__main__":
    main()
