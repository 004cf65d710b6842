"""The main job from beginning to end on generated data, with the truth beside it (nobody's data: we may look)."""

from __future__ import annotations

from typing import TextIO

import numpy as np

from expost.cli import summary
from expost.data import Preparation, resolve_bounds
from expost.datasets.household import HOUSEHOLD_BOUNDS, TARGET_BOUNDS, make_household_energy
from expost.erm.losses import SquaredLoss
from expost.estimators import AccuracyFirstRidge
from expost.search import curator_view

EXCESS_RISK = 0.005
REGULARIZATION = 0.01
FEATURE_BOUND = 3.0


def run_demo(stream: TextIO) -> None:
    """Fit a generated survey and print the release, then what a curator alone could know."""
    columns = make_household_energy()
    y = columns.pop("kwh_per_day")
    X = np.column_stack(list(columns.values()))
    names = list(columns)
    low, high = (np.array(side) for side in zip(*HOUSEHOLD_BOUNDS.values(), strict=True))
    model = AccuracyFirstRidge(
        excess_risk=EXCESS_RISK,
        regularization=REGULARIZATION,
        bounds=(low, high),
        target_bounds=TARGET_BOUNDS,
        feature_bound=FEATURE_BOUND,
        fit_intercept=True,
        max_epsilon=2.0,
    ).fit(X, y)
    release = model.release_
    print(
        f"A generated survey of {len(y):,} households; daily energy use is predicted from {len(names)} columns.\n"
        f"Asked for: excess risk at most {EXCESS_RISK:g} in scaled units.\n",
        file=stream,
    )
    print(summary(release), file=stream)

    rows = Preparation(
        resolve_bounds(model.bounds, len(names)),
        FEATURE_BOUND,
        TARGET_BOUNDS,
        intercept_weight=model.intercept_weight,
        n_columns=len(names),
    ).prepare_regression(X, y)
    truth = curator_view(rows, release, SquaredLoss(), regularization=REGULARIZATION)
    print(
        f"\nThe data are generated, so we may look at the truth (with real data only the curator may):\n"
        f"  excess risk achieved {truth.excess_risk:.2g}, asked for {EXCESS_RISK:g}; always predicting the middle "
        f"would miss by {truth.null_excess_risk:.2g}, {truth.null_excess_risk / EXCESS_RISK:.1f} times the target.",
        file=stream,
    )
