"""Noisy gradient descent: each step releases a sum of clipped gradients with exact Gaussian noise (theory C6).

*Released*: first M = Σ x̂_i + noise, x̂ a row shortened to a public length; its mean is where rows are looked at from
(`expost.mechanisms.descent.clipping`). Then how long rows are there, one noisy number: a sum of whole parts between 0
and 2¹⁶, which one row moves by 2¹⁶ at most. Then G_t = Σ s_i x̃_i + noise at θ_t, which was computed from what was
released before; x̃ is a row in that frame. *Neighbours*: one row replaced. *Sensitivity*: ‖s·x̃‖ ≤ C for every row, in
integers (`expost.mechanisms.descent.clipping`), so a sum moves by ‖s·x̃ − s′·x̃′‖ ≤ 2C, whatever the frame and C are; k
rows that are replaced together move it by 2kC.

*Theorem*. A step costs rρ at Rényi order r, ρ = (2kC)²/(2σ²), whatever θ_t and the frame are: by the discrete
Gaussian's divergence, coordinate by coordinate (`expost.noise.gaussian`). Steps are chosen from what was released
before, so their curves add (`account.composition`); nothing is subsampled and nothing amplified. θ_{t+1}, averages of
iterates, the frame and step sizes read released numbers only.

*Stages.* A stage is a number of noisy gradient steps that together cost ρ; it goes on from where the last one ended,
and its model is the mean of the later half of its iterates: nothing that was paid for is thrown away. Stages, tests and
both theorems of a search are those of `expost.search.levels`.

*Centre.* A part of the first stage is spent on the mean of the rows. Seen from there
(`expost.mechanisms.descent.clipping`) rows are short and their columns hardly correlated with the constant: shorter
gradients need less noise and fewer steps. What of the mean is lost in its noise is left out. A smaller part is spent on
the mean of their squared lengths there, one number: gradients are clipped, and steps are as long, as that allows.

*Noise and steps.* With T steps that share ρ, noise adds about T/ρ to the loss and what is left to descend along flat
directions 1/T, so T grows like √ρ and the noise of a step falls as ρ grows (for labels, whose models grow longer on the
way, a little faster: ρ^¾). Descent that ends early shrinks a model as a λ would, the less the longer it goes on: noise
and shrinkage fall together (theory C5).

*Typical noise.* Where the rows bend the loss by H, noise ξ_t scatters iterates by a linear recursion: with step sizes
s_t and momentum μ, (ψ, v, Σψ) goes to (ψ + v′, v′, Σψ + ψ + v′), v′ = μv − s_t(Hψ + ξ_t), beside what does not depend
on noise. All but H is public; noise is alike in all columns of the frame and independent, so along an eigenvector of H
all is a matter of its eigenvalue, and the variance of the mean of the later iterates follows. H is not public, but what
was released tells something of it for nothing: G_t = Hψ_t + ξ_t and what is the same all the way, so H is estimated by
ridge regression of gradients on iterates (made symmetric, and its negative eigenvalues zero), the ridge as what was
released makes it likely. Where the way says nothing of a direction, H is zero in it, nothing draws iterates back, and
noise alone is left, which is too much where rows bend the loss. A walk in another view takes the last model's noise
over whole, through the public maps between views (`expost.table.views`), as a search does that turns to another way.
The frame counts as given. It is an estimate, and no bound (`benchmarks/results/noise_bands.md`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from expost.account.composition import ROW, Curve, Unit
from expost.goals.goal import TestedGoal
from expost.goals.measure import Judge
from expost.mechanisms.descent.clipping import (
    PARTS,
    SLOPE_ONE,
    Clip,
    ClippedGradients,
    Frame,
    SlopeTable,
    typical_length,
)
from expost.mechanisms.mechanism import Mechanism, require_shape
from expost.mechanisms.objective.perturbation import ObjectivePerturbation
from expost.noise.gaussian import discrete_gaussian
from expost.noise.laplace import Integers
from expost.noise.source import WordSource
from expost.numeric import to_grid
from expost.passes.sums import Sums
from expost.passes.views import seen
from expost.release.release import Release
from expost.search.levels import (
    Floats,
    Schedule,
    StagedMechanism,
    StagedPlan,
    block_sums,
    level_at,
    noise_of_level,
    rho_at,
)
from expost.solve.error_bounds import GeneralErrors
from expost.solve.losses import Loss, weighted
from expost.solve.problem import Problem
from expost.solve.row_sums import Passes
from expost.table.rows import ONE, Rows, RowSource
from expost.table.shape import Geometry
from expost.table.views import seen_at

_UP = 1.0 + 1e-12  # rounding of a few products


@dataclass(frozen=True)
class GradientNoise:
    """How one noisy sum is drawn, and what it costs; public.

    Attributes
    ----------
    columns
        How many numbers it has.
    most
        C, in units of 2⁻³²; k times that where k rows are replaced together.
    rho
        ρ of one step.
    """

    columns: int
    most: int
    rho: float

    @property
    def deviation(self) -> float:
        """σ, in units of 2⁻³²."""
        return 2.0 * self.most / math.sqrt(2.0 * self.rho) * _UP

    def draws(self, steps: int, source: WordSource) -> Integers:
        """Return the noise of that many steps, one in each row: it depends on nothing that is private."""
        drawn = discrete_gaussian(self.deviation, steps * self.columns, random_state=source)
        return drawn.reshape(steps, self.columns)


def noisy_sum(total: Iterable[int], noise: Integers) -> NDArray[np.float64]:
    """Return a sum with its noise, added in integers, in units of 1."""
    exact = [int(value) + int(more) for value, more in zip(total, noise, strict=True)]
    return np.array([value / (ONE * SLOPE_ONE) for value in exact], dtype=np.float64)


class DescentGenerator:
    """The private side: rows whose gradients are summed, and what goals are measured on."""

    def __init__(self, mechanism: GradientDescent, rows: Rows | RowSource, problem: Problem) -> None:
        self.mechanism, self.problem, self.rows = mechanism, problem, rows
        self.judge = Passes.over(problem.loss, rows)


@dataclass(frozen=True)
class GradientDescent(StagedMechanism):
    """Noise on every gradient; for losses whose slope is bounded, under approximate privacy.

    Parameters
    ----------
    geometry
        The rows' shape, which says how they are looked at.
    then
        The shape that pure noise on the objective would follow, where a search may turn to that.
    """

    geometry: Geometry
    then: Geometry | None = None

    gaussian = True
    name = "gradient descent"
    instead = "gradient descent is for goals that are tested, not for an excess risk"
    exact = ("rows in fixed point", "sums of clipped gradients", "generation noise", "test noise and comparisons")

    @property
    def charged(self) -> tuple[str, ...]:  # type: ignore[override]
        """What is floating point and charged: nothing of its own, but a search may turn to noise on the objective."""
        if self.then is None:
            return ()
        return tuple(f"{part} (where it turned to noise on the objective)" for part in ObjectivePerturbation.charged)

    def require(self, problem: Problem) -> None:
        """Raise unless slopes are bounded."""
        if not math.isfinite(problem.loss.lipschitz(math.inf)):
            raise ValueError(f"gradient descent needs a loss of bounded slope, not the {problem.loss.name} loss")

    def require_declared(self, rows: Rows | RowSource | Sums) -> None:
        """Raise unless rows declare the shape, and the constant that frames are moved by."""
        constant = self.geometry.constant
        fitting = require_shape(rows, self.geometry, self.name)
        if self.then is not None:
            require_shape(rows, self.then)
        if constant is not None and fitting.constant != (constant, Frame.of(self.geometry).value):
            raise ValueError(
                f"rows do not declare the constant that {self.name} is made for; pass constant to Rows. "
                f"Nothing was spent"
            )

    def errors(self, problem: Problem) -> GeneralErrors:
        """Return the errors of risks that come from passes over the rows."""
        return GeneralErrors(problem.loss, problem.n, problem.p, problem.regularization)

    def can_certify(self, problem: Problem) -> bool:
        """Whether a certificate applies: none does."""
        return False

    def behind(self, release: Release) -> Mechanism:
        """Return the mechanism that the model came from: a search that turned ends with noise on the objective."""
        if self.then is None or release.perturbation != ObjectivePerturbation.name:
            return self
        return ObjectivePerturbation(self.then)

    def on(self, rows: Rows | RowSource | Sums, problem: Problem) -> Any:
        """Return the generator for private rows."""
        self.require_rows(rows, problem)
        assert not isinstance(rows, Sums)
        return DescentGenerator(self, rows, problem)


_MOMENTUM = 0.8  # part of a step that is taken again
_GUESSES = np.geomspace(1e-2, 1e3, 61)  # of g times the largest singular value: from nothing known to all of it
_TOLD = 1e-9  # directions in which iterates differ by a smaller part tell nothing
_LEAST_STEPS, _MOST_STEPS = 8, 512  # of a stage
_CENTRE, _LENGTHS = 0.07, 0.01  # parts of the first stage's ρ for the centre, and for how long rows are
_LESS_CLIPPED = 0.25  # C grows with this power of all ρ: what clipping misleads by counts more where noise is less
# of tables that steps were looked at on: fewer share less noise out, and a prediction gets more of it in every step
_COLUMNS = {"binary": 113, "real": 30}
_TOGETHER = 0.4  # steps where all columns are numbers: they move together more than indicators do
_LONGEST = 2.0  # rows that are this many times as long as was guessed count as that
_START_LABELS, _START = 26.0, 120.0  # of a first stage, for an error rate and for an R² of 0.8
_USUAL = 5.0  # where a chain starts for an error rate
_STEP = 9.0  # of a mean square
_SPREAD, _UNEXPLAINED = 0.43, 0.2  # where these were looked at
_SEEN = 2.0  # a mean that is that many deviations of its noise large is one


def stretch_of(loss: Loss) -> int:
    """Return how far numbers are stretched beside indicators: far where a number is predicted from them; public."""
    return 2 if loss.labels == "binary" else 4


def clip_slope(loss: Loss) -> float:
    """Return where the slope of a row of typical length is cut; public.

    It is a part of the loss's largest: what a large residual says beyond that is worth less than the noise it costs.
    Probabilities need every slope.
    """
    part = 1.0 if loss.unweighted.name == "logistic" else 0.6 if loss.labels == "binary" else 0.45
    return part * loss.lipschitz(math.inf)


class DescentPlan(StagedPlan):
    """Gradient descent, stage by stage; attributes are those of :class:`~expost.search.levels.StagedPlan`."""

    each = "gradient descent under Gaussian noise: {stages} stage(s)"
    timed: ClassVar[bool] = True

    @classmethod
    def usual_schedule(cls, loss: Loss, goal: TestedGoal | None = None) -> Schedule:
        """Return the schedule for a loss and a goal: mean squares take closer looks."""
        if loss.labels == "binary":
            start = _START_LABELS * (1.0 if goal is None else goal.chain().start / _USUAL)
            return Schedule(start=start, growth=3.0, fastest=3.0, step=3.5, more_steps=0.75, length=1.3, settled=48)
        if goal is None:
            return Schedule(start=_START, growth=2.2, fastest=2.2, step=_STEP, length=1.4)
        # what a goal leaves unexplained is what noise has to be small beside
        asked = goal.chain()
        part, unit = min(3.0, max(0.5, _UNEXPLAINED * asked.spread**2 / asked.steer)), _SPREAD / asked.spread
        return Schedule(start=_START * part * unit, growth=2.2, fastest=2.2, step=_STEP * unit, length=1.4)

    def measured(self, goal: TestedGoal, gamma: float) -> Self:
        """Return the plan for a goal as it was measured: slopes and steps follow it."""
        plan = super().measured(goal, gamma)
        loss = weighted(goal.chain().loss, self.loss.class_weights)
        return replace(plan, loss=loss, schedule=self.usual_schedule(self.loss, goal))

    @classmethod
    def noise_of(cls, loss: Loss, geometry: Geometry) -> float:
        """Return the same for gradients that are clipped by their length."""
        length = typical_length(geometry, stretch_of(loss), centred=True)
        return clip_slope(loss) * length * math.sqrt(geometry.columns)

    def walk(self, generator: DescentGenerator) -> tuple[ViewedWalk, Judge]:
        """Return the descent, at its beginning."""
        return ViewedWalk(self, generator.rows), generator.judge

    def seen(self, rho: float) -> Geometry:
        """Return the shape of what a stage sees of rows, where all stages so far have cost ρ."""
        first = self.noise_of(self.loss, self.geometry.coarsest)
        x = level_at(rho, first, self.n, self.unit) / self.geometry.scale
        return seen_at(self.geometry, x, lambda shape: self.noise_of(self.loss, shape), self.goal.chain().sharper)


class ViewedWalk:
    """A descent that sees rows as finely as its noise allows; in a finer view it goes on from its last model."""

    def __init__(self, plan: DescentPlan, rows: Rows | RowSource) -> None:
        self._plan, self._rows = plan, rows
        self._shape: Geometry | None = None
        self._walk: Walk
        self._theta = np.zeros(plan.geometry.columns)
        self._paid = 0.0
        self._before: tuple[dict[str, Any], ...] = ()  # noise of the walks before

    @property
    def noise_levels(self) -> tuple[dict[str, Any], ...]:
        """How far noise alone scatters the last model, walk by walk."""
        view = self._shape.view if self._shape is not None else None
        return (*self._before, self._walk.noise(0 if view is None else view.intervals))

    def cost(self, rho: float) -> Curve:
        """Return what a stage costs: its steps are Gaussian releases."""
        return Curve.gaussian(rho)

    def stage(self, rho: float, source: WordSource) -> Floats:
        """Take a stage's steps; return its model of rows as they are."""
        self._paid += rho
        plan, shape = self._plan, self._plan.seen(self._paid)
        if shape is not self._shape:
            self._before = () if self._shape is None else self.noise_levels
            self._shape = shape
            rows, start = self._rows, self._theta
            if shape.view is not None:
                rows, start = seen(rows, shape.view), shape.view.nearest(start)
            gradients = ClippedGradients(rows, SlopeTable.of(plan.loss))
            self._walk = Walk(plan.loss, shape, gradients, plan.schedule, plan.unit, start)
        self._theta = self._walk.stage(rho, source)
        if shape.view is not None:
            self._theta = shape.view.lifted(self._theta)
            self._theta = to_grid(self._theta, float(np.abs(self._theta).max(initial=0.0)) or 1.0, norm="l2")
        return self._theta


