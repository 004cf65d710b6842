"""A look at the table before a model is paid for: what it costs, whom it refuses, and how far one row moves it."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from expost import AccuracyFirstModel, ErrorRate
from expost.account.account import Account
from expost.account.composition import ROW
from expost.exceptions import AccuracyNotReached, TargetUnreachable
from expost.noise import SeededSource
from expost.search import request as readable
from expost.search.request import CheckedPlan
from expost.table.encoding import Encoding
from expost.table.schema import Schema
from tests.helpers import readable_cells

N = 2000
RARE = 1e-6


class Onward:
    """A plan that is happy to be asked."""

    worst_case = 1.0

    def search(self, generator, account, source):
        return account.released([0.0])


def looked(columns, labels, seed=0, n=N, budget=1.0):
    plan = CheckedPlan(Onward(), columns, labels, n, budget)
    return plan.search(None, Account("auto", plan.worst_case, secure=False), SeededSource(seed))


def test_it_costs_eighty_over_n():
    for columns, labels in (((N, N), N), ((0, N), N), ((N,), 0)):
        release = looked(columns, labels)
        assert release.epsilon == release.epsilon_probe
        assert Fraction(80, N) <= Fraction(release.epsilon) <= Fraction(80, N) * (1 + Fraction(1, 10**15))


@pytest.mark.parametrize(
    ("columns", "labels", "said"), [((N, 0), N, "hardly any cell"), ((N, N), N // 2, "misspelt"), ((), 0, "misspelt")]
)
def test_tables_that_do_not_fit_are_refused(columns, labels, said):
    release = looked(columns, labels)
    assert release.status == "refused"
    assert said in release.parameters["reasons"][-1]


def test_tables_that_fit_are_rarely_refused():
    """At most e⁻⁶ for each count; a false alarm in a million. A table at the limit is refused half of the time."""
    runs = 2000
    refused = sum(looked((N, N), N, seed).status == "refused" for seed in range(runs))
    assert refused <= stats.binom.isf(RARE, runs, math.exp(-6))
    limit = sum(looked((N,), int(0.85 * N), seed).status == "refused" for seed in range(300))
    assert limit > stats.binom.isf(RARE, 300, math.exp(-6))


def test_the_noise_is_that_of_two_counts(monkeypatch):
    """Scale n/40 for a sensitivity of one, each: what was asked of the sampler."""
    asked = []

    def noted(epsilon, sensitivity, size, *, random_state):
        asked.append((epsilon, sensitivity, size))
        return np.zeros(size, dtype=np.int64)

    monkeypatch.setattr(readable, "discrete_laplace", noted)
    looked((N, 7), N)
    assert asked == [(40 / N, 1, 2)]


NAMES = [("a", "b"), ("y=no", "y=yes"), ("y=", "y= "), ("y=1", "a")]


@pytest.mark.parametrize("names", NAMES, ids=str)
def test_one_row_moves_each_count_by_one_whatever_columns_are_called(names, monkeypatch):
    """Columns may be called like the counts of classes, and must not be counted among them."""
    names = tuple(dict.fromkeys(name.strip() for name in names))
    schema = {"target": "y", "classes": ["no", "yes"], "columns": {name: {"bounds": [0, 1]} for name in names}}
    seen = []

    class Seen(Exception):
        pass

    class Watched(CheckedPlan):
        def search(self, generator, account, source):
            seen.append((min(self.columns), self.labels))
            raise Seen

    monkeypatch.setattr("expost.estimators.model.CheckedPlan", Watched)
    rows = {**{name: [0.5] * 400 for name in names}, "y": ["no", "yes"] * 200}
    for cell, label in ((0.5, "no"), ("x", "?"), (0.5, "?"), ("x", "yes"), (None, None)):
        changed = {name: [cell, *values[1:]] for name, values in rows.items()}
        changed["y"] = [label, *rows["y"][1:]]
        with pytest.raises(Exception, match=r"interrupted \(Seen\)"):
            AccuracyFirstModel(schema, ErrorRate(0.3), on_invalid="clip", random_state=0).fit(changed)
    fewest, known = zip(*seen, strict=True)
    assert len(seen) == 5
    assert (max(fewest), min(fewest)) == (400, 399)
    assert (max(known), min(known)) == (400, 399)


def test_counting_by_names_would_move_by_two():
    schema = Schema.from_dict({"target": "y", "classes": ["no", "yes"], "columns": {"y=1": {"bounds": [0, 1]}}})
    counts = [
        readable_cells(Encoding(schema), {"y=1": [cell, 0.5], "y": [label, "no"]})
        for cell, label in ((0.5, "no"), ("x", "?"))
    ]
    by_name = [sum(count for name, count in found.items() if name.startswith("y=")) for found in counts]
    assert by_name[0] - by_name[1] == 2


def test_a_budget_too_small_to_look():
    with pytest.raises(TargetUnreachable, match="Nothing was spent"):
        CheckedPlan.left(N, 80 / N, ROW)
    assert CheckedPlan.left(N, 81 / N, ROW) == pytest.approx(1 / N)
    assert CheckedPlan(Onward(), (N,), N, N, 81 / N).worst_case == 81 / N


def test_counts_are_not_shown():
    plan = CheckedPlan(Onward(), (1234,), 4321, N, 1.0)
    assert "1234" not in repr(plan)
    assert "4321" not in repr(plan)


def test_the_look_is_part_of_the_budget():
    rng = np.random.default_rng(0)
    a = rng.uniform(0, 1, N)
    table = {"a": a, "y": np.where(rng.random(N) < 0.5, "no", "yes")}
    schema = {"target": "y", "classes": ["no", "yes"], "columns": {"a": {"bounds": [0, 1]}}}
    for budget in (0.5, 1.0, 3.0):
        with pytest.raises(AccuracyNotReached) as caught:
            AccuracyFirstModel(schema, ErrorRate(0.2), on_invalid="clip", max_epsilon=budget, random_state=0).fit(table)
        release = caught.value.release
        assert 80 / N + 20 / N <= release.epsilon_probe <= 80 / N + 0.1 * budget  # and the base rate
        assert 80 / N < release.epsilon <= budget
