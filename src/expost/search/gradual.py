"""Gradual release: reveal hypotheses level by level, most private first, until a rule says stop.

Anything that yields values whose prefix up to level t is ε_t-private can be searched, with any post-processing of
the values into hypotheses and any stopping rule; nothing here knows about regression.

*Theorem* (the paper's lemma on AboveThreshold with private queries): if the prefix up to t is ε_t-private and,
for every fixed sequence of hypotheses, the rule's decision to stop at t is e-private, then revealing the prefix and
the decision costs ε_t + e. What the rule reads only through the revealed values costs nothing (e = 0).

*Methods.* `above_threshold`, the paper's search, tests the excess risk, `stationarity` the gradient, a goal itself.
`certified`, and `auto` where it can, stop when what is released anyway is a proof (theory B6): the mechanism answers
for its certificate (`expost.mechanisms`), and nothing is paid for testing the risk.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from expost import validation
from expost.account import Ledger, add_losses
from expost.account.account import Account, Spending, current, released, unspent
from expost.exceptions import TargetUnreachable, too_dear
from expost.goals.goal import TestedGoal
from expost.goals.measure import GradientLength, Measure, charged_grid, gradient_target
from expost.mechanisms.mechanism import Generator
from expost.mechanisms.moments.risk_at_delta import risk_at_delta
from expost.noise import LevelValue, WordSource
from expost.noise.laplace import check_levels
from expost.numeric import geometric_levels
from expost.release.release import Release
from expost.search.above_threshold import StoppingRule, ThresholdTest, calibrate
from expost.search.request import Method, Plan, Request
from expost.shown import down, up
from expost.solve.problem import gradient_sensitivity

TESTED_CLAIM = "one row replaced moves what is tested by no more than its stated sensitivity"
MADE_CLAIM = "what is made of revealed values reads nothing else of the rows"


@dataclass(frozen=True)
class GradualPlan:
    """Levels, and the test that stops at one of them; public.

    Attributes
    ----------
    levels, test
        The privacy levels, and the test.
    measure, hypothesis
        What is tested and how values become hypotheses, for a generator.
    details, reasons
        What the release says.
    """

    levels: tuple[float, ...]
    test: ThresholdTest
    measure: Callable[[Generator], Measure]
    hypothesis: Callable[[Generator], Callable[[Any], Any]] = lambda generator: generator.hypothesis
    details: Mapping[str, Any] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()

    gradual: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if len(self.levels) > self.test.n_tests:
            raise ValueError(f"{len(self.levels)} levels are more than the {self.test.n_tests} hypotheses of the test")

    @property
    def worst_case(self) -> float:
        """No outcome costs more."""
        return add_losses(self.levels[-1], self.test.epsilon)

    def search(self, generator: Generator, account: Account, source: WordSource) -> Release:
        """Draw the test's noise, then the path, and stop at the first level that passes."""
        rule = self.test.on(self.measure(generator), source)
        account.reasons.extend(self.reasons)
        path = generator.path(self.levels, source)
        return first_accepted(path, rule, self.hypothesis(generator), account, **self.details)


class PrefixPrivate(Protocol):
    """A generator whose first t values together are ``levels[t]``-private."""

    @property
    def levels(self) -> Sequence[float]:
        """The privacy levels, increasing."""

    @property
    def secure(self) -> bool:
        """Whether its noise may protect anyone."""

    def __iter__(self) -> Iterator[LevelValue]:
        """Yield the values, the most private first."""