@dataclass(frozen=True)
class Step:
    """One step of a descent: where it was, the noisy gradient, the step's size, and the deviation of its noise."""

    psi: Floats
    gradient: Floats
    size: float
    deviation: float


def curved(steps: Sequence[Step]) -> tuple[Floats, Floats]:
    """Return eigenvalues of H as steps tell of them, and orthonormal directions for them; it is zero in all others.

    Ridge regression of gradients on iterates, both beside their means and in units of the noise. With the singular
    values s_i of the iterates and q_i the squared lengths of gradients along them, of p entries each, entries of H that
    are N(0, g²) beforehand make what was released exp(−Σ (p·ln(1 + g²s_i²) + q_i/(1 + g²s_i²))/2) times as likely as
    H = 0 would, but for what is the same for all g: so g is chosen.
    """
    weights = np.array([1.0 / step.deviation for step in steps])[:, None]
    mean = np.square(weights) / np.square(weights).sum()

    def beside(values: list[Floats]) -> Floats:
        return np.asarray((np.array(values) - (mean * values).sum(axis=0)) * weights)

    left, singular, right = np.linalg.svd(beside([step.psi for step in steps]), full_matrices=False)
    told = singular > _TOLD * singular[0]
    singular, right = singular[told], right[told]
    along = left[:, told].T @ beside([step.gradient for step in steps])
    known = np.square(np.outer(_GUESSES, singular / singular[0]))  # g²s²
    likely = -along.shape[1] * np.log1p(known) - np.square(along).sum(axis=1) / (1.0 + known)
    best = known[likely.sum(axis=1).argmax()]
    found = (best / (1.0 + best) / singular)[:, None] * along  # H = rightᵀ·found
    basis = np.linalg.qr(np.vstack([right, found]).T)[0]
    inside = (right @ basis).T @ (found @ basis)
    values, vectors = np.linalg.eigh(0.5 * (inside + inside.T))
    return np.maximum(values, 0.0), basis @ vectors


