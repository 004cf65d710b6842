"""Testing stationarity instead of risk (theory B12): a small gradient proves a small excess risk.

*Why.* L is λ-strongly convex, so L(θ) − min L ≤ ‖∇L(θ)‖²/(2λ) for every θ: no optimum, no radius, any origin of θ.
Asking whether ‖∇L(θ)‖ ≤ √(2λα) is thirty to a hundred times less sensitive than asking whether the excess risk is at
most α.

*Released*: whether ‖∇L(θ)‖ + noise stays below a limit. *Neighbours*: one row replaced. *Sensitivity*: S(‖θ‖_∞)/n for
a θ already released (`expost.erm.gradient_sensitivity`), plus rounding and floating point. *Theorem*: Laplace noise
of scale s costs Δ/s, whatever the answer; a wrong "yes" needs the noise to fall below −s·ln(1/(2δ)), which has
probability at most δ. The ε of a test depends on ‖θ‖_∞ only, which is released before it is asked, so ε is known
beforehand and tests add up adaptively.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from expost.erm.gradient_sensitivity import gradient_sensitivity
from expost.erm.losses import Loss
from expost.erm.risk import Risk
from expost.noise.laplace import discrete_laplace
from expost.noise.source import WordSource
from expost.search.own_units import OwnUnitsTest, unit_of
from expost.search.query import ErrorQuery

_SLACK = 2  # grid units: rounding of the limit, and discrete against continuous tails


def gradient_target(excess_risk: float, regularization: float) -> float:
    """Return √(2λα), the gradient norm that proves excess risk α.

    Examples
    --------
    >>> round(gradient_target(0.05, 0.005), 6)
    0.022361
    """
    return math.sqrt(2.0 * regularization * excess_risk)


def gradient_query(risk: Risk, loss: Loss, n: int, theta: NDArray[np.float64]) -> ErrorQuery:
    """Return ‖∇L(θ)‖₂ for a released θ as a query; its sensitivity is that of this θ alone."""
    m = float(np.abs(theta).max(initial=0.0))
    norm = float(np.linalg.norm(theta))
    return ErrorQuery(
        lambda asked: risk.gradient_norm(np.asarray(asked)),
        sensitivity=gradient_sensitivity(loss, m) / n,
        error_bound=risk.gradient_error_bound(norm * (1 + 1e-12)),
        lower=lambda asked: risk.gradient_lower(np.asarray(asked)),
    )


@dataclass(frozen=True)
class OneTest:
    """A single yes/no question with Laplace noise, settled before it is asked.

    Attributes
    ----------
    target
        What must not be exceeded, in real units.
    failure_probability
        δ, the chance of a wrong yes.
    share
        f, the part of the target given to the noise: the limit is (1 − f)·target, the noise scale f·target/ln(1/(2δ)).
    """

    target: float
    failure_probability: float
    share: float

    def __post_init__(self) -> None:
        if not 0 < self.failure_probability < 0.5 or not 0 < self.share < 1 or not self.target > 0:
            raise ValueError("a test needs 0 < failure_probability < 1/2, 0 < share < 1 and a positive target")

    @property
    def scale(self) -> float:
        """Noise scale in real units."""
        return self.share * self.target / math.log(1 / (2 * self.failure_probability))

    def epsilon(self, sensitivity: float) -> float:
        """Return what the answer costs for a query of that sensitivity."""
        return sensitivity / self.scale

    def ask(self, query: ErrorQuery, hypothesis: object, source: WordSource) -> tuple[bool, float]:
        """Return the answer and what it cost."""
        epsilon = self.epsilon(query.effective_sensitivity)
        noise = int(discrete_laplace(epsilon, query.sensitivity, 1, random_state=source)[0])
        limit = math.floor((1 - self.share) * self.target / query.grid) - _SLACK - noise
        return limit >= 0 and query.at_most(hypothesis, limit), epsilon


def best_share(test_cost: float, other_cost: float) -> float:
    """Return f that makes test_cost/f + other_cost/(1 − f) smallest: √T/(√T + √G).

    Examples
    --------
    >>> best_share(1.0, 4.0)
    0.3333333333333333
    """
    return math.sqrt(test_cost) / (math.sqrt(test_cost) + math.sqrt(other_cost))


class GradientLength:
    """‖∇L(θ)‖₂ as a measure; its sensitivity is S(‖θ‖_∞)/n."""

    def __init__(self, risk: Risk, loss: Loss, n: int) -> None:
        self._risk, self._loss, self._n = risk, loss, n

    def unit(self, theta: NDArray[np.float64]) -> float:
        """Return the size of one unit."""
        delta = gradient_sensitivity(self._loss, float(np.abs(theta).max(initial=0.0))) / self._n
        return unit_of(delta, self._error(theta))

    def units(self, theta: NDArray[np.float64], unit: float) -> int:
        """Return the length in units, rounded up."""
        return math.ceil((self._risk.gradient_norm(theta) + self._error(theta)) / unit)

    def lower(self, theta: NDArray[np.float64]) -> float:
        """Return a bound that needs no pass over the rows."""
        return self._risk.gradient_lower(theta)

    def _error(self, theta: NDArray[np.float64]) -> float:
        return self._risk.gradient_error_bound(float(np.linalg.norm(theta)) * (1 + 1e-12))


class StationarityRule(OwnUnitsTest):
    """AboveThreshold on the gradient norm, every hypothesis in units of its own sensitivity (theory B5 with B12).

    Parameters
    ----------
    risk, loss, n
        What the gradient is of.
    target
        √(2λα), from :func:`gradient_target`.
    failure_probability, n_tests
        γ and T.
    random_state
        ``None`` for the secure source.
    """

    name = "stationarity"

    def __init__(
        self,
        risk: Risk,
        loss: Loss,
        n: int,
        *,
        target: float,
        failure_probability: float,
        n_tests: int,
        random_state: int | WordSource | None = None,
    ) -> None:
        super().__init__(
            GradientLength(risk, loss, n),
            target=target,
            room=target,  # the best gradient is zero, so all of the target may go to noise
            typical=gradient_sensitivity(loss, 1.0) / n,
            failure_probability=failure_probability,
            n_tests=n_tests,
            random_state=random_state,
        )
