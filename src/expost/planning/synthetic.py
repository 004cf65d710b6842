"""Synthetic tables that a schema allows: what a table might look like that nobody has seen. Public through and through.

Numbers lie somewhere within their bounds, categories are of unequal sizes, columns go together because one hidden
factor moves them all, a few cells are missing. A score is a linear function of the encoded columns, most of which
hardly matter. Labels or targets follow the score with so much noise that the best linear model would reach a stated
part of what the goal allows, which the goal says (:meth:`~expost.goals.goal.TestedGoal.missed`). Targets fill their
bounds or a small part of them, and many are skewed.

Nothing here is known about the caller's rows, and nothing is claimed about them: tables differ widely on purpose, and
prices over many of them are a range, not a forecast.

What the search for a goal pays on them: the search itself, with seeded noise.

*Few rows stand for many.* A table has m different rows, each with two targets, which stand for n. Where noise is pure
and on the gradient, passes over rows cost what there are kinds of them (`expost.passes.engine`), and the search is the
very one that n rows would get. Elsewhere rows are repeated, fewer of them than are meant, and what was spent is scaled.

*Other numbers of rows.* A level of a chain (`expost.mechanisms.objective.chain`) is a number x, and noise, λ and the
accuracy of a test depend on x and on the distribution of the rows, not on how many there are; ε is x times a public
constant over n, but for the Jacobian's logarithm and the solver's share. So ε·n is nearly the same for every n. At a δ,
ρ of Gaussian noise at one level is in proportion to 1/n², and pure losses and Jacobians are to 1/n.

*The cap has a say.* A search weighs a level against what it may spend, turns to another way after a part of that, and
makes its last level fit. So tables are searched within the cap that a fit has. Those that nothing was released for are
searched again, nearly without one: that is about what a cap would have to allow, and never less than the one stated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, ndtr

from expost.account.account import Account
from expost.account.composition import ORDERS, Curve
from expost.exceptions import TargetUnreachable
from expost.goals import R2, ErrorRate, Goal
from expost.goals.goal import TestedGoal, as_tested, is_tested, root
from expost.mechanisms.objective.chain import ChainPlan
from expost.mechanisms.objective.perturbation import ObjectiveGenerator, ObjectivePerturbation
from expost.noise.source import SeededSource
from expost.numeric import one_thread
from expost.release.release import Release
from expost.search.request import Plan, Request
from expost.search.run import settle
from expost.table.bounds_encoding import Preparation
from expost.table.dates import from_days
from expost.table.encoding import Encoding
from expost.table.kinds import Categorical, Dated, Numeric
from expost.table.rows import ONE, Rows, declared

Floats = NDArray[np.float64]

#: What the best linear model misses, as a part of what the goal allows: from easy to nearly out of reach.
REACH = (0.3, 0.97)
# How tables differ: looked at on the panel's tables (`benchmarks/plan.py`), so that fits of real ones lie among them.
_FACTOR = (0.0, 0.95)  # correlation of a column with the hidden factor
_SLOPE = (0.4, 4.0)  # how widely numbers spread between their bounds: around somewhere, or at both ends
_EVEN = (0.05, 0.5)  # shape of the weights of columns: one alone matters, or a few
_MISSING = 0.02  # of the cells of a column that has a mark for them
_WIDE = 1000.0  # bounds this many times apart are of something skewed, money say
_SPREADS = (0.1, 0.6)  # standard deviation of a target scaled to [−1, 1]: bounds are often stated with much room
_TAIL = (0.1, 0.5)  # share of targets above what is expected of them, or below: few and far, or as many and as near
_ABOUT_RISK = {True: ErrorRate(0.3), False: R2(0.2)}  # what a goal about the risk is taken for: labels or not
_GRID = 200
_RARE = 0.2  # of the share at which a constant would do, the least that is drawn of a label that a goal is about
_TOLD = (0.8, 5.0)  # how widely the best model's log odds spread: from a hint to hardly a doubt
_FURTHER = (1.1, 1.3)  # of the share up to which a constant would do, the least that is drawn
_FARTHEST = 300.0  # where a score is cut, in its own units
_SURE = 60.0  # log odds of who knows the labels
_BOTH = np.array([1.0, -1.0])  # labels
_GOLDEN = (math.sqrt(5.0) - 1) / 2  # multiples of it fill an interval evenly, however many there are


def reach_of(k: int, tables: int, reach: tuple[float, float] = REACH) -> float:
    """Return the reach of table k: what is left to the goal shrinks from table to table by the same factor.

    People ask for about as much as can be had, so most tables are harder than the middle of the range.

    Examples
    --------
    >>> [round(reach_of(k, 3), 2) for k in range(3)]
    [0.59, 0.86, 0.95]
    """
    return reach_at((k + 0.5) / tables, reach)


def reach_at(place: float, reach: tuple[float, float] = REACH) -> float:
    """Return the reach at a place in [0, 1] between the easiest table and the hardest."""
    first, last = reach
    return float(1 - (1 - first) * ((1 - last) / (1 - first)) ** place)


def place_of(k: int) -> float:
    """Return where in a range table k stands: even few one after the other have narrow targets and wide ones.

    Examples
    --------
    >>> [round(place_of(k), 2) for k in range(4)]
    [0.5, 0.12, 0.74, 0.35]
    """
    return (0.5 + k * _GOLDEN) % 1.0


@dataclass(frozen=True, repr=False)
class Features:
    """Rows of a table before its target is drawn; public.

    Attributes
    ----------
    x
        Encoded rows in fixed point.
    score
        A linear function of them, of mean 0 and variance 1: what can be known of the target.
    declares
        What holds of every row (:class:`~expost.table.rows.Rows`).
    """

    x: NDArray[np.int32]
    score: Floats
    declares: dict[str, Any]


def draw_features(encoding: Encoding, n: int, rng: np.random.Generator) -> Features:
    """Draw rows that follow a schema, and a score."""
    schema = replace(encoding.schema, person=None, rows_per_person=None)  # rows as they are searched
    factor = rng.normal(size=n)
    table: dict[str, Any] = {}
    for name, kind in schema.kinds.items():
        share = rng.uniform(*_FACTOR)
        sign = rng.choice([-1.0, 1.0])
        normal = sign * share * factor + math.sqrt(1 - share**2) * rng.normal(size=n)
        table[name] = _column(kind, normal, rng)
    labels = schema.classes
    table[schema.target] = [labels[0] if labels is not None else (schema.target_bounds or (0.0,))[0]] * n
    rows = Encoding(schema).encode(table, on_invalid="clip")
    return Features(np.array(rows.x), _score(rows.x, _owners(encoding), factor, rng), declared(rows))


def _column(kind: Any, normal: Floats, rng: np.random.Generator) -> NDArray[Any]:
    """Return a column's cells, each a growing function of a normal variable."""
    n = len(normal)
    if isinstance(kind, Numeric):
        place = expit(rng.normal(0.0, 0.8) + _between(*_SLOPE, rng.random()) * normal)
        cells = _number(kind, place)
        if isinstance(kind, Dated):
            cells = np.array([from_days(float(cell), 1_000_000) for cell in cells], dtype=object)
    elif isinstance(kind, Categorical):
        sizes = rng.dirichlet(np.full(len(kind.categories), 0.7))
        code = np.searchsorted(np.cumsum(sizes)[:-1], ndtr(normal))
        cells = np.array(kind.categories, dtype=object)[code]
    else:
        cells = (ndtr(normal) < rng.uniform(0.1, 0.9)).astype(object)
    if getattr(kind, "marked", kind.missing == "indicator"):
        cells = cells.astype(object)
        cells[rng.random(n) < _MISSING] = None
    return cells


