"""How a search under Gaussian noise goes from stage to stage; public, and any values are sound."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Pace:
    """How stages and looks go; public, and any values are sound.

    Attributes
    ----------
    start
        The first stage's noise on a mean gradient, averaged over the stage, is at most 1/start in units of the table.
    clear
        Its first look can show a shortfall of this part of what the goal calls large.
    growth
        From one stage's ρ to the next one's; where stages gather, of all of them together.
    gathers
        Whether a model is made of all that was paid for so far, or of its own stage alone.
    test_part
        ρ of a first look, as a part of what the model cost.
    again
        ρ of a second look, as a multiple of the first one's.
    kept, first
        Part of γ left after each stage, and part of a stage's for its first look.
    reach
        For perturbed objectives: R, a guess of how far models are apart in units of the table; where noise on a mean
        gradient is 1/x, λ = 1/(xR).
    step, length
        For descents: a step's noise on a mean gradient is 1/step in units of the table, and its size length over the
        loss's largest curvature.
    """

    start: float = 16.0
    clear: float = 0.8
    growth: float = 1.6
    gathers: bool = True
    test_part: float = 0.3
    again: float = 3.0
    kept: float = 0.6
    first: float = 0.5
    reach: float = 5.0
    step: float = 2.4
    length: float = 0.3
