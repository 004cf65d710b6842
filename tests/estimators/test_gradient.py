"""The path alone: what it costs at every stage, and where it ends."""

from __future__ import annotations

import numpy as np
import pytest

from expost.estimators import gradient, gradient_path
from expost.exceptions import SearchInterrupted
from tests.estimators.model_helpers import AMOUNT, LABELS, table


@pytest.mark.parametrize("schema", [LABELS, AMOUNT], ids=["labels", "amount"])
def test_losses_grow_to_the_budget(schema):
    path = list(gradient_path(table(), schema, max_epsilon=3.0, random_state=3))
    losses = [release.epsilon for release in path]
    assert len(path) > 1
    assert losses == sorted(losses)
    assert losses[-1] <= 3.0
    assert all(release.delta == 1e-6 and not release.secure for release in path)
    assert path[-1].promise.statement == "no accuracy is promised"


def test_models_get_better():
    *_, last = gradient_path(table(), LABELS, random_state=3)
    said = dict(zip(last.parameters["columns"], last.parameters["coef"], strict=True))
    plain = table()
    margin = last.parameters["intercept"] + said["hours"] * np.array(plain["hours"])
    margin += np.array([said[f"sector={cell}"] for cell in plain["sector"]])
    assert np.mean((margin > 0) == (np.array(plain["income"]) == "high")) > 0.85


def test_nothing_is_drawn_before_it_is_asked_for():
    path = gradient_path(table(), LABELS, max_epsilon=0.001, random_state=3)
    assert list(path) == []


@pytest.mark.parametrize(
    ("options", "match"),
    [({"delta": 0.0}, "delta above 0"), ({"max_epsilon": -1.0}, "max_epsilon"), ({"on_invalid": "x"}, "on_invalid")],
)
def test_refused_at_once(options, match):
    with pytest.raises(ValueError, match=match):
        gradient_path(table(), LABELS, **options)
    with pytest.raises(ValueError, match="for classes"):
        gradient_path(table(), AMOUNT, probabilities=True)


def test_an_interruption_after_a_stage_was_drawn_is_charged(monkeypatch):
    """Whatever it is that is interrupted: also where the model is put into words."""

    def stopped(*_):
        raise KeyboardInterrupt

    path = gradient_path(table(), LABELS, random_state=0)
    first = next(path)
    monkeypatch.setattr(gradient, "in_table_units", stopped)
    with pytest.raises(SearchInterrupted) as caught:
        next(path)
    assert caught.value.release.epsilon == first.epsilon_worst_case > first.epsilon
