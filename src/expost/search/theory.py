"""Inverting utility theorems: the ε at which a single-shot mechanism promises *expected* excess risk α (theory A7).

What an analyst would do without a search. Also the yardstick for how far up a search has to look.
"""

from __future__ import annotations

import math


def covariance_epsilon(target: float, *, n: int, p: int, radius: float) -> float:
    """ε for covariance perturbation: 4√2·(2√p·R + p·R²)/(n·ε) ≤ α, R the radius (the paper's is 1/√λ).

    Examples
    --------
    >>> round(covariance_epsilon(0.05, n=100_000, p=77, radius=0.005**-0.5), 2)
    17.7
    """
    return 4 * math.sqrt(2) * (2 * math.sqrt(p) * radius + p * radius**2) / (n * target)


def output_logistic_epsilon(target: float, *, n: int, p: int, regularization: float) -> float:
    """ε for output perturbation of logistic regression: 2√2·p/(nλε) + 4p²/(n²λε²) ≤ α.

    Examples
    --------
    >>> round(output_logistic_epsilon(0.05, n=100_000, p=38, regularization=0.005), 3)
    4.3
    """
    a = 2 * math.sqrt(2) * p / (n * regularization)
    b = 4 * p**2 / (n**2 * regularization)
    return (a + math.sqrt(a * a + 4 * b * target)) / (2 * target)


def output_smooth_epsilon(
    target: float, *, sensitivity: float, p: int, curvature: float, regularization: float
) -> float:
    """ε for output perturbation of any smooth loss around an unconstrained minimiser.

    With θ = θ* + b and b of independent Lap(r) coordinates, E[L(θ) − L(θ*)] ≤ ½·E[bᵀ(cΣ + λI)b] ≤ r²(c + λp), because
    E(xᵀb)² = 2r²‖x‖² ≤ 2r²; r = Δ₁/ε. For the squared loss and the paper's Δ₁ this is
    (1 + λp)(R+1)²p/(nλε²), the corrected form of the paper's ridge theorem.
    """
    return sensitivity * math.sqrt((curvature + regularization * p) / target)


def output_spherical_epsilon(
    target: float, *, sensitivity: float, p: int, curvature: float, regularization: float
) -> float:
    """ε for output perturbation with spherical noise, in the ℓ₂-sensitivity Δ₂ of the minimiser.

    The noise b is alike in all directions, with E‖b‖² = p(p+1)Δ₂²/ε² (its norm is Gamma(p) times Δ₂/ε), and E b = 0. So
    E[L(θ* + b) − L(θ*)] ≤ ½·E[bᵀ(cΣ + λI)b] = ½(c·tr Σ/p + λ)·E‖b‖² ≤ ½(p+1)(c + λp)Δ₂²/ε², for a minimum within a
    ball as well. Against Laplace noise with Δ₁ = √p·Δ₂ the factor is √((p+1)/(2p)).
    """
    return sensitivity * math.sqrt((p + 1) * (curvature + regularization * p) / (2 * target))


def output_ridge_as_printed_epsilon(target: float, *, n: int, p: int, regularization: float, radius: float) -> float:
    """ε from the paper's ridge theorem *as printed*: (1/n + λ)(R+1)²p²/(nλε²) ≤ α.

    Not a valid bound (a sum over rows was lost in its proof, and simulation violates it); kept only to draw
    the paper's curve under that name.
    """
    return (radius + 1) * p * math.sqrt((1 / n + regularization) / (n * regularization * target))


def private_sgd_epsilon(target: float, *, n: int, p: int, delta: float, diameter: float, lipschitz: float) -> float:
    """ε of (ε, δ)-private stochastic gradient descent by its utility theorem; ``inf`` if n is too small for any.

    Bassily, Smith and Thakurta (2014), Theorem 2.4, with the step-size analysis of Shamir and Zhang (2013),
    Theorem 2, over a set of diameter D and a G-Lipschitz loss, as in the authors' own plots: with
    c = (nα/(4(1 + ln n)·D·G))² − 1, ε = √(32·p·ln(n/δ)·ln(1/δ)/c).
    """
    a = 32 * p * math.log(n / delta) * math.log(1 / delta)
    c = (n * target / (4 * (1 + math.log(n)) * diameter * lipschitz)) ** 2 - 1
    return math.sqrt(a / c) if c > 0 else math.inf


def private_sgd_rows_needed(target: float, *, diameter: float, lipschitz: float) -> int:
    """Return the number of rows from which :func:`private_sgd_epsilon` is finite: n ≥ 4(1 + ln n)·D·G/α."""
    n = 2
    while n * target <= 4 * (1 + math.log(n)) * diameter * lipschitz:
        n *= 2
    low, high = n // 2, n
    while high - low > 1:
        middle = (low + high) // 2
        if middle * target > 4 * (1 + math.log(middle)) * diameter * lipschitz:
            high = middle
        else:
            low = middle
    return high
