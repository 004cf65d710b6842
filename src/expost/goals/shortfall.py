"""How far a hypothesis misses a goal, as one number: what a chain of releases is tested and steered by.

*Released*: noisy shortfalls. *Neighbours*: one row replaced. A goal says how far one row can move its shortfall.
"""

from __future__ import annotations

from dataclasses import dataclass

from expost.erm.losses import Loss


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
    """

    loss: Loss
    reach: float
    start: float
    test_part: float
    steer: float
