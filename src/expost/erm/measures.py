"""What people measure a model by: the share of rows it gets wrong, and its mean squared error. Private.

*Error rate.* A row is predicted positive where xᵀθ > 0, so a tie counts as negative, as ``predict`` does. With θ on
the grid of :mod:`expost.erm.prediction_grid` predictions are exact, so the count is, and replacing a row moves it by at
most one.

*Mean squared error.* (y − xᵀθ)² lies in [0, (1 + m)²], m = ‖θ‖_∞, because ‖x‖₁ ≤ 1: sensitivity (1 + m)²/n
(:func:`expost.erm.sensitivity.mean_square_sensitivity`). From sums or from rows, with a bound on the rounding error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from expost.erm._private import Private
from expost.erm._rounding import INFLATION, gamma, summation_length
from expost.erm._types import FloatArray
from expost.erm.losses import HuberLoss
from expost.erm.objective import Objective
from expost.erm.passes import Term
from expost.erm.prediction_grid import exact_bits, to_grid
from expost.erm.sums import Sums

__all__ = [
    "ClippedSquare",
    "Judge",
    "LeftOut",
    "MeanSquare",
    "MeanSquareByRows",
    "MeanSquareBySums",
    "clipped_mean_square",
    "clipped_mean_square_error",
    "errors",
    "exact_bits",
    "mean_left_out",
    "mean_left_out_error",
    "target_variance",
    "to_grid",
]


class Judge(Protocol):
    """What goals ask about rows: passes over any source, or an objective over arrays. Private."""

    @property
    def n(self) -> int:
        """Number of rows."""

    def errors(self, theta: FloatArray) -> int:
        """Return how many rows θ, from :func:`to_grid`, misclassifies."""

    def mean_of(self, term: Term, theta: FloatArray, most: float = 8.0) -> float:
        """Return the mean of a term of predictions and targets, which lies in [0, most]."""

    def target_variance(self) -> float:
        """Return the mean of (y − ȳ)²."""


@dataclass(frozen=True)
class ClippedSquare:
    """(y − clip(u))², predictions clipped to [−1, 1]."""

    def __call__(self, u: FloatArray, y: FloatArray) -> FloatArray:
        """Return it for each row."""
        residual = np.clip(u, -1.0, 1.0) - y
        return np.asarray(residual * residual)


def errors(judge: Judge, theta: FloatArray) -> int:
    """Return how many rows θ, from :func:`to_grid`, misclassifies: exactly, whatever the order of summation."""
    return judge.errors(theta)


def clipped_mean_square(judge: Judge, theta: FloatArray) -> float:
    """Return the mean of (y − clip(xᵀθ))², predictions clipped to [−1, 1]; private.

    One row moves it by at most 4/n: both are within [−1, 1].
    """
    return judge.mean_of(ClippedSquare(), theta, 4.0)


def clipped_mean_square_error(n: int, p: int, theta: FloatArray) -> float:
    """Return a bound on the error of :func:`clipped_mean_square`, from n, p and the released θ.

    Proof. A prediction is off by γ_p‖θ‖₂ (‖x‖₂ ≤ 1) and a residual is at most 2, so its square is off by 4γ_p‖θ‖₂ plus
    rounding of 4; a blocked sum adds γ_K·4. An exact sum (`expost.erm.passes`) rounds a term by 2⁻⁵⁰, which is 4γ₂
    and less, as K ≥ 3. ∎
    """
    return INFLATION * 4.0 * (gamma(p + 2) * float(np.linalg.norm(theta)) + gamma(summation_length(n) + 8))


@dataclass(frozen=True)
class LeftOut:
    """What Huber's loss leaves out of the squared one."""

    huber: HuberLoss

    def __call__(self, u: FloatArray, y: FloatArray) -> FloatArray:
        """Return it for each row."""
        return self.huber.left_out(u - y)


def mean_left_out(judge: Judge, theta: FloatArray, huber: HuberLoss, largest_prediction: float) -> float:
    """Return the mean of what Huber's loss leaves out of the squared one at θ, |xᵀθ| ≤ m; private."""
    height = max(1.0 + largest_prediction - huber.delta, 2.0**-40)
    return judge.mean_of(LeftOut(huber), theta, 0.5 * height * height)


