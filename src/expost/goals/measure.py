"""Something about a hypothesis that should be small, as an integer on a public grid: what a stopping rule may ask.

*Released*: never the value itself, only whether value + noise stays below a noisy limit. A real value of sensitivity
Δ, computed in floating point with an error of at most η, is rounded *up* to a multiple of g; neighbouring answers then
differ by at most ⌊(Δ + 2η)/g⌋ + 1 units, which is the integer sensitivity charged. What is measured is private:

*Error rate.* A row is predicted positive where xᵀθ > 0, so a tie counts as negative, as ``predict`` does. With θ on
the grid of :func:`expost.numeric.to_grid` predictions are exact, so the count is, and replacing a row moves it by at
most one.

*Mean squared error.* (y − xᵀθ)² lies in [0, (1 + m)²], m = ‖θ‖_∞, because ‖x‖₁ ≤ 1: sensitivity (1 + m)²/n. From sums
or from rows, with a bound on the rounding error.

*Stationarity* (theory B12): a small gradient proves a small excess risk. *Lemma.* L(θ) − min L ≤ ‖∇L(θ)‖²/(2μ) for
every θ, if L is μ-strongly convex; it is for μ = λ. *Proof.* L(w) ≥ L(θ) + ⟨∇L(θ), w − θ⟩ + (μ/2)‖w − θ‖² for every w.
The left side is smallest at the optimum, the right side at w = θ − ∇L(θ)/μ, where it is L(θ) − ‖∇L(θ)‖²/(2μ). ∎ No
optimum has to be known, no radius, and θ may come from anywhere. Asking whether ‖∇L(θ)‖ ≤ √(2λα) is thirty to a hundred
times less sensitive than asking whether the excess risk is at most α: S(‖θ‖_∞)/n for a θ already released
(`expost.solve.problem`), plus rounding and floating point.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol

import numpy as np

from expost.numeric import INFLATION, FloatArray, Grid, Private, gamma, summation_length
from expost.passes.sums import Sums
from expost.solve.losses import HuberLoss, Loss
from expost.solve.objective import Objective
from expost.solve.problem import gradient_sensitivity
from expost.solve.row_sums import Term


class Measure(ABC):
    """Something about a hypothesis that should be small. Values are private; all else is public given the hypothesis.

    A new measure says what it is, how far one row can move it and how far its computation may be off. Cheap bounds are
    optional: they settle most comparisons, and never differently.
    """

    #: The one grid for all hypotheses, or None where each has a sensitivity of its own.
    uniform: Grid | None = None

    @abstractmethod
    def value(self, hypothesis: Any) -> float:
        """Return the measure, to within :meth:`error_bound`; private."""

    @abstractmethod
    def sensitivity(self, hypothesis: Any) -> float:
        """Return how far one row can move the true value for this hypothesis."""

    def error_bound(self, hypothesis: Any) -> float:
        """Return a bound on the floating-point error of :meth:`value`."""
        return 0.0

    def lower(self, hypothesis: Any) -> Iterable[float]:
        """Yield lower bounds on the true value, the cheapest first; private."""
        return ()

    def upper(self, hypothesis: Any) -> float:
        """Return an upper bound on the true value; private."""
        return math.inf

    def grid(self, hypothesis: Any) -> Grid:
        """Return the grid a rule counts on: the one for all, or the one of this hypothesis's own sensitivity."""
        return self.uniform or Grid.by_sensitivity(
            self.sensitivity(hypothesis), error_bound=self.error_bound(hypothesis)
        )

    def fine_grid(self, hypothesis: Any) -> Grid:
        """Return the grid of a question asked about this hypothesis alone."""
        return charged_grid(self.sensitivity(hypothesis), self.error_bound(hypothesis))

    def at_most(self, hypothesis: Any, limit: int, unit: float) -> bool:
        """Whether the value, rounded up to the grid, is at most ``limit`` units."""
        if limit < 0:  # measures are non-negative, so it rejects whatever the hypothesis is
            return False
        # The answer is the computed value plus η, hence never below the true one and at most 2η above it.
        if any(math.ceil(bound / unit) > limit for bound in self.lower(hypothesis)):
            return False
        error = self.error_bound(hypothesis)
        upper = self.upper(hypothesis)
        if math.isfinite(upper) and math.ceil((upper + 2 * error) / unit) <= limit:
            return True
        return math.ceil((self.value(hypothesis) + error) / unit) <= limit

    def __reduce__(self) -> NoReturn:
        raise TypeError("a measure holds private data and cannot be pickled")


