"""Objective perturbation (Chaudhuri, Monteleoni, Sarwate 2011; Kifer, Smith, Thakurta 2012): noise on the gradient.

*Released*: what a solver finds for θ̂ = argmin mean φ(xᵀθ, y) + (λ/2)‖θ − θ₀‖² + bᵀθ/n over all of ℝᵖ, θ₀ public or
released before, folded back to θ₀ from far away, rounded to a public grid, plus a little discrete Laplace noise there
that covers the solver and what is left of b.
*Neighbours*: one row replaced. *Sensitivity*: φ is convex in the prediction with |φ′| ≤ κ and φ′ c-Lipschitz; a row's
gradient is φ′·x.

*Theorem (noise).* If b has density ∝ exp(−Σ w_j‖b_j‖) in the norms of the rows' shape (`expost.table.shape`) with Σ
w_j·2κr_j ≤ ε′, releasing θ̂ is (ε′ + J)-private, J = ln(1 + cX²/(nλ)), ‖x‖₂ ≤ X.
*Proof.* At the minimum −b = n·∇(mean φ + (λ/2)‖θ − θ₀‖²)(θ̂) =: G(θ̂), so b and θ̂ determine each other: G is strongly
monotone and Lipschitz, hence a bijection of ℝᵖ with Lipschitz inverse, and the change of variables holds almost
everywhere, kinks of φ′ included. The density of θ̂ is that of b = −G(θ̂) times |det ∂G(θ̂)|. For a neighbour, b moves
by v = φ′(xᵀθ̂, y)x − φ′(x′ᵀθ̂, y′)x′, which costs ε′. For the determinant let K = nλI + Σ φ″xxᵀ over the n − 1 common
rows; det(K + c₁xxᵀ)/det(K + c₂x′x′ᵀ) ≤ 1 + c₁xᵀK⁻¹x ≤ 1 + cX²/(nλ), as 0 ≤ c₁ ≤ c and K ⪰ nλI: one factor, not two. ∎
(With Gaussian noise, at a δ: `expost.mechanisms.objective.gaussian_objective`.)

*Folding back.* t = (θ̂ − θ₀, −b⁺/(nλ)), b⁺ what was drawn beside b (`expost.mechanisms.objective.draws`; nothing but
with normal noise). h(t) = t·clip(2B/‖t‖ − 1, 0, 1), B public given θ₀: the identity up to B, zero from 2B on, and
1-Lipschitz, as a length r goes to one that changes no faster than r and is at most r. What is released is about θ₀ +
the first part of h(t). t is (ε′ + J)-private as θ̂ is: it is the minimiser of the objective with (λ/2)‖τ‖² + b⁺ᵀτ/n
added, b and b⁺ are independent, no row touches τ, and the determinant gains a power of nλ. h(t) is a function of it.

*Theorem (distance).* Whatever is drawn and whatever the rows are, the point that is computed is within d, public given
θ₀, of θ₀ + h(t).
*Proof.* Let b̃ be what is computed of (b, b⁺), ‖b − b̃‖ ≤ ρ + η‖b̃‖, and P = 2λB + κ + ρ/n, rounded up. *If ‖b̃‖ > nP*,
nothing is solved and θ₀ is the point. ‖b‖ ≥ (1 − η)‖b̃‖ − ρ > n(2λB + κ) then, and b = −n∇(mean φ) − nλt with
‖∇(mean φ)‖ ≤ κ gives ‖t‖ > 2B, h(t) = 0: the point is right. *If not*, let t̃ be the same for b̃. Gradients are
λ-strongly monotone, so ‖t − t̃‖ ≤ ‖b − b̃‖/(nλ) ≤ (ρ/n + ηP)/λ. The solver is told W = 2B, and h of what it finds is
within the solver's distance of h(t̃) (`expost.solve.perturbed`). h itself is computed within 32u·B + u‖θ₀‖: lengths
within 3u, its factor within 11u, and close to B either branch is right within 6u·B. d is the sum of all three. ∎
So tails are not capped, no b is drawn again or looked at but for ‖b̃‖ > nP, which tells nothing that is not released.

*Theorem (cover).* On the grid, the point rounded and θ₀ + h(t) itself, which is on none, are within √p·d and half a
unit for each coordinate in ℓ₁. Write θ̂ for the latter. With f(x) ∝ q^|x| of the noise, made for twice that at ε_s, and
s = ε_s/2, E f(o − θ_found) ≤ e^s·E f(o − θ̂) on one data set and E f(o − θ̂) ≤ e^s·E f(o − θ_found) on its neighbour,
expectations being over what is drawn and what is not. In between o ↦ f(o − θ̂) adds up to at most one (q^x + q^{1−x} ≤
1 + q for x between 0 and 1), which is all that is used of it. So a pure loss about θ̂ grows by 2s = ε_s at most. A Rényi
divergence of order r, ln ∫ p^r p′^{1−r} over r − 1, grows by (rs + (r − 1)s)/(r − 1) = ε_s·(r − ½)/(r − 1). ∎
All that is released is an integer for each coordinate, whose probabilities obey this: no statement is over the reals.

*Theorem (accuracy, theory C2).* ∇L(θ̂) = −b/n where θ₀ = 0, so L(θ̂) − min L ≤ ‖∇L(θ̂)‖²/(2λ) = ‖b‖²/(2λn²): the ε that
suffices follows from a quantile of ‖b‖, which is public, and there is nothing to search. The point released differs
from θ̂ by at most the solver's error, rounding and the noise that covers them: ‖∇L‖ grows by at most c + λ times that.
Failure probabilities add. Nothing is folded back there: without noise the minimiser is within σ of θ₀, σ = min(κ/λ,
√(2(φ₀ + κ‖θ₀‖)/λ)), as (λ/2)‖θ − θ₀‖² is at most the mean of φ at θ₀ (φ ≥ 0, φ(0, y) ≤ φ₀), and b moves it by ‖b‖/(nλ);
B is the sum of both for a length that ‖b‖ hardly ever exceeds. The bound is nearly what it takes in truth, most
directions of b meeting curvature of the order of λ: promises are broken nearly as often as γ allows. A part of γ is
therefore kept back.

*Theorem (scatter).* Over draws of b each coefficient of θ̂ has a standard deviation of at most V/(nλ), whatever the
rows are: V the ``spread`` of its law (`expost.mechanisms.objective.draws`), the largest σ of Gaussian noise. That is
about √p less than the bound on all of θ̂ together; the difference of two coefficients has at most √2 times as much.
*Proof.* b ↦ dᵀθ̂ has the gradient −H⁻¹d/n, H = ∇²L(θ̂) ⪰ λI almost everywhere, so its slopes are at most ‖d‖/(nλ).
(For Gaussian noise this is Poincaré's inequality.) Folding back makes no slope larger. A centre that was drawn before
adds no more than its own scatter, as prox points are no further apart than their centres: variances of levels add.
One at zero, where the level before was far noisier, adds none. ∎
It is attained where no row bears on d. How much less it is elsewhere is a matter of H, which is private. Released
numbers do not bound it: a category that no row has leaves −b_j/(nλ), which may look like any other coefficient. Paying
for it is dear: ln dᵀH⁻¹d moves by up to J, by the determinants' argument, for each d anew, and J is a few hundredths
to tenths of ε.

*Noise alone.* What is known for nothing is what noise makes of θ̂ where the rows do not bend the loss, H = λI: then θ̂
is −b/(nλ) beside what does not depend on b. Its covariance is that of b over (nλ)², b's entries being uncorrelated and
alike within a block. A later level takes that over, through the public linear maps between views
(`expost.table.views`), and adds its own. So dᵀθ̂ has a variance that is a public number for every d (`alone`,
`expost.release.effects`). Rows that bend the loss (H ≻ λI) hold θ̂, and it scatters by less: on tables 1.6 to 3 times
less in the middle, where V/(nλ) is 15 to 23 times too much (`benchmarks/results/noise_bands.md`). It is no bound: an H
that turns the noise of a loud block into a quiet one exceeds it. Curvature that is paid for does worse: with a
twentieth of ε it is noise, and even the exact second derivatives at the model, or exact counts of each column, say too
little of how far models scatter, as the noise of early levels moves them to where the loss hardly bends.

Never is the realised ‖b‖ reported or redrawn by: it is n‖∇L(θ̂)‖, a private number.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import gammainccinv

from expost.account import Account, add_losses
from expost.exceptions import TargetUnreachable, too_dear
from expost.goals.measure import gradient_target
from expost.mechanisms.mechanism import Mechanism, NullQuestion, require_shape
from expost.mechanisms.objective.draws import BlockNoise, NormalNoise, rounding
from expost.noise import WordSource, discrete_laplace
from expost.noise.tails import laplace_norm
from expost.numeric import INFLATION, UNIT, FloatArray, Grid, grid_sensitivity, public_grid
from expost.passes.sums import Sums
from expost.release.release import Release
from expost.shown import up
from expost.solve import GeneralErrors, Loss, Passes, Problem
from expost.solve.objective import Objective
from expost.solve.perturbed import STEEPEST, PerturbedErrors, PerturbedObjective
from expost.solve.row_sums import PassErrors, PassGradients
from expost.table.rows import ONE, MemorySource, Rows, RowSource
from expost.table.shape import Geometry

if TYPE_CHECKING:
    from expost.search.request import Plan, Request


COVERING = 1.01  # the solver, its noise and the rounding move a coefficient by less than this part more
LEAST_SOLVER = 1e-8  # part of what the noise on the gradient costs that covering the solver costs at least
_ENOUGH = 1e3  # times as much for how far the solver may be off costs less than it takes to find more


class PerturbedMinimum:
    """What perturbed minimisers share, whatever the law of b; public. Subclasses are frozen dataclasses."""

    loss: Loss
    geometry: Geometry
    n: int
    lam: float
    center_norm: float
    solver_part: float

    @property
    @abstractmethod
    def typical(self) -> float:
        """Root mean square of ‖b‖₂/n."""

    @property
    @abstractmethod
    def law(self) -> BlockNoise | NormalNoise:
        """What b is drawn by."""

    @property
    def deviations(self) -> tuple[float, ...]:
        """The standard deviation of each entry of b, block by block."""
        return self.law.deviations

    @property
    def spread(self) -> float:
        """No coefficient has a larger standard deviation over draws of b; the solver's noise included."""
        return self.law.spread / (self.n * self.lam) * COVERING

    @property
    def alone(self) -> dict[str, list[Any]]:
        """How far its noise alone scatters a coefficient, block by block, as releases state it."""
        blocks = zip(self.geometry.blocks, self.deviations, strict=True)
        found = [(block.size, COVERING * deviation / (self.n * self.lam)) for block, deviation in blocks]
        return {"sizes": [size for size, _ in found], "deviations": [deviation for _, deviation in found]}

    @property
    def longest(self) -> float:
        """What ‖b‖₂/n hardly ever exceeds; where it does, the model may be folded back."""
        return self.law.longest / self.n

    @property
    def remainder(self) -> float:
        """ρ/n, of what is left of b."""
        return self.law.remainder / self.n

    @property
    @abstractmethod
    def least_solver(self) -> float:
        """What covering the solver costs at least."""

    @property
    def slope(self) -> float:
        """κ."""
        return self.loss.lipschitz(math.inf)

    @property
    def jacobian(self) -> float:
        """J, rounded up."""
        size = self.loss.curvature * self.geometry.radius**2 / (self.n * self.lam)
        return math.log1p(size) * (1.0 + 1e-12)

    @cached_property
    def kept(self) -> float:
        """B: points so far from θ₀ are not folded back."""
        without = math.sqrt(2.0 * (self.loss.null_value + self.slope * self.center_norm) / self.lam)
        return min(self.slope / self.lam, without) + self.longest / self.lam

    @property
    def pull(self) -> float:
        """P: noise whose ‖b̃‖₂/n is larger has its minimiser beyond 2B."""
        return INFLATION * (2.0 * self.lam * self.kept + self.slope + self.remainder)

    @cached_property
    def errors(self) -> PerturbedErrors:
        """How exact the solver is."""
        p, pull, within = self.geometry.columns, INFLATION * self.pull, 2.0 * self.kept
        enough = _ENOUGH * self.least_solver * self._scale / (2.0 * math.sqrt(p))
        return PerturbedErrors(self.loss, self.n, p, self.lam, self.center_norm, pull, within, enough)

    @cached_property
    def distance(self) -> float:
        """d: the solver's, what is left of b, and the rounding of h."""
        left = (self.remainder + rounding(self.geometry.columns) * self.pull) / self.lam
        return self.errors.distance + INFLATION * left + 32.0 * UNIT * (self.kept + self.center_norm)

    @cached_property
    def _solver(self) -> tuple[Grid, float]:
        """The grid that θ is rounded to and the ε of the noise there, which covers the solver."""
        p = self.geometry.columns
        moved = 2.0 * math.sqrt(p) * self.distance
        unit = public_grid(max(moved / p, self.solver_part * self.typical / self.lam / p * 2.0**-20))
        # one unit more: the exact minimiser in between is on no grid, so the sum of two moves need not be whole
        grid = Grid(unit, grid_sensitivity(moved, unit, p) + 1)
        return grid, max(grid.effective_sensitivity / self._scale, self.least_solver)

    @property
    def _scale(self) -> float:
        """Scale of the noise that covers the solver."""
        return self.solver_part * self.typical / self.lam / math.sqrt(2.0 * self.geometry.columns)

    @property
    def epsilon_solver(self) -> float:
        """What the noise that covers the solver costs."""
        return self._solver[1]

    def moved(self, failure_probability: float) -> float:
        """Return a bound on ‖θ_released − θ̂‖₂ that fails with that probability: solver, rounding and its noise.

        A discrete Laplace variable can be coupled to a continuous one within a unit, and rounding takes half of one.
        """
        p = self.geometry.columns
        grid, epsilon = self._solver
        length = grid.effective_sensitivity / epsilon * laplace_norm(p, failure_probability)
        return self.distance + length + 2.0 * math.sqrt(p) * grid.unit

    def draw(self, objective: PerturbedObjective, center: FloatArray, source: WordSource) -> FloatArray:
        """Draw the noise, minimise, and return the hypothesis, a multiple of a public power of two."""
        found = self._found(objective, center, source)
        grid, epsilon = self._solver
        extra = discrete_laplace(epsilon, grid.units, self.geometry.columns, random_state=source)
        steps = [round(float(value) / grid.unit) + int(more) for value, more in zip(found, extra, strict=True)]
        return np.array([step * grid.unit for step in steps], dtype=np.float64)

    @np.errstate(all="ignore")  # a warning would tell of the noise
    def _found(self, objective: PerturbedObjective, center: FloatArray, source: WordSource) -> FloatArray:
        """Return θ₀ + h(t), within d."""
        p, linear = self.geometry.columns, self.law.draw(source) / self.n
        if not _length(linear) <= self.pull:
            return center.copy()
        found = objective.minimiser(self.errors, center, linear[:p])
        away = np.concatenate([found - center, linear[p:] / self.lam])
        length = _length(away)
        if length <= self.kept:
            return found
        return np.asarray(center + away[:p] * max(2.0 * self.kept / length - 1.0, 0.0))


