"""The minimiser of a regularised loss, unconstrained or in a ball, certified to a public tolerance.

A minimiser found only approximately is a different function of the rows, with a different
sensitivity. Here the distance to the exact minimiser is bounded by a number that depends on public
constants alone, so that it can be charged (theory A5). The method is Newton's with the
exact Hessian: each step minimises the quadratic model, over the ball if there is one, and a line
search on slopes makes it globally convergent.

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
from dataclasses import dataclass

import numpy as np

from expost.exceptions import ConvergenceError
from expost.numeric import UNIT, AnyArray, FloatArray, Private
from expost.solve.ball import minimum_in_ball
from expost.solve.error_bounds import (
    DescentBounds,
    GeneralErrors,
    default_tolerance,
    distance_bound,
    radius_tolerance,
)
from expost.solve.exact import exact_minimiser, precision, step_length
from expost.solve.losses import Loss, array_to_units, norm, to_floats, to_units
from expost.solve.objective import Gradient, Objective, check_shapes

__all__ = ["Minimum", "default_tolerance", "distance_bound", "minimise", "radius_tolerance"]

_MAX_ITERATIONS = 500


@dataclass(frozen=True, eq=False, repr=False)
class Minimum(Private):
    """A certified approximate minimiser. Private, apart from the public bounds named below.

    Attributes
    ----------
    theta : array of shape (p,)
        The approximate minimiser θ̂.
    gradient : array of shape (p,)
        The computed ∇L(θ̂).
    gradient_rounding : float
        Bound on the ℓ₂ error of ``gradient``.
    gradient_bound : float
        Certified bound on ‖∇L(θ̂) + νθ̂‖₂, rounding included; at most ``tolerance``.
    multiplier : float
        ν ≥ 0, the multiplier of the ball; zero if there is none or θ̂ is inside.
    iterations : int
        Newton steps taken.
    tolerance : float
        Public.
    radius : float or None
        Public. The ball θ was asked to lie in.
    radius_tolerance : float
        Public. ρ: if ν > 0 then |‖θ̂‖ − radius| ≤ ρ, and ‖θ̂‖ ≤ radius + ρ always. Zero without a ball.
    distance_bound : float
        Public. Bound on ‖θ̂ − θ*‖₂, see :func:`distance_bound`.
    """

    theta: FloatArray
    gradient: FloatArray
    gradient_rounding: float
    gradient_bound: float
    multiplier: float
    iterations: int
    tolerance: float
    radius: float | None
    radius_tolerance: float
    distance_bound: float

    def __repr__(self) -> str:
        return (
            f"Minimum(p={self.theta.size}, tolerance={self.tolerance:.3g}, radius={self.radius}, "
            f"distance_bound={self.distance_bound:.3g})"
        )


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

    Examples
    --------
    >>> import numpy as np
    >>> from expost.solve.losses import SquaredLoss
    >>> minimum = minimise(SquaredLoss(), np.array([[1.0], [1.0]]), np.array([1.0, 0.5]), 0.5)
    >>> minimum.theta.round(12)
    array([0.5])
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
        found = _accepted(public, theta, gradient, iterations)
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
    found = _accepted(public, theta, gradient, iterations, careful=True)
    if found is None:
        raise ConvergenceError("the loss is not what it says it is: its slopes in units are others")
    return found


def _accepted(
    public: GeneralErrors, theta: FloatArray, gradient: Gradient, iterations: int, *, careful: bool = False
) -> Minimum | None:
    """Return the minimum if the gradient certifies it."""
    ball = math.inf if public.radius is None else public.radius
    multiplier, bound = gradient.certificate(theta, ball, public.radius_tolerance, careful=careful)
    if not bound <= public.tolerance:
        return None
    return Minimum(
        theta=theta,
        gradient=gradient.vector,
        gradient_rounding=gradient.rounding,
        gradient_bound=bound,
        multiplier=multiplier,
        iterations=iterations,
        tolerance=public.tolerance,
        radius=public.radius,
        radius_tolerance=public.radius_tolerance,
        distance_bound=public.distance_bound,
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
