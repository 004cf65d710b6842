"""True excess risk L(θ) − min L of hypotheses, with public bounds on the error of its computation. Private.

A test that compares excess risk with a threshold is private for the exact quantity. What is computed
differs from it by the inexact minimum and by rounding; ``excess_error_bound`` bounds the difference from
public numbers, to be charged twice in the sensitivity (once for each of two neighbours).

"min L" is over the ball of the given radius, or everywhere if there is none.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np

from expost.numeric import INFLATION, FloatArray, Private, gamma, summation_length
from expost.passes.sums import ROW_UNIT, Sums
from expost.solve.ball import minimum_in_ball
from expost.solve.error_bounds import GeneralErrors, RidgeErrors
from expost.solve.exact import exact_ridge
from expost.solve.losses import Loss
from expost.solve.minimisation import Minimum
from expost.solve.objective import Gradient, Objective


class Risk(Private, ABC):
    """What a search asks of the true risk; its minimiser is certified, with the public bounds that follow.

    Attributes
    ----------
    bounds
        Public. How far the numbers below may be off.
    optimum
        The (approximate) minimiser θ*.
    """

    bounds: GeneralErrors | RidgeErrors
    optimum: FloatArray

    @property
    def distance_bound(self) -> float:
        """Public bound on the distance of ``optimum`` from the exact minimiser."""
        return self.bounds.distance_bound

    def excess_error_bound(self, radius: float) -> float:
        """Return a public bound on the error of :meth:`excess` over ‖θ‖₂ ≤ radius."""
        return self.bounds.excess_error_bound(radius)

    def gradient_error_bound(self, radius: float) -> float:
        """Return a public bound on the error of :meth:`gradient_norm` over ‖θ‖₂ ≤ radius."""
        return self.bounds.gradient_error_bound(radius)

    @abstractmethod
    def excess(self, theta: FloatArray) -> float:
        """Return L(θ) − min L, to within :meth:`excess_error_bound`."""

    @abstractmethod
    def gradient_norm(self, theta: FloatArray) -> float:
        """Return ‖∇L(θ)‖₂ without regard to any ball, to within :meth:`gradient_error_bound`."""

    @abstractmethod
    def gradient_lower(self, theta: FloatArray) -> float:
        """Return a cheap lower bound on ‖∇L(θ)‖₂."""

    def lower(self, theta: FloatArray) -> float:
        """Return a cheap lower bound on the excess risk; here itself."""
        return self.excess(theta)

    def upper(self, theta: FloatArray) -> float:
        """Return a cheap upper bound on the excess risk; here itself."""
        return self.excess(theta)


class RidgeRisk(Risk):
    """Excess risk of ridge regression from exact sums: no pass over the rows for a hypothesis.

    Parameters
    ----------
    sums : Sums
    lam : float
        λ > 0.
    radius : float
        Ball the minimum is taken over; ``inf``, or anything from ``SquaredLoss().radius(lam)`` on, is no
        constraint.

    Examples
    --------
    >>> import numpy as np
    >>> sums = Sums(1, 1, np.array([[2**40]]), np.array([2**40]), 2**40)
    >>> risk = RidgeRisk(sums, 1.0, np.inf)  # L(θ) = ½(θ − 1)² + ½θ²
    >>> risk.optimum.round(12), round(risk.excess(np.array([1.5])), 12)
    (array([0.5]), 1.0)
    """

    @np.errstate(all="ignore")  # a warning that some rows cause would tell of them; the residual judges the result
    def __init__(self, sums: Sums, lam: float, radius: float) -> None:
        self.bounds = RidgeErrors(sums.p, lam, radius)
        self.n, self.p, self.lam, self.radius = sums.n, sums.p, lam, radius
        covariance, b, _ = sums.as_floats()
        self.target_mean = None if sums.target_sum is None else sums.target_sum / (sums.n * ROW_UNIT)
        self._hessian = covariance + lam * np.eye(self.p)
        found = minimum_in_ball(self._hessian, b, radius)
        if found is None or not self._certified(found, b):
            found = exact_ridge(sums, lam, radius)
            assert self._certified(found, b, careful=True)  # RidgeErrors: for all rows
        self.optimum = found
        self.optimum.setflags(write=False)
        self._gradient = self._hessian @ self.optimum - b

    def __repr__(self) -> str:
        return f"RidgeRisk(n={self.n}, p={self.p}, lam={self.lam}, radius={self.radius})"

    def _certified(self, theta: FloatArray, b: FloatArray, *, careful: bool = False) -> bool:
        """Whether θ has a residual within the public tolerance, rounding included."""
        norm = float(np.linalg.norm(theta))
        rounding = gamma(2 * self.p + 16) * (1.0 + (1.0 + self.lam) * norm)
        gradient = Gradient(self._hessian @ theta - b, rounding)
        bound = gradient.certificate(theta, self.radius, self.bounds.radius_tolerance, careful=careful)[1]
        return bound <= self.bounds.tolerance

    def excess(self, theta: FloatArray) -> float:
        """Return ½dᵀHd + ∇L(θ̂)ᵀd, d = θ − θ̂: exactly L(θ) − L(θ̂), with no cancellation."""
        step = theta - self.optimum
        return float(0.5 * (step @ (self._hessian @ step)) + self._gradient @ step)

    def gradient_norm(self, theta: FloatArray) -> float:
        """Return ‖H(θ − θ̂) + ∇L(θ̂)‖₂, which is ‖∇L(θ)‖₂."""
        return float(np.linalg.norm(self._hessian @ (theta - self.optimum) + self._gradient))

    def gradient_lower(self, theta: FloatArray) -> float:
        """Return :meth:`gradient_norm`, which is cheap here, less what it may be off by."""
        return self.gradient_norm(theta) - self.gradient_error_bound(float(np.linalg.norm(theta)) * (1 + 1e-12))


class GeneralRisk(Risk):
    """Excess risk of any loss, by one pass over the rows for a hypothesis, and cheap bounds without one.

    Parameters
    ----------
    loss, X, y, lam, counts
        What :func:`expost.solve.minimisation.minimise` was given.
    minimum : Minimum
        What it returned; its ball, if any, is the set of comparison.

    Examples
    --------
    >>> import numpy as np
    >>> from expost.solve import SquaredLoss, minimise
    >>> X, y = np.array([[1.0]]), np.array([1.0])
    >>> risk = GeneralRisk(SquaredLoss(), X, y, 1.0, minimise(SquaredLoss(), X, y, 1.0))
    >>> round(risk.excess(np.array([1.5])), 12)
    1.0
    """

    def __init__(
        self,
        loss: Loss,
        X: FloatArray,
        y: FloatArray,
        lam: float,
        minimum: Minimum,
        counts: FloatArray | None = None,
    ) -> None:
        objective = Objective(loss, X, y, lam, counts)
        if minimum.theta.shape != (objective.p,):
            raise ValueError("the minimum belongs to rows with another number of features")
        self.loss, self.lam, self.n, self.p = loss, lam, objective.n, objective.p
        self.bounds = GeneralErrors(loss, objective.n, objective.p, lam, minimum.radius, minimum.tolerance)
        self.optimum = minimum.theta
        self.objective, self._minimum = objective, minimum
        self._values = loss.value(objective.predictions(self.optimum), objective.y)
        self._covariance = objective.covariance()
        self._curvature: FloatArray | None = None
        if loss.self_concordance is not None:
            self._curvature = objective.curvature_at(objective.predictions(self.optimum))
        # γ with p + 4 and not p: the subtraction in θ − θ̂ and the sums the product goes into are rounded as well.
        size = float(np.linalg.norm(minimum.gradient))
        self._gradient_error = minimum.gradient_rounding + gamma(self.p + 4) * size
        # Bounds the rounding of dᵀCd and of the factor before it, as a part of (c + λ)‖d‖². Predictions are off by
        # γ_p‖θ̂‖, which changes φ″ by a part M of that.
        moved = (loss.self_concordance or 0.0) * gamma(self.p) * (self.bounds.norm + self.bounds.distance_bound)
        self._relative_rounding = (
            gamma(summation_length(self.n) + 2 * self.p + loss.EVALUATION_ULPS + 16) + 1e-9 + 2.0 * moved
        )

    def __repr__(self) -> str:
        return f"GeneralRisk(loss={self.loss!r}, n={self.n}, p={self.p}, lam={self.lam})"

    @property
    def target_mean(self) -> float:
        """The mean of the targets."""
        return self.objective.mean(self.objective.y)

    def excess(self, theta: FloatArray) -> float:
        """Return the mean over rows of φ(xᵀθ, y) − φ(xᵀθ̂, y), plus (λ/2)(‖θ‖² − ‖θ̂‖²)."""
        values = self.loss.value(self.objective.predictions(theta), self.objective.y)
        values -= self._values
        # ‖θ‖² − ‖θ̂‖² as a product, which does not cancel.
        squares = float((theta - self.optimum) @ (theta + self.optimum))
        return self.objective.mean(values) + 0.5 * self.lam * squares

    def gradient_norm(self, theta: FloatArray) -> float:
        """Return ‖∇L(θ)‖₂ by one pass over the rows."""
        gradient = self.objective.gradient(theta, self.objective.predictions(theta))
        return float(np.linalg.norm(gradient.vector))

    def gradient_lower(self, theta: FloatArray) -> float:
        """Return a rigorous lower bound on ‖∇L(θ)‖₂ without a pass over the rows.

        ‖∇L(θ)‖ ≥ ⟨∇L(θ), d⟩/‖d‖ with d = θ − θ̂, and ⟨∇L(θ) − ∇L(θ̂), d⟩ ≥ λ‖d‖² + κ(−m)·dᵀCd: along the step
        second derivatives fall by at most a factor e^{−M|s|} (:meth:`_local`), whose mean is κ(a) = (e^a − 1)/a. The
        bound is sharp where the gradient points along d, and never says more than that.
        """
        step, square, linear, error = self._expand(theta)
        if square == 0.0:
            return 0.0
        along = linear + self.lam * square * (1.0 - gamma(self.p + 16)) - error
        if self._curvature is not None:
            move = self._move(step)
            kept = 1.0 - 0.5 * move if move < 1e-5 else -math.expm1(-move) / move  # 1 − a/2 is below κ(−a)
            slack = self._relative_rounding * (self.loss.curvature + self.lam) * square
            along += max(0.0, kept * float(step @ (self._curvature @ step)) - slack)
        return along / math.sqrt(square) * (1.0 - gamma(self.p + 16) * math.copysign(1.0, along))

    def lower(self, theta: FloatArray) -> float:
        """Return a rigorous lower bound on the excess risk: about (λ/2)‖θ − θ*‖², or more.

        Strong convexity at θ̂, for every θ: L(θ) − L(θ̂) ≥ ∇L(θ̂)ᵀd + (λ/2)‖d‖², d = θ − θ̂. The first term
        is all but zero unless a ball holds θ̂ back. Subtracted: the gradient's error, the inexact minimum,
        rounding. Added, where the loss's curvature at θ̂ says something: :meth:`_local`.
        """
        step, square, linear, error = self._expand(theta)
        bound = linear + 0.5 * self.lam * square * (1.0 - 2.0 * gamma(self.p + 8)) - error
        if self._curvature is None:
            return bound
        local, slack = self._local(step, square, -1.0)
        return bound + max(0.0, local - slack)

    def upper(self, theta: FloatArray) -> float:
        """Return a rigorous upper bound on the excess risk: about ½(θ − θ*)ᵀ(cΣ + λI)(θ − θ*), Σ = XᵀX/n.

        Smoothness at θ̂, for every θ: φ'' ≤ c gives L(θ) − L(θ̂) ≤ ∇L(θ̂)ᵀd + ½dᵀ(cΣ + λI)d. Added: as in
        :meth:`lower`.
        """
        step, square, linear, error = self._expand(theta)
        quadratic = self.loss.curvature * float(step @ (self._covariance @ step)) + self.lam * square
        # Entrywise |Σ| has Frobenius norm at most 1, so its summation error is at most γ·‖d‖² in the form.
        slack = gamma(summation_length(self.n) + 2 * self.p + 8) * (self.loss.curvature + self.lam) * square
        best = 0.5 * quadratic + slack
        if self._curvature is not None:
            local, local_slack = self._local(step, square, 1.0)
            best = min(best, local + local_slack + 0.5 * self.lam * square + slack)
        return linear + best + error

    def _local(self, step: FloatArray, square: float, sign: float) -> tuple[float, float]:
        """Return ψ(±m)·dᵀCd, C the loss's Hessian at θ̂, and a bound on its rounding error.

        With |φ‴| ≤ M·φ″ second derivatives change by at most a factor e^{M|s|} when the prediction moves by s,
        so φ(u + s) − φ(u) − sφ′(u) lies between ψ(−M|s|)·φ″(u)s² and ψ(M|s|)·φ″(u)s², where
        ψ(a) = (e^a − a − 1)/a² increases; and |s| = |xᵀd| ≤ ‖d‖_∞ because ‖x‖₁ ≤ 1. So m = M‖d‖_∞.
        (Self-concordance, after Bach 2010.)
        """
        assert self._curvature is not None
        move = sign * self._move(step)
        if abs(move) > 30.0:  # far outside the useful range: no bound worth having
            return (0.0, 0.0) if move < 0.0 else (math.inf, 0.0)
        # near zero the closed form cancels; 1/2 + a/6 is its Taylor polynomial, off by at most a²/20
        factor = 0.5 + move / 6.0 if abs(move) < 1e-5 else (math.expm1(move) - move) / (move * move)
        form = float(step @ (self._curvature @ step))
        # the closed form is off by a relative 4u/|a| ≤ 10⁻¹⁰, the polynomial by 10⁻¹⁰
        return factor * form, self._relative_rounding * factor * (self.loss.curvature + self.lam) * square

    def _move(self, step: FloatArray) -> float:
        """Return M‖d‖_∞, which bounds M|xᵀd|."""
        assert self.loss.self_concordance is not None
        return self.loss.self_concordance * float(np.abs(step).max(initial=0.0))

    def _expand(self, theta: FloatArray) -> tuple[FloatArray, float, float, float]:
        """Return d = θ − θ̂, ‖d‖², ∇L(θ̂)ᵀd and what the gradient and the minimum may be off by."""
        step = theta - self.optimum
        square = float(step @ step)
        length = math.sqrt(square)
        return (
            step,
            square,
            float(self._minimum.gradient @ step),
            INFLATION * (self._gradient_error * length + self.bounds.minimum_error),
        )
