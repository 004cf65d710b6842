"""Every sensitivity of this room, in one place, each with its proof.

Neighbours differ in one replaced row; the number of rows n is public. Rows satisfy ‖x‖₁ ≤ 1 (hence ‖x‖₂ ≤
1) and |y| ≤ 1. A result is rounded up by a few units in the last place: a sensitivity may err on the large
side only. The sensitivity of the released sums is :data:`expost.erm.statistics.STATISTICS_SENSITIVITY`.
"""

from __future__ import annotations

import math
from fractions import Fraction

from expost.erm._rounding import round_up
from expost.erm.losses import Loss


def excess_risk_sensitivity(loss: Loss, radius: float, n: int, *, value_error: float = 0.0) -> float:
    """Return 2·spread(R)/n (+ 2·value_error), the sensitivity of L(θ) − min L for a fixed θ.

    Squared loss: (R + 1)²/n. Logistic loss: 2R/n.

    Proof. Let θ and the set the minimum is taken over lie in ‖θ‖₂ ≤ R. (An unconstrained minimum is one
    over that ball if R ≥ ``loss.radius(lam)``.) Replacing d by d' changes L(θ) by (φ(θ, d') − φ(θ, d))/n,
    at most spread(R)/n either way, for every such θ. A minimum changes by no more than its function does.
    The two changes may add up: (R + 1)²/(2n) is *not* a sensitivity for the squared loss. ∎

    Parameters
    ----------
    loss : Loss
    radius : float
        R, bound on ‖θ‖₂ for hypotheses and for the minimiser.
    n : int
        Number of rows.
    value_error : float
        Bound on the error of the computed excess risk (``excess_error_bound``). The computed values on two
        neighbours may be off in opposite directions, so it is charged twice.

    Examples
    --------
    >>> from expost.erm.losses import SquaredLoss
    >>> round(excess_risk_sensitivity(SquaredLoss(), 1.0, 100), 12)
    0.04
    """
    _check(n=n, radius=radius)
    return round_up(2.0 * loss.spread(radius) / n + 2.0 * value_error)


def minimiser_l2_sensitivity(loss: Loss, radius: float, n: int, lam: float, *, distance_bound: float = 0.0) -> float:
    """Return 2G/(nλ) (+ 2·distance_bound), the ℓ₂-sensitivity of the minimiser.

    G is ``loss.lipschitz(radius)``.

    Proof. Let a minimise L and b minimise L' (one row replaced), both over the same convex set C or both
    over all of space, with ‖b‖₂ ≤ radius. Optimality says ⟨∇L(a), b − a⟩ ≥ 0 and ⟨∇L'(b), a − b⟩ ≥ 0. By
    strong convexity λ‖a − b‖² ≤ ⟨∇L(b) − ∇L(a), b − a⟩ ≤ ⟨∇L(b), b − a⟩ ≤ ⟨∇L(b) − ∇L'(b), b − a⟩, and
    ∇L(b) − ∇L'(b) is the difference of two row gradients φ'·x at b, divided by n: at most 2G/n in norm. ∎

    Parameters
    ----------
    loss : Loss
    radius : float
        Bound on the norm of the minimiser: the ball it is constrained to, or ``loss.radius(lam)``; ``inf``
        for a loss that is Lipschitz everywhere.
    n, lam : int, float
        Number of rows and λ.
    distance_bound : float
        Bound on the distance of the computed minimiser from the exact one, charged once for each neighbour.

    Examples
    --------
    >>> from expost.erm.losses import LogisticLoss
    >>> round(minimiser_l2_sensitivity(LogisticLoss(), float("inf"), 1000, 0.01), 12)
    0.2
    """
    _check(n=n, radius=radius, lam=lam)
    return round_up(2.0 * loss.lipschitz(radius) / (n * lam) + 2.0 * distance_bound)


