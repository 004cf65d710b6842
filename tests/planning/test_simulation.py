"""Searches of made-up rows: few rows stand for many, and what a cap allows is searched for within it."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from expost import plan
from expost.account.account import Account
from expost.mechanisms.objective.perturbation import ObjectiveGenerator
from expost.noise import SeededSource
from expost.planning.synthetic import SyntheticTables
from expost.search.noisy_test import NoisyValue
from expost.search.run import settle
from expost.table.encoding import Encoding

from .helpers import GOALS, STONES, SURVEY, request_of, worlds_of

TASKS = ["classification", "regression"]


def schema_of(task):
    return SURVEY if task == "classification" else STONES


@pytest.mark.parametrize("task", TASKS)
def test_counted_rows_cost_what_so_many_rows_do(task):
    """The same rows written out one by one, through the door that a fit uses, are released at the same price."""
    worlds = worlds_of(task, 6000)
    request = request_of(schema_of(task), GOALS[task], 6000)
    paid = worlds.search(request)
    plan = settle(request)
    released = [k for k, outcome in enumerate(paid) if math.isfinite(outcome.epsilon)]
    for k in (released[0], released[len(released) // 2], released[-1]):
        rows, counts = worlds.rows(k, request.goal)
        often = counts.astype(int)
        many = dataclasses.replace(rows, x=np.repeat(rows.x, often, axis=0), y=np.repeat(rows.y, often))
        assert many.n == 6000
        account = Account("auto", plan.worst_case, secure=False)
        release = plan.search(request.mechanism.on(many, request.problem), account, SeededSource([0, k, 2]))
        assert release.epsilon == pytest.approx(paid[k].epsilon, rel=1e-9)


def test_what_is_planned_within_a_cap_is_what_searches_within_it_pay():
    """Nearly without one two tables pay 0.26, with it 0.38: their last level takes all that is left."""
    goal, cap = GOALS["classification"], 0.4
    priced = plan(SURVEY, goal, rows=6000, max_epsilon=cap, worlds=8).goals[0].cheapest.epsilons
    paid = [
        outcome.epsilon for outcome in worlds_of("classification", 6000, 8).search(request_of(SURVEY, goal, 6000, cap))
    ]
    assert sum(math.isfinite(epsilon) for epsilon in paid) > 2
    assert [epsilon for epsilon in priced if epsilon <= cap] == sorted(filter(math.isfinite, paid))


@pytest.mark.parametrize("task", TASKS)
def test_most_caps_change_little(task):
    """Whoever pays at most the cap without one mostly pays the same with one; the others pay no more than the cap.

    What a target or base rate is measured for, and when to give up, follow the cap, so it is not so for all.
    """
    n, schema, goal = 6000, schema_of(task), GOALS[task]
    worlds = worlds_of(task, n)
    free = [outcome.epsilon for outcome in worlds.search(request_of(schema, goal, n))]
    cap = sorted(free)[len(free) // 2] * 1.001
    capped = [outcome.epsilon for outcome in worlds.search(request_of(schema, goal, n, cap))]
    within = [paid <= cap for paid in free]
    assert 0 < sum(within) < len(free) or len(set(free)) == 1
    assert all(limited <= cap or math.isinf(limited) for limited in capped)
    same = [limited == paid for paid, limited in zip(free, capped, strict=True) if paid <= cap]
    assert sum(same) >= 0.8 * len(same)


@pytest.mark.parametrize("task", TASKS)
def test_a_level_is_the_same_for_every_number_of_rows(task):
    """Noise on a mean gradient, λ and the margin of a test depend on the level alone; ε·n hardly depends on n."""
    few, many = (settle(request_of(schema_of(task), GOALS[task], n)) for n in (4000, 400_000))
    for times in (1, 2, 8):
        x = times * few.start
        one, other = few.shot(x), many.shot(x)
        assert other.typical == pytest.approx(one.typical, rel=1e-9)
        assert other.lam == one.lam
        assert other.epsilon * other.n == pytest.approx(one.epsilon * one.n, rel=0.05 * times)
        assert other.epsilon * other.n > one.epsilon * one.n  # what is scaled from few rows errs by a little, this way
        part = few.schedule.test_part
        margins = [
            NoisyValue.of(few.goal.shortfall_sensitivity(shot.n), 0.0).margin(part * shot.epsilon, 0.04)
            for shot in (one, other)
        ]
        assert margins[0] == pytest.approx(margins[1], rel=0.05 * times)


def spread(task: str, times: int) -> np.ndarray:
    """Return log(ε·n), for three worlds and many draws of noise, with each row so many times."""
    worlds, n = worlds_of(task, 4000), 4000 * times
    request = request_of(schema_of(task), GOALS[task], n)
    plan, paid = settle(request), []
    for k in (0, 5, 9):
        rows, counts = worlds.rows(k, request.goal)
        generator = ObjectiveGenerator(request.mechanism, rows, request.problem, counts * times)
        for seed in range(14):
            release = plan.search(
                generator, Account("auto", plan.worst_case, secure=False), SeededSource([seed, times])
            )
            paid.append(release.epsilon * n)
    return np.log(paid)


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
def test_epsilon_times_rows_is_nearly_constant(task):
    """The same rows a hundred times: within four standard errors, and no other power of n would be."""
    few, many = spread(task, 1), spread(task, 100)
    error = math.hypot(few.std(), many.std()) / math.sqrt(few.size)
    assert abs(many.mean() - few.mean()) < 4 * error + 0.08
    assert math.log(100) / 2 > 4 * error + 0.08  # ε·√n, say


def test_worlds_are_a_function_of_the_seed():
    first, again = (SyntheticTables.of(Encoding(SURVEY), 500, 2, 5) for _ in range(2))
    other = SyntheticTables.of(Encoding(SURVEY), 500, 2, 6)
    assert all((a.x == b.x).all() for a, b in zip(first.features, again.features, strict=True))
    assert (first.features[0].x != other.features[0].x).any()
    request = request_of(SURVEY, GOALS["classification"], 500)
    assert first.search(request) == again.search(request)
    assert isinstance(first.generator(0, request), ObjectiveGenerator)