def _number(kind: Numeric, place: Floats) -> Floats:
    """Return numbers at places in [0, 1] between the bounds, on the scale on which they are likely spread evenly."""
    low, high = kind.bounds
    if kind.transform == "sqrt":
        return np.asarray((math.sqrt(low) + place * (math.sqrt(high) - math.sqrt(low))) ** 2)
    if kind.transform == "log1p" or skewed(kind):
        return np.asarray(np.expm1(math.log1p(low) + place * (math.log1p(high) - math.log1p(low))))
    if kind.transform == "log":
        return np.asarray(low * (high / low) ** place)
    return np.asarray(low + place * (high - low))


def skewed(kind: Numeric) -> bool:
    """Whether bounds are so far apart, above zero, that values are likely crowded near the lower one."""
    low, high = kind.bounds
    return low >= 0 and 1 + high >= _WIDE * (1 + low)


def draw_array(preparation: Preparation, n: int, rng: np.random.Generator) -> Features:
    """Draw rows of an array: numbers in [−1, 1], prepared as an estimator does when those bounds are stated."""
    columns = preparation.n_columns
    factor = rng.normal(size=n)
    shares = rng.uniform(*_FACTOR, size=columns) * rng.choice([-1.0, 1.0], size=columns)
    normal = factor[:, None] * shares + rng.normal(size=(n, columns)) * np.sqrt(1 - shares**2)
    place = expit(rng.normal(0.0, 0.8, size=columns) + _between(*_SLOPE, rng.random(columns)) * normal)
    x, none = 2 * place - 1, np.zeros(n)
    if preparation.target is None:
        rows = preparation.prepare_classification(x, none, (0.0, 1.0))
    else:
        rows = preparation.prepare_regression(x, none)
    return Features(np.array(rows.x), _score(rows.x, np.arange(rows.p), factor, rng), declared(rows))


