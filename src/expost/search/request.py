"""What the caller asked for, as one public value: problem, goal, mechanism (chosen here), method, γ and budget.

A request is settled into a :class:`Plan` by public numbers alone: its goal answers for what is asked, its method for
how it is searched, its mechanism for how hypotheses are made. Whatever cannot be met is refused there.

*Which mechanism* is the one stated, or the one that public numbers make the cheapest. For goals that are tested,
without a δ, noise goes on the objective (:func:`chain_request`). At a δ (:func:`staged_request`) gradient descent goes
first: it gathers what it has paid for, and is cheapest where goals are easy. Near a model's limit perturbed objectives
get further for the same loss, so a search whose models have cost much of the budget turns to pure noise on the
objective, from its last model on (`expost.search.levels`): a pure ε holds at every δ. What decides that are released
numbers alone. A way that is out of reach, whatever the rows are, is not begun with. For an excess risk
(:func:`risk_request`) what is predicted to cost least is taken; at a δ second moments under Gaussian noise compete with
what is pure. A new way is an entry in :data:`STAGED`.

*Does the table fit the schema at all?* is asked before a model is paid for (:class:`CheckedPlan`). Where no row may
raise (``on_invalid="clip"``), a misspelt label or a text column given bounds would turn into a model of nothing.
*Released*: whether two noisy counts pass. *Neighbours*: one row replaced. *Sensitivity*: the smallest number of
readable cells in any column, and the number of rows whose target is readable, each move by at most one. *Theorem*:
Laplace noise of scale n/40 costs 40/n each. Where neighbours differ in a person of k rows, n = m·k and the account
charges k times that, 40/m (`expost.account.composition`). No promise rests on it: a table that fits is refused with a
probability of at most e⁻⁶, and one that does not is refused most likely.
"""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Protocol

from expost import defaults, validation
from expost.account.account import Account, current
from expost.account.composition import ROW, Curve, Unit, add_losses, tried
from expost.exceptions import TargetUnreachable
from expost.goals.goal import RISK_CHARGED, Goal, TestedGoal, as_goal, excess_risk_of, is_tested
from expost.mechanisms import Generator, Mechanism, ObjectivePerturbation, mechanism_for
from expost.mechanisms.descent.gradient_descent import DescentPlan, GradientDescent
from expost.mechanisms.moments.gaussian_moments import GaussianMoments, MomentsPlan, moments_for
from expost.mechanisms.moments.risk_at_delta import MomentRiskPlan
from expost.mechanisms.objective.chain import ChainPlan, ContinuedChain, GaussianChainPlan
from expost.noise import WordSource, discrete_laplace
from expost.release.release import Promise, Release
from expost.release.words import on_new
from expost.search.levels import StagedPlan
from expost.shown import down, up
from expost.solve import ErrorBounds, Problem
from expost.solve.losses import weighted
from expost.table.shape import Geometry

OnFailure = Literal["refuse", "release_optimum"]
_MOMENTS = ("auto", "certified")  # methods that may reveal second moments
#: What is taken as given where rows are held out.
DRAWN_ALIKE = "{0}s were drawn independently from one population, and new {0}s are drawn from it likewise"
_WITH_DELTA = ("auto", "certified", "stationarity")  # methods that book Rényi curves


class Plan(Protocol):
    """A search that is settled; public.

    With a δ, one that books Gaussian curves and takes no step that its account does not let it has ``gaussian = True``;
    others are held by ledgers as pure ones. One that draws its generator's path has ``gradual = True``, and one that
    compares with a baseline ``baseline = True``.
    """

    @property
    def worst_case(self) -> float:
        """No outcome costs more."""
        ...

    def search(self, generator: Generator, account: Account, source: WordSource) -> Release:
        """Search, booking every step; a refusal is returned like any other release."""
        ...


