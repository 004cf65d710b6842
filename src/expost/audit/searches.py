"""Attacks on whole searches: fits of small tables of extreme rows, recorded and replayed (`expost.audit.transcripts`).

One row of few weighs most, and rows at the ends of what is allowed move everything as far as it goes. So tables have a
few dozen rows at corners, at random, and in their neighbours one row is turned round or replaced by another corner.
Budgets are far beyond what anybody would pay, so that searches go on and all that they do is seen. Each run is a table,
a neighbour and a search of its own.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from expost.account.account import Spending
from expost.account.composition import ORDERS
from expost.account.ledger import Ledger
from expost.audit.attack import Attack, Found, Setting, interval
from expost.audit.counting import source_of
from expost.audit.transcripts import Differs, Tape, taping
from expost.estimators import AccuracyFirstModel
from expost.exceptions import AccuracyNotReached, SearchInterrupted
from expost.goals import R2, ErrorRate, ExcessRisk, Goal, LogLoss, Precision, Recall
from expost.noise import SecureSource, SeededSource, WordSource
from expost.release.release import Release
from expost.search.choice import staged_request
from expost.search.request import Request
from expost.search.run import carry_out, run_search, settle
from expost.solve import LogisticLoss, Problem, SquaredLoss
from expost.table.rows import ONE, Rows
from expost.table.shape import l2_ball

#: What a run is: the search of either data set, whose random words come from a source.
Search = Callable[[int, WordSource], Release]


def outcome(search: Callable[[], Release]) -> Release:
    """Return the release, be it a refusal."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return search()
        except AccuracyNotReached as refusal:
            return refusal.release


def replayed(search: Search, source: WordSource) -> tuple[Tape, Release]:
    """Record a search, replay it on the neighbour, and return what that showed."""
    tape = Tape()
    with taping(tape):
        release = outcome(lambda: search(0, source))
    tape.rewind()
    with taping(tape):
        try:
            again = outcome(lambda: search(1, SeededSource(0)))
            tape.finish()
            if not tape.differs and _said(again) != _said(release):
                tape.differs = "another release, though all that was drawn is the same"
        except (Differs, SearchInterrupted) as stopped:
            tape.differs = tape.differs or f"{type(stopped).__name__} on the neighbour only"
    return tape, release


def _said(release: Release) -> dict[str, Any]:
    """Return what a release says, but for what tells one run from another."""
    return {name: repr(value) for name, value in vars(release).items() if name not in ("id", "date")}


def largest(setting: Setting, search_of: Callable[[np.random.Generator], Search]) -> Found:
    """Return the transcript that comes nearest to the ε that its release states, or furthest beyond it."""
    found = Found(0.0, 0.0)
    for place in range(setting.runs):
        rng = np.random.default_rng(None if setting.seed is None else [setting.seed, place])
        tape, release = replayed(search_of(rng), source_of(setting, place))
        one = Found(release.epsilon, abs(tape.loss), tape.differs)
        if one.broken or one.tightness > found.tightness:
            found = one
        if one.broken:
            break
    return found


# --- tables -----------------------------------------------------------------------------------------------------------


def extreme_rows(rng: np.random.Generator, n: int, p: int, *, labels: bool, longest: str = "l1") -> tuple[Rows, Rows]:
    """Return rows at corners, and the same with the first one replaced."""
    x = np.zeros((n + 1, p), dtype=np.int32)
    if longest == "l1":
        x[np.arange(n + 1), rng.integers(p, size=n + 1)] = rng.choice([-ONE, ONE], n + 1)
    else:
        x[:] = rng.choice([-1, 1], (n + 1, p)) * int(ONE / np.sqrt(p))
    share = rng.uniform(0.1, 0.9)
    y = np.where(rng.random(n + 1) < share, ONE, -ONE).astype(np.int32)
    if not labels and rng.random() < 0.5:
        y = (y * rng.uniform(0, 1, n + 1)).astype(np.int32)
    if rng.random() < 0.5:  # the same row turned round
        x[n], y[n] = x[0], -y[0]
    other = np.arange(n)
    other[0] = n
    return tuple(Rows(x[some], y[some], norm=longest) for some in (np.arange(n), other))  # type: ignore[return-value, arg-type]


