"""Output perturbation (theory A5): noise on the minimiser itself, for any smooth convex loss.

*Released*: θ* plus noise, rescaled into the ball. *Neighbours*: one row replaced. *Sensitivity*: θ* moves by at most
Δ₁ in ℓ₁ (``expost.solve``); the minimiser found numerically lies within d of θ* in ℓ₂, d a public number
fixed by the solver's tolerance, so 2√p·d is added; rounding to a public grid g makes it ⌊Δ₁/g⌋ + p units (theory B1).
*Theorem*: gradual release of the rounded vector (``expost.noise.laplace``); rescaling is post-processing.

With spherical noise (theory B8) the minimiser is not rounded: its ℓ₂-sensitivity is Δ₂ + 2d, Δ₂ = S(R)/(nλ)
(``expost.solve.problem``), and the theorem is that of ``expost.noise.spherical``, over the reals. It
goes with every calibration: the paper has no spherical noise whose constants could be kept. Laplace noise is charged
Δ₁ = √p·Δ₂, so its root mean square length is √2·pΔ₂/ε against √(p(p + 1))·Δ₂/ε: a factor √(2p/(p + 1)), up to √2.

**Certified** (theory B6): release at the smallest ε that provably suffices. No test is paid for.
*Released*: first, a noisy trace of Σ = XᵀX/n; then θ* + b, once. *Neighbours*: one row replaced. *Sensitivity*: the
trace is a mean of ‖x‖₂² ∈ [0, 1], so 1/n (2⁴⁰ units of 2⁻⁴⁰ for the exact sum); θ* moves by at most S(R)/(nλ) in ℓ₂,
R the radius the optimum is known to lie in (`expost.solve.problem`), √p times that in ℓ₁, plus solver
tolerance and rounding. *Theorem (privacy)*: adaptive composition of two Laplace (or one Laplace and one spherical)
mechanisms; ε of the second depends on the released trace alone. *Theorem (accuracy)*: ∇L(θ*) = 0 and φ″ ≤ c give L(θ*
+ b) − L(θ*) ≤ ½bᵀ(cΣ + λI)b, and ``expost.noise.tails`` or ``spherical_energy`` bounds the right side with
probability 1 − γ for every Σ of at most the probed trace. The probe's and the bound's failure probabilities add.

The released θ is not rescaled into any ball: θ* + b is what the bound is about.

**A path that is kept** (theory B11), so that a later request for more accuracy pays the difference: there is a level
for each excess risk that may be asked for, and the energy of the noise is bounded at each, with equal parts of the
bound's share of γ. Which level a request leads to may depend on the noise, through what was revealed before; a union
over the levels does not mind. It makes levels dearer, so they should be few.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from expost.account import Account, add_losses
from expost.exceptions import TargetUnreachable
from expost.goals.measure import ErrorMeasure, MeanSquareByRows, gradient_target
from expost.mechanisms.mechanism import Mechanism, Noise, NoiseKind, NullQuestion
from expost.mechanisms.moments.statistics import TRACE_SENSITIVITY
from expost.noise import KeptLevels, NoisePath, SphericalPath, WordSource, discrete_laplace
from expost.noise.tails import laplace_energy, spherical_energy
from expost.numeric import AnyArray, FloatArray, Grid, grid_sensitivity, public_grid
from expost.passes.engine import distinct
from expost.passes.first_pass import in_memory
from expost.passes.sums import Sums
from expost.release.release import Release
from expost.shown import up
from expost.solve import GeneralErrors, GeneralRisk, Problem, minimise
from expost.solve.ball import into_ball
from expost.table.rows import ONE, Rows, RowSource

if TYPE_CHECKING:
    from expost.search.request import Request

_NOMINAL_TRACE = 0.1  # only balances the probe against what it saves; any value is sound
# How the failure probability is shared out.
_NULL, _PROBE, _BOUND = 0.15, 0.05, 0.8


@dataclass(frozen=True)
class OutputCertificate:
    """Everything settled before a row is looked at.

    Attributes
    ----------
    problem, excess_risk, failure_probability
        What is to be proved.
    noise
        ``"laplace"`` or ``"spherical"``.
    sensitivity, error
        What noise is scaled by, and how far the released θ may lie from θ* plus continuous noise.
    null, epsilon_probe
        The first question, and what the trace is measured with; 0 if it is not, and taken to be 1.
    budget
        No outcome may cost more.
    bound
        The bound's part of the failure probability.
    """

    problem: Problem
    excess_risk: float
    failure_probability: float
    noise: str
    sensitivity: float
    error: float
    null: NullQuestion
    epsilon_probe: float
    budget: float
    bound: float = _BOUND

    def energy(self, trace: float) -> float:
        """Return q: with probability 1 − γ′ the noise energy at unit scale is at most q.

        What bounds the energy for every Σ of trace at most 1 does so for those of a smaller trace. q is computed to ten
        digits, so the bound for a smaller trace may come out above it in the last ones; the smaller one is taken, and
        no outcome costs more than :attr:`worst_case`.
        """
        # upwards, and so that equal questions are answered from the cache
        return min(self._energy(math.ceil(trace * 512) / 512), self._energy(1.0))

    def _energy(self, trace: float) -> float:
        problem = self.problem
        bound = laplace_energy if self.noise == "laplace" else spherical_energy
        return bound(
            problem.p,
            trace,
            curvature=problem.loss.curvature,
            regularization=problem.regularization,
            gamma=self.bound * self.failure_probability,
        )

    @property
    def usable_target(self) -> float:
        """α less what rounding and the solver may add: √(2α′) + √(c + λ)·‖e‖ = √(2α).

        Proof. What is released is θ* + b + e, and dᵀ(cΣ + λI)d is the square of a norm of d, which is at most
        √(c + λ)·‖d‖ because Σ ⪯ I. If ½bᵀ(cΣ + λI)b ≤ α′, that norm of b + e is at most √(2α′) + √(c + λ)·‖e‖. ∎
        """
        steep = math.sqrt(self.problem.loss.curvature + self.problem.regularization)
        root = math.sqrt(2 * self.excess_risk) - steep * self.error
        if root <= 0:
            raise TargetUnreachable("excess_risk is below what floating point can promise; ask for a larger one")
        return 0.5 * root * root

    def epsilon_at(self, trace: float) -> float:
        """Return the ε of the release if the trace is at most ``trace``: (Δ/ε)²·q ≤ α′."""
        return self.sensitivity * math.sqrt(self.energy(trace) / self.usable_target) * (1 + 1e-12)

    @property
    def worst_case(self) -> float:
        """What the least favourable data would cost, Σ having trace at most 1; no more than the budget."""
        return min(self.budget, add_losses(self.null.cost, self.epsilon_probe, self.epsilon_at(1.0)))

    def search(
        self,
        generator: Any,
        account: Account,
        source: WordSource,
        keep: Callable[[float], KeptLevels] | None = None,
        **details: Any,
    ) -> Release:
        """Release the minimiser with the most noise that provably meets the target.

        ``keep(trace)`` draws a path to be gone on with in place of a single release; its first level is for that trace.
        """
        if self.null.ask(generator.risk, account, source):
            if keep is not None:
                keep(1.0)  # nothing was measured: for the least favourable trace
            return account.released(np.zeros(self.problem.p))
        kind = {"noise": generator.mechanism.noise_kind}
        if add_losses(account.total, self.epsilon_probe, self.epsilon_at(0.0)) > self.budget:
            account.reasons.append("no data set of this size could be certified with what is left of the budget")
            return account.refused(**kind)
        trace = self.probe_trace(generator.trace_units, account, source)
        kept, epsilon = None if keep is None else keep(trace), self.epsilon_at(trace)
        if add_losses(account.total, epsilon) > self.budget:
            account.reasons.append(f"the trace is at most {up(trace, 3)}: would need another epsilon = {up(epsilon)}")
            return account.refused(**kind)
        account.generation = add_losses(account.generation, epsilon)
        account.reasons.append(
            f"the trace, measured for epsilon = {up(self.epsilon_probe)}, is at most {up(trace, 3)}: epsilon = "
            f"{up(epsilon)} provably suffices"
        )
        if kept is None:
            kept = KeptLevels.of(generator.path((epsilon,), source))
        return account.released(generator.unrescaled(kept[0]), **details, **kind)

    def probe_trace(self, trace_units: int, account: Account, source: WordSource) -> float:
        """Return an upper bound on the trace that fails with probability at most the probe's share."""
        if self.epsilon_probe == 0.0:
            return 1.0  # beside such a λ the rows' curvature does not show
        n = self.problem.n
        noise = int(discrete_laplace(self.epsilon_probe, TRACE_SENSITIVITY, 1, random_state=source)[0])
        account.probe = add_losses(account.probe, self.epsilon_probe)
        measured = (trace_units + noise) / (n * TRACE_SENSITIVITY)
        margin = math.log(1 / (2 * _PROBE * self.failure_probability)) / (n * self.epsilon_probe)
        return min(1.0, max(0.0, measured + margin * (1 + 1e-9) + 2 / (n * TRACE_SENSITIVITY)))