class Method(ABC):
    """How the privacy level is found. A new method is one file and an entry in ``search/__init__.py``."""

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
        none = "no model is released as good enough" if request.in_levels else "nothing is released"
        chance = f"with probability at least {down(1 - gamma, 6)} {request.chances}, either {none} or {request.about}"
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
    held_out
        How many rows models are tested on and not fitted to, beside those of the problem; what is promised is about new
        rows then (`expost.search.new_rows`).
    continues
        The release whose model the search begins at, if it goes on from one (`expost.estimators.table_refinement`).
    """

    problem: Problem
    goal: Goal | None
    method: Method
    mechanism: Mechanism
    failure_probability: float = defaults.FAILURE_PROBABILITY
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
    continues: Release | None = None
    held_out: int = 0

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
        if self.goal is not None or self.method.name != "fixed":
            as_goal(
                self.goal,
                f"goal must be ExcessRisk(...) or another goal, got {self.goal!r}; a plain number is an excess_risk, "
                f"and only method='fixed' promises nothing",
            )
        if self.delta:
            self._check_delta()
        elif self.mechanism.gaussian:
            raise ValueError(f"the noise of {self.mechanism.name} is Gaussian here, which needs a delta above 0")
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
            and excess_risk_of(self.goal) is not None
            and self.method.name in _MOMENTS
        ):
            raise ValueError(
                "keep_statistics goes with an excess_risk, perturbation='covariance' and method='auto' or 'certified': "
                "elsewhere no noisy second moments are revealed"
            )
        if self.goal is not None and self.goal.chained_only and self.mechanism.geometry is None:
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
        if self.goal is not None and self.goal.pure_only:
            raise ValueError(f"{type(self.goal).__name__} is pure; with a delta pass excess_risk or R2(...)")
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
        if shared is not None:  # whose filter no outcome gets past
            worst_case = min(worst_case, self.unit.share(shared.epsilon))
        reasons = [self.reason] if self.reason and not self.delta else []  # at a δ the plan says it
        account = Account(
            self.method.name, worst_case, secure, reasons=reasons, unit=self.unit, delta=self.delta, shared=shared
        )
        account.held_out = self.held_out
        if self.continues is not None:
            account.carry_on(self.continues)
        return account

    def plan(self) -> Plan:
        """Settle everything that is public, or say that the mechanism has not what the search would ask for."""
        plan = self.method.settle(self, math.nan) if self.goal is None else self.goal.plan(self)
        if getattr(plan, "gradual", False) and self.mechanism.geometry is not None:
            raise ValueError(
                f"this search takes a gradual release, and {self.mechanism.name} makes fresh ones; pass method='auto', "
                f"without a radius, or perturbation='covariance' or 'output'"
            )
        if (getattr(plan, "baseline", False) or self.on_failure == "release_optimum") and not self.mechanism.risks:
            raise ValueError(
                f"a baseline, and an optimum to fall back to, need true risks, which {self.mechanism.name} does not "
                f"know; pass perturbation='covariance' or 'output'"
            )
        return plan

    def tested(self, goal: TestedGoal) -> Plan:
        """Settle the search for a goal that is tested as it stands."""
        from expost.search.gradual import settle_goal

        geometry = self.mechanism.geometry
        if geometry is None:
            return settle_goal(self, goal)
        if not self.mechanism.gaussian and not math.isfinite(self.problem.loss.lipschitz(math.inf)):
            raise ValueError(f"{self.mechanism.name} tests models of a loss of bounded slope, not the squared loss")
        kind = self.mechanism.name if self.mechanism.gaussian else PURE
        loss, n, gamma = self.problem.loss, self.problem.n, self.failure_probability
        asked: Any = (n, gamma, self.budget, self.delta, self.unit)
        if self.continues is not None:
            return ContinuedChain.after(self.continues, goal, loss, geometry, *asked)
        plan = STAGED[kind].of(goal, loss, geometry, *asked, self.reason)
        other = getattr(self.mechanism, "then", None)
        return plan if other is None else replace(plan, then=STAGED[PURE].settled(goal, loss, other, *asked))

    def reduced_to(self, goal: Goal, *, failure_probability: float, max_epsilon: float | None) -> Request:
        """Return the request for another goal with what is left of γ and of the budget."""
        return dataclasses.replace(
            self, goal=goal, failure_probability=failure_probability, max_epsilon=max_epsilon, on_failure="refuse"
        )

    @property
    def in_levels(self) -> bool:
        """Whether it is searched for in levels, each with a λ of its own, whose models are tested as they stand."""
        return is_tested(self.goal) and self.mechanism.geometry is not None

    def _promise(self, release: Release) -> Promise:
        """Return what is promised about a release, with the problem that it is about, if λ is the same at all levels.

        Of a model that is short of the goal what was shown is promised, and nothing else (theory D3).
        """
        promise = self.method.promise(self, release.promise)
        if not self.in_levels:
            return dataclasses.replace(promise, radius=self.problem.radius, regularization=self.problem.regularization)
        if release.status != "short" or self.goal is None:
            return promise
        sure = f"with probability at least {down(1 - self.failure_probability, 6)} {self.chances}, whichever way the"
        true = f"true {on_new(self.unit.noun)}" if self.held_out else "true"
        statement = f"{sure} search ends, what is shown of a model is {true}; {self.goal.words} was asked for"
        return dataclasses.replace(promise, statement=f"{statement}, and is not promised")

    @property
    def chances(self) -> str:
        """What a probability is over."""
        return f"over the noise and the drawing of {self.unit.noun}s" if self.held_out else "over the noise"

    @property
    def about(self) -> str:
        """Which rows the promise is about, where those are not the rows themselves."""
        return f"in the mean {on_new(self.unit.noun)}, bounded and rounded as they are, " if self.held_out else ""

    def _claims(self) -> tuple[str, ...]:
        """Say what is taken as given of parts that are not the library's own."""
        loss, mechanism, goal = self.problem.loss, self.mechanism, self.goal
        claims = {
            f"the loss {loss.name} is convex, and its slopes and curvature are what it states": loss,
            "optimum and sensitivities of the problem are what it states": None
            if validation.foreign(loss)
            else self.problem,
            f"the mechanism {mechanism.name} is as private at every level as it states": mechanism,
            "one row replaced moves what the goal is tested on by no more than the goal states": goal,
        }
        drawn = (DRAWN_ALIKE.format(self.unit.noun),) if self.held_out else ()
        own = tuple(claim for claim, part in claims.items() if part is not None and validation.foreign(part))
        return (*drawn, *own)

    def details(self, release: Release) -> dict[str, Any]:
        """Return what a release says about itself beside its numbers: method, promise, what is exact or charged."""
        problem, mechanism, weights = self.problem, self.mechanism.behind(release), self.problem.loss.class_weights
        by_goal = self.goal.exact() if self.goal is not None else ()
        charged = self.goal.charged(self.method.charged) if self.goal is not None else RISK_CHARGED
        scaled_by = mechanism.noise_sensitivity(problem)
        return {
            "method": self.method.name,
            "perturbation": mechanism.name,
            "promise": self._promise(release),
            "exact": (
                *(part for part in mechanism.exact if release.noise == "exact" or part != "generation noise"),
                *by_goal,
            ),
            "charged": (*mechanism.charged, *charged),
            "claims": self._claims(),  # doubling records its black box as a claim; here it is our own, and proved
            "parameters": {
                **release.parameters,
                "loss": mechanism.minimised(problem),
                **({} if weights == (1.0, 1.0) else {"class_weights": weights}),
                "n": problem.n + self.held_out,
                "p": problem.p,
                "paper_constants": problem.paper_constants,
                **({} if scaled_by is None else {"noise_sensitivity": scaled_by, "radius": problem.radius}),
                **self.unit.described,
            },
        }


