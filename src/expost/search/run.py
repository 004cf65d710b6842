"""From rows to a release: `run` joins settings, a generator, a method and a description.

`cov_nr` and `output_nr`, the paper's algorithms by name, are thin: each settles a problem and calls `run`, which is
what the estimators call; its ``method`` also names doubling, theory inversion and a fixed ε.
"""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections.abc import Sequence
from typing import Any

from expost.data.rows import Rows
from expost.erm.losses import LogisticLoss, Loss, SquaredLoss
from expost.erm.sums import Sums
from expost.exceptions import AccuracyNotReached, NotPrivateWarning
from expost.noise.source import WordSource, resolve_source
from expost.privacy.release import Release
from expost.search.covariance import CovarianceGenerator, Solve
from expost.search.description import details_of
from expost.search.generators import Generator, gradual, make_generator
from expost.search.goals import Goal, RelativeExcessRisk
from expost.search.methods import require_possible, search_by
from expost.search.plan import Noise, Perturbation, Problem
from expost.search.relative import search_relative
from expost.search.settings import Method, OnFailure, Settings
from expost.search.tested_goal import search_tested_goal
from expost.search.threads import one_thread

RandomState = None | int | WordSource

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

    With a ``goal`` the problem's ``excess_risk`` is not looked at. A generator from
    :func:`~expost.search.generators.make_generator` may stand in for the rows: many runs then share one minimisation.
    """
    settings = Settings(
        method, perturbation, noise, calibration, levels, n_levels, max_epsilon, factor, goal, on_failure
    )
    settings.check(problem)
    source = resolve_source(random_state)
    # thousands of small products: on a shared machine BLAS threads cost far more than they bring
    with one_thread():
        generator = (
            make_generator(rows, problem, perturbation, full_matrix, solve) if isinstance(rows, Rows | Sums) else rows
        )
        if isinstance(generator, CovarianceGenerator) != (perturbation == "covariance"):
            raise ValueError(f"the generator was made for another perturbation than {perturbation!r}")
        generator.problem.require_same_rows(problem)
        try:
            release = _described(generator, problem, settings, source)
        except AccuracyNotReached as refusal:
            if on_failure == "refuse":
                raise
            return _optimum(generator, refusal.release)
    if on_failure == "release_optimum" and method not in ("fixed", "theory"):
        release = release.with_details(epsilon_worst_case=math.inf)  # an outcome had no bound, so the search has none
    return release


def _described(generator: Generator, problem: Problem, settings: Settings, source: WordSource) -> Release:
    """Search, and let the release or the refusal say what it is."""
    try:
        release = _search(generator, problem, settings, source)
    except AccuracyNotReached as refusal:
        release = refusal.release
        raise AccuracyNotReached(release.with_details(**details_of(release, generator, problem, settings))) from None
    return release.with_details(**details_of(release, generator, problem, settings))


def _search(generator: Generator, problem: Problem, settings: Settings, source: WordSource) -> Release:
    """Search for the goal, or for the excess risk that stands in for it."""
    goal = settings.goal
    if goal is None:
        return search_by(generator, problem, settings, source)
    if isinstance(goal, RelativeExcessRisk):
        return search_relative(
            generator.risk,
            problem,
            goal,
            check=lambda reduced, left: require_possible(generator, reduced, settings.within(left)),
            search=lambda reduced, left: _described(generator, reduced, settings.within(left), source),
            max_epsilon=settings.max_epsilon,
            source=source,
        )
    return search_tested_goal(
        generator,
        problem,
        settings.perturbation,
        goal,
        path=lambda chosen: gradual(generator, chosen, settings.noise, source),
        noise=settings.noise,
        levels=settings.levels,
        n_levels=settings.n_levels,
        max_epsilon=settings.max_epsilon,
        source=source,
    )


def _optimum(generator: Generator, refusal: Release) -> Release:
    warnings.warn(
        "no private hypothesis met the target and on_failure='release_optimum': the non-private optimum is returned, "
        "at an infinite privacy loss",
        NotPrivateWarning,
        stacklevel=4,
    )
    return dataclasses.replace(
        refusal,
        status="released",
        hypothesis=generator.risk.optimum,
        epsilon_generation=math.inf,
        epsilon_worst_case=math.inf,
        not_covered=(OPTIMUM_NOT_COVERED,),
        promise=dataclasses.replace(refusal.promise, failure_probability=0.0),
    )


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