@dataclass
class RefinableOutput:
    """Null model, trace, and the first level of a path of noisy minimisers.

    Attributes
    ----------
    certificate
        The search as it would be without later requests.
    later
        The excess risks that later requests may ask for, decreasing; there is a level for each.
    kept, levels, unit
        The path once the search has run (private), its levels, and the grid that values are multiples of.
    """

    certificate: OutputCertificate
    later: tuple[float, ...]
    kept: KeptLevels | None = None
    levels: tuple[float, ...] = ()
    unit: float | None = None

    def __post_init__(self) -> None:
        for each in self.each:
            each.usable_target  # noqa: B018  # which says so if floating point cannot promise as much

    @property
    def each(self) -> list[OutputCertificate]:
        """The certificate of each level, with its part of the bound's share of γ."""
        bound = self.certificate.bound / (1 + len(self.later))
        risks = (self.certificate.excess_risk, *self.later)
        return [replace(self.certificate, excess_risk=risk, bound=bound) for risk in risks]

    @property
    def worst_case(self) -> float:
        """No outcome costs more."""
        return self.each[0].worst_case

    @property
    def said(self) -> dict[str, Any]:
        """What has to be known about the path later on; public once the search has run."""
        return {
            "kind": "output",
            "levels": list(self.levels),
            "charges": list(self.levels),
            "proves": [each.excess_risk for each in self.each],
            "unit": self.unit,
        }

    def search(self, generator: Any, account: Account, source: WordSource) -> Release:
        """Search as the certificate does, with a path in place of a single release."""

        def keep(trace: float) -> KeptLevels:
            self.levels = tuple(each.epsilon_at(trace) for each in self.each)
            self.kept = KeptLevels.of(generator.path(self.levels, source))
            if generator.mechanism.noise == "laplace":
                self.unit = generator.mechanism.grid(generator.problem).unit
            return self.kept

        return self.each[0].search(generator, account, source, keep, level=0, n_levels=len(self.each))


