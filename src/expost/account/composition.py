"""Ex-post losses add (theory A1), also when later runs were chosen after seeing earlier ones.

*Ex-post loss*: Loss(o) = max over neighbours D, D′ of log Pr[A(D) = o]/Pr[A(D′) = o]. A release reports a number 𝓔(o)
≥ Loss(o). If 𝓔(o) ≤ ε for every outcome o, refusals included, the search is ε-private in the ordinary sense; that ε is
``epsilon_worst_case``.

*Theorem*: losses of successive runs on the same rows add. *Proof.* The probability (or density) of two outcomes is that
of the first times that of the second given the first. Given the first outcome the second run is settled, however it was
chosen, so its log ratio between neighbours is at most 𝓔₂(o₂); the ratios multiply, and their logarithms add. ∎

*With a δ*, settled before each run given what came before: P[ℓ_t > 𝓔_t(o)] ≤ δ_t for every pair of neighbours, so
P[Σℓ_t > Σ𝓔_t(o)] ≤ Σδ_t (a union bound). δ's add and are never ex post. Rényi curves add as well, and their sum may be
stated at one δ (:class:`Curve`), or by a :class:`Clock`. For a person with k rows losses are k times as large
(:class:`Unit`).

*What is made of a release.* Let a public rule, with coins of its own, make z of o: K(z|o). ℓ is the loss of what is
looked at between two neighbours, E′ a mean on D′.
*Theorem (pure).* If z shows ε(o), its loss is at most that. If not, it is at most ln E′[e^{ε(o)} | z], and so at most
the largest ε(o) of the outcomes that z can come from. The ε(o) of the one that it did come from is no bound.
*Proof.* P(z) = Σ K(z|o)P(o) ≤ Σ K(z|o)e^{ε(o)}P′(o) = P′(z)·E′[e^{ε(o)} | z]. If z shows ε(o), all e^{ε(o)} in the sum
are one number. Where P(o) = e^{ε(o)}P′(o) for all of them there is equality, and what is cheap is below the mean. ∎
*Theorem (usual sense).* If P[S] ≤ E′[e^{ε(o)}; S] + δ for every set S of outcomes, then the same holds of sets of z's,
if z shows ε(o) or with the largest ε(o) in its place. *Proof.* With k(o) ≤ 1 the chance that z is in the set, P[z ∈ S]
− E′[e^{ε(o)}; z ∈ S] = Σ k(P − e^{ε(o)}P′) ≤ Σ (P − e^{ε(o)}P′)₊, which is what the set of all o with P > e^{ε(o)}P′
has left: at most δ. ∎
*Theorem (strict sense).* If P[ℓ(o) > ε(o)] ≤ δ and z shows ε(o), P[ℓ(z) > ε(o) + t] ≤ δ/(1 − e^{−t}) for t > 0; with
the largest ε(o) likewise. At t = 0 all may be lost: a part δ of outcomes that D′ never has, mixed into others whose
loss is ε exactly, takes them all beyond it. *Proof.* P[S] ≤ P[S, ℓ ≤ ε] + δ ≤ E′[e^{ε(o)}; S] + δ, so the usual sense
holds of z. On B = {ℓ(z) > ε + t} E′[e^ε; B] ≤ e^{−t}P[B], hence P[B] ≤ e^{−t}P[B] + δ. ∎ What :class:`Curve` and
:class:`Clock` state is more than that, and stays true of whatever shows the curve, or the sums, that it follows from.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from expost import validation
from expost.numeric import FloatArray, bisected

if TYPE_CHECKING:
    from expost.release.release import Release

#: Neighbours where each row stands for itself.
NEIGHBOURS = "one row replaced by any other row; the number of rows is public"


def add_losses(*losses: float) -> float:
    """Return a float that is not below the exact sum of the losses.

    Examples
    --------
    >>> add_losses(0.1, 0.2) >= 0.1 + 0.2
    True
    >>> add_losses(1.0, 0.0)
    1.0
    """
    total = math.fsum(losses)
    if math.isinf(total) or math.fsum((*losses, -total)) <= 0:  # fsum is correctly rounded: its sign is exact
        return total
    return math.nextafter(total, math.inf)


@dataclass(frozen=True)
class Composition:
    """The joint cost of several releases about the same rows.

    Attributes
    ----------
    epsilon, delta
        What was lost in all, ex post, and the δ that it is stated at.
    epsilon_worst_case
        What all outcomes together could have cost at most, at that δ; infinite where that was not settled at it.
    count
        How many releases.
    epsilon_usual
        ε in the usual, less strict sense of (ε, δ), where curves were added up; ``epsilon`` elsewhere.
    """

    epsilon: float
    epsilon_worst_case: float
    count: int
    delta: float = 0.0
    epsilon_usual: float = math.nan

    def __post_init__(self) -> None:
        if math.isnan(self.epsilon_usual):
            object.__setattr__(self, "epsilon_usual", self.epsilon)

    @property
    def risk_factor(self) -> float:
        """The factor e^ε by which any observer's odds can have moved; at a δ, but for it, those of one row's value
        against one other have grown.
        """
        return exp(self.epsilon)


def compose(releases: Iterable[Release], *, delta: float | None = None) -> Composition:
    """Return what a sequence of releases has cost together, refusals included.

    A release that goes on from another of them (:attr:`~expost.Release.continues`) costs what it adds; those that go
    round in a circle, each going on from the next, cost all of it.

    Parameters
    ----------
    releases
        About the same rows; later ones may have been chosen by earlier ones.
    delta
        By default losses add and so do δ's. A δ here instead adds the releases' Rényi curves and states the sum at
        it, which is less where several have one; it must have been settled before the first of them.

    Examples
    --------
    >>> compose([]).epsilon
    0.0
    """
    listed = list(releases)
    if len({release.neighbours for release in listed}) > 1:
        raise ValueError(
            "releases about different neighbours do not add up: a loss for one row is not one for a person"
        )
    known = {release.id: release for release in listed}

    def begun(release: Release) -> bool:
        """Whether what it goes on from, and so forth, ends somewhere: in a release that is counted in full."""
        passed = set()
        while (base := known.get(release.continues or "")) is not None and base.id not in passed:
            passed.add(base.id)
            release = base
        return base is None

    def beside(release: Release) -> float:
        """Return what a release adds to the one it continues, if what it says of that is enough; or all of it."""
        base = known.get(release.continues or "")
        if base is None or not begun(release):
            return release.epsilon
        enough = add_losses(base.epsilon, release.epsilon_increment) >= release.epsilon
        return release.epsilon_increment if enough else release.epsilon

    worst = add_losses(*(release.epsilon_worst_case for release in listed))
    deltas = add_losses(*(release.delta for release in listed))
    if delta is None:
        together = add_losses(*map(beside, listed))
        return Composition(together, worst, len(listed), deltas)
    # a release that continues another is pure: it has no curve of its own
    curves = (Curve.ex_post(beside(release)) if release.delta == 0.0 else release.account_curve() for release in listed)
    joint = sum(curves, NOTHING)
    whole = worst if deltas <= delta else math.inf
    return Composition(joint.epsilon(delta), whole, len(listed), delta, joint.usual_epsilon(delta))


def exp(epsilon: float) -> float:
    """Return e^ε, infinite where floats end."""
    try:
        return math.exp(epsilon)
    except OverflowError:
        return math.inf


_ROUNDING = 2.0**-49  # three parts are multiplied and added, each result rounded up: less than four units of 2⁻⁵²


@dataclass(frozen=True)
class Unit:
    """What neighbours differ in; public.

    *Neighbours*, for persons: two tables of m persons each in which one person, with all of their rows, is replaced
    by another with any rows, at least one. m is public; how many rows there are, and whose, is not.

    *What is computed.* Every person fills exactly k slots: the first k of their rows in the order of the table,
    from the first again if they have fewer. Which rows fill a person's slots depends on that person's rows alone.
    So the N = m·k slots are a table whose size is public, and neighbours differ in exactly k of its rows. In which
    order persons come is of no consequence: sensitivities and error bounds hold for a collection of rows, in
    whatever order it is summed up.

    *Theorem (group privacy, ex post).* If a search on N rows reports an outcome's loss 𝓔(o), for one row replaced,
    then k·𝓔(o) bounds its loss for one person replaced; likewise the worst case. *Proof.* Replace the k slots one
    after the other: N rows each time, the last table being the neighbour. From each table to the next the log ratio
    of the probabilities of o is at most 𝓔(o), because that bound depends on o alone and holds for every pair of
    tables of N rows. The k log ratios add. ∎ It matters that 𝓔 is a function of the outcome: a bound that was a
    function of the table as well would be another number at each of the k steps. What is rounded is rounded upwards
    here.

    *What it costs.* A person has the weight 1/m, which is what one row in a table of m rows has: losses in
    proportion to 1/N, times k, are in proportion to 1/m, whatever k is. Cutting off at k without filling up would
    leave n ≤ mk rows, and a person of weight k/n ≥ 1/m.

    Parameters
    ----------
    rows
        k: how many rows of the table that is searched one of them fills.
    persons
        m: how many there are; None where each row stands for itself.
    column
        The column that says whose a row is.

    Examples
    --------
    >>> patients = Unit(rows=5, persons=4000, column="patient_id")
    >>> patients.charge(0.1) >= 0.5
    True
    >>> patients.worst_case(patients.share(2.0)) <= 2.0
    True
    >>> patients.count(20_000), ROW.count(20_000)
    ('4,000 persons', 'n = 20000')
    """

    rows: int = 1
    persons: int | None = None
    column: str | None = None

    @property
    def noun(self) -> Literal["row", "person"]:
        """What to call one of them."""
        return "row" if self.persons is None else "person"

    @property
    def neighbours(self) -> str:
        """What a release says about it."""
        if self.persons is None:
            return NEIGHBOURS
        return (
            f"one person, as column {self.column!r} tells them apart, replaced by any other with all of their rows; "
            f"the number of persons is public; a row without a person is taken to be one of its own"
        )

    @property
    def described(self) -> dict[str, Any]:
        """What a release says about it in numbers."""
        if self.persons is None:
            return {}
        return {"person": self.column, "persons": self.persons, "rows_per_person": self.rows}

    def charge(self, loss: float) -> float:
        """Return k times a loss, not below the exact product."""
        if self.rows == 1 or not math.isfinite(loss):
            return loss
        product = self.rows * loss
        if math.isinf(product) or Fraction(product) >= self.rows * Fraction(loss):
            return product
        return math.nextafter(product, math.inf)

    def worst_case(self, loss: float) -> float:
        """Return k times a bound on sums of losses, not below what any sum of charges is rounded to."""
        return loss if self.rows == 1 else self.charge(loss) * (1 + _ROUNDING)

    def share(self, budget: float) -> float:
        """Return what one row may cost so that no outcome costs more than the budget, roundings included."""
        return budget if self.rows == 1 else budget / self.rows * (1 - 2 * _ROUNDING)

    def count(self, n: int) -> str:
        """Say how many there are in a table of n rows, for messages."""
        if self.persons is None:
            return f"n = {n}"
        return f"{self.persons:,} person{'' if self.persons == 1 else 's'}"


def tried(enough: int, unit: Unit) -> str:
    """Say how many there would have to be for a search to begin, which is not to say that it would succeed.

    Examples
    --------
    >>> tried(1200, Unit(5, 4000, "patient_id"))
    'From about 1,200 persons on it can be tried, which may cost all and fail: expost plan says how many are enough'
    """
    return (
        f"From about {enough:,} {unit.noun}s on it can be tried, which may cost all and fail: expost plan says how "
        f"many are enough"
    )


#: Each row stands for itself.
ROW = Unit()


_COUNT, _MIDDLE, _WIDTH = 29, 15, 3.0  # orders 1 + 2^(−½), …, 1 + 2^(13½); weights are largest near r = 129
#: r − 1 for each order of the grid.
STEPS: tuple[float, ...] = tuple(2.0 ** ((k - 1) / 2) for k in range(_COUNT))
#: The public grid of orders.
ORDERS: tuple[float, ...] = tuple(1.0 + step for step in STEPS)
_RAW = [1.0 / (1.0 + ((k - _MIDDLE) / _WIDTH) ** 2) for k in range(_COUNT)]
#: Their weights, which add up to at most one.
WEIGHTS: tuple[float, ...] = tuple(raw / math.fsum(_RAW) * (1.0 - 1e-15) for raw in _RAW)
_UP = 1.0 + 1e-10  # rounding of a solution: each exponent is within 10⁻¹¹ of its value
_DOWN = 1.0 - 1e-9
_TINY = 1e-15  # rounding of one minus a sum
_ENDLESS = 1e6  # an ε that stands for no bound


@dataclass(frozen=True)
class Curve:
    """What steps cost together: R(r) on the grid, and a bound on the loss that holds always.

    *Curves.* Step t of a run, chosen from what was released before, costs R_t(r) at the orders r of one public
    grid: for every ordered pair of neighbours D, D′ its loss ℓ_t = log P[o|D]/P[o|D′] has E e^{(r−1)ℓ_t} ≤
    e^{(r−1)R_t(r)} under D, given the past. Gaussian noise of deviation σ on what one row moves by Δ: R(r) =
    rΔ²/(2σ²). A pure ε settled before the step: min(ε, rε²/2). A pure loss ε(o) that depends on the outcome: ε(o)
    at every order, as ℓ_t ≤ ε(o).

    *Theorem (ex post).* Let weights w_r > 0 add up to one, δ be settled beforehand, and the run end whenever it
    likes, by what it has released. With ℓ the loss of the whole run between D and D′ and R(r) = Σ_t R_t(r) over the
    steps taken, let ε(o) solve Σ_r w_r e^{(r−1)(ε − R(r))} = 1/δ. Then P[ℓ > ε(o)] ≤ δ under D.
    *Proof.* M_t = Σ_r w_r ∏_{s≤t} e^{(r−1)(ℓ_s − R_s(r))} starts at Σ w_r = 1 and is a supermartingale: given the
    past each factor has mean at most one. It is not negative, so E M ≤ 1 where the run ends (Fatou; runs here are
    finite). The sum is increasing in ε, so ℓ > ε(o) says that M > 1/δ, which has probability at most δ (Markov). ∎
    Keeping one term of the sum gives C3's ε(o) ≤ min_r R(r) + ln(1/(w_rδ))/(r − 1). The weights are the price of
    choosing r by the outcome: without them, stopping at a good moment breaks the statement
    (`tests/account/test_renyi.py`).

    *What it says.* For each ordered pair of neighbours: whoever's row it is, whatever it might be replaced by, the
    chance that the outcome speaks for that row, against the other, by more than e^{ε(o)} is at most δ. That it
    speaks for the other so strongly has under D at most e^{−ε(o)} times the probability that it has under D′. So
    both directions together have at most 2δ, and (1 + e^{−ε})δ where ε(o) ≥ ε always. It is about two tables and
    not about mixtures of several, nor about the worst neighbour of each outcome: in many dimensions some row would
    nearly always have moved it more.

    *Theorem (the usual sense, ex post).* With the same weights let ε*(o) be the largest ℓ + ln(1 − δM(ℓ)) over ℓ,
    M(ℓ) = Σ_r w_r e^{(r−1)(ℓ − R(r))} < 1/δ. Then for every ordered pair of neighbours and every set S of outcomes
    P[o ∈ S] ≤ E′[e^{ε*(o)}; o ∈ S] + δ, E′ under D′. Where ε* is one number, that is (ε*, δ)-privacy as other
    libraries state it.
    *Proof.* By its choice (1 − e^{ε*−ℓ})₊ ≤ δM(ℓ) for every ℓ, so its mean where the run ends is at most δ·E M ≤ δ.
    And P[S] − E′[e^{ε*}; S] is the mean of 1 − e^{ε*−ℓ} on S. ∎ M is convex, so what is maximised is concave. As ℓ
    stays below ε(o), ε*(o) ≤ ε(o): this sense lets losses exceed it more often, as long as it is by little.

    *Theorem (less is shown).* Both hold of whatever is made of the outcome by a public rule, if that shows R: of a
    release, which shows less than all that was released on the way. *Proof.* Let ℓ(z) be the loss of what is made.
    e^{ℓ(z)} is the mean of e^{ℓ} given z on D′, and E[e^{(r−1)ℓ(z)}; B] = E′[e^{rℓ(z)}; B] ≤ E′[e^{rℓ}; B] =
    E[e^{(r−1)ℓ}; B] for every set B of z's (Jensen). R is one curve given z, so the mean of M does not grow, and all
    that follows is M. ∎ Shown ε(o) alone it may: two curves that come to one ε at δ, outcomes of the steeper just
    below it mixed with few of the flatter far above (`tests/account/test_post_processing.py`).

    *Theorem (filter).* If no outcome has ε(o) > ε, then P[ℓ > ε] ≤ δ, so the run is (ε, δ)-private. So a step is
    taken only if the sum *with it* stays within the budget (`fits`); what was not spent is left.

    Attributes
    ----------
    losses
        R(r) for each of :data:`ORDERS`.
    most
        No outcome's loss is above this; infinite once Gaussian noise is among the steps.
    split
        ρ and ε, if all steps were Gaussian, of ρ together, or pure, of ε together (:class:`Clock`); else None.

    Examples
    --------
    >>> step = Curve.gaussian(0.001)  # one row moves it by √0.002 deviations of the noise
    >>> round(step.epsilon(1e-6), 3), round((step + step).epsilon(1e-6), 3)
    (0.251, 0.357)
    >>> Curve.pure(0.5).epsilon(1e-6)
    0.5
    """

    losses: tuple[float, ...]
    most: float
    split: tuple[float, float] | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if len(self.losses) != len(ORDERS) or not all(0 <= loss <= self.most for loss in self.losses):
            raise ValueError(f"a curve has a loss from 0 to its most for each of {len(ORDERS)} orders")

    @classmethod
    def stated(cls, orders: tuple[float, ...], losses: tuple[float, ...], most: float) -> Curve:
        """Return a curve that was written down, if it is on this grid."""
        if tuple(orders) != ORDERS:
            raise ValueError("the curve is on another grid of orders")
        return cls(tuple(losses), most)

    def to_dict(self) -> dict[str, Any]:
        """Return what :meth:`stated` takes."""
        return {"orders": ORDERS, "losses": self.losses, "most": self.most}

    @classmethod
    def gaussian(cls, rho: float) -> Curve:
        """Return rρ, ρ = Δ²/(2σ²): Gaussian noise, continuous or exact."""
        _check("rho", rho)
        return cls(tuple(order * rho * _UP for order in ORDERS), math.inf if rho > 0 else 0.0, (rho * _UP, 0.0))

    @classmethod
    def pure(cls, epsilon: float) -> Curve:
        """Return min(ε, rε²/2): a pure step whose ε was settled before it (Bun, Steinke 2016)."""
        _check("epsilon", epsilon)
        return cls(tuple(min(epsilon, order * epsilon**2 / 2 * _UP) for order in ORDERS), epsilon, (0.0, epsilon))

    @classmethod
    def ex_post(cls, epsilon: float) -> Curve:
        """Return ε at every order: a pure loss that was settled by the outcome."""
        _check("epsilon", epsilon)
        return cls((epsilon,) * len(ORDERS), epsilon, (0.0, epsilon))

    @classmethod
    def total(cls, curves: Iterable[Curve]) -> Curve:
        """Return the sum of curves, rounded up once; what is nothing is left out, and a single curve is its own sum."""
        listed = [curve for curve in curves if curve.most or curve.split is None] or [NOTHING]
        if len(listed) == 1:
            return listed[0]
        split = None
        if all(curve.split is not None for curve in listed):
            rho, pure = (add_losses(*both) for both in zip(*(curve.split or () for curve in listed), strict=True))
            split = rho, pure
        losses = tuple(add_losses(*at) for at in zip(*(curve.losses for curve in listed), strict=True))
        return cls(losses, add_losses(*(curve.most for curve in listed)), split)

    def __add__(self, other: Curve) -> Curve:
        return Curve.total((self, other))

    def at_most(self, other: Curve) -> bool:
        """Whether it is at most another curve at every order."""
        return self.most <= other.most and all(a <= b for a, b in zip(self.losses, other.losses, strict=True))

    def joined(self, other: Curve) -> Curve:
        """Return the larger of both at every order."""
        return Curve(tuple(map(max, self.losses, other.losses)), max(self.most, other.most))

    @cached_property
    def _array(self) -> FloatArray:
        return np.array(self.losses)

    def _terms(self, epsilon: float) -> FloatArray:
        """Return the logarithm of each term of the theorem's sum."""
        with np.errstate(invalid="ignore"):
            return np.asarray(_LOG_WEIGHTS + _STEPS * (epsilon - self._array))

    def fits(self, epsilon: float, delta: float) -> bool:
        """Whether it comes to at most ε at δ, with room for rounding."""
        least = epsilon * _DOWN
        return self.most <= least or _log_sum(self._terms(least)) >= -math.log(delta)

    def epsilon(self, delta: float) -> float:
        """Return ε(o) at a δ settled before the run, rounded up: P[loss > ε] ≤ δ, whichever neighbours."""
        validation.check_delta(delta)
        if delta == 0.0 or self.most == 0.0:
            return self.most
        return epsilons([self], delta)[0]

    def usual_epsilon(self, delta: float) -> float:
        """Return ε*(o) at δ, rounded up: the same in the usual sense of (ε, δ).

        Examples
        --------
        >>> step = Curve.gaussian(0.001)
        >>> round(step.usual_epsilon(1e-6), 3), round(step.epsilon(1e-6), 3)
        (0.2, 0.251)
        """
        ex_post = self.epsilon(delta)
        if delta == 0.0 or not 0.0 < ex_post < math.inf:
            return ex_post

        def value(loss: float) -> tuple[float, float]:
            """Return ℓ + ln(1 − δM(ℓ)) and its slope."""
            terms = delta * np.exp(self._terms(loss))
            left = 1.0 - float(terms.sum())
            return (loss + math.log(left), 1.0 - float(_STEPS @ terms) / left) if left > 0.0 else (-math.inf, -math.inf)

        low, high = bisected(lambda loss: value(loss)[1] > 0.0, 0.0, ex_post, 60)
        most, slope = value(low)  # concave: nowhere above its tangent
        return min(max(0.0, most + max(0.0, slope) * (high - low)) * _UP + _TINY, ex_post)

    def order(self, delta: float) -> int:
        """Return the place in the grid of the order that counts most at δ."""
        return int(np.argmax(self._terms(self.epsilon(delta))))