def scattered(steps: Sequence[Step], later: int, bends: Floats) -> Floats:
    """Return the variance that the steps' noise gives the mean of the later iterates, where the loss bends so.

    Examples
    --------
    >>> nothing = np.zeros(1)
    >>> one, two = (scattered([Step(nothing, nothing, 0.5, 2.0)] * k, 1, nothing)[0] for k in (1, 2))
    >>> float(one), round(float(two), 6)  # (0.5·2)², and with what momentum carries on 1 + 1.8²
    (1.0, 4.24)
    """
    bends = np.minimum(bends, 1.0 / max(step.size for step in steps))  # an estimate beyond that would not be stable
    onward, found = np.zeros((len(bends), 3, 3)), np.zeros((len(bends), 3, 3))
    onward[:, :, 1], onward[:, 2, 2] = _MOMENTUM, 1.0
    for k, step in enumerate(steps):
        if k == len(steps) - later:  # the sum begins anew
            found[:, 2, :] = found[:, :, 2] = 0.0
        pulled = step.size * bends
        onward[:, 0, 0], onward[:, 1, 0], onward[:, 2, 0] = 1.0 - pulled, -pulled, 1.0 - pulled
        found = onward @ found @ onward.transpose(0, 2, 1) + (step.size * step.deviation) ** 2
    return np.asarray(found[:, 2, 2] / later**2)


