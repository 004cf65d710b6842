"""What a caller states and nobody checks stands in the release, and what can be checked is."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from expost import AccuracyFirstLogisticRegression, AccuracyFirstModel, ErrorRate, ExcessRisk
from expost.account import geometric_levels
from expost.account.account import Account
from expost.estimators import gradient_path
from expost.exceptions import AccuracyNotReached, SearchInterrupted
from expost.goals.measure import ErrorMeasure
from expost.mechanisms import Covariance, ObjectivePerturbation, Output
from expost.mechanisms.moments.gaussian_moments import GaussianMoments
from expost.noise import NoisePath, SeededSource
from expost.passes.engine import LocalEngine
from expost.passes.sums import Sums, sums_over
from expost.release.page import report
from expost.search import DoublingPlan, doubling_search, run_search, search_path
from expost.search.above_threshold import AboveThreshold, calibrate
from expost.search.levels import StagedSearch
from expost.solve.losses import CappedLogisticLoss, HuberLoss, LogisticLoss, SquaredLoss
from expost.solve.problem import Problem
from expost.table.rows import ONE, MemorySource, Rows
from expost.table.shape import Block, Geometry, l2_ball
from tests.helpers import logistic_rows, regression_rows

N = 20_000


class Louder(LogisticLoss):
    """A loss of somebody's own."""

    name = "louder"


class OwnSource(MemorySource):
    """A source of somebody's own."""


class OwnGoal(ErrorRate):
    """A goal of somebody's own."""


class OwnMechanism(Covariance):
    """A mechanism of somebody's own."""


def problem(loss, n=N):
    return Problem.of(loss, n=n, p=4, regularization=0.05)


def search(rows, loss=None, goal=None, **options):
    asked = ExcessRisk(0.05) if goal is None else goal
    return run_search(rows, problem(loss or SquaredLoss()), asked, random_state=0, **options)


def test_nothing_is_claimed_of_the_librarys_own():
    rows = regression_rows(N)
    assert search(rows).claims == search(MemorySource(rows)).claims == ()


@pytest.mark.parametrize(
    ("loss", "name"), [(LogisticLoss(), "curvature"), (HuberLoss(0.25), "delta"), (CappedLogisticLoss(0.5), "value")]
)
def test_a_loss_of_the_librarys_cannot_be_made_anothers(loss, name):
    """Its constants are proved, and no claim is recorded for them: they are not to be set."""
    with pytest.raises(AttributeError, match=f"{name} of .* cannot be set"):
        setattr(loss, name, 1e-6)
    assert copy.deepcopy(loss) == pickle.loads(pickle.dumps(loss)) == loss


def test_a_loss_of_ones_own_states_what_it_likes():
    class Stated(Louder):
        def __init__(self):
            self.curvature = 0.5

    assert any("Stated" in claim or "loss" in claim for claim in search(logistic_rows(N, 4, 0), Stated()).claims)


class OwnRows(Rows):
    """Rows of somebody's own, who may skip every check."""


class OwnWords(SeededSource):
    """A random source of somebody's own, who says that it protects people."""

    secure = True


class OwnRule:
    """A stopping rule of somebody's own."""

    name, secure, n_tests = "own", True, 1
    epsilon_stop = epsilon_never = epsilon_worst_case = 0.0

    def accepts(self, hypothesis):
        return True


def test_rows_words_and_rules_of_ones_own_are_claimed():
    rows = regression_rows(N)
    own = OwnRows(**{field.name: getattr(rows, field.name) for field in dataclasses.fields(rows)})
    assert search(own).claims == ("every row is what its source declares",)
    request = (rows, problem(SquaredLoss()), ExcessRisk(0.05))
    assert run_search(*request, random_state=OwnWords(1)).claims == (
        "the random words given are uniform, independent and known to nobody",
    )
    assert run_search(*request, random_state=SeededSource(1)).claims == ()
    path = NoisePath(np.array([5]), 1, [0.1], random_state=0)
    assert "the answers of the stopping rule cost no more than it states" in search_path(path, OwnRule()).claims


