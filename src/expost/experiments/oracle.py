"""What a single shot would have cost somebody who knew the right ε beforehand: a yardstick, not a method.

The oracle looks at true excess risks to choose ε, so it has no privacy and belongs in simulations only. It searches ε
of one mechanism; a method that may release something else, the zero model for instance, can come out below it. Where
noise alone meets the target there is no smallest ε: the search ends at 1/n, and nothing is compared with that.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from expost.noise.source import SeededSource
from expost.search.plan import Perturbation, Problem
from expost.search.run import Generator, run

DRAWS = 60
_STEPS = 8  # from a bracket of a factor 4 to one of half a per cent
_WIDENINGS = 20


@dataclass(frozen=True)
class Shots:
    """The single-shot mechanism at one ε: the quantile of its excess risk, and the mean norm of what it releases."""

    epsilon: float
    quantile: float
    norm: float


def shoot(
    generator: Generator, problem: Problem, perturbation: Perturbation, epsilon: float, seed: int, draws: int = DRAWS
) -> Shots:
    """Release a model at a fixed ε many times; draw k has the noise of ``SeededSource(seed + k)`` at every ε.

    The 1 − γ quantile is one of the values drawn, never below the interpolated one.
    """
    excess, norms = [], []
    for draw in range(draws):
        release = run(
            generator,
            problem,
            perturbation=perturbation,
            method="fixed",
            max_epsilon=epsilon,
            random_state=SeededSource(seed + draw),
        )
        theta = np.asarray(release.hypothesis, dtype=np.float64)
        excess.append(float(generator.risk.excess(theta)))
        norms.append(float(np.linalg.norm(theta)))
    quantile = float(np.quantile(excess, 1 - problem.failure_probability, method="higher"))
    return Shots(epsilon, quantile, float(np.mean(norms)))


def oracle(generator: Generator, problem: Problem, perturbation: Perturbation, seed: int) -> Shots:
    """Return the shots at the smallest ε, to half a per cent, whose quantile of the excess risk is at most α."""
    return smallest(
        lambda epsilon: shoot(generator, problem, perturbation, epsilon, seed),
        problem.excess_risk,
        problem.theory_epsilon(perturbation),
        floor(problem.n),
    )


def floor(n: int) -> float:
    """Return the ε below which the oracle does not look: a model drawn there is noise."""
    return 1 / n


def smallest(shots: Callable[[float], Shots], alpha: float, start: float, least: float) -> Shots:
    """Bracket the ε at which the quantile falls to α by factors of 4, then halve the bracket of ln ε.

    Examples
    --------
    >>> found = smallest(lambda epsilon: Shots(epsilon, 1 / epsilon, 0.0), 0.5, 100.0, 1e-5)
    >>> found.quantile <= 0.5, round(found.epsilon, 2)
    (True, 2.0)
    """
    start = max(start, least)
    best, low = shots(start), start
    for _ in range(_WIDENINGS):
        if best.quantile <= alpha:
            break
        low, best = best.epsilon, shots(4 * best.epsilon)
    if best.quantile > alpha:
        raise ValueError(f"no fixed epsilon up to {best.epsilon:.3g} meets the target {alpha:g}")
    if low >= best.epsilon:  # the start is enough: look below it
        while best.epsilon > least:
            tried = shots(max(best.epsilon / 4, least))
            low = tried.epsilon
            if tried.quantile > alpha:
                break
            best = tried
        else:
            return best
    for _ in range(_STEPS):
        middle = shots(math.sqrt(low * best.epsilon))
        if middle.quantile <= alpha:
            best = middle
        else:
            low = middle.epsilon
    return best