def extreme_table(rng: np.random.Generator, n: int, target: str) -> list[dict[str, list[Any]]]:
    """Return a table of one number and one category, and the same with the first row replaced."""
    number, kind = rng.choice([0.0, 1.0], n + 1), rng.choice(["a", "b"], n + 1)
    likely = rng.choice([0.1, 0.3, 0.5])
    positive = (number > 0.5) ^ (rng.random(n + 1) < likely)
    place = rng.integers(n)
    if rng.random() < 0.7:  # the same row with the other target
        number[n], kind[n], positive[n] = number[place], kind[place], not positive[place]
    y = np.where(positive, "yes", "no") if target == "labels" else np.where(positive, 1.0, 0.0)
    columns = {"number": number, "kind": kind, "y": y}
    some = np.arange(n), np.where(np.arange(n) == place, n, np.arange(n))
    return [{name: values[rows].tolist() for name, values in columns.items()} for rows in some]


_COLUMNS = {"number": {"bounds": [0, 1]}, "kind": {"categories": ["a", "b"]}}
SCHEMAS = {
    "labels": {"target": "y", "classes": ["no", "yes"], "columns": _COLUMNS},
    "numbers": {"target": "y", "target_bounds": [0, 1], "columns": _COLUMNS},
}
_BUDGET = 60.0


def fits(goal: Goal, target: str = "labels", n: int = 60, **options: Any) -> Callable[[Setting], Found]:
    """Attack whole calls of ``AccuracyFirstModel.fit`` for a goal."""

    def search_of(rng: np.random.Generator) -> Search:
        tables = extreme_table(rng, n, target)

        def search(side: int, source: WordSource) -> Release:
            said = {"max_epsilon": _BUDGET, "random_state": source, **options}
            return AccuracyFirstModel(SCHEMAS[target], goal, **said).fit(tables[side]).release_

        return search

    return lambda setting: largest(setting, search_of)


def searches(
    goal: ExcessRisk, method: str, perturbation: str | None, *, squared: bool = True, lam: float = 1.0, **options: Any
) -> Callable[[Setting], Found]:
    """Attack `run_search` for an excess risk."""

    def search_of(rng: np.random.Generator) -> Search:
        n = int(rng.choice([20, 40]))
        both = extreme_rows(rng, n, 1 if rng.random() < 0.5 else 2, labels=not squared)
        loss = SquaredLoss() if squared else LogisticLoss()
        problem = Problem.of(loss, n=n, p=both[0].p, regularization=lam)
        said = {"method": method, "perturbation": perturbation, **options}
        return lambda side, source: run_search(both[side], problem, goal, random_state=source, **said)

    return lambda setting: largest(setting, search_of)


def descent(setting: Setting) -> Found:
    """Attack gradient descent at a δ: the ρ that neighbours have, beside what was booked.

    Given what was released before, a step is a Gaussian release, and how far it moves is known: so is the ρ that is
    enough for these neighbours, in every run. Tests are pure, and cost the same at every order, so that what was booked
    for steps is the slope of the curve. Beside that the loss of a transcript is above the ε stated in a δ of the runs
    at most: a share that is above δ for certain is a finding too.
    """
    found, beyond, delta = Found(0.0, 0.0), 0, 0.01
    for place in range(setting.runs):
        rng = np.random.default_rng(None if setting.seed is None else [setting.seed, place])
        both = extreme_rows(rng, 60, 2, labels=True, longest="l2")
        request = staged_request("descent", ErrorRate(0.3), l2_ball(2), 60, 0.1, 200.0, delta)

        def search(
            side: int, source: WordSource, request: Request = request, both: tuple[Rows, Rows] = both
        ) -> Release:
            return carry_out(request, settle(request), both[side], source, Spending(None))

        tape, release = replayed(search, source_of(setting, place))
        losses = release.account_curve().losses
        booked = (losses[-1] - losses[0]) / (ORDERS[-1] - ORDERS[0])
        beyond += tape.loss > release.epsilon
        one = Found(booked, tape.moved, tape.differs, delta)
        found = one if one.broken or one.tightness > found.tightness else found
        if one.broken:
            return found
    if float(interval(beyond, setting.runs, 1.0 - setting.confidence)[0]) > delta:
        return found._replace(differs=f"a loss above what was stated in {beyond} of {setting.runs} runs")
    return found