@dataclass(frozen=True)
class Output(Mechanism):
    """Noise on the minimiser; for any smooth convex loss.

    Parameters
    ----------
    noise
        ``"laplace"``: exact discrete Laplace noise on a grid; ``"spherical"``: over the reals (theory B8).
    """

    noise: Noise = "laplace"

    name = "output"
    exact = ("rows in fixed point", "generation noise", "test noise and comparisons")
    charged = (
        "minimiser: solver tolerance and, with Laplace noise, rounding to a public grid charged to its sensitivity",
    )

    @classmethod
    def of(cls, *, noise: str = "laplace", full_matrix: bool = False) -> Output:
        """Return the mechanism; it has no matrix."""
        return cls(cls.checked(noise))

    @property
    def noise_kind(self) -> NoiseKind:
        """Exact for Laplace noise."""
        return "exact" if self.noise == "laplace" else "over the reals"

    def errors(self, problem: Problem) -> GeneralErrors:
        """Return the errors of risks that come from passes over the rows."""
        radius = problem.radius if problem.radius_stated else None
        return GeneralErrors(problem.loss, problem.n, problem.p, problem.regularization, radius)

    def theory_epsilon(self, problem: Problem, excess_risk: float) -> float:
        """Return ε by the theorem for the noise and, with the paper's constants, by the paper's for logistic loss."""
        if self.noise == "spherical":
            return spherical_epsilon(problem, excess_risk)
        if problem.paper_constants and problem.loss.name == "logistic":
            return paper_logistic_epsilon(problem, excess_risk)
        return laplace_epsilon(problem, excess_risk)

    def shot_epsilon(self, problem: Problem, excess_risk: float) -> float:
        """Return ε for the sensitivity that is charged, in proportion to which all of these theorems have it.

        The minimiser found and rounded is off by e at most, so ½(c + λ)e² of the excess risk is used up before noise is
        added; discrete noise has no larger second moments than the continuous one (spherical noise is not rounded).
        """
        curvature = problem.loss.curvature + problem.regularization
        off = self.errors(problem).distance_bound + 0.5 * self.grid(problem).unit * math.sqrt(problem.p)
        left = excess_risk - 0.5 * curvature * off**2 * (1 + 1e-12)
        if left <= 0:
            raise TargetUnreachable(
                f"an excess risk of {excess_risk:g} is finer than the minimiser is found; pass a larger one. "
                f"Nothing was spent."
            )
        exact = problem.output_sensitivity if self.noise == "laplace" else problem.output_l2_sensitivity
        return self.theory_epsilon(problem, left) * (self.noise_sensitivity(problem) / exact) * (1 + 1e-12)

    def gradient_epsilon(self, problem: Problem, excess_risk: float) -> float:
        """Return ε from the root mean square of ‖b‖₂ at ε = 1, times the largest curvature."""
        p = problem.p
        root = problem.output_sensitivity * math.sqrt(2 * p)
        if self.noise == "spherical":
            root = problem.output_l2_sensitivity * math.sqrt(p * (p + 1))
        length = (problem.loss.curvature + problem.regularization) * root
        return length / gradient_target(excess_risk, problem.regularization)

    def grid(self, problem: Problem) -> Grid:
        """Return the grid that the minimiser is rounded to: solver and rounding are charged to its sensitivity."""
        return _grid(problem, self.errors(problem).distance_bound)

    def noise_sensitivity(self, problem: Problem) -> float:
        """Return the sensitivity that noise is scaled by: ℓ₁ on the grid for Laplace, ℓ₂ for spherical."""
        if self.noise == "laplace":
            return self.grid(problem).effective_sensitivity
        return problem.output_l2_sensitivity + 2 * self.errors(problem).distance_bound

    def release_error(self, problem: Problem) -> float:
        """Return the ℓ₂ distance between what is released and θ* plus continuous noise: solver, rounding, discreteness.

        Rounding moves a coordinate by half a unit; a discrete Laplace variable can be coupled to a continuous one
        within one.
        """
        return self.errors(problem).distance_bound + 1.5 * self.grid(problem).unit * math.sqrt(problem.p)

    def can_certify(self, problem: Problem) -> bool:
        """Whether no smaller ball was stated: the certificate is about the unconstrained optimum."""
        return not problem.radius_stated

    def refinable(self, request: Request, excess_risk: float, later: tuple[float, ...]) -> RefinableOutput:
        """Settle the certified release of the minimiser as the first level of a path that is kept."""
        return RefinableOutput(self.certificate(request, excess_risk, automatic=False), later)

    def certificate(self, request: Request, excess_risk: float, *, automatic: bool) -> OutputCertificate:
        """Settle the certified release of the minimiser, the probe's ε weighed against what a sharper trace saves."""
        problem, gamma, budget = request.problem, request.failure_probability, request.budget
        if problem.radius_stated:
            raise ValueError("certified output perturbation compares with the unconstrained optimum; leave radius out")
        null = NullQuestion.of(problem, excess_risk, _NULL * gamma, request.errors)
        sensitivity, error = self.noise_sensitivity(problem), self.release_error(problem)
        plan = OutputCertificate(problem, excess_risk, gamma, self.noise, sensitivity, error, null, 0.0, budget)
        per_trace = (plan.energy(1.0) - plan.energy(0.0)) * math.log(1 / (2 * _PROBE * gamma)) / problem.n
        probe = math.sqrt(plan.epsilon_at(_NOMINAL_TRACE) * per_trace / (2 * plan.energy(_NOMINAL_TRACE)))
        null.require_affordable(budget)
        return replace(plan, epsilon_probe=probe)

    def on(self, rows: Rows | RowSource | Sums, problem: Problem) -> OutputGenerator:
        """Return the generator for private rows."""
        self.require_rows(rows, problem)
        if isinstance(rows, Sums):
            raise ValueError("output perturbation needs the rows themselves, not their sums")
        if isinstance(rows, RowSource):
            rows = in_memory(rows)  # the exact minimiser and true risks go over rows in memory
        return OutputGenerator(self, rows, problem)


