"""The main job from beginning to end on generated data, with the truth beside it (nobody's data: we may look)."""

from __future__ import annotations

import argparse

import pyarrow as pa

from expost.cli.options import print_text
from expost.cli.progress import Progress
from expost.cli.summary import summary
from expost.datasets.household import HOUSEHOLD_BOUNDS, TARGET_BOUNDS, make_household_energy
from expost.estimators import AccuracyFirstRidge, curator_view
from expost.exceptions import AccuracyNotReached, SearchInterrupted

REFUSED = 3
EXCESS_RISK = 0.005
REGULARIZATION = 0.01
FEATURE_BOUND = 3.0
FAILURE_PROBABILITY = 0.05


def run_demo(n: int = 200_000, *, random_state: int | None = None) -> tuple[str, str]:
    """Fit a generated survey; returns the status and what to print: the release, and what a curator alone could know.

    Examples
    --------
    >>> status, text = run_demo(random_state=0)
    >>> status, "floor_area_m2" in text
    ('released', True)
    """
    columns = make_household_energy(n)
    y = columns.pop("kwh_per_day")
    asked = (
        f"A generated survey of {n:,} households; daily energy use is predicted from {len(columns)} columns.\n"
        f"Asked for: excess risk at most {EXCESS_RISK:g} in scaled units, and ε at most 2 whatever happens."
    )
    model = AccuracyFirstRidge(
        excess_risk=EXCESS_RISK,
        regularization=REGULARIZATION,
        failure_probability=FAILURE_PROBABILITY,
        bounds=HOUSEHOLD_BOUNDS,
        target_bounds=TARGET_BOUNDS,
        feature_bound=FEATURE_BOUND,
        fit_intercept=True,
        max_epsilon=2.0,
        on_invalid="clip",
        random_state=random_state,
    )
    try:
        release = model.fit(pa.table(columns), y).release_
    except AccuracyNotReached as refusal:
        chance = "The noise decided against every level, as it does in at most about one run of twenty. Run it again."
        return "refused", f"{asked}\n\n{summary(refusal.release)}\n\n{chance}"
    except SearchInterrupted as interruption:
        return "refused", f"{asked}\n\n{summary(interruption.release)}\n\n{interruption}"

    truth = curator_view(model, pa.table(columns), y)
    looked = (
        f"The data are generated, so we may look at the truth (with real data only the curator may):\n"
        f"  excess risk achieved     {truth.excess_risk:.2g}, asked for {EXCESS_RISK:g}\n"
        f"  always predicting the middle would have missed by {truth.null_excess_risk:.2g}, "
        f"{truth.null_excess_risk / EXCESS_RISK:.1f} times the target"
    )
    return release.status, f"{asked}\n\n{summary(release)}\n\n{looked}"


DESCRIPTION = "Fit a model to a generated survey, show what it cost, and compare it with the truth."


def add_arguments(demo: argparse.ArgumentParser) -> None:
    """Add nothing: there is nothing to choose."""
    del demo


def run(options: argparse.Namespace) -> int:
    """Show the demonstration; returns the exit status."""
    del options
    with Progress() as progress:
        progress.stage("generating and fitting a survey")
        status, text = run_demo()
    print_text(text)
    return 0 if status == "released" else REFUSED
