"""Curves that theorems give and only plots use: the paper's ridge theorem as printed, and private SGD's."""

from __future__ import annotations

import math


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
