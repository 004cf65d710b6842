"""Attacks on whole searches: fits of small tables of extreme rows, recorded and replayed (`expost.audit.transcripts`).

One row of few weighs most, and rows at the ends of what is allowed move everything as far as it goes. So tables have a
few dozen rows at corners, at random, and in their neighbours one row is turned round or replaced by another corner.
Budgets are far beyond what anybody would pay, so that searches go on and all that they do is seen. Each run is a table,
a neighbour and a search of its own.
"""

from __future__ import annotations

import math
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import starmap
from pathlib import Path
from typing import Any

import numpy as np

from expost.account.account import Account, Spending
from expost.account.composition import ORDERS, Curve, compose
from expost.account.ledger import Ledger
from expost.audit.attack import Attack, Found, Setting, interval, nearest
from expost.audit.counting import source_of
from expost.audit.tape import Differs, Tape
from expost.audit.transcripts import Derivatives, log_density, taping
from expost.estimators import AccuracyFirstLogisticRegression, AccuracyFirstModel, AccuracyFirstRidge
from expost.exceptions import AccuracyNotReached, SearchInterrupted
from expost.goals import R2, ErrorRate, ExcessRisk, Goal, LogLoss, Precision, Recall
from expost.goals.goal import TestedGoal
from expost.goals.labels_and_base_rate import BaseRatePath
from expost.goals.measure import ErrorMeasure
from expost.goals.yardstick import YardstickPath
from expost.mechanisms.objective.gaussian_objective import GaussianShot
from expost.mechanisms.objective.perturbation import ObjectiveRows, Shot
from expost.noise import NoisePath, SecureSource, SeededSource, WordSource
from expost.passes import LocalEngine
from expost.release.held_out import HeldOut
from expost.release.kept_path import write_key
from expost.release.release import FrozenMapping, Release
from expost.search import new_rows
from expost.search.gradual import search_path
from expost.search.kept_path_refinement import KeepPath, refine
from expost.search.noisy_test import GradualTest, OneTest
from expost.search.request import staged_request
from expost.search.run import carry_out, run_search, settle
from expost.solve import LogisticLoss, Passes, Problem, SquaredLoss
from expost.solve.losses import CappedLogisticLoss, HuberLoss, Loss, SmoothedHingeLoss
from expost.table.rows import ONE, MemorySource, Rows
from expost.table.shape import Geometry, l1_ball, l2_ball

#: How a table and its neighbour are made: of so many rows or persons, a kind of target, and so many rows of each.
TableOf = Callable[[np.random.Generator, int, str, int], list[dict[str, list[Any]]]]
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
    again(tape, release, search, source.secure)
    return tape, release


def again(tape: Tape, release: Release, search: Search, secure: bool, side: int = 1) -> None:
    """Replay a search that was recorded, on the neighbour or, as others are held out, on the same table."""
    tape.rewind()
    other = SecureSource() if secure else SeededSource(0)  # nothing that comes out is drawn from it
    with taping(tape):
        try:
            found = outcome(lambda: search(side, other))
            tape.finish()
            if not tape.differs and _said(found) != _said(release):
                tape.differs = "another release, though all that was drawn is the same"
        except (Differs, SearchInterrupted) as stopped:
            tape.differs = tape.differs or f"{type(stopped).__name__} on the neighbour only"


_TRIES = 400  # draws of who is held out: one of 21 sets is missed with a chance of 7·10⁻⁸