def _length(vector: FloatArray) -> float:
    """Return ‖v‖₂ within 3u."""
    return math.hypot(*vector.tolist())  # squares do not overflow there


CERTIFIED = 1.5e-4  # solver_part where a bound, not a test, says that the model is good enough


@dataclass(frozen=True)
class Shot(PerturbedMinimum):
    """One release at given noise and λ; public.

    Attributes
    ----------
    loss, geometry, n
        What is minimised, the rows' shape and number.
    epsilon_noise
        ε′, for the noise on the gradient.
    lam
        λ.
    center_norm
        ‖θ₀‖₂.
    solver_part
        The noise that covers the solver moves θ by about this part of what the noise on the gradient does.
    """

    loss: Loss
    geometry: Geometry
    n: int
    epsilon_noise: float
    lam: float
    center_norm: float = 0.0
    solver_part: float = 1e-3

    @property
    def typical(self) -> float:
        """Root mean square of ‖b‖₂/n."""
        return 2.0 * self.slope * self.geometry.noise / (self.epsilon_noise * self.n)

    @property
    def least_solver(self) -> float:
        """Noise of no cost would be infinite."""
        return LEAST_SOLVER * self.epsilon_noise

    @cached_property
    def law(self) -> BlockNoise:
        """Noise that follows the shape."""
        blocks: list[tuple[int, str]] = [(block.size, block.norm) for block in self.geometry.blocks]
        return BlockNoise(blocks, self.geometry.weights(self.epsilon_noise, self.slope))

    @property
    def epsilon(self) -> float:
        """What the release costs."""
        return add_losses(self.epsilon_noise, self.jacobian, self.epsilon_solver)

    def reach(self, failure_probability: float) -> float:
        """Return what the released θ is at most away from the one without noise, but for that probability.

        L is λ-strongly convex and ∇L(θ̂) = −b/n, so ‖θ̂ − θ*‖₂ ≤ ‖b‖₂/(nλ), whatever the rows are.
        """
        half = failure_probability / 2
        return self.law.norm(half) / (self.n * self.lam) + self.moved(half)


