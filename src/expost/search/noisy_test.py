"""Noisy tests of one number, with exact discrete noise on a public grid, and what they say together of a goal.

Is the value at most zero, or below a limit?

*Released*: the value, rounded down to a grid, plus discrete Laplace or Gaussian noise. *Sensitivity*: Δ units, rounding
and floating point charged (`expost.numeric`). *Theorem (privacy)*: Laplace noise of scale s costs ε = Δ/s, Gaussian
noise of deviation σ costs ρ = Δ²/(2σ²); every test books that as a curve. *What is shown*: noisy values with their
margins are bounds on the value, all of them but for the failure probabilities, whatever the answer (theory D3).

*Gaussian tests, once or twice (theory C4).* The value with noise that costs ρ, and if that looks promising again with
noise that costs ``again``·ρ. *Theorem (accuracy)*: "yes" though the value is above zero has probability at most γ,
``first`` of it for the first test and the rest for the average of both. Independent tests of one value, averaged with
weights 1/σ², have noise that is stochastically between N(0, σ̄²) − 2 and N(0, σ̄²) + 2 units, 1/σ̄² = Σ1/σ²
(`expost.noise.gaussian`); so average + z·σ̄ + 3 units + error is below the true value with probability at most Φ(−z).
How precise a second test is must be settled before the first is seen; whether it is taken need not be. No
AboveThreshold is interleaved with fresh releases, so nothing has to be said about their concurrent composition.

*Laplace noise that is taken away step by step (theory A2, B1).* For all searches in levels but those that share a
budget at a δ: one precise test costs its ε and no factor for δ (theory C3). *Released*: the value
with discrete Laplace noise at levels ε₁ < … < ε_K, one after the other, on a path of gradual release
(`expost.noise.laplace`) as far as it takes. *Theorem (privacy)*: however far that is, and whatever decides it from what
is released, the test costs the last level alone. It is booked as the path is walked, in differences. How many levels
there are, and how far apart, was settled before.

*Theorem (accuracy)*. Let the answer be "yes" at level k if the noisy value is at most −c·s_k, s_k the scale of its
noise, s_k/s_{k+1} = q. If the value is above zero, some level says so with probability at most
½e^{−c}(1 + (K − 1)·j·(q/2)·((1 − e^{−(q−1)c/q})/(q − 1) + 1/(q + 1))), j = 1 − 1/q², K levels.
*Proof.* Let A_k: noise at level k is at most −c·s_k. A_K has probability ½e^{−c}. If noise does not jump between k + 1
and k, A_k is in A_{k+1}, as c·s_k > c·s_{k+1}. It jumps with probability j, by a fresh Laplace variable of scale s_k.
So P[A_k but not A_{k+1}] ≤ j·P[Z > −c·s_{k+1}, Z + W ≤ −c·s_k], Z and W independent of scales s_{k+1} and s_k; in
units of s_k that is j·∫ over z > −c/q of (q/2)e^{−q|z|}·½e^{−c−z}, which is the bracket's second term. Add over k. ∎
That is about the noise alone, whatever the value is, so every noisy value is a bound with its margin, c·s_k.
On integers: a geometric variable is a rounded exponential one, so each Laplace variable above is within one unit of a
discrete one and the path within K, and keeping probabilities differ by less than 10⁻⁹; both are in the margin.

*One question with a limit* (:class:`OneTest`). *Released*: whether value + noise stays below it. *Theorem*: with
Laplace noise of scale s = f·target/ln(1/(2δ)) and the limit at (1 − f)·target, a wrong "yes" needs the noise to fall
below −f·target = −s·ln(1/(2δ)), which has probability at most δ. The ε of a question depends on the hypothesis only
through what is released before it is asked, so ε is known beforehand and questions add up adaptively. On the grid the
value is rounded up, its floating-point error added, and the limit lowered by two units.

*The same question, given up early* (:meth:`OneTest.ask_gradually`). *Released*: value + noise at levels ε/8, ε/4, ε/2
and ε of a path of gradual release, as far as it takes: it ends with "no" at the first level whose noisy value lies
three scales of its noise above the limit, and is answered at the last. *Theorem (privacy)*: as above, the last level
revealed is what it costs. *Theorem (accuracy)*: a "yes" is one of the last level, so a wrong one is no likelier than
before. A value that is many times too large so costs an eighth of the question; one that would pass is missed in a few
runs of a hundred more.

*Is the goal within reach at all?* (:func:`chance`.) Shortfalls (how far a model misses the goal) fall from level to
level as noise gets less, by a law whose power is known, towards the shortfall of the best model. So what was released
says about how likely it is that a later model passes, and levels that cost more than that chance is worth are not
taken. All of this reads released and public numbers only, and nothing has to be right about it: a goal that is given up
wrongly is refused, or short, and neither privacy nor accuracy is touched. `benchmarks/panel.py --beyond` measures what
it costs to refuse goals that no model reaches. `benchmarks/stopping.py` shows what :data:`NEAR` trades: cheap refusals
against goals that are within reach and given up. It and the constant beside it were set by hand, to lose few of those.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from expost.account.account import Account
from expost.account.composition import Curve
from expost.goals.measure import Measure, charged_grid
from expost.noise.gaussian import deviations, discrete_gaussian
from expost.noise.laplace import NoisePath, discrete_laplace
from expost.noise.source import WordSource
from expost.numeric import Grid


@dataclass(frozen=True)
class NoisyValue:
    """How a value is released with noise, to be compared with zero; settled beforehand.

    Attributes
    ----------
    grid
        What the value is rounded to, rounding and floating point charged.
    error_bound
        How far the computed value may be off.
    gaussian
        Whether noise is Gaussian, and costs are ρ; else it is Laplace, and they are ε.
    """

    grid: Grid
    error_bound: float
    gaussian: bool = False

    @classmethod
    def of(cls, sensitivity: float, error_bound: float, *, gaussian: bool = False) -> NoisyValue:
        """Settle it for a value of that sensitivity computed to within that error."""
        return cls(Grid.of(sensitivity, error_bound=error_bound), error_bound, gaussian)

    def curve(self, cost: float) -> Curve:
        """Return what one release costs."""
        return Curve.gaussian(cost) if self.gaussian else Curve.ex_post(cost)

    def deviation(self, cost: float) -> float:
        """Return σ, or the scale of Laplace noise, in real units."""
        return self._sigma(cost) * self.grid.unit if self.gaussian else self.grid.effective_sensitivity / cost

    def _sigma(self, rho: float) -> float:
        return self.grid.units / math.sqrt(2.0 * rho) * (1.0 + 1e-12)

    def ask(self, value: float, cost: float, source: WordSource) -> float:
        """Return the noisy value."""
        if self.gaussian:
            noise = int(discrete_gaussian(self._sigma(cost), 1, random_state=source)[0])
        else:
            noise = int(discrete_laplace(cost, self.grid.units, 1, random_state=source)[0])
        return (math.floor(value / self.grid.unit) + noise) * self.grid.unit

    def margin(self, cost: float, failure_probability: float) -> float:
        """Return m: noisy + m < value has at most that probability; Gaussian looks may be averaged, of ρ in all.

        A discrete Laplace variable of scale s falls below −s·ln(1/(2δ)) − one unit with probability at most δ; rounding
        down takes another unit, and the value computed may be too small by its error.
        """
        if self.gaussian:
            tail, units = deviations(failure_probability), 4.0
        else:
            tail, units = max(0.0, math.log(1 / (2 * failure_probability))), 3.0
        return self.deviation(cost) * tail * (1.0 + 1e-9) + units * self.grid.unit + self.error_bound


def noisy_values(
    values: list[float], *, sensitivity: float, error_bound: float, epsilon: float, source: WordSource
) -> list[float]:
    """Return values of joint ℓ₁-sensitivity Δ with discrete Laplace noise of scale Δ/ε (theory B1's rounding).

    Each value is computed to within ``error_bound`` and rounded to the grid, which is charged: ⌊(Δ + 2kη)/g⌋ + k
    units for k values.
    """
    count = len(values)
    grid = Grid.of(sensitivity, error_bound=count * error_bound)
    units = grid.units + count - 1
    noise = discrete_laplace(epsilon, units, count, random_state=source)
    return [
        (math.floor(value / grid.unit) + int(extra)) * grid.unit for value, extra in zip(values, noise, strict=True)
    ]


def averaged(first: float, first_rho: float, second: float, second_rho: float) -> float:
    """Return the average of two looks, weighted by their ρ."""
    return (first * first_rho + second * second_rho) / (first_rho + second_rho)


@dataclass
class NoisyTest:
    """Tests of values against zero that are booked on one account.

    Attributes
    ----------
    account, source
        Where they are booked, and where noise comes from.
    count
        How many noisy values were released.
    shown
        The least bound on a value that they have shown; whoever tests another value sets it to infinity before.
    looks
        The last value's path as far as it was looked along, where that may be gone on with; likewise None before.
    """

    account: Account
    source: WordSource
    count: int = field(default=0, init=False)
    shown: float = field(default=math.inf, init=False)
    looks: Looks | None = field(default=None, init=False)

    def ask(self, value: NoisyValue, truth: float, cost: float) -> float:
        """Book and release a noisy value."""
        self.account.book("test", value.curve(cost))
        self.count += 1
        return value.ask(truth, cost, self.source)

    def shows(self, bound: float) -> bool:
        """Whether a bound on the value shows that it is at most zero."""
        self.shown = min(self.shown, bound)
        return bound <= 0.0


@dataclass
class GaussianTest(NoisyTest):
    """A test with Gaussian noise, and a second one if the first is promising.

    Attributes
    ----------
    again
        ρ of a second test, as a multiple of the first one's.
    first
        Part of γ for the first test.
    """

    again: float = 3.0
    first: float = 0.5

    def pass_at(self, truth: float, sensitivity: float, error: float, rho: float, gamma: float) -> bool:
        """Whether the value is shown to be at most zero; wrong with probability at most γ; no where none fits.

        Parameters
        ----------
        truth, sensitivity, error
            The value; how far the unit can move it, and how far what was computed may be off.
        rho, gamma
            ρ of the first test, and γ.
        """
        value = NoisyValue.of(sensitivity, error, gaussian=True)
        if not self.account.fits(value.curve(rho)):  # a cut-off was paid for out of its room
            return False
        noisy = self.ask(value, truth, rho)
        if self.shows(noisy + value.margin(rho, self.first * gamma)):
            return True
        more = self.again * rho
        margin = value.margin(rho + more, (1.0 - self.first) * gamma)
        if noisy + margin > 0.0 or not self.account.fits(value.curve(more)):
            return False
        return self.shows(averaged(noisy, rho, self.ask(value, truth, more), more) + margin)


#: Levels of a test under Laplace noise at most, and how many times one costs what the one before it does.
LEVELS, RATIO = 11, 1.6
#: A test that is likely to pass may cost so many times as much, where no later model is likely to pass for less.
FURTHER = 7.7
_SURELY = 3.0  # scales of noise: a value that is that far above what could still be shown is given up
_GRADUALLY = (1 / 8, 1 / 4, 1 / 2, 1.0)  # levels of a question that is given up early, in parts of what it costs


@lru_cache(maxsize=256)
def laplace_deviations(gamma: float, levels: int = LEVELS) -> float:
    """Return c, in scales of noise: "yes" though the value is above zero has probability at most γ.

    Examples
    --------
    >>> round(laplace_deviations(0.05, 3), 2), round(math.log(3 / 2 / 0.05), 2)  # adding probabilities gives more
    (3.22, 3.4)
    """
    low, high = 0.0, 2.0 + math.log(levels) + math.log(1.0 / gamma)
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if _misled(middle, levels) <= gamma * (1.0 - 1e-6) else (middle, high)
    return high


def _misled(c: float, levels: int) -> float:
    """Return the theorem's bound."""
    jump = 1.0 - 1.0 / RATIO**2
    further = (1.0 - math.exp(-(RATIO - 1.0) * c / RATIO)) / (RATIO - 1.0) + 1.0 / (RATIO + 1.0)
    return 0.5 * math.exp(-c) * (1.0 + (levels - 1) * jump * 0.5 * RATIO * further)


class Looks:
    """Looks at one value along its path; private, and only what is read of it is paid for.

    Margins were settled with the levels, for all of them together, so a search that has ended may look on: that costs
    what the level come to adds.
    """

    def __init__(self, path: NoisePath, margins: dict[float, float], unit: float) -> None:
        self._path, self._unit, self._paid = iter(path), unit, 0.0
        self.margins, self.noisy = margins, math.inf

    @property
    def further(self) -> list[float]:
        """Levels that were not come to."""
        return [level for level in self.margins if level > self._paid]

    def step(self, level: float) -> Curve:
        """Return what going on to a level costs."""
        return Curve.ex_post(math.nextafter(level - self._paid, math.inf))

    def read(self, level: float) -> float:
        """Return the noisy value of a level, which is booked, with its margin: a bound."""
        value = next(value for value in self._path if value.epsilon >= level)
        self._paid, self.noisy = value.epsilon, int(value.values[0]) * self._unit
        return self.noisy + self.margins[level]


@dataclass
class GradualTest(NoisyTest):
    """A test with Laplace noise that is taken away level by level, as long as the value might still be shown to do.

    Attributes
    ----------
    noisy, scale
        The last noisy value, and the scale of its noise: what a search steers by.
    """

    noisy: float = field(default=math.inf, init=False)
    scale: float = field(default=math.inf, init=False)

    def pass_at(
        self,
        truth: float,
        sensitivity: float,
        error: float,
        epsilon: float,
        gamma: float,
        room: float = math.inf,
        earlier: Sequence[tuple[float, float]] = (),
        later: Callable[[float, float], tuple[float, float]] = lambda noisy, scale: (0.0, math.inf),
    ) -> bool:
        """Whether the value is shown to be at most zero, as :meth:`GaussianTest.pass_at`.

        ``epsilon`` is what it may cost, or :data:`FURTHER` times that while the last noisy value says that it would
        pass for so much. ``room`` is how far below zero a value may be thought to be: the first level is one whose
        margin is no larger, and nothing is asked or paid where even the last one has a larger margin. ``earlier`` are
        noisy values, with their scales, that this one is taken to be below: they help to say whether it would pass.
        ``later`` says of a noisy value and its scale what may be paid to look at it more closely although it would not
        pass, and what it would cost to show a later value to do: if that is less, this one is given up.
        """
        grid = Grid.of(sensitivity, error_bound=error)
        unit, units, slack = grid.unit, grid.units, (LEVELS + 3) * grid.unit + error

        def wide(count: int) -> float:
            return laplace_deviations(gamma, count) * grid.effective_sensitivity * (1.0 + 1e-9)

        most = FURTHER * epsilon
        first = max(most / RATIO ** (LEVELS - 1), wide(LEVELS) / (room - slack) if room > slack else math.inf)
        levels = [first * RATIO**k for k in range(LEVELS) if first * RATIO**k <= most * (1.0 + 1e-9)]
        if not levels:
            return False
        margins = {level: wide(len(levels)) / level + slack for level in levels}
        usual = min(margin for level, margin in margins.items() if level <= max(epsilon, first))
        path = NoisePath(np.array([math.floor(truth / unit)]), units, levels, random_state=self.source)
        self.looks = looks = Looks(path, margins, unit)
        for level, following in zip(levels, [*levels[1:], math.inf], strict=True):
            # the path has drawn its noise, but nothing of it has been looked at
            step = looks.step(level)
            if not self.account.fits(step):
                return False
            self.account.book("test", step)
            self.count, bound = self.count + 1, looks.read(level)
            self.noisy, self.scale = looks.noisy, grid.effective_sensitivity / level
            if self.shows(bound):
                return True
            likely, scale = falling([*earlier, (self.noisy, self.scale)])
            if following > epsilon * (1.0 + 1e-9):
                if likely > -margins[levels[-1]]:
                    return False
                if wide(len(levels)) / (-likely - slack) - level > later(self.noisy, self.scale)[1]:
                    return False
            elif likely - _SURELY * scale > -usual and following > later(self.noisy, self.scale)[0]:
                return False
        return False


_SLACK = 2  # grid units: rounding of the limit, and discrete against continuous tails


@dataclass(frozen=True)
class OneTest:
    """A single yes/no question with Laplace noise.

    Attributes
    ----------
    target
        What must not be exceeded, in real units.
    failure_probability
        δ, the chance of a wrong yes.
    share
        f, the part of the target given to the noise: the limit is (1 − f)·target, the noise scale f·target/ln(1/(2δ)).
    """

    target: float
    failure_probability: float
    share: float

    def __post_init__(self) -> None:
        if not 0 < self.failure_probability < 0.5 or not 0 < self.share < 1 or not self.target > 0:
            raise ValueError("a test needs 0 < failure_probability < 1/2, 0 < share < 1 and a positive target")

    @property
    def scale(self) -> float:
        """Noise scale in real units."""
        return self.share * self.target / math.log(1 / (2 * self.failure_probability))

    def epsilon(self, sensitivity: float) -> float:
        """Return what the answer costs for a measure of that sensitivity."""
        return sensitivity / self.scale

    def cost(self, sensitivity: float, error_bound: float) -> float:
        """Return what the answer costs, rounding to a grid and floating point included."""
        return self.epsilon(charged_grid(sensitivity, error_bound).effective_sensitivity)

    def ask(self, measure: Measure, hypothesis: Any, source: WordSource) -> tuple[bool, float]:
        """Return the answer and what it cost."""
        grid = measure.fine_grid(hypothesis)
        epsilon = self.epsilon(grid.effective_sensitivity)
        noise = int(discrete_laplace(epsilon, grid.units, 1, random_state=source)[0])
        return self.passes(measure, hypothesis, noise, grid), epsilon

    def ask_gradually(self, measure: Measure, hypothesis: Any, source: WordSource) -> tuple[bool, float]:
        """Return the answer and what it cost: at most what :meth:`ask` costs, less where the value is far too large."""
        grid = measure.fine_grid(hypothesis)
        epsilon = self.epsilon(grid.effective_sensitivity)
        limit = math.floor((1 - self.share) * self.target / grid.unit) - _SLACK
        value = math.ceil((measure.value(hypothesis) + measure.error_bound(hypothesis)) / grid.unit)
        levels = [part * epsilon for part in _GRADUALLY]
        noisy, level = math.inf, 0.0
        for step in NoisePath(np.array([value], dtype=object), grid.units, levels, random_state=source):
            noisy, level = int(step.values[0]), step.epsilon
            if noisy > limit + _SURELY * grid.units / level:
                break
        return noisy <= limit, level

    def passes(self, measure: Measure, hypothesis: Any, noise: int, grid: Grid) -> bool:
        """Return the answer for noise drawn beforehand."""
        limit = math.floor((1 - self.share) * self.target / grid.unit) - _SLACK - noise
        return measure.at_most(hypothesis, limit, grid.unit)


def best_share(test_cost: float, other_cost: float) -> float:
    """Return f that makes test_cost/f + other_cost/(1 − f) smallest: √T/(√T + √G).

    Examples
    --------
    >>> best_share(1.0, 4.0)
    0.3333333333333333
    """
    return math.sqrt(test_cost) / (math.sqrt(test_cost) + math.sqrt(other_cost))


#: Of what a constant misses a goal by: models that miss it by more say nothing yet of where shortfalls end.
NEAR = 0.25
_WRONG = 0.05  # the chance that shortfalls fall by another law than what was released shows


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

    By default it is the best model that is asked about. Where :func:`ending` leaves it above the goal by z deviations
    the chance is taken to be half of e^(−√2·z), as for Laplace noise, and never below that of a fit which is wrong.

    Examples
    --------
    >>> falls = [Look(x, 0.01 + 1.0 / x, 0.0005) for x in (20.0, 60.0, 180.0)]  # to 0.01 above the goal
    >>> chance(falls, 0.3) < 0.06, chance([look._replace(noisy=look.noisy - 0.01) for look in falls], 0.3) > 0.3
    (True, True)
    >>> lower = [look._replace(noisy=look.noisy - 0.02) for look in falls]  # the next model but one may pass
    >>> chance(lower, 0.3, 200.0, 0.007) < 0.1, chance(lower, 0.3, 600.0, 0.007) > 0.5
    (True, True)
    """
    fitted = ending(looks, missed_by_constant, precision)
    if fitted is None:
        return 1.0
    above, off = fitted[0] + margin, fitted[1]
    return _WRONG + (1.0 - _WRONG) * 0.5 * math.exp(-math.sqrt(2.0) * above / off) if above > 0.0 else 1.0


def ending(looks: Sequence[Look], missed_by_constant: float, precision: float) -> tuple[float, float] | None:
    """Return by how much a model of that precision seems to miss the goal, and the deviation; None if nothing says so.

    Shortfalls are fitted by limit + c/x, x the precision of a level, weighted by their known noise: a perturbed
    minimum's loss exceeds that of the best model within R by at most about R/x, λR²/2 for the shrinkage and 1/(2λx²)
    for the noise. Models that miss the goal by more than a part (:data:`NEAR`) of what a constant does
    (``missed_by_constant``) fall by another law, and faster: two that are nearer speak, or three that are better than a
    constant, unless the last one misses the goal by less than half of what the one before did.
    """
    near = _last_below(looks, NEAR * missed_by_constant)
    if len(near) < 2:
        near = _last_below(looks, missed_by_constant)
        if len(near) < 3 or near[-1].noisy < 0.5 * near[-2].noisy:
            return None
    weights = [0.5 / (look.scale * look.scale) for look in near]
    total = math.fsum(weights)
    mean = math.fsum(w * look.noisy for w, look in zip(weights, near, strict=True)) / total
    added = [near[-1].precision / look.precision for look in near]
    middle = math.fsum(w * u for w, u in zip(weights, added, strict=True)) / total
    spread = math.fsum(w * (u - middle) ** 2 for w, u in zip(weights, added, strict=True))
    moved = math.fsum(w * (u - middle) * look.noisy for w, u, look in zip(weights, added, near, strict=True))
    slope, there = max(0.0, moved / spread) if spread else 0.0, near[-1].precision / precision - middle
    off = math.sqrt(1.0 / total + (there * there / spread if spread else 0.0))
    return mean + slope * there, off


def _last_below(looks: Sequence[Look], most: float) -> Sequence[Look]:
    """Return the last looks, as far as all of them miss the goal by less than that, noise included."""
    far = [place for place, look in enumerate(looks, 1) if look.noisy + look.scale > most]
    return looks[max(far, default=0) :]