def test_what_is_handed_over_is_claimed():
    rows = regression_rows(N)
    by_hand = Sums(N, 4, np.eye(4, dtype=np.int64), np.zeros(4, dtype=np.int64), 2**40)
    for given in (sums_over(rows), by_hand):
        (claim,) = search(given).claims
        assert "sums given" in claim
    for generator in (Covariance().on(rows, problem(SquaredLoss())), OwnMechanism().on(rows, problem(SquaredLoss()))):
        assert "generator given" in search(generator).claims[-1]
    assert "OwnMechanism" not in str(search(rows).claims)
    assert "mechanism covariance" in search(generator).claims[0]
    (claim,) = search(OwnSource(rows)).claims
    assert "source declares" in claim


class OwnShape(Geometry):
    """A shape of somebody's own, who says that its rows need next to no noise."""


class OwnBlock(Block):
    """A part of a shape of somebody's own."""


@pytest.mark.parametrize(
    "shape",
    [OwnShape((Block(4, "l2", 1.0),), 1.0, "own"), Geometry((OwnBlock(4, "l2", 1.0),), 1.0, "own"), l2_ball(4)],
    ids=["shape", "block", "library"],
)
def test_a_part_of_ones_own_inside_a_mechanism_is_claimed(shape):
    rows, loss = logistic_rows(N, 4, 0), CappedLogisticLoss(0.5)
    generator = ObjectivePerturbation(shape).on(rows, Problem.of(loss, n=N, p=4, regularization=1.0))
    claims = run_search(generator, generator.problem, ErrorRate(0.45), random_state=0).claims
    own = "own" in shape.name
    assert [claim for claim in claims if "mechanism objective is as private" in claim] == list(claims[:-1])
    assert (len(claims), "generator given" in claims[-1]) == (1 + own, True)


def test_a_problem_of_ones_own_is_claimed():
    class OwnProblem(Problem):
        """Of somebody who says that one row moves its optimum less."""

    usual = problem(SquaredLoss())
    own = OwnProblem(**{field.name: getattr(usual, field.name) for field in dataclasses.fields(usual) if field.init})
    (claim,) = run_search(regression_rows(N), own, ExcessRisk(0.05), random_state=0).claims
    assert "sensitivities of the problem" in claim


WORDS = "the random words given are uniform, independent and known to nobody"


def test_words_of_ones_own_are_claimed_at_every_door():
    def of_path(made):
        measure = ErrorMeasure(lambda count: abs(float(count[0]) - 5000.0), sensitivity=1.0)
        asked = {"failure_probability": 0.05, "n_tests": 8, "sensitivity": measure.effective_sensitivity}
        rule = AboveThreshold(measure, calibrate("tight", target=200.0, **asked), 8, random_state=made(1))
        levels = geometric_levels(0.1, 4.0, 8)
        return search_path(NoisePath(np.array([5000]), 1, levels, random_state=made(2)), rule)

    def of_doubling(made, **options):
        measure = ErrorMeasure(lambda count: abs(count - 5000.0), sensitivity=1.0)
        asked = {"failure_probability": 0.1, "sensitivity": measure.effective_sensitivity, "first": 0.001, "last": 1.0}
        plan = DoublingPlan.of(target=200.0, **asked)
        return doubling_search(lambda epsilon: 5000.0, measure, plan, random_state=made(1), **options)

    def of_gradients(made, **options):
        hours = np.random.default_rng(0).uniform(0, 80, 5000)
        table = {"hours": hours, "late": np.where(hours > 40, "yes", "no")}
        schema = {"target": "late", "classes": ["no", "yes"], "columns": {"hours": {"bounds": [0, 80]}}}
        return next(gradient_path(table, schema, random_state=made(1), **options))

    for door in (of_path, of_doubling, of_gradients):
        assert WORDS in door(OwnWords).claims
        assert WORDS not in door(SeededSource).claims
    assert set(of_doubling(SeededSource, project=float, noise="exact").claims) - set(
        of_doubling(SeededSource).claims
    ) == {
        "what is made of revealed values reads nothing else of the rows",
        "the noise of the black box has exactly its stated law",
    }
    (claim,) = of_gradients(SeededSource, on_invalid="clip").claims
    assert "count as the first class" in claim


class OwnEngine:
    """An engine of somebody's own."""

    def total(self, source, work):
        return LocalEngine(1).total(source, work)


