"""What a search has spent so far, and the one way it becomes a release.

A search books each step on an account and ends with :meth:`Account.released`, `short` or `refused`. A search that
does not come to its end, for whatever reason, has still spent something: :class:`Spending` makes sure that whatever is
raised carries a release that charges for it.

*At a δ* every step books a :class:`~expost.account.composition.Curve` (theory C3). Curves add, whatever steps are taken
and whenever the search ends. They are booked for the unit (where one person has k rows, Gaussian noise costs k² times
as much as for one row). Pure losses are booked for one row; they are charged for the unit and count at every order.
Without a δ there are pure losses alone.

*A clock.* A search of Gaussian and pure steps alone settles beforehand at which sums of ρ it will probably end; then it
is that :class:`~expost.account.composition.Clock` which says what the sum comes to at δ, and what fits: it is sharper.

*One curve for the worst case.* Where a ledger holds the worst case (``one_curve``), a step is taken only if the sum
with it is, at every order, at most one curve (`worst`): for a search that books Gaussian curves that of Gaussian noise
which comes to the worst case at δ, which is the budget itself; for one with pure losses its ε at every order. It makes
the whole search one step of that curve, wherever it ends: what the ledger holds, and what an interruption is charged.

*Models and tests of different rows* (``held_out``, theory D4). Models read one part of the rows, tests the other, and
what reads all rows is booked as a probe. Which rows (or persons, with theirs) are held out is drawn at random, and
nobody is told (`expost.search.new_rows`, with the proof). So pure losses come to those of probes and the larger of what
models and what tests cost; at a δ the curve that is larger at every order is converted, or a clock says what both come
to. That curve is the one for ledgers and budgets, too.

*One budget for several runs* (:class:`Budget`): a filter that they share (theory C3 ii).
*Theorem.* Everything that is booked inside it, by whatever runs, in whatever order, later ones chosen by earlier ones,
is one long run whose steps are taken only while the sum of their Rényi curves comes to at most ε at δ. So all of it
together is (ε, δ)-private (the filter of a curve): what a run did not spend is left for the next, and nothing has to be
split beforehand. A run that does not come to its end may have stopped for private reasons; the whole budget counts as
spent then. So a run takes the budget before it draws anything (`Budget.begin`) and gives it back when it ends;
meanwhile no other may begin. All runs are about one unit: a loss for one row says little about a person with several.
Searches that book no curve refuse to begin inside a budget, and so do runs of a process that was forked inside it: what
it counts there, nobody else sees.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, Token
from dataclasses import dataclass, field, replace
from functools import lru_cache
from threading import Lock
from typing import Any, ClassVar, Literal, Self, TypeVar

from expost import defaults, validation
from expost.account.composition import NOTHING, ORDERS, ROW, Clock, Curve, Unit, add_losses, room
from expost.account.ledger import UNCHARGED, Ledger, Reservation
from expost.account.ledger_file import ONCE_MORE, Store
from expost.exceptions import (
    UNSPENT,
    AccuracyNotReached,
    LargeEpsilonWarning,
    LedgerUnavailable,
    LedgerWarning,
    SearchInterrupted,
    ShortOfGoalWarning,
    UnreadableFile,
    advice,
    warn,
)
from expost.numeric import bisected
from expost.release.release import FrozenMapping, Release
from expost.shown import down, exact, up

SETTLE = "expost ledger settle charges what the release says, with a reason"
BOOK = "expost ledger book once the ledger can be used again"
Result = TypeVar("Result")
Part = Literal["probe", "test", "generation"]
_PARTS: tuple[Part, ...] = ("probe", "test", "generation")
_FULL = 1.0 - 1e-9  # a release adds up its parts, rounded up
_ROUNDED = 1.0 - 1e-12  # sums are rounded up, in whatever order they are added
_HARDLY = 1.05  # a test may raise the total by so much where one that raises it not at all would be noise


@lru_cache(maxsize=64)
def _worst(limit: float, delta: float) -> Curve:
    return Curve.gaussian(room(NOTHING, limit, delta))


@dataclass(eq=False)
class Account:
    """Losses of the steps taken, in the three parts a release reports, and the reasons for them.

    Parameters
    ----------
    method
        What the release calls the search.
    worst_case
        Bound on every outcome, settled beforehand.
    secure
        Whether the noise may protect anyone.
    unit
        What neighbours differ in. Pure losses are booked for one row replaced; a release charges for the unit.
    public
        What was revealed and paid for, beside the hypothesis, and is to be released with it.
    delta
        δ, settled beforehand; 0 is pure privacy.
    shared
        The budget that other runs count on as well, if any.
    one_curve
        Which curve the sum stays within at every order, as a ledger needs it: Gaussian, or that of pure losses.
    clock
        Settled by a search before its first step, if it has one.
    held_out
        How many rows tests read and models do not; 0 where both read all rows.

    Examples
    --------
    >>> account = Account("by hand", worst_case=1.0, secure=False)
    >>> account.probe = 0.25
    >>> account.generation = 0.5
    >>> account.released([1.0]).epsilon, account.refused().status
    (0.75, 'refused')
    >>> account = Account("by hand", worst_case=1.0, secure=False, delta=1e-6)
    >>> account.book("generation", Curve.gaussian(0.001))
    >>> release = account.released([1.0])
    >>> round(release.epsilon, 3), release.delta
    (0.251, 1e-06)
    >>> account.fits(Curve.gaussian(0.01)), account.fits(Curve.gaussian(0.1))
    (True, False)
    """

    INTERRUPTED: ClassVar[str] = (
        "the search did not come to its end: what the dearest outcome could have cost is charged"
    )

    method: str
    worst_case: float
    secure: bool
    probe: float = 0.0
    test: float = 0.0
    generation: float = 0.0
    reasons: list[str] = field(default_factory=list)
    unit: Unit = ROW
    public: dict[str, Any] = field(default_factory=dict)
    delta: float = 0.0
    shared: Budget | None = None
    one_curve: Literal["gaussian", "pure"] | None = None
    clock: Clock | None = None
    held_out: int = 0

    def __post_init__(self) -> None:
        self.curves: dict[Part, Curve] = dict.fromkeys(_PARTS, NOTHING)

    def begin(self) -> None:
        """Get ready to draw: a budget that is shared is taken here."""
        if self.shared is not None:
            self.shared.begin(self)

    def count_on(self, shared: Budget | None) -> None:
        """Count on a budget from the next step on, with all steps before it: what is released inside costs them too.

        Once counted by a budget, an account is for good, wherever it goes on; another budget could not tell.
        """
        if shared is None or shared is self.shared:
            return
        if self.shared is not None:
            raise ValueError(
                "this run is counted by another budget, so it cannot go on inside this one; begin a new one here. "
                "Nothing was spent"
            )
        self.shared = shared

    def carry_on(self, release: Release) -> None:
        """Begin with what a pure release has cost that the search goes on from; the worst case is then about both."""
        for part in _PARTS:
            stated = getattr(release, f"epsilon_{part}")
            loss = stated / self.unit.rows
            while self.unit.charge(loss) < stated:
                loss = math.nextafter(loss, math.inf)
            setattr(self, part, loss)
        self.worst_case = add_losses(self.worst_case, self.total)
        self.secure = self.secure and release.secure

    def book(self, part: Part, step: Curve) -> None:
        """Add what a step costs, before it is taken: for the unit at a δ, for one row without."""
        self.begin()
        if not self.delta:
            setattr(self, part, add_losses(getattr(self, part), step.most))
            return
        self.curves[part] = self.curves[part] + step
        if self.shared is not None:
            self.shared.count(self)

    def pure_step(self, loss: float, paid: float = 0.0) -> Curve:
        """Return a pure loss for one row as it is booked, less what of it was paid before; rounded up."""
        more = loss if not paid else math.nextafter(loss - paid, math.inf)
        return Curve.ex_post(self.unit.charge(more) if self.delta else more)

    def look_first(self, loss: float) -> None:
        """Book a pure loss for one row that was settled beforehand, for measuring the data."""
        self.book("probe", self.settled_step(loss))

    def settled_step(self, loss: float) -> Curve:
        """Return a pure loss for one row that was settled beforehand as it is booked: less, as a curve."""
        return Curve.pure(self.unit.charge(loss) if self.delta else loss)

    def affords(self, loss: float) -> bool:
        """Whether a pure loss for one row, settled beforehand, may be booked; without a δ it was in the worst case."""
        return not self.delta or self.fits(self.settled_step(loss))

    def after(self, generation: float = 0.0, test: float = 0.0) -> float:
        """Return what the total becomes once that much more is booked as pure losses, rounded as it will be then."""
        if not self.delta:
            return self._together(self.probe, add_losses(self.test, test), add_losses(self.generation, generation))
        more = self.unit.charge(generation), self.unit.charge(test)
        return self._come_to(self._sides(Curve.ex_post(more[0]), Curve.ex_post(more[1])))

    def _together(self, probe: float, test: float, generation: float) -> float:
        """Return what pure losses come to."""
        return add_losses(probe, max(test, generation)) if self.held_out else add_losses(probe, test, generation)

    @property
    def total(self) -> float:
        """Everything spent so far: at δ for the unit, without one for one row replaced."""
        if self.delta:
            return self._come_to(self._sides())
        return self._together(self.probe, self.test, self.generation)

    @property
    def free_test(self) -> float:
        """What tests of rows held out may still cost for one row, purely, before the total grows, or hardly grows.

        It follows from models alone.
        """
        if not self.delta:
            return max(0.0, self.generation - self.test) * _FULL
        fitted, tested = self._sides()
        most = self._at_delta(fitted)
        if self.clock is not None and fitted.split is not None:
            most -= self.clock.gap(fitted.split[0], self.delta)
            return self.unit.share(max(0.0, most - tested.most) * _FULL)
        hardly = _HARDLY * most
        more, _ = bisected(lambda more: self._come_to([fitted, tested + Curve.pure(more)]) <= hardly, 0.0, most, 40)
        return self.unit.share(more)

    def _come_to(self, sides: list[Curve]) -> float:
        """Return what the sides come to at δ; a clock is about steps that are Gaussian, of models."""
        models, *tests = sides
        if not tests:
            return self._at_delta(models)
        (tested,) = tests
        if self.clock is None:
            return models.joined(tested).epsilon(self.delta)
        assert models.split is not None
        return self.clock.epsilon(*models.split, self.delta, tested.most)

    @property
    def in_squares(self) -> bool:
        """Whether others count on what is booked here as curves, so that Gaussian noise is worth more than pure."""
        return self.one_curve == "gaussian" or self.shared is not None

    @property
    def limit(self) -> float:
        """What no outcome may exceed, for the unit."""
        return self.unit.worst_case(self.worst_case)

    def _charged(self) -> dict[Part, float]:
        return {part: self.unit.charge(getattr(self, part)) for part in _PARTS}

    def _parts(self) -> dict[Part, Curve]:
        return {part: self.curves[part] + Curve.ex_post(loss) for part, loss in self._charged().items()}

    @property
    def curve(self) -> Curve:
        """Everything spent so far, for the unit."""
        return _larger(self._sides())

    def _sides(self, generation: Curve = NOTHING, test: Curve = NOTHING) -> list[Curve]:
        """Return what steps cost, with more of them: all; or those of fitted rows, and those of rows held out."""
        parts, more = self._parts(), generation + test
        if not self.held_out:
            return [sum(parts.values(), NOTHING) + more]
        return [parts["probe"] + parts["generation"] + generation, parts["probe"] + parts["test"] + test]

    def _at_delta(self, curve: Curve) -> float:
        """Return what steps come to at δ: by the clock, if there is one."""
        if self.clock is None:
            return curve.epsilon(self.delta)
        assert curve.split is not None
        return self.clock.epsilon(*curve.split, self.delta)

    @property
    def worst(self) -> Curve:
        """The curve that the sum stays within at every order, if it is to stay within one."""
        return _worst(self.limit, self.delta) if self.one_curve != "pure" else Curve.ex_post(self.limit)

    def fits(self, step: Curve, test: Curve = NOTHING) -> bool:
        """Whether a step may be taken: the sum with it is within the worst case, whatever its outcome (a filter).

        ``test`` is that of the model that the step draws, where one is to be taken as well.
        """
        if not self.delta and not self.held_out:
            return self.after(test=(step + test).most) <= self.worst_case
        if not self.delta:
            return self.after(step.most, test.most) <= self.worst_case
        sides = self._sides(step, test)
        after = _larger(sides)
        together = self.shared is None or self.shared.fits(after, self)
        if self.one_curve and any(a > b * _ROUNDED for a, b in zip(after.losses, self.worst.losses, strict=True)):
            return False
        # of two sides what is known of a curve by what its ε may come to is about the larger one, with a clock too
        curve_fits = (self.clock is not None and not self.held_out) or after.fits(self.limit, self.delta)
        return together and curve_fits and (self.clock is None or self._come_to(sides) <= self.limit * _FULL)

    @property
    def room(self) -> float:
        """The largest ρ of Gaussian noise that may still be taken."""
        own = room(self.curve, self.limit, self.delta)
        if self.one_curve:
            left = zip(ORDERS, self.worst.losses, self.curve.losses, strict=True)
            below = min((worst * _ROUNDED - spent) / order for order, worst, spent in left)
            own = max(0.0, min(own, below * (1.0 - 1e-9)))
        return own if self.shared is None else min(own, self.shared.room(self))

    def released(self, hypothesis: Any, **details: Any) -> Release:
        """Return the release of a hypothesis."""
        parameters = {**details.pop("parameters", {}), **self.public}
        return self._release("released", hypothesis=hypothesis, parameters=parameters, **details)

    def short(self, hypothesis: Any, **details: Any) -> Release:
        """Return the release of the best model of a search that did not meet its goal."""
        parameters = {**details.pop("parameters", {}), **self.public}
        return self._release("short", hypothesis=hypothesis, parameters=parameters, **details)

    def refused(self, **details: Any) -> Release:
        """Return the refusal."""
        return self._release("refused", **details)

    def conclude(self, inner: Release, **details: Any) -> Release:
        """Return the outcome of a search inside this one, its losses and reasons added to what was booked before."""
        for part in _PARTS:
            setattr(self, part, add_losses(getattr(inner, f"epsilon_{part}"), getattr(self, part)))
        self.reasons.extend(inner.parameters.get("reasons", ()))
        kept = ("level", "n_levels", "noise", "perturbation", "calibration", "claims", "hypothesis")
        return self._release(inner.status, **{**{name: getattr(inner, name) for name in kept}, **details})

    def interrupted(self) -> Release:
        """Return what is charged if the search does not come to its end: as much as any outcome could have cost.

        Where it stopped may depend on the rows in ways that no theorem covers, so what was booked so far would not do.
        """
        held = bool(self.one_curve) and math.isfinite(self.limit)
        apart = {"tested": self.worst.to_dict()} if self.held_out and self.delta and held else {}
        return self._made(
            "refused",
            [*self.reasons, self.INTERRUPTED],
            {"generation": self.limit if self.delta else self.unit.charge(self.worst_case)},
            parameters={"interrupted": True},
            curve={**self.worst.to_dict(), **apart} if self.delta and held else {},
        )

    def _release(self, status: Any, **details: Any) -> Release:
        if not self.delta:
            return self._made(status, self.reasons, self._charged(), **details)
        parts, (total, *apart) = self._parts(), self._sides()
        if apart:  # pure, and beside what models cost, which is stated first
            del parts["test"]
        epsilon, place = self.total, total.order(self.delta)
        # where pure losses alone bound the whole, their sum is it and nothing is converted
        pure = epsilon >= total.most
        shown = {part: curve.most if pure else curve.losses[place] for part, curve in parts.items()}
        part = sum(shown.values())
        if part > epsilon:  # a clock may state less than any one order does
            shown = {name: loss * (epsilon / part) * (1.0 - 1e-12) for name, loss in shown.items()}
        said = {**details.pop("parameters", {}), "rho_left": room(self.curve, self.limit, self.delta)}
        conversion = 0.0 if pure and not apart else max(0.0, epsilon - sum(shown.values()))
        if self.shared is not None:
            self.shared.count(self)
            self.shared.end(self)
            said["budget"] = {"epsilon": self.shared.epsilon, "delta": self.delta, "rho_left": self.shared.rho_left}
        timed: dict[str, Any] = {}
        if self.clock is not None and total.split is not None:  # what a reader needs to state it by the clock again
            timed = {"times": self.clock.times, "rho": total.split[0], "pure": total.split[1]}
        for tested in apart:
            timed["tested"] = tested.to_dict()
            shown["test"] = max(0.0, add_losses(tested.epsilon(self.delta), -shown["probe"]))
        return self._made(
            status,
            self.reasons,
            shown,
            epsilon_conversion=conversion,
            curve={**total.to_dict(), **timed},
            parameters=said,
            **details,
        )

    def _made(self, status: Any, reasons: list[str], losses: dict[Part, float], **details: Any) -> Release:
        parameters = {**details.pop("parameters", {}), **({"reasons": tuple(reasons)} if reasons else {})}
        parts: dict[str, Any] = {f"epsilon_{part}": loss for part, loss in losses.items()}
        return Release(
            status=status,
            method=self.method,
            epsilon_worst_case=self.limit,  # Release refuses an outcome above it
            secure=self.secure,
            neighbours=self.unit.neighbours,
            unit=self.unit.noun,
            parameters=FrozenMapping(parameters),
            delta=self.delta,
            held_out=self.held_out,
            **parts,
            **details,
        )


def _larger(sides: list[Curve]) -> Curve:
    """Return a curve that bounds what every pair of neighbours may lose."""
    first, *others = sides
    return first if not others else first.joined(others[0])


_CURRENT: ContextVar[Budget | None] = ContextVar("budget", default=None)


class Budget:
    """A budget that the fits inside a ``with`` block share; also called ``budget``.

    Parameters
    ----------
    epsilon, delta
        Everything released inside is (ε, δ)-private together. The fits inside have to state the same ``delta``;
        ``max_epsilon`` still bounds each by itself. Fits that run in other threads or processes are not inside; in a
        process forked inside they refuse to begin. A ``gradient_path`` is asked at every stage, wherever it
        began: one begun before brings all that it cost so far, and one begun inside stays counted when it goes on
        outside.

    Attributes
    ----------
    unit : Unit or None
        What neighbours differ in, settled by the first run.

    Examples
    --------
    >>> import numpy as np
    >>> from expost import AccuracyFirstModel, ErrorRate, budget
    >>> hours = np.random.default_rng(0).uniform(0, 80, 20_000)
    >>> table = {"hours": hours, "late": np.where(hours > 40, "yes", "no")}
    >>> schema = {"target": "late", "classes": ["no", "yes"], "columns": {"hours": {"bounds": [0, 80]}}}
    >>> with budget(epsilon=1.0, delta=1e-6) as shared:
    ...     for seed in (1, 2):
    ...         model = AccuracyFirstModel(schema, ErrorRate(0.2), delta=1e-6, random_state=seed).fit(table)
    >>> shared.epsilon_spent < 1.0, model.release_.parameters["budget"]["epsilon"]
    (True, 1.0)
    """

    def __init__(self, epsilon: float, delta: float = 1e-6) -> None:
        self.epsilon, self.delta = validation.positive("epsilon", epsilon), validation.delta(delta)
        validation.check_delta(self.delta, positive=True)
        self.unit: Unit | None = None
        self._runs: dict[Account, Curve] = {}
        self._taken_by: Account | None = None
        self._lock, self._process = Lock(), os.getpid()
        self._tokens: list[Token[Budget | None]] = []

    def __repr__(self) -> str:
        return f"Budget(epsilon={down(self.epsilon)}, delta={up(self.delta, 6)}, spent={up(self.epsilon_spent)})"

    def __enter__(self) -> Self:
        before = _CURRENT.get()
        if before is not None and before._process == os.getpid():
            raise ValueError("budgets cannot be nested: runs inside are counted by one")
        self._tokens.append(_CURRENT.set(self))
        return self

    def __exit__(self, *raised: object) -> None:
        _CURRENT.reset(self._tokens.pop())

    @property
    def spent(self) -> Curve:
        """What was booked so far."""
        return self._beside(None)

    @property
    def epsilon_spent(self) -> float:
        """What was spent so far, at δ; all of it once a run did not come to its end."""
        return self.epsilon if self.closed else self.spent.epsilon(self.delta)

    @property
    def rho_left(self) -> float:
        """The largest ρ of Gaussian noise that may still be spent."""
        return self.room(None)

    @property
    def closed(self) -> bool:
        """Whether a run inside it has begun and not come to its end."""
        return self._taken_by is not None

    def require_open(self, unit: Unit, run: Account | None = None) -> None:
        """Say why a run about that unit cannot begin, if so; nothing is spent."""
        if self._process != os.getpid():
            raise ValueError(
                "this process was forked inside expost.budget(...), which cannot count what is spent here; run it in "
                "the process that made the budget, or begin a budget of its own here"
            )
        if self._taken_by not in (None, run):
            raise ValueError(
                "a run inside this budget did not come to its end, so all of it counts as spent; begin with a new one"
            )
        if self.unit is not None and self.unit != unit:
            raise ValueError(
                f"this budget is about one {self.unit.noun} replaced, this run about one {unit.noun}; a loss for one "
                f"is not a loss for the other, so begin with a new budget"
            )

    def begin(self, run: Account) -> None:
        """Take it for a run that is about to draw; until the run ends, all of it counts as spent."""
        with self._lock:
            self.require_open(run.unit, run)
            self._taken_by, self.unit = run, run.unit

    def count(self, run: Account) -> None:
        """Keep what a run has cost so far, all of it."""
        self._runs[run] = run.curve

    def end(self, run: Account) -> None:
        """Give it back."""
        if self._taken_by is run:
            self._taken_by = None

    def _beside(self, run: Account | None) -> Curve:
        """Return what all runs but one have cost."""
        return Curve.total(curve for other, curve in self._runs.items() if other is not run)

    def fits(self, after: Curve, run: Account | None) -> bool:
        """Whether a run may come to that much, all its steps together."""
        return self._taken_by in (None, run) and (self._beside(run) + after).fits(self.epsilon, self.delta)

    def room(self, run: Account | None) -> float:
        """Return the largest ρ of Gaussian noise that a run may still spend."""
        spent = NOTHING if run is None else run.curve
        return room(self._beside(run) + spent, self.epsilon, self.delta) if self.fits(spent, run) else 0.0


budget = Budget


def current(delta: float, unit: Unit = ROW, *, stated: bool = False) -> Budget | None:
    """Return the budget that a run at δ is counted by, if any, or say why it cannot begin; nothing is spent.

    ``stated``: the caller stated a δ, and the run is pure all the same.
    """
    found = _CURRENT.get()
    if found is None:
        return None
    if stated and delta == 0.0:
        raise ValueError(
            "inside expost.budget(...) runs book curves at its delta, and an excess risk of this loss is searched for "
            "with pure noise, which books none; state a goal in people's units, or fit it outside the budget"
        )
    if delta != found.delta:
        raise ValueError(
            f"inside expost.budget(...) runs need its delta: pass delta={exact(found.delta)}, got {exact(delta)}"
            f"{' (pure privacy)' if not delta else ''}"
        )
    found.require_open(unit)
    return found


def in_budget() -> bool:
    """Say whether what begins here is inside ``expost.budget``."""
    return _CURRENT.get() is not None


class Spending:
    """Makes sure that once a search has drawn noise, whatever is raised carries a release.

    ``release`` is first None, then, when the search is about to draw, what an interruption costs, and in the end the
    outcome. An exception is passed on as it is if nothing was spent or if it carries a release already;
    otherwise :class:`~expost.exceptions.SearchInterrupted` takes its place and names its type, no more: its text might
    quote a row.

    With a ledger the worst case is reserved before the search begins. On the way out, whichever it is, what has to be
    charged is settled: the outcome, the interruption, or nothing if nothing was drawn.

    Examples
    --------
    >>> def search(spending):
    ...     spending.release = Account("by hand", worst_case=0.5, secure=False).interrupted()
    ...     raise KeyError("a private value")
    >>> Spending().guard(search)
    Traceback (most recent call last):
    ...
    expost.exceptions.SearchInterrupted: the search was interrupted (KeyError) after it had begun; ...
    """

    #: The one that was guarded last in this process: what it cost can be said wherever an interruption comes out.
    latest: ClassVar[Spending | None] = None

    def __init__(self, ledger: Ledger | None = None) -> None:
        if ledger is not None:
            validation.instance("ledger", ledger, Ledger, "a Ledger(path, dataset)")
            _ = ledger.budget  # complains about a file or a data set that is not there, before anything is read
        self._ledger = ledger
        self._reservation: Reservation | None = None
        self._complaint = ""
        self.uncharged = False  # whether the ledger has no entry for what was spent
        self.release: Release | None = None
        self.labels: dict[str, Any] = {}  # what a model will say of its classes, beside what an interruption says

    @property
    def holds(self) -> bool:
        """Whether a ledger will hold the worst case."""
        return self._ledger is not None

    def ceiling(self, max_epsilon: float | None, delta: float = 0.0) -> float | None:
        """Return the budget to settle a search at δ with: the caller's, lowered if a ledger is to lower it."""
        return max_epsilon if self._ledger is None else self._ledger.ceiling(max_epsilon, delta)

    def reserve(self, held: Release, *, worst_case: float) -> None:
        """Let the ledger hold the worst case, or refuse; ``held`` is what an interruption will release."""
        _require_storable(held.with_details(parameters={**held.parameters, **self.labels}))
        if self._ledger is None:
            return
        self._reservation = Reservation(self._ledger, held.id)  # an interrupt while it is written gives it back, too
        try:
            self._reservation = self._ledger.reserve(worst_case, unit=held.neighbours, secure=held.secure, held=held)
        except Exception:  # refused: there is nothing to give back
            self._reservation = None
            raise

    def charged(self, release: Release) -> bool:
        """Whether the ledger has charged a release that is to be gone on from; refuses one that it knows otherwise."""
        if self._ledger is None:
            return False
        for entry in self._ledger.budget.entries:
            if entry.release_id == release.id and entry.release is not None:
                known = Release.from_json(entry.release)
                if (known.epsilon, known.hypothesis) != (release.epsilon, release.hypothesis):
                    raise ValueError(
                        f"release {release.id} is not what the ledger has under that id; was it changed? {UNSPENT}"
                    )
                return True
        return False

    def begin(self, held: Release) -> None:
        """Reserve what no outcome exceeds, as far as the ledger has not charged it, and spend from now on."""
        if self._ledger is not None:
            charged = {entry.release_id for entry in self._ledger.budget.entries if entry.release_id is not None}
            self.reserve(held, worst_case=held.epsilon_beside(charged))
        self.release = held

    def end(self, outcome: Release) -> Release:
        """Return the outcome under the id of its reservation: found after a crash, it belongs there."""
        assert self.release is not None
        self.release = outcome = replace(outcome, id=self.release.id)
        return outcome

    def guard(self, work: Callable[[Spending], Result], *, twice: bool = True) -> Result:
        """Return what the work returns, or raise what carries a release.

        Guarded twice, so that an interruption while an exception is being passed on finds a guard as well.
        """
        Spending.latest = self
        try:
            result = self.guard(work, twice=False) if twice else work(self)
            self._settle("none")
            if self._complaint and twice:
                warn(self._complaint, LedgerWarning)
            return result
        except BaseException as error:
            carrying = self._carrying(error)
        self._settle(type(carrying).__name__)
        if self._complaint and twice:
            carrying.add_note(self._complaint)
        raise carrying  # out here: raised inside, it would carry the original, and its text, as its context

    def _settle(self, by: str) -> None:
        """Settle what was reserved; an error is only noted, for by now nothing may keep a release from its caller."""
        if self._reservation is None:
            return
        try:
            if self.release is None:
                self._reservation.give_back(by)
            else:
                self._reservation.settle(self.release)
        except Exception as error:
            said = str(error).removesuffix(".").removesuffix(f". {UNCHARGED}")  # what is charged is said below
            self._complaint = f"{said}{self._what_stays(self._reservation)}"
        self._reservation = None

    def _what_stays(self, reservation: Reservation) -> str:
        """Say what the ledger has for a search that could not be settled; where none is left, it has nothing."""
        made = None if self.release is None else self.release.id
        try:
            entries = Store(reservation.ledger.path, ONCE_MORE).read(reservation.ledger.dataset).entries
            found = [entry for entry in entries if reservation.id == entry.id or (made and entry.release_id == made)]
        except LedgerUnavailable:  # as with a second name, or the disk: what was reserved need not be lost
            self.uncharged = made is not None
            mend = f"keep the release, and charge it with {BOOK}" if made else SETTLE
            return (
                f". Its worst case was charged before, as entry {reservation.id}, and stays so if that stands: {mend}"
            )
        except Exception:
            found = []
        if not found and made:
            self.uncharged = True
            return f". Nothing is charged for it there: keep the release, and charge it with {BOOK}"
        held = bool(found) and found[0].held
        return f". The worst case of entry {reservation.id} stays charged; {SETTLE}" if held else ""

    def _carrying(self, error: BaseException) -> BaseException:
        carries = isinstance(error, AccuracyNotReached | SearchInterrupted)
        if carries or self.release is None or self.release.epsilon == 0:
            return error
        name = type(error).__name__
        # what is said about a file names it and quotes nothing of it
        return SearchInterrupted(self.release, f"{name}: {error}" if isinstance(error, UnreadableFile) else name)


