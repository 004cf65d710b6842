"""Chains of perturbed objectives: models with less and less noise and less and less shrinkage, until one will do.

For goals in people's units (an error rate, R²), which promise nothing about a λ. A level is one number, ρ for Gaussian
noise and x, the inverse of the typical noise on a mean gradient, for pure noise; noise and shrinkage follow from it
(theory C2, C5): with N the noise for rows of the shape, ε′ = 2κNx/n and λ = 1/(xR). The first level is centred at zero,
each further one at the last model released, unless that was far noisier: θ₀ is public by then, so objective
perturbation costs the same, and what was learned is not shrunk away again. It is not a gradual release: every level
pays for itself. What a level costs, its Jacobian and its solver among it, stands in
`expost.mechanisms.objective.perturbation` and `expost.mechanisms.objective.gaussian_objective`; levels, tests and both
theorems are those of `expost.search.levels`.

*Views.* Where columns bend (`expost.table.views`), a level sees rows as coarse as its noise asks for and draws a model
of what it sees: the theorems are about those rows, whose shape is that view's. What is released is lifted to rows as
they are, which is a public map, and so is finding a centre for the next view. Levels count as if rows were those of the
coarsest view: a finer one costs the same and has more noise. Where released shortfalls say that the last levels
improved too little for the goal, a chain looks closer before it gives up.

A chain starts where easy goals end, jumps from there, and then lets the last noisy shortfall say how far the next level
goes (theory D10). All of that is choice: it reads released numbers only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from expost.account.composition import Curve
from expost.exceptions import TargetUnreachable
from expost.goals.goal import TestedGoal
from expost.goals.measure import Judge
from expost.mechanisms.objective.gaussian_objective import GaussianShot
from expost.mechanisms.objective.perturbation import ObjectiveGenerator, Shot
from expost.noise.source import WordSource
from expost.numeric import to_grid
from expost.passes.views import seen
from expost.release.release import Release
from expost.search.levels import Schedule, StagedPlan, StagedSearch, level_at
from expost.shown import up
from expost.solve.losses import Loss, weighted
from expost.solve.perturbed import STEEPEST, PerturbedObjective
from expost.solve.row_sums import Passes
from expost.table.rows import RowSource
from expost.table.shape import Geometry
from expost.table.views import View, seen_at

_FAR = 3.5  # a level with so many times less noise than the last is centred at zero: little of its noise is left then
_FURTHER = 0.1  # the chance that noise moved the released parameters further than is stated


class PerturbedLevels:
    """Makes the next model, from the last one, which was released, and the rows; private."""

    def __init__(
        self,
        plan: _Perturbed,
        passes: Passes,
        theta: NDArray[np.float64],
        before: tuple[dict[str, Any], ...] | None = (),
    ) -> None:
        self._plan, self._passes, self.theta = plan, passes, theta
        self.noise_levels = before  # what noise alone did to the last model, level by level; None if nobody knows
        self.level = 0.0  # of the last model
        self.drawn: Any = None  # what it was drawn by
        self._view: View | None = None  # which the last model is of, as it was drawn
        self._drawn_theta = theta
        self._objectives: dict[View | None, PerturbedObjective] = {}
        self.stretched = 1.0
        self._least = plan.geometry.coarsest  # no coarser shape is seen any more

    def finer(self) -> bool:
        """See rows finer than the last level did, whatever the noise; whether they can be."""
        shapes = [*self._plan.geometry.coarser, self._plan.geometry]
        place = next(i for i, shape in enumerate(shapes) if shape.view is self._view) + 1
        if place < len(shapes):
            self._least = shapes[place]
        return place < len(shapes)

    def seen(self, level: float) -> Geometry:
        """Return the shape of what a level sees of rows."""
        by_noise = self._plan.seen(level)
        return max(by_noise, self._least, key=lambda shape: shape.columns)

    def center(self, level: float) -> NDArray[np.float64]:
        """Return θ₀ of a level: the last model, or zero where that was far noisier; it was released."""
        shape = self.seen(level)
        if self._anew(level):
            return np.zeros(shape.columns)
        if shape.view is self._view:
            return self._drawn_theta
        return self.theta if shape.view is None else np.asarray(shape.view.nearest(self.theta))

    def _anew(self, level: float) -> bool:
        """Whether a level is centred at zero as the last model was far noisier: then no noise of it is left."""
        return bool(self.level) and self._plan.noise_quotient(self.level, level) > _FAR

    @property
    def lift(self) -> float:
        """How many times further apart models may be than they were as they were drawn."""
        return 1.0 if self._view is None else self._view.stretch[0]

    def shot(self, level: float) -> Any:
        """Return the next level's release: a function of public and released numbers."""
        return self._plan.shot(level, float(np.linalg.norm(self.center(level))), self.seen(level))

    def cost(self, level: float) -> Curve:
        """Return what the next level costs."""
        return self._plan.cost(level, float(np.linalg.norm(self.center(level))), self.seen(level))

    def stage(self, level: float, source: WordSource) -> NDArray[np.float64]:
        """Perturb the objective and return the model, on a public grid."""
        self.drawn, center, anew, self.level = self.shot(level), self.center(level), self._anew(level), level
        view, before = self.seen(level).view, self._view
        # how many times further apart than last models their centres may be, where another view is taken
        self.stretched = 1.0 if view is before else self.lift * (1.0 if view is None else view.stretch[1])
        if anew:  # and they are the same
            self.stretched = 0.0
        self._view = view
        known, intervals = () if anew else self.noise_levels, 0 if view is None else view.intervals
        self.noise_levels = None if known is None else (*known, {**self.drawn.alone, "intervals": intervals})
        if view not in self._objectives:
            rows = self._passes.source if view is None else seen(self._passes.source, view)
            assert isinstance(rows, RowSource)
            engine = self._passes.engine if rows.engine is None or view is None else rows.engine
            self._objectives[view] = PerturbedObjective(Passes(self._passes.loss, rows, engine))
        self._drawn_theta = self.drawn.draw(self._objectives[view], center, source)
        self.theta = self._drawn_theta if view is None else view.lifted(self._drawn_theta)
        return to_grid(self.theta, float(np.abs(self.theta).max(initial=0.0)) or 1.0, norm="l2")