NOTHING = Curve((0.0,) * len(ORDERS), 0.0, (0.0, 0.0))
_STEPS, _LOG_WEIGHTS = np.array(STEPS), np.log(np.array(WEIGHTS))


def epsilons(curves: Sequence[Curve], delta: float) -> list[float]:
    """Return what each of many curves comes to at a δ above 0, rounded up, all at once.

    Examples
    --------
    >>> curves = [Curve.gaussian(0.001), Curve.pure(0.5), NOTHING]
    >>> [round(epsilon, 6) for epsilon in epsilons(curves, 1e-6)] == [round(c.epsilon(1e-6), 6) for c in curves]
    True
    """
    if not curves:
        return []
    losses, most = np.array([curve.losses for curve in curves]), np.array([curve.most for curve in curves])
    with np.errstate(invalid="ignore", divide="ignore"):
        high = np.min(losses - (math.log(delta) + _LOG_WEIGHTS) / _STEPS, axis=1)
        low = np.zeros_like(high)
        for _ in range(60):
            middle = 0.5 * (low + high)
            terms = _LOG_WEIGHTS + _STEPS * (middle[:, None] - losses)
            top = np.max(terms, axis=1)
            enough = top + np.log(np.exp(terms - top[:, None]).sum(axis=1)) >= -math.log(delta)
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        return [float(epsilon) for epsilon in np.minimum(most, high * _UP)]