def mixed(search_of: Callable[[np.random.Generator], Search], n: int, m: int) -> Callable[[Setting], Found]:
    """Attack searches with m of n rows held out by the loss of what comes out over all sets that are drawn.

    A transcript is replayed with each set in the place of the one that was drawn, on both tables, which gives its
    density for each: the means over sets are its densities, as nobody is told the set. Which sets there are is asked of
    the library, often; that they are as likely is for `expost.audit.counting.new_rows`.
    """

    def attack(setting: Setting) -> Found:
        found = Found(0.0, 0.0)
        for place, rng in setting.each():
            search, source, tape = search_of(rng), source_of(setting, place), Tape()
            sets = {new_rows.drawn(n, m, source).tobytes() for _ in range(_TRIES)}
            with taping(tape):
                release = outcome(lambda search=search, source=source: search(0, source))  # type: ignore[misc]
            means = []
            for side in (0, 1):
                logs = []
                for each in sets:
                    tape.sides = np.frombuffer(each, dtype=bool)
                    again(tape, release, search, source.secure, side)
                    if tape.differs:
                        return Found(release.epsilon, 0.0, tape.differs)
                    logs.append(-tape.loss)
                means.append(float(np.logaddexp.reduce(logs)))
            one = Found(release.epsilon, abs(means[0] - means[1]))
            found = one if one.broken or one.tightness > found.tightness else found
            if one.broken:
                break
        return found

    return attack


def sorted_table(rng: np.random.Generator, n: int, target: str, _: int) -> list[dict[str, list[Any]]]:
    """Return a table sorted by its number, and the same with its first row replaced by one that comes last."""
    number = np.linspace(0.0, 1.0, n + 1)
    y = np.array(["no", "yes"] if target == "labels" else [0.0, 1.0])[rng.permutation(n + 1) % 2]  # both occur
    columns = {"number": number, "kind": rng.choice(["a", "b"], n + 1), "y": y}
    return [{name: values[rows].tolist() for name, values in columns.items()} for rows in (slice(n), slice(1, n + 1))]


def _said(release: Release) -> dict[str, Any]:
    """Return what a release says, but for what tells one run from another."""
    return {name: repr(value) for name, value in vars(release).items() if name not in ("id", "date")}


def largest(setting: Setting, search_of: Callable[[np.random.Generator], Search]) -> Found:
    """Return the transcript that comes nearest to the ε that its release states, or furthest beyond it."""

    def each() -> Iterator[Found]:
        for place, rng in setting.each():
            tape, release = replayed(search_of(rng), source_of(setting, place))
            yield Found(release.epsilon, abs(tape.loss), tape.differs)

    return nearest(each())


def transcripts(search_of: Callable[[np.random.Generator], Search]) -> Callable[[Setting], Found]:
    """Attack what searches state, by the largest loss of a transcript."""
    return lambda setting: largest(setting, search_of)


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


Row = tuple[Sequence[float], float]


def replaced(others: Row, n: int, before: Row, after: Row) -> tuple[Rows, Rows]:
    """Return n rows of which all but the first are alike, and the same with the first one replaced."""
    both = []
    for first in (before, after):
        x = np.array([first[0]] + [others[0]] * (n - 1), dtype=np.float64)
        y = np.array([first[1]] + [others[1]] * (n - 1), dtype=np.float64)
        both.append(Rows((x * ONE).astype(np.int32), (y * ONE).astype(np.int32)))
    return both[0], both[1]


def extreme_table(rng: np.random.Generator, n: int, target: str, k: int = 1) -> list[dict[str, list[Any]]]:
    """Return a table of one number and one category, and the same with one row replaced, or a person with k alike."""
    number, kind = rng.choice([0.0, 1.0], n + 1), rng.choice(["a", "b"], n + 1)
    likely = rng.choice([0.1, 0.3, 0.5])
    positive = (number > 0.5) ^ (rng.random(n + 1) < likely)
    place = rng.integers(n)
    if rng.random() < 0.7:  # the same row with the other target
        number[n], kind[n], positive[n] = number[place], kind[place], not positive[place]
    y = np.where(positive, "yes", "no") if target == "labels" else np.where(positive, 1.0, 0.0)
    if target == "numbers" and rng.random() < 0.5:  # rows that are all alike but for one target
        number[:], kind[:], y[:], y[n] = 1.0, "a", 1.0, 0.0
    columns = {"number": number, "kind": kind, "y": y, **({"whose": np.arange(n + 1)} if k > 1 else {})}
    some = np.arange(n), np.where(np.arange(n) == place, n, np.arange(n))
    return [{name: np.repeat(values[rows], k).tolist() for name, values in columns.items()} for rows in some]


