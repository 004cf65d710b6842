"""How large ½bᵀ(cΣ + λI)b can be for noise b on a minimiser, when only the trace of Σ is known. Public numbers only.

*Wanted*: a q with P(½c·bᵀΣb + ½λ‖b‖² > q) ≤ γ for **every** Σ ⪰ 0 with tr Σ ≤ τ; b has unit scale, and q grows with
its square.

*Lemma 1 (a tail from expected overshoots).* For any random X and level γ, P(X > q) ≤ γ for q = CVaR(X) := min_t t +
E(X − t)₊/γ. Proof: X > q implies (X − t)₊ > q − t, so P ≤ E(X − t)₊/(q − t), which is γ at the minimising t. ∎ And
CVaR(X₁ + X₂) ≤ CVaR(X₁) + CVaR(X₂), because (X₁ + X₂ − t₁ − t₂)₊ ≤ (X₁ − t₁)₊ + (X₂ − t₂)₊.

*Lemma 2 (the worst Σ has rank one).* For convex increasing φ, Eφ(bᵀΣb) ≤ max over unit v of Eφ(τ(vᵀb)²). Proof: Σ =
Σₖ σₖvₖvₖᵀ with Σₖ σₖ ≤ τ, and φ(Σₖ σₖqₖ) ≤ Σₖ (σₖ/τ)·φ(τqₖ) by convexity (weights may be raised to sum to one: φ
increases). ∎ The same holds with any fixed function of b added inside φ.

*Lemma 3 (Laplace: the worst direction is a coordinate).* For independent Lap(1) coordinates, Eφ(τ(vᵀb)²) ≤ Eφ(τb₁²).
Proof: b_i = √(2W_i)·N_i with W_i exponential and N_i normal, so vᵀb given W is normal with variance 2Σv_i²W_i. h(w) =
Eφ(2τwN²) is convex and increasing in w, and Σv_i²W_i is a convex combination of independent copies of W₁, hence below
W₁ in convex order. ∎

So for Laplace noise q = CVaR(½cτb₁²) + CVaR(½λ‖b‖²), the first in closed form, the second by a convolution that errs
upwards. For spherical noise every direction is alike, and the sum is taken inside one CVaR.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

_CELLS = 1 << 12
_TRUNCATION = 60.0  # |b| beyond this (probability e⁻⁶⁰ each) is accounted for separately


def laplace_energy(p: int, trace: float, *, curvature: float, regularization: float, gamma: float) -> float:
    """Return q for independent Lap(1) coordinates.

    Examples
    --------
    >>> q = laplace_energy(38, 0.1, curvature=0.25, regularization=0.005, gamma=0.1)
    >>> 0.4 < q < 0.5
    True
    """
    x = math.log(1 / gamma)
    # |b₁| is exponential: E(kb² − kx²)₊ = k·e^{−x}(2x + 2), smallest CVaR where P(|b₁| > x) = γ
    along = 0.5 * curvature * trace * (x * x + 2 * x + 2)
    return along + 0.5 * regularization * _square_sum_cvar(p, gamma)


@lru_cache(maxsize=256)
def _square_sum_cvar(p: int, gamma: float) -> float:
    """Bound CVaR(Σ b_i²) over p independent Lap(1) variables from above.

    Each b² is cut at M = 60² and rounded up to a grid; the sum's law is a convolution power. What was cut off adds at
    most p·E(b² − M)₊ = p·e^{−60}·122 to every expected overshoot.
    """
    top = _TRUNCATION**2
    # cover the mean by many cells: the sum concentrates near 2p with spread √(20p), far below p·M
    reach = 2.0 * p + 40.0 * math.sqrt(20.0 * p) + 2.0 * top
    step = reach / (_CELLS * 16)
    edges = np.arange(0.0, top + step, step)
    survival = np.exp(-np.sqrt(edges))
    masses = np.append(survival[:-1] - survival[1:], survival[-1])  # in (edge_k, edge_{k+1}], put at the upper edge
    size = 1 << math.ceil(math.log2(reach / step + 2))
    law = _power(np.concatenate([[0.0], masses]), p, size)
    values = step * np.arange(law.size)
    lost = max(0.0, 1.0 - float(law.sum())) + 1e-12  # mass beyond the window, and the rounding of the transform
    tail = np.cumsum(law[::-1])[::-1]
    overshoot = step * (np.cumsum(tail[::-1])[::-1] - tail)  # E(X − value)₊ within the window
    extra = p * math.exp(-_TRUNCATION) * 2 * (_TRUNCATION + 1) + lost * p * top
    return float(np.min(values + (overshoot + extra) / gamma))


def _power(law: NDArray[np.float64], p: int, size: int) -> NDArray[np.float64]:
    """Return the law of a sum of p independent copies, cut to ``size`` values (by repeated squaring)."""
    result, base = np.array([1.0]), law
    while p:
        if p & 1:
            result = _convolve(result, base, size)
        p >>= 1
        if p:
            base = _convolve(base, base, size)
    return result


def _convolve(a: NDArray[np.float64], b: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    length = 1 << math.ceil(math.log2(a.size + b.size))
    product = np.fft.irfft(np.fft.rfft(a, length) * np.fft.rfft(b, length), length)
    return np.maximum(product[: min(size, a.size + b.size - 1)], 0.0)


def spherical_energy(p: int, trace: float, *, curvature: float, regularization: float, gamma: float) -> float:
    """Return q for noise of density ∝ e^{−‖b‖₂}: norm Gamma(p), direction uniform (theory B8).

    With u = vᵀb/‖b‖, u² is Beta(½, (p−1)/2) and independent of the norm: ½‖b‖²(cτu² + λ). The expected overshoot is
    summed over cells of u², each at its upper end, so it errs upwards; over the norm it is E(hN² − t)₊ =
    h·p(p+1)·P(Gamma(p+2) > r) − t·P(Gamma(p) > r), r = √(t/h).

    Examples
    --------
    >>> 5 < spherical_energy(38, 0.1, curvature=0.25, regularization=0.005, gamma=0.1) < 9
    True
    """
    return _spherical(p, round(curvature * trace, 15), regularization, gamma)


@lru_cache(maxsize=256)
def _spherical(p: int, along: float, regularization: float, gamma: float) -> float:
    shares, weights = np.ones(1), np.ones(1)
    if p > 1:
        survival, weights = _tail_cells()
        shares = np.append(special.betainccinv(0.5, (p - 1) / 2, survival[:-1]), 1.0)  # each cell at its upper end
    half = 0.5 * (along * shares + regularization)  # X = half·N² within a cell, N ~ Gamma(p)

    def above(t: float) -> NDArray[np.float64]:
        """Return P(X > t) in every cell."""
        return np.asarray(special.gammaincc(p, np.sqrt(t / half)))

    # any t gives a bound; the best one is the quantile
    top = 0.5 * (along + regularization) * float(special.gammainccinv(p, gamma * 1e-3)) ** 2
    t = float(optimize.brentq(lambda t: float(weights @ above(t)) - gamma, 0.0, top, xtol=1e-6 * top))
    beyond = special.gammaincc(p + 2, np.sqrt(t / half))
    overshoot = float(weights @ (half * (p * (p + 1)) * beyond - t * above(t)))
    return (t + overshoot / gamma) * (1 + 1e-9)


def _tail_cells() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return survival probabilities at the upper ends of cells that get finer towards the tail, and cell masses."""
    ends = np.concatenate([np.linspace(1.0, 0.01, 600)[1:], 0.01 * 0.97 ** np.arange(1, 800)])
    masses = -np.diff(ends, prepend=1.0)
    masses[-1] += ends[-1]  # the mass beyond, of order 1e-13
    return ends, masses
