"""How far the minimiser can move.

Neighbours differ in one replaced row; the number of rows n is public. Rows satisfy ‖x‖₁ ≤ 1 (hence ‖x‖₂ ≤ 1) and
|y| ≤ 1. A result is rounded up by a few units in the last place: a sensitivity may err on the large side only.
"""

from __future__ import annotations

import math

from expost.erm._rounding import round_up
from expost.erm.losses import Loss
from expost.erm.sensitivity._check import check


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
    check(n=n, radius=radius, lam=lam)
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
    check(p=p)
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
    check(n=n, radius=radius, lam=lam, p=p)
    return round_up((radius + 1.0) * math.sqrt(p / (n * lam)))
