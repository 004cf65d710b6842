"""Schemas to plan for, and plans that several tests look at."""

from __future__ import annotations

from functools import cache

from expost import R2, ErrorRate, Schema, plan
from expost.datasets import SURVEY_SCHEMA
from expost.estimators import AccuracyFirstModel
from expost.goals import Goal
from expost.planning import PricePlan
from expost.planning.synthetic import SyntheticTables, no_cap
from expost.search import Request
from expost.table.encoding import Encoding

SURVEY = Schema.from_dict(SURVEY_SCHEMA)
STONES = Schema.from_dict(
    {
        "target": "price",
        "target_bounds": [0, 20000],
        "columns": {
            "weight": {"bounds": [0, 1000000]},
            "depth": {"bounds": [50, 75], "missing": "indicator"},
            "cut": {"categories": ["a", "b", "c", "d", "e", "f", "g", "h"], "other": True},
            "old": {"boolean": True},
            "width": {"bounds": [1, 400], "transform": "sqrt"},
        },
    }
)
GOALS = {"classification": ErrorRate(0.2), "regression": R2(0.6)}


@cache
def planned(rows: int = 5000, cap: float | None = 2.0, worlds: int = 12) -> PricePlan:
    return plan(SURVEY, [ErrorRate(0.3), ErrorRate(0.26)], rows=rows, max_epsilon=cap, worlds=worlds)


def request_of(schema: Schema, goal: Goal, n: int, cap: float | None = None) -> Request:
    encoding = Encoding(schema)
    if cap is None:
        cap = no_cap(AccuracyFirstModel(schema, goal).request_for(n, schema, encoding))
    return AccuracyFirstModel(schema, goal, max_epsilon=cap).request_for(n, schema, encoding)


@cache
def worlds_of(task: str, n: int, worlds: int = 10) -> SyntheticTables:
    return SyntheticTables.of(Encoding(SURVEY if task == "classification" else STONES), n, worlds, 0)
