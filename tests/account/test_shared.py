"""A budget that several runs share: what is left, what closes it, and what it refuses."""

from __future__ import annotations

import multiprocessing
import os
import re
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from expost import AccuracyFirstLogisticRegression, AccuracyFirstModel, ErrorRate, Precision, Recall, budget, compose
from expost.account.composition import NOTHING, Curve
from expost.estimators import gradient_path
from expost.exceptions import AccuracyNotReached, SearchInterrupted, TargetUnreachable
from expost.goals.measure import ErrorMeasure
from expost.mechanisms.descent.gradient_descent import Walk
from expost.noise import NoisePath
from expost.search import search_path
from expost.search.above_threshold import AboveThreshold
from tests.estimators.model_helpers import LABELS, table

DELTA = 1e-6


def model(seed=1, goal=0.25, **options):
    return AccuracyFirstModel(LABELS, ErrorRate(goal), **{"delta": DELTA, "random_state": seed, **options})


def test_fits_add_up_in_squares_and_never_exceed_it():
    releases, said = [], ""
    with budget(0.5, DELTA) as shared:
        for seed in range(40):
            try:
                releases.append(model(seed, goal=0.18).fit(table()).release_)
            except AccuracyNotReached as refusal:
                releases.append(refusal.release)
            except TargetUnreachable as error:  # what is left would drown in noise: nothing is spent on that
                said = str(error)
                break
    spent = sum((release.account_curve() for release in releases), NOTHING)
    assert spent.losses == pytest.approx(shared.spent.losses)
    assert shared.epsilon_spent <= 0.5
    assert len(releases) > 3
    assert sum(release.epsilon for release in releases) > 0.5  # one by one they would come to more
    assert "what is left of the shared budget" in said
    left = [release.parameters["budget"]["rho_left"] for release in releases]
    assert left == sorted(left, reverse=True)


def test_no_outcome_inside_costs_more_than_the_budget():
    with budget(0.5, DELTA):
        inside = model(goal=0.25).fit(table()).release_
        lower = model(goal=0.25, max_epsilon=0.3).fit(table()).release_
    assert (inside.epsilon_worst_case, lower.epsilon_worst_case) == (0.5, 0.3)
    together = compose([inside, lower], delta=DELTA)
    assert 0 < together.epsilon_usual < together.epsilon
    assert compose([inside, lower]).epsilon_usual == compose([inside, lower]).epsilon


def test_a_look_at_the_table_counts():
    with budget(3.0, DELTA) as shared:
        release = model(on_invalid="clip").fit(table()).release_
    assert release.epsilon_probe > 0
    assert shared.spent.losses == pytest.approx(release.account_curve().losses)
    with budget(0.01, DELTA) as shared, pytest.raises(TargetUnreachable, match="Nothing was spent"):
        model(on_invalid="clip").fit(table())
    assert shared.epsilon_spent == 0.0


def test_a_path_counts():
    with budget(1.0, DELTA) as shared:
        *_, last = gradient_path(table(), LABELS, random_state=1)
        assert last.epsilon <= 1.0
        assert shared.epsilon_spent == pytest.approx(last.epsilon)
    *_, alone = gradient_path(table(), LABELS, random_state=1)
    assert alone.epsilon > 1.0
    assert "budget" not in alone.parameters


def test_an_interruption_uses_it_up(monkeypatch):
    def fails(self, rho, source):
        raise KeyError("a private value")

    with budget(3.0, DELTA) as shared:
        with monkeypatch.context() as patched:
            patched.setattr(Walk, "stage", fails)
            with pytest.raises(SearchInterrupted):
                model().fit(table())
        assert (shared.epsilon_spent, shared.rho_left) == (3.0, 0.0)
        with pytest.raises(ValueError, match="did not come to its end"):
            model().fit(table())


@pytest.mark.parametrize("delta", [0.0, 1e-7])
def test_another_delta_is_refused(delta):
    with budget(3.0, DELTA) as shared, pytest.raises(ValueError, match="pass delta=1e-06"):
        model(delta=delta).fit(table())
    assert shared.spent == NOTHING


