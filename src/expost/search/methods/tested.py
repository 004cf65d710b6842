"""Gradual release, tested level by level until a test passes: the paper's search, with any of several tests.

`above_threshold` asks about the excess risk, `stationarity` about the gradient, a goal about itself. A new stopping
rule is one file in ``stopping/`` and a method of a few lines here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from expost.erm.sensitivity.gradient import gradient_sensitivity
from expost.goals.goal import TestedGoal
from expost.mechanisms.mechanism import Generator
from expost.noise.levels import geometric_levels
from expost.noise.source import WordSource
from expost.privacy.account import Account
from expost.privacy.composition import add_losses
from expost.privacy.release import Release
from expost.search.gradual_release import first_accepted
from expost.search.levels import left_after, level_count, levels_within
from expost.search.request import Method, Request, paper_constants
from expost.stopping.above_threshold import AboveThreshold
from expost.stopping.calibration import calibrate
from expost.stopping.gradient import GradientLength, gradient_target
from expost.stopping.measure import Grid
from expost.stopping.rule import StoppingRule

GRADIENTS_CHARGED = (
    "gradient norms and projected moments: rounded to public grids, floating-point error bounded and charged",
)
# levels end where a single shot typically has an excess risk of this part of a goal: a finer one would change little
_FINEST = 100


@dataclass(frozen=True)
class TestedPlan:
    """Levels and the rule that stops at one of them; public.

    Attributes
    ----------
    levels, epsilon_test
        The privacy levels, and what the test costs at most.
    rule
        Draws the rule's noise for a generator.
    hypothesis
        How values become hypotheses, for a generator.
    details, reasons
        What the release says.
    """

    __test__ = False  # not a test class, whatever pytest thinks of its name

    levels: tuple[float, ...]
    epsilon_test: float
    rule: Callable[[Generator, WordSource], StoppingRule]
    hypothesis: Callable[[Generator], Callable[[Any], Any]]
    details: dict[str, Any]
    reasons: tuple[str, ...] = ()

    @property
    def worst_case(self) -> float:
        """No outcome costs more."""
        return add_losses(self.levels[-1], self.epsilon_test)

    def search(self, generator: Generator, account: Account, source: WordSource) -> Release:
        """Draw the test's noise, then the path, and stop at the first level that passes."""
        rule = self.rule(generator, source)
        account.reasons.extend(self.reasons)
        path = generator.path(self.levels, source)
        return first_accepted(path, rule, self.hypothesis(generator), account, **self.details)


def _as_generated(generator: Generator) -> Callable[[Any], Any]:
    return generator.hypothesis


class RiskTested(Method):
    """The paper's search: AboveThreshold on the excess risk."""

    name = "above_threshold"

    def settle(self, request: Request, excess_risk: float) -> TestedPlan:
        """Settle levels and test: geometric, from 1/n (``tight``: from where a level stops mattering beside the test)
        to four times the theory inversion (theory A8).
        """
        problem, name = request.problem, request.calibration
        n_tests = level_count(name, request.levels, request.n_levels)
        charged = Grid.of(problem.risk_sensitivity, error_bound=request.errors.excess(problem.radius))
        test = calibrate(
            name,
            target=excess_risk,
            failure_probability=request.failure_probability,
            n_tests=n_tests,
            sensitivity=charged.effective_sensitivity,
        )
        remedy = "a larger excess_risk or max_epsilon, a smaller radius"
        left = left_after(problem.n, test.epsilon, request.max_epsilon, remedy)
        first = 1 / problem.n if paper_constants(name) else max(1 / problem.n, test.epsilon / 64)
        last = 4 * request.mechanism.theory_epsilon(problem, excess_risk)
        levels = levels_within(left, request.levels, first, last, n_tests, test.epsilon, request.max_epsilon)
        return TestedPlan(
            levels,
            test.epsilon,
            lambda generator, source: AboveThreshold(generator.excess_risk(), test, len(levels), random_state=source),
            _as_generated,
            {"calibration": name},
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

    def settle(self, request: Request, excess_risk: float) -> TestedPlan:
        """Settle levels and test, the budget kept as for the risk."""
        problem, mechanism = request.problem, request.mechanism
        n_tests = level_count("tight", None, request.n_levels)
        target = gradient_target(excess_risk, problem.regularization)
        typical = gradient_sensitivity(problem.loss, 1.0) / problem.n
        gamma = request.failure_probability
        # the best gradient is zero, so all of the target may go to noise
        test = calibrate("tight", target=target, failure_probability=gamma, n_tests=n_tests, sensitivity=typical)
        left = left_after(problem.n, test.epsilon, request.max_epsilon, "a larger excess_risk or max_epsilon")
        # a gradient stays long for longer than the risk stays high: go on until its noise is a quarter of the target
        last = max(mechanism.theory_epsilon(problem, excess_risk), mechanism.gradient_epsilon(problem, excess_risk))
        last = min(4 * last, left * (1 - 1e-12))
        first = min(max(1 / problem.n, test.epsilon / 64), last / 4)
        return TestedPlan(
            geometric_levels(first, last, n_tests),
            test.epsilon,
            lambda generator, source: AboveThreshold(
                GradientLength(generator.risk, problem.loss, problem.n),
                test,
                n_tests,
                target=target,
                room=target,
                name=self.name,
                random_state=source,
            ),
            _as_generated,
            {},
        )


def settle_goal(request: Request, goal: TestedGoal) -> TestedPlan:
    """Settle the search for a goal that is tested as it stands.

    Levels go from where one stops mattering beside the test to where the single shot has about the excess risk that
    the goal allows, by the utility theorem or by its gradient, a small part of it.
    """
    problem, mechanism = request.problem, request.mechanism
    n_tests = level_count("tight", request.levels, request.n_levels)
    room, typical = goal.margin * goal.at_most, goal.typical(problem)
    gamma = request.failure_probability
    test = calibrate("tight", target=room, failure_probability=gamma, n_tests=n_tests, sensitivity=typical)
    left = left_after(problem.n, test.epsilon, request.max_epsilon, "a larger target, margin or max_epsilon")
    risk = goal.as_risk / _FINEST
    levels = levels_within(
        left,
        request.levels,
        max(1 / problem.n, test.epsilon / 64),
        min(mechanism.theory_epsilon(problem, risk), mechanism.gradient_epsilon(problem, risk)),
        n_tests,
        test.epsilon,
        request.max_epsilon,
    )
    return TestedPlan(
        levels,
        test.epsilon,
        lambda generator, source: AboveThreshold(
            goal.measure(generator), test, n_tests, target=goal.at_most, room=room, random_state=source
        ),
        goal.hypothesis,
        {"calibration": "tight"},
        (f"{goal.name}: tested as it stands for epsilon = {test.epsilon:.3g}; no certificate is about it",),
    )