class _Perturbed(StagedPlan):
    """What chains share, whatever the noise; attributes are those of :class:`~expost.search.levels.StagedPlan`."""

    perturbation: ClassVar[str | None] = "objective"
    scattered: float = 0.0  # how far noise scattered the model that it begins with: it begins at zero

    def shot(self, level: float, center_norm: float = 0.0, shape: Geometry | None = None) -> Any:
        """Return the release of a level, of rows that are seen as its noise asks for unless a shape is stated."""
        raise NotImplementedError

    def cost(self, level: float, center_norm: float = 0.0, shape: Geometry | None = None) -> Curve:
        """Return what a level costs; at a first one the centre is zero."""
        shot = self.shot(level, center_norm, shape)
        if isinstance(shot, GaussianShot):
            return shot.curve
        return Curve.ex_post(self.unit.charge(shot.epsilon) if self.delta else shot.epsilon)

    def measured(self, goal: TestedGoal, gamma: float) -> Self:
        """Return the plan for a goal as it was measured: loss, noise and shrinkage follow it."""
        plan = super().measured(goal, gamma)
        loss = weighted(goal.chain().loss, self.loss.class_weights)
        return replace(plan, loss=loss, schedule=self.usual_schedule(self.loss, goal))

    def seen(self, level: float) -> Geometry:
        """Return the shape of what a level sees of rows."""
        raise NotImplementedError

    def _lam(self, x: float) -> float:
        """Return λ where noise on a mean gradient is 1/x."""
        return max(1.0 / (x * self.schedule.reach * self.geometry.scale), 2.0 * self.loss.curvature / STEEPEST)

    def walk(self, generator: ObjectiveGenerator) -> tuple[PerturbedLevels, Judge]:
        """Return the first level, centred at zero."""
        return self.from_model(generator.judge, np.zeros(self.geometry.columns))

    def from_model(
        self, judge: Any, model: NDArray[np.float64], before: tuple[dict[str, Any], ...] | None = ()
    ) -> tuple[PerturbedLevels, Judge]:
        """Return the first level, centred at a model that was released, and what is known of the noise in that."""
        passes = judge.with_loss(self.loss)
        return PerturbedLevels(self, passes, model, before), passes


