"""Certified output perturbation (theory B6): release at the smallest ε that provably suffices. No test is paid for.

*Released*: first, a noisy trace of Σ = XᵀX/n; then θ* + b, once. *Neighbours*: one row replaced. *Sensitivity*: the
trace is a mean of ‖x‖₂² ∈ [0, 1], so 1/n (2⁴⁰ units of 2⁻⁴⁰ for the exact sum); θ* moves by at most S(R)/(nλ) in ℓ₂,
R the radius the optimum is known to lie in (`expost.erm.gradient_sensitivity`), √p times that in ℓ₁, plus solver
tolerance and rounding. *Theorem (privacy)*: adaptive composition of two Laplace (or one Laplace and one spherical)
mechanisms; ε of the second depends on the released trace alone. *Theorem (accuracy)*: ∇L(θ*) = 0 and φ″ ≤ c give L(θ*
+ b) − L(θ*) ≤ ½bᵀ(cΣ + λI)b, and ``expost.search.laplace_energy`` or ``spherical_energy`` bounds the right side with
probability 1 − γ for every Σ of at most the probed trace. The probe's and the bound's failure probabilities add.

The released θ is not rescaled into any ball: θ* + b is what the bound is about.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from expost.exceptions import TargetUnreachable
from expost.noise.laplace import discrete_laplace
from expost.noise.source import WordSource
from expost.privacy.composition import add_losses
from expost.privacy.release import Release
from expost.search.account import Account
from expost.search.laplace_energy import laplace_energy
from expost.search.null_model import null_cost, null_model_qualifies, require_affordable
from expost.search.output import OutputGenerator
from expost.search.plan import Noise, Problem
from expost.search.spherical_energy import spherical_energy

NO_RADIUS = "certified output perturbation compares with the unconstrained optimum; leave radius out"
_TRACE_UNITS = 1 << 40
_NOMINAL_TRACE = 0.1  # only balances the probe against what it saves; any value is sound
# How the failure probability is shared out.
_NULL, _PROBE, _BOUND = 0.15, 0.05, 0.8


@dataclass(frozen=True)
class OutputPlan:
    """Everything settled before a row is looked at. A probe of ε = 0 is not made: the trace is then taken to be 1."""

    problem: Problem
    noise: Noise
    sensitivity: float
    error: float
    epsilon_probe: float
    epsilon_null: float

    @classmethod
    def of(cls, problem: Problem, noise: Noise, generator: OutputGenerator) -> OutputPlan:
        """Settle the probe's ε by weighing it against what a sharper trace saves."""
        gamma = problem.failure_probability
        sensitivity = generator.charged_sensitivity(noise)
        plan = cls(problem, noise, sensitivity, generator.release_error, 0.0, 0.0)
        energy = plan.energy(_NOMINAL_TRACE)
        per_trace = (plan.energy(1.0) - plan.energy(0.0)) * math.log(1 / (2 * _PROBE * gamma)) / problem.n
        probe = math.sqrt(plan.epsilon_at(_NOMINAL_TRACE) * per_trace / (2 * energy))
        return cls(
            problem,
            noise,
            sensitivity,
            generator.release_error,
            probe,
            null_cost(generator.risk, problem, _NULL * gamma),
        )

    def energy(self, trace: float) -> float:
        """Return q: with probability 1 − γ′ the noise energy at unit scale is at most q.

        What bounds the energy for every Σ of trace at most 1 does so for those of a smaller trace. q is computed to
        ten digits, so the bound for a smaller trace may come out above it in the last ones; the smaller one is
        taken, and no outcome costs more than :attr:`most`.
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
            gamma=_BOUND * problem.failure_probability,
        )

    @property
    def usable_target(self) -> float:
        """α less what rounding and the solver may add: √(2α′) + √(c + λ)·‖e‖ = √(2α)."""
        steep = math.sqrt(self.problem.loss.curvature + self.problem.regularization)
        root = math.sqrt(2 * self.problem.excess_risk) - steep * self.error
        if root <= 0:
            raise TargetUnreachable("excess_risk is below what floating point can promise; ask for a larger one")
        return 0.5 * root * root

    def epsilon_at(self, trace: float) -> float:
        """Return the ε of the release if the trace is at most ``trace``: (Δ/ε)²·q ≤ α′."""
        return self.sensitivity * math.sqrt(self.energy(trace) / self.usable_target) * (1 + 1e-12)

    @property
    def most(self) -> float:
        """What the least favourable data would cost: Σ has trace at most 1."""
        return add_losses(self.epsilon_null, self.epsilon_probe, self.epsilon_at(1.0))


def certified_output(
    generator: OutputGenerator,
    problem: Problem,
    *,
    noise: Noise = "laplace",
    max_epsilon: float | None = None,
    source: WordSource,
) -> Release:
    """Release the minimiser with the most noise that provably meets the target."""
    if problem.radius_stated:
        raise ValueError(NO_RADIUS)
    plan = OutputPlan.of(problem, noise, generator)
    budget = math.inf if max_epsilon is None else max_epsilon
    require_affordable(generator.risk, problem, _NULL * problem.failure_probability, budget)
    account = Account("certified", min(budget, plan.most), source.secure)
    gamma = problem.failure_probability
    kind: dict[str, Literal["exact", "over the reals"]] = {"noise": "exact" if noise == "laplace" else "over the reals"}
    if null_model_qualifies(generator.risk, problem, _NULL * gamma, account, source):
        return account.released(np.zeros(problem.p))

    if add_losses(account.total, plan.epsilon_probe, plan.epsilon_at(0.0)) > budget:
        account.reasons.append("no data set of this size could be certified with what is left of the budget")
        raise account.refused(**kind)
    trace = _probe_trace(generator, plan, account, source)
    epsilon = plan.epsilon_at(trace)
    if add_losses(account.total, epsilon) > budget:
        account.reasons.append(f"the trace is at most {trace:.3g}: would need another epsilon = {epsilon:.3g}")
        raise account.refused(**kind)
    account.generation = epsilon
    account.reasons.append(
        f"the trace, measured for epsilon = {plan.epsilon_probe:.3g}, is at most {trace:.3g}: epsilon = {epsilon:.3g} "
        f"provably suffices"
    )
    (step,) = generator.path((epsilon,), source, noise)
    return account.released(generator.unrescaled(step.values), **kind)


def _probe_trace(generator: OutputGenerator, plan: OutputPlan, account: Account, source: WordSource) -> float:
    """Return an upper bound on the trace that fails with probability at most the probe's share."""
    if plan.epsilon_probe == 0.0:
        return 1.0  # beside such a λ the rows' curvature does not show
    n = plan.problem.n
    noise = int(discrete_laplace(plan.epsilon_probe, _TRACE_UNITS, 1, random_state=source)[0])
    account.probe = add_losses(account.probe, plan.epsilon_probe)
    measured = (generator.trace_units + noise) / (n * _TRACE_UNITS)
    margin = math.log(1 / (2 * _PROBE * plan.problem.failure_probability)) / (n * plan.epsilon_probe)
    return min(1.0, max(0.0, measured + margin * (1 + 1e-9) + 2 / (n * _TRACE_UNITS)))
