"""A fraction of what a baseline leaves on the table, reduced to an excess risk that any method can promise.

The best constant, which people compare a model with: always the mean, or always the same probability. Private.

C = min over u of mean φ(u, y), without a penalty: ½Var(y) for the squared loss (u = ȳ), the entropy H(q) = −q ln q −
(1 − q) ln(1 − q) of the share q of positive labels for the logistic loss. What it leaves on the table is G = C − min L.
It may be negative: min L pays a penalty, the constant does not.

*Claim.* One row replaced moves C by at most 2(n − 1)/n² (squared, |y| ≤ 1), or H(1/n) (logistic).
*Proof.* With m the mean of the other targets, Var(y) = const + ((n − 1)/n²)(y − m)², and (y − m)² is between 0 and 4:
4(n − 1)/n² for Var, half of that for C. H(k/n) is concave in k, which moves by at most one: no step is larger than the
first, H(1/n) − H(0). ∎ Both are attained: all targets at −1 and one replaced by 1; all labels equal and one replaced.

*Claim.* It moves min L by at most ω(R)/n, ω(R) the spread of φ over predictions of size at most R, R a bound on the
minimiser's norm. *Proof.* min L ≤ L(w′), w′ the neighbour's minimiser, and L(w′) − L′(w′) is (φ(xᵀw′, y) − φ(x′ᵀw′,
y′))/n, all other rows and the penalty being the same. Exchange the names. ∎ So G moves by at most their sum.

How far G = L(0) − min L, what the null model leaves on the table, can move when one row is replaced:

*Claim.* Let a(u, y) = φ(0, y) − φ(u, y) and ω(r) = max a − min a over |u| ≤ r and admissible y (``loss.gap_range``).
If G ≤ G′ then G′ − G ≤ ω(ρ(G′))/n, ρ(g) = min(R, √(2g/λ)), R a bound on the minimiser's norm.

*Proof.* Let w′ minimise L′, everywhere or over a ball around 0, with d the row that is replaced by d′. G ≥ L(0) −
L(w′), so G′ − G ≤ [L′(0) − L′(w′)] − [L(0) − L(w′)] = (a(x′ᵀw′, y′) − a(xᵀw′, y))/n: all other rows and the penalty
cancel. Both predictions are at most ‖w′‖ in size. ‖w′‖ ≤ R; and strong convexity with optimality, ⟨∇L′(w′), 0 − w′⟩
≥ 0, gives G′ = L′(0) − L′(w′) ≥ (λ/2)‖w′‖². The other direction is the same with the names exchanged. ∎

So the sensitivity is ω(R)/n everywhere (½(R + 1)²/n squared for R ≥ 1, R/n logistic), and smaller where G is small.
That is put to use by releasing h(G) instead, h increasing with slope at most 1/ω(ρ(g)): where G is uncertain by much, h
is flat. h is piecewise linear with slopes 1/Ω_k, Ω_k = ω at the right end of cell k.

*Claim.* |h(G′) − h(G)| ≤ max over k of h(v) − h(max(0, v − Ω_k/n)), v = g_k and v = min(g_{k+1}, Ω_k/n) if v ≥ g_k.
*Proof.* For the larger value G′ = v in cell k the smaller one is at least v − Ω_k/n. h(v) − h(v − Ω_k/n) decreases in
v within a cell, h being concave; while v < Ω_k/n the second term is h(0) = 0 and the difference increases. ∎
About 1/n if ω changes little from cell to cell, and the first cell is wide enough to hold a change of its Ω.

A private lower bound on G, what a baseline leaves on the table: L(0) − min L for the null model, C − min L for the
best constant.

*Released*: h(G) plus noise at levels ε₁ < … < ε_t, h a public scale (for a constant G itself). *Neighbours*: one row
replaced. *Sensitivity*: about 1/n on that scale, floating point and rounding to a grid included. *Theorem (privacy)*:
gradual release; the decision to stop reads only what was released, so stopping at t costs ε_t. *Theorem (accuracy)*: at
level t the noise exceeds (Δ/ε_t)·ln(T/(2δ)) with probability at most δ/T, so with probability 1 − δ all T lower bounds
hold, the one stopped at included.

The search stops as soon as the lower bound is at least 0.7 of the noisy value. A fraction r of the lower bound is then
an excess risk below r·G, and any method may go on from there with what is left of the budget and of γ
(:class:`RelativePlan`): losses add, the target being a function of what was released, and so do failure probabilities,
the probe's share of γ and the rest, which is the method's. If the baseline is the optimum, G is 0 and no level stops: a
refusal, which costs ε_T.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from expost import validation
from expost.account.account import Account
from expost.account.composition import add_losses
from expost.exceptions import TargetUnreachable
from expost.goals.excess_risk import ExcessRisk
from expost.goals.goal import ABOUT_RISK, Goal
from expost.noise import NoisePath, WordSource
from expost.numeric import (
    INFLATION,
    UNIT,
    FloatArray,
    Grid,
    bisected,
    gamma,
    geometric_levels,
    round_up,
    summation_length,
)
from expost.release.release import Promise, Release
from expost.shown import down, up
from expost.solve import ErrorBounds, Loss, Problem, Risk

if TYPE_CHECKING:
    from expost.mechanisms.mechanism import Generator
    from expost.search.request import Plan, Request


def has_constant(loss: Loss) -> bool:
    """Whether the best constant of a loss is known here in closed form."""
    return loss.name in ("squared", "logistic")


def constant_sensitivity(loss: Loss, n: int) -> float:
    """Return how far one row can move the loss of the best constant, rounded up.

    Examples
    --------
    >>> from expost.solve.losses import LogisticLoss, SquaredLoss
    >>> round(constant_sensitivity(SquaredLoss(), 1000) * 1000, 3)
    1.998
    >>> round(constant_sensitivity(LogisticLoss(), 1000) * 1000, 3)
    7.907
    """
    if loss.name == "squared":
        return round_up(2.0 * (n - 1) / n / n)
    return round_up(_entropy(1, n) * (1 + 1e-12))


def constant_gain(risk: Any, loss: Loss) -> float:
    """Return L(0) − C, what the best constant gains over predicting zero, from a risk that holds the rows; private."""
    if loss.name == "squared":
        mean = risk.target_mean
        if mean is None:
            raise ValueError("these sums say nothing of Σy, which the best constant needs; make them with sums_over")
        return 0.5 * float(mean) ** 2
    objective = risk.objective
    return math.log(2.0) - _entropy(objective.count(objective.y > 0.0), objective.n)


def constant_gain_error(n: int) -> float:
    """Return a bound on the rounding error of :func:`constant_gain`: a mean of numbers of size 1, a few logarithms."""
    return INFLATION * 4.0 * gamma(summation_length(n) + 16)


def _entropy(positive: int, n: int) -> float:
    shares = (positive / n, (n - positive) / n)
    return math.fsum(-share * math.log(share) for share in shares if share > 0.0)


@dataclass(frozen=True)
class ConstantScale:
    """The scale on which the gap of the best constant is released: as it is. Public.

    Attributes
    ----------
    sensitivity
        How far one row can move the gap, the error of its computation included.
    """

    sensitivity: float

    @classmethod
    def of(cls, loss: Loss, n: int, *, radius: float, error_bound: float) -> ConstantScale:
        """Settle it from public numbers."""
        return cls(round_up(constant_sensitivity(loss, n) + round_up(loss.spread(radius)) / n + 2.0 * error_bound))

    def height(self, gap: float) -> float:
        """Return the gap."""
        return gap

    def gap(self, height: float) -> float:
        """Return the height."""
        return height


Baseline = Literal["constant", "null"]


@dataclass(frozen=True)
class RelativeExcessRisk(Goal):
    """At most this fraction of what the best constant leaves on the table: L(θ) − min L ≤ r·(C − min L).

    Parameters
    ----------
    fraction : float
        r, strictly between 0 and 1.
    baseline : {"constant", "null"}, default="constant"
        What the best model is compared with. C is the mean loss of the best constant, without a penalty: half the
        variance of the target, or the entropy of the labels. ``"null"`` compares with L(0) instead, what predicting
        the middle of the target's bounds (or a probability of ½) leaves on the table, which is easier to beat.

    Examples
    --------
    >>> RelativeExcessRisk(0.1)
    RelativeExcessRisk(fraction=0.1, baseline='constant')
    """

    fraction: float
    baseline: Baseline = "constant"

    name = "relative excess risk"
    methods = ("auto", "certified", "stationarity", "above_threshold", "doubling")
    pure_only = True

    def __post_init__(self) -> None:
        self.settle("fraction")
        validation.one_of("baseline", self.baseline, ("constant", "null"))

    @property
    def against(self) -> str:
        """Name the baseline."""
        return "the null model" if self.baseline == "null" else "the best constant"

    @property
    def none_better(self) -> str:
        """Say what it means that there is no gap."""
        if self.baseline == "null":
            return "the null model is the optimum"
        return "no model is better than the best constant at this regularization, and a smaller one may help"

    def require(self, loss: Loss) -> None:
        """Raise unless the best constant is known."""
        if self.baseline == "constant" and not has_constant(loss):
            raise ValueError(
                f"the best constant is known for the squared and the logistic loss, not for the {loss.name} loss; pass "
                f"RelativeExcessRisk({self.fraction:g}, baseline='null')"
            )

    def require_rows(self, generator: Any) -> None:
        """Raise for sums made by hand without the one that the best constant needs."""
        if self.baseline == "constant":
            constant_gain(generator.risk, generator.problem.loss)

    def promise(self, problem: Problem, reduced: Promise | None = None) -> Promise:
        """Return the promise, with the excess risk it was reduced to if it came to that."""
        alpha = None if reduced is None else reduced.excess_risk
        whose = "that of the null model θ = 0"
        if self.baseline == "constant":
            whose = "what the best constant (its mean loss, no penalty) is above the minimum"
        number = "" if alpha is None else f" (and at most {up(alpha, 6)})"
        return Promise(
            f"the excess {ABOUT_RISK} is at most {up(self.fraction, 6)} of {whose}{number}, against "
            f"{problem.compared_with}",
            excess_risk=alpha,
            goal=self.name,
            at_most=self.fraction,
        )

    def plan(self, request: Request) -> Plan:
        """Measure what the baseline leaves on the table, and go on for a fraction of that."""
        return RelativePlan.of(self, request)

    def charged(self, by_method: tuple[str, ...]) -> tuple[str, ...]:
        """Say what was charged."""
        gap = f"gap of {self.against}: rounded to a public grid, floating-point error bounded and charged"
        return (*super().charged(by_method), gap)


_CELLS = 512
_FIRST_CHANGES = 20  # the first cell holds this many changes of one row


@dataclass(frozen=True, eq=False)
class GapScale:
    """The public scale h on which a gap is released.

    Attributes
    ----------
    gaps, heights
        Corners of h.
    sensitivity
        Bound on |h(G′) − h(G)|, the error of a computed G included.

    Examples
    --------
    >>> from expost.solve.losses import LogisticLoss
    >>> scale = GapScale.of(LogisticLoss(), 100_000, 0.005, radius=7.5)
    >>> 1.0 <= scale.sensitivity * 100_000 < 1.1
    True
    >>> round(scale.gap(scale.height(0.3)), 12)
    0.3
    """

    gaps: FloatArray
    heights: FloatArray
    sensitivity: float

    @classmethod
    @lru_cache(maxsize=64)  # the same for every run of an experiment
    def of(cls, loss: Loss, n: int, lam: float, *, radius: float, error_bound: float = 0.0) -> GapScale:
        """Settle the scale from public numbers; ``error_bound`` is that of a computed G."""
        top = loss.null_value  # φ ≥ 0, so no gap is larger

        def omega(gap: float) -> float:
            return round_up(loss.gap_range(min(radius, math.sqrt(2.0 * (gap + error_bound) / lam) * (1.0 + 1e-12))))

        _, high = bisected(lambda gap: omega(gap) * _FIRST_CHANGES > n * gap, 0.0, top, 60)
        gaps = np.concatenate([[0.0], np.geomspace(min(high, top / 2), top, _CELLS)])
        ranges = np.array([omega(float(gap)) for gap in gaps[1:]])
        ranges = np.maximum.accumulate(ranges)  # ω increases; so must its bounds, to the last bit
        heights = np.concatenate([[0.0], np.cumsum(np.diff(gaps) / ranges)])
        change = ranges / n + 2.0 * error_bound
        inner = np.minimum(gaps[1:], change)
        corners = np.concatenate([gaps[:-1], np.where(inner >= gaps[:-1], inner, gaps[:-1])])
        moved = np.interp(corners, gaps, heights) - np.interp(
            np.maximum(0.0, corners - np.tile(change, 2)), gaps, heights
        )
        for array in (gaps, heights):
            array.setflags(write=False)
        rounding = 4.0 * (_CELLS + 16) * UNIT * float(heights[-1])
        return cls(gaps, heights, round_up(float(moved.max()) + rounding))

    def height(self, gap: float) -> float:
        """Return h, for a gap moved into its range."""
        return float(np.interp(gap, self.gaps, self.heights))

    def gap(self, height: float) -> float:
        """Return the gap of a height; beyond the ends, that of the nearest one."""
        return float(np.interp(height, self.heights, self.gaps))


PROBE_SHARE = 0.1  # of the failure probability
_ENOUGH = 0.7
_LEVELS = 16
_MOST_EPSILON = 1.0  # without a budget; a gap that ε = 1 cannot tell from nothing is little to build on
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
        last = _MOST_EPSILON if max_epsilon is None else _OF_BUDGET * max_epsilon
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


@dataclass(frozen=True)
class RelativePlan:
    """Measure the gap, then search for a fraction of it."""

    goal: RelativeExcessRisk
    request: Request
    probe: GapPlan

    baseline: ClassVar[bool] = True

    @classmethod
    def of(cls, goal: RelativeExcessRisk, request: Request) -> RelativePlan:
        """Settle the probe, and let the method say now what it would say after the most hopeful one."""
        probe = GapPlan.of(
            request.problem, request.failure_probability, request.errors, request.max_epsilon, goal.baseline
        )
        plan = cls(goal, request, probe)
        plan.reduced(request.problem.loss.null_value, probe.levels[0]).plan()
        return plan

    @property
    def worst_case(self) -> float:
        """No outcome costs more than the budget; without one there is no bound, the gap being unknown."""
        return math.inf if self.request.max_epsilon is None else self.request.max_epsilon

    def reduced(self, gap: float, spent: float) -> Request:
        """Return the request for a fraction of a gap, with what is left of γ and of the budget.

        With room for a few roundings: the probe's loss joins one of the method's own, and each sum is rounded up.
        """
        request, budget = self.request, self.request.max_epsilon
        return request.reduced_to(
            ExcessRisk(self.goal.fraction * gap * (1 - 1e-12)),
            failure_probability=(1 - PROBE_SHARE) * request.failure_probability,
            max_epsilon=None if budget is None else (budget - spent) * (1 - 1e-12),
        )

    def search(self, generator: Generator, account: Account, source: WordSource) -> Release:
        """Probe, and go on with what the probe leads to."""
        problem, budget = self.request.problem, self.request.max_epsilon
        found = probe_gap(generator.risk, problem.loss, problem.p, self.probe, source)
        account.probe = add_losses(account.probe, found.epsilon)
        if found.lower is None:
            account.reasons.append(
                f"gap of {self.goal.against} probed for epsilon = {up(found.epsilon)}: about {found.noisy:.3g}, not to "
                f"be told from nothing at that epsilon with {problem.n:,} rows"
                + (", half of max_epsilon; a larger one may do" if budget is not None and found.epsilon < 1.0 else "")
                + f". Or {self.goal.none_better}; no fraction is promised"
            )
            return account.refused()
        reason = f"gap of {self.goal.against} probed for epsilon = {up(found.epsilon)}: at least {down(found.lower, 3)}"
        request = self.reduced(found.lower, found.epsilon)
        assert request.goal is not None
        alpha = request.goal.number
        try:
            plan = request.plan()
        except TargetUnreachable:  # whose message says that nothing was spent
            account.reasons.append(
                f"{reason}; excess risk {up(alpha, 3)} is out of reach with what is left of the budget"
            )
            return account.refused()
        account.reasons.append(reason)
        inner = plan.search(generator, Account(account.method, plan.worst_case, account.secure), source)
        return account.conclude(inner, promise=Promise("reduced", excess_risk=alpha))