class Walk:
    """Where the descent is; everything in it was released. It starts at zero or at a model that was."""

    def __init__(
        self,
        loss: Loss,
        geometry: Geometry,
        gradients: ClippedGradients,
        schedule: Schedule,
        unit: Unit = ROW,
        start: Floats | None = None,
    ) -> None:
        self._start = start
        self._gradients, self._rows, stretch = gradients, unit.rows, stretch_of(loss)
        few = _COLUMNS[loss.labels] / geometry.columns
        level = schedule.step * max(1.0, math.sqrt(few)) * geometry.scale
        self._step = rho_at(level, DescentPlan.noise_of(loss, geometry), gradients.n, unit)
        self._slope, self._settled, self._more_steps = clip_slope(loss), schedule.settled, schedule.more_steps
        # an error rate is none the worse for it
        self._steepest = self._slope if loss.labels == "binary" else loss.lipschitz(math.inf)
        self._paid = self._first = 0.0
        together = all(block.norm == "box" for block in geometry.blocks)
        length = schedule.length * (_TOGETHER if together else 1.0)
        self._reach = length / loss.curvature / gradients.n  # a step, times the square of a length
        self._around = typical_length(geometry, stretch, centred=False)
        self._look_from(Frame.of(geometry, stretch), typical_length(geometry, stretch, centred=True))
        self._psi = self._velocity = np.zeros(gradients.p)
        self._sums = [self._psi]  # of the iterates so far
        self._steps: list[Step] = []
        self._later, self._blocks = 0, geometry.blocks

    def _look_from(self, frame: Frame, length: float, times: float = 1.0) -> None:
        """Settle where rows are looked at from, how long they are there, and where their gradients are clipped."""
        slope = max(self._slope, min(times * self._slope, self._steepest))
        self._length, self._clip = length, Clip.of(frame, slope * length)

    def stage(self, rho: float, source: WordSource) -> Floats:
        """Take a stage's steps, which cost ρ together; return the mean of the later iterates, on a public grid."""
        if len(self._sums) == 1 and self._clip.frame.movable:
            self._centre(_CENTRE * rho, source)
            self._measure(_LENGTHS * rho, source)
            rho *= 1.0 - _CENTRE - _LENGTHS
        if len(self._sums) == 1 and self._start is not None:
            self._psi = self._clip.frame.parameters(self._start)
        self._paid += rho
        self._first = self._first or rho
        self._look_from(self._clip.frame, self._length, (self._paid / self._first) ** _LESS_CLIPPED)
        wanted = self._first / self._step * (self._paid / self._first) ** self._more_steps
        count = min(max(round(wanted) - (len(self._sums) - 1), _LEAST_STEPS), _MOST_STEPS)
        law = self._noise(self._clip, rho / count)
        noise = law.draws(count, source)
        frame, deviation = self._clip.frame, law.deviation / (ONE * SLOPE_ONE)
        for step in range(count):
            total = self._gradients.total(frame.hypothesis(self._psi), self._clip)
            gradient = noisy_sum(frame.coordinates(total), noise[step])
            size = self._reach / self._length**2 * min(1.0, math.sqrt(self._settled / len(self._sums)))
            self._steps.append(Step(self._psi, gradient, size, deviation))
            self._velocity = _MOMENTUM * self._velocity - size * gradient
            self._psi = self._psi + self._velocity
            self._sums.append(self._sums[-1] + self._psi)
        self._later = later = count - count // 2
        model = frame.hypothesis((self._sums[-1] - self._sums[-1 - later]) / later)
        return to_grid(model, float(np.abs(model).max(initial=0.0)) or 1.0, norm="l2")

    def noise(self, intervals: int) -> dict[str, Any]:
        """Return how far noise typically scatters each parameter of the last model, since the walk began."""
        frame, (bends, directions) = self._clip.frame, curved(self._steps)
        alone, *others = scattered(self._steps, self._later, np.array([0.0, *bends]))
        less = np.array(others) - alone
        squares = np.square(frame.weights.astype(np.float64))
        if frame.constant is not None:
            squares[frame.constant] = 1.0 + float(np.square(frame.centre / frame.value).sum())
        theta = frame.hypotheses(directions)
        variances = alone * squares + np.square(theta) @ less
        with_sums = alone * squares + (theta * block_sums(theta, self._blocks)) @ less
        return noise_of_level(variances, with_sums, self._blocks, intervals)

    def _noise(self, clip: Clip, rho: float) -> GradientNoise:
        return GradientNoise(self._gradients.p, self._rows * clip.most, rho)

    def _centre(self, rho: float, source: WordSource) -> None:
        """Release the mean of the rows, which costs ρ, and look at them from there."""
        frame = self._clip.frame
        around = Clip.of(frame, self._around)
        noise = self._noise(around, rho)
        total = noisy_sum(frame.coordinates(self._gradients.rows_total(around)), noise.draws(1, source)[0])
        deviation = noise.deviation / (ONE * SLOPE_ONE)
        mean = np.where(np.abs(total) > _SEEN * deviation, total, 0.0) / self._gradients.n
        self._look_from(frame.moved(mean), self._length)

    def _measure(self, rho: float, source: WordSource) -> None:
        """Release how long rows are, which costs ρ: a row moves the sum of parts by k times all of them at most."""
        most = _LONGEST * self._length
        total = self._gradients.lengths_total(self._clip.frame, most)
        sigma = self._rows * PARTS / math.sqrt(2.0 * rho) * (1.0 + 1e-12)
        noisy = total + int(discrete_gaussian(sigma, 1, random_state=source)[0])
        square = most**2 * noisy / (PARTS * self._gradients.n)
        self._look_from(self._clip.frame, min(most, max(math.sqrt(max(square, 0.0)), self._length / _LONGEST)))