@contextmanager
def unspent() -> Iterator[None]:
    """Let whatever is raised at a door say that nothing was spent, by a note, unless it says or carries what was.

    Every search is guarded: what comes out of it after a draw carries a release. Any other error came before; or after
    a search that had come to its end, and then it does not say so.
    """
    before = Spending.latest
    try:
        yield
    except (AccuracyNotReached, SearchInterrupted):
        raise
    except Exception as error:
        began = Spending.latest is not before and Spending.latest is not None and Spending.latest.release is not None
        if not began and UNSPENT.lower() not in " ".join([f"{error}", *getattr(error, "__notes__", ())]).lower():
            error.add_note(UNSPENT)
        raise


def _require_storable(release: Release) -> None:
    """Complain about names and labels of an outcome that no file could hold, while nothing is spent."""
    try:
        Release.from_json(release.to_json())
    except TypeError:  # labels that are bytes, which Python alone keeps
        return
    except ValueError as error:
        said = str(error).removeprefix("not a release: ")
        raise ValueError(f"what this search releases could not be saved: {said}. Nothing was spent") from None


def released(release: Release, *, keep_short: bool = False) -> Release:
    """Return a release, or raise a refusal: where the caller is, and nowhere else.

    One that is short of its goal is raised as well, unless it is to be kept, with a warning.
    """
    if release.status == "short" and keep_short:
        warn(f"no model met the goal; the best one is kept, short of it. {advice(release)}", ShortOfGoalWarning)
    elif release.status != "released":
        raise AccuracyNotReached(release)
    return release


def warn_if_large(release: Release) -> None:
    """Warn about an ε that protects little, unless it was stated outright or is infinite, which warns by itself."""
    if not defaults.MAX_EPSILON < release.epsilon < math.inf or release.method == "fixed":
        return
    unit = release.unit
    moved, chance = f"odds about any {unit} may have moved", ""
    if release.delta:  # which is about one value against one other, and one direction
        moved = f"odds that one {unit} is a certain one, and not a certain other, may have grown"
        chance = f", and but for a chance of {up(release.delta, 6)} by no more"
    warn(
        f"epsilon = {up(release.epsilon)} is large: {moved} by a factor of {up(release.risk_factor)}{chance}. Ask for "
        f"less accuracy, or pass a smaller max_epsilon",
        LargeEpsilonWarning,
    )