_COLUMNS = {"number": {"bounds": [0, 1]}, "kind": {"categories": ["a", "b"]}}
SCHEMAS: dict[str, dict[str, Any]] = {
    "labels": {"target": "y", "classes": ["no", "yes"], "columns": _COLUMNS},
    "numbers": {"target": "y", "target_bounds": [0, 1], "columns": _COLUMNS},
}
_BUDGET = 60.0
PERSONS: dict[str, Any] = {"person": "whose", "rows_per_person": 2}


def fits(goal: Goal, target: str = "labels", n: int = 60, **options: Any) -> Callable[[Setting], Found]:
    """Attack whole calls of ``AccuracyFirstModel.fit`` for a goal."""
    return transcripts(fitted(goal, target, n, **options))


def fitted(
    goal: Goal,
    target: str = "labels",
    n: int = 60,
    table_of: TableOf = extreme_table,
    **options: Any,
) -> Callable[[np.random.Generator], Search]:
    """Return fits of tables at random, of persons with several rows where options say so."""

    def search_of(rng: np.random.Generator) -> Search:
        tables = table_of(rng, n, target, options.get("rows_per_person", 1))

        def search(side: int, source: WordSource) -> Release:
            said = {"max_epsilon": _BUDGET, "random_state": source, **options}
            return AccuracyFirstModel(SCHEMAS[target], goal, **said).fit(tables[side]).release_

        return search

    return search_of


def unreadable_table(rng: np.random.Generator, n: int, target: str, k: int) -> list[dict[str, list[Any]]]:
    """Return a table that does not fit its schema, and the same with a row of which nothing can be read."""
    rows: dict[str, list[Any]] = {"number": [1.0] * n, "kind": ["a"] * n, "y": ["?"] * n}
    tables = [{name: values.copy() for name, values in rows.items()} for _ in range(2)]
    tables[0]["y"][0], tables[1]["number"][0] = "yes", "?"
    return tables


