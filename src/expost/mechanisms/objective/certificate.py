"""Certified objective perturbation (theory C2): accuracy for free, and nothing to search.

*Released*: θ̂, once. *Theorem (accuracy)*: ∇L(θ̂) = −b/n, so L(θ̂) − min L ≤ ‖∇L(θ̂)‖²/(2λ) = ‖b‖²/(2λn²): the ε that
suffices follows from a quantile of ‖b‖, which is public. The point released differs from θ̂ by at most the solver's
error, rounding and the noise that covers them: ‖∇L‖ grows by at most c + λ times that. Failure probabilities add.

The bound is nearly what it takes in truth, most directions of b meeting curvature of the order of λ: promises are
broken nearly as often as γ allows. A part of γ is therefore kept back.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import gammainccinv

from expost.account.account import Account
from expost.account.composition import add_losses
from expost.exceptions import TargetUnreachable
from expost.goals.measure import gradient_target
from expost.noise.source import WordSource
from expost.noise.tails import laplace_norm
from expost.release.release import Release
from expost.shown import down, up
from expost.solve.problem import Problem
from expost.table.shape import Geometry

if TYPE_CHECKING:
    from expost.mechanisms.objective.mechanism import Shot

_USED = 0.6  # of γ goes to the quantile of ‖b‖; nearly tight bounds are counted against γ in few runs otherwise
_SOLVER = 1e-3  # and this part to the noise that covers the solver


@dataclass(frozen=True)
class ObjectiveCertificate:
    """The one release that suffices; public.

    Attributes
    ----------
    problem, excess_risk, failure_probability
        What is proved.
    shot
        The release.
    budget
        No outcome may cost more.
    """

    problem: Problem
    excess_risk: float
    failure_probability: float
    shot: Shot
    budget: float

    @classmethod
    def of(
        cls,
        problem: Problem,
        excess_risk: float,
        failure_probability: float,
        geometry: Geometry,
        make: Callable[[float], Shot],
        *,
        budget: float = math.inf,
    ) -> ObjectiveCertificate:
        """Find the smallest ε that provably suffices; ``make(epsilon_noise)`` returns the release at one."""
        if problem.radius_stated:
            raise ValueError("objective perturbation compares with the unconstrained optimum; leave radius out")
        shot = sufficient(
            problem, excess_risk, _USED * failure_probability, _SOLVER * failure_probability, geometry, make
        )
        if shot.epsilon > budget and excess_risk < problem.loss.null_value:
            rows = math.ceil(problem.n * shot.epsilon / budget * 1.05)
            raise TargetUnreachable(
                f"at n = {problem.n} this excess risk costs epsilon = {up(shot.epsilon)}, more than max_epsilon = "
                f"{down(budget)}, whatever the data. Pass a larger excess_risk or max_epsilon, or about {rows:,} rows. "
                f"Nothing was spent."
            )
        return cls(problem, excess_risk, failure_probability, shot, budget)

    @property
    def worst_case(self) -> float:
        """What it costs, whatever the rows."""
        return 0.0 if self.free else self.shot.epsilon

    @property
    def free(self) -> bool:
        """Whether θ = 0 meets the target whatever the rows: min L ≥ 0, and L(0) is at most what a row costs there."""
        return self.excess_risk >= self.problem.loss.null_value

    def search(self, generator: Any, account: Account, source: WordSource) -> Release:
        """Draw it; nothing is drawn or charged where θ = 0 meets the target whatever the rows."""
        if self.free:
            account.reasons.append("the null model meets the target whatever the rows: nothing was looked at")
            return account.released(np.zeros(self.problem.p))
        theta = self.shot.draw(generator.rows.perturbed, np.zeros(self.problem.p), source)
        account.generation = add_losses(account.generation, self.shot.epsilon)
        account.reasons.append(
            f"objective perturbation: epsilon = {up(self.shot.epsilon)} provably suffices, whatever the rows; "
            f"{up(self.shot.jacobian)} of it is the Jacobian's"
        )
        return account.released(theta, level=0, n_levels=1, noise="over the reals")


def sufficient(
    problem: Problem,
    excess_risk: float,
    noise_probability: float,
    solver_probability: float,
    geometry: Geometry,
    make: Callable[[float], Shot],
) -> Shot:
    """Return the release at the smallest ε that suffices, but for the sum of the two probabilities.

    ``make(epsilon_noise)`` returns the release at one.
    """
    target = gradient_target(excess_risk, problem.regularization)
    length = noise_quantile(geometry, noise_probability)
    steep = problem.loss.curvature + problem.regularization
    epsilon = 2.0 * problem.loss.lipschitz(math.inf) * length / (problem.n * target)
    for _ in range(50):
        shot = make(epsilon)
        moved = steep * shot.moved(solver_probability)
        if moved >= target:
            break
        needed = 2.0 * shot.slope * length / (problem.n * (target - moved)) * (1 + 1e-9)
        if needed <= epsilon:
            return shot
        epsilon = needed
    raise TargetUnreachable("excess_risk is below what floating point can promise; ask for a larger one")


def noise_quantile(geometry: Geometry, gamma: float) -> float:
    """Return q: noise for slope ½ at ε = 1 is longer than q with probability at most γ.

    Only for a single ball. In the ℓ₁ ball it is the length of a Laplace vector times the radius; in the Euclidean one
    the length has density ∝ r^{p−1}e^{−r}, a Gamma variable.
    """
    block, *others = geometry.blocks
    if others or block.norm == "box":
        raise ValueError("certificates of objective perturbation are for rows in an ℓ₁ or a Euclidean ball")
    if block.norm == "l1":
        return laplace_norm(block.size, gamma) * block.radius
    return float(gammainccinv(block.size, gamma)) * (1.0 + 1e-9) * block.radius
