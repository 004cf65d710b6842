"""Ex-post losses add (theory A1), also when later runs were chosen after seeing earlier ones.

*Ex-post loss*: Loss(o) = max over neighbours D, D′ of log Pr[A(D) = o]/Pr[A(D′) = o]. A release reports a number 𝓔(o)
≥ Loss(o). If 𝓔(o) ≤ ε for every outcome o, refusals included, the search is ε-private in the ordinary sense; that ε is
``epsilon_worst_case``.

*Theorem*: losses of successive runs on the same rows add. *Proof.* The probability (or density) of two outcomes is that
of the first times that of the second given the first. Given the first outcome the second run is settled, however it was
chosen, so its log ratio between neighbours is at most 𝓔₂(o₂); the ratios multiply, and their logarithms add. ∎

*With a δ*, settled before each run given what came before: P[ℓ_t > 𝓔_t(o)] ≤ δ_t for every pair of neighbours, so
P[Σℓ_t > Σ𝓔_t(o)] ≤ Σδ_t (a union bound). δ's add and are never ex post. Rényi curves add as well, and their sum may be
stated at one δ (`expost.account.renyi`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from expost.release.release import Release


def add_losses(*losses: float) -> float:
    """Return a float that is not below the exact sum of the losses.

    Examples
    --------
    >>> add_losses(0.1, 0.2) >= 0.1 + 0.2
    True
    >>> add_losses(1.0, 0.0)
    1.0
    """
    total = math.fsum(losses)
    if math.isinf(total) or math.fsum((*losses, -total)) <= 0:  # fsum is correctly rounded: its sign is exact
        return total
    return math.nextafter(total, math.inf)


@dataclass(frozen=True)
class Composition:
    """The joint cost of several releases about the same rows.

    Attributes
    ----------
    epsilon, delta
        What was lost in all, ex post, and the δ that it is stated at.
    epsilon_worst_case
        What all outcomes together could have cost at most, at that δ; infinite where that was not settled at it.
    count
        How many releases.
    epsilon_usual
        ε in the usual, less strict sense of (ε, δ), where curves were added up; ``epsilon`` elsewhere.
    """

    epsilon: float
    epsilon_worst_case: float
    count: int
    delta: float = 0.0
    epsilon_usual: float = math.nan

    def __post_init__(self) -> None:
        if math.isnan(self.epsilon_usual):
            object.__setattr__(self, "epsilon_usual", self.epsilon)

    @property
    def risk_factor(self) -> float:
        """The factor e^ε by which any observer's odds can have moved."""
        return _exp(self.epsilon)


def compose(releases: Iterable[Release], *, delta: float | None = None) -> Composition:
    """Return what a sequence of releases has cost together, refusals included.

    A release that goes on from another of them (:attr:`~expost.Release.continues`) costs what it adds.

    Parameters
    ----------
    releases
        About the same rows; later ones may have been chosen by earlier ones.
    delta
        By default losses add and so do δ's. A δ here instead adds the releases' Rényi curves and states the sum at
        it, which is less where several have one; it must have been settled before the first of them.

    Examples
    --------
    >>> compose([]).epsilon
    0.0
    """
    listed = list(releases)
    if len({release.neighbours for release in listed}) > 1:
        raise ValueError(
            "releases about different neighbours do not add up: a loss for one row is not one for a person"
        )
    losses = {release.id: release.epsilon for release in listed}

    def beside(release: Release) -> float:
        """Return what a release adds to the one it continues, if what it says of that is enough; or all of it."""
        before = losses.get(release.continues or "", -math.inf)
        enough = add_losses(max(before, 0.0), release.epsilon_increment) >= release.epsilon
        return release.epsilon_increment if before >= 0.0 and enough else release.epsilon

    worst = add_losses(*(release.epsilon_worst_case for release in listed))
    deltas = add_losses(*(release.delta for release in listed))
    if delta is None:
        together = add_losses(*map(beside, listed))
        return Composition(together, worst, len(listed), deltas)
    from expost.account.renyi import NOTHING, Curve

    # a release that continues another is pure: it has no curve of its own
    curves = (Curve.ex_post(beside(release)) if release.delta == 0.0 else release.account_curve() for release in listed)
    joint = sum(curves, NOTHING)
    whole = worst if deltas <= delta else math.inf
    return Composition(joint.epsilon(delta), whole, len(listed), delta, joint.usual_epsilon(delta))


def _exp(epsilon: float) -> float:
    try:
        return math.exp(epsilon)
    except OverflowError:
        return math.inf