@lru_cache(maxsize=4)
def other_model(goal: Goal = LogLoss(0.69), **options: Any) -> Release:  # noqa: B008
    """Return a release of other rows, to be evaluated."""
    table = extreme_table(np.random.default_rng(0), 400, "labels", options.get("rows_per_person", 1))[0]
    model = AccuracyFirstModel(SCHEMAS["labels"], goal, max_epsilon=_BUDGET, random_state=0, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(table).release_


def evaluated(n: int = 60, delta: float = 0.0, **options: Any) -> Callable[[np.random.Generator], Search]:
    """Return whole calls of ``Release.evaluate``: the noisy histogram that all of an evaluation is made of.

    With a model that was fitted with rows held out it is about as many, of a table as long: whose row is replaced may
    be among them or not.
    """

    def search_of(rng: np.random.Generator) -> Search:
        tables, model = extreme_table(rng, n, "labels", options.get("rows_per_person", 1)), other_model(**options)

        held = HeldOut(np.arange(n) < model.held_out, release_id=model.id) if model.held_out else None
        said = {"delta": delta, "new_rows": held, **_EVALUATED}

        def search(side: int, source: WordSource) -> Release:
            return model.evaluate(tables[side], random_state=source, **said).release

        return search

    return search_of


_EVALUATED: dict[str, Any] = {"margin": 0.4, "max_epsilon": _BUDGET, "bins": 4}


def held_out_evaluated(
    goal: Goal, target: str = "labels", n: int = 60, table_of: TableOf = extreme_table, **options: Any
) -> Callable[[np.random.Generator], Search]:
    """Return fits with rows held out and then evaluations of these: what both releases say that they cost together."""

    def search_of(rng: np.random.Generator) -> Search:
        tables = table_of(rng, n, target, options.get("rows_per_person", 1))

        def search(side: int, source: WordSource) -> Release:
            said = {"max_epsilon": _BUDGET, "random_state": source, **options}
            model = AccuracyFirstModel(SCHEMAS[target], goal, **said).fit(tables[side])
            first, whose = model.release_, {"new_rows": model.held_out_, "random_state": source}
            few: dict[str, Any] = {"margin": 0.9, "failure_probability": 0.9} if n < 20 else {}
            last = first.evaluate(tables[side], **{**_EVALUATED, **whose, **few}).release
            probe = compose([first, last]).epsilon - max(first.epsilon_generation, first.epsilon_test)
            shown = {**first.parameters, "counts": last.hypothesis}
            return replace(first, epsilon_probe=probe, epsilon_worst_case=math.inf, parameters=FrozenMapping(shown))

        return search

    return search_of


def _few_sorted(kind: Callable[..., Any]) -> Callable[[np.random.Generator], Search]:
    """Return such searches of seven rows, sorted, five of which are held out: 21 sets."""
    found: Callable[[np.random.Generator], Search] = kind(
        ErrorRate(0.9), n=7, table_of=sorted_table, holdout=5 / 7, failure_probability=0.9
    )
    return found


def searches(
    goal: ExcessRisk | None,
    method: str,
    perturbation: str | None,
    *,
    squared: bool = True,
    lam: float = 1.0,
    turned: bool = False,
    **options: Any,
) -> Callable[[Setting], Found]:
    """Attack `run_search` for an excess risk, on rows at corners; or on equal ones, of which one is turned round."""

    def search_of(rng: np.random.Generator) -> Search:
        n = int(rng.choice([20, 40]))
        if turned:
            both = replaced(((1.0,), 1.0), n, ((1.0,), 1.0), ((1.0,), -1.0))[:: int(rng.choice([-1, 1]))]
        else:
            both = extreme_rows(rng, n, 1 if rng.random() < 0.5 else 2, labels=not squared)
        loss = SquaredLoss() if squared else LogisticLoss()
        problem = Problem.of(loss, n=n, p=both[0].p, regularization=lam)
        said = {"method": method, "perturbation": perturbation, **options}
        return lambda side, source: run_search(both[side], problem, goal, random_state=source, **said)

    return lambda setting: largest(setting, search_of)


def staged(perturbation: str, goal: TestedGoal, longest: str) -> Callable[[np.random.Generator], Search]:
    """Return searches at a δ of rows at random."""

    def search_of(rng: np.random.Generator) -> Search:
        both = extreme_rows(rng, 60, 2, labels=longest == "l2", longest=longest)
        shape = l2_ball(2) if longest == "l2" else l1_ball(2)
        request = staged_request(perturbation, goal, shape, 60, 0.1, 200.0, DELTA)
        return lambda side, source: carry_out(request, settle(request), both[side], source, Spending(None))

    return search_of


DELTA = 0.01


def at_delta(search_of: Callable[[np.random.Generator], Search]) -> Callable[[Setting], Found]:
    """Attack a search at a δ whose noise is Gaussian: the ρ that neighbours have, beside what was booked.

    Given what was released before, a step is a Gaussian release, and how far it moves is known: so is the ρ that is
    enough for these neighbours, in every run. Tests are pure, and cost the same at all large orders. So what was booked
    for steps is the slope of the curve there, and what was booked for tests is what is left of it at order 0; where
    what is replaced was held out, only tests and pure looks are about it, which are booked apart. The loss of all that
    has no Gaussian noise must not exceed that; it is shown where it does, or where nothing else was let out. Beside
    that the loss of a transcript is above the ε stated in a δ of the runs at most: a share that is above δ for certain
    is a finding too.
    """

    def attack(setting: Setting) -> Found:
        steps = tests = Found(0.0, 0.0, delta=DELTA)
        beyond = 0
        for place, rng in setting.each():
            tape, release = replayed(search_of(rng), source_of(setting, place))
            *_, (before, low), (last, high) = zip(ORDERS, release.curve["losses"], strict=True)
            rho = (high - low) / (last - before)
            beyond += tape.loss > release.epsilon
            apart = release.held_out and not tape.moved
            booked = release.curve["tested"]["most"] if apart else max(high - last * rho, 0.0)
            pure = Found(booked, abs(tape.pure), tape.differs, DELTA)
            moved = Found(rho, tape.moved, tape.differs, DELTA)
            for one in (moved, pure):
                if one.broken:
                    return one
            steps = moved if moved.tightness > steps.tightness else steps
            tests = pure if pure.tightness > tests.tightness else tests
        found = steps if steps.bound else tests
        if float(interval(beyond, setting.runs, 1.0 - setting.confidence)[0]) > DELTA:
            return found._replace(differs=f"a loss above what was stated in {beyond} of {setting.runs} runs")
        return found

    return attack


def refined(labels: bool) -> Callable[[np.random.Generator], Search]:
    """Return searches whose paths are kept, and gone on with: what the last release says all of it has cost."""

    def search_of(rng: np.random.Generator) -> Search:
        table, other = extreme_table(rng, 60, "numbers")

        def search(side: int, source: WordSource) -> Release:
            said: dict[str, Any] = {"bounds": (0, 1), "regularization": 1.0, "max_epsilon": _BUDGET}
            rows = (table, other)[side]
            with tempfile.TemporaryDirectory() as folder:
                path, key = Path(folder, "rows.path"), Path(folder, "rows.key")
                write_key(key)
                said |= {"excess_risk": 0.3, "keep_path": KeepPath(path, key, later=0.02), "random_state": source}
                model = (
                    AccuracyFirstLogisticRegression(classes=(0.0, 1.0), **said)
                    if labels
                    else AccuracyFirstRidge(target_bounds=(0, 1), **said)
                )
                first = model.fit(np.array([rows["number"]]).T, np.array(rows["y"])).release_
                last = refine(first, path, key, excess_risk=0.02, max_epsilon=math.inf)
            stated = {name: last.parameters[name] for name in last.parameters if name not in ("path", "continues")}
            return last.with_details(parameters=stated)

        return search

    return search_of


# --- several searches together ----------------------------------------------------------------------------------------

_SEVERAL = (0.4, 0.8, 0.8)


class _AtOnce:
    """A stopping rule that stops at once, and asks nothing."""

    name, secure = "at once", True
    epsilon_stop = epsilon_never = epsilon_worst_case = 0.0

    def accepts(self, hypothesis: Any) -> bool:
        """Return yes."""
        return True


def in_a_ledger(setting: Setting) -> Found:
    """Attack what a ledger has charged after several small releases of one number.

    A ledger books no simulation, so the words are those of the operating system, whatever the seed.
    """

    def one(place: int) -> Found:
        charged: list[float] = []

        def search(side: int, _: WordSource) -> Release:
            with tempfile.TemporaryDirectory() as folder:
                ledger = Ledger.create(Path(folder) / "audit.db", "rows", cap=10.0)
                for epsilon in _SEVERAL:
                    path = NoisePath(np.array([40 + side]), 1, (epsilon,), random_state=SecureSource())
                    release = search_path(path, _AtOnce(), ledger=ledger)
                charged.append(ledger.budget.total.epsilon)
            return release

        tape, _ = replayed(search, source_of(setting, place))
        return Found(charged[0], abs(tape.loss), tape.differs or ("another charge" if len(set(charged)) > 1 else ""))

    return nearest(one(place) for place, _ in setting.each())


# --- parts of searches ------------------------------------------------------------------------------------------------


def probe(
    measured: Callable[[Passes, Account, WordSource], Any], targets: tuple[float, float], delta: float = 0.0
) -> Callable[[np.random.Generator], Search]:
    """Return what is released before a search, where one row's target is moved from one of two values to the other."""

    def search_of(rng: np.random.Generator) -> Search:
        judges = []
        y = rng.choice(targets, 40)
        for y[0] in targets:
            rows = Rows(np.full((40, 1), ONE, dtype=np.int32), (y * ONE).astype(np.int32))
            judges.append(Passes.over(LogisticLoss() if targets == _LABELS else HuberLoss(0.25), rows))

        def search(side: int, source: WordSource) -> Release:
            account = Account("probe", worst_case=100.0, secure=False, delta=delta)
            account.one_curve = "gaussian" if delta else None
            account.reasons.append(repr(measured(judges[side], account, source)))
            return account.refused()

        return search

    return search_of


def tests(measured: Callable[[int, Account, WordSource], Any]) -> Callable[[Setting], Found]:
    """Attack a test of values that the neighbour moves as far as they can be, by what its outcome costs."""

    def search(side: int, source: WordSource) -> Release:
        account = Account("test", worst_case=100.0, secure=False)
        account.reasons.append(repr(measured(side, account, source)))
        return account.refused()

    return lambda setting: largest(setting, lambda rng: search)


def _question(steps: bool) -> Callable[[int, Account, WordSource], Any]:
    test = OneTest(1.0, 0.02, 0.5)

    def measured(side: int, account: Account, source: WordSource) -> Any:
        measure = ErrorMeasure(lambda _: 0.5 + side, sensitivity=1.0)
        answer, paid = (test.ask_gradually if steps else test.ask)(measure, None, source)
        account.book("test", Curve.ex_post(paid))
        return answer

    return measured


def _levels(*truths: tuple[float, float]) -> Callable[[int, Account, WordSource], Any]:
    def measured(side: int, account: Account, source: WordSource) -> Any:
        test = GradualTest(account, source)
        return [(test.pass_at(truth[side], 1.0, 0.0, 1.0, 0.2), test.noisy) for truth in truths]

    return measured


def _base_rate(judge: Passes, account: Account, source: WordSource) -> Any:
    return BaseRatePath(judge, account, source, 0.05).first(lambda base, more: base.scale < 0.05)


def _yardstick(judge: Passes, account: Account, source: WordSource) -> Any:
    path = YardstickPath(judge, account, source, 0.05)
    return path.first(), path.further(0.0, lambda step: step.most < 1.0)


Objective = tuple[np.random.Generator, tuple[Loss, Geometry, int, float], tuple[Rows, Rows]]


def _objectives(setting: Setting) -> Iterator[Objective]:
    """Yield random numbers, what an objective is perturbed by (loss, shape, rows, how much noise), and its rows."""
    for _, rng in setting.each():
        n, p = int(rng.integers(1, 4)), int(rng.integers(1, 3))
        loss = (CappedLogisticLoss(0.5), LogisticLoss(), SmoothedHingeLoss(0.5))[rng.integers(3)]
        longest, shape = ("l1", l1_ball(p)) if rng.random() < 0.5 else ("l2", l2_ball(p))
        both = extreme_rows(rng, n, p, labels=True, longest=longest)
        yield rng, (loss, shape, n, float(rng.choice([0.05, 0.4, 2.0]))), both


def density(setting: Setting) -> Found:
    """Attack the law of a perturbed objective's minimiser where it is tightest: beside a kink, and far from the centre.

    No run is needed: the log ratio of its densities is computed at chosen points, from rows that the solver would see.
    """

    def one(rng: np.random.Generator, said: tuple[Loss, Geometry, int, float], both: tuple[Rows, Rows]) -> Found:
        shot, p = Shot(*said, float(rng.choice([1e-2, 0.05, 0.3]))), both[0].p
        theta = rng.normal(size=p) * 10.0 ** rng.uniform(-9, 1)
        center = theta - rng.choice([-1.0, 1.0], p) * 10.0 ** rng.uniform(-2, 6)
        here, there = (log_density(shot, ObjectiveRows(rows, shot.loss).perturbed, theta, center) for rows in both)
        return Found(shot.epsilon, abs(here - there))

    return nearest(starmap(one, _objectives(setting)))


def gaussian_gradient(setting: Setting) -> Found:
    """Attack how far one row is said to move the gradient that an objective hides behind Gaussian noise: its ρ.

    The ρ of neighbours is Σ‖∇ − ∇′‖²/(2σ²) over blocks of columns, at any point.
    """

    def one(rng: np.random.Generator, said: tuple[Loss, Geometry, int, float], both: tuple[Rows, Rows]) -> Found:
        shot, theta = GaussianShot(*said, 0.05), rng.normal(size=both[0].p) * 10.0 ** rng.uniform(-1, 3)
        here, there = (LocalEngine().total(MemorySource(rows), Derivatives(shot.loss, theta))[0] for rows in both)
        deviations = np.repeat(shot.deviations, [block.size for block in shot.geometry.blocks])
        return Found(shot.rho, float(np.sum(((here - there) / deviations) ** 2) / 2.0))

    return nearest(starmap(one, _objectives(setting)))


_EASY, _RISK = ErrorRate(0.45), ExcessRisk(0.4)
_SPENT: dict[str, Any] = {"max_epsilon": 1.0}
_RARE = Recall(0.6) & Precision(0.5)
_LABELS = (1.0, -1.0)


def _attack(name: str, attacked: str, carry_out: Callable[[Setting], Found], runs: int, full: int) -> Attack:
    return Attack(name, attacked, "transcripts", carry_out, runs, full)


ATTACKS = (
    _attack("one-test", "one noisy question", tests(_question(False)), 20, 50_000),
    _attack("gradual-question", "one question, given up early", tests(_question(True)), 40, 50_000),
    _attack("gradual-test", "the test of a search in levels", tests(_levels((-1.5, -0.5))), 40, 50_000),
    _attack("gradual-tests", "tests of two models in a row", tests(_levels((0.0, 1.0), (1.0, 0.0))), 20, 50_000),
    _attack("base-rate", "the base rate of labels", transcripts(probe(_base_rate, _LABELS)), 20, 5_000),
    _attack("base-rate-delta", "the same at delta = 0.01", at_delta(probe(_base_rate, _LABELS, DELTA)), 20, 5_000),
    _attack("yardstick", "mean and spread of a target", transcripts(probe(_yardstick, (1.0, -0.5))), 20, 5_000),
    _attack(
        "yardstick-delta",
        "the same at delta = 0.01: its rho",
        at_delta(probe(_yardstick, (1.0, -1.0), DELTA)),
        20,
        5_000,
    ),
    _attack("moments", "noisy second moments", searches(None, "fixed", "covariance", **_SPENT), 500, 10_000),
    _attack("minimiser", "noise on the minimiser", searches(None, "fixed", "output", lam=30.0, **_SPENT), 30, 10_000),
    _attack(
        "minimiser-spherical",
        "the same, spherical",
        searches(None, "fixed", "output", lam=30.0, noise="spherical", **_SPENT),
        30,
        10_000,
    ),
    _attack("objective-density", "the law of a perturbed minimiser", density, 2_000, 100_000),
    _attack("gaussian-gradient", "the rho of one at a delta", gaussian_gradient, 500, 100_000),
    _attack("covariance", "certified search of moments", searches(_RISK, "auto", "covariance"), 20, 8_000),
    _attack(
        "above-threshold-search", "the paper's search", searches(_RISK, "above_threshold", "covariance"), 10, 4_000
    ),
    _attack(
        "stationarity",
        "a search by gradients",
        searches(ExcessRisk(0.01), "stationarity", "covariance", turned=True),
        40,
        4_000,
    ),
    _attack("output", "certified noise on the minimiser", searches(_RISK, "auto", "output", squared=False), 20, 8_000),
    _attack(
        "objective",
        "certified noise on the objective",
        searches(ExcessRisk(0.1), "auto", None, squared=False),
        20,
        8_000,
    ),
    _attack(
        "through-huber",
        "objective perturbation through Huber's loss",
        searches(ExcessRisk(0.05), "auto", None, lam=0.01),
        10,
        2_000,
    ),
    _attack(
        "doubling",
        "a search by doubling",
        searches(ExcessRisk(0.1), "doubling", "output", squared=False, lam=0.1, turned=True),
        20,
        8_000,
    ),
    _attack("fit-error-rate", "fit for an error rate", fits(ErrorRate(0.3)), 30, 12_000),
    _attack("fit-log-loss", "fit for a log loss", fits(LogLoss(0.6)), 15, 4_000),
    _attack("fit-r2", "fit for R2", fits(R2(0.3), "numbers"), 15, 3_000),
    _attack("fit-rare-labels", "fit for recall and precision", fits(_RARE), 10, 3_000),
    _attack("fit-new-rows", "fit with rows held out", fits(_EASY, holdout=0.3), 15, 3_000),
    _attack("fit-sorted-rows", "the same, sorted, over all draws", mixed(_few_sorted(fitted), 7, 5), 2, 500),
    _attack("fit-persons", "fit of persons with two rows each", fits(_EASY, **PERSONS), 15, 3_000),
    _attack("fit-new-persons", "the same with persons held out", fits(_EASY, holdout=0.5, **PERSONS), 15, 3_000),
    _attack(
        "table-fits",
        "whether a table fits its schema",
        fits(_EASY, table_of=unreadable_table, on_invalid="clip"),
        10,
        4_000,
    ),
    _attack("kept-moments", "a path of moments, gone on with", transcripts(refined(False)), 10, 3_000),
    _attack("kept-minimisers", "a path of minimisers, gone on with", transcripts(refined(True)), 10, 3_000),
    _attack("evaluation", "evaluation of a model", transcripts(evaluated()), 20, 8_000),
    _attack("evaluation-delta", "the same at delta = 0.01", at_delta(evaluated(delta=DELTA)), 20, 8_000),
    _attack(
        "evaluation-new-rows",
        "the same on rows held out",
        transcripts(evaluated(400, goal=_EASY, holdout=0.5)),
        10,
        8_000,
    ),
    _attack(
        "evaluation-sorted-rows",
        "the same with the fit, sorted, over all draws",
        mixed(_few_sorted(held_out_evaluated), 7, 5),
        2,
        500,
    ),
    _attack("evaluation-persons", "the same on persons with two rows", transcripts(evaluated(**PERSONS)), 10, 8_000),
    _attack(
        "descent",
        "descent at delta = 0.01: rho of steps",
        at_delta(staged("descent", ErrorRate(0.3), "l2")),
        10,
        1_000,
    ),
    _attack(
        "fit-descent",
        "fit by descent at delta = 0.01: the same",
        at_delta(fitted(_EASY, perturbation="descent", delta=DELTA)),
        10,
        2_000,
    ),
    _attack(
        "fit-new-persons-delta",
        "the same with persons held out",
        at_delta(fitted(_EASY, perturbation="descent", delta=DELTA, holdout=0.5, **PERSONS)),
        10,
        2_000,
    ),
    _attack(
        "gaussian-moments",
        "second moments at delta = 0.01: their rho",
        at_delta(staged("covariance", R2(0.3), "l1")),
        20,
        1_000,
    ),
    _attack("ledger", "the charge for three releases", in_a_ledger, 12, 2_000),
)
