"""How much noise a test needs so that, with probability 1 − γ, nothing worse than α is accepted.

A calibration fixes the threshold and two budgets: e₁ for the noise on the threshold, e₂ for the noise on each
query; noise of scale Δ/e. Whatever the kind (Laplace or one-sided exponential), stopping costs e₁ + 2·e₂ and never
stopping costs e₁ (theory A3, B5; proof in ``expost.stopping.above_threshold``). The accuracy side, for errors e_t ≥ 0
that should not exceed α, T tests:

``theorem``
    Laplace, ε_A = 16Δ·ln(2T/γ)/α, threshold α/2, (e₁, e₂) = (ε_A/2, ε_A/4).
``published``
    Laplace, the calibration behind the paper's curves: b = α/(4·ln(1.5^¾·√T/γ)), threshold
    α/4 + ¾b·ln 1.5 − ½b·ln T, ε_A = 2Δ/b. A wrong accept has probability at most 1.5^(−7/4)·γ^(3/2), which is
    0.016 for γ = 0.1: with ρ the threshold's noise, T·½·E[e^(ρ/2b)]·e^(−(α−threshold)/2b), and E[e^(ρ/2b)] = 4/3.
    The paper bounds two failures together instead, ½e^(−threshold/b) + T^⅔·e^(−(α−threshold)/3b). Its constant makes
    their sum 2·1.5^(−3/2)·γ = 1.09γ rather than γ. Only the second is a wrong accept, and it is γ/√1.5 = 0.82γ: the
    accuracy promise holds either way.
``tight``
    One-sided exponential noise, its two scales and the threshold chosen together to make ε_A smallest. An error of α or
    more is accepted at one test only if ν ≥ α − threshold + ρ; see :func:`exponential_failure`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from expost import validation
from expost.privacy.composition import add_losses

CalibrationName = Literal["theorem", "published", "tight"]


@dataclass(frozen=True)
class Calibration:
    """Threshold and noise budgets of an AboveThreshold test.

    Attributes
    ----------
    threshold
        In the units of the error.
    epsilon_threshold, epsilon_query
        e₁ and e₂: the noise scales are Δ/e₁ and Δ/e₂.
    sensitivity
        The Δ it was made for.
    kind
        ``"laplace"`` or ``"exponential"``.
    """

    name: str
    kind: Literal["laplace", "exponential"]
    threshold: float
    epsilon_threshold: float
    epsilon_query: float
    sensitivity: float

    @property
    def epsilon(self) -> float:
        """What stopping costs: e₁ + 2·e₂."""
        return add_losses(self.epsilon_threshold, 2 * self.epsilon_query)

    @property
    def epsilon_never(self) -> float:
        """What never stopping costs: e₁ alone."""
        return self.epsilon_threshold


def above_threshold_accuracy(epsilon: float, sensitivity: float, n_queries: int, failure_probability: float) -> float:
    """Return the paper's accuracy theorem: a = 8Δ(ln T + ln(2/γ))/ε.

    With probability at least 1 − γ, InteractiveAboveThreshold run with ε accepts only queries whose error is at
    most threshold + a.

    Examples
    --------
    >>> round(above_threshold_accuracy(1.0, 0.001, 1000, 0.1), 4)
    0.0792
    """
    _check(1.0, failure_probability, n_queries, sensitivity)
    validation.positive("epsilon", epsilon)
    return 8 * sensitivity * (math.log(n_queries) + math.log(2 / failure_probability)) / epsilon


def calibrate(
    name: CalibrationName | str,
    *,
    target: float,
    failure_probability: float,
    n_tests: int,
    sensitivity: float,
) -> Calibration:
    """Return the calibration called ``name`` for a target α, a failure probability γ, T tests and a sensitivity Δ.

    Examples
    --------
    The paper's ridge experiment, n = 100,000 and λ = 0.005: Δ = (1/√λ + 1)²/n.

    >>> delta = (0.005**-0.5 + 1) ** 2 / 100_000
    >>> args = dict(target=0.05, failure_probability=0.1, n_tests=1000, sensitivity=delta)
    >>> [round(calibrate(name, **args).epsilon, 2) for name in ("theorem", "published", "tight")]
    [7.27, 2.22, 1.43]
    """
    _check(target, failure_probability, n_tests, sensitivity)
    return _RULES[validation.calibration(name)](target, failure_probability, n_tests, sensitivity)


def _check(target: float, failure_probability: float, n_tests: int, sensitivity: float) -> None:
    validation.positive("the target", target)
    validation.share("failure_probability", failure_probability)
    if n_tests < 1:
        raise ValueError(f"the number of tests must be at least 1, got {n_tests}")
    validation.positive("sensitivity", sensitivity)


def _theorem(target: float, gamma: float, n_tests: int, delta: float) -> Calibration:
    epsilon = 16 * delta * math.log(2 * n_tests / gamma) / target
    return Calibration("theorem", "laplace", target / 2, epsilon / 2, epsilon / 4, delta)


def _published(target: float, gamma: float, n_tests: int, delta: float) -> Calibration:
    b = target / (4 * math.log(1.5**0.75 * math.sqrt(n_tests) / gamma))
    threshold = target / 4 + 0.75 * b * math.log(1.5) - 0.5 * b * math.log(n_tests)
    return Calibration("published", "laplace", threshold, delta / b, delta / (2 * b), delta)


def _tight(target: float, gamma: float, n_tests: int, delta: float) -> Calibration:
    w, e1, e2 = _tight_for_one(gamma, n_tests)
    return Calibration("tight", "exponential", w * target, e1 * delta / target, e2 * delta / target, delta)


@lru_cache(maxsize=256)  # a tenth of a second, and the same for every run of an experiment
def _tight_for_one(gamma: float, n_tests: int) -> tuple[float, float, float]:
    """Choose (threshold, 1/b₁, 1/b₂) for the smallest 1/b₁ + 2/b₂.

    Two constraints, for a target of 1: the chance of a wrong accept is at most γ; and the threshold noise stays
    below the threshold with probability 1 − γ, so that a perfect hypothesis is accepted (without it b₁ would
    grow without bound and the search would run on for ever). With w the threshold, b₁ = w/ln(1/γ), and b₂ is the
    largest that keeps the chance at γ.
    """

    def budgets(w: float) -> tuple[float, float]:
        b1 = w / math.log(1 / gamma)
        b2 = _largest_query_scale(1 - w, b1, n_tests, gamma)
        return 1 / b1, 1 / b2

    def cost(w: float) -> float:
        e1, e2 = budgets(w)
        return e1 + 2 * e2

    from scipy import optimize  # here, because it takes longer to import than most searches take

    best = optimize.minimize_scalar(cost, bounds=(0.01, 0.9), method="bounded", options={"xatol": 1e-3})
    w = float(best.x)
    return (w, *budgets(w))


def exponential_failure(margin: float, b1: float, b2: float, n_tests: int) -> float:
    """Bound the chance that any of T errors at threshold + ``margin`` or worse is accepted (theory B5).

    E_ρ[1 − (1 − e^(−(margin+ρ)/b₂))^T] with ρ ~ Exp(b₁): given ρ, each test accepts only if its own ν ~ Exp(b₂) is at
    least margin + ρ, independently of the others. Summed over 2000 equally likely cells of ρ, each at its larger end so
    that the result is an upper bound.
    """
    levels = np.linspace(0.0, 1.0, 2001)[:-1]
    rho = -b1 * np.log1p(-levels)  # left ends of equally likely cells: the integrand decreases in ρ
    single = np.exp(-(margin + rho) / b2)
    return float(np.mean(-np.expm1(n_tests * np.log1p(-single))))


def _largest_query_scale(margin: float, b1: float, n_tests: int, gamma: float) -> float:
    low, high = margin / (math.log(n_tests / gamma) + 1), margin / 1e-3
    if exponential_failure(margin, b1, high, n_tests) <= gamma:
        return high
    for _ in range(60):
        middle = math.sqrt(low * high)
        if exponential_failure(margin, b1, middle, n_tests) <= gamma:
            low = middle
        else:
            high = middle
    return low


_RULES = {"theorem": _theorem, "published": _published, "tight": _tight}
