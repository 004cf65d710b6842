"""The minimiser of a regularised loss, unconstrained or in a ball, certified to a public tolerance.

A minimiser found only approximately is a different function of the rows, with a different sensitivity. Here
the distance to the exact minimiser is bounded by a number that depends on public constants alone, so that
it can be charged (theory A, "slips"). The method is Newton's with the exact Hessian: each step minimises
the quadratic model, over the ball if there is one, and a line search on slopes makes it globally
convergent.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from expost.erm._private import Private
from expost.erm._rounding import INFLATION, UNIT, gamma, round_up
from expost.erm._types import FloatArray
from expost.erm.ball import minimise_in_ball
from expost.erm.exceptions import ConvergenceError
from expost.erm.line_search import step_length
from expost.erm.losses import Loss
from expost.erm.objective import Gradient, Objective, gradient_rounding

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


def default_tolerance(loss: Loss, n: int, p: int, lam: float, radius: float | None = None) -> float:
    """Return a gradient tolerance that is public and that rounding cannot keep any rows from reaching.

    It is four times the rounding bound at the minimiser, and at least 10⁻¹². There ‖θ*‖ is at most
    ``loss.radius(lam)`` (or the ball's radius), and mean|φ'| ≤ √(2·curvature·null_value): a non-negative
    loss with second derivative at most c has φ'² ≤ 2cφ, and mean φ ≤ L(θ*) ≤ L(0) ≤ null_value, since 0 is
    in every ball.

    Examples
    --------
    >>> from expost.erm.losses import LogisticLoss
    >>> default_tolerance(LogisticLoss(), 100_000, 38, 0.005) < 1e-11
    True
    """
    norm = loss.radius(lam) if radius is None else min(radius, loss.radius(lam))
    slope = min(loss.lipschitz(norm), math.sqrt(2.0 * loss.curvature * loss.null_value))
    rounding = gradient_rounding(loss, n, p, lam, norm, slope) + gamma(8) * (slope + lam * norm)
    return max(1e-12, 4.0 * rounding)


def radius_tolerance(p: int, radius: float) -> float:
    """Return ρ, by how much the norm of a θ rescaled to ``radius`` may miss it in floating point.

    Examples
    --------
    >>> radius_tolerance(38, 7.5) < 1e-13
    True
    """
    return 2.0 * gamma(p + 8) * radius


def distance_bound(loss: Loss, lam: float, tolerance: float, radius_error: float = 0.0) -> float:
    """Return (τ + (c + λ)ρ)/λ, a bound on ‖θ̂ − θ*‖₂ from public constants only.

    Here θ* minimises L over the ball of radius R (or everywhere: ρ = 0), c = ``loss.curvature``, and θ̂
    satisfies ‖∇L(θ̂) + νθ̂‖ ≤ τ for some ν ≥ 0 with either ν > 0 and |‖θ̂‖ − R| ≤ ρ, or ν = 0 and ‖θ̂‖ ≤ R
    + ρ.

    Proof. Let r = ‖θ̂‖ if ν > 0 and r = max(R, ‖θ̂‖) if ν = 0, e = ∇L(θ̂) + νθ̂, and θ_r the minimiser over
    the ball of radius r. Strong convexity, ⟨∇L(θ_r), θ̂ − θ_r⟩ ≥ 0 (optimality of θ_r) and ν⟨θ̂, θ̂ − θ_r⟩
    ≥ 0 (‖θ_r‖ ≤ r) give λ‖θ̂ − θ_r‖² ≤ ⟨∇L(θ̂) − ∇L(θ_r), θ̂ − θ_r⟩ ≤ ⟨e, θ̂ − θ_r⟩, so ‖θ̂ − θ_r‖ ≤ τ/λ.

    It remains to compare two radii r < R (or the other way round), |R − r| ≤ ρ. Write a = θ_r and b = θ_R;
    if a is inside its ball then a = b. Otherwise ‖a‖ = r and ∇L(a) = −ν_r·a, ∇L(b) = −ν_R·b, where ‖b‖ = R
    or ν_R = 0. Then λ‖a − b‖² ≤ ⟨ν_R·b − ν_r·a, a − b⟩ = (ν_r + ν_R)⟨a, b⟩ − ν_r r² − ν_R R² ≤ (R − r)(ν_r
    r − ν_R R), using ⟨a, b⟩ ≤ rR, and ν_r r − ν_R R = ‖∇L(a)‖ − ‖∇L(b)‖ ≤ ‖∇L(a) − ∇L(b)‖ ≤ (c + λ)‖a − b‖,
    since XᵀX/n ⪯ I. (With ν_R = 0 the same chain holds with ∇L(b) = 0.) Dividing, ‖a − b‖ ≤ (c + λ)ρ/λ. ∎

    The bound is linear in ρ. Comparing values instead, λ/2·‖a − b‖² ≤ L(a) − L(b) ≤ (G + λR)ρ, gives only a
    square root, √(2(G + λR)ρ/λ): many orders of magnitude more at ρ near the rounding error.

    Examples
    --------
    >>> from expost.erm.losses import SquaredLoss
    >>> distance_bound(SquaredLoss(), 0.01, 1e-10) < 1.0000001e-8
    True
    """
    return round_up((tolerance + (loss.curvature + lam) * radius_error) / lam)


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
    loss : Loss
    X : array of shape (n, p)
        Rows with ‖x‖₁ ≤ 1.
    y : array of shape (n,)
        Targets in [−1, 1], or ±1 for a binary loss.
    lam : float
        λ > 0.
    tolerance : float, optional
        Largest certified gradient norm accepted, a public constant; :func:`default_tolerance` if not given.
    radius : float, optional
        Minimise over ‖θ‖₂ ≤ radius. On the sphere the minimiser is that of L + (ν/2)‖θ‖² for some ν ≥ 0,
        and the certificate is about ∇L(θ) + νθ.
    counts : array of shape (n,), optional
        How many rows each given one stands for.

    Raises
    ------
    ConvergenceError
        If the tolerance is not certified.

    Examples
    --------
    >>> import numpy as np
    >>> from expost.erm.losses import SquaredLoss
    >>> minimum = minimise(SquaredLoss(), np.array([[1.0], [1.0]]), np.array([1.0, 0.5]), 0.5)
    >>> minimum.theta.round(12)
    array([0.5])
    """
    objective = Objective(loss, X, y, lam, counts)
    p = objective.p
    if radius is not None and not 0.0 < radius < math.inf:
        raise ValueError("radius must be positive and finite; leave it out for no ball")
    if tolerance is None:
        tolerance = default_tolerance(loss, objective.n, p, lam, radius)
    ball = math.inf if radius is None else radius
    rho = 0.0 if radius is None else radius_tolerance(p, radius)
    theta = np.zeros(p)
    for iteration in range(_MAX_ITERATIONS):
        u = objective.predictions(theta)
        gradient = objective.gradient(theta, u)
        multiplier, bound = _residual(theta, gradient, ball, rho)
        if bound <= tolerance:
            return Minimum(
                theta=theta,
                gradient=gradient.vector,
                gradient_rounding=gradient.rounding,
                gradient_bound=bound,
                multiplier=multiplier,
                iterations=iteration,
                tolerance=tolerance,
                radius=radius,
                radius_tolerance=rho,
                distance_bound=distance_bound(loss, lam, tolerance, rho),
            )
        theta = _newton_step(objective, theta, u, gradient.vector, ball)
    raise ConvergenceError(f"no minimiser certified to {tolerance:.3g} in {_MAX_ITERATIONS} Newton steps")


def _residual(theta: FloatArray, gradient: Gradient, radius: float, rho: float) -> tuple[float, float]:
    """Return the multiplier ν and a certified bound on ‖∇L(θ) + νθ‖₂.

    Any ν ≥ 0 is admissible on the sphere; the one that makes the residual shortest is taken. Inside, ν = 0.
    """
    square = float(theta @ theta)
    norm = math.sqrt(square)
    # The computed norm is within γ(p+2) of the true one, so half of ρ here certifies all of it.
    on_sphere = square > 0.0 and abs(norm - radius) <= 0.5 * rho
    nu = max(0.0, -float(gradient.vector @ theta) / square) if on_sphere else 0.0
    residual = gradient.vector + nu * theta
    bound = float(np.linalg.norm(residual)) * (1.0 + gamma(theta.size + 4))
    return nu, INFLATION * (bound + gradient.rounding + gamma(3) * nu * norm)


def _newton_step(
    objective: Objective, theta: FloatArray, u: FloatArray, gradient: FloatArray, radius: float
) -> FloatArray:
    """Return the next iterate, on the way to the minimiser of the quadratic model over the ball."""
    hessian = objective.hessian(u)
    target = minimise_in_ball(hessian, hessian @ theta - gradient, radius)
    step = target - theta
    # On the sphere the slope along a short chord is a small difference of large terms. Once it is all
    # rounding the iterate is in the region of quadratic convergence and the full step is right.
    noise = 64.0 * UNIT * float(np.linalg.norm(gradient)) * float(np.linalg.norm(theta))
    if float(gradient @ step) >= -noise and not math.isinf(radius):
        return target
    v = objective.predictions(step)
    t = step_length(lambda t: objective.slope_along(theta, step, u, v, t))
    return target if t == 1.0 else theta + t * step
