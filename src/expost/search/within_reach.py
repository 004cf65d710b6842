"""Is a goal within reach? What noisy shortfalls of models, level after level, say of the best model there is.

A search looks at each of its models with noise. Shortfalls (how far a model misses the goal) fall from level to level
as noise gets less, by a law whose power is known, towards the shortfall of the best model. So what was released says
about how likely it is that the best model meets the goal, and a level that costs more than that chance is worth is not
taken. All of this reads released and public numbers only, and nothing has to be right about it: a goal that is given up
wrongly is refused, or short, and neither privacy nor accuracy is touched. `benchmarks/panel.py --beyond` measures what
it costs to refuse goals that no model reaches. The constants below were set by hand on traces of the panel's tables, of
both halves; no script has chosen them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

#: The chance that another way does where this one seems to end above the goal.
OTHER = 0.15
_ANOTHER = 4.0  # times the odds: shortfalls of a way may end above those of the best model
_POWERS = (0.8, 1.6)  # of the noise, that what a model is worse than the best one falls with: far from it, and near
_WRONG = 0.05  # the chance that shortfalls fall by another law than what was released shows
_LEARNED, _NEAR = 0.7, 0.25  # of what a constant misses: models that miss more are noise, or far off


class Look(NamedTuple):
    """A noisy look at the shortfall of a level's model.

    Attributes
    ----------
    precision
        x where noise on a mean gradient was 1/x, in units of the table.
    noisy, scale
        The shortfall with noise, and the scale of that noise.
    """

    precision: float
    noisy: float
    scale: float


def worth(chance: float) -> float:
    """Return which part of a budget may be paid for a level where the goal is within reach with that chance.

    Whoever states a budget would pay that much for a model that meets the goal. The chance is never taken to be below
    that of a fit which is wrong.
    """
    return _WRONG + (1.0 - _WRONG) * chance


def falling(looks: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return the last of some values that never rise, as noisy looks (value, scale) say together, and its scale.

    A look at a later value that is above what was seen before is averaged with that, by precision (isotonic least
    squares): one unlucky look says little where an earlier one was as close.

    Examples
    --------
    >>> falling([(0.5, 0.1), (0.25, 0.1)]), falling([(0.0, 0.5), (0.5, 0.5)])[0]
    ((0.25, 0.1), 0.25)
    """
    blocks: list[tuple[float, float]] = []
    for value, scale in looks:
        weight = scale**-2.0
        while blocks and blocks[-1][0] < value:
            before, more = blocks.pop()
            value, weight = (before * more + value * weight) / (more + weight), more + weight
        blocks.append((value, weight))
    return blocks[-1][0], blocks[-1][1] ** -0.5


def chance(looks: Sequence[Look], missed_by_constant: float) -> float:
    """Return about how likely it is that the best model meets the goal; 1 where nothing says so yet.

    Shortfalls are fitted by limit + c/xᵖ, x the precision of a level, weighted by their known noise. A perturbed
    minimum's loss exceeds that of the best model within R by at most about R/x, λR²/2 for the shrinkage and 1/(2λx²)
    for the noise; on the way there levels gain less, and near it noise adds its square. So p is a little below 1, or
    near the best model the square may do as well: each as likely as what was released is by its fit. Where noise leaves
    the limit above the goal by z deviations the chance is taken to be half of e^(−√2·z), as for Laplace noise. Models
    that miss the goal by about as much as a constant (``missed_by_constant``) are noise, and fall by another law; far
    from the best one they are seen to fall before anything is said.

    Examples
    --------
    >>> falls = [Look(x, 0.01 + 1.0 / x, 0.0005) for x in (20.0, 60.0, 180.0)]  # to about 0.01 above the goal
    >>> chance(falls, 0.3) < 0.01, chance([look._replace(noisy=look.noisy - 0.01) for look in falls], 0.3) > 0.3
    (True, True)
    """
    near = _last_below(looks, _NEAR * missed_by_constant)
    powers: tuple[float, ...] = _POWERS
    if len(near) < 2:
        near, powers = _last_below(looks, _LEARNED * missed_by_constant), _POWERS[:1]
    if len(near) < 2:
        return 1.0
    chances, likely = [], []
    weights = [0.5 / (look.scale * look.scale) for look in near]
    total = math.fsum(weights)
    mean = math.fsum(w * look.noisy for w, look in zip(weights, near, strict=True)) / total
    for power in powers:
        added = [(near[-1].precision / look.precision) ** power for look in near]
        middle = math.fsum(w * u for w, u in zip(weights, added, strict=True)) / total
        spread = math.fsum(w * (u - middle) ** 2 for w, u in zip(weights, added, strict=True))
        moved = math.fsum(w * (u - middle) * look.noisy for w, u, look in zip(weights, added, near, strict=True))
        slope = max(0.0, moved / spread) if spread else 0.0
        if slope * slope * spread < 1.0 and mean > _NEAR * missed_by_constant:
            return 1.0
        limit, off = mean - slope * middle, math.sqrt(1.0 / total + (middle**2 / spread if spread else 0.0))
        missing = [abs(look.noisy - limit - slope * u) / look.scale for u, look in zip(added, near, strict=True)]
        chances.append(0.5 * math.exp(-math.sqrt(2.0) * limit / off) if limit > 0.0 else 1.0)
        likely.append(math.exp(-min(math.fsum(missing), 500.0)))
    return math.fsum(c * w for c, w in zip(chances, likely, strict=True)) / math.fsum(likely)


def chance_elsewhere(looks: Sequence[Look], missed_by_constant: float) -> float:
    """Return the chance that another way has than the one that was looked at.

    No way goes below the best model, and some end above it: descents whose steps stall, say. So what one way shows is
    a lower bound on the chance of another. The odds are taken to be several times as good.

    Examples
    --------
    >>> falls = [Look(x, x**-0.8, 0.0005) for x in (60.0, 180.0)]
    >>> round(chance(falls, 0.3), 2), round(chance_elsewhere(falls, 0.3), 2)
    (0.25, 0.57)
    """
    here = chance(looks, missed_by_constant)
    return _ANOTHER * here / (_ANOTHER * here + 1.0 - here)


def _last_below(looks: Sequence[Look], most: float) -> Sequence[Look]:
    """Return the last looks, as far as all of them miss the goal by less than that, noise included."""
    count = next((i for i, look in enumerate(reversed(looks)) if look.noisy + look.scale > most), len(looks))
    return looks[len(looks) - count :]