class _PerturbedSearch(StagedSearch):
    """One run of a chain, which knows how far noise scatters a coefficient of its models."""

    plan: _Perturbed
    walk: PerturbedLevels
    spread = 0.0

    def _note(self) -> None:
        """Keep how far noise scatters a coefficient.

        Slopes in the noise of an earlier level are no larger than they were there, times what another view stretches;
        noise of levels is independent, so variances add.
        """
        first = self.stages - self._turned == 1
        before = self.plan.scattered if first else self.spread
        if not self.walk.stretched:  # begun anew: nothing is left of it, whatever it was
            before = 0.0
        self.spread = math.hypot(before * self.walk.stretched, self.walk.drawn.spread)

    def _details(self, theta: NDArray[np.float64] | None) -> dict[str, Any]:
        """Return what a release says beside: how far noise scatters each coefficient at most, if that is known."""
        details, found = super()._details(theta), self.spread * self.walk.lift
        if theta is None or self._turned or not math.isfinite(found):
            return details
        return {**details, "parameters": {**details.get("parameters", {}), "noise_spread": found}}


class GaussianChainPlan(_Perturbed):
    """Perturbed objectives with Gaussian noise; levels are ρ."""

    running = _PerturbedSearch

    each = "objective perturbation with Gaussian noise: {stages} level(s)"

    @classmethod
    def usual_schedule(cls, loss: Loss, goal: TestedGoal | None = None) -> Schedule:
        """Return the schedule for a loss and a goal: Huber's loss shrinks more, for its Jacobian is dear."""
        if goal is None:
            return Schedule(gathers=False)
        asked = goal.chain()
        return Schedule(start=asked.start, reach=asked.reach, growth=4.0, fastest=16.0, jump=25.0, gathers=False)

    def shot(self, level: float, center_norm: float = 0.0, shape: Geometry | None = None) -> GaussianShot:
        """Return the release of a level."""
        shape = shape or self.seen(level)
        lam = self._lam(level_at(level, self.noise_of(self.loss, shape), self.n, self.unit))
        return GaussianShot(self.loss, shape, self.n, level, lam, center_norm, self.unit.rows)

    def seen(self, level: float) -> Geometry:
        """Return the shape of what a level sees of rows."""
        first = self.noise_of(self.loss, self.geometry.coarsest)
        x = level_at(level, first, self.n, self.unit) / self.geometry.scale
        return seen_at(self.geometry, x, lambda shape: self.noise_of(self.loss, shape), self.goal.chain().sharper)


class ChainSearch(_PerturbedSearch):
    """One run of a pure chain, which knows how far noise has moved its models."""

    plan: ChainPlan
    moved = 0.0

    def _note(self) -> None:
        """Keep how far noise has moved the model, too.

        Models are prox points of their centres, which moves them no further apart than the centres are: so far at most
        is this one from where the same levels without noise would be, half of what is left for each.
        """
        before = self.moved if self.stages - self._turned > 1 else self.plan.moved
        self.moved = before * self.walk.stretched + self.walk.drawn.reach(_FURTHER * 0.5**self.stages)
        super()._note()

    def _details(self, theta: NDArray[np.float64] | None) -> dict[str, Any]:
        """Return what a release says beside: how far noise has moved it among it."""
        if theta is None:
            return super()._details(theta)
        details, drawn = super()._details(theta), self.walk.drawn
        said = {
            **details.pop("parameters", {}),
            "regularization": self.walk.drawn.lam,
            "typical_noise": self.walk.drawn.typical,
            **({} if drawn.geometry.view is None else {"noisy_columns": drawn.geometry.columns}),
            "noise_reach": self.moved * self.walk.lift * (1 + 1e-4),  # rounding to a grid included
            "noise_reach_coverage": self.plan.covered - _FURTHER,
        }
        return {**details, "parameters": said}


