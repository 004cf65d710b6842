"""The paper's methods by name, from rows to a release.

`cov_nr` and `output_nr` are thin: each settles a problem and calls `run`, which joins a generator, a plan and a rule
and is what the estimators call; its ``method`` also names doubling, theory inversion and a fixed ε.
"""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any, Literal, get_args

import numpy as np

from expost.data.rows import Rows
from expost.erm.losses import LogisticLoss, Loss, SquaredLoss
from expost.erm.sums import Sums, sums_of
from expost.exceptions import AccuracyNotReached, NotPrivateWarning, TargetUnreachable
from expost.noise.path import NoisePath
from expost.noise.source import WordSource, resolve_source
from expost.noise.spherical_path import SphericalPath
from expost.privacy.release import Release
from expost.search.above_threshold import AboveThreshold
from expost.search.certified import certified_ridge
from expost.search.certified_output import NO_RADIUS, certified_output
from expost.search.core import search
from expost.search.covariance import CHARGED, CovarianceGenerator, Solve, into_ball
from expost.search.doubling import DoublingPlan, doubling_method
from expost.search.goals import ErrorRate, Goal, RelativeExcessRisk, check_goal
from expost.search.null_model import require_affordable
from expost.search.output import OutputGenerator
from expost.search.plan import Noise, Perturbation, Problem, level_count, plan_test, positive, stationary_levels
from expost.search.promises import promise_of
from expost.search.query import ErrorQuery
from expost.search.relative import search_relative
from expost.search.stationarity import StationarityRule, gradient_target
from expost.search.tested_goal import search_tested_goal
from expost.search.threads import one_thread

Method = Literal["auto", "certified", "stationarity", "above_threshold", "doubling", "theory", "fixed"]
OnFailure = Literal["refuse", "release_optimum"]
RandomState = None | int | WordSource
Generator = CovarianceGenerator | OutputGenerator

GRADIENTS_CHARGED = (
    "gradient norms and projected moments: rounded to public grids, floating-point error bounded and charged",
)
GAP_CHARGED = ("gap of the null model: rounded to a public grid, floating-point error bounded and charged",)
COUNT_EXACT = ("misclassified rows, θ being on a public grid",)
SQUARES_CHARGED = ("mean squared error: rounded to a public grid, floating-point error bounded and charged",)
_NULL_AT_MOST = 0.2  # no certified search gives its first question a larger share of the failure probability
OPTIMUM_NOT_COVERED = "the non-private optimum was returned because nothing else qualified; it has no privacy"