def room(spent: Curve, epsilon: float, delta: float) -> float:
    """Return the largest ρ of Gaussian noise that still fits beside what was spent; zero if none does.

    Examples
    --------
    >>> rho = room(NOTHING, 1.0, 1e-6)
    >>> Curve.gaussian(rho).fits(1.0, 1e-6), Curve.gaussian(1.01 * rho).fits(1.0, 1e-6)
    (True, False)
    """
    validation.check_delta(delta, positive=True)
    least, orders = min(epsilon, _ENDLESS) * _DOWN, np.array(ORDERS) * _UP
    terms, wanted = spent._terms(least), -math.log(delta)
    fitting, _ = bisected(lambda rho: _log_sum(terms - _STEPS * (rho * orders)) >= wanted, 0.0, max(1.0, least), 80)
    return fitting * _DOWN


def _check(name: str, value: float) -> None:
    if not value >= 0:
        raise ValueError(f"{name} must be a non-negative number, got {value}")


def _log_sum(terms: FloatArray) -> float:
    top = float(np.max(terms))
    if not math.isfinite(top):
        return top
    return top + math.log(float(np.exp(terms - top).sum()))


_SOLVED = 1.0 + 1e-9  # rounding of a solution
_LATTICE = 2e-7  # what integers add to a loss, both ways, and take off δ as a part of it
_SMALLEST = 1e-290  # what erfc still knows
_LARGEST_EPSILON = 600.0  # e^ε beyond is no number
#: Below this δ nothing is stated by a clock.
LEAST = 1e-30


