"""What is chosen at a δ: by public numbers alone, and the release says why."""

from __future__ import annotations

import math

import pytest

import expost
from expost import R2, AccuracyFirstModel, ErrorRate
from expost.erm.geometry import Block, Geometry
from expost.privacy.unit import Unit
from expost.rounding import up
from expost.search import ways
from expost.search.ways import predictions, staged_request
from tests.estimators.model_helpers import AMOUNT, LABELS, table

N, DELTA = 30_000, 1e-6


def shape(columns: int, categories: int = 10) -> Geometry:
    """Rows of a few numbers and as many categories."""
    scale = math.sqrt(columns + 1)
    blocks = (Block(2, "box", 1 / scale), *(Block(categories, "l1", 1 / scale) for _ in range(columns - 1)))
    return Geometry(blocks, 1.0, "blocks", scale=scale)


def chosen(columns: int, goal=ErrorRate(0.2), **options):  # noqa: B008
    made = shape(columns)
    return staged_request(None, goal, made, N, 0.1, 10.0, DELTA, pure=made, **options)


@pytest.mark.parametrize("goal", [ErrorRate(0.2), R2(0.8)], ids=lambda goal: goal.name)
def test_few_columns_may_be_pure_and_many_are_not(goal):
    few, many = chosen(2, goal), chosen(30, goal)
    assert not few.mechanism.gaussian or goal.name == "R²"
    assert many.mechanism.gaussian
    costs = [predictions(goal, shape(k), N, 0.1, 10.0, DELTA, pure=shape(k)) for k in (1, 30)]
    assert costs[0]["pure"] / costs[0]["descent"] < 0.5 * costs[1]["pure"] / costs[1]["descent"]


def test_the_cheapest_is_taken_and_the_reason_is_stated():
    for columns in (1, 5, 30):
        request = chosen(columns)
        made = shape(columns)
        costs = predictions(ErrorRate(0.2), made, N, 0.1, 10.0, DELTA, pure=made)
        best = min(costs, key=lambda name: costs[name])
        assert request.mechanism.gaussian == (best != "pure")
        assert f"about {up(costs[best], 2)}" in request.reason
        assert all(up(cost, 2) in request.reason for cost in costs.values())


def test_labels_of_some_thirty_columns_cost_somewhat_less_by_descent():
    """As on Adult and on the example of a survey: pure noise costs 1.3 to 2 times as much there."""
    made = shape(4, 8)
    costs = predictions(ErrorRate(0.2), made, N, 0.1, 10.0, DELTA, pure=made)
    assert 1.0 < costs["pure"] / costs["descent"] < 2.2


def test_pure_noise_is_not_mixed_with_what_adds_in_squares():
    """Several rows of one person, and a budget that several fits share."""
    made = shape(1)
    assert "pure" not in predictions(ErrorRate(0.2), made, N, 0.1, 5.0, DELTA, Unit(2, N // 2, "who"), made)
    with expost.budget(epsilon=1.0, delta=DELTA):
        assert "pure" not in predictions(ErrorRate(0.2), made, N, 0.1, 10.0, DELTA, pure=made)
    assert "pure" in predictions(ErrorRate(0.2), made, N, 0.1, 10.0, DELTA, pure=made)


@pytest.mark.parametrize(("schema", "goal"), [(LABELS, ErrorRate(0.25)), (AMOUNT, R2(0.5))])
def test_a_fit_says_why_before_it_has_looked(schema, goal):
    """The same words whatever the rows are."""
    other = {**table(), "income": ["low", "high"] * 1500, "amount": [1.0, 99.0] * 1500}
    said = []
    for rows in (table(), other):
        model = AccuracyFirstModel(schema, goal, delta=1e-6, random_state=1)
        try:
            release = model.fit(rows).release_
        except expost.AccuracyNotReached as refusal:
            release = refusal.release
        assert release.delta == 1e-6
        reasons = " ".join(release.parameters["reasons"])
        assert "predicted to be cheapest by a formula of public numbers alone" in reasons
        said.append(reasons[reasons.index("was predicted") :].split(")")[0])
    assert said[0] == said[1]


def test_pure_losses_on_an_account_at_delta_are_their_sum(monkeypatch):
    monkeypatch.setattr(ways, "predictions", lambda *_: {"pure": 0.1, "descent": 0.2})
    release = AccuracyFirstModel(LABELS, ErrorRate(0.25), delta=1e-6, random_state=1).fit(table()).release_
    assert "pure noise" in " ".join(release.parameters["reasons"])
    assert release.account_curve().most == release.epsilon
    assert release.epsilon == pytest.approx(release.epsilon_generation + release.epsilon_test)