def run(
    rows: Rows | Sums | Generator,
    problem: Problem,
    *,
    perturbation: Perturbation = "covariance",
    method: Method = "above_threshold",
    goal: Goal | None = None,
    calibration: str = "tight",
    levels: Sequence[float] | None = None,
    n_levels: int | None = None,
    max_epsilon: float | None = None,
    full_matrix: bool = False,
    solve: Solve = "ball",
    noise: Noise = "laplace",
    factor: float = 2.0,
    on_failure: OnFailure = "refuse",
    random_state: RandomState = None,
) -> Release:
    """Run one method on rows for a problem settled beforehand; see :func:`cov_nr` and its siblings.

    With a ``goal`` the problem's ``excess_risk`` is not looked at. A generator from :func:`make_generator` may stand in
    for the rows: many runs then share one minimisation.
    """
    one_of("method", method, get_args(Method))
    one_of("perturbation", perturbation, get_args(Perturbation))
    one_of("on_failure", on_failure, get_args(OnFailure))
    one_of("noise", noise, get_args(Noise))
    if noise == "spherical" and perturbation != "output":
        raise ValueError("spherical noise is for perturbation='output'; noise on the second moments is Laplace")
    if max_epsilon is not None:
        positive("max_epsilon", max_epsilon)
    if goal is not None:
        check_goal(goal, problem.loss, method, calibration=calibration, on_failure=on_failure)
    source = resolve_source(random_state)
    with one_thread():
        generator = (
            make_generator(rows, problem, perturbation, full_matrix, solve) if isinstance(rows, Rows | Sums) else rows
        )
    if isinstance(generator, CovarianceGenerator) != (perturbation == "covariance"):
        raise ValueError(f"the generator was made for another perturbation than {perturbation!r}")
    generator.problem.require_same_rows(problem)
    if method in ("fixed", "theory"):
        release = _single_shot(generator, problem, perturbation, method, noise, max_epsilon, source)
    else:
        try:
            # thousands of small products: on a shared machine BLAS threads cost far more than they bring
            with one_thread():
                if isinstance(goal, RelativeExcessRisk):
                    release = search_relative(
                        generator.risk,
                        problem,
                        goal,
                        check=partial(
                            _require_possible,
                            generator,
                            perturbation,
                            method,
                            noise,
                            calibration,
                            levels,
                            n_levels,
                            factor,
                        ),
                        search=lambda reduced, left: run(
                            generator,
                            reduced,
                            perturbation=perturbation,
                            method=method,
                            calibration=calibration,
                            levels=levels,
                            n_levels=n_levels,
                            max_epsilon=left,
                            noise=noise,
                            factor=factor,
                            random_state=source,
                        ),
                        max_epsilon=max_epsilon,
                        source=source,
                    )
                elif goal is not None:
                    release = search_tested_goal(
                        generator,
                        problem,
                        perturbation,
                        goal,
                        path=lambda chosen: _path(generator, chosen, noise, source),
                        noise=noise,
                        levels=levels,
                        n_levels=n_levels,
                        max_epsilon=max_epsilon,
                        source=source,
                    )
                elif method == "certified" or (method == "auto" and can_certify(problem, perturbation)):
                    release = _certified(generator, problem, method, noise, max_epsilon, source)
                elif method == "stationarity":
                    release = _stationary(generator, problem, perturbation, noise, n_levels, max_epsilon, source)
                elif method in ("above_threshold", "auto"):
                    release = _tested(
                        generator, problem, perturbation, noise, calibration, levels, n_levels, max_epsilon, source
                    )
                else:
                    release = _doubled(
                        generator, problem, perturbation, noise, calibration, factor, max_epsilon, source
                    )
        except AccuracyNotReached as refusal:
            details = _details(refusal.release, generator, problem, perturbation, noise, calibration, method, goal)
            if on_failure == "refuse":
                raise AccuracyNotReached(refusal.release.with_details(**details)) from None
            return _optimum(generator, refusal.release, details)
        if on_failure == "release_optimum":  # one of the outcomes had no bound, so the search has none
            release = release.with_details(epsilon_worst_case=math.inf)
    return release.with_details(**_details(release, generator, problem, perturbation, noise, calibration, method, goal))


def make_generator(
    rows: Rows | Sums, problem: Problem, perturbation: Perturbation, full_matrix: bool = False, solve: Solve = "ball"
) -> Generator:
    """Return the generator of hypotheses for a perturbation."""
    if perturbation == "covariance":
        if problem.loss.name != "squared":
            raise ValueError(
                f"covariance perturbation needs the squared loss, not {problem.loss.name!r}; use perturbation='output'"
            )
        sums = rows if isinstance(rows, Sums) else sums_of(rows)
        return CovarianceGenerator(sums, problem, full_matrix=full_matrix, solve=solve)
    if isinstance(rows, Sums):
        raise ValueError("output perturbation needs the rows themselves, not their sums")
    return OutputGenerator(rows, problem)


def can_certify(problem: Problem, perturbation: Perturbation) -> bool:
    """Whether a certificate applies: the one for output perturbation is about the unconstrained optimum only."""
    return perturbation == "covariance" or not problem.radius_stated


def _require_possible(
    generator: Generator,
    perturbation: Perturbation,
    method: Method,
    noise: Noise,
    calibration: str,
    levels: Sequence[float] | None,
    n_levels: int | None,
    factor: float,
    problem: Problem,
    max_epsilon: float | None,
) -> None:
    """Settle what the method would settle before it spends anything, so that it says now what it would say then."""
    if method == "certified" or (method == "auto" and can_certify(problem, perturbation)):
        if not can_certify(problem, perturbation):
            raise ValueError(NO_RADIUS)
        budget = math.inf if max_epsilon is None else max_epsilon
        require_affordable(generator.risk, problem, _NULL_AT_MOST * problem.failure_probability, budget)
    elif method == "stationarity":
        rule = _stationarity_rule(generator, problem, n_levels, 0)  # for its cost; the noise is never used
        stationary_levels(problem, perturbation, rule.epsilon_stop, rule.n_tests, max_epsilon, noise)
    elif method == "doubling":
        _doubling_plan(generator.query(), problem, perturbation, noise, calibration, factor, max_epsilon)
    else:
        plan_test(
            problem,
            perturbation,
            risk_error=generator.query().error_bound,
            noise=noise,
            calibration=calibration,
            levels=levels,
            n_levels=n_levels,
            max_epsilon=max_epsilon,
        )


