"""How far noise may have moved each coefficient, from public numbers alone.

*Noise on the parameters* (output perturbation). What is released is θ* + b, θ* the parameters that the same rows and
regularization give without noise. With Laplace noise |b_j| > (Δ/ε)·ln(1/δ) has probability δ; with spherical noise
‖b‖₂ is Δ/ε times a Gamma(p) variable, which bounds every |b_j|. A search over T levels released one of T draws, so
δ/T is taken for each: whichever was released, all is well with probability 1 − δ for each coefficient. Only where θ was
not rescaled into its ball, which shows in its length: a rescaled θ is nearer to θ* as a whole, but single parameters
need not be. (The noise is discrete, on a grid of far below a ten-thousandth of its scale; widths have that much added.)

*A promised excess risk.* L is λ-strongly convex, so L(θ) − L(θ*) ≤ α gives ‖θ − θ*‖₂ ≤ √(2α/λ) with the probability of
the promise, for the unconstrained optimum. That is a bound over all rows there could be, most of them far kinder.

*Noise on the gradient* (objective perturbation). θ solves ∇L(θ) = −b/n, so ‖θ − θ*‖₂ ≤ ‖b‖₂/(nλ), and a quantile of
the right side is public (`expost.mechanisms.objective`). A later level is drawn to the model of the one before, which
has noise too. θ* is a prox point of that centre, and prox points are no further apart than their centres; so the sum
over levels, each failing with half the probability of the last, bounds how far θ is from where the same levels would
have led without noise (``noise_reach``). How much of it one coefficient gets is decided by the curvature of the loss
over the rows, which is not public: again a bound over all rows there could be.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from scipy.special import gammaincinv

from expost.privacy.scoring import BoundsScorer, SchemaScorer, Scorer
from expost.privacy.words import unit_of

if TYPE_CHECKING:
    from expost.privacy.release import Release

__all__ = ["COVERAGE", "Interval", "noise_interval", "units"]

COVERAGE = 0.9
_REFERENCE = "the coefficient that the same rows, bounds and regularization would have given without noise"

_LEVELS = "the coefficient that the same rows, bounds and levels of the search would have given without noise"


@dataclass(frozen=True)
class Interval:
    """What can be said about the noise in coefficients.

    Attributes
    ----------
    width
        Half the length of the interval in scaled units, the same for every parameter; None if there is none.
    kind
        ``"interval"``, ``"bound"`` (true for all rows there could be, and wide) or ``"none"``.
    statement
        What exactly it covers, or why there is none.
    """

    width: float | None
    kind: str
    statement: str


def noise_interval(release: Release) -> Interval:
    """Say how far noise may have moved the parameters of a released model.

    Examples
    --------
    >>> from expost.privacy import Release
    >>> release = Release(
    ...     status="released",
    ...     method="fixed",
    ...     perturbation="output",
    ...     epsilon_generation=2.0,
    ...     hypothesis=[0.5, 0.1],
    ...     parameters={"noise_sensitivity": 0.02, "radius": 3.0},
    ... )
    >>> found = noise_interval(release)
    >>> found.kind, round(found.width, 4)
    ('interval', 0.023)
    """
    if math.isinf(release.epsilon):
        return Interval(None, "none", "There is no noise: this is the model of the rows themselves.")
    if release.epsilon_generation == 0:
        return Interval(
            None, "none", "No noise was added: the model is one that was settled before any row was looked at."
        )
    found = _on_parameters(release) or _by_promise(release) or _on_gradient(release)
    return found or Interval(
        None, "none", "The release holds no public number from which the noise in a coefficient could be bounded."
    )


def _on_parameters(release: Release) -> Interval | None:
    sensitivity = release.parameters.get("noise_sensitivity")
    if sensitivity is None or release.perturbation != "output" or release.method == "doubling":
        return None
    if release.continues is not None or unit_of(release) != "row":
        return None  # a level chosen after others were seen; a loss that is charged for several rows
    theta = np.asarray(release.hypothesis, dtype=np.float64)
    radius = release.parameters.get("radius")
    if radius is None or np.linalg.norm(theta) > 0.999 * radius:
        return None  # perhaps rescaled: then single parameters are no longer the noisy ones
    levels = release.n_levels or 1
    scale, rare = sensitivity / release.epsilon_generation, (1 - COVERAGE) / levels
    quantile = math.log(1 / rare) if release.noise == "exact" else float(gammaincinv(theta.size, 1 - rare))
    several = "" if levels == 1 else f", whichever of the {levels} levels was released"
    return Interval(
        scale * quantile * (1 + 1e-4),
        "interval",
        f"Each interval covers {_REFERENCE} with probability {100 * COVERAGE:.0f} % over the noise{several}. It says "
        f"nothing about other rows than these.",
    )


def _by_promise(release: Release) -> Interval | None:
    promise = release.promise
    alpha, lam, chance = promise.excess_risk, promise.regularization, promise.failure_probability
    if alpha is None or not lam or chance is None or "unconstrained optimum" not in promise.statement:
        return None
    return Interval(
        math.sqrt(2 * alpha / lam),
        "bound",
        f"A bound, not an estimate: it follows from the promised excess risk and the regularization alone, and covers "
        f"{_REFERENCE} with probability at least {100 * (1 - chance):.4g} % over the noise, for all rows there could "
        f"be. For most rows the noise is far smaller; how much smaller is not public.",
    )


def _on_gradient(release: Release) -> Interval | None:
    reach, coverage = (release.parameters.get(f"noise_reach{name}") for name in ("", "_coverage"))
    if reach is None or coverage is None:
        return None
    length = float(np.linalg.norm(np.asarray(release.hypothesis, dtype=np.float64)))
    return Interval(
        reach,
        "bound",
        f"A bound, not an estimate: the noise went into the fit, and how far it moved one coefficient depends on the "
        f"rows, which are not shown. Each bound covers {_LEVELS} with probability at least {100 * coverage:.4g} % "
        f"over the noise, for all rows there could be: all parameters together are moved by at most {reach:.3g} in "
        f"scaled units, where their own length is {length:.3g}. For most rows the move is far smaller.",
    )


def units(scorer: Scorer) -> npt.NDArray[np.float64]:
    """Return what 1 in each scaled parameter is in the coefficient of the caller's column, the constant left out."""
    if isinstance(scorer, SchemaScorer):
        coefficients, _ = scorer.encoding.to_caller_units(np.ones(len(scorer.theta)))
        return np.array(list(coefficients.values()))
    assert isinstance(scorer, BoundsScorer)
    return scorer.preparation.to_caller_units(np.ones(len(scorer.theta)))[0]