def _score(x: NDArray[np.int32], owners: NDArray[np.intp], factor: Floats, rng: np.random.Generator) -> Floats:
    """Return a linear function of the rows in which a few columns of the table matter, and what moves them all."""
    centred = x / ONE
    centred = centred - centred.mean(axis=0)
    effects = rng.normal(size=centred.shape[1])
    weights = rng.gamma(_between(*_EVEN, rng.random()), size=int(owners.max()) + 1)
    total = np.zeros(len(x))
    for j, weight in enumerate(weights):
        part = centred[:, owners == j] @ effects[owners == j]
        spread = float(part.std())
        if spread > 0:
            total += weight / spread * part
    together, part = centred @ (factor @ centred), rng.random()
    if total.std() > 0 and together.std() > 0:
        total = math.sqrt(1.0 - part) * total / total.std() + math.sqrt(part) * together / together.std()
    spread = float(total.std())
    return np.asarray(total / spread if spread > 0 else rng.normal(size=len(x)))


def _owners(encoding: Encoding) -> NDArray[np.intp]:
    """Return which column of the table each encoded one belongs to; the constant is a column of its own."""
    size = encoding.blocks[0][0]
    rest = [size + j for j, (width, _) in enumerate(encoding.blocks[1:]) for _ in range(width)]
    return np.array([*range(size), *rest], dtype=np.intp)