class ChainPlan(_Perturbed):
    """Perturbed objectives with pure noise, all of it for one row replaced; levels are x."""

    running = ChainSearch
    gaussian: ClassVar[bool] = False
    moved: float = 0.0  # how far noise had moved the model that it begins with, and how surely: it begins at zero
    covered: float = 1.0

    @property
    def each(self) -> str:  # type: ignore[override]
        """What was done in how many levels, and which shape the noise follows."""
        reason = f": {self.geometry.reason}" if self.geometry.reason else ""
        return f"objective perturbation: {{stages}} level(s); noise for rows of shape {self.geometry.name}{reason}"

    @classmethod
    def usual_schedule(cls, loss: Loss, goal: TestedGoal | None = None) -> Schedule:
        """Return what the goal asks for."""
        assert goal is not None
        asked = goal.chain()
        return Schedule(
            start=asked.start,
            reach=asked.reach,
            growth=2.0,
            fastest=3.0,
            jump=5.0,
            gain=1.3,
            least=0.5,
            gathers=False,
        )

    def less_noise(self, times: float) -> float:
        """Return it: levels are x."""
        return times

    def noise_quotient(self, before: float, after: float) -> float:
        """Return the quotient."""
        return after / before

    def precision(self, level: float) -> float:
        """Return x in units of the table."""
        return level / self.geometry.scale

    def model_epsilon(self, level: float) -> float:
        """Return what a level costs."""
        return self.cost(level).most

    def shot(self, level: float, center_norm: float = 0.0, shape: Geometry | None = None) -> Shot:
        """Return the release of a level."""
        first, shape = self.geometry.coarsest.noise, shape or self.seen(level)
        noise = 2.0 * self.loss.lipschitz(math.inf) * first * level / self.n
        return Shot(self.loss, shape, self.n, noise, self._lam(level * first / shape.noise), center_norm)

    def seen(self, level: float) -> Geometry:
        """Return the shape of what a level sees of rows."""
        x = level / self.geometry.scale
        return seen_at(self.geometry, x, lambda shape: shape.noise, self.goal.chain().sharper)

    @property
    def least_stage(self) -> float:
        """x of a level whose noise leaves something to be seen."""
        return self.schedule.start * self.geometry.scale


@dataclass(frozen=True)
class ContinuedChain(ChainPlan):
    """A chain that begins after the level of a model that was released before, and centred at it; all of it public.

    Attributes
    ----------
    center, last
        The model, and the level x that it was drawn at.
    moved, covered
        How far noise had moved it at most, and with which probability.
    scattered
        How far it scattered a coefficient of it; infinite if the release does not say.
    before
        What noise alone did to it, level by level; None if the release does not say.
    """

    center: tuple[float, ...] = ()
    last: float = 0.0
    scattered: float = 0.0
    before: tuple[Any, ...] | None = ()
    moved: float = 0.0
    covered: float = 1.0

    @classmethod
    def after(cls, release: Release, *given: Any) -> ContinuedChain:
        """Settle a chain that goes on from a release of one, or say that no data set could meet its goal."""
        said, plan = release.parameters, cls.settled(*given)
        # levels count as if rows were seen as coarsely as they can be
        shapes = {shape.columns: shape.noise for shape in (*plan.geometry.coarser, plan.geometry)}
        finer = shapes.get(said.get("noisy_columns", 0), plan.geometry.noise) / plan.geometry.coarsest.noise
        plan = replace(
            plan,
            center=tuple(map(float, release.hypothesis)),
            last=finer / said["typical_noise"],
            moved=said["noise_reach"],
            covered=said["noise_reach_coverage"],
            scattered=said.get("noise_spread", math.inf),
            before=said.get("noise_levels"),
        )
        try:
            plan.require_possible()
        except TargetUnreachable as error:
            error.add_note(f"That much is left of max_epsilon after what was spent before, {up(release.epsilon)}")
            raise
        return plan

    @classmethod
    def usual_schedule(cls, loss: Loss, goal: TestedGoal | None = None) -> Schedule:
        """Return the usual one without its jump, which is for a first level that is for easy goals."""
        return replace(super().usual_schedule(loss, goal), jump=1.0)

    @property
    def least_stage(self) -> float:
        """x of the level after the last."""
        return max(super().least_stage, self.schedule.growth * self.last)

    def walk(self, generator: ObjectiveGenerator) -> tuple[PerturbedLevels, Judge]:
        """Return the first level, centred at the model unless that is far noisier."""
        levels, judge = self.from_model(generator.judge, np.array(self.center), self.before)
        levels.level = self.last
        return levels, judge