# --- several searches together ----------------------------------------------------------------------------------------

_SEVERAL = 5


def in_a_ledger(setting: Setting) -> Found:
    """Attack what a ledger has charged after several small searches of the same rows.

    A ledger books no simulation, so the words are those of the operating system, whatever the seed.
    """
    found = Found(0.0, 0.0)
    for place in range(setting.runs):
        rng = np.random.default_rng(None if setting.seed is None else [setting.seed, place])
        both = extreme_rows(rng, 20, 1, labels=False)
        charged: list[float] = []
        problem = Problem.of(SquaredLoss(), n=20, p=1, regularization=1.0)

        def search(
            side: int, _: WordSource, both: Any = both, problem: Problem = problem, charged: list[float] = charged
        ) -> Release:
            said: dict[str, Any] = {"method": "fixed", "perturbation": "covariance", "random_state": SecureSource()}
            with tempfile.TemporaryDirectory() as folder:
                ledger = Ledger.create(Path(folder) / "audit.db", "rows", cap=10.0)
                for k in range(_SEVERAL):
                    release = run_search(both[side], problem, max_epsilon=0.1 * (k + 1), ledger=ledger, **said)
                charged.append(ledger.budget.total.epsilon)
            return release

        tape, _ = replayed(search, source_of(setting, place))
        differs = tape.differs or ("another charge" if len(set(charged)) > 1 else "")
        one = Found(charged[0], abs(tape.loss), differs)
        found = one if one.broken or one.tightness > found.tightness else found
        if one.broken:
            break
    return found


_EASY, _RISK = ErrorRate(0.45), ExcessRisk(0.4)
ATTACKS = (
    Attack("fit-error-rate", "fit for an error rate", "transcripts", fits(ErrorRate(0.3)), 30, 100_000),
    Attack("fit-log-loss", "fit for a log loss", "transcripts", fits(LogLoss(0.6)), 20, 20_000),
    Attack("fit-r2", "fit for R2, its yardstick among it", "transcripts", fits(R2(0.3), "numbers"), 20, 20_000),
    Attack(
        "fit-rare-labels",
        "fit for recall and precision, its cut-off among it",
        "transcripts",
        fits(Recall(0.6) & Precision(0.5)),
        10,
        10_000,
    ),
    Attack(
        "fit-new-rows",
        "fit with rows held out: the larger of two parts",
        "transcripts",
        fits(_EASY, holdout=0.3),
        20,
        20_000,
    ),
    Attack(
        "covariance",
        "certified search of noisy second moments",
        "transcripts",
        searches(_RISK, "auto", "covariance"),
        40,
        20_000,
    ),
    Attack(
        "covariance-tested",
        "the paper's search, above threshold",
        "transcripts",
        searches(_RISK, "above_threshold", "covariance"),
        10,
        10_000,
    ),
    Attack(
        "stationarity",
        "gradual release stopped by gradients",
        "transcripts",
        searches(_RISK, "stationarity", "covariance"),
        10,
        10_000,
    ),
    Attack(
        "output",
        "certified noise on the minimiser",
        "transcripts",
        searches(_RISK, "auto", "output", squared=False),
        30,
        20_000,
    ),
    Attack(
        "output-spherical",
        "the same, spherical",
        "transcripts",
        searches(_RISK, "auto", "output", squared=False, noise="spherical"),
        20,
        10_000,
    ),
    Attack(
        "objective",
        "certified noise on the objective",
        "transcripts",
        searches(ExcessRisk(0.1), "auto", None, squared=False),
        40,
        20_000,
    ),
    Attack(
        "doubling",
        "doubling around noise on the minimiser",
        "transcripts",
        searches(_RISK, "doubling", "output", squared=False),
        20,
        20_000,
    ),
    Attack("descent", "gradient descent at delta = 0.01: rho of its steps", "transcripts", descent, 10, 10_000),
    Attack("ledger", "what a ledger charges for five releases", "transcripts", in_a_ledger, 5, 2_000),
)