def mean_left_out_error(n: int, p: int, largest_prediction: float, norm: float, limit: float) -> float:
    """Return a bound on the error of :func:`mean_left_out`, from n, p, the largest prediction there can be and ‖θ‖₂.

    Proof. A prediction is off by γ_p‖θ‖₂ (‖x‖₂ ≤ 1), so what lies beyond C by d = γ_p‖θ‖₂ + γ₂(1 + m + C); it is at
    most h = (1 + m − C)₊, so half its square is off by hd + d² and rounding, and a blocked sum by γ_K·h². An exact sum
    (`expost.erm.passes`) rounds a term by 2⁻⁵²·h², which is 2γ₁h². ∎
    """
    off = gamma(p + 2) * norm + gamma(4) * (1.0 + largest_prediction + limit)
    height = max(0.0, 1.0 + largest_prediction - limit)
    return INFLATION * (height * off + off * off + gamma(summation_length(n) + 8) * height * height)


def target_variance(judge: Judge) -> float:
    """Return the mean of (y − ȳ)²; private. One row moves it by at most 4(n − 1)/n²."""
    return judge.target_variance()


class MeanSquare(Protocol):
    """Mean of (y − xᵀθ)², and how far its computation may be off."""

    def value(self, theta: FloatArray) -> float:
        """Return the mean squared error, to within :meth:`error_bound`."""

    def error_bound(self, largest_coordinate: float) -> float:
        """Return a bound on the error of :meth:`value` over ‖θ‖_∞ ≤ m; public."""


class MeanSquareBySums(Private):
    """c − 2bᵀθ + θᵀAθ with A = XᵀX/n, b = Xᵀy/n, c = Σy²/n: no pass over the rows.

    Examples
    --------
    >>> import numpy as np
    >>> sums = Sums(1, 1, np.array([[2**40]]), np.array([2**40]), 2**40)  # one row, x = y = 1
    >>> MeanSquareBySums(sums).value(np.array([0.5]))
    0.25
    """

    def __init__(self, sums: Sums) -> None:
        self.n, self.p = sums.n, sums.p
        self._gram, self._moment, self._square = sums.as_floats()

    def value(self, theta: FloatArray) -> float:
        """Return the quadratic, or zero where rounding has made it negative."""
        return max(0.0, float(self._square - 2.0 * (self._moment @ theta) + theta @ (self._gram @ theta)))

    def error_bound(self, largest_coordinate: float) -> float:
        """Return γ_{2p+8}·(1 + m)².

        Proof. Entries are rounded once. Σ_ij|A_ij||θ_i||θ_j| ≤ mean (Σ_j|x_j||θ_j|)² ≤ m², likewise Σ_j|b_j||θ_j| ≤ m
        and c ≤ 1; the two nested products lose γ_{2p+2}·m², the single one γ_{p+2}·2m, the additions γ₃(1 + m)². ∎
        """
        return INFLATION * gamma(2 * self.p + 8) * (1.0 + largest_coordinate) ** 2


class MeanSquareByRows(Private):
    """The same by a pass over the rows, for losses that have no sums."""

    def __init__(self, objective: Objective) -> None:
        self.n, self.p = objective.n, objective.p
        self._objective = objective

    def value(self, theta: FloatArray) -> float:
        """Return the mean of squared residuals, summed in blocks."""
        residual = self._objective.predictions(theta) - self._objective.y
        return self._objective.mean(residual * residual)

    def error_bound(self, largest_coordinate: float) -> float:
        """Return γ_{K+2p+8}·(1 + m)², K the length of a blocked sum.

        Proof. A residual is off by γ_{p+1}(1 + m), its square by twice that times (1 + m), the sum by γ_K(1 + m)². ∎
        """
        return INFLATION * gamma(summation_length(self.n) + 2 * self.p + 8) * (1.0 + largest_coordinate) ** 2
