"""What the caller asked for, as one public value: problem, goal, mechanism, method, failure probability and budget.

A request is settled into a :class:`Plan` before a row is looked at: its goal answers for what is asked, its method for
how it is searched, its mechanism for how hypotheses are made. Whatever cannot be met is refused there.
"""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol

from expost import validation
from expost.erm.error_bounds import ErrorBounds
from expost.erm.problem import Problem
from expost.goals.goal import RISK_CHARGED, Goal, TestedGoal
from expost.goals.relative import RelativeExcessRisk
from expost.mechanisms.mechanism import Generator, Mechanism
from expost.noise.source import WordSource
from expost.privacy.account import Account
from expost.privacy.release import Promise, Release
from expost.privacy.renyi_account import RenyiAccount
from expost.privacy.shared import current
from expost.privacy.unit import ROW, Unit

OnFailure = Literal["refuse", "release_optimum"]
_MOMENTS = ("auto", "certified")  # methods that may reveal second moments
_WITH_DELTA = ("auto", "certified", "stationarity")  # methods that book Rényi curves


class Plan(Protocol):
    """A search that is settled; public.

    With a δ, one that books Gaussian curves and takes no step that its account does not let it has ``gaussian = True``;
    others are held by ledgers as pure ones.
    """

    @property
    def worst_case(self) -> float:
        """No outcome costs more."""
        ...

    def search(self, generator: Generator, account: Account, source: WordSource) -> Release:
        """Search, booking every step; a refusal is returned like any other release."""
        ...


class Method(ABC):
    """How the privacy level is found. A new method is one file and an entry in ``search/methods/__init__.py``."""

    name: ClassVar[str]
    #: What is floating point beside the risk, and was charged.
    charged: ClassVar[tuple[str, ...]] = ()

    def check(self, request: Request) -> None:
        """Raise a helpful error for what this method cannot do."""
        return

    @abstractmethod
    def settle(self, request: Request, excess_risk: float) -> Plan:
        """Settle the search for an excess risk, or say why it cannot be met."""

    def promise(self, request: Request, reduced: Promise | None) -> Promise:
        """Return what is promised, in words and numbers."""
        assert request.goal is not None
        gamma = request.failure_probability
        kept = request.goal.promise(request.problem, reduced)
        chance = f"with probability at least {1 - gamma:g} over the noise, either nothing is released or "
        return dataclasses.replace(kept, statement=chance + kept.statement, failure_probability=gamma)