@dataclass(frozen=True)
class Clock:
    """Times that were settled before a run.

    A run takes Gaussian steps, each chosen from what was released before, and pure ones between them. Its *time* is
    the sum ρ of what the Gaussian steps cost. Before it begins, times r_1 < r_2 < … are settled where it will
    probably end, and shares of δ: δ_k = δ/(k(k + 1)). The run ends whenever it likes, by what it has released, if
    not after the last time. Let it end at time ρ, r_k the first of them that is not before ρ, with pure steps of
    ε_p in all, and m = √(2r_k). What is shown in the end, o, may be less than all that was released, but it shows ρ
    and ε_p.

    *Theorem (ex post).* With e = ln(δ_k/Φ(Φ⁻¹(δ_k) − m)) and ε(o) = ε_p + e: for every ordered pair of neighbours
    P[ℓ > ε(o)] ≤ δ, ℓ the loss of what is shown.
    *Theorem (usual sense, ex post).* With e solving Φ(m/2 − e/m) − e^e·Φ(−m/2 − e/m) = δ_k instead: for every set S
    of outcomes P[S] ≤ E′[e^{ε(o)}; S] + δ.

    *Proof.* Write the loss of all that was released as g + p, the sums over Gaussian and over pure steps; p ≤ ε_p
    always. Given the past, whatever pure steps answered included, a Gaussian step of shift v in units of its noise,
    |v|²/2 ≤ ρ_t, has a loss N(|v|²/2, |v|²) under D. So g is s/2 + W_s at a random time s ≤ 2ρ, W a Brownian
    motion. Follow the run until its time would pass r_k: then s ≤ m². X = e^{−g} = e^{−s/2−W_s} is a martingale
    under D stopped at s, so for convex f E f(X) ≤ E f(L), L = e^{−N}, N ~ N(m²/2, m²): its value at m².
    (i) Let B be the shown outcomes between r_{k−1} and r_k with ℓ > ε(o). e^{−ℓ} is the mean of e^{−g−p} given what
    is shown, and e^{−p} ≥ e^{−ε_p}, so E[X; B] < e^{−e}P[B]. Among all events of probability b, L has the least
    mean on the one where it is smallest, Φ(Φ⁻¹(b) − m), and by convex order (f = (c − x)₊, c that quantile) E[X; B]
    is at least that with b = P[B]. Φ(Φ⁻¹(b) − m)/b increases with b. So P[B] < δ_k, and Σδ_k ≤ δ.
    (ii) f(x) = (1 − e^e·x)₊ is convex, and E f(L) is the second formula's left side (Balle, Wang 2018). For runs
    that end between r_{k−1} and r_k, 1 − e^{ε(o)−g−p} ≤ f(X). So E(1 − e^{ε(o)−g−p})₊ ≤ Σδ_k ≤ δ, and P[S] −
    E′[e^{ε(o)}; S] is the mean of 1 − e^{ε(o)−g−p} on S. ∎ Without shares a run that stops at a good moment breaks
    both (`tests/account/test_clock.py`). The tail of g itself would not do for (i): who shows only where a run
    ended merges outcomes, and their losses with them.

    *Filter.* If no outcome has ε(o) > ε then P[ℓ > ε] ≤ δ and the run is (ε, δ)-private: steps are taken only if
    the sum with them stays within the budget.

    *Sides drawn in secret* (`expost.search.new_rows`). A side s is drawn, shown to nobody, as likely under D′ as
    under D. Given s, D and D′ differ either in what all those steps read, or in what others read (some may be among
    both), which are pure, of ε_a in all. So P = Σ w_s P_s, likewise P′, and o shows ρ, ε_p and ε_a. Let G(b) =
    Φ(Φ⁻¹(b) − m), t = e − N_k with N_k = m²/2 − mΦ⁻¹(δ_k), which a loss N(m²/2, m²) exceeds with probability δ_k, and
    ε(o) = max(ε_p + e, ε_a + t).
    *Theorem (ex post).* P[ℓ > ε(o)] ≤ δ, ℓ the log ratio of the mixtures; where ρ = 0 with ε(o) = max(ε_p, ε_a).
    *Proof.* Let B be the shown outcomes of time k with ℓ > ε(o), T the tangent of e^e·G at δ_k. Its slope is
    e^e·G′(δ_k) = e^{e−N_k} = e^t, and T(δ_k) = e^e·G(δ_k) = δ_k. G is convex, G(0) = 0, so t ≥ 0 and e^e·G ≥ T. For
    an s of the first kind E′_s[e^{ε(o)}; B] ≥ e^e·E_s[X; B] ≥ e^e·G(P_s[B]) ≥ T(P_s[B]), as in (i). For one of the
    other kind E′_s[e^{ε(o)}; B] ≥ e^t·P_s[B] ≥ T(P_s[B]), as δ_k ≤ e^t·δ_k. T is linear, so the mean over s is
    E′[e^{ε(o)}; B] ≥ T(P[B]). By the choice of B it is below P[B], and T(b) < b says b < δ_k. Σδ_k ≤ δ. ∎ At t = 0 it
    is false, even for curves: `tests/search/test_new_persons.py`. In the usual sense P_s[S] − E′_s[e^{ε(o)}; S] ≤ δ is
    linear in both, so the larger of both sides, each stated by itself, does.

    *Noise on integers.* Steps draw discrete Gaussians X of σ ≥ 2¹⁶ units. With Y a Gaussian rounded to the nearest
    integer |ln P[X = k]/P[Y = k]| ≤ (1 + k²/σ²)/(12σ²): P[Y = k] is the density at k times the mean of
    e^{−kt/σ²−t²/(2σ²)} over |t| ≤ ½, which is between 1 − 1/(24σ²) and sinh(u)/u ≤ e^{u²/6}, u = k/(2σ²), and what
    normalises both differs by e^{−2π²σ²}. Integers plus Y are Gaussian releases, rounded: what is shown of them may
    be less than all. So the probability of an outcome of N draws is another by a factor e^{±η}, η = (N +
    Σk²/σ²)/(12σ²), and Σk²/σ² ≤ 2N + 400 but with probability e^{−100}. Gradients and moments have σ ≥ 2²⁵ and
    fewer than 10⁸ draws; looks, and how long rows are, fewer than 100: η < 10⁻⁷ together, which is added twice, and
    taken off δ. That is why δ is at least :data:`LEAST`.

    Parameters
    ----------
    times
        r_1 < r_2 < …, sums of ρ.

    Examples
    --------
    >>> clock = Clock.of([1e-4, 2e-4])
    >>> round(clock.epsilon(1e-4, 0.0, 1e-6), 4), round(clock.usual_epsilon(1e-4, 0.0, 1e-6), 4)
    (0.072, 0.0514)
    >>> round(clock.epsilon(1e-4, 0.05, 1e-6), 4), clock.epsilon(3e-4, 0.0, 1e-6)
    (0.122, inf)
    """

    times: tuple[float, ...]

    @classmethod
    def of(cls, times: Iterable[float]) -> Clock:
        """Return a clock of some times, in any order."""
        return cls(tuple(sorted({float(time) for time in times if time > 0})))

    def epsilon(self, rho: float, pure: float, delta: float, apart: float = 0.0) -> float:
        """Return ε(o) at δ, rounded up: P[loss > ε] ≤ δ for every ordered pair of neighbours.

        ``apart`` is what the pure steps cost that read the other side, where sides are drawn in secret.
        """
        return max(self._stated(rho, pure, delta, tail_mean), apart + self.gap(rho, delta) if apart else 0.0)

    def gap(self, rho: float, delta: float) -> float:
        """Return by how much what reads the other side has to cost less, where sides are drawn in secret."""
        return self._stated(rho, 0.0, delta, _beyond_quantile)

    def usual_epsilon(self, rho: float, pure: float, delta: float) -> float:
        """Return the same in the usual sense of (ε, δ)."""
        return self._stated(rho, pure, delta, _hockey_stick)

    def _stated(self, rho: float, pure: float, delta: float, solved: Callable[[float, float], float]) -> float:
        if rho == 0.0:
            return pure
        place = bisect_left(self.times, rho)
        if place == len(self.times):
            return math.inf
        share = delta * (1.0 - _LATTICE) / ((place + 1) * (place + 2))
        return (pure + solved(math.sqrt(2.0 * self.times[place]), share) + _LATTICE) * _SOLVED


