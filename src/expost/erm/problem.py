"""A regression problem as far as it is public: what is minimised, over which set, and the constants that follow.

Nothing here has seen a row, and nothing here knows what accuracy is asked for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from expost import validation
from expost.erm.error_bounds import GeneralErrors
from expost.erm.losses import Loss
from expost.erm.sensitivity.excess_risk import excess_risk_sensitivity
from expost.erm.sensitivity.gradient import gradient_sensitivity
from expost.erm.sensitivity.grid import Grid
from expost.erm.sensitivity.minimiser import minimiser_l1_sensitivity, paper_ridge_output_sensitivity

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
    >>> from expost.erm import SquaredLoss
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
            self.risk_grid.effective_sensitivity,
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
    def risk_grid(self) -> Grid:
        """The grid that excess risks are counted on, floating point not yet charged."""
        return Grid.of(self.risk_sensitivity)

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
            return f"the best θ with ‖θ‖₂ ≤ {self.radius:.6g} (the radius you stated)"
        return "the unconstrained optimum"
