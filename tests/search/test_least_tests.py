"""No model is paid for that no affordable test could show to do, and what is out of reach is refused before it is."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest
from scipy import stats

import expost
from expost import R2, AccuracyFirstModel, ErrorRate, Ledger, LogLoss
from expost.exceptions import AccuracyNotReached, TargetUnreachable
from expost.mechanisms.descent.gradient_descent import GradientDescent
from expost.mechanisms.objective.perturbation import ObjectivePerturbation
from expost.search import levels, run_search
from expost.solve.problem import Problem
from expost.table.encoding import Encoding
from expost.table.schema import Schema
from expost.table.shape import block_geometry, cheapest_geometry
from tests.helpers import RARE

LABELS = {"target": "y", "classes": ["a", "b"], "columns": {"x": {"bounds": [-1, 1]}}}
NUMBERS = {"target": "y", "target_bounds": [-1, 1], "columns": {"x": {"bounds": [-1, 1]}}}


def perfect(n: int, part: float | None = None) -> dict[str, np.ndarray]:
    """A table whose labels, or numbers in a part of their bounds, follow from x."""
    x = np.random.default_rng(0).uniform(-1, 1, n)
    return {"x": x, "y": np.where(x > 0, "b", "a") if part is None else part * x}


def outcome(schema, goal, rows, seed, **options):
    try:
        return AccuracyFirstModel(schema, goal, random_state=seed, **options).fit(rows).release_
    except AccuracyNotReached as refusal:
        return refusal.release
    except TargetUnreachable:
        return None


SMALL = [
    (LABELS, LogLoss(0.6), perfect(200), {"delta": 1e-6, "max_epsilon": 1.0}),
    (LABELS, LogLoss(0.6), perfect(450), {"delta": 1e-6, "max_epsilon": 1.0}),
    (LABELS, ErrorRate(0.2), perfect(100), {"delta": 1e-6, "max_epsilon": 1.0}),
    (LABELS, ErrorRate(0.05), perfect(120), {"max_epsilon": 1.0}),
    (NUMBERS, R2(0.9), perfect(1000, 0.5), {}),
    (NUMBERS, R2(0.9), perfect(3000, 0.2), {}),
    (NUMBERS, R2(0.9), perfect(3000, 0.2), {"delta": 1e-6}),
    (NUMBERS, R2(0.5), perfect(1000, 0.05), {}),
]


def unseen(release) -> bool:
    """Whether models were paid for and none of them was tested."""
    return release is not None and release.epsilon_generation > 0 and release.epsilon_test == 0


@pytest.mark.parametrize("place", range(len(SMALL)))
def test_no_model_is_paid_for_that_nobody_could_test(place):
    schema, goal, rows, options = SMALL[place]
    assert not any(unseen(outcome(schema, goal, rows, seed, **options)) for seed in range(4))


def test_control_levels_without_their_least_test_are_noticed(monkeypatch):
    monkeypatch.setattr(levels.StagedPlan, "least_test", lambda self, stage=1: 0.0)
    found = [outcome(*SMALL[place][:3], seed, **SMALL[place][3]) for place in (1, 3, 4) for seed in range(2)]
    assert any(map(unseen, found))


def test_a_target_that_fills_its_bounds_is_not_called_out_of_reach():
    """x = y = ±1: the best table there can be for R²; by a guess of the spread it would be refused.

    More than half of the searches end with a model (binomial; nine in ten do, so a false alarm is rarer than RARE).
    """
    y = np.where(np.arange(300) % 2, 1.0, -1.0)
    found = [outcome(NUMBERS, R2(0.9), {"x": y, "y": y}, seed) for seed in range(100)]
    assert None not in found
    released = sum(release.status == "released" for release in found)
    assert stats.binomtest(released, len(found), 0.5, alternative="greater").pvalue < RARE


def test_what_no_table_could_show_is_refused_before_anything_is_spent():
    with pytest.raises(TargetUnreachable, match="Nothing was spent"):
        AccuracyFirstModel(NUMBERS, R2(0.9), max_epsilon=2.0).fit(perfect(30, 1.0))


@pytest.mark.parametrize("way", ["pure", "turning"])
@pytest.mark.parametrize("inside", ["nothing", "budget", "ledger"])
def test_a_generator_is_searched_inside_a_budget_or_on_a_ledger(way, inside, tmp_path):
    """A goal that is hard enough to turn: nothing dies on the way, and no cap is passed."""
    rng = np.random.default_rng(3)
    x = rng.uniform(-1, 1, 4000)
    table = {"x": x, "y": np.where(x + rng.normal(0, 0.5, 4000) > 0, "b", "a")}
    encoding = Encoding(Schema.from_dict(LABELS))
    rows, goal = encoding.encode(table), ErrorRate(0.18)
    problem = Problem.of(goal.chain().loss, n=rows.n, p=rows.p, regularization=1.0)
    pure = cheapest_geometry(encoding)
    mechanism = ObjectivePerturbation(pure) if way == "pure" else GradientDescent(block_geometry(encoding), pure)
    generator = mechanism.on(rows, problem)
    ledger = Ledger.create(tmp_path / "l.db", "d", cap=5.0, delta=1e-6) if inside == "ledger" else None
    with expost.budget(2.0, 1e-6) if inside == "budget" else nullcontext() as budget:
        try:
            release = run_search(
                generator, problem, goal, delta=1e-6, max_epsilon=2.0, ledger=ledger, random_state=None if ledger else 1
            )
        except AccuracyNotReached as refusal:
            release = refusal.release
    assert release.epsilon_test > 0
    assert "interrupted" not in release.parameters
    assert release.epsilon <= 2.0
    assert budget is None or budget.epsilon_spent <= 2.0
