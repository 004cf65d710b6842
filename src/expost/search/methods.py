"""The methods by name: each takes a generator, a problem and settings, and returns a release or raises a refusal.

What a method settles before it spends anything is in :func:`require_possible` too, for a search that spends something
before it gets there.
"""

from __future__ import annotations

import dataclasses
import math

from expost.exceptions import TargetUnreachable
from expost.noise.source import WordSource
from expost.privacy.release import Release
from expost.search.above_threshold import AboveThreshold
from expost.search.certified import certified_ridge
from expost.search.certified_output import NO_RADIUS, certified_output
from expost.search.core import search
from expost.search.covariance import CovarianceGenerator, into_ball
from expost.search.doubling import DoublingPlan, doubling_method
from expost.search.generators import Generator, gradual, single
from expost.search.null_model import require_affordable
from expost.search.output import OutputGenerator
from expost.search.plan import Problem, TestPlan, level_count, plan_test, stationary_levels
from expost.search.query import ErrorQuery
from expost.search.settings import Settings
from expost.search.stationarity import StationarityRule, gradient_target

_NULL_AT_MOST = 0.2  # no certified search gives its first question a larger share of the failure probability


def search_by(generator: Generator, problem: Problem, settings: Settings, source: WordSource) -> Release:
    """Run the method that the settings name, for an excess risk."""
    if settings.method in ("fixed", "theory"):
        return _single_shot(generator, problem, settings, source)
    if settings.certifies(problem):
        return _certified(generator, problem, settings, source)
    if settings.method == "stationarity":
        return _stationary(generator, problem, settings, source)
    if settings.method == "doubling":
        return _doubled(generator, problem, settings, source)
    return _tested(generator, problem, settings, source)


def require_possible(generator: Generator, problem: Problem, settings: Settings) -> None:
    """Settle what the method would settle before it spends anything, so that it says now what it would say then."""
    if settings.certifies(problem):
        if not settings.can_certify(problem):
            raise ValueError(NO_RADIUS)
        budget = math.inf if settings.max_epsilon is None else settings.max_epsilon
        require_affordable(generator.risk, problem, _NULL_AT_MOST * problem.failure_probability, budget)
    elif settings.method == "stationarity":
        _stationary_levels(_stationarity_rule(generator, problem, settings, 0), problem, settings)  # noise unused
    elif settings.method == "doubling":
        _doubling_plan(generator.query(), problem, settings)
    else:
        _test_plan(generator.query(), problem, settings)


def _certified(generator: Generator, problem: Problem, settings: Settings, source: WordSource) -> Release:
    budget = settings.max_epsilon
    if isinstance(generator, CovarianceGenerator):
        few = None if settings.method == "auto" else False
        return certified_ridge(generator, problem, few=few, max_epsilon=budget, source=source)
    return certified_output(generator, problem, noise=settings.noise, max_epsilon=budget, source=source)


def _stationary(generator: Generator, problem: Problem, settings: Settings, source: WordSource) -> Release:
    """Gradual release stopped by the gradient test; levels as for the risk test, the budget kept likewise."""
    rule = _stationarity_rule(generator, problem, settings, source)
    levels = _stationary_levels(rule, problem, settings)
    return search(gradual(generator, levels, settings.noise, source), generator.hypothesis, rule)


def _stationarity_rule(
    generator: Generator, problem: Problem, settings: Settings, random_state: int | WordSource
) -> StationarityRule:
    return StationarityRule(
        generator.risk,
        problem.loss,
        problem.n,
        target=gradient_target(problem.excess_risk, problem.regularization),
        failure_probability=problem.failure_probability,
        n_tests=level_count("tight", None, settings.n_levels),
        random_state=random_state,
    )


def _stationary_levels(rule: StationarityRule, problem: Problem, settings: Settings) -> tuple[float, ...]:
    return stationary_levels(
        problem, settings.perturbation, rule.epsilon_stop, rule.n_tests, settings.max_epsilon, settings.noise
    )


def _tested(generator: Generator, problem: Problem, settings: Settings, source: WordSource) -> Release:
    query = generator.query()
    plan = _test_plan(query, problem, settings)
    rule = AboveThreshold(query, plan.calibration, len(plan.levels), random_state=source)
    return search(gradual(generator, plan.levels, settings.noise, source), generator.hypothesis, rule)