def test_it_is_for_the_block_only():
    with budget(3.0, DELTA) as shared:
        pass
    model(delta=0.0).fit(table())
    assert shared.spent == NOTHING
    with shared, pytest.raises(ValueError, match="nested"), budget(1.0, DELTA):
        pass


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, DELTA), (-1.0, DELTA), (1.0, 0.0), (1.0, 1.0)])
def test_not_a_budget(epsilon, delta):
    with pytest.raises(ValueError, match="must be"):
        budget(epsilon, delta)


def test_what_is_left():
    with budget(1.0, DELTA) as shared:
        pass
    assert shared.fits(Curve.gaussian(shared.rho_left), None)
    assert not shared.fits(Curve.gaussian(1.01 * shared.rho_left), None)
    assert repr(shared) == "Budget(epsilon=1, delta=1e-06, spent=0)"


def test_an_interruption_before_the_first_step_uses_it_up_too(monkeypatch):
    """The look at the table is a draw: runs that die right after it must not leave the budget as it was."""

    def dies(self, *arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("expost.search.levels.StagedSearch.__init__", dies)
    with budget(2.0, DELTA) as shared:
        with pytest.raises(SearchInterrupted):
            model(on_invalid="clip").fit(table())
        assert shared.epsilon_spent == 2.0
        with pytest.raises(ValueError, match="did not come to its end"):
            model(on_invalid="clip").fit(table())


def test_a_path_does_not_open_what_another_left_closed(monkeypatch):
    with budget(2.0, DELTA) as shared:
        first, second = gradient_path(table(), LABELS, random_state=1), gradient_path(table(), LABELS, random_state=2)
        next(first)
        next(second)
        with monkeypatch.context() as broken:
            broken.setattr(Walk, "stage", lambda self, rho, source: 1 / 0)
            with pytest.raises(SearchInterrupted):
                next(first)
        with pytest.raises(ValueError, match="did not come to its end"):
            next(second)
        assert shared.epsilon_spent == 2.0


def test_searches_that_book_no_curve_do_not_begin_inside():
    path = NoisePath(np.array([1000]), 1, [0.1, 0.2], random_state=0)
    rule = AboveThreshold.with_epsilon(
        ErrorMeasure(lambda values: 0.0, sensitivity=1.0), epsilon=1.0, threshold=20.0, n_tests=2, random_state=0
    )
    with budget(0.01, DELTA) as shared:
        with pytest.raises(ValueError, match="pure privacy"):
            search_path(path, rule)
        assert shared.epsilon_spent == 0.0
    assert search_path(path, rule).status == "released"


def test_units_are_not_mixed():
    persons = {**table(), "who": [str(i // 2) for i in range(len(next(iter(table().values()))))]}
    with budget(3.0, DELTA):
        first = next(iter(gradient_path(table(), LABELS, random_state=1)))
        with pytest.raises(ValueError, match="is not a loss for the other"):
            model(person="who", rows_per_person=2).fit(persons)
    other = model(person="who", rows_per_person=2).fit(persons).release_
    with pytest.raises(ValueError, match="do not add up"):
        compose([first, other])


def test_a_path_begun_before_is_counted_with_all_it_cost():
    path = gradient_path(table(), LABELS, random_state=1)
    before = next(path)
    with budget(0.5, DELTA) as shared:
        inside = list(path)
    assert before.epsilon < 0.5
    assert inside
    assert all(release.epsilon <= 0.5 for release in inside)
    assert shared.epsilon_spent == pytest.approx(inside[-1].epsilon)
    dear = gradient_path(table(), LABELS, random_state=1)
    while next(dear).epsilon <= 0.5:
        pass
    with budget(0.5, DELTA) as shared:
        assert list(dear) == []
    assert shared.epsilon_spent == 0.0
    assert not shared.closed


def test_a_path_stays_with_the_budget_it_was_counted_by():
    with budget(0.5, DELTA) as shared:
        first, second = gradient_path(table(), LABELS, random_state=1), gradient_path(table(), LABELS, random_state=2)
        next(first)
    inside = shared.epsilon_spent
    next(first)
    assert shared.epsilon_spent > inside
    with budget(3.0, DELTA) as other, pytest.raises(ValueError, match="counted by another budget"):
        next(first)
    assert other.spent == NOTHING
    with budget(3.0, DELTA) as other:
        next(second)  # none of it was inside the first
    assert 0.0 < other.epsilon_spent < 3.0


def test_threads_do_not_take_a_budget_twice():
    """Paths begun inside are counted wherever they go on; one that finds the budget taken stops."""
    with budget(0.5, DELTA) as shared:
        paths = [gradient_path(table(), LABELS, random_state=seed) for seed in range(4)]
        released = [next(path) for path in paths]

    def rest(path):
        try:
            return list(path)
        except ValueError:
            return []

    with ThreadPoolExecutor(4) as pool:
        more = [release for found in pool.map(rest, paths) for release in found]
    assert len(released + more) >= 4
    assert shared.epsilon_spent <= 0.5


def _in_child(path, answers):
    def said(work):
        try:
            work()
        except ValueError as error:
            return f"{error} {error.__notes__ if hasattr(error, '__notes__') else ''}"
        return "ran"

    def own():
        with budget(3.0, DELTA):
            model().fit(table())

    answers.put([said(lambda: model().fit(table())), said(lambda: next(path)), said(own)])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing is inherited without a fork")
def test_a_fork_inside_is_not_counted_and_does_not_begin():
    context = multiprocessing.get_context("fork")
    answers = context.SimpleQueue()
    with budget(3.0, DELTA) as shared:
        path = gradient_path(table(), LABELS, random_state=1)
        next(path)
        before = shared.epsilon_spent
        child = context.Process(target=_in_child, args=(path, answers))
        child.start()
        fit, further, own = answers.get()
        child.join()
        assert shared.epsilon_spent == before
        model().fit(table())
    for said in (fit, further):
        assert "was forked inside expost.budget" in said
    assert "Nothing was spent" in fit
    assert own == "ran"


def test_a_loss_that_has_a_pure_way_alone_says_so():
    X = np.random.default_rng(0).uniform(-1, 1, size=(2_000, 2))
    fit = AccuracyFirstLogisticRegression(excess_risk=0.05, bounds=1.0, classes=(False, True), delta=DELTA)
    with budget(3.0, DELTA), pytest.raises(ValueError, match="searched for with pure noise") as said:
        fit.fit(X, X[:, 0] > 0)
    assert "got 0" not in str(said.value)


@pytest.mark.parametrize(("epsilon", "seed"), [(0.5, 2), (1.2, 0)])
def test_no_model_is_paid_for_that_cannot_be_tested(epsilon, seed):
    """The last level takes all that is left, and a cut-off is found for its model before it is tested."""
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 1, (7000, 4))
    positive = rng.random(7000) < 1 / (1 + np.exp(8.2 - 6 * x[:, 0] - 3 * x[:, 1]))
    cells = {f"x{i}": x[:, i] for i in range(4)} | {"y": np.where(positive, "yes", "no"), "who": np.arange(7000)}
    columns = {f"x{i}": {"bounds": [0, 1]} for i in range(4)}
    schema = {"target": "y", "classes": ["no", "yes"], "columns": columns, "person": "who", "rows_per_person": 3}
    fit = AccuracyFirstModel(schema, Recall(0.6) & Precision(0.25), delta=DELTA, random_state=seed).fit
    with budget(epsilon, DELTA), pytest.raises(AccuracyNotReached) as error:
        fit({name: np.repeat(values, 3) for name, values in cells.items()})
    stages, looks = re.search(r"(\d+) stage\(s\); (\d+) look", error.value.release.parameters["reasons"][0]).groups()
    assert int(stages) == int(looks) > 1