@unspent()
def search_path(
    path: PrefixPrivate,
    rule: StoppingRule,
    postprocess: Callable[[Any], Any] | None = None,
    *,
    ledger: Ledger | None = None,
) -> Release:
    """Search a path of gradual release for the most private hypothesis that a rule accepts.

    Parameters
    ----------
    path
        A :class:`~expost.noise.NoisePath` or :class:`~expost.noise.SphericalPath`, or anything :class:`PrefixPrivate`.
        Its attribute ``noise`` says what the release says: ``"exact"``, or ``"over the reals"`` if it has none.
    rule
        A :class:`~expost.search.StoppingRule`.
    postprocess
        Turns the revealed values into a hypothesis; ``None`` leaves them as they are.
    ledger : Ledger, optional
        Holds the worst case before the first level is tested, and is charged what the search cost.

    Returns
    -------
    Release

    Raises
    ------
    AccuracyNotReached
        When no level qualifies; carries the refusal and its cost.

    Examples
    --------
    A histogram whose largest error is at most 40, as privately as the data allow (one row replaced moves two
    counts by one each; the error itself moves by at most one):

    >>> import numpy as np
    >>> from expost.noise import NoisePath
    >>> from expost.account import geometric_levels
    >>> from expost.search import AboveThreshold, ErrorMeasure, calibrate
    >>> counts = np.array([523, 1012, 77, 0, 3141])
    >>> levels = geometric_levels(0.001, 10.0, 40)
    >>> path = NoisePath(counts, 2, levels, random_state=0)
    >>> worst = ErrorMeasure(lambda noisy: float(np.abs(noisy - counts).max()), sensitivity=1.0)
    >>> delta = worst.effective_sensitivity
    >>> test = calibrate("tight", target=40.0, failure_probability=0.05, n_tests=40, sensitivity=delta)
    >>> release = search_path(path, AboveThreshold(worst, test, 40, random_state=1))
    >>> release.status, release.epsilon < 1.5
    ('released', True)
    """

    current(0.0)  # a search of this kind books no curve, so a shared budget could not count it

    claims: tuple[str, ...] = (
        "the first values of the path are together as private as its levels state: one row replaced moves what is on "
        "it by no more than its sensitivity",
        TESTED_CLAIM,
        *(() if postprocess is None else (MADE_CLAIM,)),
        *(("the answers of the stopping rule cost no more than it states",) if validation.foreign(rule) else ()),
        *dict.fromkeys((*getattr(path, "claims", ()), *getattr(rule, "claims", ()))),
    )

    def work(spending: Spending) -> Release:
        # Running out of tests half-way would tell that nothing passed, and leave without a release that says its cost.
        n_tests = getattr(rule, "n_tests", math.inf)
        if n_tests < len(path.levels):
            raise ValueError(f"the rule is made for {n_tests} hypotheses, the path has {len(path.levels)} levels")
        if getattr(rule, "used", False):
            raise ValueError("the rule has served a search, and its noise must not be used twice; make another one")
        worst_case = add_losses(path.levels[-1], rule.epsilon_worst_case)
        account = Account(rule.name, worst_case, path.secure and rule.secure)
        spending.begin(account.interrupted().with_details(claims=claims, noise=_noise(path)))
        return released(spending.end(first_accepted(path, rule, postprocess, account, claims=claims)))

    return Spending(ledger).guard(work)


def _noise(path: PrefixPrivate) -> Any:
    """Return whether its noise is exact: of a path that does not say so it is not known to be."""
    return getattr(path, "noise", "over the reals")


def first_accepted(
    path: PrefixPrivate, rule: StoppingRule, postprocess: Callable[[Any], Any] | None, account: Account, **details: Any
) -> Release:
    """Reveal level after level until the rule accepts; book what that costs and return the release or the refusal."""
    details = {"n_levels": len(path.levels), "noise": _noise(path), **details}
    for step in path:
        if getattr(rule, "rejects_next_unseen", False):
            rule.skip()  # type: ignore[attr-defined]  # decided by noise alone: spare the post-processing
            continue
        hypothesis = step.values if postprocess is None else postprocess(step.values)
        if rule.accepts(hypothesis):
            account.generation = add_losses(account.generation, step.epsilon)
            account.test = add_losses(account.test, rule.epsilon_stop)
            return account.released(hypothesis, level=step.index, **details)
    account.generation = add_losses(account.generation, path.levels[-1])
    account.test = add_losses(account.test, rule.epsilon_never)
    return account.refused(**details)


_DEFAULT_COUNT = {"theorem": 1000, "published": 1000, "tight": 32}


def level_count(calibration: str, levels: Sequence[float] | None, n_levels: int | None) -> int:
    """Return how many levels are searched: those given, as many as asked for, or the default."""
    if levels is not None:
        if n_levels is not None:
            raise ValueError("pass levels or n_levels, not both")
        return len(check_levels(levels))
    return _DEFAULT_COUNT[calibration] if n_levels is None else n_levels


def left_after(request: Request, epsilon_test: float, remedy: str) -> float:
    """Return what a test leaves of the budget, or say that not even the test fits it."""
    if epsilon_test >= request.budget:
        raise too_dear("testing alone", epsilon_test, request.problem.n, request.budget, remedy)
    return request.budget - epsilon_test


def levels_within(
    request: Request, epsilon_test: float, first: float, last: float, n_levels: int, remedy: str
) -> tuple[float, ...]:
    """Return the stated levels, or geometric ones, as far as they fit the budget beside the test."""
    left = left_after(request, epsilon_test, remedy)
    if request.levels is None:
        last = min(last, left)
        chosen = geometric_levels(min(first, last / 4), last, n_levels)
    else:
        chosen = tuple(level for level in check_levels(request.levels) if level <= left)
        if not chosen:
            raise TargetUnreachable(
                f"every level exceeds what max_epsilon = {down(request.budget)} leaves after a test of "
                f"{up(epsilon_test)}. Nothing was spent."
            )
    while add_losses(chosen[-1], epsilon_test) > request.budget:  # the last bit of rounding
        chosen = (*chosen[:-1], math.nextafter(chosen[-1], 0))
    return chosen


GRADIENTS_CHARGED = (
    "gradient norms and projected moments: rounded to public grids, floating-point error bounded and charged",
)
# levels end where a single shot typically has an excess risk of this part of a goal: a finer one would change little
_FINEST = 100


