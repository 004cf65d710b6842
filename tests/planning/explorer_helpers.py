"""Pages that several tests look at."""

from __future__ import annotations

from functools import cache
from typing import Any

from expost import AccuracyFirstModel, ErrorRate, Release, Schema
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


@cache
def numbers_data() -> dict[str, Any]:
    return explorer_data(NUMBERS, rows=3000, worlds=2)