def test_an_engine_of_ones_own_is_claimed(tmp_path):
    source = MemorySource(regression_rows(N))
    source.engine = OwnEngine()
    assert search(source).claims == ("the engine given adds up every row, and each once",)
    hours = np.random.default_rng(0).uniform(0, 80, 5000)
    lines = ["hours,late", *(f"{hour},{'yes' if hour > 40 else 'no'}" for hour in hours)]
    (tmp_path / "table.csv").write_text("\n".join(lines))
    schema = {"target": "late", "classes": ["no", "yes"], "columns": {"hours": {"bounds": [0, 80]}}}
    for engine, claimed in ((OwnEngine(), 1), (LocalEngine(1), 0), ("local", 0)):
        model = AccuracyFirstModel(schema, ErrorRate(0.3), engine=engine, random_state=0).fit(tmp_path / "table.csv")
        assert sum("engine given" in claim for claim in model.release_.claims) == claimed


def test_rows_are_what_was_checked():
    """Whoever made the arrays may write to them afterwards; the rows stay as they were."""
    x, y = np.zeros((N, 4), np.int32), np.zeros(N, np.int32)
    behind = x.view()
    behind.flags.writeable = False
    both = Rows(x, y), Rows(behind, y)
    x[0], y[0] = 1000 * ONE, 1000 * ONE
    for rows in both:
        assert not rows.x.any()
        assert not rows.y.any()
        with pytest.raises(ValueError, match="read-only"):
            rows.x[0] = 1
        assert np.shares_memory(dataclasses.replace(rows).x, rows.x)


def test_a_ball_that_the_optimum_need_not_lie_in_is_refused():
    """Noise on the minimiser is made for the radius: a smaller one by hand would hide a part of it."""
    asked = problem(SquaredLoss())
    for changes in ({"radius": 1e-3}, {"regularization": asked.regularization / 100}):
        with pytest.raises(ValueError, match="need not lie within"):
            run_search(regression_rows(N), dataclasses.replace(asked, **changes), method="fixed", max_epsilon=0.1)


def test_sums_are_judged_by_what_their_rows_declare():
    """As the rows themselves: noise for a smaller shape, or for another ball, would hide too little of a row."""
    rows, asked = regression_rows(N), problem(SquaredLoss())
    small, unit, longer = l2_ball(4, 0.01), l2_ball(4), MemorySource(dataclasses.replace(rows, norm="l2"))
    for given in (
        rows,
        sums_over(rows),
        sums_over(rows) + Sums(0, 4, *(np.zeros((4,) * k, np.int64) for k in (2, 1)), 0),
    ):
        with pytest.raises(ValueError, match="do not declare the shape"):
            GaussianMoments(small).on(given, asked)
        options = {"delta": 1e-6, "max_epsilon": 1.0}
        assert search(GaussianMoments(unit).on(given, asked), **options).status == "released"
    for given in (longer, sums_over(longer), sums_over(longer) + sums_over(rows)):
        with pytest.raises(ValueError, match=r"ℓ₁ ball"):
            run_search(given, dataclasses.replace(asked, n=given.n), ExcessRisk(0.05), perturbation="covariance")


@pytest.mark.parametrize("options", [{"method": "above_threshold", "perturbation": "output"}, {}])
def test_a_loss_of_ones_own(options):
    """Its constants are what all sensitivities are made of."""
    rows = logistic_rows(N, 4, 0)
    assert "loss louder" in search(rows, Louder(), **options).claims[0]
    X = np.random.default_rng(0).uniform(-1, 1, size=(5000, 2))
    model = AccuracyFirstLogisticRegression(
        loss=Louder(), excess_risk=0.1, regularization=0.1, bounds=1.0, classes=(False, True), random_state=0
    )
    release = model.fit(X, X[:, 0] > 0).release_
    assert "loss louder" in release.claims[0]
    assert release.claims[0] in str(release)
    assert "loss louder" in report(release)


def test_a_goal_of_ones_own():
    rows = logistic_rows(N, 4, 0)
    options = {"method": "above_threshold", "perturbation": "output"}
    assert search(rows, LogisticLoss(), ErrorRate(0.4), **options).claims == ()
    assert "goal states" in search(rows, LogisticLoss(), OwnGoal(0.4), **options).claims[0]


