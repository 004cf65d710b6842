"""From a request to a release: settled, carried out, described. The loop itself is in `expost.search.levels`.

That decides, too, when to give up (`StagedSearch`). The gradual release of one λ has its own: `expost.search.gradual`.

`run_search` does for prepared rows what the estimators do for tables and arrays. `cov_nr` and `output_nr`, the paper's
algorithms by name, are thin: each settles a problem and calls it. `compare_with_optimum` says how good a release truly
is, which only the curator may look at: no guarantee covers it. Which mechanism a search takes is
`expost.search.request`'s affair.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from expost import defaults, validation
from expost.account.account import Spending, released, unspent
from expost.account.ledger import Ledger
from expost.exceptions import NotPrivateWarning, warn
from expost.goals.excess_risk import ExcessRisk
from expost.goals.goal import Goal, excess_risk_of
from expost.mechanisms import Generator, Mechanism, mechanism_of
from expost.noise.source import WordSource, resolve_source
from expost.numeric import FloatArray, one_thread
from expost.passes.engine import one_search
from expost.passes.sums import Sums
from expost.release.release import Release
from expost.search import METHODS
from expost.search.request import OnFailure, Plan, Request, risk_request
from expost.solve import LogisticLoss, Loss, Problem, SquaredLoss
from expost.table.files import table_claims
from expost.table.rows import Rows, RowSource
from expost.table.shape import ball, l2_ball

OPTIMUM_NOT_COVERED = "the non-private optimum was returned because nothing else qualified; it has no privacy"


@unspent()
def run_search(
    rows: Rows | RowSource | Sums | Generator,
    problem: Problem,
    goal: Goal | None = None,
    *,
    method: str = "auto",
    perturbation: str | None = None,
    noise: str = "laplace",
    full_matrix: bool = False,
    failure_probability: float = defaults.FAILURE_PROBABILITY,
    calibration: str = "tight",
    levels: Sequence[float] | None = None,
    n_levels: int | None = None,
    max_epsilon: float | None = None,
    factor: float = 2.0,
    on_failure: OnFailure = "refuse",
    delta: float = 0.0,
    random_state: int | WordSource | None = None,
    ledger: Ledger | None = None,
) -> Release:
    """Search for the most private model that meets a goal.

    Parameters
    ----------
    rows
        Private rows, or their exact sums; or a generator made by a mechanism's ``on``, so that many runs share one
        minimisation. ``perturbation``, ``noise`` and ``full_matrix`` are then its own.
    problem, goal
        What is minimised, and how good the model must be, in scaled units; no goal only for ``method="fixed"``.
    max_epsilon : float, optional
        No outcome costs more. A search of one's own has no limit unless one is stated.
    method, perturbation, noise, full_matrix, failure_probability, calibration, n_levels, on_failure, delta
        As in :class:`~expost.AccuracyFirstRidge`. ``perturbation`` is by default the one that is predicted to be
        cheapest (:func:`expost.mechanisms.mechanism_for`).
    levels
        Privacy levels of your own.
    factor
        From one round of doubling to the next.
    random_state
        ``None`` for the secure source.
    ledger
        Whose budget the search is charged to, if any.

    Raises
    ------
    AccuracyNotReached
        No level qualified, or a constant would do; carries the refusal and its cost.
    TargetUnreachable
        No data set of this size could meet the goal within ``max_epsilon``; nothing was spent.
    LedgerRefused
        The ledger did not let the search begin; nothing was spent.

    Examples
    --------
    >>> import numpy as np
    >>> from expost import ExcessRisk
    >>> from expost.table import Preparation
    >>> from expost.solve import Problem, SquaredLoss
    >>> X = np.random.default_rng(0).uniform(-0.5, 0.5, size=(20_000, 2))
    >>> recipe = Preparation(None, 1.0, target=(-1.0, 1.0), intercept_weight=0, n_columns=2)
    >>> rows = recipe.prepare_regression(X, X @ [1.0, -0.8])
    >>> problem = Problem.of(SquaredLoss(), n=rows.n, p=rows.p, regularization=0.1)
    >>> run_search(rows, problem, ExcessRisk(0.02), random_state=0).status
    'released'
    """
    chosen_for = method == "auto" and excess_risk_of(goal) is not None and on_failure == "refuse"
    around = ball(rows.norm, rows.p) if chosen_for and isinstance(rows, Rows | RowSource) else None
    validation.one_of("method", method, list(METHODS))
    spending = Spending(ledger)

    def made(mechanism: Mechanism, at: float) -> Request:
        return Request(
            problem,
            goal,
            METHODS[method],
            mechanism,
            failure_probability,
            calibration,
            levels,
            n_levels,
            spending.ceiling(max_epsilon, at),
            factor,
            on_failure,
            delta=at,
        )

    if not isinstance(rows, Rows | RowSource | Sums):
        request = made(rows.mechanism, delta)
    else:
        in_squares = ledger is not None and ledger.adds_in_squares
        request = risk_request(
            made,
            perturbation,
            problem,
            l2_ball(rows.p),
            delta,
            around=around,
            in_squares=in_squares,
            noise=noise,
            full_matrix=full_matrix,
        )
    plan = settle(request)
    return spending.guard(lambda spending: released(carry_out(request, plan, rows, random_state, spending)))


def settle(request: Request) -> Plan:
    """Settle everything that is public, or say why the goal cannot be met; nothing is looked at."""
    with one_thread():
        return request.plan()


@one_search()
def carry_out(
    request: Request,
    plan: Plan,
    rows: Rows | RowSource | Sums | Generator,
    random_state: Any,
    spending: Spending,
    describe: Callable[[Release], Release] = lambda release: release,
    *,
    discard: bool = False,
) -> Release:
    """Make the generator, carry out the plan and let the release, or the refusal, say what it is.

    ``spending`` holds what has to be charged from the moment noise is drawn; ``describe`` adds what the caller knows.
    ``discard``: a model that is short of its goal is not wanted.
    """
    # thousands of small products: on a shared machine BLAS threads cost far more than they bring
    if isinstance(rows, Rows | RowSource | Sums):
        request.mechanism.require_rows(rows, request.problem)
    account = request.account(plan.worst_case, validation.secure(random_state))
    if account.delta:
        account.one_curve = ("gaussian" if getattr(plan, "gaussian", False) else "pure") if spending.holds else None

    def detailed(outcome: Release) -> Release:
        details = request.details(outcome)
        given = (*_given(rows), *validation.source_claims(random_state))
        return outcome.with_details(**{**details, "claims": (*details["claims"], *given)})

    made_by = {"noise": request.mechanism.noise_kind, "perturbation": request.mechanism.name}
    if_interrupted = describe(detailed(account.interrupted().with_details(**made_by)))
    worst = math.inf if request.on_failure == "release_optimum" else if_interrupted.epsilon_worst_case
    if request.continues is not None and spending.charged(request.continues):
        worst = if_interrupted.epsilon_increment
    spending.reserve(if_interrupted, worst_case=worst)
    with one_thread():
        generator = request.mechanism.on(rows, request.problem) if isinstance(rows, Rows | RowSource | Sums) else rows
        if generator.problem != request.problem:
            raise ValueError("the generator was made for another problem; only the goal may differ")
        if request.goal is not None:
            request.goal.require_rows(generator)
        source = resolve_source(random_state)
        account.begin()
        spending.release = if_interrupted
        outcome = plan.search(generator, account, source)
        release = detailed(outcome.discarded() if discard else outcome)
        if request.on_failure == "release_optimum":
            release = _or_optimum(release, generator)
        return spending.end(describe(release))


def _given(rows: Rows | RowSource | Sums | Generator) -> tuple[str, ...]:
    """Say what is taken as given of what came in the place of rows."""
    if isinstance(rows, Sums):
        return ("the sums given are exact, of as many rows as they say, each with ‖x‖₁ ≤ 1 and |y| ≤ 1",)
    if isinstance(rows, Rows | RowSource):
        own = ("every row is what its source declares",) if validation.foreign(rows) else ()
        return (
            *own,
            *validation.engine_claims(getattr(rows, "engine", None)),
            *table_claims(getattr(rows, "disk", None)),
        )
    return ("the generator given is what its mechanism makes of rows within bounds",)


def _or_optimum(release: Release, generator: Generator) -> Release:
    """Return the non-private optimum for a refusal; an outcome then had no bound, so the search has none."""
    if release.status == "released":
        searched = release.method not in ("fixed", "theory")
        return release.with_details(epsilon_worst_case=math.inf) if searched else release
    warn(
        "no private hypothesis met the target and on_failure='release_optimum': the non-private optimum is returned, "
        "at an infinite privacy loss",
        NotPrivateWarning,
    )
    return replace(
        release,
        status="released",
        hypothesis=generator.risk.optimum,
        epsilon_generation=math.inf,
        epsilon_worst_case=math.inf,
        not_covered=(OPTIMUM_NOT_COVERED,),
        promise=replace(release.promise, failure_probability=0.0),
    )


def cov_nr(
    rows: Rows | Sums,
    *,
    excess_risk: float,
    regularization: float,
    calibration: str = "theorem",
    radius: float | None = None,
    **options: Any,
) -> Release:
    """CovNR (theory A4): ridge regression by gradual release of noisy second moments.

    Parameters
    ----------
    rows
        Private rows, or their exact sums.
    excess_risk, regularization
        α and λ.
    calibration
        ``"theorem"`` (the paper's statement), ``"published"`` (its figures) or ``"tight"``.
    radius
        Radius of the ball; by default the paper's 1/√λ, or 1/(2√λ) with ``"tight"``.
    **options
        ``failure_probability``, ``levels``, ``n_levels``, ``max_epsilon``, ``full_matrix``, ``on_failure``,
        ``random_state``; see :func:`run_search`.

    Examples
    --------
    >>> import numpy as np
    >>> from expost.table import Preparation
    >>> from expost.search import cov_nr
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-0.5, 0.5, size=(20_000, 2))
    >>> recipe = Preparation(None, 1.0, target=(-1.0, 1.0), intercept_weight=0, n_columns=2)
    >>> rows = recipe.prepare_regression(X, X @ [1.0, -0.8])
    >>> release = cov_nr(rows, excess_risk=0.02, regularization=0.1, random_state=0)
    >>> release.status, round(release.epsilon_test, 3)
    ('released', 6.863)
    """
    problem = _problem(rows, SquaredLoss(), regularization, calibration, radius)
    return run_search(
        rows,
        problem,
        ExcessRisk(excess_risk),
        **{"method": "above_threshold", "perturbation": "covariance", "calibration": calibration, **options},
    )


def output_nr(
    rows: Rows,
    *,
    excess_risk: float,
    regularization: float,
    loss: Loss | None = None,
    calibration: str = "theorem",
    radius: float | None = None,
    **options: Any,
) -> Release:
    """OutputNR (theory A5): gradual release of a noisy minimiser, for any smooth convex loss.

    Takes what :func:`cov_nr` takes, and ``loss``: logistic by default.

    Examples
    --------
    >>> import numpy as np
    >>> from expost.table import Preparation
    >>> from expost.search import output_nr
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-0.5, 0.5, size=(20_000, 2))
    >>> recipe = Preparation(None, 1.0, target=None, intercept_weight=0, n_columns=2)
    >>> rows = recipe.prepare_classification(X, X[:, 0] > 0, (False, True))
    >>> output_nr(rows, excess_risk=0.05, regularization=0.05, calibration="tight", random_state=0).status
    'released'
    """
    problem = _problem(rows, loss if loss is not None else LogisticLoss(), regularization, calibration, radius)
    return run_search(
        rows,
        problem,
        ExcessRisk(excess_risk),
        **{"method": "above_threshold", "perturbation": "output", "calibration": calibration, **options},
    )


def _problem(rows: Rows | Sums, loss: Loss, lam: float, calibration: str, radius: float | None) -> Problem:
    paper = validation.calibration(calibration) in validation.PAPER_CALIBRATIONS
    return Problem.of(loss, n=rows.n, p=rows.p, regularization=lam, radius=radius, paper_constants=paper)


@dataclass(frozen=True, repr=False)
class CuratorView:
    """The truth about a release, computed from the private rows. Do not publish it."""

    optimum: FloatArray
    excess_risk: float | None
    null_excess_risk: float

    def __repr__(self) -> str:
        return "CuratorView(private)"

    def __reduce__(self) -> str:
        raise TypeError("a curator's view is private and cannot be pickled")


def compare_with_optimum(
    rows: Rows, release: Release | None, loss: Loss, *, regularization: float, radius: float | None = None
) -> CuratorView:
    """Compare a release with the true optimum of prepared rows; ``curator_view`` takes a fitted model."""
    problem = Problem.of(loss, n=rows.n, p=rows.p, regularization=regularization, radius=radius)
    risk = mechanism_of("covariance" if loss.name == "squared" else "output").on(rows, problem).risk
    released = None if release is None or release.hypothesis is None else np.asarray(release.hypothesis)
    return CuratorView(
        optimum=risk.optimum,
        excess_risk=None if released is None else risk.excess(released),
        null_excess_risk=risk.excess(np.zeros(rows.p)),
    )
