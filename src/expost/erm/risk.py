"""True excess risk L(θ) − min L of hypotheses, with public bounds on the error of its computation. Private.

A test that compares excess risk with a threshold is private for the exact quantity. What is computed
differs from it by the inexact minimum and by rounding; ``excess_error_bound`` bounds the difference from
public numbers, to be charged twice in the sensitivity (once for each of two neighbours).

"min L" is over the ball of the given radius, or everywhere if there is none.
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np

from expost.erm._private import Private
from expost.erm._rounding import INFLATION, UNIT, gamma, summation_length
from expost.erm._types import FloatArray
from expost.erm.ball import minimise_in_ball
from expost.erm.exceptions import ConvergenceError
from expost.erm.losses import Loss, SquaredLoss
from expost.erm.minimise import Minimum, distance_bound, radius_tolerance
from expost.erm.objective import Objective, gradient_rounding
from expost.erm.sums import Sums


class Risk(Protocol):
    """What a search asks of the true risk."""

    @property
    def optimum(self) -> FloatArray:
        """The (approximate) minimiser θ*."""

    @property
    def distance_bound(self) -> float:
        """Public bound on the distance of ``optimum`` from the exact minimiser."""

    def excess(self, theta: FloatArray) -> float:
        """Return L(θ) − min L, to within :meth:`excess_error_bound`."""

    def lower(self, theta: FloatArray) -> float:
        """Return a cheap lower bound on the excess risk."""

    def upper(self, theta: FloatArray) -> float:
        """Return a cheap upper bound on the excess risk."""

    def excess_error_bound(self, radius: float) -> float:
        """Return a public bound on the error of :meth:`excess` over ‖θ‖₂ ≤ radius."""

    def gradient_norm(self, theta: FloatArray) -> float:
        """Return ‖∇L(θ)‖₂ without regard to any ball, to within :meth:`gradient_error_bound`."""

    def gradient_error_bound(self, radius: float) -> float:
        """Return a public bound on the error of :meth:`gradient_norm` over ‖θ‖₂ ≤ radius."""

    def gradient_lower(self, theta: FloatArray) -> float:
        """Return a cheap lower bound on ‖∇L(θ)‖₂."""


def minimum_error_bound(loss: Loss, lam: float, norm: float, tolerance: float, radius_error: float) -> float:
    """Bound |L(θ̂) − min L| by τ²/(2λ) + (G + λ(N + ρ))ρ.

    θ̂ is certified as in :func:`expost.erm.minimise.distance_bound`. ``norm`` is N, a bound on ‖θ̂‖ and on
    ‖θ*‖, and G = ``loss.lipschitz(N + ρ)``.

    Proof. With e = ∇L(θ̂) + νθ̂ and w in the ball, strong convexity gives L(w) ≥ L(θ̂) + ⟨e − νθ̂, w − θ̂⟩
    + (λ/2)‖w − θ̂‖² ≥ L(θ̂) − τ²/(2λ) − ν⟨θ̂, w − θ̂⟩, and ν⟨θ̂, w − θ̂⟩ ≤ ν‖θ̂‖(‖w‖ − ‖θ̂‖) ≤ ν‖θ̂‖ρ ≤ (G
    + λ‖θ̂‖)ρ, because ν‖θ̂‖ ≤ ‖∇L(θ̂)‖ for the multiplier that makes ‖e‖ smallest. Conversely θ̂ may lie
    outside by ρ at most; moving it back to the ball changes L by at most (G + λ(N + ρ))ρ. ∎

    Examples
    --------
    >>> minimum_error_bound(SquaredLoss(), 0.01, 5.0, 1e-10, 0.0) < 1e-17
    True
    """
    outside = norm + radius_error
    boundary = (loss.lipschitz(outside) + lam * outside) * radius_error
    return INFLATION * (tolerance * tolerance / (2.0 * lam) + boundary)


class RidgeRisk(Private):
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

    def __init__(self, sums: Sums, lam: float, radius: float) -> None:
        if not 0.0 < lam < math.inf:
            raise ValueError("lam must be positive and finite")
        if not radius > 0.0:
            raise ValueError("radius must be positive")
        loss = SquaredLoss()
        self.n, self.p, self.lam, self.radius = sums.n, sums.p, lam, radius
        covariance, b, _ = sums.as_floats()
        self._hessian = covariance + lam * np.eye(self.p)
        # Public bounds: on the minimiser's norm, on the norm error, and on the residual of the solver.
        self._norm = min(radius, loss.radius(lam))
        self._rho = 0.0 if math.isinf(radius) else radius_tolerance(self.p, radius)
        self._tolerance = _ridge_tolerance(self.p, lam, self._norm)
        self.distance_bound = distance_bound(loss, lam, self._tolerance, self._rho)
        self.optimum = minimise_in_ball(self._hessian, b, radius)
        self.optimum.setflags(write=False)
        self._gradient = self._hessian @ self.optimum - b
        if self._certified_residual() > self._tolerance:
            raise ConvergenceError("the ridge minimiser missed its public tolerance")

    def __repr__(self) -> str:
        return f"RidgeRisk(n={self.n}, p={self.p}, lam={self.lam}, radius={self.radius})"

    def _certified_residual(self) -> float:
        norm = float(np.linalg.norm(self.optimum))
        on_sphere = abs(norm - self.radius) <= 0.5 * self._rho
        nu = max(0.0, -float(self._gradient @ self.optimum) / norm**2) if on_sphere and norm > 0.0 else 0.0
        residual = float(np.linalg.norm(self._gradient + nu * self.optimum))
        return residual + gamma(2 * self.p + 16) * (1.0 + (1.0 + self.lam + nu) * norm)

    def excess(self, theta: FloatArray) -> float:
        """Return ½dᵀHd + ∇L(θ̂)ᵀd, d = θ − θ̂: exactly L(θ) − L(θ̂), with no cancellation."""
        step = theta - self.optimum
        return float(0.5 * (step @ (self._hessian @ step)) + self._gradient @ step)

    def gradient_norm(self, theta: FloatArray) -> float:
        """Return ‖H(θ − θ̂) + ∇L(θ̂)‖₂, which is ‖∇L(θ)‖₂."""
        return float(np.linalg.norm(self._hessian @ (theta - self.optimum) + self._gradient))

    def gradient_error_bound(self, radius: float) -> float:
        """Return a bound on the error of :meth:`gradient_norm`: each product as in :meth:`excess_error_bound`."""
        norm = self._norm + self.distance_bound
        steep = 1.0 + self.lam
        return INFLATION * gamma(2 * self.p + 16) * (steep * (radius + 2.0 * norm) + 1.0)

    def gradient_lower(self, theta: FloatArray) -> float:
        """Return :meth:`gradient_norm`, which is cheap here, less what it may be off by."""
        return self.gradient_norm(theta) - self.gradient_error_bound(float(np.linalg.norm(theta)) * (1 + 1e-12))

    def lower(self, theta: FloatArray) -> float:
        """Return :meth:`excess`, which is cheap here."""
        return self.excess(theta)

    def upper(self, theta: FloatArray) -> float:
        """Return :meth:`excess`, which is cheap here."""
        return self.excess(theta)

    def excess_error_bound(self, radius: float) -> float:
        """Return a bound on the error of :meth:`excess` over ‖θ‖₂ ≤ radius, from n, p, λ and the radii only.

        Proof. Let N bound ‖θ̂‖, D = radius + N bound ‖θ − θ̂‖ and M = 1 + λ. Entrywise absolute values of
        XᵀX/n have Frobenius norm at most 1 (‖x‖₁ ≤ 1), so H, its rounding (2u·M) and the matrix-vector
        product (γ_p·M·‖·‖) are all bounded through M. The quadratic form is off by at most γ_{2p+8}·M·D²,
        the gradient by γ_{p+6}(MN + 1) and its product with θ − θ̂ by γ_{2p+8}(MN + 1)D. To this comes the
        inexact minimum, :func:`minimum_error_bound`. ∎
        """
        norm = self._norm + self.distance_bound
        distance = radius + norm
        steep = 1.0 + self.lam
        rounding = gamma(2 * self.p + 16) * (steep * distance * distance + (steep * norm + 1.0) * distance)
        solver = minimum_error_bound(SquaredLoss(), self.lam, norm, self._tolerance, self._rho)
        return INFLATION * (rounding + solver)


def _ridge_tolerance(p: int, lam: float, norm: float) -> float:
    """Return the public residual tolerance of the ridge solver.

    A Cholesky solve has residual at most γ_{3p+1}·p·‖H‖‖θ‖ (Higham, theorem 10.4); the eigenvalue path is
    of the same order. It enters the excess risk squared, so a generous constant costs nothing.
    """
    return 16.0 * (p + 4) ** 2 * UNIT * (1.0 + (1.0 + lam) * norm)


class GeneralRisk(Private):
    """Excess risk of any loss, by one pass over the rows for a hypothesis, and cheap bounds without one.

    Parameters
    ----------
    loss : Loss
    X, y : arrays of shape (n, p) and (n,)
        The rows ``minimum`` was computed from.
    lam : float
        λ > 0.
    minimum : Minimum
        From :func:`expost.erm.minimise.minimise` on the same rows; its ball, if any, is the set of
        comparison.
    counts : array of shape (n,), optional
        How many rows each given one stands for.

    Examples
    --------
    >>> import numpy as np
    >>> from expost.erm.minimise import minimise
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
        self.optimum = minimum.theta
        self.distance_bound = minimum.distance_bound
        self.objective, self._minimum = objective, minimum
        self._values = loss.value(objective.predictions(self.optimum), objective.y)
        self._covariance = objective.covariance()
        self._curvature: FloatArray | None = None
        if loss.self_concordance is not None:
            self._curvature = objective.hessian(objective.predictions(self.optimum)) - lam * np.eye(self.p)
        # γ with p + 4 and not p: the subtraction in θ − θ̂ and the sums the product goes into are rounded as well.
        size = float(np.linalg.norm(minimum.gradient))
        self._gradient_error = minimum.gradient_rounding + gamma(self.p + 4) * size
        self._square_rounding = 2.0 * gamma(self.p + 8)
        natural = loss.radius(lam)
        self._norm = natural if minimum.radius is None else min(minimum.radius, natural)
        # Bounds the rounding of dᵀCd and of the factor before it, as a part of (c + λ)‖d‖². Predictions are off by
        # γ_p‖θ̂‖, which changes φ″ by a part M of that.
        moved = (loss.self_concordance or 0.0) * gamma(self.p) * (self._norm + minimum.distance_bound)
        self._relative_rounding = (
            gamma(summation_length(self.n) + 2 * self.p + loss.EVALUATION_ULPS + 16) + 1e-9 + 2.0 * moved
        )
        self._minimum_error = minimum_error_bound(
            loss, lam, self._norm + minimum.distance_bound, minimum.tolerance, minimum.radius_tolerance
        )

    def __repr__(self) -> str:
        return f"GeneralRisk(loss={self.loss!r}, n={self.n}, p={self.p}, lam={self.lam})"

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

    def gradient_error_bound(self, radius: float) -> float:
        """Return a bound on the error of :meth:`gradient_norm`, from public numbers only."""
        slope = self.loss.lipschitz(radius)
        rounding = gradient_rounding(self.loss, self.n, self.p, self.lam, radius, slope)
        return INFLATION * (rounding + gamma(self.p + 4) * (slope + self.lam * radius))

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

    def lower_by_distance(self, theta: FloatArray) -> float:
        """Return a rigorous lower bound on the excess risk: about (λ/2)‖θ − θ*‖².

        Strong convexity at θ̂, for every θ: L(θ) − L(θ̂) ≥ ∇L(θ̂)ᵀd + (λ/2)‖d‖², d = θ − θ̂. The first term
        is all but zero unless a ball holds θ̂ back. Subtracted: the gradient's error, the inexact minimum,
        rounding.
        """
        _, square, linear, error = self._expand(theta)
        return linear + 0.5 * self.lam * square * (1.0 - self._square_rounding) - error

    def lower(self, theta: FloatArray) -> float:
        """Return a sharper bound than :meth:`lower_by_distance` where the loss's curvature at θ̂ says something."""
        bound = self.lower_by_distance(theta)
        if self._curvature is None:
            return bound
        step = theta - self.optimum
        local, slack = self._local(step, float(step @ step), -1.0)
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
            INFLATION * (self._gradient_error * length + self._minimum_error),
        )

    def excess_error_bound(self, radius: float) -> float:
        """Return a bound on the error of :meth:`excess` over ‖θ‖₂ ≤ radius, from public numbers only.

        Proof. With m the larger of radius and ‖θ̂‖'s bound N, a prediction is off by γ_p·m, hence φ by
        lipschitz(m)·γ_p·m plus EVALUATION_ULPS·u·max(1, φ), for θ and for θ̂. The blocked mean of
        differences, each at most maximum(m), adds γ_K·maximum(m), K = min(n, 8192) + ⌈n/8192⌉ + 2; the
        regulariser γ_{p+6}(λ/2)(radius + N)². To this comes the inexact minimum,
        :func:`minimum_error_bound`. ∎
        """
        loss, minimum = self.loss, self._minimum
        norm = self._norm + minimum.distance_bound
        size = max(radius, norm)
        top = max(1.0, loss.maximum(size))
        evaluation = 2.0 * (loss.lipschitz(size) * gamma(self.p) * size + loss.EVALUATION_ULPS * UNIT * top)
        summation = gamma(summation_length(self.n) + 4) * top
        regulariser = gamma(self.p + 6) * 0.5 * self.lam * (radius + norm) ** 2
        return INFLATION * (evaluation + summation + regulariser + self._minimum_error)