PURE = "pure"  # a chain of releases with pure losses, which count at any δ
#: The plan of each mechanism, by the mechanism's own name.
STAGED: dict[str, type[StagedPlan]] = {
    "gradient descent": DescentPlan,
    "objective": GaussianChainPlan,
    "covariance": MomentsPlan,
    PURE: ChainPlan,
}


def staged_request(
    perturbation: str | None,
    goal: TestedGoal,
    geometry: Geometry,
    n: int,
    failure_probability: float,
    budget: float,
    delta: float,
    unit: Unit = ROW,
    pure: Geometry | None = None,
    weights: tuple[float, float] = (1.0, 1.0),
) -> Request:
    """Return the request at δ for a goal in people's units: by the way stated, or by descent and then pure noise.

    Parameters
    ----------
    perturbation
        The way, of `expost.mechanisms.WITH_SCHEMA`, or None.
    goal, geometry, n, failure_probability, budget, delta, unit
        As in :class:`~expost.search.levels.StagedPlan`.
    pure
        The shape of rows that pure noise would follow, where that may be chosen.
    weights
        What a row counts for in the loss whose label is negative, and whose is positive.

    Examples
    --------
    >>> from expost import ErrorRate
    >>> from expost.table.shape import l2_ball
    >>> request = staged_request(None, ErrorRate(0.2), l2_ball(50), 50_000, 0.1, 10.0, 1e-6)
    >>> request.mechanism.name
    'gradient descent'
    """
    validation.failure_probability(failure_probability)  # which is computed with before the request is made
    loss, reason = weighted(goal.chain().loss, weights), ""
    if current(delta, unit) is not None:
        pure = None  # budgets that several fits share are where Gaussian costs add in squares
    mechanism: Mechanism
    if perturbation is None:
        asked = (n, failure_probability, budget, delta, unit)
        mechanism = GradientDescent(geometry, pure)
        drowned = pure is not None and DescentPlan.settled(goal, loss, geometry, *asked).missing()
        if pure is not None and drowned and not ChainPlan.settled(goal, loss, pure, *asked).missing():
            reason = "gradient descent would drown in the noise that hides one row"
            mechanism = ObjectivePerturbation(replace(pure, reason="; ".join(filter(None, (pure.reason, reason)))))
    else:
        ways: dict[str, Callable[[Geometry], Mechanism]] = {
            "descent": GradientDescent,
            "objective": lambda shape: ObjectivePerturbation(shape, gaussian=True),
            "covariance": GaussianMoments,
        }
        validation.one_of("perturbation", perturbation, list(ways))
        mechanism = ways[perturbation](geometry)
    problem = Problem.of(loss, n=n, p=geometry.columns, regularization=1.0)
    return Request(
        problem,
        goal,
        _automatic(),
        mechanism,
        failure_probability,
        max_epsilon=budget,
        unit=unit,
        delta=delta,
        reason=reason,
    )


