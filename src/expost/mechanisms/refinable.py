"""Certified searches whose path is kept, so that a later request for more accuracy pays the difference (theory B11).

*Released*, now and later: levels of one path, and what the first search asked beside it (the null model; a noisy trace
for output perturbation). *Theorem (privacy)*: all instalments together cost what was asked beside the path and the
largest level revealed (`expost.noise.path`, and adaptive composition with the rest, which is independent of the path).
*Theorem (accuracy)*: with probability 1 − γ over the noise *all* promises hold that are ever made on the path, however
later requests are chosen. One event sees to that, because the grid of levels is fixed before the path is drawn:

- covariance: the norm of the noise is bounded at all levels at once (`expost.mechanisms.moments.certificate`). The
  event mentions neither α nor λ, so λ may change from one request to the next.
- output: there is a level for each excess risk that may be asked for, and the energy of the noise is bounded at each,
  with equal parts of the bound's share of γ. Which level a request leads to may depend on the noise, through what was
  revealed before; a union over the levels does not mind. It makes levels dearer, so they should be few.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from expost.account.account import Account
from expost.account.composition import add_losses
from expost.mechanisms.moments.certificate import CovariancePlan, Seen, split_path
from expost.mechanisms.null_model import NullQuestion
from expost.mechanisms.output.certificate import OutputCertificate
from expost.noise.path import KeptLevels
from expost.noise.source import WordSource
from expost.release.release import Release
from expost.shown import up


@dataclass
class RefinableCovariance:
    """Null model, then levels of second moments until one is certified.

    Attributes
    ----------
    null, plan
        The first question, and the levels, which go on beyond what this search needs.
    last
        The last level that this search may reveal.
    budget
        No outcome may cost more.
    kept
        What is left of the path once the search has run; private.
    """

    null: NullQuestion
    plan: CovariancePlan
    last: int
    budget: float
    kept: KeptLevels | None = None

    @property
    def worst_case(self) -> float:
        """No outcome costs more."""
        return min(self.budget, add_losses(self.null.cost, self.plan.charge(self.plan.levels[self.last])))

    @property
    def said(self) -> dict[str, Any]:
        """What has to be known about the path later on; public."""
        plan = self.plan
        return {
            "kind": "covariance",
            "levels": list(plan.levels),
            "charges": [plan.charge(level) for level in plan.levels],
            "steps": list(plan.steps),
            "split": plan.split,
            "path_failure_probability": plan.failure_probability,
        }

    def search(self, generator: Any, account: Account, source: WordSource) -> Release:
        """Ask about the null model, draw the whole path, and reveal as much of it as is needed."""
        good_enough = self.null.ask(generator.risk, account, source)
        self.kept = KeptLevels.of(split_path(generator.sums, self.plan, source))
        if good_enough:
            return account.released(np.zeros(self.plan.problem.p))
        return certify_from(None, self.last, self.kept, self.plan, account, self.budget)


def certify_from(
    revealed: int | None, last: int, kept: KeptLevels, plan: CovariancePlan, account: Account, budget: float
) -> Release:
    """Reveal levels until one is certified; the account has what was spent so far, and gets the level.

    ``revealed`` is the last level revealed before, which is looked at again: what it shows is paid for.
    """
    beta, lam = plan.norm(), plan.problem.regularization
    for t in range(revealed or 0, last + 1):
        charge = plan.charge(plan.levels[t])
        if add_losses(account.probe, account.test, charge) > budget:
            account.reasons.append("covariance certificate: the next level would exceed the budget")
            break
        account.generation, revealed = charge, t
        seen = Seen.of(kept[t], plan, plan.levels[t], beta)
        theta, certificate = seen.best(lam)
        account.public = {"statistics": seen.said} if plan.keep_statistics else {}
        if certificate <= plan.excess_risk:
            account.reasons.append(f"covariance certificate {certificate:.3g} at epsilon = {up(plan.levels[t])}")
            return account.released(theta, level=t, n_levels=len(plan.levels))
    else:
        account.reasons.append("covariance certificate: no level sufficed")
    return account.refused(level=revealed, n_levels=len(plan.levels))


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
