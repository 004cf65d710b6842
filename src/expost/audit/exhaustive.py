"""Exact cases: every draw that a mechanism might make on a tiny domain, with its probability in rational arithmetic.

The functions that `fit` calls are run once for every combination of draws. Their samplers are replaced by ones that
hand out draw after draw, the next in the next run, each with its probability as a whole number of 2⁻⁶⁴, rounded down;
so the law of what comes out is known with no statistics. Combinations that are very unlikely are not run. What that and
rounding leave out counts against whichever data set makes the bound smaller.

*Bound.* With q the probability of an outcome over what was run, and t the mass that was not, P[o] lies in [q, q + t],
so the loss of o is at least ln(q/(q′ + t′)). Losses of sums are compared as fractions themselves.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache, partial
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

import expost.noise.laplace as laplace_module
from expost.account.account import Account
from expost.account.composition import ORDERS, Clock, Curve, add_losses
from expost.account.events import Budget, Event, Kind
from expost.account.loss import PureLoss
from expost.audit.attack import Attack, Found, Setting, nearest
from expost.audit.counting import Whole, gaussian_epsilon
from expost.goals.labels_and_base_rate import BaseRatePath, ErrorRate, noisy_best
from expost.goals.measure import Predicted
from expost.noise import NoisePath, WordSource
from expost.noise.source import exponential_bits
from expost.search.above_threshold import AboveThreshold, Calibration
from expost.search.gradual import first_accepted
from expost.search.new_rows import NoisyMean

_BITS = 64  # of a probability, which is rounded down: what that leaves out counts as not run
#: What a mechanism lets out, and what it claims for that.
Said = tuple[Hashable, float]


class Unlikely(Exception):
    """A combination of draws is too unlikely to be run."""


def _chance(rate: Fraction, size: int, symmetric: bool) -> int:
    """Return the probability of a geometric variable, or a discrete Laplace one, at a size, in units of 2⁻⁶⁴."""
    # q^size between two numbers of 200 bits; (1 − q)/(1 + q) falls and 1 − q as well, so q is rounded up in them
    low = Fraction(exponential_bits(rate * size, 200), 1 << 200) if size else Fraction(1)
    q = Fraction(exponential_bits(rate, 200) + 1, 1 << 200)
    return math.floor(low * ((1 - q) / (1 + q) if symmetric else 1 - q) * (1 << _BITS))


class Draws:
    """All draws of a run, one combination after the other.

    Attributes
    ----------
    least
        Combinations that are less likely are not run.
    chosen
        Which of its values each draw of this run takes.
    weight, factors
        The probability of this combination is at least ``weight`` times 2⁻⁶⁴ to the power of ``factors``.
    """

    def __init__(self, least: float) -> None:
        self.least = least
        self.chosen: list[int] = []
        self._last: list[bool] = []
        self._chances: dict[tuple[Any, int, int, bool], int] = {}
        self._begin()

    def _begin(self) -> None:
        self._place, self.weight, self.factors, self._likely = 0, 1, 0, 1.0

    def pick(self, value_of: Callable[[int], tuple[int, int]], count: int = 1 << 30) -> int:
        """Return a draw: ``value_of`` gives values and their chances, in the order of these, the likeliest first."""
        if self._place == len(self.chosen):
            self.chosen.append(0)
            self._last.append(False)
        place = self.chosen[self._place]
        value, chance = value_of(place)
        if self._likely * chance * 2.0**-_BITS < self.least:
            self._last[self._place] = True  # so are all that come after it
            del self.chosen[self._place + 1 :], self._last[self._place + 1 :]
            raise Unlikely
        self._last[self._place] = place == count - 1
        self._place += 1
        self.weight, self.factors, self._likely = (
            self.weight * chance,
            self.factors + 1,
            self._likely * chance * 2.0**-_BITS,
        )
        return value

    def forward(self) -> bool:
        """Go to the next combination; whether there is one."""
        self._begin()
        while self.chosen and self._last[-1]:
            self.chosen.pop()
            self._last.pop()
        if self.chosen:
            self.chosen[-1] += 1
        return bool(self.chosen)

    def _draw(self, table: Any, row: int, symmetric: bool) -> int:
        def value_of(place: int) -> tuple[int, int]:
            size = (place + 1) // 2 if symmetric else place
            key = table, row, size, symmetric
            if key not in self._chances:
                self._chances[key] = _chance(table.rates[row], size, symmetric)
            return (-size if symmetric and not place % 2 else size), self._chances[key]

        return self.pick(value_of)

    def laplace(self, table: Any, rows: NDArray[np.intp] | None, size: int, source: WordSource) -> NDArray[np.int64]:
        """Draw discrete Laplace variables."""
        return np.array([self._draw(table, row, True) for row in _rows(rows, size)], dtype=np.int64)

    def geometric(self, table: Any, rows: NDArray[np.intp] | None, size: int, source: WordSource) -> NDArray[np.int64]:
        """Draw geometric variables."""
        return np.array([self._draw(table, row, False) for row in _rows(rows, size)], dtype=np.int64)

    def coins(self, words: Any, thresholds: Any, bits_of: Any, source: WordSource) -> NDArray[np.bool_]:
        """Flip coins of known digits."""
        heads = np.zeros(words.shape, dtype=bool)
        for index in np.ndindex(*words.shape):
            p = bits_of(index)(_BITS)
            sides = sorted([(1, p), (0, (1 << _BITS) - p - 1)], key=lambda side: -side[1])
            heads[index] = bool(self.pick(sides.__getitem__, 2))
        return heads


def _rows(rows: NDArray[np.intp] | None, size: int) -> list[Any]:
    return [0] * size if rows is None else rows.tolist()


class _Silent:
    """Where words come from that nobody looks at."""

    secure = False

    def words(self, count: int) -> NDArray[np.uint16]:
        """Return zeros."""
        return np.zeros(count, dtype=np.uint16)


@contextmanager
def _drawing(draws: Draws) -> Iterator[None]:
    names = {"laplace_draws": draws.laplace, "_geometric": draws.geometric, "below": draws.coins}
    kept = {name: getattr(laplace_module, name) for name in names}
    try:
        for name, new in names.items():
            setattr(laplace_module, name, new)
        yield
    finally:
        for name, old in kept.items():
            setattr(laplace_module, name, old)


def law_of(run: Callable[[WordSource], Said], least: float = 1e-9) -> tuple[dict[Said, Fraction], Fraction]:
    """Return the probability of everything that a mechanism lets out, rounded down, and all that this leaves out.

    Examples
    --------
    >>> from expost.noise import discrete_laplace
    >>> law, missed = law_of(lambda source: (int(discrete_laplace(1.0, 1, 1, random_state=source)[0]) > 0, 1.0))
    >>> round(float(law[True, 1.0]), 6), round(math.exp(-1) / (1 + math.exp(-1)), 6), float(missed) < 1e-8
    (0.268941, 0.268941, True)
    """
    draws, source, weights = Draws(least), _Silent(), defaultdict[tuple[Said, int], int](int)
    with _drawing(draws):
        going = True
        while going:
            with suppress(Unlikely):
                said = run(source)
                weights[said, draws.factors] += draws.weight
            going = draws.forward()
    found = defaultdict[Said, Fraction](Fraction)
    for (said, factors), weight in weights.items():
        found[said] += Fraction(weight, 1 << (_BITS * factors))
    return dict(found), 1 - sum(found.values(), Fraction(0))


def exact(runs: Callable[[int, WordSource], Said], least: float = 1e-9) -> Found:
    """Return the outcome that comes nearest to its claim, or furthest beyond it."""
    return _nearest([law_of(partial(runs, side), least) for side in (0, 1)])


def _nearest(laws: list[tuple[dict[Said, Fraction], Fraction]]) -> Found:
    return nearest(
        Found(claim, max(0.0, _log(chance / (there.get((outcome, claim), Fraction(0)) + missed))))
        for (here, _), (there, missed) in (laws, laws[::-1])
        for (outcome, claim), chance in here.items()
    )


def _log(ratio: Fraction) -> float:
    return math.log(ratio.numerator) - math.log(ratio.denominator) if ratio > 0 else -math.inf


class Marked(Draws):
    """Draws whose coins are all flipped, and whose noise is a mark instead, by which it is found again in a sum."""

    def forward(self) -> bool:
        """Go to the next combination of coins."""
        self.rates: list[Fraction] = []
        return super().forward()

    def laplace(self, table: Any, rows: NDArray[np.intp] | None, size: int, source: WordSource) -> NDArray[np.int64]:
        """Return marks: powers of two beyond all values."""
        first = len(self.rates)
        self.rates += [table.rates[row] for row in _rows(rows, size)]
        return np.array([1 << (_MARK + place) for place in range(first, len(self.rates))], dtype=np.int64)

    def noise_in(self, value: int) -> tuple[int, tuple[Fraction, ...]]:
        """Return what a value was without noise, and the rates of the noise that is in it."""
        marks, plain = divmod(value, 1 << _MARK)
        return plain, tuple(rate for place, rate in enumerate(self.rates) if marks >> place & 1)


_MARK, _REACH = 8, 60


@lru_cache(maxsize=64)
def _sum_law(rates: tuple[Fraction, ...]) -> dict[int, Fraction]:
    """Return the law of a sum of independent discrete Laplace variables within reach, rounded down."""
    law = {0: Fraction(1)}
    for rate in rates:
        sizes = [Fraction(_chance(rate, size, True), 1 << _BITS) for size in range(_REACH + 1)]
        law = {
            k: sum((part * sizes[abs(k - m)] for m, part in law.items() if abs(k - m) <= _REACH), Fraction(0))
            for k in range(-_REACH, _REACH + 1)
        }
        law = {k: Fraction(math.floor(part * (1 << _BITS)), 1 << _BITS) for k, part in law.items()}
    return law


def three_coordinates(_: Setting) -> Found:
    """Attack the first level of a path of three integers that all move: their jumps must not depend on each other.

    Values are private integers plus draws, so all combinations of coins are run with marks in the place of draws, and
    the law of the values is the mixture of products of sums that the marks say.
    """
    levels, around = (1.5, 7.5), range(-2, 4)
    laws: list[dict[tuple[int, ...], Fraction]] = [{}, {}]
    missed = []
    for side, law in enumerate(laws):
        draws, going = Marked(0.0), True
        draws.rates = []
        with _drawing(draws):
            while going:
                path = NoisePath(np.array([side] * 3), 3, levels, random_state=_Silent())
                parts = [draws.noise_in(int(value)) for value in next(iter(path)).values]
                chance = Fraction(draws.weight, 1 << (_BITS * draws.factors))
                sums_of = [(plain, _sum_law(rates)) for plain, rates in parts]
                for outcome in product(around, repeat=3):
                    each = (law_of_sum[x - plain] for x, (plain, law_of_sum) in zip(outcome, sums_of, strict=True))
                    law[outcome] = law.get(outcome, Fraction(0)) + chance * math.prod(each)
                going = draws.forward()
        missed.append(Fraction(1, 1 << 30))  # rounding, and what lies beyond reach: e^(−30) of a draw at most
    return nearest(
        Found(levels[0], max(0.0, _log(chance / (laws[1 - side][outcome] + missed[1 - side]))))
        for side in (0, 1)
        for outcome, chance in laws[side].items()
    )


def three_levels(_: Setting) -> Found:
    """Attack a path of three levels, gone along as far as its values say: each outcome costs its last."""
    levels = 1.0, 2.0, 4.0

    def run(side: int, source: WordSource) -> Said:
        seen = []
        for level in NoisePath(np.array([side]), 1, levels, random_state=source):
            seen.append(int(level.values[0]))
            if seen[-1] % 2:
                break
        return tuple(seen), levels[len(seen) - 1]

    return exact(run, 1e-6)


class _Certified:
    """A rule that reads nothing but what was revealed: it stops where values are even, and later where they are not."""

    name, secure = "certified", True
    epsilon_stop = epsilon_never = epsilon_worst_case = 0.0

    def accepts(self, hypothesis: Any) -> bool:
        """Say whether to stop, which costs nothing."""
        return int(hypothesis[0]) % 2 == 0


def certified(_: Setting) -> Found:
    """Attack a search that a certificate stops: a release costs its level, and a refusal the last one."""
    levels = 1.0, 2.0, 4.0

    def run(side: int, source: WordSource) -> Said:
        path = NoisePath(np.array([side]), 1, levels, random_state=source)
        account = Account("certified", worst_case=levels[-1], secure=False)
        release = first_accepted(path, _Certified(), None, account)
        return (release.status, release.level, repr(release.hypothesis)), release.epsilon

    return exact(run, 1e-5)


def _noise(epsilon: float, source: WordSource) -> int:
    return int(laplace_module.discrete_laplace(epsilon, 1, 1, random_state=source)[0])


def composed(_: Setting) -> Found:
    """Attack two numbers together, the second at an ε that the first has chosen: an account adds up what they cost."""

    def run(side: int, source: WordSource) -> Said:
        account = Account("two numbers", worst_case=10.0, secure=False)
        account.book("test", Curve.ex_post(1.0))
        first = side + _noise(1.0, source)
        epsilon = 2.0 if first > 0 else 0.5
        account.book("generation", Curve.ex_post(epsilon))
        second = side + _noise(epsilon, source)
        return (first, second), account.total

    return exact(run, 1e-6)


_REVEALED = 1.0, 2.5


def ledger(_: Setting) -> Found:
    """Attack all that a ledger lets be seen: three searches, each begun if its worst case has room.

    The first two run side by side: both hold their worst case before one of them ends. What is charged in the end is
    the claim, and must not exceed the cap in any case.
    """
    cap = PureLoss(5.5)

    def noted(budget: Budget, entry: int, kind: Kind, loss: float) -> Budget:
        event = Event(str(entry), kind, PureLoss(loss), "2026-01-01", "audit")
        return replace(budget, events=(*budget.events, event))

    def run(side: int, source: WordSource) -> Said:
        budget, seen = Budget("rows", "one row replaced", cap, "2026-01-01", "audit"), list[Any]()
        for together in ((0, 1), (2,)):
            begun = []
            for entry in together:
                if budget.admits(PureLoss(_REVEALED[-1])):
                    budget = noted(budget, entry, "reserved", _REVEALED[-1])
                    begun.append(entry)
                seen.append(str(budget.remaining))
            for entry in begun:  # a bit for little, and another for more where that says no
                paid, answer = _REVEALED[0], side + _noise(_REVEALED[0], source) > 0
                if not answer:
                    paid, answer = _REVEALED[1], side + _noise(_REVEALED[1] - _REVEALED[0], source) > 0
                budget = noted(budget, entry, "settled", paid)
                seen.append((paid, answer))
        total = budget.total.epsilon
        return (tuple(seen), total > cap.epsilon), total

    found = exact(run, 3e-6)
    return found if found.claimed <= cap.epsilon else found._replace(differs="more was charged than the cap")


def above_threshold(_: Setting) -> Found:
    """Attack above threshold with one-sided noise, over patterns of values."""
    calibration = Calibration("tight", "exponential", 8.0, 1.0, 1.5, 1.0)

    def run(values: Any, side: int, source: WordSource) -> Said:
        rule = AboveThreshold(Whole(), calibration, 2, random_state=source)
        stopped = next((k for k in (0, 1) if rule.accepts(values[side][k])), 2)
        return stopped, calibration.epsilon if stopped < 2 else calibration.epsilon_never

    patterns = ((5, 5), (6, 6)), ((5, 6), (6, 5)), ((8, 6), (9, 5))
    return nearest(exact(partial(run, values), 1e-6) for values in patterns)


def cut_off(_: Setting) -> Found:
    """Attack the choice among three scores, of which one falls and the others rise."""
    scores = [0, 1, 0], [1, 0, 1]
    return exact(lambda side, source: (noisy_best(scores[side], 2.0, 1, source), 2.0), 1e-6)


def base_rate(_: Setting) -> Found:
    """Attack the base rate of ten rows as searches release it, stopped by what it says and by the budget."""

    def run(side: int, source: WordSource) -> Said:
        y = np.where(np.arange(10) < 5 + side, 1.0, -1.0)
        judge = Predicted(np.zeros(10), y, np.full(10, 0.1), 10)
        account = Account("", worst_case=60.0, secure=False)
        found = BaseRatePath(judge, account, source, 0.05).first(lambda base, more: base.rate >= 0.6)
        return (found.rate if found else None, account.probe), account.probe

    return exact(run, 1e-5)


def _held_out(rows: tuple[int, int], held: int, source: WordSource) -> Said:
    """Release a model of one of two rows and, if that is small, a test of the other, which was held out."""
    account = Account("new rows", worst_case=10.0, secure=False, held_out=1)
    account.book("generation", Curve.ex_post(1.0))
    model = rows[1 - held] + _noise(1.0, source)
    if model > 1:
        account.book("generation", Curve.ex_post(0.5))
        return (model, rows[1 - held] + _noise(0.5, source)), account.total
    return (model, _tested(account).ask(rows[held], source)), account.total


def _tested(account: Account) -> NoisyMean:
    """Book a test of one row for what is free, and return how it is released."""
    mean = NoisyMean.of(ErrorRate(0.5), 1, account.free_test, 0.0)
    account.book("test", account.settled_step(mean.epsilon))
    return mean


def _asked(mean: NoisyMean, row: int, source: WordSource) -> Said:
    return mean.ask(row, source), 0.0


def new_rows(_: Setting) -> Found:
    """Attack two rows (or persons) one of which is held out, nobody knows which: the mixture of both draws, as seen.

    An outcome speaks for a row that the model was fitted to as well as for one that it was tested on.
    """
    laws = []
    for rows in ((1, 0), (0, 0)):
        drawn = [law_of(partial(_held_out, rows, held), 1e-7) for held in (0, 1)]
        both = {said: sum((law.get(said, Fraction(0)) for law, _ in drawn), Fraction(0)) / 2
                for said in {**drawn[0][0], **drawn[1][0]}}  # fmt: skip
        laws.append((both, (drawn[0][1] + drawn[1][1]) / 2))
    return _nearest(laws)


_AT_DELTA = 0.05


def new_rows_at_delta(_: Setting) -> Found:
    """Attack the same at a δ: Gaussian noise on the model, in cells of known probability, and a test without cost.

    The bound is the probability of all outcomes whose loss is above what the account says, and the claim is δ.
    """
    found = Found(_AT_DELTA, 0.0, delta=_AT_DELTA)
    edges = np.concatenate([[-np.inf], np.arange(-8.0, 12.0, 0.01), [np.inf]])
    for rho, clock in product((0.02, 0.5, 2.0), (False, True)):
        models = [np.diff(stats.norm.cdf(edges - row * math.sqrt(2.0 * rho))) for row in (0, 1)]
        account = Account("new rows", 50.0, False, delta=_AT_DELTA, held_out=1)
        account.clock = Clock.of([rho * (1.0 + 1e-9)]) if clock else None
        account.book("generation", Curve.gaussian(rho))
        mean = _tested(account)
        drawn = [law_of(partial(_asked, mean, row), 1e-9) for row in (0, 1)]
        missed = float(max(left for _, left in drawn)) + 1e-12
        said = sorted({*drawn[0][0], *drawn[1][0]})
        tests = [np.array([float(law.get(each, 0)) for each in said]) for law, _ in drawn]
        for one, two, other in product((0, 1), repeat=3):  # what is replaced by what, beside what
            here, there = (0.5 * (np.outer(models[row], tests[other]) + np.outer(models[other], tests[row]))
                           for row in (one, two))  # fmt: skip
            with np.errstate(divide="ignore"):
                loss = np.log(here) - np.log(there + missed)
            bound = float(here[loss > account.total].sum())
            found = Found(_AT_DELTA, bound, delta=_AT_DELTA) if bound > found.bound else found
    return found


def sums(_: Setting) -> Found:
    """Compare sums of many losses, as accounts and curves make them, with the fractions they stand for."""
    found, rng = Found(1.0, 0.0), np.random.default_rng(0)
    for count in (2, 10, 1000):
        losses = [float(loss) for loss in 10.0 ** rng.uniform(-12, 0, count)]
        true = sum(map(Fraction, losses), Fraction(0))
        account = Account("", worst_case=1e9, secure=False)
        for loss in losses:
            account.book("test", Curve.ex_post(loss))
        curve = Curve.total([Curve.ex_post(loss) for loss in losses])
        for stated in (add_losses(*losses), account.total, curve.most, curve.losses[0]):
            if Fraction(stated) < true:
                return Found(stated, float(true), "a sum of losses is rounded down")
            found = Found(stated, min(float(true), stated))
    return found


def gaussian_curve(_: Setting) -> Found:
    """Compare the curve of Gaussian noise with Rényi divergences of the discrete law, at every order.

    The sums over the law are to its own tail beyond 40 deviations, where nothing is left. What a curve says at a δ is
    above the ε that the law has there, which is computed as well: of that a conversion from few orders is further off.
    """
    sigma, moved, delta = 3.0, 3, 0.01
    curve = Curve.gaussian((moved / sigma) ** 2 / 2)
    k = np.arange(-60 * moved, 60 * moved + 1, dtype=np.float64)
    here, there = (-((k - side * moved) ** 2) / (2 * sigma**2) for side in (0, 1))
    whole = float(np.logaddexp.reduce(here))
    stated, law = curve.usual_epsilon(delta), gaussian_epsilon(sigma, moved, delta)
    if law > stated:
        return Found(stated, law, delta=delta)
    return nearest(
        Found(loss, float(np.logaddexp.reduce(order * here + (1.0 - order) * there) - whole) / (order - 1.0))
        for order, loss in zip(ORDERS, curve.losses, strict=True)
        if 1.0 < order < 40.0
    )


def filters(_: Setting) -> Found:
    """Book steps on an account as long as it lets them: what it took is, as fractions, within its budget."""
    rng = np.random.default_rng(1)

    def one() -> Found:
        budget = float(rng.uniform(0.1, 2.0))
        account, true = Account("", worst_case=budget, secure=False), Fraction(0)
        for loss in rng.uniform(0, 0.3, 100).tolist():
            if account.fits(Curve.ex_post(loss)):
                account.book("test", Curve.ex_post(loss))
                true += Fraction(loss)
        return Found(budget, float(true), "an account took more than its budget" if true > Fraction(budget) else "")

    return nearest(one() for _ in range(50))


ATTACKS = (
    Attack("exact-path", "three integers on a path of two levels", "exact", three_coordinates),
    Attack("exact-prefixes", "a path of three levels, stopped by its values", "exact", three_levels),
    Attack("exact-certified", "a search that a certificate stops", "exact", certified),
    Attack("exact-composition", "two numbers, the second as the first says", "exact", composed),
    Attack("exact-ledger", "three searches on one ledger, two at once", "exact", ledger),
    Attack("exact-above-threshold", "two tests, one-sided noise", "exact", above_threshold),
    Attack("exact-noisy-best", "the choice among three scores", "exact", cut_off),
    Attack("exact-base-rate", "the base rate of ten rows", "exact", base_rate),
    Attack("exact-new-rows", "one of two rows held out, in secret", "exact", new_rows),
    Attack("exact-new-rows-delta", "the same at delta = 0.05", "exact", new_rows_at_delta, tight=False),
    Attack("exact-sums", "sums of 1000 losses: accounts, curves", "exact", sums),
    Attack("gaussian-curve", "the curve of Gaussian noise, order by order", "exact", gaussian_curve),
    Attack("exact-filter", "what an account lets through", "exact", filters),
)
