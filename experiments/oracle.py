"""What a single shot would have cost somebody who knew the right ε beforehand: a yardstick, not a method.

The oracle looks at true excess risks to choose ε, so it has no privacy and belongs in simulations only. It searches ε
of one mechanism; a method that may release something else, the zero model for instance, can come out below it. Where
noise alone meets the target there is no smallest ε: the search ends at 1/n, and nothing is compared with that.

Every draw is one vector of noise, divided by ε: the same draws serve all ε, so what is compared is ε and not luck,
and output perturbation gets better with every step. The share of draws above α, of `DRAWS`, has a standard error of 3
points at γ = 0.1; in ε that is two or three per cent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from expost.mechanisms import CovarianceGenerator, Mechanism, OutputGenerator
from expost.noise.laplace import discrete_laplace
from expost.noise.source import SeededSource

Generator = CovarianceGenerator | OutputGenerator  # these can be shot with noise drawn by hand

DRAWS = 100
_UNIT = 1 << 40  # so fine that the noise is continuous for all purposes
_STEPS = 8  # from a bracket of a factor 4 to one of half a per cent
_WIDENINGS = 20


@dataclass(frozen=True)
class Shots:
    """The single-shot mechanism at one ε: the quantile of its excess risk, and the mean norm of what it releases."""

    epsilon: float
    quantile: float
    norm: float


class Shooter:
    """The single-shot mechanism at any ε, with the same draws of noise at each.

    Parameters
    ----------
    generator, excess_risk, failure_probability
        What is released, the target it is judged by, and how often it may miss it.
    seed
        Draw k has the noise of ``SeededSource(seed + k)``.
    """

    def __init__(
        self, generator: Generator, excess_risk: float, failure_probability: float, seed: int, draws: int = DRAWS
    ) -> None:
        self._generator, self._measure = generator, generator.excess_risk()
        self._unit = self._measure.grid(None).unit
        self._limit = math.floor(excess_risk / self._unit)
        # the quantile is one of the values drawn, never below the interpolated one
        self._rank = math.ceil((1 - failure_probability) * (draws - 1))
        self._noise = [
            discrete_laplace(1.0, _UNIT, generator.size, random_state=SeededSource(seed + k)) / _UNIT
            for k in range(draws)
        ]

    def hypotheses(self, epsilon: float) -> list[NDArray[np.float64]]:
        """Return what every draw releases."""
        return [np.asarray(self._generator.shot(noise / epsilon)) for noise in self._noise]

    def meets(self, epsilon: float) -> bool:
        """Whether the quantile is at most α; most draws are settled by cheap bounds, and no more than needed."""
        allowed = len(self._noise) - 1 - self._rank
        for noise in self._noise:
            allowed -= not self._measure.at_most(self._generator.shot(noise / epsilon), self._limit, self._unit)
            if allowed < 0:
                return False
        return True

    def at(self, epsilon: float) -> Shots:
        """Return the quantile itself."""
        thetas = self.hypotheses(epsilon)
        risk = self._generator.risk
        quantile = kth_smallest(
            [risk.lower(theta) for theta in thetas],
            [risk.upper(theta) for theta in thetas],
            lambda k: risk.excess(thetas[k]),
            self._rank,
        )
        return Shots(epsilon, quantile, float(np.mean([np.linalg.norm(theta) for theta in thetas])))


def kth_smallest(lower: Sequence[float], upper: Sequence[float], value: Callable[[int], float], rank: int) -> float:
    """Return the value of a rank (from 0), looking only at those that their bounds do not rule out.

    Examples
    --------
    >>> values = [5.0, 1.0, 3.0, 9.0]
    >>> kth_smallest([v - 0.5 for v in values], [v + 0.5 for v in values], values.__getitem__, 2)
    5.0
    """
    low, high = sorted(lower)[rank], sorted(upper)[rank]
    near = [k for k in range(len(lower)) if lower[k] <= high and upper[k] >= low]
    below = sum(upper[k] < low for k in range(len(lower)))
    return sorted(value(k) for k in near)[rank - below]


def oracle(
    generator: Generator, mechanism: Mechanism, excess_risk: float, failure_probability: float, seed: int
) -> Shots:
    """Return the shots at the smallest ε, to half a per cent, whose quantile of the excess risk is at most α."""
    shooter, problem = Shooter(generator, excess_risk, failure_probability, seed), generator.problem
    epsilon = smallest(shooter.meets, mechanism.theory_epsilon(problem, excess_risk), floor(problem.n))
    return shooter.at(epsilon)


def floor(n: int) -> float:
    """Return the ε below which the oracle does not look: a model drawn there is noise."""
    return 1 / n


def smallest(meets: Callable[[float], bool], start: float, least: float) -> float:
    """Bracket the smallest ε that meets the target by factors of 4, then halve the bracket of ln ε.

    Examples
    --------
    >>> found = smallest(lambda epsilon: 1 / epsilon <= 0.5, 100.0, 1e-5)
    >>> 2.0 <= found <= 2.012
    True
    """
    best = max(start, least)
    if meets(best):
        low = best
        while low == best:
            if best <= least:
                return best
            tried = max(best / 4, least)
            low, best = (tried, tried) if meets(tried) else (tried, best)
    else:
        for _ in range(_WIDENINGS):
            low, best = best, 4 * best
            if meets(best):
                break
        else:
            raise ValueError(f"no fixed epsilon up to {best:.3g} meets the target")
    for _ in range(_STEPS):
        middle = math.sqrt(low * best)
        low, best = (low, middle) if meets(middle) else (middle, best)
    return best
