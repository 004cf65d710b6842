"""What a release says about itself beside its numbers: method, promise, what is exact and what was charged."""

from __future__ import annotations

from typing import Any

from expost.privacy.release import Release
from expost.search.covariance import CHARGED
from expost.search.generators import Generator
from expost.search.goals import ErrorRate, RelativeExcessRisk
from expost.search.plan import Problem
from expost.search.promises import promise_of
from expost.search.settings import Settings

_GRADIENTS_CHARGED = (
    "gradient norms and projected moments: rounded to public grids, floating-point error bounded and charged",
)
_GAP_CHARGED = ("gap of the null model: rounded to a public grid, floating-point error bounded and charged",)
_COUNT_EXACT = ("misclassified rows, θ being on a public grid",)
_SQUARES_CHARGED = ("mean squared error: rounded to a public grid, floating-point error bounded and charged",)


def details_of(release: Release, generator: Generator, problem: Problem, settings: Settings) -> dict[str, Any]:
    """Return what is to be added to a release."""
    method, goal = settings.method, settings.goal
    tested = method in ("above_threshold", "doubling") or release.method == "above_threshold"
    # a certified search may end before any noise goes on the minimiser, and says itself what it used
    settled = settings.noise == "laplace" or method in ("auto", "certified")
    kind = release.noise if settled else "over the reals"
    exact = tuple(part for part in generator.exact if kind == "exact" or part != "generation noise")
    charged = (*generator.charged, *(_GRADIENTS_CHARGED if method in ("auto", "certified", "stationarity") else ()))
    if isinstance(goal, RelativeExcessRisk):
        charged = (*charged, *_GAP_CHARGED)
    elif goal is not None:  # no risk and no gradient is looked at
        count = isinstance(goal, ErrorRate)
        exact = (*exact, *_COUNT_EXACT) if count else exact
        charged = (*(part for part in generator.charged if part not in CHARGED), *(() if count else _SQUARES_CHARGED))
    return {
        "method": method,
        "perturbation": settings.perturbation,
        "calibration": settings.calibration if tested else release.calibration,
        "promise": promise_of(problem, method, goal, release.promise),
        "noise": kind,
        "exact": exact,
        "charged": charged,
        "claims": (),  # doubling records its black box as a claim; here it is our own, and proved
        "parameters": {
            **release.parameters,
            "loss": problem.loss.name,
            "n": problem.n,
            "p": problem.p,
            "paper_constants": problem.paper_constants,
        },
    }