class OutputGenerator:
    """Hypotheses from a noisy minimiser.

    Parameters
    ----------
    mechanism
        What it is made by.
    rows
        The private rows.
    problem
        The public side; its loss says what is minimised.
    """

    def __init__(self, mechanism: Output, rows: Rows, problem: Problem) -> None:
        self.mechanism, self.problem = mechanism, problem
        kinds, targets, counts = distinct(rows)
        x, y = kinds.astype(np.float64) / ONE, targets.astype(np.float64) / ONE
        errors, lam = mechanism.errors(problem), problem.regularization
        found = minimise(problem.loss, x, y, lam, tolerance=errors.tolerance, radius=errors.radius, counts=counts)
        self.risk = GeneralRisk(found)
        self._grid = mechanism.grid(problem)
        # exact: fixed-point squares, at most 2⁴⁰ a row
        self.trace_units = sum(
            int(np.square(rows.x[start : start + (1 << 16)], dtype=np.int64).sum())
            for start in range(0, rows.n, 1 << 16)
        )

    def path(self, levels: tuple[float, ...], source: WordSource) -> NoisePath | SphericalPath:
        """Draw the gradual release of the minimiser."""
        if self.mechanism.noise == "spherical":
            sensitivity = self.mechanism.noise_sensitivity(self.problem)
            return SphericalPath(self.risk.optimum, sensitivity, levels, random_state=source)
        rounded = np.rint(self.risk.optimum / self._grid.unit).astype(np.int64)
        return NoisePath(rounded, self._grid.units, levels, random_state=source)

    @property
    def size(self) -> int:
        """Number of coordinates."""
        return self.problem.p

    def shot(self, noise: FloatArray) -> FloatArray:
        """Return the hypothesis for given noise, in units of the sensitivity; for simulations, which draw their own."""
        return into_ball(self.risk.optimum + noise * self._grid.effective_sensitivity, self.problem.radius)

    def hypothesis(self, values: AnyArray) -> FloatArray:
        """Return the noisy minimiser, rescaled into the ball if it lies outside."""
        return into_ball(self.unrescaled(values), self.problem.radius)

    def unrescaled(self, values: AnyArray) -> FloatArray:
        """Return the noisy minimiser as it is, which is what the utility theorem is about."""
        if values.dtype.kind == "f":  # spherical noise: no grid
            return values
        return np.asarray(values.astype(np.float64) * self._grid.unit)

    def excess_risk(self) -> ErrorMeasure:
        """Return the excess risk as a measure."""
        risk, problem = self.risk, self.problem
        return ErrorMeasure(
            risk.excess,
            sensitivity=problem.risk_sensitivity,
            error_bound=risk.excess_error_bound(problem.radius),
            lower=risk.lower,
            upper=risk.upper,
        )

    def mean_square(self) -> MeanSquareByRows:
        """Return the mean squared error, by passes over the rows."""
        return MeanSquareByRows(self.risk.objective)


