"""Certified output perturbation (theory B6): release at the smallest ε that provably suffices. No test is paid for.

*Released*: first, a noisy trace of Σ = XᵀX/n; then θ* + b, once. *Neighbours*: one row replaced. *Sensitivity*: the
trace is a mean of ‖x‖₂² ∈ [0, 1], so 1/n (2⁴⁰ units of 2⁻⁴⁰ for the exact sum); θ* moves by at most S(R)/(nλ) in ℓ₂,
R the radius the optimum is known to lie in (`expost.solve.problem`), √p times that in ℓ₁, plus solver
tolerance and rounding. *Theorem (privacy)*: adaptive composition of two Laplace (or one Laplace and one spherical)
mechanisms; ε of the second depends on the released trace alone. *Theorem (accuracy)*: ∇L(θ*) = 0 and φ″ ≤ c give L(θ*
+ b) − L(θ*) ≤ ½bᵀ(cΣ + λI)b, and ``expost.noise.tails`` or ``spherical_energy`` bounds the right side with
probability 1 − γ for every Σ of at most the probed trace. The probe's and the bound's failure probabilities add.

The released θ is not rescaled into any ball: θ* + b is what the bound is about.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from expost.account.account import Account
from expost.account.composition import add_losses
from expost.exceptions import TargetUnreachable
from expost.mechanisms.moments.statistics import TRACE_SENSITIVITY
from expost.mechanisms.null_model import NullQuestion
from expost.noise.laplace import discrete_laplace
from expost.noise.path import KeptLevels
from expost.noise.source import WordSource
from expost.noise.tails import laplace_energy, spherical_energy
from expost.release.release import Release
from expost.shown import up
from expost.solve.error_bounds import ErrorBounds
from expost.solve.problem import Problem

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

    @classmethod
    def of(
        cls,
        problem: Problem,
        excess_risk: float,
        failure_probability: float,
        errors: ErrorBounds,
        *,
        noise: str,
        sensitivity: float,
        error: float,
        budget: float = math.inf,
    ) -> OutputCertificate:
        """Settle the probe's ε by weighing it against what a sharper trace saves."""
        if problem.radius_stated:
            raise ValueError("certified output perturbation compares with the unconstrained optimum; leave radius out")
        gamma = failure_probability
        null = NullQuestion.of(problem, excess_risk, _NULL * gamma, errors)
        plan = cls(problem, excess_risk, gamma, noise, sensitivity, error, null, 0.0, budget)
        energy = plan.energy(_NOMINAL_TRACE)
        per_trace = (plan.energy(1.0) - plan.energy(0.0)) * math.log(1 / (2 * _PROBE * gamma)) / problem.n
        probe = math.sqrt(plan.epsilon_at(_NOMINAL_TRACE) * per_trace / (2 * energy))
        null.require_affordable(budget)
        return replace(plan, epsilon_probe=probe)

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
            account.reasons.append(f"the trace is at most {trace:.3g}: would need another epsilon = {up(epsilon)}")
            return account.refused(**kind)
        account.generation = add_losses(account.generation, epsilon)
        account.reasons.append(
            f"the trace, measured for epsilon = {up(self.epsilon_probe)}, is at most {trace:.3g}: epsilon = "
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