def minimiser_l1_sensitivity(
    loss: Loss, radius: float, n: int, lam: float, p: int, *, distance_bound: float = 0.0
) -> float:
    """Return √p times :func:`minimiser_l2_sensitivity`: ‖v‖₁ ≤ √p‖v‖₂. Logistic loss: at most 2√p/(nλ).

    Examples
    --------
    >>> from expost.erm.losses import LogisticLoss
    >>> round(minimiser_l1_sensitivity(LogisticLoss(), float("inf"), 1000, 0.01, 4), 12)
    0.4
    """
    _check(p=p)
    return round_up(math.sqrt(p) * minimiser_l2_sensitivity(loss, radius, n, lam, distance_bound=distance_bound))


def paper_ridge_output_sensitivity(radius: float, n: int, p: int, lam: float) -> float:
    """Return (R + 1)√(p/(nλ)), the paper's ℓ₁-sensitivity of the ridge minimiser.

    Proof. With a, b as in :func:`minimiser_l2_sensitivity`, both in ‖θ‖₂ ≤ R, strong convexity of L at a
    and of L' at b gives λ‖a − b‖² ≤ L(b) − L(a) + L'(a) − L'(b), which is 1/n times four row losses, at
    most 2·spread(R) = (R + 1)². So ‖a − b‖₂ ≤ (R + 1)/√(nλ), and √p turns ℓ₂ into ℓ₁. Against √p·2(1 +
    R)/(nλ) it is the larger one once nλ > 4. ∎

    Examples
    --------
    >>> round(paper_ridge_output_sensitivity(1.0, 100, 4, 0.01), 12)
    4.0
    """
    _check(n=n, radius=radius, lam=lam, p=p)
    return round_up((radius + 1.0) * math.sqrt(p / (n * lam)))


def mean_square_sensitivity(largest_coordinate: float, n: int) -> float:
    """Return (1 + m)²/n, the sensitivity of mean (y − xᵀθ)² for a fixed θ with ‖θ‖_∞ ≤ m.

    Proof. ‖x‖₁ ≤ 1 and |y| ≤ 1 put a row's term between 0 and (1 + m)², and both are attained: x = ±e_j. ∎

    Examples
    --------
    >>> round(mean_square_sensitivity(1.0, 100), 12)
    0.04
    """
    _check(n=n, radius=largest_coordinate)
    return round_up((1.0 + largest_coordinate) ** 2 / n)


def grid_sensitivity(delta: float | Fraction, grid: float | Fraction, coordinates: int) -> int:
    """Return ⌊Δ/g⌋ + coordinates, the ℓ₁-sensitivity in grid steps of a vector rounded to multiples of g.

    Proof. Rounding to the nearest multiple moves a coordinate by half a step at most, so two rounded
    vectors differ by at most Δ/g + coordinates steps in ℓ₁; their difference is an integer, so the floor of
    that bound holds too. The same holds for rounding down or towards zero, which never widens a difference
    by a whole step. ∎

    Computed in exact rational arithmetic: a float is the rational number it stands for.

    Examples
    --------
    >>> grid_sensitivity(1.0, 2**-20, 3) == 2**20 + 3
    True
    """
    _check(p=coordinates)
    exact_delta, exact_grid = Fraction(delta), Fraction(grid)
    if exact_delta < 0 or exact_grid <= 0:
        raise ValueError("delta must be non-negative and grid positive")
    return math.floor(exact_delta / exact_grid) + coordinates


def _check(
    *, n: int | None = None, radius: float | None = None, lam: float | None = None, p: int | None = None
) -> None:
    """Reject arguments for which a formula would return a number that means nothing."""
    if n is not None and n < 1:
        raise ValueError("n must be at least 1")
    if p is not None and p < 1:
        raise ValueError("the number of coordinates must be at least 1")
    if radius is not None and not radius >= 0.0:
        raise ValueError("radius must be non-negative")
    if lam is not None and not 0.0 < lam < math.inf:
        raise ValueError("lam must be positive and finite")
