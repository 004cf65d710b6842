"""Gradual release, tested level by level until a test passes: the paper's search, with any of several tests.

`above_threshold` asks about the excess risk, `stationarity` about the gradient, a goal about itself. A new stopping
rule is one file in ``stopping/`` and a method of a few lines here.
"""

from __future__ import annotations

from expost.erm.sensitivity.gradient import gradient_sensitivity
from expost.goals.goal import TestedGoal
from expost.rounding import up
from expost.search.gradual_release import GradualPlan
from expost.search.levels import geometric_levels, left_after, level_count, levels_within
from expost.search.moment_risk import risk_at_delta
from expost.search.request import Method, Plan, Request
from expost.stopping.above_threshold import ThresholdTest
from expost.stopping.calibration import calibrate
from expost.stopping.gradient import GradientLength, gradient_target
from expost.stopping.measure import charged_grid

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
        left = left_after(problem.n, test.epsilon, request.max_epsilon, remedy)
        first = 1 / problem.n if problem.paper_constants else max(1 / problem.n, test.epsilon / 64)
        last = 4 * request.mechanism.theory_epsilon(problem, excess_risk)
        levels = levels_within(left, request.levels, first, last, n_tests, test.epsilon, request.max_epsilon)
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
        left = left_after(problem.n, test.epsilon, request.max_epsilon, "a larger excess_risk or max_epsilon")
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
    return GradualPlan(
        levels,
        test,
        goal.measure,
        goal.hypothesis,
        {"calibration": "tight"},
        (f"{goal.name}: tested as it stands for epsilon = {up(test.epsilon)}; no certificate is about it",),
    )
