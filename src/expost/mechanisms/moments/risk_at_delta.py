"""Excess risk from second moments under Gaussian noise: a certificate at every level, and tests of the gradient.

*Released*: averages of XᵀX and Xᵀy of growing precision ρ_1 < ρ_2 < … (`expost.mechanisms.moments.gaussian_moments`),
and with tests noisy lengths of gradients. *Neighbours*: one row replaced. *Theorem (privacy)*: every release and every
look books its curve, and is taken only if the sum with it is within the budget; stopping at level t costs ρ_t and the
looks taken.

*Theorem (accuracy).* The precisions are settled beforehand. At level t, with probability at least 1 − γ_t, for every θ
at once ‖Bθ − b‖ ≤ m_t‖θ‖ + v_t (`expost.mechanisms.moments.gaussian_moments`), B and b the noise in the averages. Then

1. (*certificate*) for every θ computed from what was released, L(θ) − min L ≤ (‖ĝ‖ + (m_t‖θ‖ + v_t)/n)²/(2μ), ĝ =
   (Zθ − z)/n + λθ, and L is μ-strongly convex for μ = λ + max(0, λ_min(Z)/n − m_t/n): the proof is that of
   `expost.mechanisms.moments.certificate`, and so is the choice of θ;
2. (*stationarity*) a look that shows ‖∇L(θ)‖ ≤ √(2μα) shows L(θ) − min L ≤ α (`expost.goals.measure`). θ was
   released, so the length has sensitivity S(‖θ‖_∞)/n; looks are independent tests of fixed cost (`looks`).

Bounds fail with probability at most Σγ_t and looks with the rest of γ, over *all* levels that could be reached, so a θ
with L(θ) − min L > α is released with probability at most γ, wherever the search stops. Never is anything about the
realised noise used but what the averages show.

*Levels* begin where nothing could be shown yet and end where a certificate must come: the lemma of the covariance
certificate needs of its lever no more than h(r)/h(ℓ) ≤ r/ℓ for r ≥ ℓ, which m·r + v has. How ρ is shared with looks and
how it grows is choice.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from expost.account.account import Account
from expost.account.composition import NOTHING, ROW, Curve, room
from expost.exceptions import TargetUnreachable
from expost.goals.measure import GradientLength, gradient_target
from expost.mechanisms.moments.certificate import best_certified, curvature, typical_norm
from expost.mechanisms.moments.gaussian_moments import (
    AveragedMoments,
    GaussianMoments,
    MomentGenerator,
    MomentNoise,
    NoiseBound,
)
from expost.noise.gaussian import deviations
from expost.noise.source import WordSource
from expost.numeric import FloatArray
from expost.passes.sums import SUM_UNIT
from expost.release.release import Release
from expost.search.levels import Schedule, StagedSearch
from expost.shown import counted, down, up
from expost.solve.problem import Problem, gradient_sensitivity
from expost.table.shape import Geometry

if TYPE_CHECKING:
    from expost.search.request import Request

_GROWTH, _GROWTH_TESTED = 1.25, 1.6  # from one level's ρ to the next one's
_EARLIER = 4.0  # levels begin where a gradient this many times too long might do: μ is often larger than λ
_TO_LOOKS = 0.5  # part of γ for looks
_MARGIN = 1.05  # beyond where a certificate must come


@dataclass(frozen=True)
class MomentRiskPlan:
    """Levels, their noise, and whether gradients are tested; public.

    Attributes
    ----------
    problem, excess_risk
        What is to be shown.
    noise
        How moments are released.
    failure_probability, budget, delta
        γ, what no outcome may exceed, and δ.
    tested
        Whether gradients are tested beside.
    rhos
        ρ of each level.
    """

    problem: Problem
    excess_risk: float
    noise: MomentNoise
    failure_probability: float
    budget: float
    delta: float
    tested: bool
    rhos: tuple[float, ...] = ()

    gaussian: ClassVar[bool] = True  # what it books
    schedule: ClassVar[Schedule] = Schedule(gathers=False, in_squares=True)  # of tests: levels are settled beforehand
    then: ClassVar[None] = None  # there is no other way to turn to
    further: ClassVar[None] = None  # and nothing more to measure

    @classmethod
    def of(
        cls,
        problem: Problem,
        excess_risk: float,
        failure_probability: float,
        geometry: Geometry,
        *,
        budget: float,
        delta: float,
        tested: bool | None,
    ) -> MomentRiskPlan:
        """Settle it, or say that the budget has no room; ``tested`` None lets public numbers decide."""
        if problem.radius_stated:
            raise ValueError("second moments with a delta compare with the unconstrained optimum; leave radius out")
        if len(geometry.blocks) != 1 or geometry.blocks[0].norm != "l2":
            raise ValueError("a certificate needs noise that is alike in every column: the shape of a Euclidean ball")
        radius = geometry.blocks[0].radius
        noise = MomentNoise(geometry, radius * typical_norm(problem))
        base = cls(problem, excess_risk, noise, failure_probability, budget, delta, False)
        if excess_risk >= problem.loss.null_value:  # θ = 0 meets the target whatever the rows: nothing is looked at
            return base
        both = [base._settled(), replace(base, tested=True)._settled()]
        plan = both[bool(tested)] if tested is not None else min(both, key=lambda one: one.expected)
        return plan._within()

    @property
    def start(self) -> float:
        """ρ of the first level."""
        return self.rhos[0]

    @property
    def target(self) -> float:
        """√(2λα), the gradient that shows the excess risk."""
        return gradient_target(self.excess_risk, self.problem.regularization)

    @property
    def growth(self) -> float:
        """From one level's ρ to the next one's."""
        return _GROWTH_TESTED if self.tested else _GROWTH

    @property
    def look_part(self) -> float:
        """ρ of a look as a part of its level's: what makes noise and margin together smallest; zero without looks."""
        if not self.tested:
            return 0.0
        looks_at_every_level = self.growth / (self.growth - 1.0)
        return float((self._margin / self.noise.typical / looks_at_every_level) ** (2 / 3))

    @property
    def _margin(self) -> float:
        """A first look's margin at ρ = ½, typically; times 1/√(2ρ)."""
        gamma = _TO_LOOKS * self.schedule.first * self.failure_probability / max(1, len(self.rhos))
        return gradient_sensitivity(self.problem.loss, self._norm) * deviations(gamma)

    def bound(self, rho: float) -> NoiseBound:
        """Return the bound on the noise at a precision of ρ, in means, for one level."""
        part = (1.0 - _TO_LOOKS if self.tested else 1.0) * self.failure_probability / max(1, len(self.rhos))
        n, d, noise = self.problem.n, self.noise.common, self.noise
        sigma, tau = d * d * noise.sigma(rho), d * noise.tau(rho)
        sums = NoiseBound.of(self.problem.p, sigma, tau, 1.0 / SUM_UNIT, part)
        return NoiseBound(sums.matrix / n * (1 + 1e-12), sums.vector / n * (1 + 1e-12))

    @property
    def _norm(self) -> float:
        """A typical ‖θ‖."""
        return self.noise.norm / self.noise.common

    @property
    def expected(self) -> float:
        """Roughly the ρ that is paid for an optimum of typical norm; used to choose, never to promise."""
        n, target = self.problem.n, self.target
        if not self.tested:
            return 0.5 * (self.bound(0.5).lever(self._norm) / target) ** 2
        part = self.look_part
        length = (self.noise.typical + self._margin / math.sqrt(part)) / n
        return 0.5 * (length / target) ** 2 * (1.0 + part * self.growth / (self.growth - 1.0))

    def _settled(self) -> MomentRiskPlan:
        """Return it with its levels; how many there are moves quantiles a little, so that is settled first."""
        plan = replace(self, rhos=(1.0,) * 16)
        for _ in range(2):
            unit, longest = plan.bound(0.5), plan.problem.optimum_radius + plan.target / plan.problem.regularization
            least = 0.5 * (unit.vector / (_EARLIER * plan.target)) ** 2
            last = 0.5 * (_MARGIN * unit.lever(longest) / plan.target) ** 2
            count = 2 + max(0, math.ceil(math.log(last / least) / math.log(plan.growth)))
            plan = replace(plan, rhos=tuple(least * plan.growth**t for t in range(count)))
        return plan

    def _within(self) -> MomentRiskPlan:
        """Return it with the levels that the budget has room for, the last one at what is left."""
        most = room(NOTHING, self.budget, self.delta) / (1.0 + self.look_part * self.growth / (self.growth - 1.0))
        kept = tuple(rho for rho in self.rhos if rho <= most)
        if not kept:
            n = self.problem.n
            enough = math.ceil(n * math.sqrt(self.rhos[0] / max(most, 1e-300)) * 1.1)
            raise TargetUnreachable(
                f"at n = {n} nothing could be shown about an excess risk of {self.excess_risk:g} for max_epsilon = "
                f"{down(self.budget)} at delta = {up(self.delta, 6)}, whatever the data. Pass a larger excess_risk or "
                f"max_epsilon, or about {enough:,} rows. Nothing was spent."
            )
        if len(kept) < len(self.rhos) and most > 1.05 * kept[-1]:
            kept = (*kept, most * (1.0 - 1e-9))
        return replace(self, rhos=kept)

    @cached_property
    def worst_case(self) -> float:
        """No outcome costs more, at δ: every level and every look."""
        if not self.rhos:
            return 0.0
        looks = math.fsum(self.rhos) * self.look_part * (1.0 + self.schedule.again)
        most = (Curve.gaussian(self.rhos[-1]) + Curve.gaussian(looks)).epsilon(self.delta) * (1.0 + 1e-6)
        return min(self.budget, most)

    def search(self, generator: Any, account: Account, source: WordSource) -> Release:
        """Go from level to level until something shows that a model is good enough, or the budget is used up."""
        if not self.rhos:
            account.reasons.append("the null model meets the target whatever the rows: nothing was looked at")
            return account.released(np.zeros(self.problem.p))
        return RiskSearch(self, RiskLevels(self, generator), generator.risk, account, source).run()