def with_target(
    features: Features,
    goal: Goal,
    labels: bool,
    reach: float,
    n: int,
    rng: np.random.Generator,
    place: float = 0.5,
    best: TestedGoal | None = None,
    positives: float | None = None,
) -> tuple[Rows, Floats]:
    """Draw targets of n rows: the best linear model misses ``reach`` times what the goal, in scaled units, allows.

    If ``best`` is stated it just meets that instead, whatever the goal, which no constant meets. ``positives`` is the
    share of positive labels, if one is stated.

    Each row of the features stands for n/m. Their labels are drawn one by one and counted, and so are their targets,
    which scatter around the score: each is one of two, above and below what is expected, that differ from row to row.
    So nothing is easier to fit than it would be with n rows. ``place`` in [0, 1] says how much of their bounds targets
    fill, from little to all.

    Returns
    -------
    rows, counts
        Each kind of row once, and how many rows are of it.
    """
    if not is_tested(goal):
        goal = _ABOUT_RISK[labels]
    best, reach = (goal, reach) if best is None else (best, 1.0)
    m = len(features.score)
    many = np.full(m, n // m)
    many[: n % m] += 1
    if labels:
        positive = rng.binomial(many, told(features.score, goal, best, reach, positives, rng).chances)
        targets, counts = np.repeat([ONE, -ONE], m), np.concatenate([positive, many - positive])
    else:
        two, tail = _targets(features.score, goal, best, reach, place, rng)
        targets = np.trunc(np.clip(two * ONE, -ONE, ONE))
        far = rng.binomial(many, tail)
        counts = np.concatenate([far, many - far])
    kept = counts > 0
    x = np.concatenate([features.x, features.x])[kept]
    return Rows(x, targets[kept].astype(np.int32), **features.declares), counts[kept].astype(np.float64)


def _targets(
    score: Floats, goal: TestedGoal, best: TestedGoal, reach: float, place: float, rng: np.random.Generator
) -> tuple[Floats, float]:
    """Return each row's target further from what is expected, then those nearer to it, and the share of the further.

    The few that are far away are on the side of the further bound: money, counts and days are like that.
    """
    reach_of_score = float(np.quantile(np.abs(score), 0.99))
    most = min(_SPREADS[1], 1 / reach_of_score)  # targets lie within their bounds, so what is expected of them does
    near_bound, tail = rng.uniform(-1, 1), _between(*_TAIL, rng.random())
    # more often near a bound than in the middle
    near_bound = math.copysign(math.sqrt(abs(near_bound)), near_bound)
    side, odds = -math.copysign(1.0, near_bound), math.sqrt((1 - tail) / tail)
    wider = np.exp(side * (0.5 - tail) * score)  # what is skewed scatters more where it is larger
    away = np.abs(rng.normal(size=len(score))) * wider / math.sqrt(float((wider**2).mean()))
    scatter, weights = side * np.concatenate([away * odds, -away / odds]), np.repeat([tail, 1 - tail], len(score))
    weights /= len(score)

    def expected(spread: float, left: float) -> Floats:
        middle = near_bound * max(0.0, 1 - spread * reach_of_score)
        return np.tile(middle + spread * math.sqrt(1 - left) * score, 2)

    def missed(spread: float, left: float, constant: bool = False) -> float:
        """Return how far who knows the score, or the mean alone, misses what is then left to the goal."""
        known = expected(spread, left)
        y = np.clip(known + spread * math.sqrt(left) * scatter, -1, 1)
        if constant:
            return goal.missed(np.full(len(y), weights @ y), y, weights)
        return best.missed(known, y, weights) - (1 - reach) * best.missed(y, y, weights)

    spread, idle = min(_between(*_SPREADS, place), most), goal.idle_variance()
    if idle is None:
        narrow = _SPREADS[0] / 100
        idle = 0.0 if missed(narrow, 1.0, True) > 0 else root(lambda s: missed(s, 1.0, True), narrow, most) ** 2
    if idle > 0:
        least = math.sqrt(1.2 * idle)  # a constant would not do
        spread = _between(least, max(least, most), place)
    left = root(lambda part: missed(spread, part), 0.0, 1.0)
    return expected(spread, left) + spread * math.sqrt(left) * scatter, tail


def _between(low: float, high: float, place: Any) -> Any:
    """Return numbers between two, at places in [0, 1]; equal steps are equal factors."""
    return low * (high / low) ** place


def missed_by_constant(goal: TestedGoal, share: float) -> float:
    """Return how far who always states that share of positive labels misses a goal.

    Examples
    --------
    >>> round(missed_by_constant(ErrorRate(0.15), 0.25), 6), round(missed_by_constant(ErrorRate(0.15), 0.95), 6)
    (0.1, -0.1)
    """
    return goal.missed(np.full(2, logit(share)), _BOTH, np.array([share, 1.0 - share]))


def _share(goal: TestedGoal, beyond: Callable[[float, float], float], rng: np.random.Generator) -> float:
    """Return a share of positive labels that goes with a goal: no constant meets it, and labels can be told so well.

    What is asked for says something about the share: where a log loss of 0.145 is, labels that are as often the one as
    the other would have to be told apart almost without doubt. So how well they are told is drawn, from what is seen
    in tables, and the share is the one at which the best model then misses what it should, if there is one.
    ``beyond`` says how much more it misses, given a share and the noise on its score.
    """
    ends = 1e-9, 1.0 - 1e-9
    places = expit(np.linspace(logit(ends[0]), logit(ends[1]), _GRID + 1))
    peak = float(places[np.argmax([missed_by_constant(goal, float(share)) for share in places])])
    least, most = (root(lambda share: missed_by_constant(goal, share), end, peak, 60) for end in ends)
    noise, low, further = 1.0 / _between(*_TOLD, rng.random()), rng.random() < 0.5, _between(*_FURTHER, rng.random())
    if missed_by_constant(goal, ends[0]) > 0 or missed_by_constant(goal, ends[1]) > 0:  # a goal about one rare label
        rare = min(most, 1.0 - least)
        share = math.exp(rng.uniform(math.log(_RARE * rare), math.log(0.9 * rare)))
        return share if most < 1.0 - least else 1.0 - share
    if low:
        return root(lambda share: beyond(share, noise), min(further * least, peak), peak)
    return root(lambda share: beyond(share, noise), max(1.0 - further * (1.0 - most), peak), peak)


class Told(NamedTuple):
    """Each row's chance of the positive label; and by how much more who knows it misses the goal than was meant."""

    chances: Floats
    beyond: float


def told(
    score: Floats,
    goal: TestedGoal,
    best: TestedGoal,
    reach: float,
    positives: float | None,
    rng: np.random.Generator,
) -> Told:
    """Return each row's chance of the positive label, such that who knows the score misses just the part stated.

    ``positives`` is the share of positive labels; if none is stated, one is drawn that goes with the goal. Where many
    rows have one score, those of a category say, nobody may be able to tell labels so well.
    """
    grid = np.quantile(score, (np.arange(_GRID) + 0.5) / _GRID)  # enough to settle two numbers
    labels = np.repeat(_BOTH, _GRID)

    def shift(share: float, noise: float) -> float:
        return root(lambda t: float(expit((grid - t) / noise).mean()) - share, -_FARTHEST, _FARTHEST, 26)

    def beyond(share: float, noise: float) -> float:
        odds = (grid - shift(share, noise)) / noise
        weights = np.concatenate([expit(odds), expit(-odds)]) / _GRID
        known, sure = np.tile(odds, 2), _SURE * labels
        return best.missed(known, labels, weights) - (1 - reach) * best.missed(sure, labels, weights)

    share = _share(goal, beyond, rng) if positives is None else positives
    noise = math.exp(root(lambda log_noise: beyond(share, math.exp(log_noise)), math.log(0.02), math.log(30.0)))
    odds = (score - shift(share, noise)) / noise
    weights, each = np.concatenate([expit(odds), expit(-odds)]) / len(score), np.repeat(_BOTH, len(score))
    missed = best.missed(np.tile(odds, 2), each, weights) - (1 - reach) * best.missed(_SURE * each, each, weights)
    return Told(np.asarray(expit(odds)), missed)


_OUT_OF_REACH = 9600.0  # a level x: what noise on a mean gradient is 1/x of a table's unit
_ROWS_PER_COLUMN, _FEWEST_ROWS, _MOST_ROWS = 12, 600, 1500  # different rows of a table


@dataclass(frozen=True)
class Outcome:
    """What a search paid for one table; infinite if it did not reach the goal at any price, and at which λ."""

    epsilon: float
    regularization: float


@dataclass(frozen=True, repr=False)
class SyntheticTables:
    """Tables of a schema, or arrays, shared by goals so that prices can be compared; public.

    Attributes
    ----------
    labels, n
        Whether their targets are labels, and how many rows a table stands for.
    features
        Rows of each table, without their targets.
    seed
        Of targets and noise.
    reach
        What the best model misses in the first and in the last table, as a part of what the goal allows.
    expected
        A goal that the best model just meets, in every table, and the loosest that tables are searched for: then they
        are the same for all goals, and no constant meets any. In scaled units.
    positives
        The share of positive labels; None for shares that go with a goal.
    """

    labels: bool
    n: int
    features: Sequence[Features]
    seed: int
    reach: tuple[float, float] = REACH
    expected: tuple[TestedGoal, TestedGoal] | None = None
    positives: float | None = None

    @classmethod
    def of(cls, encoding: Encoding, n: int, tables: int, seed: int) -> SyntheticTables:
        """Draw tables of a schema."""
        m = min(n, max(_FEWEST_ROWS, min(_MOST_ROWS, _ROWS_PER_COLUMN * len(encoding.names))))
        drawn = [draw_features(encoding, m, np.random.default_rng([seed, k])) for k in range(tables)]
        return cls(encoding.schema.task == "classification", n, drawn, seed)

    @classmethod
    def arrays(cls, preparation: Preparation, n: int, tables: int, seed: int) -> SyntheticTables:
        """Draw arrays, all of whose rows are different."""
        drawn = [draw_array(preparation, n, np.random.default_rng([seed, k])) for k in range(tables)]
        return cls(preparation.target is None, n, drawn, seed)

    def rows(self, k: int, goal: Goal) -> tuple[Rows, Floats]:
        """Return table k with targets, and how many rows each of its rows stands for."""
        rng, (best, goal, reach) = np.random.default_rng([self.seed, k, 1]), self._meant(k, goal)
        return with_target(self.features[k], goal, self.labels, reach, self.n, rng, place_of(k), best, self.positives)

    def _meant(self, k: int, goal: Any) -> tuple[TestedGoal | None, Any, float]:
        """Return what the best model of table k is expected to meet, if that is stated, the goal, and the reach."""
        best, goal = (None, goal) if self.expected is None else self.expected
        return best, goal, reach_of(k, len(self.features), self.reach)

    def beyond(self, goal: TestedGoal) -> list[float]:
        """Return by how much more than was meant the best model misses in each table; of labels, for one number."""
        found = []
        for k, features in enumerate(self.features):
            rng, (best, asked, reach) = np.random.default_rng([self.seed, k, 1]), self._meant(k, goal)
            best, reach = (asked, reach) if best is None else (best, 1.0)
            found.append(told(features.score, asked, best, reach, self.positives, rng).beyond)
        return found

    def shares(self, goal: Goal) -> list[float]:
        """Return the share of positive labels in each table."""
        found = []
        for k in range(len(self.features)):
            rows, counts = self.rows(k, goal)
            found.append(float(counts[rows.y > 0].sum() / counts.sum()))
        return found

    def generator(self, k: int, request: Request) -> Any:
        """Return table k as the search takes it."""
        assert request.goal is not None
        rows, counts = self.rows(k, request.goal)
        mechanism = request.mechanism
        if is_tested(request.goal) and isinstance(mechanism, ObjectivePerturbation) and not mechanism.gaussian:
            return ObjectiveGenerator(mechanism, rows, request.problem, counts)
        often = counts.astype(np.int64)
        written = replace(rows, x=np.repeat(rows.x, often, axis=0), y=np.repeat(rows.y, often))
        return mechanism.on(written, request.problem)

    def account(self, request: Request, plan: Plan) -> Account:
        """Return an account of its own: a simulation is charged to nobody."""
        return Account(request.method.name, plan.worst_case, secure=False, unit=request.unit, delta=request.delta)

    def search(
        self, request: Request, n: int | None = None, look: float = 0.0, which: Sequence[int] | None = None
    ) -> list[Outcome]:
        """Search every table, or some, for the goal of a request, and say what n rows would have paid.

        ``look`` is paid beside: for looking whether the table fits.
        """
        n, which = self.n if n is None else n, range(len(self.features)) if which is None else which
        try:
            plan = settle(request)
        except TargetUnreachable:
            return [Outcome(math.inf, math.nan)] * len(which)
        found = []
        with one_thread():
            for k in which:
                account, source = self.account(request, plan), SeededSource([self.seed, k, 2])
                release = plan.search(self.generator(k, request), account, source)
                lam = float(release.parameters.get("regularization", math.nan))
                found.append(Outcome(self._paid(release, request.delta, n, look), lam))
        return found

    def _paid(self, release: Release, delta: float, n: int, look: float) -> float:
        """Return what a release would have cost with so many rows."""
        if release.status != "released":
            return math.inf
        if delta:
            return (rescaled(release.account_curve(), self.n / n) + Curve.pure(look)).epsilon(delta)
        return (release.epsilon if self.n == n else release.epsilon * self.n / n) + look


def rescaled(curve: Curve, times: float) -> Curve:
    """Return the curve for rows of that many times the weight, taken apart by its two highest orders.

    There pure losses no longer grow.
    """
    (low, high), (less, more) = ORDERS[-2:], curve.losses[-2:]
    rho = (more - less) / (high - low)
    return Curve.gaussian(rho * times**2) + Curve.ex_post(max(0.0, more - high * rho) * times)


def no_cap(request: Request) -> float:
    """Return an ε that is hardly a cap: what a level costs beyond which a goal is out of reach, wherever it starts.

    Without any, the search of a table that cannot meet its goal would go on to where λ is next to nothing, and
    minimising takes forever.
    """
    chain = uncapped_chain(request)
    last = chain.shot(_OUT_OF_REACH * chain.geometry.scale).epsilon
    return request.unit.charge(last * (1 + chain.schedule.test_part))


def uncapped_chain(request: Request, budget: float = math.inf) -> ChainPlan:
    """Return the chain of a request, whether or not its goal can be met within a budget."""
    goal, geometry = as_tested(request.goal), request.mechanism.geometry
    assert geometry is not None
    return ChainPlan.settled(
        goal, request.problem.loss, geometry, request.problem.n, request.failure_probability, budget
    )