def _certified(
    generator: Generator, problem: Problem, method: Method, noise: Noise, max_epsilon: float | None, source: WordSource
) -> Release:
    if isinstance(generator, CovarianceGenerator):
        few = None if method == "auto" else False
        release = certified_ridge(generator, problem, few=few, max_epsilon=max_epsilon, source=source)
    else:
        release = certified_output(generator, problem, noise=noise, max_epsilon=max_epsilon, source=source)
    return release


def _stationary(
    generator: Generator,
    problem: Problem,
    perturbation: Perturbation,
    noise: Noise,
    n_levels: int | None,
    max_epsilon: float | None,
    source: WordSource,
) -> Release:
    """Gradual release stopped by the gradient test; levels as for the risk test, the budget kept likewise."""
    rule = _stationarity_rule(generator, problem, n_levels, source)
    levels = stationary_levels(problem, perturbation, rule.epsilon_stop, rule.n_tests, max_epsilon, noise)
    return search(_path(generator, levels, noise, source), generator.hypothesis, rule)


def _stationarity_rule(
    generator: Generator, problem: Problem, n_levels: int | None, random_state: int | WordSource
) -> StationarityRule:
    return StationarityRule(
        generator.risk,
        problem.loss,
        problem.n,
        target=gradient_target(problem.excess_risk, problem.regularization),
        failure_probability=problem.failure_probability,
        n_tests=level_count("tight", None, n_levels),
        random_state=random_state,
    )


def _tested(
    generator: Generator,
    problem: Problem,
    perturbation: Perturbation,
    noise: Noise,
    calibration: str,
    levels: Sequence[float] | None,
    n_levels: int | None,
    max_epsilon: float | None,
    source: WordSource,
) -> Release:
    query = generator.query()
    plan = plan_test(
        problem,
        perturbation,
        risk_error=query.error_bound,
        noise=noise,
        calibration=calibration,
        levels=levels,
        n_levels=n_levels,
        max_epsilon=max_epsilon,
    )
    rule = AboveThreshold(query, plan.calibration, len(plan.levels), random_state=source)
    return search(_path(generator, plan.levels, noise, source), generator.hypothesis, rule)


def _doubled(
    generator: Generator,
    problem: Problem,
    perturbation: Perturbation,
    noise: Noise,
    calibration: str,
    factor: float,
    max_epsilon: float | None,
    source: WordSource,
) -> Release:
    query = generator.query()
    release = doubling_method(
        lambda epsilon: _draw(generator, epsilon, noise, source),
        query,
        _doubling_plan(query, problem, perturbation, noise, calibration, factor, max_epsilon),
        project=lambda theta: into_ball(theta, problem.radius),
        random_state=source,
    )
    return release


def _doubling_plan(
    query: ErrorQuery,
    problem: Problem,
    perturbation: Perturbation,
    noise: Noise,
    calibration: str,
    factor: float,
    max_epsilon: float | None,
) -> DoublingPlan:
    """Settle rounds and test, or say that not even one round fits the budget."""
    first, last = 1 / problem.n, 4 * problem.theory_epsilon(perturbation, noise)

    def settle(last: float, max_epsilon: float | None) -> DoublingPlan:
        return DoublingPlan.of(
            target=problem.excess_risk,
            failure_probability=problem.failure_probability,
            sensitivity=query.effective_sensitivity,
            first=first,
            last=last,
            factor=factor,
            calibration=calibration,
            max_epsilon=max_epsilon,
        )

    if max_epsilon is not None:
        least = settle(first, None).epsilon_after(1)
        if least > max_epsilon:  # the first level and the test both shrink as 1/n
            raise TargetUnreachable(
                f"one round of doubling would cost epsilon = {least:.4g} at n = {problem.n}, more than max_epsilon = "
                f"{max_epsilon:.4g}, whatever the data. Pass a larger excess_risk or max_epsilon, a smaller radius, "
                f"or about {math.ceil(problem.n * least / max_epsilon * 1.1):,} rows. Nothing was spent."
            )
    return settle(last, max_epsilon)