_USED = 0.7  # of γ goes to the quantile of ‖b‖; nearly tight bounds are counted against γ in few runs otherwise
COVERED = 1e-3  # and this part to the noise that covers the solver
NULL = 0.2  # and this part to the null model, which is asked about first


@dataclass(frozen=True)
class ObjectiveCertificate:
    """The null model, then the one release that suffices; public.

    Attributes
    ----------
    problem, excess_risk, failure_probability
        What is proved.
    null
        The first question; None where the budget has room for the release alone.
    shot
        The release.
    budget
        No outcome may cost more.
    """

    problem: Problem
    excess_risk: float
    failure_probability: float
    null: NullQuestion | None
    shot: Shot
    budget: float

    @classmethod
    def of(
        cls,
        problem: Problem,
        excess_risk: float,
        failure_probability: float,
        geometry: Geometry,
        *,
        budget: float = math.inf,
    ) -> ObjectiveCertificate:
        """Find the smallest ε that provably suffices."""
        if problem.radius_stated:
            raise ValueError("objective perturbation compares with the unconstrained optimum; leave radius out")
        gamma = failure_probability
        shot = sufficient(problem, excess_risk, _USED * gamma, COVERED * gamma, geometry)
        if shot.epsilon > budget and excess_risk < problem.loss.null_value:
            remedy = "a larger excess_risk or max_epsilon"
            raise too_dear("this excess risk", shot.epsilon, problem.n, budget, remedy, spare=1.05)
        errors = PassErrors(problem.loss, problem.p, problem.regularization)
        null: NullQuestion | None = NullQuestion.of(problem, excess_risk, NULL * gamma, errors)
        if null is not None and not null.holds_for_any_rows and add_losses(null.cost, shot.epsilon) > budget:
            null = None
        return cls(problem, excess_risk, failure_probability, null, shot, budget)

    @property
    def worst_case(self) -> float:
        """No outcome costs more, and where the null model is nearly good enough none costs less."""
        return 0.0 if self.free else add_losses(0.0 if self.null is None else self.null.cost, self.shot.epsilon)

    @property
    def free(self) -> bool:
        """Whether θ = 0 meets the target whatever the rows."""
        return self.null is not None and self.null.holds_for_any_rows

    def search(self, generator: Any, account: Account, source: WordSource) -> Release:
        """Ask about the null model, and draw the release unless it will do."""
        gradients = PassGradients(generator.rows.passes, self.problem.regularization)
        if self.null is not None and self.null.ask(gradients, account, source):
            return account.released(np.zeros(self.problem.p))
        theta = self.shot.draw(generator.rows.perturbed, np.zeros(self.problem.p), source)
        account.generation = add_losses(account.generation, self.shot.epsilon)
        account.reasons.append(
            f"objective perturbation: epsilon = {up(self.shot.epsilon)} provably suffices, whatever the rows; "
            f"{up(self.shot.jacobian)} of it is the Jacobian's"
        )
        return account.released(theta, level=0, n_levels=1)


