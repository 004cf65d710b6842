"""The null model as the zeroth candidate: what the question costs, and when it need not be asked."""

import math

import numpy as np
import pytest

from expost import ExcessRisk
from expost.account.account import Account
from expost.exceptions import TargetUnreachable
from expost.mechanisms import Covariance, Output, mechanism_of
from expost.mechanisms.mechanism import NullQuestion
from expost.noise import SeededSource
from expost.search import run_search
from expost.solve.losses import LogisticLoss, SquaredLoss
from expost.solve.problem import Problem
from tests.helpers import CountingSource, logistic_rows, problem_of, ridge_rows


def test_cost_by_hand():
    """n = 100,000, λ = .005, α = .05, δ = .02: Δ = 2/n, s = .6·√(2λα)/ln 25."""
    problem = Problem.of(SquaredLoss(), n=100_000, p=5, regularization=0.005)
    scale = 0.6 * math.sqrt(2 * 0.005 * 0.05) / math.log(25)
    question = NullQuestion.of(problem, 0.05, 0.02, Covariance().errors(problem))
    assert question.cost == pytest.approx(2e-5 / scale, rel=1e-3)


@pytest.mark.parametrize(("loss", "perturbation"), [(SquaredLoss(), "covariance"), (LogisticLoss(), "output")])
def test_a_target_that_any_rows_meet_costs_nothing(loss, perturbation):
    rows = ridge_rows(200, 3, 1) if loss.labels == "real" else logistic_rows(200, 3, 1)
    problem, options = problem_of(rows, loss), {"perturbation": perturbation, "random_state": 0}
    for budget in (None, 1e-9):
        release = run_search(rows, problem, ExcessRisk(loss.null_value), max_epsilon=budget, **options)
        assert release.epsilon == 0
        assert not np.asarray(release.hypothesis).any()
        assert "whatever the rows" in release.parameters["reasons"][0]
    generator = mechanism_of(perturbation).on(rows, problem)
    assert generator.risk.excess(np.zeros(rows.p)) <= loss.null_value
    assert run_search(rows, problem, ExcessRisk(0.99 * loss.null_value), **options).epsilon > 0


@pytest.mark.parametrize("mechanism", [Covariance(), Output()], ids=lambda mechanism: mechanism.name)
def test_asking_costs_no_more_than_was_settled(mechanism):
    """A yes costs what is known without the rows, and a clear no an eighth of it."""
    rows = ridge_rows(2_000, 3, 4)
    problem = problem_of(rows, SquaredLoss(), lam=0.5)
    risk = mechanism.on(rows, problem).risk
    for alpha in (1e-6, 0.4):
        question = NullQuestion.of(problem, alpha, 0.02, mechanism.errors(problem))
        account = Account("certified", math.inf, False)
        accepted = question.ask(risk, account, SeededSource(1))
        assert account.test == account.total == question.cost * (1 if accepted else 1 / 8) > 0
        assert accepted == (alpha == 0.4)
        assert account.reasons[0].endswith(": good enough" if accepted else "not shown to be good enough")


def test_what_holds_for_any_rows_is_not_asked():
    problem, source = Problem.of(SquaredLoss(), n=200, p=3, regularization=0.01), CountingSource()
    question = NullQuestion.of(problem, SquaredLoss().null_value, 0.02, Covariance().errors(problem))
    account = Account("certified", math.inf, False)
    assert question.holds_for_any_rows
    assert question.ask(None, account, source)  # no rows are needed
    assert (account.total, question.cost, source.drawn) == (0.0, 0.0, 0)


def test_a_question_beyond_the_budget_names_enough_rows():
    problem = Problem.of(SquaredLoss(), n=200, p=3, regularization=0.01)
    errors = Covariance().errors(problem)
    with pytest.raises(TargetUnreachable, match="Nothing was spent") as raised:
        NullQuestion.of(problem, 0.001, 0.02, errors).require_affordable(0.1)
    rows = int(str(raised.value).split("at least ")[1].split(" rows")[0].replace(",", ""))
    enough, too_few = (Problem.of(SquaredLoss(), n=n, p=3, regularization=0.01) for n in (rows, int(0.95 * rows)))
    NullQuestion.of(enough, 0.001, 0.02, errors).require_affordable(0.1)
    with pytest.raises(TargetUnreachable):
        NullQuestion.of(too_few, 0.001, 0.02, errors).require_affordable(0.1)