@lru_cache(maxsize=4096)
def tail_mean(m: float, delta: float) -> float:
    """Return ln(δ/Φ(Φ⁻¹(δ) − m)), rounded up."""
    least = _upper(m - NormalDist().inv_cdf(delta))
    return math.log(delta) - math.log(least) + 1e-12 if least > _SMALLEST else math.inf


def _beyond_quantile(m: float, delta: float) -> float:
    """Return how far that is above what a loss N(m²/2, m²) exceeds with probability δ, rounded up."""
    return tail_mean(m, delta) - m * (m / 2.0 - NormalDist().inv_cdf(delta)) + 1e-12 * (1.0 + m)


@lru_cache(maxsize=4096)
def _hockey_stick(m: float, delta: float) -> float:
    """Return the smallest e ≥ 0 with Φ(m/2 − e/m) − e^e·Φ(−m/2 − e/m) ≤ δ, rounded up."""

    def exceeds(e: float) -> bool:
        return _upper(e / m - m / 2) - math.exp(e) * _upper(e / m + m / 2) > delta

    high = m * m / 2 + m * 40.0
    return math.inf if high > _LARGEST_EPSILON else bisected(exceeds, 0.0, high, 80)[1]


def _upper(z: float) -> float:
    """Return Φ(−z), to the last digits in the tail as well."""
    return 0.5 * math.erfc(z / math.sqrt(2.0))
