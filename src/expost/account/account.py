"""What a search has spent so far, and the one way it becomes a release.

A search books each step on an account and ends with :meth:`Account.released` or :meth:`Account.refused`. A search that
does not come to its end, for whatever reason, has still spent something: :class:`Spending` makes sure that whatever is
raised carries a release that charges for it.

*At a δ* every step books a curve (theory C3). Curves add, whatever steps are taken and whenever the search ends;
`expost.account.renyi` says what the sum means at δ. They are booked for the unit (where one person has k rows, Gaussian
noise costs k² times as much as for one row). Pure losses are booked for one row; they are charged for the unit and
count at every order. Without a δ there are pure losses alone.

*A clock.* A search of Gaussian and pure steps alone settles beforehand at which sums of ρ it will probably end
(`expost.account.clock`); then it is that which says what the sum comes to at δ, and what fits: it is sharper.

*One curve for the worst case.* Where a ledger holds the worst case (``one_curve``), a step is taken only if the sum
with it is, at every order, at most one curve (`worst`): for a search that books Gaussian curves that of Gaussian noise
which comes to the worst case at δ, which is the budget itself; for one with pure losses its ε at every order. It makes
the whole search one step of that curve, wherever it ends: what the ledger holds, and what an interruption is charged.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar, Literal, TypeVar

from expost import validation
from expost.account.clock import Clock
from expost.account.composition import add_losses
from expost.account.ledger import Ledger, Reservation
from expost.account.renyi import NOTHING, ORDERS, Curve, room
from expost.account.shared import Budget
from expost.account.unit import ROW, Unit
from expost.exceptions import (
    AccuracyNotReached,
    LargeEpsilonWarning,
    LedgerWarning,
    SearchInterrupted,
    UnreadableFile,
    warn,
)
from expost.release.release import Release
from expost.release.stored import FrozenMapping
from expost.shown import up

SETTLE = "expost ledger settle charges what the release says, with a reason"
BOOK = "expost ledger book once the ledger can be used again"
Result = TypeVar("Result")


Part = Literal["probe", "test", "generation"]
_PARTS: tuple[Part, ...] = ("probe", "test", "generation")
_FULL = 1.0 - 1e-9  # a release adds up its parts, rounded up
_ROOM = 1.0 - 1e-12  # sums are rounded up, in whatever order they are added


@lru_cache(maxsize=64)
def _worst(limit: float, delta: float) -> Curve:
    return Curve.gaussian(room(NOTHING, limit, delta))


@dataclass
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

    def __post_init__(self) -> None:
        self.curves: dict[Part, Curve] = dict.fromkeys(_PARTS, NOTHING)
        self._counted = NOTHING  # pure losses that the shared budget knows of
        self._before = NOTHING  # curves that it has yet to count

    def begin(self) -> None:
        """Get ready to draw: a budget that is shared is taken here."""
        if self.shared is not None:
            self.shared.begin(self, self.unit)

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
        self.shared, self._before = shared, sum(self.curves.values(), NOTHING)

    def book(self, part: Part, step: Curve) -> None:
        """Add what a step costs, before it is taken: for the unit at a δ, for one row without."""
        self.begin()
        if not self.delta:
            setattr(self, part, add_losses(getattr(self, part), step.most))
            return
        self.curves[part] = self.curves[part] + step
        if self.shared is not None:
            self.shared.spent, self._before = self.shared.spent + self._before + step, NOTHING

    def pure_step(self, loss: float, paid: float = 0.0) -> Curve:
        """Return a pure loss for one row as it is booked, less what of it was paid before; rounded up."""
        more = loss if not paid else math.nextafter(loss - paid, math.inf)
        return Curve.ex_post(self.unit.charge(more) if self.delta else more)

    def look_first(self, loss: float) -> None:
        """Book a pure loss for one row that was settled beforehand, for measuring the data: less, as a curve."""
        self.book("probe", Curve.pure(self.unit.charge(loss) if self.delta else loss))

    def affords(self, loss: float) -> bool:
        """Whether a pure loss for one row, settled beforehand, may be booked; without a δ it was in the worst case."""
        return not self.delta or self.fits(Curve.pure(self.unit.charge(loss)))

    def after(self, generation: float = 0.0, test: float = 0.0) -> float:
        """Return what the total becomes once that much more is booked as pure losses, rounded as it will be then."""
        if not self.delta:
            return add_losses(self.probe, add_losses(self.test, test), add_losses(self.generation, generation))
        more = self.unit.charge(generation), self.unit.charge(test)
        return self._at_delta(self.curve + Curve.ex_post(more[0]) + Curve.ex_post(more[1]))

    @property
    def total(self) -> float:
        """Everything spent so far: at δ for the unit, without one for one row replaced."""
        return self._at_delta(self.curve) if self.delta else add_losses(self.probe, self.test, self.generation)

    @property
    def limit(self) -> float:
        """What no outcome may exceed, for the unit."""
        return self.unit.worst_case(self.worst_case)

    def _parts(self) -> dict[Part, Curve]:
        return {part: self.curves[part] + Curve.ex_post(self.unit.charge(getattr(self, part))) for part in _PARTS}

    @property
    def _pure(self) -> Curve:
        return sum((Curve.ex_post(self.unit.charge(getattr(self, part))) for part in _PARTS), NOTHING)

    @property
    def curve(self) -> Curve:
        """Everything spent so far, for the unit."""
        return sum(self._parts().values(), NOTHING)

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

    def fits(self, step: Curve) -> bool:
        """Whether a step may be taken: the sum with it is within the worst case, whatever its outcome (a filter)."""
        if not self.delta:
            return self.after(test=step.most) <= self.worst_case
        together = self.shared is None or self.shared.fits(self._before + self._pure + step, self)
        after = self.curve + step
        if self.one_curve and any(a > b * _ROOM for a, b in zip(after.losses, self.worst.losses, strict=True)):
            return False
        if self.clock is not None:
            return together and self._at_delta(after) <= self.limit * _FULL
        return together and after.fits(self.limit, self.delta)

    @property
    def room(self) -> float:
        """The largest ρ of Gaussian noise that may still be taken."""
        own = room(self.curve, self.limit, self.delta)
        if self.one_curve:
            left = zip(ORDERS, self.worst.losses, self.curve.losses, strict=True)
            below = min((worst * _ROOM - spent) / order for order, worst, spent in left)
            own = max(0.0, min(own, below * (1.0 - 1e-9)))
        if self.shared is None:
            return own
        if not self.shared.fits(NOTHING, self):
            return 0.0
        return min(own, room(self.shared.spent + self._before + self._pure, self.shared.epsilon, self.delta))

    def released(self, hypothesis: Any, **details: Any) -> Release:
        """Return the release of a hypothesis."""
        parameters = {**details.pop("parameters", {}), **self.public}
        return self._release("released", hypothesis=hypothesis, parameters=parameters, **details)

    def refused(self, **details: Any) -> Release:
        """Return the refusal."""
        return self._release("refused", **details)

    def conclude(self, inner: Release, **details: Any) -> Release:
        """Return the outcome of a search inside this one, its losses and reasons added to what was booked before."""
        for part in _PARTS:
            setattr(self, part, add_losses(getattr(inner, f"epsilon_{part}"), getattr(self, part)))
        self.reasons.extend(inner.parameters.get("reasons", ()))
        kept = ("level", "n_levels", "noise", "calibration", "claims", "hypothesis")
        return self._release(inner.status, **{name: getattr(inner, name) for name in kept}, **details)

    def interrupted(self) -> Release:
        """Return what is charged if the search does not come to its end: as much as any outcome could have cost.

        Where it stopped may depend on the rows in ways that no theorem covers, so what was booked so far would not do.
        """
        held = bool(self.one_curve) and math.isfinite(self.limit)
        return self._made(
            "refused",
            [*self.reasons, self.INTERRUPTED],
            generation=self.limit if self.delta else self.unit.charge(self.worst_case),
            parameters={"interrupted": True},
            curve=self.worst.to_dict() if self.delta and held else {},
        )

    def _release(self, status: Any, **details: Any) -> Release:
        if not self.delta:
            charged = {part: self.unit.charge(getattr(self, part)) for part in _PARTS}
            return self._made(status, self.reasons, **charged, **details)
        parts, total = self._parts(), self.curve
        epsilon, place = self._at_delta(total), total.order(self.delta)
        # where pure losses alone bound the whole, their sum is it and nothing is converted
        pure = epsilon >= total.most
        shown = {part: curve.most if pure else curve.losses[place] for part, curve in parts.items()}
        part = sum(shown.values())
        if part > epsilon:  # a clock may state less than any one order does
            shown = {name: loss * (epsilon / part) * (1.0 - 1e-12) for name, loss in shown.items()}
        said = {**details.pop("parameters", {}), "rho_left": room(total, self.limit, self.delta)}
        if self.shared is not None:
            said["budget"] = self._settled(self.shared)
        return self._made(
            status,
            self.reasons,
            **shown,
            epsilon_conversion=0.0 if pure else max(0.0, epsilon - sum(shown.values())),
            curve={**total.to_dict(), **self._timed(total)},
            parameters=said,
            **details,
        )

    def _made(
        self,
        status: Any,
        reasons: list[str],
        *,
        generation: float,
        probe: float = 0.0,
        test: float = 0.0,
        **details: Any,
    ) -> Release:
        parameters = {**details.pop("parameters", {}), **({"reasons": tuple(reasons)} if reasons else {})}
        return Release(
            status=status,
            method=self.method,
            epsilon_generation=generation,
            epsilon_test=test,
            epsilon_probe=probe,
            epsilon_worst_case=self.limit,  # Release refuses an outcome above it
            secure=self.secure,
            neighbours=self.unit.neighbours,
            parameters=FrozenMapping(parameters),
            delta=self.delta,
            **details,
        )

    def _timed(self, total: Curve) -> dict[str, Any]:
        """Return what a reader needs to state it by the clock again."""
        if self.clock is None or total.split is None:
            return {}
        return {"times": self.clock.times, "rho": total.split[0], "pure": total.split[1]}

    def _settled(self, shared: Budget) -> dict[str, float]:
        """Count pure losses on the shared budget, open it for the next run, and say what is left of it."""
        if self._pure != self._counted:
            shared.spent, self._counted = shared.spent + self._pure, self._pure
        shared.end(self)
        return {"epsilon": shared.epsilon, "delta": shared.delta, "rho_left": shared.rho_left}


class Spending:
    """Makes sure that once a search has drawn noise, whatever is raised carries a release.

    ``release`` is first an empty one, then, when the search is about to draw, what an interruption costs, and in the
    end the outcome. An exception is passed on as it is if nothing was spent or if it carries a release already;
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
        if ledger is not None and not isinstance(ledger, Ledger):
            raise ValueError(f"ledger must be a Ledger(path, dataset), got {ledger!r}")
        if ledger is not None:
            _ = ledger.budget  # complains about a file or a data set that is not there, before anything is read
        self._ledger = ledger
        self._reservation: Reservation | None = None
        self._complaint = ""
        self.uncharged = False  # whether the ledger has no entry for what was spent
        self._nothing = self.release = Account("none", worst_case=0.0, secure=True).refused()

    @property
    def holds(self) -> bool:
        """Whether a ledger will hold the worst case."""
        return self._ledger is not None

    def ceiling(self, max_epsilon: float | None, delta: float = 0.0) -> float | None:
        """Return the budget to settle a search at δ with: the caller's, lowered if a ledger is to lower it."""
        return max_epsilon if self._ledger is None else self._ledger.ceiling(max_epsilon, delta)

    def reserve(self, held: Release, *, worst_case: float) -> None:
        """Let the ledger hold the worst case, or refuse; ``held`` is what an interruption will release."""
        if self._ledger is not None:
            self._reservation = self._ledger.reserve(worst_case, unit=held.neighbours, secure=held.secure, held=held)

    def begin(self, held: Release) -> None:
        """Reserve what no outcome exceeds, as far as the ledger has not charged it, and spend from now on."""
        if self._ledger is not None:
            charged = {entry.release_id for entry in self._ledger.budget.entries if entry.release_id is not None}
            self.reserve(held, worst_case=held.epsilon_beside(charged))
        self.release = held

    def end(self, outcome: Release) -> Release:
        """Return the outcome under the id of its reservation: found after a crash, it belongs there."""
        self.release = outcome = dataclasses.replace(outcome, id=self.release.id)
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
            if self.release is self._nothing:
                self._reservation.give_back(by)
            else:
                self._reservation.settle(self.release)
        except Exception as error:
            self._complaint = f"{_at_the_end(error)}{self._what_stays(self._reservation)}"
        self._reservation = None

    def _what_stays(self, reservation: Reservation) -> str:
        """Say what the ledger has for a search that could not be settled; if it cannot be read, it has nothing."""
        try:
            found = [
                e
                for e in reservation.ledger.budget.entries
                if reservation.id == e.id or e.release_id == self.release.id
            ]
        except Exception:
            found = []
        if not found and self.release is not self._nothing:
            self.uncharged = True
            return f". Nothing is charged for it there: keep the release, and charge it with {BOOK}"
        held = bool(found) and found[0].held
        return f". The worst case of entry {reservation.id} stays charged; {SETTLE}" if held else ""

    def _carrying(self, error: BaseException) -> BaseException:
        if isinstance(error, AccuracyNotReached | SearchInterrupted) or self.release.epsilon == 0:
            return error
        name = type(error).__name__
        # what is said about a file names it and quotes nothing of it
        return SearchInterrupted(self.release, f"{name}: {error}" if isinstance(error, UnreadableFile) else name)


def _at_the_end(error: Exception) -> str:
    """Return what a ledger says against a settlement: its refusals say that nothing was spent, which is not so here."""
    return str(error).removesuffix(".").removesuffix(" here").removesuffix(". Nothing was spent")


def released(release: Release) -> Release:
    """Return a release, or raise a refusal: where the caller is, and nowhere else."""
    if release.status == "refused":
        raise AccuracyNotReached(release)
    return release


def warn_if_large(release: Release) -> None:
    """Warn about an ε that protects little, unless it was stated outright or is infinite, which warns by itself."""
    if not validation.MOST < release.epsilon < math.inf or release.method == "fixed":
        return
    warn(
        f"epsilon = {up(release.epsilon)} is large: odds about any {release.unit} may have moved by a factor of "
        f"{up(release.risk_factor)}. Ask for less accuracy, or pass a smaller max_epsilon",
        LargeEpsilonWarning,
    )
