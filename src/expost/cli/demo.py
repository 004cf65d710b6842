"""The main job from beginning to end on generated data, with the truth beside it (nobody's data: we may look)."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from expost.cli.progress import Progress
from expost.cli.terminal import REFUSED, print_text
from expost.exceptions import AccuracyNotReached, SearchInterrupted

if TYPE_CHECKING:  # the command line starts without them
    from expost.estimators import AccuracyFirstModel

DESCRIPTION = "Fit a model to a generated survey, show what it cost, and compare it with the truth."
EXAMPLES = ("expost demo",)
EXITS = {
    0: "released",
    1: "released, but that could not be printed",
    3: "refused: the noise decided against every level, which is rare",
}
ERROR_RATE = 0.25


def run_demo(n: int = 20_000, *, random_state: int | None = None) -> tuple[str, str]:
    """Fit a generated survey; returns the status and what to print: the release, and what only a curator could know."""
    import pyarrow as pa

    from expost.datasets.survey import SURVEY_SCHEMA, make_survey
    from expost.estimators import AccuracyFirstModel
    from expost.goals import ErrorRate

    columns = make_survey(n)
    asked = (
        f"A generated survey of {n:,} households with text columns and missing cells: are they satisfied?\n"
        f"Asked for: an error rate of at most {ERROR_RATE:g}, and ε at most 2 whatever happens."
    )
    model = AccuracyFirstModel(SURVEY_SCHEMA, ErrorRate(ERROR_RATE), max_epsilon=2.0, random_state=random_state)
    try:
        release = model.fit(pa.table(columns)).release_
    except AccuracyNotReached as refusal:
        chance = "The noise decided against every level, which is rare. Run it again."
        return "refused", f"{asked}\n\n{refusal.release!s}\n\n{chance}"
    except SearchInterrupted as interruption:
        return "refused", f"{asked}\n\n{interruption.release!s}\n\n{interruption}"
    return release.status, f"{asked}\n\n{release!s}\n\n{_truth(model, n)}"


def _truth(model: AccuracyFirstModel, n: int) -> str:
    """Compare with the constant and with a model without privacy, on the rows and on fresh ones."""
    import numpy as np
    from sklearn.linear_model import LogisticRegression

    from expost.datasets.survey import make_survey

    own, fresh = make_survey(n), make_survey(n, seed=1)
    design, labels = model.encoding_.design(own), own["satisfied"] == "yes"
    limit = LogisticRegression(C=1e3, max_iter=2000).fit(design, labels)
    unseen = fresh["satisfied"] == "yes"
    rows = [
        ("this model", model.predict(own) == "yes", model.predict(fresh) == "yes"),
        ("always the same answer", np.full(n, labels.mean() > 0.5), np.full(n, labels.mean() > 0.5)),
        ("without privacy", limit.predict(design), limit.predict(model.encoding_.design(fresh))),
    ]
    lines = [
        f"  {name:<24} error rate {np.mean(mine != labels):.3f}, on other rows {np.mean(theirs != unseen):.3f}"
        for name, mine, theirs in rows
    ]
    head = "The data are generated, so we may look at the truth (with real data only the curator may):"
    return "\n".join([head, *lines])


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