def charged_grid(sensitivity: float, error_bound: float) -> Grid:
    """Return the grid for a value of that sensitivity computed to within that error."""
    return Grid.of(sensitivity, error_bound=error_bound)


class ErrorMeasure(Measure):
    """Any real-valued error function as a measure.

    Parameters
    ----------
    error
        ``hypothesis -> float``, a function of the private data too, of sensitivity at most ``sensitivity`` for
        every fixed hypothesis.
    sensitivity
        That bound, in real units.
    error_bound
        Bound on the floating-point error of ``error`` and, if not zero, of adding this bound to it; public.
    lower, upper
        Optional cheaper functions with lower(h) ≤ error(h) ≤ upper(h); of lower ones there may be several, the cheapest
        first. They settle most comparisons, and never differently: the noise is fixed before the question is asked.

    Examples
    --------
    >>> far = ErrorMeasure(lambda h: abs(h - 3.0), sensitivity=1.0)
    >>> unit = far.uniform.unit
    >>> far.at_most(3.4, round(0.5 / unit), unit), far.at_most(3.6, round(0.5 / unit), unit)
    (True, False)
    """

    def __init__(
        self,
        error: Callable[[Any], float],
        *,
        sensitivity: float,
        error_bound: float = 0.0,
        lower: Callable[[Any], float] | Sequence[Callable[[Any], float]] = (),
        upper: Callable[[Any], float] | None = None,
    ) -> None:
        self.uniform: Grid = Grid.of(sensitivity, error_bound=error_bound)
        self._sensitivity, self._error_bound = sensitivity, error_bound
        self._error, self._upper = error, upper
        self._lower = (lower,) if callable(lower) else tuple(lower)
        self.evaluations = 0

    @property
    def effective_sensitivity(self) -> float:
        """The sensitivity actually charged, which a test has to be calibrated for."""
        return self.uniform.effective_sensitivity

    def value(self, hypothesis: Any) -> float:
        """Return the error."""
        self.evaluations += 1
        return self._error(hypothesis)

    def sensitivity(self, hypothesis: Any = None) -> float:
        """Return the stated bound."""
        return self._sensitivity

    def error_bound(self, hypothesis: Any = None) -> float:
        """Return the stated bound."""
        return self._error_bound

    def lower(self, hypothesis: Any) -> Iterable[float]:
        """Yield the cheap bounds."""
        return (bound(hypothesis) for bound in self._lower)

    def upper(self, hypothesis: Any) -> float:
        """Return the cheap bound."""
        return math.inf if self._upper is None else self._upper(hypothesis)


def check_sensitivity(calibrated: float, grid: Grid) -> None:
    """Raise unless a test calibrated for one sensitivity may be used on a grid."""
    needed = grid.effective_sensitivity
    if needed > calibrated:
        raise ValueError(
            f"the test was calibrated for a sensitivity of {calibrated!r}, but the measure's is {needed!r} with its "
            f"rounding charged; calibrate with sensitivity=measure.effective_sensitivity"
        )


class Judge(Protocol):
    """What goals ask about rows: passes over any source, or an objective over arrays. Private."""

    @property
    def n(self) -> int:
        """Number of rows."""

    def errors(self, theta: FloatArray) -> float:
        """Return how many rows θ, from :func:`to_grid`, misclassifies: exactly, whatever the order of summation."""

    def outcomes(self, theta: FloatArray) -> tuple[float, float, float, float]:
        """Return how many hits, false alarms, misses and others θ has, exactly likewise."""

    def mean_of(self, term: Term, theta: FloatArray, most: float = 8.0) -> float:
        """Return the mean of a term of predictions and targets, which lies in [0, most]."""

    def target_mean(self) -> float:
        """Return ȳ; one row moves it by at most 2/n."""

    def target_variance(self) -> float:
        """Return the mean of (y − ȳ)²; one row moves it by at most 4(n − 1)/n²."""


