"""What an attack on a claimed ε is, what it finds, and bounds from counts that hold whatever was looked at.

An attack runs the functions that `fit` calls on two neighbouring data sets and shows a *lower* bound on the loss. If a
bound is above what was claimed, the claim is false. A bound below it proves nothing: nobody may have looked in the
right place.

*Claims are about outcomes.* A release states ε(o) for its outcome o. It says that for every set S of outcomes with
ε(o) ≤ e and every ordered pair of neighbours P[S] ≤ e^e·P′[S] (with a δ settled beforehand, P[S] ≤ e^e·P′[S] + δ). So
an attack may choose S, and is about the largest claim in it.

*Theorem (counting).* Let N runs on each of two neighbours be independent, S chosen from other runs, and a and b of them
fall in S. With A the lower Clopper-Pearson bound on P[S] and B the upper one on P′[S], each false with probability at
most β/2, ln((A − δ)/B) is below the loss that S has but for a chance of β. *Proof.* Clopper and Pearson's bounds hold
for every probability, the two may be false together with at most the sum, and S does not depend on these runs. ∎ Half
of the runs choose the event and its direction and the other half bound it, so nothing has to be paid for choosing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Way = Literal["counted", "transcripts", "one row", "exact", "replayed"]
Counts = NDArray[np.int64]

#: An exact ratio is computed in floating point in the end; a claim counts as exceeded beyond this part of itself.
SLACK = 1e-9
_TOLD = 20


class Found(NamedTuple):
    """What an attack has found where it came nearest to a claim, or furthest beyond it.

    Attributes
    ----------
    claimed
        What the outcome said.
    bound
        What its loss is at least.
    differs
        What a run let out that it did not charge for, in words; empty if nothing.
    delta
        The δ of the claim.
    """

    claimed: float
    bound: float
    differs: str = ""
    delta: float = 0.0

    @property
    def tightness(self) -> float:
        """The bound as a part of the claim."""
        return self.bound / self.claimed if self.claimed > 0.0 else math.inf if self.bound > 0.0 else 0.0

    @property
    def broken(self) -> bool:
        """Whether the claim is shown to be false."""
        return bool(self.differs) or not self.bound <= self.claimed * (1.0 + SLACK)


def nearest(each: Iterable[Found]) -> Found:
    """Return what comes nearest to its claim; or the first that is beyond it, and look no further.

    Examples
    --------
    >>> nearest([Found(1.0, 0.5), Found(2.0, 1.5), Found(3.0, 1.0)])
    Found(claimed=2.0, bound=1.5, differs='', delta=0.0)
    """
    best = None
    for one in each:
        if one.broken:
            return one
        best = one if best is None or one.tightness > best.tightness else best
    return best or Found(0.0, 0.0)


@dataclass(frozen=True)
class Setting:
    """How an attack is carried out.

    Attributes
    ----------
    runs
        How many runs, or draws, on each data set; pairs of runs for transcripts.
    seed
        What random numbers follow from; None for those of the operating system.
    confidence
        A bound from counts is false with at most one minus that.
    tell
        Told how many runs are done: at first, and twenty times in all.
    """

    runs: int
    seed: int | None = None
    confidence: float = 1.0 - 1e-6
    tell: Callable[[int], None] = lambda done: None

    def each(self) -> Iterator[tuple[int, np.random.Generator]]:
        """Yield the place of each run, and random numbers that its data sets follow from."""
        for place in range(self.runs):
            yield place, np.random.default_rng(None if self.seed is None else [self.seed, place])
            if (place + 1) * _TOLD // self.runs > place * _TOLD // self.runs:
                self.tell(place + 1)


@dataclass(frozen=True)
class Attack:
    """One attack.

    Attributes
    ----------
    name, attacked
        What it is called, and what it attacks, in words.
    way
        How the bound is found.
    carry_out
        Does it.
    runs, full
        How many runs usually, and where one takes an hour over it; what is exact has no runs.
    tight
        Whether it looks for the largest loss, so that its bound as a part of the claim says how near it came. Others
        look for something that must not be there at all: dependence, digits, anything that shows beside a release.
    """

    name: str
    attacked: str
    way: Way
    carry_out: Callable[[Setting], Found]
    runs: int = 0
    full: int = 0
    tight: bool = True


def interval(hits: Any, runs: int, chance: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return Clopper and Pearson's bounds on a probability, each false with at most that chance.

    Examples
    --------
    >>> low, high = interval(50, 100, 0.025)
    >>> round(float(low), 3), round(float(high), 3)
    (0.398, 0.602)
    """
    hits = np.asarray(hits, dtype=np.float64)
    low = np.where(hits > 0, stats.beta.ppf(chance, np.maximum(hits, 1), runs - hits + 1), 0.0)
    high = np.where(hits < runs, stats.beta.isf(chance, hits + 1, np.maximum(runs - hits, 1)), 1.0)
    return low, high


def loss_at_least(here: Any, there: Any, runs: int, chance: float, delta: float = 0.0) -> NDArray[np.float64]:
    """Return a bound on the loss of events that so many of as many runs fell in on either data set.

    Examples
    --------
    >>> round(float(loss_at_least(5000, 1800, 10_000, 1e-6)), 2), round(math.log(5000 / 1800), 2)
    (0.87, 1.02)
    """
    low, _ = interval(here, runs, 0.5 * chance)
    _, high = interval(there, runs, 0.5 * chance)
    left = np.maximum(low - delta, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.maximum(np.log(left / high), 0.0))


BOTH = ((0, 1), (1, 0))


def strongest(
    chosen_by: Counts,
    bounded_by: Counts,
    runs: tuple[int, int],
    claims: NDArray[np.float64],
    chance: float,
    delta: float = 0.0,
    directions: tuple[tuple[int, int], ...] = BOTH,
) -> Found:
    """Return the event that some runs say comes nearest to its claim, with the bound that other runs give.

    Parameters
    ----------
    chosen_by, bounded_by
        How often each kind of outcome came up on either data set: a line for each.
    runs
        How many runs of either data set these are.
    claims
        What each kind of outcome claims.
    chance
        With which the bound may be false.
    delta
        δ of the claims.
    directions
        Which way claims hold.
    """
    best: tuple[float, Counts | None, int, int, float] = (-1.0, None, 0, 1, 0.0)
    for one, other in directions:
        here, there = chosen_by[one], chosen_by[other]
        for claim in np.unique(claims):
            kinds = np.flatnonzero((claims == claim) & (here > 0))
            if not kinds.size:
                continue
            # the likeliest against the other data set first: unions of them are what an attacker would take
            kinds = kinds[np.argsort(-(here[kinds] + 0.5) / (there[kinds] + 0.5), kind="stable")]
            bounds = loss_at_least(np.cumsum(here[kinds]), np.cumsum(there[kinds]), runs[0], chance, delta)
            place = int(np.argmax(bounds))
            reached = float(bounds[place]) / max(float(claim), 1e-300)
            if reached > best[0]:
                best = reached, kinds[: place + 1], one, other, float(claim)
    _, event, one, other, claim = best
    if event is None:
        return Found(float(claims.max()), 0.0, delta=delta)
    bound = loss_at_least(bounded_by[one][event].sum(), bounded_by[other][event].sum(), runs[1], chance, delta)
    return Found(claim, float(bound), delta=delta)