@dataclass(frozen=True)
class Request:
    """What the caller asked for; public.

    Attributes
    ----------
    problem, goal
        What is minimised, and how good a model must be; no goal only where the method promises none.
    method, mechanism
        How the level is found, and how hypotheses are made.
    failure_probability
        γ.
    calibration
        Of the test: ``"tight"``, or the paper's ``"theorem"`` or ``"published"``, which go with its constants.
    levels, n_levels
        Privacy levels of the caller's own, or how many.
    max_epsilon
        No outcome may cost more, for one row replaced.
    factor
        From one round of doubling to the next.
    on_failure
        What a refusal becomes.
    unit
        What neighbours differ in; the release charges for it.
    delta
        δ; 0 is pure privacy.
    keep_statistics
        Whether the noisy second moments are released with the model, for the price that they were paid for.
    reason
        Why this mechanism was chosen, where there was a choice.
    """

    problem: Problem
    goal: Goal | None
    method: Method
    mechanism: Mechanism
    failure_probability: float = 0.1
    calibration: str = "tight"
    levels: Sequence[float] | None = None
    n_levels: int | None = None
    max_epsilon: float | None = None
    factor: float = 2.0
    on_failure: OnFailure = "refuse"
    unit: Unit = ROW
    keep_statistics: bool = False
    delta: float = 0.0
    reason: str = ""

    def __post_init__(self) -> None:
        checked = {
            "delta": validation.delta(self.delta),
            "failure_probability": validation.failure_probability(self.failure_probability),
            "calibration": validation.calibration(self.calibration),
            "n_levels": validation.level_count(self.n_levels),
            "max_epsilon": validation.budget(self.max_epsilon),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        validation.one_of("on_failure", self.on_failure, ("refuse", "release_optimum"))
        paper = self.calibration in validation.PAPER_CALIBRATIONS
        if self.problem.paper_constants != paper:
            raise ValueError(f"calibration={self.calibration!r} goes with Problem.of(..., paper_constants={paper})")
        if not isinstance(self.goal, Goal) and not (self.goal is None and self.method.name == "fixed"):
            raise ValueError(
                f"goal must be ExcessRisk(...) or another goal, got {self.goal!r}; a plain number is an excess_risk, "
                f"and only method='fixed' promises nothing"
            )
        if self.delta:
            self._check_delta()
        self.mechanism.require(self.problem)
        self.method.check(self)
        if self.goal is not None:
            self.goal.check(
                self.problem.loss,
                method=self.method.name,
                calibration=self.calibration,
                on_failure=self.on_failure,
            )
        if self.keep_statistics and not (
            self.mechanism.name == "covariance"
            and self.goal is not None
            and self.method.name in _MOMENTS
            and not isinstance(self.goal, TestedGoal | RelativeExcessRisk)
        ):
            raise ValueError(
                "keep_statistics goes with an excess_risk, perturbation='covariance' and method='auto' or 'certified': "
                "elsewhere no noisy second moments are revealed"
            )
        if isinstance(self.goal, TestedGoal) and self.goal.chained_only and self.mechanism.geometry is None:
            name = type(self.goal).__name__
            raise ValueError(
                f"{name} is searched for with noise and regularization that shrink together: by AccuracyFirstModel, "
                f"for tables with a schema, or by an estimator that leaves regularization, method, perturbation, "
                f"noise, radius, n_levels and loss as they are by default"
            )

    def _check_delta(self) -> None:
        """Say what does not go with approximate privacy."""
        if self.method.name not in _WITH_DELTA:
            raise ValueError(f"method={self.method.name!r} is pure; with a delta pass one of {list(_WITH_DELTA)}")
        if isinstance(self.goal, RelativeExcessRisk):
            raise ValueError("RelativeExcessRisk is pure; with a delta pass excess_risk or R2(...)")
        if self.mechanism.geometry is None:
            raise ValueError(f"perturbation={self.mechanism.name!r} is pure; with a delta leave it out")
        if self.keep_statistics or self.on_failure != "refuse" or self.calibration != "tight":
            raise ValueError("keep_statistics, on_failure and calibration are for pure privacy; leave them out")

    @property
    def errors(self) -> ErrorBounds:
        """How far computed risks and gradients may be off."""
        return self.mechanism.errors(self.problem)

    @property
    def budget(self) -> float:
        """``max_epsilon`` as a number."""
        return math.inf if self.max_epsilon is None else self.max_epsilon

    def account(self, worst_case: float, secure: bool) -> Account:
        """Return the account that a search is booked on."""
        shared = current(self.delta, self.unit)
        if self.delta:
            if shared is not None:  # whose filter no outcome gets past
                worst_case = min(worst_case, self.unit.share(shared.epsilon))
            return RenyiAccount(self.method.name, worst_case, secure, unit=self.unit, delta=self.delta, shared=shared)
        account = Account(self.method.name, worst_case, secure, unit=self.unit)
        account.reasons += [self.reason] if self.reason else []
        return account

    def plan(self) -> Plan:
        """Settle everything that is public."""
        if self.goal is None:
            return self.method.settle(self, math.nan)
        return self.goal.plan(self)

    def tested(self, goal: TestedGoal) -> Plan:
        """Settle the search for a goal that is tested as it stands."""
        from expost.search.chain import ChainPlan
        from expost.search.methods.tested import settle_goal
        from expost.search.ways import STAGED

        geometry = self.mechanism.geometry
        if geometry is None:
            return settle_goal(self, goal)
        if self.mechanism.gaussian:
            loss, n, gamma = self.problem.loss, self.problem.n, self.failure_probability
            return STAGED[self.mechanism.name].of(
                goal, loss, geometry, n, gamma, self.budget, self.delta, self.unit, self.reason
            )
        return ChainPlan.of(goal, geometry, self.problem.n, self.failure_probability, self.budget, self.unit)

    def relative(self, goal: RelativeExcessRisk) -> Plan:
        """Settle the search for a fraction of what a baseline leaves on the table."""
        from expost.search.relative import RelativePlan

        return RelativePlan.of(goal, self)

    def reduced_to(self, goal: Goal, *, failure_probability: float, max_epsilon: float | None) -> Request:
        """Return the request for another goal with what is left of γ and of the budget."""
        return dataclasses.replace(
            self, goal=goal, failure_probability=failure_probability, max_epsilon=max_epsilon, on_failure="refuse"
        )

    def _about(self, promise: Promise) -> Promise:
        """Add the problem that a promise is about; where λ changes from level to level it is about none."""
        if isinstance(self.goal, TestedGoal) and self.mechanism.geometry is not None:
            return promise
        return dataclasses.replace(promise, radius=self.problem.radius, regularization=self.problem.regularization)

    def _claims(self) -> tuple[str, ...]:
        """Say what is taken as given of parts that are not the library's own."""
        loss, mechanism, goal = self.problem.loss, self.mechanism, self.goal
        claims = {
            f"the loss {loss.name} is convex, and its slopes and curvature are what it states": loss,
            f"the mechanism {mechanism.name} is as private at every level as it states": mechanism,
            "one row replaced moves what the goal is tested on by no more than the goal states": goal,
        }
        return tuple(claim for claim, part in claims.items() if part is not None and validation.foreign(part))

    def details(self, release: Release) -> dict[str, Any]:
        """Return what a release says about itself beside its numbers: method, promise, what is exact or charged."""
        problem, mechanism = self.problem, self.mechanism.behind(release)
        by_goal = self.goal.exact() if self.goal is not None else ()
        charged = self.goal.charged(self.method.charged) if self.goal is not None else RISK_CHARGED
        scaled_by = mechanism.noise_sensitivity(problem)
        return {
            "method": self.method.name,
            "perturbation": mechanism.name,
            "promise": self._about(self.method.promise(self, release.promise)),
            "exact": (
                *(part for part in mechanism.exact if release.noise == "exact" or part != "generation noise"),
                *by_goal,
            ),
            "charged": (*mechanism.charged, *charged),
            "claims": self._claims(),  # doubling records its black box as a claim; here it is our own, and proved
            "parameters": {
                **release.parameters,
                "loss": mechanism.minimised(problem),
                "n": problem.n,
                "p": problem.p,
                "paper_constants": problem.paper_constants,
                **({} if scaled_by is None else {"noise_sensitivity": scaled_by, "radius": problem.radius}),
                **self.unit.described,
            },
        }
