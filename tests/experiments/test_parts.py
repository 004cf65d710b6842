"""Seeds, statistics, theory curves and the progress bar."""

import io
import math

import numpy as np
import pytest

from experiments.curves import Facts, curve
from experiments.methods import LOGISTIC, RIDGE
from experiments.plan import PAPER_ALPHAS, Job, Plan, paper_plan
from experiments.runner import Bar
from experiments.summary import RISK_FACTORS
from experiments.table import Row
from tests.experiments.helpers import small_plan, small_task


def facts(kind="regression", **changes):
    radius = 0.005**-0.5 if kind == "regression" else math.sqrt(2 * math.log(2) / 0.005)
    p = 77 if kind == "regression" else 38
    values = {"name": "x", "kind": kind, "n": 100_000, "p": p, "notes": (), "regularization": 0.005}
    values |= {"failure_probability": 0.1, "n_levels": 1000, "trials": 40, "alphas": PAPER_ALPHAS, "radius": radius}
    values |= {"smaller_radius": radius / 2, "optimum_norm": 1.0, "null_excess_risk": 0.1}
    return Facts(**(values | changes))


def test_the_paper_grid():
    assert PAPER_ALPHAS[0] == 0.005
    assert PAPER_ALPHAS[-1] == 0.2
    assert len(PAPER_ALPHAS) == 40
    ridge, logistic = paper_plan("regression"), paper_plan("classification")
    assert (ridge.trials, logistic.trials, ridge.n_levels) == (80, 40, 1000)
    assert (ridge.regularization, ridge.failure_probability) == (0.005, 0.1)
    quick = paper_plan("regression", quick=True)
    assert set(quick.alphas) <= set(PAPER_ALPHAS)
    quoted = {key for table in RISK_FACTORS.values() for key in table}
    assert {alpha for _, alpha in quoted} <= set(quick.alphas)
    assert {name for name, _ in quoted} <= {method.name for method in RIDGE}


def test_the_published_methods_solve_as_the_authors_do():
    as_published = [method for method in RIDGE if method.rescaled]
    assert {method.name for method in as_published} == {"reduction-covariance", "doubling-covariance"}
    assert all(method.full_matrix and method.calibration == "published" for method in as_published)
    assert all(method.perturbation == "output" for method in LOGISTIC)


def test_seeds_are_fixed_for_ever_and_differ():
    plan = small_plan()
    seeds = {job.key: plan.seed_of("small", job) for job in plan.jobs()}
    assert len(set(seeds.values())) == len(seeds)
    assert seeds["reduction-covariance", 0.05, 0] == 202639135366566  # a change would orphan every table kept
    job = Job(RIDGE[0], 0.05, 0)
    assert small_plan(trials=9, alphas=(0.05,)).seed_of("small", job) == plan.seed_of("small", job)
    assert small_plan(seed=1).seed_of("small", job) != plan.seed_of("small", job) != plan.seed_of("other", job)


def test_plans_check_their_grid():
    for wrong in ({"alphas": ()}, {"alphas": (0.1, 0.1)}, {"alphas": (-0.1,)}, {"alphas": (math.inf,)}, {"trials": 0}):
        with pytest.raises(ValueError, match=r"target|trials"):
            Plan(RIDGE, **({"trials": 1} | wrong))


def test_curves_count_refusals_in_epsilon_only():
    def row(trial, epsilon, excess):
        status = "released" if excess is not None else "refused"
        return Row("d", "m", "c", "output", 0.1, trial, 0, status, epsilon, 0.0, epsilon, None, 1, excess, excess, 0.5)

    rows = [row(0, 1.0, 0.02), row(1, 3.0, None)]
    assert curve(rows, "m", "epsilon").mean.tolist() == [2.0]
    assert curve(rows, "m", "excess_risk").mean.tolist() == [0.02]
    assert np.isnan(curve(rows[1:], "m", "excess_risk").mean).all()
    assert curve(rows, "other", "epsilon").alphas.size == 0


def test_private_sgd_says_nothing_about_the_ridge_experiment():
    ridge, logistic = facts(), facts("classification")
    assert all(math.isinf(ridge.sgd_epsilon(alpha, 100_000)) for alpha in PAPER_ALPHAS)
    needed = ridge.sgd_rows_needed(0.05)
    assert 100_000 < needed < 1_000_000
    assert math.isinf(ridge.sgd_epsilon(0.05, needed - 1))
    assert ridge.sgd_epsilon(0.05, needed) < math.inf
    assert ridge.sgd_epsilon(0.05, 1_000_000) > 100
    # with the logistic loss's own Lipschitz constant its theorem speaks, beyond all use
    assert logistic.sgd_rows_needed(0.05) < 100_000
    assert 100 < logistic.sgd_epsilon(0.05, 100_000) < math.inf
    assert logistic.sgd_rows_needed(0.05, lipschitz=logistic.radius + 1) > 100_000


def test_facts_look_at_the_data():
    task, plan = small_task("classification"), small_plan("classification")
    found = Facts.of(task, plan)
    assert (found.n, found.p, found.trials) == (3000, 4, 3)
    assert 0 < found.null_excess_risk < math.log(2)
    assert 0 < found.optimum_norm < found.smaller_radius < found.radius


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_the_bar_on_a_terminal_and_in_a_log():
    for stream in (Terminal(), io.StringIO()):
        now = iter([0.0, 20.0, 20.01, 40.0]).__next__
        bar = Bar(stream, clock=now)
        for done in (1.0, 26.0, 27.0, 51.0):
            bar(done, 101.0)
        bar.close()
        text = stream.getvalue()
        assert "26 %, about 1 min 00 s left" in text
        assert "50 %, about 40 s left" in text
        assert text.count("left") == 2  # not for every trial
        assert text.endswith("\r\033[K" if stream.isatty() else "\n")
