"""Releases that hold a model of a table with every kind of column, made by hand, and tables to predict for."""

from __future__ import annotations

from typing import Any

import numpy as np

from expost import Release
from expost.table.encoding import Encoding
from expost.table.schema import Schema

COLUMNS: dict[str, Any] = {
    "age": {"bounds": [0, 100]},
    "income": {"bounds": [0, 1e6], "transform": "log1p"},
    "area": {"bounds": [1, 400], "transform": "sqrt", "missing": "indicator"},
    "sector": {"categories": ["public", "private"]},
    "town": {"categories": ["Bern", "Oslo"], "other": True},
    "heating": {"categories": ["gas", "wood"], "other": True, "missing": "other"},
    "code": {"categories": [1, 2, 7], "missing": "zero"},
    "level": {"categories": ["1", "2", "3+"]},
    "member": {"boolean": True},
    "owner": {"boolean": True, "missing": "indicator"},
}
MARKS = ["", "?", -999]
LABELS = Schema.from_dict({"target": "y", "classes": ["no", "yes"], "missing": MARKS, "columns": COLUMNS})
AMOUNT = Schema.from_dict({"target": "y", "target_bounds": [-20, 60], "missing": MARKS, "columns": COLUMNS})


def released(schema: Schema, seed: int = 0, **parameters: Any) -> Release:
    """Return a release whose parameters were drawn, as a fit of such a table would describe it."""
    encoding = Encoding(schema)
    theta = np.random.default_rng(seed).normal(0, 2, len(encoding.names))
    coefficients, intercept = encoding.to_caller_units(theta)
    target = None if schema.target_bounds is None else list(schema.target_bounds)
    labels = {} if schema.classes is None else {"classes": list(schema.classes)}
    return Release(
        status="released",
        method="auto",
        epsilon_generation=0.5,
        epsilon_worst_case=2.0,
        hypothesis=theta,
        perturbation="objective",
        preparation={"schema": schema.to_dict(), "target": target, "scale": encoding.scale},
        parameters={
            "n": 1000,
            "columns": list(coefficients),
            "coef": list(coefficients.values()),
            "intercept": intercept,
            **labels,
            **parameters,
        },
        target=schema.target,
        columns=tuple(schema.columns),
        schema_fingerprint=schema.fingerprint(),
    )


def table(n: int = 400, seed: int = 1) -> dict[str, list[Any]]:
    """Return columns with values in and out of bounds, missing cells and their marks, unknown categories."""
    rng = np.random.default_rng(seed)

    def some(values: list[Any]) -> list[Any]:
        return [values[i] for i in rng.integers(0, len(values), n)]

    def numbers(low: float, high: float, *others: Any) -> list[Any]:
        drawn = rng.uniform(low, high, n).tolist()
        return [others[int(rng.integers(len(others)))] if rng.random() < 0.2 else value for value in drawn]

    return {
        "age": numbers(-50, 150, None, float("nan"), "?", -999, "", "31", 0, 100, 50, float("inf"), float("-inf")),
        "income": numbers(-10, 3e6, None, "?", -999, 0, 1e6),
        "area": numbers(-5, 500, None, -999.0, 1, 400),
        "sector": some(["public", "private", "?", "", None, float("nan"), "elsewhere"]),
        "town": some(["Bern", "Oslo", "Rome", "?", "", None, float("nan"), -999]),
        "heating": some(["gas", "wood", "coal", "?", None, float("nan")]),
        "code": some([1, 2, 7, 1.0, "2", "7.0", 3, None, -999, "?"]),
        "level": some(["1", "2", "3+", 1, 2.0, "4", None, "-999"]),
        "member": some([True, False, "yes", "No", "TRUE", 1, 0.0, "0", "maybe", None, "?"]),
        "owner": some([True, False, "y", "F", "1", "perhaps", None, float("nan"), ""]),
    }
