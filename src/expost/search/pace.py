"""How a search under Gaussian noise goes from stage to stage; public, and any values are sound."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from expost.goals.goal import TestedGoal
from expost.goals.shortfall import lowered

#: Looks below this part of a model's ρ cost less with Gaussian noise: 5.7(√(1 + part) − 1) against 1.6√part, the factor
#: for δ of the one and the quotient of both margins.
_SMALL = 0.35


@dataclass(frozen=True)
class Pace:
    """How stages and looks go; public, and any values are sound.

    Attributes
    ----------
    start, lowest
        The first stage's noise on a mean gradient, averaged over the stage, is at most 1/start in units of the table;
        where that would be dear, more, down to this part of ``start``.
    lower
        The part of its usual ``start`` that the first stage has.
    clear
        A first look can show a shortfall of this part of what the goal calls large.
    growth
        From one stage's ρ to the next one's; where stages gather, of all of them together.
    gathers
        Whether a model is made of all that was paid for so far, or of its own stage alone.
    pure_looks
        Whether looks have Laplace noise. Gaussian looks add up in squares with what models cost, which is less where
        looks are small beside models; Laplace noise needs no factor for δ, and can be taken away step by step.
    test_part
        Of a first look, as a part of what the model cost: of its ρ, or under Laplace noise of its ε at δ.
    levels
        How many levels a look under Laplace noise may have.
    again
        A second look's, as a multiple of the first one's; under Gaussian noise.
    kept, first
        Part of γ left after each stage, and part of a stage's for its first look under Gaussian noise.
    reach
        For perturbed objectives: R, a guess of how far models are apart in units of the table; where noise on a mean
        gradient is 1/x, λ = 1/(xR).
    step, length, settled
        For descents: a step's noise on a mean gradient is 1/step in units of the table, and its size length over the
        loss's largest curvature and the mean square of rows' lengths; after as many steps as ``settled`` the k-th is
        √(settled/k) times as long.
    """

    start: float = 16.0
    lowest: float = 1.0
    lower: float = 1.0
    clear: float = 0.8
    growth: float = 1.6
    gathers: bool = True
    pure_looks: bool = False
    test_part: float = 0.3
    levels: int = 3
    again: float = 3.0
    kept: float = 0.6
    first: float = 0.5
    reach: float = 5.0
    step: float = 2.8
    length: float = 0.6
    settled: float = math.inf

    def from_start(self, epsilon: float) -> Pace:
        """Return the pace where a first stage would cost ε: with more noise if that is dear, in as many steps."""
        part = lowered(epsilon, self.lowest)
        return replace(self, start=part * self.start, step=part * self.step, lowest=1.0, lower=part)

    @classmethod
    def of(cls, goal: TestedGoal | None, **fields: Any) -> Pace:
        """Return a pace with looks that suit a goal: closer ones, and fewer, where looks are dear beside models."""
        part = 0.3 if goal is None else 2.0 * goal.chain().test_part
        if part <= _SMALL:
            return cls(**{"test_part": part, **fields})
        looks = {"pure_looks": True, "test_part": 0.225 * part, "levels": 4, "kept": 0.2, "clear": 0.7, "growth": 2.2}
        return cls(**{**looks, **fields})