@dataclass(frozen=True, repr=False)
class Predicted:
    """Predictions of targets and what part of the rows each is, as a judge: for goals asked about synthetic rows."""

    u: FloatArray
    y: FloatArray
    weights: FloatArray
    n: int = 1

    def errors(self, theta: FloatArray) -> float:
        """Return the share of rows misclassified."""
        return float(self.weights[(self.u > 0.0) != (self.y > 0.0)].sum())

    def outcomes(self, theta: FloatArray) -> tuple[float, float, float, float]:
        """Return the share of each outcome."""
        kind = 2 * (self.u <= 0.0) + (self.y <= 0.0)
        hits, false_alarms, misses, quiet = np.bincount(kind, self.weights, minlength=4).tolist()
        return hits, false_alarms, misses, quiet

    def mean_of(self, term: Term, theta: FloatArray, most: float = 8.0) -> float:
        """Return the mean of a term."""
        return float(self.weights @ term(self.u, self.y))

    def target_mean(self) -> float:
        """Return ȳ."""
        return float(self.weights @ self.y)

    def target_variance(self) -> float:
        """Return the mean of (y − ȳ)²."""
        return float(self.weights @ (self.y - self.target_mean()) ** 2)


@dataclass(frozen=True)
class ClippedSquare:
    """(y − u)², predictions moved into an interval."""

    lower: float = -1.0
    upper: float = 1.0

    def __call__(self, u: FloatArray, y: FloatArray) -> FloatArray:
        """Return it for each row."""
        residual = np.clip(u, self.lower, self.upper) - y
        return np.asarray(residual * residual)


def clipped_mean_square(judge: Judge, theta: FloatArray, within: tuple[float, float] = (-1.0, 1.0)) -> float:
    """Return the mean of (y − u)², predictions u = xᵀθ moved into an interval of [−1, 1]; private.

    One row moves it by at most 4/n: both are within [−1, 1].
    """
    return judge.mean_of(ClippedSquare(*within), theta, 4.0)


def clipped_mean_square_error(n: int, p: int, theta: FloatArray) -> float:
    """Return a bound on the error of :func:`clipped_mean_square`, from n, p and the released θ.

    Proof. A prediction is off by γ_p‖θ‖₂ (‖x‖₂ ≤ 1) and a residual is at most 2, so its square is off by 4γ_p‖θ‖₂ plus
    rounding of 4; a blocked sum adds γ_K·4. An exact sum (`expost.solve.row_sums`) rounds a term by 2⁻⁵⁰, which is 4γ₂
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
    (`expost.solve.row_sums`) rounds a term by 2⁻⁵²·h², which is 2γ₁h². ∎
    """
    off = gamma(p + 2) * norm + gamma(4) * (1.0 + largest_prediction + limit)
    height = max(0.0, 1.0 + largest_prediction - limit)
    return INFLATION * (height * off + off * off + gamma(summation_length(n) + 8) * height * height)


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


def gradient_target(excess_risk: float, regularization: float) -> float:
    """Return √(2λα), the gradient norm that proves excess risk α.

    Examples
    --------
    >>> round(gradient_target(0.05, 0.005), 6)
    0.022361
    """
    return math.sqrt(2.0 * regularization * excess_risk)


class GradientErrors(Protocol):
    """How far a computed ‖∇L(θ)‖₂ may be off; public."""

    def gradient_error_bound(self, radius: float) -> float:
        """Return a bound over ‖θ‖₂ ≤ radius."""


class Gradients(GradientErrors, Protocol):
    """Gradients of the true risk; private."""

    def gradient_norm(self, theta: FloatArray) -> float:
        """Return ‖∇L(θ)‖₂, to within :meth:`gradient_error_bound`."""

    def gradient_lower(self, theta: FloatArray) -> float:
        """Return a cheap lower bound on ‖∇L(θ)‖₂."""


class GradientLength(Measure):
    """‖∇L(θ)‖₂ of a released θ.

    Parameters
    ----------
    risk
        What the gradient is computed by; private.
    loss, n
        What it is of.
    """

    def __init__(self, risk: Gradients, loss: Loss, n: int) -> None:
        self._risk, self._loss, self._n = risk, loss, n

    def value(self, hypothesis: Any) -> float:
        """Return ‖∇L(θ)‖₂."""
        return self._risk.gradient_norm(np.asarray(hypothesis, dtype=np.float64))

    def sensitivity(self, hypothesis: Any) -> float:
        """Return S(‖θ‖_∞)/n."""
        return gradient_sensitivity(self._loss, float(np.abs(np.asarray(hypothesis)).max(initial=0.0))) / self._n

    def error_bound(self, hypothesis: Any) -> float:
        """Return the bound for ‖θ‖₂."""
        return self._risk.gradient_error_bound(float(np.linalg.norm(np.asarray(hypothesis))) * (1 + 1e-12))

    def lower(self, hypothesis: Any) -> Iterable[float]:
        """Yield a bound that needs no pass over the rows."""
        yield self._risk.gradient_lower(np.asarray(hypothesis, dtype=np.float64))
