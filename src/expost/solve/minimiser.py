"""The minimiser of a regularised loss, certified, and true excess risks L(θ) − min L; private.

**Risks.** A test that compares excess risk with a threshold is private for the exact quantity. What is computed
differs from it by the inexact minimum and by rounding; ``excess_error_bound`` bounds the difference from
public numbers, to be charged twice in the sensitivity (once for each of two neighbours).

"min L" is over the ball of the given radius, or everywhere if there is none.

**The minimiser**, unconstrained or in a ball, is certified to a public tolerance. One found only approximately is a
different function of the rows, with a different sensitivity. Here the distance to the exact minimiser is bounded by a
number that depends on public constants alone, so that it can be charged (theory A5). The method is Newton's with the
exact Hessian: each step minimises the quadratic model, over the ball if there is one, and a line search on slopes makes
it globally convergent.

*No rows make it fail.* An error that some rows raise and their neighbours do not would tell them
apart, at no charge. In floating point Newton's method can stall: where λ is near the rounding
errors and rows are nearly dependent, its steps are long and the slope along them drowns. Then, and
where it runs out of steps,

1. the minimiser is found in integer arithmetic to more digits than float64 has (``expost.solve.exact``): by Newton's
   method again, and by the ellipsoid method should that fail, which ends after a number of steps known beforehand
   (195,000 gradients at p = 38 and λ = 10⁻⁹; on no rows has it been needed). Over a ball it is the unconstrained
   minimiser of L + (ν/2)‖θ‖² for a ν found by bisection. The float64 vector nearest to it meets the tolerance
   (``expost.solve.error_bounds``);
2. a loss that is known in floating point only is minimised by gradient descent, which meets the tolerance in the
   presence of rounding (``expost.solve.error_bounds.DescentBounds``), if λ is not too small for that.

Numbers for which this is not proved are refused before a row is looked at. How long it takes does
depend on the rows.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from expost.exceptions import ConvergenceError
from expost.numeric import INFLATION, UNIT, AnyArray, FloatArray, Private, gamma, summation_length
from expost.passes.sums import ROW_UNIT, Sums
from expost.solve.ball import minimum_in_ball
from expost.solve.error_bounds import (
    DescentBounds,
    GeneralErrors,
    RidgeErrors,
    radius_tolerance,
)
from expost.solve.exact import exact_minimiser, exact_ridge, precision, step_length
from expost.solve.losses import Loss, array_to_units, norm, to_floats, to_units
from expost.solve.objective import Gradient, Objective, check_shapes

_MAX_ITERATIONS = 500


@dataclass(frozen=True, eq=False, repr=False)
class Minimum(Private):
    """A certified approximate minimiser. Private, apart from ``bounds``.

    Attributes
    ----------
    objective : Objective
        What is minimised.
    bounds : GeneralErrors
        Public. The ball, the tolerance, how far θ̂ may be from the sphere and from the exact minimiser.
    theta : array of shape (p,)
        The approximate minimiser θ̂.
    gradient : Gradient
        The computed ∇L(θ̂), with a bound on its error.
    gradient_bound : float
        Certified bound on ‖∇L(θ̂) + νθ̂‖₂, rounding included; at most the tolerance.
    multiplier : float
        ν ≥ 0, the multiplier of the ball; zero if there is none or θ̂ is inside.
    iterations : int
        Newton steps taken.
    """

    objective: Objective
    bounds: GeneralErrors
    theta: FloatArray
    gradient: Gradient
    gradient_bound: float
    multiplier: float
    iterations: int

    def __repr__(self) -> str:
        return f"Minimum(p={self.theta.size}, bounds={self.bounds})"


@np.errstate(all="ignore")  # a warning that some rows cause would tell of them; the certificate judges the result
def minimise(
    loss: Loss,
    X: FloatArray,
    y: FloatArray,
    lam: float,
    *,
    tolerance: float | None = None,
    radius: float | None = None,
    counts: FloatArray | None = None,
) -> Minimum:
    """Return the minimiser of L(θ) = mean φ(xᵀθ, y) + (λ/2)‖θ‖², certified.

    Parameters
    ----------
    loss, X, y, lam, counts
        As for :class:`~expost.solve.objective.Objective`.
    tolerance : float, optional
        Largest certified gradient norm accepted, a public constant; :func:`default_tolerance` if not given, and not
        less than that.
    radius : float, optional
        Minimise over ‖θ‖₂ ≤ radius. On the sphere the minimiser is that of L + (ν/2)‖θ‖² for some ν ≥ 0,
        and the certificate is about ∇L(θ) + νθ.

    Raises
    ------
    ValueError
        If no minimiser is certain to be found for these public numbers, whatever the rows.
    ConvergenceError
        Only if the loss is not what it says it is: not convex, or steeper than its constants.
    """
    check_shapes(X, y)
    n, p = len(y) if counts is None else int(counts.sum()), X.shape[1]
    public = GeneralErrors(loss, n, p, lam, radius, math.nan if tolerance is None else tolerance)
    # settled now, so that numbers too extreme for it are refused whether or not the rows would ask for it
    bits = precision(loss, p, lam, radius) if loss.has_units else 0
    objective = Objective(loss, X, y, lam, counts)
    ball, theta, iterations = math.inf if radius is None else radius, np.zeros(p), 0
    for iterations in range(_MAX_ITERATIONS):
        u = objective.predictions(theta)
        gradient = objective.gradient(theta, u)
        found = _accepted(objective, public, theta, gradient, iterations)
        if found is not None:
            return found
        following = _newton_step(objective, theta, u, gradient.vector, ball)
        if following is None or not np.isfinite(following).all():
            break
        theta = following
    # Newton's method in floating point did not find it
    if loss.has_units:
        theta = exact_minimiser(objective, radius, theta, bits)
        gradient = objective.gradient(theta, objective.predictions(theta))
    else:
        theta, gradient = descend(objective, radius, public.tolerance, theta)
    found = _accepted(objective, public, theta, gradient, iterations, careful=True)
    if found is None:
        raise ConvergenceError("the loss is not what it says it is: its slopes in units are others")
    return found


def _accepted(
    objective: Objective,
    public: GeneralErrors,
    theta: FloatArray,
    gradient: Gradient,
    iterations: int,
    *,
    careful: bool = False,
) -> Minimum | None:
    """Return the minimum if the gradient certifies it."""
    ball = math.inf if public.radius is None else public.radius
    multiplier, bound = gradient.certificate(theta, ball, public.radius_tolerance, careful=careful)
    return (
        Minimum(objective, public, theta, gradient, bound, multiplier, iterations)
        if bound <= public.tolerance
        else None
    )


def _newton_step(
    objective: Objective, theta: FloatArray, u: FloatArray, gradient: FloatArray, radius: float
) -> FloatArray | None:
    """Return the next iterate, on the way to the minimiser of the quadratic model over the ball, or None."""
    hessian = objective.curvature_at(u) + objective.lam * np.eye(objective.p)
    target = minimum_in_ball(hessian, hessian @ theta - gradient, radius)
    if target is None:
        return None
    step = target - theta
    # On the sphere the slope along a short chord is a small difference of large terms. Once it is all
    # rounding the iterate is in the region of quadratic convergence and the full step is right.
    noise = 64.0 * UNIT * float(np.linalg.norm(gradient)) * float(np.linalg.norm(theta))
    if float(gradient @ step) >= -noise and not math.isinf(radius):
        return target
    v = objective.predictions(step)
    t = step_length(lambda t: objective.slope_along(theta, step, u, v, t))
    if t == 0.0:
        return None
    return target if t == 1.0 else theta + t * step


def descend(
    objective: Objective, radius: float | None, tolerance: float, start: FloatArray
) -> tuple[FloatArray, Gradient]:
    """Return θ whose certificate is at most the tolerance, and the gradient computed there."""
    public = DescentBounds(objective.loss, objective.n, objective.p, objective.lam, radius)
    shift, longest = public.shift, public.longest
    bits = 256 + max(0, shift) + math.ceil(abs(math.log2(longest)))
    ball = math.inf if radius is None else radius
    rho = 0.0 if radius is None else radius_tolerance(objective.p, radius)
    zero = np.zeros_like(start)
    # the theorem allows a start that is no worse than zero
    usable = bool(np.isfinite(start).all()) and float(np.linalg.norm(start)) <= longest
    usable = usable and _value(objective, start) <= _value(objective, zero)
    at = array_to_units(start if usable else zero, bits)
    for _ in range(public.steps + 1):
        theta = to_floats(at, bits)
        gradient = objective.gradient(theta, objective.predictions(theta))
        if gradient.certificate(theta, ball, rho, careful=True)[1] <= tolerance:
            return theta, gradient
        step = array_to_units(gradient.vector, bits)
        at = at - (step >> shift if shift >= 0 else step << -shift)
        if radius is not None:
            at = _into_ball(at, to_units(radius, bits))
    raise ConvergenceError(
        "the loss is not what it says it is: descent does not end as it does for a smooth convex one"
    )


def _value(objective: Objective, theta: FloatArray) -> float:
    values = objective.loss.value(objective.predictions(theta), objective.y)
    return objective.mean(values) + 0.5 * objective.lam * float(theta @ theta)


def _into_ball(at: AnyArray, radius: int) -> AnyArray:
    length = norm(at)
    return at if length <= radius else np.asarray(at * radius // length)


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
    minimum : Minimum
        What :func:`minimise` returned; its ball, if any, is the set of comparison.
    """

    def __init__(self, minimum: Minimum) -> None:
        objective = minimum.objective
        loss = objective.loss
        self.loss, self.lam, self.n, self.p = loss, objective.lam, objective.n, objective.p
        self.bounds = minimum.bounds
        self.optimum = minimum.theta
        self.objective, self._minimum = objective, minimum
        self._values = loss.value(objective.predictions(self.optimum), objective.y)
        self._covariance = objective.covariance()
        self._curvature: FloatArray | None = None
        if loss.self_concordance is not None:
            self._curvature = objective.curvature_at(objective.predictions(self.optimum))
        # γ with p + 4 and not p: the subtraction in θ − θ̂ and the sums the product goes into are rounded as well.
        size = float(np.linalg.norm(minimum.gradient.vector))
        self._gradient_error = minimum.gradient.rounding + gamma(self.p + 4) * size
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
            float(self._minimum.gradient.vector @ step),
            INFLATION * (self._gradient_error * length + self.bounds.minimum_error),
        )
