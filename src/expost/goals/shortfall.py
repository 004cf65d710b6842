"""How far a hypothesis misses a goal, as one number: what a chain of releases is tested and steered by.

*Released*: noisy shortfalls. *Neighbours*: one row replaced. A goal says how far one row can move its shortfall.
"""

from __future__ import annotations

from dataclasses import dataclass

from expost.erm.losses import Loss

#: For mean squares, of which some tables need far less than others.
LOWEST = 1.0 / 3.0
_DEAR = 0.25  # an ε that is a pity to spend where less might do


def lowered(epsilon: float, lowest: float) -> float:
    """Return the part of a first level to start with that would cost ε: as much of it as is not dear; public.

    Where a whole level is cheap, starting lower would be a level more to pay for; where it is not, it is the least that
    every table pays, however easy its goal.

    Examples
    --------
    >>> lowered(0.1, 0.5), lowered(0.4, 0.5), lowered(3.0, 0.5)
    (1.0, 0.625, 0.5)
    """
    return min(1.0, max(lowest, _DEAR / epsilon)) if epsilon > 0.0 else 1.0


@dataclass(frozen=True)
class ChainSettings:
    """What a goal asks of a chain of releases; public, and any values are sound.

    Attributes
    ----------
    loss
        What is minimised for it.
    reach
        R, a guess of how far apart models are, in units of the table; λ = 1/(xR) at level x.
    start
        x of the first level: the inverse of the typical noise on a mean gradient.
    test_part
        ε of a test, as a part of the ε of the model tested.
    steer
        How large a shortfall is large; settles how far the next level goes.
    lowest
        A first level that would be dear starts with more noise: down to this part of ``start``.
    """

    loss: Loss
    reach: float
    start: float
    test_part: float
    steer: float
    lowest: float = 1.0