def sufficient(
    problem: Problem, excess_risk: float, noise_probability: float, solver_probability: float, geometry: Geometry
) -> Shot:
    """Return the release at the smallest ε that suffices, but for the sum of the two probabilities."""
    target = gradient_target(excess_risk, problem.regularization)
    length = noise_quantile(geometry, noise_probability)
    steep = problem.loss.curvature + problem.regularization
    epsilon = 2.0 * problem.loss.lipschitz(math.inf) * length / (problem.n * target)
    for _ in range(50):
        shot = Shot(problem.loss, geometry, problem.n, epsilon, problem.regularization, solver_part=CERTIFIED)
        moved = steep * shot.moved(solver_probability)
        if moved >= target:
            break
        needed = 2.0 * shot.slope * length / (problem.n * (target - moved)) * (1 + 1e-9)
        if needed <= epsilon:
            if 2.0 * shot.slope * length / epsilon > shot.longest * shot.n:
                break  # noise so rare might be folded back
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


class ObjectiveRows:
    """Private rows, ready for perturbed objectives.

    ``counts`` says how many rows each given one stands for, where that is known beforehand (made-up rows); otherwise
    equal rows are found and counted.
    """

    def __init__(self, rows: Rows | RowSource, loss: Loss, counts: FloatArray | None = None) -> None:
        if counts is not None and isinstance(rows, Rows):
            self.passes = Passes(loss, MemorySource(rows, counts))
        else:
            self.passes = Passes.over(loss, rows)
        self.n, self.p = self.passes.n, self.passes.p
        self._given = (rows, counts)
        self.perturbed = PerturbedObjective(self.passes)

    @cached_property
    def objective(self) -> Objective:
        """The same in floating point, with predictions and second derivatives at hand: for simulations in memory."""
        rows, counts = self._given
        assert isinstance(rows, Rows)
        return Objective(self.passes.loss, rows.x / ONE, rows.y / ONE, 1.0, counts, "l2")


