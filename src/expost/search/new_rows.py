"""A promise about new rows: models are fitted to some rows and tested on the others (theory D4).

*Units* are rows, or persons with all of their rows where a table names persons: neighbours differ in one unit
(`expost.account.composition`), and each fills k slots, k = 1 for rows. Of n units a set of m, drawn uniformly among
all such sets, is held out: released to nobody, and kept by the curator alone (`expost.release.held_out`). New units are
drawn independently from one population, as those of the table are taken to be: that is assumed, and said in every
release. *Released*: models, as `expost.search.levels` releases them, of the fitted units alone, and of each the noisy
mean of its losses (mistakes, squared errors) on those held out; later, histograms of those held out, if asked for.
*Neighbours*: one unit replaced by any other, wherever that stands. A table may be sorted by what its rows hold: all
others may move. Sums over rows are the same to the bit in any order (`expost.solve.row_sums`). If places told who is
held out, others would change parts with the one who is replaced, as if all of them had been replaced.

*Theorem (privacy).* The loss of an outcome is at most max(Σ models, Σ tests), and the loss of what reads all units
beside. *Proof.* Let the neighbour have a unit b where the table has a. Exchange b for a in every set: that takes sets
of m of one table to sets of m of the other, one to one, all as likely. Between a set and its image the same part
differs, in k slots: given what was released before, releases about the other part are settled by the same rows, and
their log ratio is zero. So the loss of an outcome given both is at most ε(o) = max(Σ models, Σ tests), a function of
the outcome alone. P[o] is the mean over sets of P[o given the set], hence at most e^{ε(o)} times that of the neighbour.
∎ So tests are free as long as they cost no more than models do, and each here costs what models have cost beyond the
tests before it (`Account.free_test`; at a δ a little less). What is lost are the rows that models are not fitted to.
*At a δ* the larger of what both sides come to would not do, in the strict sense: given the set, P[loss > ε(o)] ≤ δ
holds, but an outcome that exceeds ε(o) where the unit was fitted may reach it exactly where it was held out, which
has any probability; their mixture exceeds it in both cases. *Theorem (at a δ).* Let R(o, r) be at every order r of the
grid the larger of the curves of models and of tests, with that of what reads all units in both, and let ε(o) be what R
comes to at δ (`expost.account.composition.Curve`). Then P[ℓ > ε(o)] ≤ δ, ℓ the log ratio of the mixtures over sets.
*Proof.* Given a set S and its image, by its curve the side that differs has E_S e^{(r−1)(ℓ_S − R)} ≤ 1 where the run
ends, and R is not below that curve: Σ_o P_S^r P′_S^{1−r} e^{−(r−1)R(o, r)} ≤ 1. (x, y) ↦ x^r y^{1−r} is convex and
homogeneous, and R is a function of the outcome alone, so the same holds of the means over sets: E e^{(r−1)(ℓ − R)} ≤ 1.
With weights over orders and Markov's inequality it follows as for one curve; and so do the filter, sums with other
releases, and what is made of a release that shows both curves. ∎ A clock states less than the curve, and tests may cost
more for nothing: its own theorem is in `expost.account.composition.Clock`. *In the usual sense* P[A] − E′[e^{ε(o)}; A]
≤ δ, for all sets A of outcomes, is linear in both laws, and the larger of what both sides come to does.

*Later evaluations* of those held out read the same set, so they are no releases of their own about the table, whose
losses would add up by themselves: what was released before tells about the set, and not alike on both tables.
*Theorem.* A fit that states ε(o) and evaluations of its set, pure, of ε₁, ε₂, … come to ε(o) + Σε_i at most at the
fit's δ, whatever was released between them. *Proof.* Take all of it for one run. Given a set, evaluations are further
tests: without a δ the loss is at most max(Σ models, Σ tests + Σε_i); the curve of tests is larger by Σε_i, so the
larger of both, and what it comes to, is by no more; nor is a clock's ε(o), of whose ε_a they are. Releases that do not
read the set have the same law for every set: they are factors of both mixtures, and what is chosen by them is chosen by
public coins. ∎ Curves of evaluations add to R likewise, as ledgers and budgets count them. At a δ ≤ ½ of its own an
evaluation states its pure ε: Σw_r e^{(r−1)(e − min(ε, rε²/2))} ≤ e^{1/2} < 1/δ for e ≤ ε. All of it is about a table
that has the rows of the fit in the order of the fit, so that a set means the same units both times: the release of an
evaluation claims it.

*Theorem (accuracy).* Let the list of models, noise scales and γ_k be a function of the fitted rows, public numbers and
noise of its own, Σγ_k ≤ γ; what tests say only chooses how far the list is gone through. Test k accepts if P[noisy mean
≤ what was seen] ≤ γ_k for rows whose losses have the mean that the goal allows. Then a model whose mean loss e on new
rows is above the goal is released with probability at most γ, over the noise and the drawing of rows.
*Proof.* Fix the fitted rows and the noise of models: all of the list is fixed, and the rows held out are independent of
it. Let G be the distribution function of the noisy mean at test k, for model k, and G₀ the one where the mean loss is
what the goal allows. e above the goal makes losses larger, so G ≤ G₀ (below), and the test accepts only where G ≤ G₀ ≤
γ_k at what was seen, which has probability at most γ_k: P[G(X) ≤ γ] ≤ γ for every X with distribution function G. Add
over the list, whether or not entry k is come to, and take the mean over what was fixed. ∎ *Persons*: it is persons
who are drawn independently, each with all of their rows; a person's loss is the mean over their k slots, e the mean of
that over new persons, and m counts persons. The draw of who is held out is independent of everybody's rows, so those of
the fitted persons say nothing about the others'. Rows of one person may be as alike as they please. *What is shown*:
the least e with G_e(seen) ≤ γ_k, an upper bound for model k, false as rarely. All this is false if
models, scales or γ_k follow what tests said (the luckiest of ten models): so levels are a fixed ladder here, nothing is
steered by noisy shortfalls, and a search may end by them but not go another way.

*The law of a noisy mean.* Noise Z is discrete Laplace and independent, so G_e(x) = Σ_z P[Z = z]·T_e(x − z), T_e(x) =
P[mean ≤ x] without noise. *Mistakes* are Binomial(m, e), if there is one row of each person: T_e is exact and falls
with e. *Losses in [a, b]*, such as the share of a person's k rows that are mistaken: T_e(x) ≤
exp(−m·KL((x − a)/(b − a) ‖ (e − a)/(b − a))) for x ≤ e, 1 beyond (Chernoff, Hoeffding 1963), which falls with e too; so
does a mean of such terms. The bound is used in the place of T_e. What was observed is put into no variance (that would
be wrong in 36 % of runs at γ = 0.01). *In numbers*: z is summed over cells, each with the largest T_e in it, so the sum
is not below G_e, by e^{1/64} at most above; where noise is narrow cells are single integers. Means of losses are
rounded down to a grid and may be off by η, so T_e is taken at x + one unit + η.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import betainc, xlogy

from expost.account.account import Account
from expost.account.composition import NOTHING, ROW, Curve, Unit
from expost.exceptions import TargetUnreachable
from expost.goals.goal import TestedGoal
from expost.noise.laplace import discrete_laplace
from expost.noise.source import WordSource
from expost.numeric import FloatArray, Grid, bisected
from expost.release.held_out import HeldOut
from expost.release.release import Release
from expost.search.levels import Floats, StagedPlan, StagedSearch
from expost.search.noisy_test import Look, NoisyTest
from expost.shown import down
from expost.solve.row_sums import Passes
from expost.table.rows import Rows, RowSource
from expost.table.streamed import PersonSource, StreamedSource

_CELLS = 64  # of noise within one scale of it
_FAR = 32.0  # scales beyond which noise counts as if it passed everything: e⁻³²
_UP = 1.0 + 1e-7  # rounding of beta functions and sums
_HARDLY_NOISE = 64.0  # ε times a unit at which noise is zero but for a chance of e⁻⁶⁴
_LESS = 1.5  # a test that does not fit into what a ledger holds is tried with so many times less
_LEAST = 1e-9  # and not below this
_TESTS = 8  # share half of γ alike: what rows drawn by chance leave open does not shrink as noise does
_FURTHER = 1.3  # a jump goes so many times further than where the rows themselves are tested, for the same reason


@dataclass
class Parting:
    """How rows are parted into those that are fitted and those held out.

    Attributes
    ----------
    part
        Which part of them is held out.
    words
        What the set is drawn with.
    unit
        What is held out: rows, or persons.
    rows
        k, how many rows each of them has.
    held
        The set, once it is drawn.
    """

    part: float
    words: WordSource
    unit: str = "row"
    rows: int = 1
    held: HeldOut | None = None

    def of(self, rows: Rows | RowSource) -> tuple[Rows, Rows]:
        """Part rows, in the order of the table; those of persons person after person."""
        return self._drawn(rows.n // self.rows).parted(rows)

    def before_reading(self, source: StreamedSource) -> tuple[StreamedSource, ...]:
        """Part a table that is read in pieces, if that is told before; otherwise return it as it is."""
        return self._drawn(source.persons).parted(source) if isinstance(source, PersonSource) else (source,)

    def _drawn(self, units: int) -> HeldOut:
        self.held = HeldOut(drawn(units, held_out(units, self.part, f"{self.unit}s"), self.words), self.rows)
        return self.held


def drawn(n: int, m: int, source: WordSource) -> npt.NDArray[np.bool_]:
    """Say of each of n units whether it is held out: all sets of m are as likely; private.

    Keys are drawn until no two are the same; then every order of them is as likely, and the first are held out.

    Examples
    --------
    >>> from expost.noise import SeededSource
    >>> drawn(6, 2, SeededSource(0)).tolist()
    [False, True, False, True, False, False]
    """
    held = np.zeros(n, dtype=bool)
    while True:
        order = np.argsort(keys := np.array(source.words(4 * n)).view(np.uint64))
        if np.all(np.diff(keys[order]) > 0):
            held[order[:m]] = True
            return held


def held_out(n: int, part: float, called: str = "rows") -> int:
    """Return how many of n are held out, or say that there are too few."""
    if n < 2:
        raise ValueError(f"to hold out {called} there have to be two at least. Nothing was spent")
    return min(max(round(part * n), 1), n - 1)


@dataclass(frozen=True)
class NoisyMean:
    """How the mean loss of a model on rows held out is released, and its law; settled before a row of them is read.

    Attributes
    ----------
    m
        How many rows are drawn independently; or persons, with theirs.
    lower, upper
        Between which the loss of one of them lies.
    counts
        Whether it is one of the two: the number of mistakes is released.
    epsilon
        What it costs for one row replaced.
    grid, error
        What means are rounded to, and how far the computed one may be off; the number of mistakes is exact.
    """

    m: int
    lower: float
    upper: float
    counts: bool
    epsilon: float
    grid: Grid
    error: float = 0.0

    @classmethod
    def of(cls, goal: TestedGoal, n: int, epsilon: float, error: float, unit: Unit = ROW) -> NoisyMean:
        """Settle it for a goal that is a mean over rows, of which there are n."""
        assert goal.each_row is not None
        m = n // unit.rows
        if goal.counts and m == n:
            return cls(m, *goal.each_row, True, epsilon, Grid(1.0 / m, 1))
        return cls(m, *goal.each_row, False, epsilon, Grid.of(goal.shortfall_sensitivity(n), error_bound=error), error)

    @property
    def scale(self) -> float:
        """The scale of the noise, in units of the grid."""
        return self.grid.units / self.epsilon

    def ask(self, mean: float, source: WordSource) -> int:
        """Return the noisy mean, in units of the grid."""
        exact = round(mean * self.m) if self.counts else math.floor(mean / self.grid.unit)
        return exact + int(discrete_laplace(self.epsilon, self.grid.units, 1, random_state=source)[0])

    def chance(self, noisy: int, mean: float) -> float:
        """Return P[noisy mean ≤ that] for rows whose loss has that mean: exactly, or a bound; it falls with the mean.

        Examples
        --------
        >>> fair = NoisyMean(1, 0.0, 1.0, True, math.log(3.0), Grid(1.0, 1))  # one row; P[Z = z] = ½·3^−|z|
        >>> round(fair.chance(0, 0.5), 6), round((0.75 + 0.25) / 2, 6)  # no mistake and Z ≤ 0, or one and Z ≤ −1
        (0.5, 0.5)
        """
        step = max(1, math.floor(self.scale / _CELLS))
        cells = np.arange(math.ceil(_FAR * self.scale / step))
        first, rate = 1 + cells * step, 1.0 / self.scale
        one_side = np.exp(-rate * first) * -math.expm1(-rate * step) / (1.0 + math.exp(-rate))
        passed = one_side @ (self._below(noisy - first, mean) + self._below(noisy + (cells + 1) * step, mean))
        around = math.tanh(0.5 * rate) * float(self._below(np.array([noisy]), mean)[0])
        return min(1.0, (float(passed) + around) * _UP + 2.0 * math.exp(-_FAR))

    def _below(self, units: Any, mean: float) -> FloatArray:
        """Return T_e at so many units: P[mean of losses ≤ that] without noise, or its bound."""
        if self.counts:
            k = np.clip(units, 0, self.m - 1).astype(np.float64)
            inside = betainc(self.m - k, k + 1.0, 1.0 - mean)
            return np.where(units < 0, 0.0, np.where(units >= self.m, 1.0, inside))
        width = self.upper - self.lower
        x = ((np.asarray(units, dtype=np.float64) + 1.0) * self.grid.unit + self.error - self.lower) / width * _UP
        e = min(1.0, (mean - self.lower) / width)
        if e <= 0.0:
            return np.where(x < 0.0, 0.0, 1.0)
        a = np.clip(x, 0.0, e)
        apart = xlogy(a, a / e) + (xlogy(1.0 - a, (1.0 - a) / (1.0 - e)) if e < 1.0 else np.where(a < 1.0, np.inf, 0.0))
        return np.where(x < 0.0, 0.0, np.where(x >= e, 1.0, np.exp(-self.m * np.maximum(apart, 0.0))))

    def left_to_chance(self, most: float, gamma: float) -> float:
        """Return how far below that the mean has to be to pass without any noise: what the drawing of rows leaves open.

        It follows from how many rows there are, what their losses lie between, and γ, and no ε narrows it.

        Examples
        --------
        >>> some, more = (NoisyMean(m, 0.0, 1.0, True, 1.0, Grid(1.0 / m, 1)) for m in (2_000, 8_000))
        >>> round(some.left_to_chance(0.2, 0.05), 3), round(more.left_to_chance(0.2, 0.05), 3)
        (0.015, 0.007)
        """
        sure = replace(self, epsilon=_HARDLY_NOISE * self.grid.units)
        unit = self.grid.unit
        passed = bisected(lambda x: sure.chance(math.floor(x / unit), most) <= gamma, self.lower, most, 40)
        return most - passed[0]

    def bound(self, noisy: int, gamma: float) -> float:
        """Return what the mean loss is at most, but for a chance of γ."""
        return bisected(lambda mean: self.chance(noisy, mean) > gamma, self.lower, self.upper, 40)[1]


@dataclass(frozen=True, repr=False)
class NewRowsPlan:
    """A search in levels whose models are tested on rows that they were not fitted to.

    Attributes
    ----------
    plan
        The search for models of the rows that are fitted.
    held
        The others; private.
    """

    plan: StagedPlan
    held: Rows | RowSource

    @classmethod
    def of(cls, plan: Any, held: Rows | RowSource) -> NewRowsPlan:
        """Settle it, or say that so few rows show nothing, whatever the model."""
        assert isinstance(plan, StagedPlan)
        unit, goal, gamma = plan.unit, plan.goal, gamma_of_test(plan, 1)
        m = held.n // unit.rows

        def shows(many: int) -> bool:
            rows = many * unit.rows
            error = goal.shortfall_error(rows, plan.geometry.columns, np.zeros(plan.geometry.columns))
            mean = NoisyMean.of(goal, rows, plan.worst_case, error, unit)
            return mean.chance(math.floor((goal.at_most - goal.room) / mean.grid.unit), goal.at_most) <= gamma

        if not shows(m):
            enough = m
            while not shows(enough) and enough < 1 << 40:
                enough = math.ceil(1.2 * enough) + 1
            raise TargetUnreachable(
                f"{m:,} {unit.noun}{' held out shows' if m == 1 else 's held out show'} no model to meet the goal on "
                f"new {unit.noun}s, whatever it is: with "
                f"max_epsilon = {down(unit.charge(plan.budget))} it takes about {enough:,}. Hold out more, or ask for "
                f"less. Nothing was spent."
            )
        return cls(plan, held)

    def __repr__(self) -> str:
        return f"NewRowsPlan(held_out={self.held.n})"

    @property
    def gaussian(self) -> bool:
        """Whether models book Gaussian curves."""
        return self.plan.gaussian

    @property
    def worst_case(self) -> float:
        """No outcome costs more."""
        return self.plan.worst_case

    def search(self, generator: Any, account: Account, source: WordSource) -> Release:
        """Search; the account counts models and tests apart."""
        if account.held_out != self.held.n:
            raise ValueError("the account does not count models and tests apart. Nothing was spent")
        held, usual = Passes.over(self.plan.loss, self.held), self.plan.running
        kind = NewRowsSearch if usual is StagedSearch else type("NewRows", (NewRowsSearch, usual), {})

        def running(*given: Any) -> StagedSearch:
            run: NewRowsSearch = kind(*given)
            run.held = held
            return run

        return self.plan.search(generator, account, source, running)


class NewRowsSearch(StagedSearch):
    """One run: a fixed ladder of levels, and one test of each model on rows held out.

    What a test has said decides whether the run goes on, and nothing else: see the theorem.
    """

    held: Passes
    left: float = 0.0  # how far below the goal the last test's mean would have had to be without any noise
    seen: float = 0.0  # how far below it was

    def _tests(self, schedule: Any) -> NoisyTest:
        return NoisyTest(self.account, self.source)

    def _look(self, level: float) -> Curve:
        """Return nothing: tests cost no more than models have."""
        return NOTHING

    def _next(self) -> float:
        """Return the next level of the ladder."""
        schedule = self.plan.schedule
        growth: float = max(schedule.growth, _FURTHER * schedule.jump) if self.stages == 1 else schedule.growth
        return self.paid * (growth - 1.0) if schedule.gathers else self.paid * growth

    def _stalled(self) -> bool:
        """Whether models have cost so much that another way is tried, where there is one; tests have no part in it."""
        return self.plan.then is not None and self._dear()

    def _margin(self, level: float) -> float:
        """Return nothing: what chance leaves open is in the looks."""
        return 0.0

    def _finer(self) -> bool:
        """Rows are not looked at more closely because of what tests said."""
        return False

    def _passes(self, model: Floats, level: float) -> bool:
        """Test a model on the rows held out, for what models have cost beyond the tests before."""
        goal, n, account = self.plan.goal, self.held.n, self.account
        error = goal.shortfall_error(n, model.size, model) + 2.0**-50 * abs(goal.at_most)
        epsilon = account.free_test
        while epsilon > _LEAST and not account.fits(NOTHING, account.settled_step(epsilon)):
            epsilon /= _LESS
        if epsilon <= _LEAST:
            return False
        law, gamma = (
            NoisyMean.of(goal, n, epsilon, error, account.unit),
            gamma_of_test(self.plan, self.tests.count + 1),
        )
        if law.chance(math.floor((goal.at_most - goal.room) / law.grid.unit), goal.at_most) > gamma:
            return False  # which a perfect model would not pass
        account.book("test", account.settled_step(epsilon))
        self.tests.count += 1
        noisy = law.ask(goal.shortfall(self.held, model) + goal.at_most, self.source)
        mean, passed = noisy * law.grid.unit, law.chance(noisy, goal.at_most) <= gamma
        bound = law.bound(noisy, gamma) - goal.at_most
        self.tests.shown = min(bound, 0.0) if passed else max(bound, 1e-12)
        self.left, self.seen = law.left_to_chance(goal.at_most, gamma), goal.at_most - mean
        # whether another level is worth taking: the rows held out stay the same, and what chance leaves open is to be
        # made up for on them
        self.shortfalls.append(Look(self.plan.precision(level), self.left - self.seen, law.scale * law.grid.unit))
        return bool(passed)

    def _details(self, theta: Floats | None) -> dict[str, Any]:
        """Say beside what the number of rows held out leaves to chance, and no price where that is what was missing."""
        found = super()._details(theta)
        if theta is None and self.left > 0.0:
            found["parameters"]["left_to_chance"] = self.left / self.plan.goal.at_most
            if 0.0 <= self.seen < self.left:
                del found["parameters"]["next_level"]
        return found

    def _price(self, level: float) -> float:
        """Return about what that level would cost beside all that was paid."""
        account, step = self.account, self.walk.cost(level)
        if not account.delta:
            return float(step.most)
        return float((account.curve + step).epsilon(account.delta) - account.curve.epsilon(account.delta))


def gamma_of_test(plan: StagedPlan, test: int) -> float:
    """Return the part of γ for a test, the first being 1: all of them add up to γ at most."""
    alike = plan.failure_probability / _TESTS if test <= _TESTS else 0.0
    return 0.5 * (plan.gamma(test) + alike)


def require_mean(goal: TestedGoal) -> None:
    """Refuse a goal that is no mean over rows, or whose cut-off is found on the rows that are fitted."""
    if goal.each_row is None:
        raise ValueError(
            f"{goal.name} cannot be promised about new rows yet: that is only there for the means of losses. State "
            f"ErrorRate(...), LogLoss(...) or MeanSquaredError(...) (--error-rate, --log-loss, --mean-squared-error)"
        )