def _path(
    generator: Generator, levels: tuple[float, ...], noise: Noise, source: WordSource
) -> NoisePath | SphericalPath:
    if isinstance(generator, OutputGenerator):
        return generator.path(levels, source, noise)
    return generator.path(levels, source)


def _draw(generator: Generator, epsilon: float, noise: Noise, source: WordSource) -> Any:
    """Run the single-shot mechanism at one ε: a path with one level."""
    (step,) = _path(generator, (epsilon,), noise, source)
    return np.asarray(generator.hypothesis(step.values))


def _single_shot(
    generator: Generator,
    problem: Problem,
    perturbation: Perturbation,
    method: Method,
    noise: Noise,
    max_epsilon: float | None,
    source: WordSource,
) -> Release:
    if method == "fixed":
        if max_epsilon is None:
            raise ValueError("method='fixed' spends exactly max_epsilon; pass it")
        epsilon = max_epsilon
    else:
        epsilon = problem.theory_epsilon(perturbation, noise)
        if max_epsilon is not None and epsilon > max_epsilon:
            raise unreachable_by_theory(problem, perturbation, max_epsilon, noise)
    if method == "theory" and isinstance(generator, OutputGenerator):
        # the theorem is about θ* + b; rescaling moves it closer to θ*, which need not lower its risk
        (step,) = generator.path((epsilon,), source, noise)
        hypothesis = generator.unrescaled(step.values)
    else:
        hypothesis = _draw(generator, epsilon, noise, source)
    return Release(
        status="released",
        method=method,
        epsilon_generation=float(epsilon),
        epsilon_worst_case=float(epsilon),
        hypothesis=hypothesis,
        level=0,
        n_levels=1,
        secure=source.secure,
    )


def unreachable_by_theory(
    problem: Problem, perturbation: Perturbation, max_epsilon: float, noise: Noise = "laplace"
) -> Exception:
    """Return the error for a theory inversion beyond the budget."""
    epsilon = problem.theory_epsilon(perturbation, noise)
    # ε shrinks as 1/n, or as 1/√n with the paper's sensitivity of the ridge minimiser: measure which
    shrink = epsilon / dataclasses.replace(problem, n=4 * problem.n).theory_epsilon(perturbation, noise)
    rows = math.ceil(problem.n * (epsilon / max_epsilon) ** (math.log(4) / math.log(shrink)) * (1 + 1e-9))
    return TargetUnreachable(
        f"the utility theorem needs epsilon = {epsilon:.4g} at n = {problem.n}, more than max_epsilon = "
        f"{max_epsilon:.4g}; pass a larger excess_risk or max_epsilon, about {rows:,} rows, or another method. "
        f"Nothing was spent."
    )


def _optimum(generator: Generator, refusal: Release, details: dict[str, Any]) -> Release:
    warnings.warn(
        "no private hypothesis met the target and on_failure='release_optimum': the non-private optimum is returned, "
        "at an infinite privacy loss",
        NotPrivateWarning,
        stacklevel=4,
    )
    details["not_covered"] = (OPTIMUM_NOT_COVERED,)
    details["promise"] = dataclasses.replace(details["promise"], failure_probability=0.0)
    return dataclasses.replace(
        refusal,
        status="released",
        hypothesis=generator.risk.optimum,
        epsilon_generation=math.inf,
        epsilon_worst_case=math.inf,
        **details,
    )