def _test_plan(query: ErrorQuery, problem: Problem, settings: Settings) -> TestPlan:
    return plan_test(
        problem,
        settings.perturbation,
        risk_error=query.error_bound,
        noise=settings.noise,
        calibration=settings.calibration,
        levels=settings.levels,
        n_levels=settings.n_levels,
        max_epsilon=settings.max_epsilon,
    )


def _doubled(generator: Generator, problem: Problem, settings: Settings, source: WordSource) -> Release:
    query = generator.query()
    return doubling_method(
        lambda epsilon: single(generator, epsilon, settings.noise, source),
        query,
        _doubling_plan(query, problem, settings),
        project=lambda theta: into_ball(theta, problem.radius),
        random_state=source,
    )


def _doubling_plan(query: ErrorQuery, problem: Problem, settings: Settings) -> DoublingPlan:
    """Settle rounds and test, or say that not even one round fits the budget."""
    budget = settings.max_epsilon
    first, last = 1 / problem.n, 4 * problem.theory_epsilon(settings.perturbation, settings.noise)

    def settle(last: float, max_epsilon: float | None) -> DoublingPlan:
        return DoublingPlan.of(
            target=problem.excess_risk,
            failure_probability=problem.failure_probability,
            sensitivity=query.effective_sensitivity,
            first=first,
            last=last,
            factor=settings.factor,
            calibration=settings.calibration,
            max_epsilon=max_epsilon,
        )

    if budget is not None:
        least = settle(first, None).epsilon_after(1)
        if least > budget:  # the first level and the test both shrink as 1/n
            raise TargetUnreachable(
                f"one round of doubling would cost epsilon = {least:.4g} at n = {problem.n}, more than max_epsilon = "
                f"{budget:.4g}, whatever the data. Pass a larger excess_risk or max_epsilon, a smaller radius, "
                f"or about {math.ceil(problem.n * least / budget * 1.1):,} rows. Nothing was spent."
            )
    return settle(last, budget)


def _single_shot(generator: Generator, problem: Problem, settings: Settings, source: WordSource) -> Release:
    budget, noise = settings.max_epsilon, settings.noise
    if settings.method == "fixed":
        if budget is None:
            raise ValueError("method='fixed' spends exactly max_epsilon; pass it")
        epsilon = budget
    else:
        epsilon = problem.theory_epsilon(settings.perturbation, noise)
        if budget is not None and epsilon > budget:
            raise _unreachable_by_theory(problem, settings, budget)
    if settings.method == "theory" and isinstance(generator, OutputGenerator):
        # the theorem is about θ* + b; rescaling moves it closer to θ*, which need not lower its risk
        (step,) = generator.path((epsilon,), source, noise)
        hypothesis = generator.unrescaled(step.values)
    else:
        hypothesis = single(generator, epsilon, noise, source)
    return Release(
        status="released",
        method=settings.method,
        epsilon_generation=float(epsilon),
        epsilon_worst_case=float(epsilon),
        hypothesis=hypothesis,
        level=0,
        n_levels=1,
        secure=source.secure,
    )


def _unreachable_by_theory(problem: Problem, settings: Settings, budget: float) -> Exception:
    """Return the error for a theory inversion beyond the budget."""
    perturbation, noise = settings.perturbation, settings.noise
    epsilon = problem.theory_epsilon(perturbation, noise)
    # ε shrinks as 1/n, or as 1/√n with the paper's sensitivity of the ridge minimiser: measure which
    shrink = epsilon / dataclasses.replace(problem, n=4 * problem.n).theory_epsilon(perturbation, noise)
    rows = math.ceil(problem.n * (epsilon / budget) ** (math.log(4) / math.log(shrink)) * (1 + 1e-9))
    return TargetUnreachable(
        f"the utility theorem needs epsilon = {epsilon:.4g} at n = {problem.n}, more than max_epsilon = "
        f"{budget:.4g}; pass a larger excess_risk or max_epsilon, about {rows:,} rows, or another method. "
        f"Nothing was spent."
    )
