"""Is a goal within reach? What noisy shortfalls of models, level after level, say of the models that are to come.

A search looks at each of its models with noise. Shortfalls (how far a model misses the goal) fall from level to level
as noise gets less, by a law whose power is known, towards the shortfall of the best model. So what was released says
about how likely it is that a later model passes, and levels that cost more than that chance is worth are not taken. All
of this reads released and public numbers only, and nothing has to be right about it: a goal that is given up wrongly is
refused, or short, and neither privacy nor accuracy is touched. `benchmarks/panel.py --beyond` measures what it costs to
refuse goals that no model reaches. There are no constants here to be chosen.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple


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


def chance(looks: Sequence[Look], missed_by_constant: float, precision: float = math.inf, margin: float = 0.0) -> float:
    """Return about how likely it is that a model of that precision meets the goal by a margin; 1 if nothing says so.

    Shortfalls are fitted by limit + c/x, x the precision of a level, weighted by their known noise: a perturbed
    minimum's loss exceeds that of the best model within R by at most about R/x, λR²/2 for the shrinkage and 1/(2λx²)
    for the noise. By default it is the best model that is asked about. Where the fit leaves a model above the goal by z
    of its deviations the chance is taken to be half of e^(−√2·z), as for Laplace noise. Models that miss the goal by as
    much as a constant (``missed_by_constant``) are noise, and fall by another law.

    Examples
    --------
    >>> falls = [Look(x, 0.01 + 1.0 / x, 0.0005) for x in (20.0, 60.0, 180.0)]  # to 0.01 above the goal
    >>> chance(falls, 0.3) < 0.01, chance([look._replace(noisy=look.noisy - 0.01) for look in falls], 0.3) > 0.3
    (True, True)
    >>> lower = [look._replace(noisy=look.noisy - 0.02) for look in falls]  # the next model but one may pass
    >>> chance(lower, 0.3, 200.0, 0.007) < 0.05, chance(lower, 0.3, 600.0, 0.007) > 0.5
    (True, True)
    """
    far = [place for place, look in enumerate(looks, 1) if look.noisy + look.scale > missed_by_constant]
    near = looks[max(far, default=0) :]
    if len(near) < 2:
        return 1.0
    weights = [0.5 / (look.scale * look.scale) for look in near]
    total = math.fsum(weights)
    mean = math.fsum(w * look.noisy for w, look in zip(weights, near, strict=True)) / total
    added = [near[-1].precision / look.precision for look in near]
    middle = math.fsum(w * u for w, u in zip(weights, added, strict=True)) / total
    spread = math.fsum(w * (u - middle) ** 2 for w, u in zip(weights, added, strict=True))
    moved = math.fsum(w * (u - middle) * look.noisy for w, u, look in zip(weights, added, near, strict=True))
    slope, there = max(0.0, moved / spread) if spread else 0.0, near[-1].precision / precision - middle
    above = mean + slope * there + margin
    off = math.sqrt(1.0 / total + (there * there / spread if spread else 0.0))
    return 0.5 * math.exp(-math.sqrt(2.0) * above / off) if above > 0.0 else 1.0