@pytest.mark.parametrize("target", [40.0, 0.5])
def test_paths_and_rules_of_ones_own(target):
    counts = np.array([523, 1012, 77])
    path = NoisePath(counts, 2, (0.01, 0.1, 0.2), random_state=0)
    worst = ErrorMeasure(lambda noisy: float(np.abs(noisy - counts).max()), sensitivity=1.0)
    given = {"failure_probability": 0.05, "n_tests": 3, "sensitivity": worst.effective_sensitivity}
    rule = AboveThreshold(worst, calibrate("tight", target=target, **given), 3, random_state=1)
    try:
        release = search_path(path, rule, postprocess=lambda values: values)
    except AccuracyNotReached as refusal:
        release = refusal.release
    assert [word in claim for word, claim in zip(("path", "tested", "revealed"), release.claims, strict=True)] == [
        True
    ] * 3


@pytest.mark.parametrize("many", [{"n": 10 * N}, {"p": 5}])
@pytest.mark.parametrize("perturbation", [None, "covariance", "output"])
def test_a_problem_about_other_rows_is_refused(many, perturbation):
    """Ten times the rows would make every sensitivity a tenth of what it is."""
    rows, other = regression_rows(N), dataclasses.replace(problem(SquaredLoss()), **many)
    for given in (rows, MemorySource(rows), *([sums_over(rows)] if perturbation != "output" else [])):
        with pytest.raises(ValueError, match="Nothing was spent"):
            run_search(given, other, ExcessRisk(0.05), perturbation=perturbation, random_state=0)
    with pytest.raises(ValueError, match="the problem is about"):
        Output().on(rows, other)


# --- what a release says of the noise behind it ----------------------------------------------------------------------


class OwnPath:
    """A path of somebody's own, which does not say what its noise is."""

    levels, size, secure, claims = (0.1,), 1, True, ()

    def __len__(self):
        return len(self.levels)

    def __iter__(self):
        for index, epsilon in enumerate(self.levels):
            yield SimpleNamespace(index=index, epsilon=epsilon, values=np.array([1.0]))


@pytest.mark.parametrize("interrupt", [False, True])
def test_noise_that_nobody_calls_exact_is_not_called_so(interrupt):
    def postprocess(values):
        if interrupt:
            raise KeyboardInterrupt
        return values

    rule = OwnRule()
    try:
        release = search_path(OwnPath(), rule, postprocess=postprocess)
    except SearchInterrupted as stopped:
        release = stopped.release
    assert release.noise == "over the reals"


def test_what_is_concluded_says_which_mechanism_made_it():
    """A search inside another one keeps the name of where its noise went, unless the outer one states another."""
    inner = Account("auto", 2.0, secure=True).released(np.zeros(2), perturbation="objective")
    assert Account("auto", 2.0, secure=True).conclude(inner).perturbation == "objective"
    assert Account("auto", 2.0, secure=True).conclude(inner, perturbation="covariance").perturbation == "covariance"


def test_a_model_that_is_handed_over_is_named_after_what_made_it():
    """A search that turned and ends short may hand over the model of the mechanism that it turned from."""
    goal = SimpleNamespace(said={}, shown=lambda bound: {"shown": bound}, within=None)
    run: Any = object.__new__(StagedSearch)
    run.account = SimpleNamespace(short=lambda model, **details: {"model": model, **details}, reasons=[], delta=1e-6)
    run.reasons, run.stages, run._turned, run._wanted, run._price = [], 1, 0, 1.0, lambda level: 0.0
    run.tests = SimpleNamespace(shown=0.1, count=1)
    run.walk, run._further = SimpleNamespace(noise_levels=None), None
    run.plan = SimpleNamespace(goal=goal, perturbation=None, reason="", each="{stages}")
    run._best = (0.1, "descent's", run._details("descent's"), None)
    run.plan = SimpleNamespace(goal=goal, perturbation="objective", reason="", each="{stages}")
    said = run._refused("the budget is used up")
    assert (said["model"], said["perturbation"]) == ("descent's", None)
