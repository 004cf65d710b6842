"""A private lower bound on G, what a baseline leaves on the table: L(0) − min L for the null model, C − min L for the
best constant (`expost.erm.baseline`).

*Released*: h(G) plus noise at levels ε₁ < … < ε_t, h a public scale (for a constant G itself). *Neighbours*: one row
replaced. *Sensitivity*: about 1/n on that scale (`expost.erm.sensitivity.gap`; `expost.erm.baseline` for a constant),
floating point and rounding to a grid included. *Theorem (privacy)*: gradual release; the decision to stop reads only
what was released, so stopping at t costs ε_t. *Theorem (accuracy)*: at level t the noise exceeds (Δ/ε_t)·ln(T/(2δ))
with probability at most δ/T, so with probability 1 − δ all T lower bounds hold, the one stopped at included.

The search stops as soon as the lower bound is at least 0.7 of the noisy value. A fraction r of the lower bound is then
an excess risk below r·G, and any method may go on from there with what is left of the budget and of γ; losses and
failure probabilities add. If the baseline is the optimum, G is 0 and no level stops: a refusal, which costs ε_T.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from expost.erm.baseline import ConstantScale, constant_gain, constant_gain_error
from expost.erm.error_bounds import ErrorBounds
from expost.erm.losses import Loss
from expost.erm.problem import Problem
from expost.erm.risk import Risk
from expost.erm.sensitivity.gap import GapScale
from expost.erm.sensitivity.grid import Grid
from expost.exceptions import TargetUnreachable
from expost.goals.relative import Baseline
from expost.noise.path import NoisePath
from expost.noise.source import WordSource
from expost.rounding import down, up
from expost.search.levels import geometric_levels

PROBE_SHARE = 0.1  # of the failure probability
_ENOUGH = 0.7
_LEVELS = 16
_MOST = 1.0  # without a budget; a gap that ε = 1 cannot tell from nothing is little to build on
_OF_BUDGET = 0.5  # with one
_LARGE = 2.0  # for a constant: more is a large ε in itself


@dataclass(frozen=True, eq=False)
class GapPlan:
    """Scale and levels of the probe; public."""

    scale: GapScale | ConstantScale
    grid: Grid
    levels: tuple[float, ...]
    failure_probability: float
    error_bound: float
    baseline: Baseline = "null"

    @classmethod
    def of(
        cls,
        problem: Problem,
        failure_probability: float,
        errors: ErrorBounds,
        max_epsilon: float | None,
        baseline: Baseline = "null",
    ) -> GapPlan:
        """Settle them, or say that no data set of this size has a gap large enough to be seen."""
        error = errors.excess_error_bound(0.0)
        loss, n, radius = problem.loss, problem.n, problem.radius
        scale: GapScale | ConstantScale
        if baseline == "null":
            scale = GapScale.of(loss, n, problem.regularization, radius=radius, error_bound=error)
        else:
            error += constant_gain_error(n)
            scale = ConstantScale.of(loss, n, radius=radius, error_bound=error)
        grid = Grid.of(scale.sensitivity)
        failure = PROBE_SHARE * failure_probability
        last = _MOST if max_epsilon is None else _OF_BUDGET * max_epsilon
        if baseline == "constant":
            last = min(last, _LARGE)
        largest = problem.loss.null_value
        room = scale.height(largest) - scale.height(_ENOUGH * largest)
        first = grid.effective_sensitivity * math.log(_LEVELS / (2 * failure)) / room
        if first > last:
            against = "the null model" if baseline == "null" else "the best constant"
            rows = math.ceil(problem.n * first / last * 1.1)
            raise TargetUnreachable(
                f"at n = {problem.n} measuring what {against} leaves on the table would cost at least epsilon = "
                f"{up(first)}, and {down(last)} may be spent on it. Pass a larger max_epsilon, a larger "
                f"regularization, about {rows:,} rows, or an excess_risk instead. Nothing was spent."
            )
        return cls(scale, grid, geometric_levels(first, last, _LEVELS), failure, error, baseline)

    def lower(self, height: float, epsilon: float) -> float:
        """Return the lower bound on the gap from a noisy height."""
        tail = math.log(len(self.levels) / (2 * self.failure_probability))
        # one unit for rounding down, one for the discrete tail against the continuous one
        margin = self.grid.effective_sensitivity / epsilon * tail * (1 + 1e-9) + 2 * self.grid.unit
        return (self.scale.gap(height - margin) - self.error_bound) * (1 - 1e-9)


@dataclass(frozen=True)
class GapBound:
    """What the probe released."""

    lower: float | None
    noisy: float
    epsilon: float


def probe_gap(risk: Risk, loss: Loss, p: int, plan: GapPlan, source: WordSource) -> GapBound:
    """Release noisy gaps until one proves a lower bound worth having; ``lower`` is None if none does."""
    gap = risk.excess(np.zeros(p))
    if plan.baseline == "constant":
        gap -= constant_gain(risk, loss)
    height = plan.scale.height(gap)
    value = np.array([math.floor(height / plan.grid.unit)], dtype=np.int64)
    bound = GapBound(None, 0.0, 0.0)
    for step in NoisePath(value, plan.grid.units, plan.levels, random_state=source):
        noisy_height = int(step.values[0]) * plan.grid.unit
        noisy, lower = plan.scale.gap(noisy_height), plan.lower(noisy_height, step.epsilon)
        if lower > 0 and lower >= _ENOUGH * noisy:
            return GapBound(lower, noisy, step.epsilon)
        bound = GapBound(None, noisy, step.epsilon)
    return bound
