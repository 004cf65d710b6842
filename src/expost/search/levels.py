"""The one loop of searches in levels: draw a model if that can be afforded, test it, stop if it passes, else go on.

A level (a stage) releases something that costs a curve and makes a model of it, or of all that was released so far.
After each a noisy shortfall (how far the goal is missed) is released, with less and less noise. The engine knows no
mechanism: what a level costs and how it is drawn is a :class:`Staged`'s affair, in each mechanism's folder: pure and
Gaussian chains of perturbed objectives (`expost.mechanisms.objective.chain`), gradient descent, second moments. A
search whose models have cost much of the budget may turn to another way, from its last model on.

*What is called a level*: a step of the loop; as an argument, how little noise it has: ρ, but for pure chains x, where
noise on a mean gradient is typically 1/x. A release counts its levels from 0.

*Released*: what levels release, and noisy shortfalls. *Neighbours*: one row replaced, or k of one person. *Theorem
(privacy)*: every step books its curve (`expost.search.noisy_test`, and where levels are made) and is taken only if the
sum with it is within the budget (the account is a filter, and the release states it ex post: `expost.account`).
*Theorem (accuracy)*: test j at the model of level i passes wrongly with probability at most γ_{ij}, whatever happened
before, and ΣΣ γ_{ij} ≤ γ along every path: each level has a part of what is left; one that is known to be the last
before it is drawn has all of it, and nothing is tested after it. So a model that misses the goal is released with
probability at most γ, however many levels there are. *What is shown* (theory D3): a noisy shortfall with its margin is
a bound, whatever the answer, and some bound along the way is false with probability at most γ, over all runs. So a
release states the bound on its model; and a search that ends without meeting the goal hands over the model of the least
bound, with that, for nothing beside what it has paid. Where that shows nothing it may pay ``_TO_SHOW`` more: the bounds
of a test's levels were settled with them, so its path may be gone on along when the search has ended, and that of what
the goal is measured with likewise. Everything else (step sizes, how costs grow, when to test again, when to give up)
reads public and released numbers only, and nothing has to be right about it for either theorem. Of the
constants of a :class:`Schedule`, where pure levels start and how fast they grow were looked at by
`benchmarks/constants.py` on half of the tables of `benchmarks/panel.py`: within a factor of two they change the mean of
what goals cost by up to an eighth, and single goals by more (`benchmarks/results/constants.md`). When a goal is given
up has constants of its own, ``_CHEAP`` and ``_PATIENCE`` here and those of `expost.search.noisy_test.chance`, all set
by hand on tables of both halves: what they trade on recorded models stands in `benchmarks/results/stopping.md`
(`benchmarks/stopping.py`). The others of this file were set by hand on traces of the panel, too.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from typing import Any, ClassVar, NoReturn, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from expost.account.account import Account, current
from expost.account.composition import LEAST, NOTHING, ROW, Clock, Curve, Unit, room, tried
from expost.exceptions import TargetUnreachable
from expost.goals.goal import Further, TestedGoal
from expost.goals.measure import Judge
from expost.mechanisms.mechanism import Mechanism
from expost.noise.gaussian import deviations
from expost.noise.source import WordSource
from expost.release.release import Release
from expost.search.noisy_test import (
    FURTHER,
    RATIO,
    GaussianTest,
    GradualTest,
    Look,
    Looks,
    chance,
    ending,
    falling,
    laplace_deviations,
)
from expost.shown import counted, down, up
from expost.solve.losses import Loss
from expost.solve.problem import Problem
from expost.table.shape import Block, Geometry, gaussian_size


@dataclass(frozen=True)
class Schedule:
    """How levels and tests go, the constants of a search in one place; public, and any values are sound.

    Attributes
    ----------
    start
        The first level's noise on a mean gradient is at most 1/start in units of the table.
    least
        A first level with a smaller part of the precision that it should have is noise.
    growth, fastest
        From one level to the next: at least, and at most. In between the noisy shortfall says how far. Where levels
        gather, of all of them together.
    jump
        The same from the first level to the second, at least: the first is for easy goals.
    gain
        What is left of the budget is spent on a last level if it is that many times the last one.
    gathers
        Whether a model is made of all that was paid for so far, or of its own level alone.
    test_part
        What a test may cost usually, as a part of the ε of its model, or of its ρ for tests in squares: at least, as
        :meth:`StagedPlan.most_of_test` may be more. A test that is likely to pass goes up to ``FURTHER`` times as far.
    kept
        Part of γ left after each level.
    in_squares
        Whether tests have Gaussian noise, once or twice: they add up in squares with what models cost, for budgets
        that several fits share. Otherwise noise is Laplace's, and taken away step by step.
    again, first
        For tests in squares: a second test's ρ as a multiple of the first one's, and the first one's part of γ.
    reach
        For perturbed objectives: R, a guess of how far models are apart in units of the table; where noise on a mean
        gradient is 1/x, λ = 1/(xR).
    step, more_steps, length, settled
        For descents: a first stage's steps have noise 1/step on a mean gradient, in units of the table; the number of
        steps grows with the power ``more_steps`` of all ρ; a step's size is length over the loss's largest curvature
        and the mean square of rows' lengths; after as many steps as ``settled`` the k-th is √(settled/k) times as long.
    """

    start: float = 16.0
    least: float = 0.25
    growth: float = 2.5
    fastest: float = 2.5
    jump: float = 1.0
    gain: float = 1.2
    gathers: bool = True
    test_part: float = 1.0
    kept: float = 0.6
    in_squares: bool = False
    again: float = 3.0
    first: float = 0.5
    reach: float = 5.0
    step: float = 2.8
    more_steps: float = 0.5
    length: float = 0.6
    settled: float = math.inf


Floats = NDArray[np.float64]

_MOST_STAGES = 40  # ρ has grown by 10⁸ by then
_AFTER = 1.0 + 1e-7  # sums are rounded up
_BESIDE_LABELS, _BESIDE_SQUARES = 0.3, 3.0  # ρ of a test under Gaussian noise, as a part of a model's
_LEAST_TEST = 1.0 / RATIO**4  # a level is taken if this part of its test can be afforded as well
_ROUNDED = 1.0 + 1e-4  # grids of tests are rounded to, and charged for
_BETTER = 0.2  # the best model is taken to be better than the goal by this part of what the goal calls large
_PATIENCE = 0.25  # a search turns to another way where models have cost this part of the budget
_CHEAP = 0.1  # of a price, what is paid before it to learn whether it is worth it
_TO_SHOW = 0.05  # of what was paid: for so much more something is shown of a model of which nothing is shown yet


class Staged(Protocol):
    """What goes from stage to stage."""

    def cost(self, rho: float) -> Curve:
        """Return what a stage with that ρ costs; public."""
        ...

    def stage(self, rho: float, source: WordSource) -> Floats:
        """Release what costs that; return the model of all that was released so far, on a public grid."""
        ...

    @property
    def noise_levels(self) -> tuple[dict[str, Any], ...] | None:
        """How far noise typically scatters each parameter of the last model, level by level; None if nobody knows.

        Standard deviations, as far as they are known for nothing: each mechanism says what they leave out.
        """
        ...


def noise_of_level(variances: Floats, with_sums: Floats, blocks: Sequence[Block], intervals: int = 0) -> dict[str, Any]:
    """Return what a release states of a level's noise: a deviation for each parameter, and how finely curves were seen.

    What is shown are differences within a block, as the constant takes up what all parameters of it have in common. So
    a deviation is that from the mean of the block's k parameters, times √(k/(k − 1)): with those, as if they were
    independent, variances of differences are right on average. ``with_sums`` are covariances with the block's sum.

    Examples
    --------
    >>> from expost.table.shape import Block
    >>> blocks = Block(1, "box", 1.0), Block(2, "l1", 1.0)
    >>> noise_of_level(np.array([0.25, 5.0, 5.0]), np.array([0.25, 9.0, 9.0]), blocks)  # 5 each, and 4 in common
    {'sizes': [1, 2], 'deviations': [0.5, 1.0], 'intervals': 0}
    """
    found, place = variances.copy(), 0
    for block in blocks:
        some, k = slice(place, place + block.size), block.size
        if block.norm != "box" and k > 1:
            beside = variances[some] - 2.0 * with_sums[some] / k + with_sums[some].sum() / k**2
            found[some] = beside * k / (k - 1)
        place += k
    deviations = np.sqrt(np.maximum(found, 0.0)).tolist()
    runs = [(value, len(list(same))) for value, same in groupby(deviations)]
    return {"sizes": [size for _, size in runs], "deviations": [value for value, _ in runs], "intervals": intervals}


def block_sums(values: Floats, blocks: Sequence[Block]) -> Floats:
    """Return for each row of a matrix the sum of the rows of its block."""
    sizes = [block.size for block in blocks]
    return np.repeat(np.add.reduceat(values, np.cumsum([0, *sizes])[:-1], axis=0), sizes, axis=0)


class StagedMechanism(Mechanism):
    """A mechanism that levels alone are made by: it has no utility theorem, and no certificate of one release."""

    instead: ClassVar[str]  # said to whoever asks for one

    @classmethod
    def of(cls, *, noise: str, full_matrix: bool) -> Mechanism:
        """Refuse: the shape of the rows has to be known."""
        raise ValueError(f"{cls.name} is made from the shape of the rows: {cls.__name__}(geometry)")

    def theory_epsilon(self, problem: Problem, excess_risk: float) -> NoReturn:
        """Refuse: no utility theorem is used."""
        raise ValueError(self.instead)

    gradient_epsilon = theory_epsilon

    def certificate(self, request: Any, excess_risk: float, *, automatic: bool) -> NoReturn:
        """Refuse likewise."""
        raise ValueError(self.instead)


class StagedSearch:
    """One run: levels, and tests of their models."""

    plan: Any

    def __init__(self, plan: Any, walk: Staged, judge: Judge, account: Account, source: WordSource) -> None:
        self.plan, self.walk, self.judge, self.account, self.source = plan, walk, judge, account, source
        self.tests: Any = self._tests(plan.schedule)
        self.stages = 0
        self.reasons: list[str] = []  # of ways that were turned from
        self._turned = 0  # how many levels the ways before it had
        self._others = 0  # and how many looks
        self.paid = 0.0  # for the last model: by all levels where they gather
        self.shortfalls: list[Look] = []
        # the least bound shown, its model, what a release says of that, and its test, if that can be gone on with
        self._best: tuple[float, Any, dict[str, Any], Looks | None] = (math.inf, None, {}, None)
        self._wanted = 0.0  # the level to go on with
        self._ends = False  # whether the last level has been settled
        self._further: Further | None = plan.further

    def _tests(self, schedule: Schedule) -> Any:
        if schedule.in_squares:
            return GaussianTest(self.account, self.source, schedule.again, schedule.first)
        return GradualTest(self.account, self.source)

    def run(self) -> Release:
        """Go from level to level until a test passes, or there is a reason not to go on."""
        level = self.plan.start
        while True:
            self._wanted, (level, why_not) = level, self._affordable(level)
            if why_not:
                return self._refused(why_not)
            self.account.book("generation", self.walk.cost(level))
            drawn = self.walk.stage(level, self.source)
            self.stages, self.paid, self.tests.shown = self.stages + 1, self._before + level, math.inf
            self.tests.looks = None
            self._note()
            model = self._placed(drawn)
            if self._passes(model, self.paid):
                return self._released(model)
            if self.tests.shown < self._best[0]:
                self._best = self.tests.shown, model, self._details(model), self.tests.looks
            level = self._turn(drawn) if self._stalled() else self._next()

    def _stalled(self) -> bool:
        """Whether there is another way, and this one has cost much and is not seen to have met the goal."""
        if self.plan.then is None or self._ends or (self.shortfalls and self.shortfalls[-1].noisy <= 0.0):
            return False
        if not self._futile():
            return self._dear()
        # its first level costs about what was spent; ways may end above the best model, so a cheap one is tried
        return self.account.total < max(_CHEAP, self._chance()) * self._most

    def _dear(self) -> bool:
        """Whether models have cost much of the budget; no way makes tests any cheaper."""
        account = self.account
        models = account.curves["generation"].epsilon(account.delta) if account.delta else account.generation
        return models > _PATIENCE * self._most

    @property
    def _most(self) -> float:
        """What no outcome may exceed, as the account's total is meant."""
        return self.account.limit if self.account.delta else self.account.worst_case

    def _note(self) -> None:
        """Keep what is known of the noise of the level just drawn, where a release says it."""

    def _placed(self, drawn: Floats) -> Floats:
        """Return a level's model as it is tested."""
        most, squares = self.plan.most_of_test(self.paid), self.plan.schedule.in_squares
        placed: Floats = self.plan.goal.placed(drawn, self.judge, self.account, self.source, most, squares)
        return placed

    def _turn(self, model: Floats) -> float:
        """Go on by the other way from the last model, with a level that costs about what was spent; return that."""
        plan = self.plan.then.measured(self.plan.goal, self.plan.failure_probability)
        self.walk, self.judge = plan.from_model(self.judge, model, self.walk.noise_levels)
        self.reasons, self.plan = [*self._said(), "turned to another way, which may be cheaper from here"], plan
        self.paid, self._turned, self._others = 0.0, self.stages, len(self.shortfalls)
        spent, low, high = self.account.total, 0.0, float(plan.start)
        while plan.cost(high).most < spent:
            low, high = high, 2.0 * high
        for _ in range(30):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if plan.cost(middle).most < spent else (low, middle)
        return high

    def _affordable(self, level: float) -> tuple[float, str]:
        """Return the level, or the largest that may still be taken with its test, and why it is not if it is not."""
        before, look = self._before, self._look
        if self._ends:
            return level, "the next level, and a test that could show it to do, would exceed the budget"
        if self._futile() and not self._finer():
            return level, "the last levels improved too little for the goal to be reached"
        self._ends = self._last(level)
        if not self.account.fits(self.walk.cost(level), look(before + level)) or self._ends:
            most = level * self.plan.schedule.growth if self.stages else level
            level = largest_stage(self.account, self.walk.cost, lambda level: look(level) + self._kept, before, most)
            least = self.plan.schedule.gain * self.paid if self.stages else self.plan.least_useful
            if level <= 0.0 or before + level < least:
                return level, "the next level, and a test that could show it to do, would exceed the budget"
        return level, f"no model of {self.stages} levels was good enough" if self.stages == _MOST_STAGES else ""

    def _last(self, level: float) -> bool:
        """Whether none that is worth taking could be had after the next level: then that takes all that is left."""
        if not self.stages:
            return False
        more = level * self.plan.schedule.gain
        step, test = self.walk.cost(level) + self.walk.cost(more), self._look(self._before + level + more)
        return not self.account.fits(step, self._look(self._before + level) + test)

    def _look(self, level: float) -> Curve:
        """Return what the test of the next level's model, which costs so much, costs at least."""
        look: Curve = self.plan.look(level, self.stages + 1)
        return look

    @property
    def _kept(self) -> Curve:
        """Return what a level leaves of the budget, so that something can be shown of the best model if it is the last.

        That is nothing where a bound on a shortfall speaks for itself.
        """
        part = _TO_SHOW / (1.0 + _TO_SHOW) if self.stages and self._further is not None else 0.0
        return Curve.ex_post(part * self._most)

    @property
    def _before(self) -> float:
        return self.paid if self.plan.schedule.gathers else 0.0

    def _passes(self, model: Floats, level: float) -> bool:
        """Test a model that cost so much."""
        plan, goal, tests = self.plan, self.plan.goal, self.tests
        truth, error = goal.shortfall(self.judge, model), goal.shortfall_error(plan.n, model.size, model)
        least, most = plan.least_test(self.stages), plan.most_of_test(level)
        all_left = (1.0 - 1e-12) / (1.0 - plan.schedule.kept)
        gamma = plan.gamma(self.stages) * (all_left if self._ends else 1.0)
        if plan.schedule.in_squares:
            first = max(most, least / (1.0 + plan.schedule.again))
            return bool(tests.pass_at(truth, plan.sensitivity, error, first, gamma))
        before = tests.count
        earlier = [look[1:] for look in self.shortfalls]
        later = self._later(level)
        passed = tests.pass_at(truth, plan.sensitivity, error, max(most, least), gamma, goal.room, earlier, later)
        if tests.count > before:
            self.shortfalls.append(Look(plan.precision(level), tests.noisy, tests.scale))
        return bool(passed)

    def _next(self) -> float:
        """Return the next level: further where the noisy shortfall is large."""
        schedule = self.plan.schedule
        growth: float = schedule.fastest  # where no look could have shown anything
        if self.shortfalls:
            room, (noisy, scale) = (
                _BETTER * self.plan.goal.chain().steer,
                falling([look[1:] for look in self.shortfalls]),
            )
            times = self.plan.less_noise(((max(noisy - scale, 0.0) + room) / room) ** 2)
            growth = min(max(times, schedule.growth), schedule.fastest)
        if self.stages == 1:
            growth = max(growth, schedule.jump * self.plan.least_stage / self.paid)
        return self.paid * (growth - 1.0) if schedule.gathers else self.paid * growth

    def _later(self, level: float) -> Callable[[float, float], tuple[float, float]]:
        """Return what a look at the last model may cost, and about what it would cost to show a later one to do.

        To look more closely is worth it while that is cheap beside a level: whether another one is taken, and how far
        it goes, follows from what was seen. Later models are taken to fall short as :func:`ending` says, and not by
        more than this one; each stage has a smaller part of γ, so where models are as good as can be, it is cheaper to
        go on with the test of this one.
        """

        def later(noisy: float, scale: float) -> tuple[float, float]:
            looks = [*self.shortfalls[self._others :], Look(self.plan.precision(level), noisy, scale)]
            here, missed = falling([look[1:] for look in looks])[0], self.plan.goal.missed_by_constant
            following, shown = math.inf, math.inf
            if self._ends:  # there is none
                return _CHEAP * self._most, shown
            for stage, (further, costs) in enumerate(self._ahead(), self.stages + 1):
                fitted = ending(looks, missed, self.plan.precision(further))
                there = here if fitted is None else min(here, fitted[0])
                test = laplace_deviations(self.plan.gamma(stage)) * self.plan.sensitivity
                following, shown = min(following, costs), min(shown, costs - test / there if there < 0.0 else math.inf)
            return _CHEAP * following, shown

        return later

    def _chance(self, precision: float = math.inf, margin: float = 0.0) -> float:
        """Return about how likely it is that a model of that precision meets the goal by that, by what was released.

        Ways approach the best model by laws of their own, so a way is judged by its own shortfalls. Until one that
        was turned to has two of them the way before it speaks for it: as surely as the first of them is not below where
        that way seems to end, for ways may end above the best model.
        """
        missed = self.plan.goal.missed_by_constant
        own, others = self.shortfalls[self._others :], self.shortfalls[: self._others]
        if not others or len(own) > 1:
            return chance(own, missed, precision, margin)
        speaks = chance(others, missed, margin=-own[0].noisy) if own else 1.0
        return speaks * chance(others, missed, precision, margin) + 1.0 - speaks

    def _futile(self) -> bool:
        """Whether the goal is so unlikely to be met that no further level is worth it, by what is released.

        *What a level is worth.* Whoever states a budget B would pay that much for a model that meets the goal. Say that
        the next level costs c, and all up to a later one C, whose model passes with chance q by what was released. The
        next level says whether to go on, so C − c is paid with chance q only: going on is worth q(B − (C − c)) − c. If
        that is below zero for every level that may follow, the search ends.
        """
        if not self.paid or len(self.shortfalls) < 2:
            return False  # a way that was turned to has its first level, and one look says nothing
        following, precision = math.inf, self.plan.precision
        for level, costs in self._ahead():
            following = min(following, costs)
            passes = self._chance(precision(level), self._margin(level))
            if passes * (self._most - (costs - following)) >= following:
                return False
        return True

    def _ahead(self) -> Iterator[tuple[float, float]]:
        """Yield levels that may follow, and about what each costs with those before it, to the end of the budget."""
        schedule, left = self.plan.schedule, self._most - self.account.total
        level, spent = self._next(), 0.0
        for step in range(_MOST_STAGES):
            at, costs = self._before + level, self._costs(level)
            if spent + costs >= left or (not step and self._last(level)):
                yield at * self.plan.less_noise((left - spent) / costs), left
                return
            yield at, spent + costs
            spent = 0.0 if schedule.gathers else spent + costs
            level = at * schedule.growth - self._before

    def _margin(self, level: float) -> float:
        """Return about what the test of such a level's model leaves open where it is as close as can be."""
        plan, stage = self.plan, self.stages + 1
        closest = min(max(FURTHER * plan.most_of_test(level), plan.least_test(stage)), self._most)
        return float(laplace_deviations(plan.gamma(stage)) * plan.sensitivity / closest)

    def _finer(self) -> bool:
        """Look at rows more closely from here on, where there is a finer view of them; whether there is."""
        found = bool(getattr(self.walk, "finer", bool)())
        if found:
            self.shortfalls, self._others = [], 0
        return found

    def _said(self) -> list[str]:
        each = self.plan.each.format(stages=self.stages - self._turned)
        return [*([self.plan.reason] if self.plan.reason else []), f"{each}; {counted(self.tests.count, 'look')}"]

    def _released(self, theta: Floats) -> Release:
        self.account.reasons += [*self.reasons, *self._said()]
        return self.account.released(theta, **self._details(theta))

    def _refused(self, reason: str) -> Release:
        """Hand over the best model, if anything was shown of one that a constant would not do as well."""
        ended, (bound, model, kept, looks) = self._details(None), self._best
        if model is not None and "shown" not in kept["parameters"]:
            bound, more = self._for_little(bound, looks)
            kept["parameters"] |= more
        shown = "shown" in kept.get("parameters", {})
        self.account.reasons += [*self.reasons, *self._said(), *([] if shown else self._near()), reason]
        if not shown:
            return self.account.refused(**ended)
        if bound <= 0.0:  # as a closer look has shown
            return self.account.released(model, **kept)
        parameters = {**ended.pop("parameters", {}), **kept["parameters"]}
        return self.account.short(model, **{**ended, **kept, "parameters": parameters})  # as it was made

    def _near(self) -> list[str]:
        """Say how near models seem to have come where no bound shows it: an estimate, by numbers that were released."""
        why, missed = filter(None, [self.plan.goal.untold]), self.plan.goal.missed_by_constant
        if not self.shortfalls or not 0.0 < missed < math.inf:
            return [*why]
        part = 1.0 - falling([look[1:] for look in self.shortfalls])[0] / missed
        if not 0.0 < part < 1.0:
            return [*why]
        near = f"models came about {min(100.0 * part, 99.0):.0f} % of the way from a constant to the goal"
        return [*why, f"{near}, by noisy tests, which bound nothing here"]

    def _details(self, theta: Floats | None) -> dict[str, Any]:
        """Return what a release of the model just tested says beside; or what is said where none is good enough."""
        if theta is None:
            return {
                "perturbation": self.plan.perturbation,
                "parameters": {**self.plan.goal.said, "next_level": self._price(self._wanted)},
            }
        goal, said = self.plan.goal, self.plan.goal.shown(self.tests.shown)
        within = {} if goal.within is None else {"predicted_within": goal.within}
        place = {"level": self.stages - 1, "perturbation": self.plan.perturbation}
        known = self.walk.noise_levels
        noise = {} if known is None else {"noise_levels": known}
        return {**place, "parameters": {**goal.said, **said, **within, **noise}}

    def _for_little(self, bound: float, looks: Looks | None) -> tuple[float, dict[str, Any]]:
        """Pay a little more where that will probably show something of the best model; return its bound, and what.

        It is looked at more closely, no more than that takes; and more is measured of what the goal is tested with.
        """
        account, goal = self.account, self.plan.goal
        most, further = (
            account.total * (1.0 + _TO_SHOW),
            self._further or (lambda bound, affordable, pay: goal.shown(bound)),
        )

        def affordable(step: Curve, beside: Curve = NOTHING) -> bool:
            return account.fits(step + beside) and account.total + self._adds(step + beside) <= most

        for level in [0.0, *([] if looks is None else looks.further)]:
            closer = NOTHING if looks is None or not level else looks.step(level)
            expected = bound if looks is None or not level else min(bound, looks.noisy + looks.margins[level])
            if not affordable(closer):
                break
            if not further(expected, partial(affordable, closer), False):
                continue
            if looks is not None and level:
                account.book("test", closer)
                self.tests.count, bound = self.tests.count + 1, min(bound, looks.read(level))
            if said := further(bound, affordable, True):
                return bound, said
        return bound, {}

    def _costs(self, level: float) -> float:
        """Return about what that level would add to the total, with the least look at its model."""
        return self._adds(self.walk.cost(level) + self.plan.look(self._before + level))

    def _adds(self, step: Curve) -> float:
        account = self.account
        if not account.delta:
            return float(step.most)
        return float((account.curve + step).epsilon(account.delta) - account.curve.epsilon(account.delta))

    def _price(self, level: float) -> float:
        """Return about what that level would cost with the test of its model, as it is charged for."""
        costs = self._adds(self.walk.cost(level) + self.plan.look(self._before + level, self.stages + 1, 1.0))
        return costs if self.account.delta else float(self.account.unit.charge(costs))