def _details(
    release: Release,
    generator: Generator,
    problem: Problem,
    perturbation: Perturbation,
    noise: Noise,
    calibration: str,
    method: Method,
    goal: Goal | None,
) -> dict[str, Any]:
    tested = method in ("above_threshold", "doubling") or release.method == "above_threshold"
    # a certified search may end before any noise goes on the minimiser, and says itself what it used
    settled = noise == "laplace" or method in ("auto", "certified")
    kind = release.noise if settled else "over the reals"
    exact = tuple(part for part in generator.exact if kind == "exact" or part != "generation noise")
    charged = (*generator.charged, *(GRADIENTS_CHARGED if method in ("auto", "certified", "stationarity") else ()))
    if isinstance(goal, RelativeExcessRisk):
        charged = (*charged, *GAP_CHARGED)
    elif goal is not None:  # no risk and no gradient is looked at
        count = isinstance(goal, ErrorRate)
        exact = (*exact, *COUNT_EXACT) if count else exact
        charged = (*(part for part in generator.charged if part not in CHARGED), *(() if count else SQUARES_CHARGED))
    return {
        "method": method,
        "perturbation": perturbation,
        "calibration": calibration if tested else release.calibration,
        "promise": promise_of(problem, method, goal, release.promise),
        "noise": kind,
        "exact": exact,
        "charged": charged,
        "claims": (),  # doubling records its black box as a claim; here it is our own, and proved
        "parameters": {
            **release.parameters,
            "loss": problem.loss.name,
            "n": problem.n,
            "p": problem.p,
            "paper_constants": problem.paper_constants,
        },
    }


def one_of(name: str, value: object, allowed: Sequence[object]) -> None:
    """Raise a helpful error unless ``value`` is one of ``allowed``."""
    if value not in allowed:
        raise ValueError(f"{name} must be one of {list(allowed)}, got {value!r}")


def cov_nr(
    rows: Rows | Sums,
    *,
    excess_risk: float,
    regularization: float,
    failure_probability: float = 0.1,
    calibration: str = "theorem",
    radius: float | None = None,
    **options: Any,
) -> Release:
    """CovNR (theory A4): ridge regression by gradual release of noisy second moments.

    Parameters
    ----------
    rows
        Private rows, or their exact sums.
    excess_risk, regularization, failure_probability
        α, λ and γ.
    calibration
        ``"theorem"`` (the paper's statement), ``"published"`` (its figures) or ``"tight"``.
    radius
        Radius of the ball; by default the paper's 1/√λ, or 1/(2√λ) with ``"tight"``.
    **options
        ``levels``, ``n_levels``, ``max_epsilon``, ``full_matrix``, ``on_failure``, ``random_state``; see :func:`run`.

    Examples
    --------
    >>> import numpy as np
    >>> from expost import Preparation, cov_nr
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-0.5, 0.5, size=(20_000, 2))
    >>> recipe = Preparation(None, 1.0, target=(-1.0, 1.0), intercept_weight=0, n_columns=2)
    >>> rows = recipe.prepare_regression(X, X @ [1.0, -0.8])
    >>> release = cov_nr(rows, excess_risk=0.02, regularization=0.1, random_state=0)
    >>> release.status, round(release.epsilon_test, 3)
    ('released', 6.863)
    """
    problem = Problem.of(
        SquaredLoss(),
        n=rows.n,
        p=rows.p,
        regularization=regularization,
        excess_risk=excess_risk,
        failure_probability=failure_probability,
        calibration=calibration,
        radius=radius,
    )
    return run(rows, problem, perturbation="covariance", calibration=calibration, **options)


def output_nr(
    rows: Rows,
    *,
    excess_risk: float,
    regularization: float,
    loss: Loss | None = None,
    failure_probability: float = 0.1,
    calibration: str = "theorem",
    radius: float | None = None,
    **options: Any,
) -> Release:
    """OutputNR (theory A5): gradual release of a noisy minimiser, for any smooth convex loss.

    Takes what :func:`cov_nr` takes, and ``loss``: logistic by default.

    Examples
    --------
    >>> import numpy as np
    >>> from expost import Preparation, output_nr
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-0.5, 0.5, size=(20_000, 2))
    >>> recipe = Preparation(None, 1.0, target=None, intercept_weight=0, n_columns=2)
    >>> rows = recipe.prepare_classification(X, X[:, 0] > 0, (False, True))
    >>> output_nr(rows, excess_risk=0.05, regularization=0.05, calibration="tight", random_state=0).status
    'released'
    """
    problem = Problem.of(
        loss if loss is not None else LogisticLoss(),
        n=rows.n,
        p=rows.p,
        regularization=regularization,
        excess_risk=excess_risk,
        failure_probability=failure_probability,
        calibration=calibration,
        radius=radius,
    )
    return run(rows, problem, perturbation="output", calibration=calibration, **options)