class RiskLevels:
    """Releases so far, averaged; a level is the precision ρ that the average reaches with it."""

    noise_levels = None  # a promised excess risk bounds how far parameters are off

    def __init__(self, plan: MomentRiskPlan, generator: MomentGenerator) -> None:
        self._noise, self._generator, self._rho = plan.noise, generator, 0.0
        self.averaged = AveragedMoments(plan.noise)

    def cost(self, rho: float) -> Curve:
        """Return what is missing to that precision."""
        return Curve.gaussian(rho - self._rho)

    def stage(self, rho: float, source: WordSource) -> FloatArray:
        """Release the moments once more; models are made where they are looked at."""
        more, self._rho = rho - self._rho, rho
        self.averaged.add(self._generator.reveal(self._noise, more, source), more)
        return np.zeros(self._noise.geometry.columns)


class RiskSearch(StagedSearch):
    """One run: a certificate at every level, and a test of the gradient if it is to be tested."""

    plan: MomentRiskPlan
    walk: RiskLevels
    judge: Any  # true gradients
    _how = ""  # what showed that a model is good enough

    def _affordable(self, rho: float) -> tuple[float, str]:
        if self.stages == len(self.plan.rhos):
            return rho, "no level sufficed"
        fits = self.account.fits(self.walk.cost(rho) + Curve.gaussian(self.plan.look_part * rho))
        return rho, "" if fits else "the next level would exceed the budget"

    def _next(self) -> float:
        return self.plan.rhos[min(self.stages, len(self.plan.rhos) - 1)]

    def _placed(self, drawn: FloatArray) -> FloatArray:
        return drawn

    def _passes(self, model: FloatArray, rho: float) -> bool:
        theta = self._shown(rho)
        if theta is not None:
            model[:] = theta
        return theta is not None

    def _near(self) -> list[str]:
        return []  # no shortfall is looked at

    def _shown(self, rho: float) -> FloatArray | None:
        """Return a θ that the certificate or a look shows to be good enough, if there is one."""
        plan, n = self.plan, self.plan.problem.n
        lam = plan.problem.regularization
        d = plan.noise.common
        scaled = self.walk.averaged.moments
        second, first = scaled[0] * (d * d / n), scaled[1] * (d / n)
        bound = plan.bound(self.walk.averaged.rho)
        theta, certificate = best_certified(second, first, lam, 1.0, bound.lever, bound.matrix)
        if certificate <= plan.excess_risk:
            self._how = f"certificate {up(certificate, 3)} at rho = {up(rho)}"
            return theta
        if not plan.tested:
            return None
        sigma, tau, root = d * d * self.walk.averaged.sigma / n, d * self.walk.averaged.tau / n, math.sqrt(len(theta))
        theta, _ = best_certified(
            second, first, lam, 1.0, lambda r: root * math.hypot(sigma * r / math.sqrt(2.0), tau), bound.matrix
        )
        convexity = curvature(second, float(np.linalg.eigvalsh(second)[0]), lam, bound.matrix)
        if self._stationary(theta, math.sqrt(2.0 * convexity * plan.excess_risk) * (1.0 - 1e-12), rho):
            self._how = f"gradient tested at rho = {up(rho)}"
            return theta
        return None

    def _stationary(self, theta: FloatArray, target: float, rho: float) -> bool:
        plan = self.plan
        measure = GradientLength(self.judge, plan.problem.loss, plan.problem.n)
        gamma = _TO_LOOKS * plan.failure_probability / len(plan.rhos)
        value, moved, error = measure.value(theta) - target, measure.sensitivity(theta), measure.error_bound(theta)
        return bool(self.tests.pass_at(value, moved, error, plan.look_part * rho, gamma))

    def _said(self) -> list[str]:
        beside = f", {counted(self.tests.count, 'look')}" if self.plan.tested else ""
        return [f"second moments under Gaussian noise: {self._how or f'{self.stages} level(s)'}{beside}"]

    def _details(self, theta: FloatArray | None) -> dict[str, Any]:
        return {} if theta is None else {"level": self.stages - 1, "n_levels": len(self.plan.rhos)}


def risk_at_delta(request: Request, excess_risk: float, *, tested: bool | None) -> MomentRiskPlan:
    """Settle the search for an excess risk at δ; ``tested`` None lets public numbers decide whether gradients are."""
    problem, mechanism = request.problem, request.mechanism
    if not isinstance(mechanism, GaussianMoments):
        raise ValueError(f"perturbation={mechanism.name!r} has no search for an excess risk with a delta")
    if problem.loss.name != "squared":
        raise ValueError(f"second moments need the squared loss, not {problem.loss.name!r}")
    if request.unit != ROW:
        raise ValueError("an excess risk is promised about single rows; name no person")
    return MomentRiskPlan.of(
        problem,
        excess_risk,
        request.failure_probability,
        mechanism.geometry,
        budget=request.budget,
        delta=request.delta,
        tested=tested,
    )