def chain_request(
    goal: TestedGoal,
    geometry: Geometry,
    n: int,
    failure_probability: float,
    budget: float,
    unit: Unit = ROW,
    weights: tuple[float, float] = (1.0, 1.0),
) -> Request:
    """Return the request for a goal in people's units, for n rows of a shape; nobody states a λ.

    The problem names the loss that the goal asks for and the λ of the first level; later levels have their own.
    """
    validation.failure_probability(failure_probability)  # which is computed with before the request is made
    loss = weighted(goal.chain().loss, weights)
    start = ChainPlan.settled(goal, loss, geometry, n, failure_probability, budget)
    lam = min(start.shot(start.affordable_start or start.start).lam, 1e15)
    problem = Problem.of(start.loss, n=n, p=geometry.columns, regularization=lam)
    return Request(
        problem,
        goal,
        _automatic(),
        ObjectivePerturbation(geometry),
        failure_probability,
        max_epsilon=budget,
        unit=unit,
    )


def risk_request(
    made: Callable[[Mechanism, float], Request],
    perturbation: str | None,
    problem: Problem,
    inside: Geometry,
    delta: float,
    *,
    around: Geometry | None,
    in_squares: bool,
    noise: str,
    full_matrix: bool,
) -> Request:
    """Return the request for an excess risk by the mechanism stated, or by the one that is predicted to be cheapest.

    Parameters
    ----------
    made
        Makes the request of a mechanism, at a δ or without one.
    perturbation, problem, delta, noise, full_matrix
        As in :func:`run_search`.
    inside
        The Euclidean ball of the rows, which Gaussian noise on second moments follows.
    around
        The shape that noise on the gradient would follow, where that may be chosen.
    in_squares
        Whether costs are to add in squares, as those of several fits do.
    """
    if not delta:
        return made(mechanism_for(perturbation, problem, noise=noise, full_matrix=full_matrix, shape=around), 0.0)
    at_delta = pure = None
    squared = problem.loss.name == "squared"
    if squared:
        at_delta = made(moments_for(perturbation, inside, noise=noise, full_matrix=full_matrix), delta)
    if perturbation is None and around is not None and not (in_squares and squared):
        pure = made(mechanism_for(None, problem, noise=noise, full_matrix=full_matrix, shape=around), 0.0)
    return _cheaper(at_delta, pure)


