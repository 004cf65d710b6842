"""Pages that several tests look at."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from expost import R2, AccuracyFirstModel, ErrorRate, Precision, Recall, Release, Schema
from expost.datasets import SURVEY_SCHEMA, make_survey
from expost.planning.explorer import explorer_data

SURVEY = Schema.from_dict(SURVEY_SCHEMA)
NUMBERS = Schema.from_dict(
    {"target": "y", "target_bounds": [0, 10], "columns": {"a": {"bounds": [0, 1]}, "b": {"boolean": True}}}
)


@cache
def release() -> Release:
    model = AccuracyFirstModel(SURVEY, ErrorRate(0.25), max_epsilon=2.0, random_state=1)
    return model.fit(make_survey(20_000)).release_


@cache
def survey_data() -> dict[str, Any]:
    return explorer_data(SURVEY, release=release(), worlds=2, schema_file="my survey.toml")


def few(kind: type[Any], *offered: float, **stated: Any) -> dict[str, Any]:
    """Compute a page of these goals alone: every price takes a search in every table."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kind, "offered", offered)
        return explorer_data(NUMBERS, rows=3000, worlds=2, **stated)


@cache
def numbers_data() -> dict[str, Any]:
    return few(R2, 0.2, 0.6, 0.8, 0.9)


DELTA = 1e-6
TWO = {"target": "y", "classes": ["no", "yes"], "columns": NUMBERS.to_dict()["columns"]}
LABELS = Schema.from_dict(TWO)


@cache
def delta_data() -> dict[str, Any]:
    return few(R2, 0.2, 0.6, delta=DELTA)


@cache
def joint_data() -> dict[str, Any]:
    return explorer_data(LABELS, goal=Recall(0.7) & Precision(0.4), rows=3000, worlds=2)