@dataclass(frozen=True)
class StagedPlan(ABC):
    """Where the search starts and how it goes on; public.

    Attributes
    ----------
    goal, loss
        What is searched for, and what is minimised for it.
    geometry, n
        The rows' shape and number.
    failure_probability, budget, delta
        γ; what no outcome may exceed, for one row replaced (k times that for a person with k rows); δ.
    schedule
        How it goes.
    unit
        What neighbours differ in. k rows replaced together move a sum of gradients, and a shortfall, by k times what
        one does, so all that follows from ρ is for the unit.
    reason
        Why this way was chosen, where there was a choice.
    then
        The way to turn to, from the last model on, where models of this one have cost much of the budget.
    further
        How to measure more of what the goal is tested with, in the end.
    """

    goal: TestedGoal
    loss: Loss
    geometry: Geometry
    n: int
    failure_probability: float
    budget: float
    delta: float
    schedule: Schedule
    unit: Unit = ROW
    reason: str = ""
    then: StagedPlan | None = None
    further: Further | None = field(default=None, repr=False, compare=False)

    #: What was done in how many stages, for people; and where the noise went, if not where the search's mechanism says.
    each: ClassVar[str]
    perturbation: ClassVar[str | None] = None
    gaussian: ClassVar[bool] = True  # what it books, and only as far as its account lets it
    running: ClassVar[type[StagedSearch]] = StagedSearch
    timed: ClassVar[bool] = False  # whether a clock states what it costs: models are Gaussian releases, looks are pure

    @classmethod
    def settled(
        cls,
        goal: TestedGoal,
        loss: Loss,
        geometry: Geometry,
        n: int,
        failure_probability: float,
        budget: float,
        delta: float = 0.0,
        unit: Unit = ROW,
        reason: str = "",
    ) -> Self:
        """Settle it, whether or not the goal can be met."""
        schedule = cls.usual_schedule(loss, goal)
        return cls(goal, loss, geometry, n, failure_probability, budget, delta, schedule, unit, reason)

    @classmethod
    def of(cls, *given: Any, **more: Any) -> Self:
        """Settle it, or say that no data set of this size could meet the goal within the budget."""
        plan = cls.settled(*given, **more)
        plan.require_possible()
        return plan

    @classmethod
    def noise_of(cls, loss: Loss, geometry: Geometry) -> float:
        """Return half of the root mean square of noise on a sum of gradients that a row moves by one deviation."""
        return loss.lipschitz(math.inf) * gaussian_size(geometry)

    @classmethod
    @abstractmethod
    def usual_schedule(cls, loss: Loss, goal: TestedGoal | None = None) -> Schedule:
        """Return the schedule for a loss and a goal."""

    @abstractmethod
    def walk(self, generator: Any) -> tuple[Staged, Judge]:
        """Return what goes from stage to stage, and what goals are measured on; private."""

    def cost(self, rho: float) -> Curve:
        """Return what a first stage costs."""
        return Curve.gaussian(rho)

    def less_noise(self, times: float) -> float:
        """Return how many times a level is for so many times less noise."""
        return times * times

    def noise_quotient(self, before: float, after: float) -> float:
        """Return how many times less noise a level has than one before it."""
        return math.sqrt(after / before)

    @property
    def worst_case(self) -> float:
        """No outcome costs more than the budget, at δ."""
        return self.budget

    def least_test(self, stage: int = 1) -> float:
        """Return the least that it costs to show that a perfect model of a stage will do: ε, or ρ in squares."""
        moved, gamma = self.sensitivity / self.goal.room * _ROUNDED, self.gamma(stage)
        if self.schedule.in_squares:
            return 0.5 * (deviations((1.0 - self.schedule.first) * gamma) * moved) ** 2
        return laplace_deviations(gamma) * moved

    def look(self, level: float, stage: int = 1, part: float = _LEAST_TEST) -> Curve:
        """Return what the test of a stage's model, which cost so much, costs at least, if it is to say anything.

        ``part`` is of what it may cost usually. A cut-off is found before it, for a part of that.
        """
        least, most = self.least_test(stage), self.most_of_test(level)
        if self.schedule.in_squares:
            return Curve.gaussian(max(least, most) * (1.0 + self.goal.cut_part))
        return Curve.ex_post(max(least, part * most) + self.goal.cut_part * most)

    def precision(self, level: float) -> float:
        """Return x of a level ρ, in units of the table: noise on a mean gradient is typically 1/x."""
        return level_at(level, self.noise_of(self.loss, self.geometry), self.n, self.unit) / self.geometry.scale

    def model_epsilon(self, level: float) -> float:
        """Return about what a level ρ costs; at a δ only."""
        return level + 2.0 * math.sqrt(-level * math.log(self.delta))

    def most_of_test(self, level: float) -> float:
        """Return what a test usually may cost: a part of what its model costs, more where that gains more; or ρ.

        A level that costs g has a model about e = 2R/x worse than the best in a mean square, and a test that costs t a
        margin m; e·g and m·t hardly depend on the level. So e + m is least for what both cost where t/g is the root of
        m·t over e·g. For a target that is narrow beside its bounds that is nearly all.
        """
        if self.schedule.in_squares:
            return self.schedule.test_part * level
        costs, needed = self.model_epsilon(level), laplace_deviations(self.gamma(1)) * self.sensitivity
        balanced = math.sqrt(needed * costs * self.precision(level) / (2.0 * self.goal.chain().reach))
        return max(self.schedule.test_part * costs, balanced)

    def gamma(self, stage: int) -> float:
        """Return the part of γ for looks at a stage's model."""
        return self.failure_probability * (1.0 - self.schedule.kept) * self.schedule.kept ** (stage - 1)

    @property
    def start(self) -> float:
        """ρ of the first stage."""
        return self.clear(self.least_stage)

    @property
    def affordable_start(self) -> float:
        """The same, or the largest first stage that the budget allows; zero if none."""
        whole, start = self._whole(), self.start
        fits = whole.fits(self.cost(start) + self.look(start))
        return start if fits else largest_stage(whole, self.cost, self.look, 0.0, start)

    def clear(self, level: float) -> float:
        """Return the level, or a larger one whose test may show a perfect model to do: others are not worth a model."""
        times = 1.0 + self.schedule.again if self.schedule.in_squares else 1.0
        needed, low, high = self.least_test() * (1.0 + 1e-6), level, level
        while times * self.most_of_test(high) < needed:
            low, high = high, 2.0 * high
        for _ in range(20 if high > low else 0):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if times * self.most_of_test(middle) < needed else (low, middle)
        return high

    @property
    def sensitivity(self) -> float:
        """How far the unit can move a shortfall; without a δ losses are booked for one row."""
        rows = self.unit.rows if self.delta else 1
        return rows * self.goal.shortfall_sensitivity(self.n) * (1.0 + 1e-15)

    @property
    def least_stage(self) -> float:
        """ρ of a stage whose noise leaves something to be seen."""
        noise = self.noise_of(self.loss, self.geometry.coarsest)
        return rho_at(self.schedule.start * self.geometry.scale, noise, self.n, self.unit)

    @property
    def least_useful(self) -> float:
        """The least first level that is worth its loss."""
        return self.less_noise(self.schedule.least) * self.least_stage

    def missing(self) -> float:
        """Return how many times the rows it would take so that a perfect model could be shown to do; zero if it can.

        On a table as favourable to the goal as there can be: what is known of this one comes later.
        """
        best = self.measured(self.goal.at_best(), self.failure_probability)
        if best._possible():
            return 0.0
        low, high = 1.0, 2.0
        while high < 1e12 and not replace(best, n=math.ceil(self.n * high))._possible():
            low, high = high, 2.0 * high
        for _ in range(10):
            middle = 0.5 * (low + high)
            enough = replace(best, n=math.ceil(self.n * middle))._possible()
            low, high = (low, middle) if enough else (middle, high)
        return high

    def _possible(self) -> bool:
        """Whether a first level of any use and a test of it can be afforded."""
        level = self.least_useful
        return self._whole().fits(self.cost(level) + self.look(level))

    def _whole(self) -> Account:
        """Return the account before the first step: within the budget, and one that other runs count on as well."""
        shared = current(self.delta, self.unit) if self.delta else None
        return Account("", self.budget, False, unit=self.unit, delta=self.delta, shared=shared)

    def require_possible(self) -> None:
        """Refuse a goal that not even a perfect model could be shown to meet."""
        if times := self.missing():
            unit, at = self.unit, f" at delta = {up(self.delta, 6)}" if self.delta else ""
            at += " and what is left of the shared budget" if self._whole().shared is not None else ""
            raise TargetUnreachable(
                f"at {unit.count(self.n)} no model could be shown to meet the goal for max_epsilon = "
                f"{down(unit.charge(self.budget))}{at}, whatever the data: the noise that hides one {unit.noun} would "
                f"drown it. Pass a larger max_epsilon, or fewer columns or categories. "
                f"{tried(math.ceil(self.n / unit.rows * times), unit)}. Nothing was spent."
            )

    def clock(self) -> Clock:
        """Return the sums of ρ at which the search may end: after each stage."""
        most = room(NOTHING, self.unit.worst_case(self.budget), self.delta)
        times, stage = [most], self.start
        while stage <= most and len(times) <= _MOST_STAGES:
            times.append(stage * _AFTER)
            stage *= self.schedule.growth
        # what is left of the budget may be enough for a part of a stage; times after all others take no share of theirs
        last = max((time for time in times[1:] if time < most), default=most)
        while last < most:
            last *= 1.2
            times.append(min(last, most))
        return Clock.of(times)

    def search(
        self,
        generator: Any,
        account: Account,
        source: WordSource,
        running: Callable[..., StagedSearch] | None = None,
    ) -> Release:
        """Go from stage to stage until a test passes or the budget is used up; ``running`` is another way to test."""
        squares = self.timed and account.in_squares
        if self.timed and not squares and self.delta >= LEAST:
            account.clock = self.clock()
        run = self.run_of(generator, account, source, squares and running is None, running)
        if not run.plan.goal.idle:
            return run.run()
        fitted = f"on the {self.unit.noun}s fitted " if account.held_out else ""  # others may differ by chance
        account.reasons.append(f"{fitted}{run.plan.goal.idle}")
        return account.refused(perturbation=self.perturbation, parameters=run.plan.goal.said)

    def run_of(
        self,
        generator: Any,
        account: Account,
        source: WordSource,
        in_squares: bool = False,
        running: Callable[..., StagedSearch] | None = None,
    ) -> StagedSearch:
        """Return the run, before its first stage; what the goal is better tested with is released here."""
        plan = self.after_measuring(generator, account, source)
        if in_squares:  # what others count on adds up in squares, which pure noise does not
            plan = replace(plan._in_squares(), then=None)
        return (running or self.running)(plan, *plan.walk(generator), account, source)

    def after_measuring(self, generator: Any, account: Account, source: WordSource) -> Self:
        """Release what the goal is better tested with, and return the plan for that."""
        begun = self.cost(self.start) + self.look(self.start)
        first = begun.epsilon(self.delta) if self.delta else begun.most
        goal, gamma, further = self.goal.measured(generator.judge, account, source, self.failure_probability, first)
        return replace(self.measured(goal, gamma), further=further)

    def measured(self, goal: TestedGoal, gamma: float) -> Self:
        """Return the plan for a goal as it was measured, with what is left of γ."""
        return replace(self, goal=goal, failure_probability=gamma)

    def _in_squares(self) -> Self:
        """Return the plan with tests under Gaussian noise: dearer by themselves, and within one curve with models."""
        part = _BESIDE_LABELS if self.loss.labels == "binary" else _BESIDE_SQUARES
        return replace(self, schedule=replace(self.schedule, in_squares=True, test_part=part, growth=1.6, fastest=1.6))


def rho_at(x: float, noise: float, n: int, unit: Unit = ROW) -> float:
    """Return the ρ at which noise on a mean gradient is typically 1/x; ``noise`` is what a plan's `noise_of` is."""
    return 0.5 * (2.0 * unit.rows * noise * x / n) ** 2


def level_at(rho: float, noise: float, n: int, unit: Unit = ROW) -> float:
    """Return the x at which that is ρ."""
    return math.sqrt(2.0 * rho) * n / (2.0 * unit.rows * noise)


def largest_stage(
    account: Account,
    cost: Callable[[float], Curve],
    look: Callable[[float], Curve],
    before: float = 0.0,
    most: float = math.inf,
) -> float:
    """Return the largest level up to ``most`` that may still be taken with its test; zero if none may.

    ``before`` is what the model was paid before it.
    """
    low, high = 0.0, most if math.isfinite(most) else account.room
    for _ in range(30):
        middle = 0.5 * (low + high)
        fits = middle > 0.0 and account.fits(cost(middle), look(before + middle))
        low, high = (middle, high) if fits else (low, middle)
    return low
