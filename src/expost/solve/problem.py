"""A regression problem as far as it is public: what is minimised, over which set, and the sensitivities that follow.

Nothing here has seen a row, and nothing here knows what accuracy is asked for. Neighbours differ in one replaced row;
the number of rows n is public. Rows satisfy ‖x‖₁ ≤ 1 (hence ‖x‖₂ ≤ 1) and |y| ≤ 1. A result is rounded up by a few
units in the last place: a sensitivity may err on the large side only. How far the excess risk of a fixed hypothesis
and the minimiser can move is proved at the functions; how far the gradient of L at a given θ can (theory B12), here.

*Claim.* Let m = ‖θ‖_∞ and ψ(s) = max(0, φ′(s, −1)), the largest slope at prediction s. For rows in the unit ℓ₁ ball,
‖∇φ(θ; d) − ∇φ(θ; d′)‖₂ ≤ S(m), where

    S(m)² = max of ψ(s)² + ψ(s′)² + 2o·ψ(s)ψ(s′)  over 0 ≤ o ≤ 1, |s|, |s′| ≤ m, s + s′ ≤ 2m(1 − o).

*Proof.* A row's gradient is φ′(xᵀθ, y)·x. Flipping (x, y) to (−x, −y) leaves it unchanged (φ is even in that sense,
as every loss here is), so write it r·w with r ≥ 0 and w = ±x. For a margin loss take w = −yx: r = φ′(wᵀθ, −1) =
ψ(wᵀθ). For a loss of the residual take the sign that makes the slope r = φ′(wᵀθ, ±y) non-negative; it is largest at
target −1, so r ≤ ψ(wᵀθ). Now ‖rw − r′w′‖² = r²‖w‖² + r′²‖w′‖² − 2rr′⟨w, w′⟩ ≤ r² + r′² + 2rr′o with o = max(0, −⟨w,
w′⟩) ≤ 1, and this increases in r and r′. With s = wᵀθ, s′ = w′ᵀθ it remains to show s + s′ ≤ 2m(1 − o). Let κ be the
sum of min(|w_j|, |w′_j|) over coordinates where w and w′ have opposite signs: there |w_j + w′_j| = |w_j| + |w′_j| −
2·min, so ‖w + w′‖₁ ≤ 2 − 2κ; and o ≤ Σ |w_j||w′_j| over the same coordinates ≤ κ, the larger factor being at most 1.
Hence s + s′ = (w + w′)ᵀθ ≤ m‖w + w′‖₁ ≤ 2m(1 − κ) ≤ 2m(1 − o). ∎

For the squared loss ψ(s) = 1 + s and the maximum is at s = m, s′ = m − 2mo (the objective is convex in (r, r′) and
the constraints are linear, so a vertex attains it). In o it is 2(1+m)² + 2(1−m²)o − 4mo², whose maximum over [0, 1]
gives the closed form below. Two consequences: ‖∇L(θ)‖₂ is a query of sensitivity S(m)/n for a released θ; and the
minimiser, over a ball or everywhere, moves by at most S(R)/(nλ) in ℓ₂, R a bound on its norm and so on ‖·‖_∞. The proof
is that of :func:`minimiser_l2_sensitivity`, with S(R)/n instead of 2G/n for two row gradients at b divided by n.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from expost import validation
from expost.numeric import Grid, check, round_up
from expost.shown import down
from expost.solve.error_bounds import GeneralErrors
from expost.solve.losses import Loss, SquaredLoss

_CELLS = 512
_STEPS_PER_UNIT = 256  # m is rounded up to a multiple of 1/256, so that the cache is hit


def gradient_sensitivity(loss: Loss, largest_coordinate: float) -> float:
    """Return S(m) for m = ‖θ‖_∞ = ``largest_coordinate``; the query ‖∇L(θ)‖₂ has sensitivity S(m)/n.

    Examples
    --------
    >>> from expost.solve.losses import LogisticLoss, SquaredLoss
    >>> [round(gradient_sensitivity(SquaredLoss(), m), 3) for m in (0.0, 0.5, 1.0, 4.0)]
    [2.0, 2.187, 2.828, 7.071]
    >>> [round(gradient_sensitivity(LogisticLoss(), m), 2) for m in (0.0, 1.0, 4.0)]
    [1.0, 1.08, 1.54]
    """
    m = float(largest_coordinate)
    if not 0.0 <= m < math.inf:
        raise ValueError(f"the largest coordinate must be non-negative and finite, got {largest_coordinate}")
    if isinstance(loss, SquaredLoss):
        if m >= 1.0:
            return round_up(math.sqrt(2.0) * (1.0 + m))
        if m <= math.sqrt(5.0) - 2.0:  # where the best o would exceed 1
            return round_up(2.0)
        return round_up(math.sqrt(2.0 * (1.0 + m) ** 2 + (1.0 - m * m) ** 2 / (4.0 * m)))
    everywhere = 2.0 * loss.lipschitz(m)
    if not loss.symmetric:
        return everywhere
    return min(everywhere, _by_cells(loss, math.ceil(m * _STEPS_PER_UNIT) / _STEPS_PER_UNIT))


@lru_cache(maxsize=4096)
def _by_cells(loss: Loss, m: float) -> float:
    """Bound the maximum from above on a grid of (o, s) cells, each at its favourable corner (ψ increases)."""
    k = np.arange(_CELLS)
    o = (k + 1.0) / _CELLS
    first = _slope(loss, m * (2.0 * (k + 1) / _CELLS - 1.0))
    # s′ ≤ 2m(1 − o) − s at a cell's lower corner is m(3 − 2(i + j)/cells): it depends on i + j only
    partner = m * (3.0 - 2.0 * np.arange(2 * _CELLS - 1) / _CELLS)
    second = np.where(partner >= -m - 1e-12, _slope(loss, np.clip(partner, -m, m)), np.nan)
    second = second[k[:, None] + k[None, :]]
    value = first**2 + second**2 + 2.0 * o[:, None] * first * second  # NaN where no s′ is allowed
    return float(math.sqrt(np.nanmax(value))) * (1.0 + 1e-9)


def _slope(loss: Loss, s: np.ndarray) -> np.ndarray:
    return np.maximum(0.0, loss.derivative(s, np.full_like(s, -1.0)))


def excess_risk_sensitivity(loss: Loss, radius: float, n: int) -> float:
    """Return 2·spread(R)/n, the sensitivity of L(θ) − min L for a fixed θ; how far it is computed off is not in it.

    Squared loss: (R + 1)²/n. Logistic loss: 2R/n.

    Proof. Let θ and the set the minimum is taken over lie in ‖θ‖₂ ≤ R. (An unconstrained minimum is one
    over that ball if R ≥ ``loss.radius(lam)``.) Replacing d by d' changes L(θ) by (φ(θ, d') − φ(θ, d))/n,
    at most spread(R)/n either way, for every such θ. A minimum changes by no more than its function does.
    The two changes may add up: (R + 1)²/(2n) is *not* a sensitivity for the squared loss. ∎
    """
    check(n=n, radius=radius)
    return round_up(2.0 * loss.spread(radius) / n)


def minimiser_l2_sensitivity(loss: Loss, radius: float, n: int, lam: float) -> float:
    """Return 2G/(nλ), the ℓ₂-sensitivity of the minimiser; how far it is computed off is not in it.

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
    """
    check(n=n, radius=radius, lam=lam)
    return round_up(2.0 * loss.lipschitz(radius) / (n * lam))


def minimiser_l1_sensitivity(loss: Loss, radius: float, n: int, lam: float, p: int) -> float:
    """Return √p times :func:`minimiser_l2_sensitivity`: ‖v‖₁ ≤ √p‖v‖₂. Logistic loss: at most 2√p/(nλ)."""
    check(p=p)
    return round_up(math.sqrt(p) * minimiser_l2_sensitivity(loss, radius, n, lam))


def paper_ridge_output_sensitivity(radius: float, n: int, p: int, lam: float) -> float:
    """Return (R + 1)√(p/(nλ)), the paper's ℓ₁-sensitivity of the ridge minimiser.

    Proof. With a, b as in :func:`minimiser_l2_sensitivity`, both in ‖θ‖₂ ≤ R, strong convexity of L at a
    and of L' at b gives λ‖a − b‖² ≤ L(b) − L(a) + L'(a) − L'(b), which is 1/n times four row losses, at
    most 2·spread(R) = (R + 1)². So ‖a − b‖₂ ≤ (R + 1)/√(nλ), and √p turns ℓ₂ into ℓ₁. Against √p·2(1 +
    R)/(nλ) it is the larger one once nλ > 4. ∎
    """
    check(n=n, radius=radius, lam=lam, p=p)
    return round_up((radius + 1.0) * math.sqrt(p / (n * lam)))


_ROUNDING = 1 + 1e-9  # a hypothesis may exceed the ball by rounding; sensitivities are charged for this much more


@dataclass(frozen=True)
class Problem:
    """Loss, number of rows and columns, regularization and radius; public.

    Attributes
    ----------
    loss, n, p, regularization
        What is minimised: mean loss over n rows of p columns plus (λ/2)‖θ‖².
    radius
        Hypotheses and optimum are compared within the ball of this ℓ₂ radius.
    radius_stated
        Whether the caller asked for a ball smaller than the one the optimum is known to lie in.
    paper_constants
        Whether radius and sensitivities are the paper's own or the sharper proved ones.

    Examples
    --------
    >>> from expost.solve import SquaredLoss
    >>> problem = Problem.of(SquaredLoss(), n=1000, p=3, regularization=0.01)
    >>> round(problem.radius, 6), problem.compared_with
    (5.0, 'the unconstrained optimum')
    """

    loss: Loss
    n: int
    p: int
    regularization: float
    radius: float
    radius_stated: bool
    paper_constants: bool

    def __post_init__(self) -> None:
        """Refuse a ball that the optimum need not lie in, unless the optimum is that of the ball: noise is for it."""
        lam, paper = self.regularization, self.loss.paper_radius if self.paper_constants else self.loss.radius
        if not self.radius_stated and self.radius < min(self.loss.radius(lam), paper(lam)):
            raise ValueError(
                f"the unconstrained optimum need not lie within radius = {self.radius:g}; pass radius to Problem.of, "
                f"which compares with the best model of that ball"
            )

    @classmethod
    def of(
        cls,
        loss: Loss,
        *,
        n: int,
        p: int,
        regularization: Any,
        radius: Any = None,
        paper_constants: bool = False,
    ) -> Problem:
        """Check the arguments and settle the radius: stated, the paper's, or the smaller proved one (theory B10)."""
        lam = validation.regularization(regularization)
        natural = loss.paper_radius(lam) if paper_constants else loss.radius(lam)
        stated = None if radius is None else validation.positive("radius", radius)
        # a ball larger than the one the optimum is known to lie in would only cost more
        chosen = natural if stated is None else min(stated, natural)
        smaller = stated is not None and stated < loss.radius(lam)
        problem = cls(loss, n, p, lam, chosen, smaller, paper_constants)
        problem._require_finite()
        return problem

    def _require_finite(self) -> None:
        """Refuse what floating point cannot carry, here and not half-way through a search."""
        constants = (
            Grid.of(self.risk_sensitivity).effective_sensitivity,
            self.output_sensitivity,
            self.null_gradient_sensitivity,
            GeneralErrors(self.loss, self.n, self.p, self.regularization).distance_bound,
        )
        if not all(0 < constant < math.inf for constant in constants):
            raise ValueError(
                f"at n = {self.n} and regularization = {self.regularization:g} sensitivities leave what floating "
                f"point can hold; pass another regularization"
            )

    @property
    def null_gradient_sensitivity(self) -> float:
        """Sensitivity of ‖∇L(0)‖."""
        return gradient_sensitivity(self.loss, 0.0) / self.n

    @property
    def optimum_radius(self) -> float:
        """Bound on ‖θ‖₂ of the unconstrained optimum: where gradients vanish, whatever ball was stated."""
        return self.loss.radius(self.regularization)

    @property
    def risk_sensitivity(self) -> float:
        """Sensitivity of the excess risk of any hypothesis in the ball."""
        return excess_risk_sensitivity(self.loss, self.radius * _ROUNDING, self.n)

    @property
    def output_sensitivity(self) -> float:
        """ℓ₁-sensitivity of the exact minimiser."""
        if self.paper_constants and self.loss.name == "squared":
            return paper_ridge_output_sensitivity(self.radius, self.n, self.p, self.regularization)
        if self.paper_constants:
            return minimiser_l1_sensitivity(self.loss, self.radius, self.n, self.regularization, self.p)
        return math.sqrt(self.p) * self.output_l2_sensitivity * (1 + 1e-12)

    @property
    def output_l2_sensitivity(self) -> float:
        """ℓ₂-sensitivity of the exact minimiser: S(R)/(nλ), since ‖θ*‖_∞ ≤ R (theory B8 with B12).

        With the paper's constants too: it has no spherical noise, so there is no constant of its own to keep. (Its
        proofs would give 2G/(nλ) for a G-Lipschitz loss and (R + 1)/√(nλ) for ridge, neither smaller if nλ ≥ 4.)
        """
        return gradient_sensitivity(self.loss, self.radius) / (self.n * self.regularization) * (1 + 1e-12)

    @property
    def compared_with(self) -> str:
        """Name the set the promise is made against."""
        if self.radius_stated:
            return f"the best θ with ‖θ‖₂ ≤ {down(self.radius, 6)} (the radius you stated)"
        return "the unconstrained optimum"