def laplace_epsilon(problem: Problem, excess_risk: float) -> float:
    """Return ε for Laplace noise around an unconstrained minimiser of any smooth loss.

    With θ = θ* + b and b of independent Lap(r) coordinates, E[L(θ) − L(θ*)] ≤ ½·E[bᵀ(cΣ + λI)b] ≤ r²(c + λp), because
    E(xᵀb)² = 2r²‖x‖² ≤ 2r²; r = Δ₁/ε. For the squared loss and the paper's Δ₁ this is
    (1 + λp)(R+1)²p/(nλε²), the corrected form of the paper's ridge theorem.
    """
    steep = problem.loss.curvature + problem.regularization * problem.p
    return problem.output_sensitivity * math.sqrt(steep / excess_risk)


def spherical_epsilon(problem: Problem, excess_risk: float) -> float:
    """Return ε for spherical noise, in the ℓ₂-sensitivity Δ₂ of the minimiser.

    The noise b is alike in all directions, with E‖b‖² = p(p+1)Δ₂²/ε² (its norm is Gamma(p) times Δ₂/ε), and E b = 0. So
    E[L(θ* + b) − L(θ*)] ≤ ½·E[bᵀ(cΣ + λI)b] = ½(c·tr Σ/p + λ)·E‖b‖² ≤ ½(p+1)(c + λp)Δ₂²/ε², for a minimum within a
    ball as well. Against Laplace noise with Δ₁ = √p·Δ₂ the factor is √((p+1)/(2p)).
    """
    p = problem.p
    steep = problem.loss.curvature + problem.regularization * p
    return problem.output_l2_sensitivity * math.sqrt((p + 1) * steep / (2 * excess_risk))


def paper_logistic_epsilon(problem: Problem, excess_risk: float) -> float:
    """Return ε by the paper's theorem for logistic regression: 2√2·p/(nλε) + 4p²/(n²λε²) ≤ α.

    Proof. b has Laplace coordinates of scale r = 2√p/(nλε), so E‖b‖² = 2pr² and E b = 0. The mean loss has slope at
    most 1 and rises by at most E‖b‖ ≤ √(2p)·r; the penalty rises by (λ/2)E‖b‖² = λpr². ∎
    """
    n, p, lam = problem.n, problem.p, problem.regularization
    a = 2 * math.sqrt(2) * p / (n * lam)
    b = 4 * p**2 / (n**2 * lam)
    return (a + math.sqrt(a * a + 4 * b * excess_risk)) / (2 * excess_risk)


@lru_cache(maxsize=64)  # exact fractions, and the same for every run of an experiment
def _grid(problem: Problem, distance: float) -> Grid:
    delta = problem.output_sensitivity + 2 * math.sqrt(problem.p) * distance
    unit = public_grid(delta / problem.p)
    return Grid(unit, grid_sensitivity(delta, unit, problem.p))