class ObjectiveGenerator:
    """The rows, and what is minimised over them; private. A chain draws its models from them, level by level."""

    def __init__(
        self,
        mechanism: ObjectivePerturbation,
        rows: Rows | RowSource,
        problem: Problem,
        counts: FloatArray | None = None,
    ) -> None:
        self.mechanism, self.problem = mechanism, problem
        self.rows = ObjectiveRows(rows, problem.loss, counts)

    @property
    def judge(self) -> Passes:
        """What goals are measured on."""
        return self.rows.passes


@dataclass(frozen=True)
class ObjectivePerturbation(Mechanism):
    """Noise on the gradient; for convex losses whose slope is bounded.

    Parameters
    ----------
    geometry
        The rows' shape, which the noise follows.
    gaussian
        Whether noise is Gaussian, at a δ (`expost.mechanisms.objective.gaussian_objective`).
    """

    geometry: Geometry
    gaussian: bool = False

    name = "objective"
    exact = ("rows in fixed point", "generation noise", "test noise and comparisons")
    charged = (
        "minimiser of the perturbed objective: solver tolerance, rounding and what is left of the noise beyond its "
        "digits, covered by noise that is charged",
    )

    @classmethod
    def of(cls, *, noise: str, full_matrix: bool) -> ObjectivePerturbation:
        """Refuse: the shape of the rows has to be known."""
        raise ValueError("objective perturbation is made from the shape of the rows: ObjectivePerturbation(geometry)")

    @staticmethod
    def applies(problem: Problem, *, noise: str) -> bool:
        """Whether the caller's options leave room for it: it compares with the unconstrained optimum."""
        free = not problem.radius_stated and not problem.paper_constants
        return Mechanism.checked(noise) == "laplace" and free and not too_steep(problem)

    def require(self, problem: Problem) -> None:
        """Raise unless slopes are bounded and the minimiser is found in a time worth the name."""
        if too_steep(problem):
            raise ValueError(
                f"regularization = {problem.regularization:.3g} is too small for objective perturbation: on some rows "
                f"the minimiser might take more than {STEEPEST:.0e} passes over them. Pass "
                f"{1.001 * problem.loss.curvature / (STEEPEST - 1.0):.3g} or more"
            )
        if not math.isfinite(problem.loss.lipschitz(math.inf)):
            raise ValueError(f"objective perturbation needs a loss of bounded slope, not the {problem.loss.name} loss")

    def require_declared(self, rows: Rows | RowSource | Sums) -> None:
        """Raise unless rows declare what the shape needs."""
        require_shape(rows, self.geometry)

    def errors(self, problem: Problem) -> GeneralErrors:
        """Return the errors of risks that come from passes over the rows."""
        return GeneralErrors(problem.loss, problem.n, problem.p, problem.regularization)

    def theory_epsilon(self, problem: Problem, excess_risk: float) -> float:
        """Return ε at which ‖b‖²/(2λn²) is α in the mean."""
        target = gradient_target(excess_risk, problem.regularization)
        slope = problem.loss.lipschitz(math.inf)
        return 2.0 * slope * self.geometry.noise / (problem.n * target)

    def gradient_epsilon(self, problem: Problem, excess_risk: float) -> float:
        """Return the same: the noise is on the gradient."""
        return self.theory_epsilon(problem, excess_risk)

    def certificate(self, request: Request, excess_risk: float, *, automatic: bool) -> Plan:
        """Settle the one release whose ε is known to suffice."""
        return ObjectiveCertificate.of(
            request.problem,
            excess_risk,
            request.failure_probability,
            self.geometry,
            budget=request.budget,
        )

    def can_certify(self, problem: Problem) -> bool:
        """Whether no smaller ball was stated: the certificate is about the unconstrained optimum."""
        return not problem.radius_stated

    def on(self, rows: Rows | RowSource | Sums, problem: Problem) -> Any:
        """Return the generator for private rows."""
        self.require_rows(rows, problem)
        assert not isinstance(rows, Sums)
        return ObjectiveGenerator(self, rows, problem)


def too_steep(problem: Problem) -> bool:
    """Whether λ is so small that descent, should it be needed, would hardly end; public."""
    lam = problem.regularization
    return problem.loss.curvature + lam > STEEPEST * lam