def _cheaper(gaussian: Request | None, pure: Request | None) -> Request:
    """Return the request at δ, or the pure one for the same goal with the reason for it; None is what cannot be."""
    if gaussian is None:
        return _pure_alone(pure)
    if pure is None or current(gaussian.delta, gaussian.unit) is not None:
        return gaussian  # as stated; or in a budget that several fits share, where costs add in squares
    at_delta, alone = _expected(gaussian), _expected(pure)
    if not alone < at_delta:
        return gaussian
    said = "out of reach" if math.isinf(at_delta) else up(at_delta, 2)
    reason = (
        f"pure noise was predicted to be cheapest from public numbers alone: epsilon about {up(alone, 2)} "
        f"(second moments under Gaussian noise {said})"
    )
    return replace(pure, reason=reason)


def _pure_alone(pure: Request | None) -> Request:
    """Return the pure request where a loss has no other way to an excess risk, or say that it has none."""
    if pure is None:
        raise ValueError(
            "with a delta an excess risk of this loss is searched for by method='auto' alone, with noise on the "
            "gradient; leave perturbation, noise, keep_path and on_failure out, or state a goal in people's units"
        )
    current(pure.delta, pure.unit, stated=True)
    return replace(pure, reason="this loss has a pure way to an excess risk alone, which holds at any delta")


def _expected(request: Request) -> float:
    """Return roughly what a search will cost; infinite where it cannot be tried."""
    try:
        plan = request.plan()
    except TargetUnreachable:
        return math.inf
    if isinstance(plan, MomentRiskPlan):
        return Curve.gaussian(plan.expected).epsilon(plan.delta) if plan.rhos else 0.0
    return float(getattr(plan, "expected", plan.worst_case))


def _automatic() -> Method:
    """Return the method of requests for goals in people's units."""
    from expost.search import METHODS

    return METHODS["auto"]


_EACH = 40.0  # ε of a count, times n
_ENOUGH = 0.85  # of the rows have a readable target
_SOME = 0.15  # of the cells of every column are readable


@dataclass(frozen=True, repr=False)
class CheckedPlan:
    """A plan that first looks whether the table fits.

    ``columns`` are the readable cells of each column and ``labels`` the readable targets; these counts are private.
    """

    plan: Plan
    columns: Sequence[int]
    labels: int
    n: int
    budget: float
    unit: Unit = ROW

    @staticmethod
    def left(n: int, most: float, unit: Unit) -> float:
        """Return what looking leaves of a budget for the search itself, or say that it leaves nothing."""
        cost = unit.charge(add_losses(_EACH / n, _EACH / n))
        if cost >= most:
            raise TargetUnreachable(
                f"at {unit.count(n)} looking whether the table fits its schema would cost epsilon = {up(cost)}, more "
                f"than max_epsilon = {down(most)}. {tried(math.ceil(n / unit.rows * cost / most * 1.1), unit)}. "
                f"Nothing was spent."
            )
        return most - cost

    def __repr__(self) -> str:
        return f"CheckedPlan(n={self.n})"

    @property
    def cost(self) -> float:
        """What the two counts cost."""
        return add_losses(_EACH / self.n, _EACH / self.n)

    @property
    def gaussian(self) -> bool:
        """Whether the plan behind books Gaussian curves."""
        return getattr(self.plan, "gaussian", False)

    @property
    def worst_case(self) -> float:
        """No outcome costs more than the plan and the counts, nor than the budget."""
        return self.budget

    def search(self, generator: Any, account: Account, source: WordSource) -> Release:
        """Look, and go on if the table fits."""
        if not account.affords(self.cost):
            account.reasons.append("looking whether the table fits its schema would exceed the budget")
            return account.refused()
        noise = discrete_laplace(_EACH / self.n, 1, 2, random_state=source)
        account.look_first(self.cost)
        known = self.labels + int(noise[0])
        fewest = min(self.columns, default=self.n) + int(noise[1])
        if known < _ENOUGH * self.n:
            account.reasons.append(
                f"hardly enough rows have a target that the schema knows (about {max(0, known):,} of {self.n:,}): is a "
                f"label misspelt? expost check tells the curator"
            )
            return account.refused(parameters={"unfit": True})
        if fewest < _SOME * self.n:
            account.reasons.append(
                "a column has hardly any cell that fits the schema: is a text column given bounds, or are categories "
                "misspelt? expost check tells the curator"
            )
            return account.refused(parameters={"unfit": True})
        account.reasons.append(f"the table fits its schema, counted for epsilon = {up(self.unit.charge(self.cost))}")
        return self.plan.search(generator, account, source)
