"""A further model beside a release: the same columns, labels and units, another θ; all of it public."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from expost.data.preparation import Preparation
from expost.privacy.release import Release
from expost.search.request import Request


def with_model(release: Release, before: Release, request: Request) -> Release:
    """Say of a release what an earlier one about the same table says of it, and give its model in the caller's units.

    A release of rows that were prepared by hand says nothing about units, and then neither does this one.
    """
    known: dict[str, Any] = {
        "claims": before.claims,
        "not_covered": before.not_covered,
        "neighbours": before.neighbours,
        "target": before.target,
        "columns": before.columns,
        "schema_fingerprint": before.schema_fingerprint,
        "data_fingerprint": before.data_fingerprint,
    }
    if "n_columns" not in before.preparation:
        return release.with_details(**known)
    recipe = Preparation.described(before.preparation)
    old, new = before.promise.regularization, request.problem.regularization
    weights = {
        name: np.asarray(value) * (new / old)
        for name, value in before.preparation.items()
        if name in ("regularization_per_column", "regularization_constant") and old
    }
    promise = release.promise
    if request.goal is not None:
        half = 1.0 if recipe.target is None else (recipe.target[1] - recipe.target[0]) / 2
        promise = request.goal.in_caller_units(promise, half**2)
    return release.with_details(
        **known,
        promise=promise,
        preparation={**before.preparation, **weights},
        parameters={**release.parameters, **_model(release, before.parameters, recipe)},
    )


def _model(release: Release, before: Mapping[str, Any], recipe: Preparation) -> dict[str, Any]:
    if release.hypothesis is None:
        return {}
    coef, intercept = recipe.to_caller_units(np.asarray(release.hypothesis))
    names = before.get("columns", [f"x{j}" for j in range(len(coef))])
    labels = {"classes": before["classes"]} if "classes" in before else {}
    return {"columns": list(names), "coef": coef, "intercept": intercept, **labels}