class RiskTested(Method):
    """The paper's search: AboveThreshold on the excess risk."""

    name = "above_threshold"

    def settle(self, request: Request, excess_risk: float) -> GradualPlan:
        """Settle test and levels (theory A8).

        Levels are geometric, from 1/n (``tight``: from where a level stops mattering beside the test) to four times the
        theory inversion.
        """
        problem, name = request.problem, request.calibration
        n_tests = level_count(name, request.levels, request.n_levels)
        charged = charged_grid(problem.risk_sensitivity, request.errors.excess_error_bound(problem.radius))
        test = calibrate(
            name,
            target=excess_risk,
            failure_probability=request.failure_probability,
            n_tests=n_tests,
            sensitivity=charged.effective_sensitivity,
        )
        remedy = "a larger excess_risk or max_epsilon, a smaller radius"
        first = 1 / problem.n if problem.paper_constants else max(1 / problem.n, test.epsilon / 64)
        last = 4 * request.mechanism.theory_epsilon(problem, excess_risk)
        levels = levels_within(request, test.epsilon, first, last, n_tests, remedy)
        return GradualPlan(
            levels,
            ThresholdTest(test, len(levels)),
            lambda generator: generator.excess_risk(),
            details={"calibration": name},
        )


class Stationarity(Method):
    """Gradual release stopped by a private test of the gradient, far less sensitive than the risk (theory B12)."""

    name = "stationarity"
    charged = GRADIENTS_CHARGED

    def check(self, request: Request) -> None:
        """Refuse a stated radius."""
        if request.problem.radius_stated:
            raise ValueError(
                "method='stationarity' compares with the unconstrained optimum, whose gradient alone is zero; leave "
                "radius out"
            )

    def settle(self, request: Request, excess_risk: float) -> Plan:
        """Settle levels and test, the budget kept as for the risk; with a δ tests are independent looks."""
        if request.delta:
            return risk_at_delta(request, excess_risk, tested=True)
        problem, mechanism = request.problem, request.mechanism
        n_tests = level_count("tight", None, request.n_levels)
        target = gradient_target(excess_risk, problem.regularization)
        test = ThresholdTest.within(
            target,
            room=target,  # the best gradient is zero, so all of the target may go to noise
            typical=gradient_sensitivity(problem.loss, 1.0) / problem.n,
            failure_probability=request.failure_probability,
            n_tests=n_tests,
            name=self.name,
        )
        left = left_after(request, test.epsilon, "a larger excess_risk or max_epsilon")
        # a gradient stays long for longer than the risk stays high: go on until its noise is a quarter of the target
        last = max(mechanism.theory_epsilon(problem, excess_risk), mechanism.gradient_epsilon(problem, excess_risk))
        last = min(4 * last, left * (1 - 1e-12))
        first = min(max(1 / problem.n, test.epsilon / 64), last / 4)
        return GradualPlan(
            geometric_levels(first, last, n_tests),
            test,
            lambda generator: GradientLength(generator.risk, problem.loss, problem.n),
        )


def settle_goal(request: Request, goal: TestedGoal) -> GradualPlan:
    """Settle the search for a goal that is tested as it stands.

    Levels go from where one stops mattering beside the test to where the single shot has about the excess risk that
    the goal allows, by the utility theorem or by its gradient, a small part of it.
    """
    problem, mechanism = request.problem, request.mechanism
    n_tests = level_count("tight", request.levels, request.n_levels)
    test = ThresholdTest.within(
        goal.at_most,
        room=goal.margin * goal.at_most,
        typical=goal.typical(problem),
        failure_probability=request.failure_probability,
        n_tests=n_tests,
    )
    risk = goal.as_risk / _FINEST
    first = max(1 / problem.n, test.epsilon / 64)
    last = min(mechanism.theory_epsilon(problem, risk), mechanism.gradient_epsilon(problem, risk))
    levels = levels_within(request, test.epsilon, first, last, n_tests, "a larger target, margin or max_epsilon")
    return GradualPlan(
        levels,
        test,
        goal.measure,
        goal.hypothesis,
        {"calibration": "tight"},
        (f"{goal.name}: tested as it stands for epsilon = {up(test.epsilon)}; no certificate is about it",),
    )


class Certified(Method):
    """Stop by a proof computed from what is released anyway."""

    name = "certified"
    charged = GRADIENTS_CHARGED

    def settle(self, request: Request, excess_risk: float) -> Plan:
        """Leave it to the mechanism; with a δ, certificates are those of Gaussian moments."""
        if request.delta:
            return risk_at_delta(request, excess_risk, tested=False)
        return request.mechanism.certificate(request, excess_risk, automatic=False)


class Automatic(Method):
    """The cheapest applicable way to a proof, chosen without looking at the data."""

    name = "auto"
    charged = GRADIENTS_CHARGED

    def settle(self, request: Request, excess_risk: float) -> Plan:
        """Take the certificate where there is one, the test of the risk elsewhere."""
        if request.delta:
            return risk_at_delta(request, excess_risk, tested=None)
        if request.mechanism.can_certify(request.problem):
            return request.mechanism.certificate(request, excess_risk, automatic=True)
        return RiskTested().settle(request, excess_risk)
