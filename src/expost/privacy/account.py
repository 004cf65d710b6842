"""What a search has spent so far, and the one way it becomes a release.

A search books each step on an account and ends with :meth:`Account.released` or :meth:`Account.refused`. A search that
does not come to its end, for whatever reason, has still spent something: :class:`Spending` makes sure that whatever is
raised carries a release that charges for it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

from expost.exceptions import AccuracyNotReached, LedgerWarning, SearchInterrupted, UnreadableFile, warn
from expost.privacy.composition import add_losses
from expost.privacy.frozen import FrozenMapping
from expost.privacy.ledger import Ledger, Reservation
from expost.privacy.release import Release
from expost.privacy.unit import ROW, Unit

SETTLE = "expost ledger settle charges what the release says, with a reason"
BOOK = "expost ledger book once the ledger can be used again"
Result = TypeVar("Result")


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
        What neighbours differ in. Losses are booked for one row replaced; a release charges for the unit.
    public
        What was revealed and paid for, beside the hypothesis, and is to be released with it.

    Examples
    --------
    >>> account = Account("by hand", worst_case=1.0, secure=False)
    >>> account.probe = 0.25
    >>> account.generation = 0.5
    >>> account.released([1.0]).epsilon, account.refused().status
    (0.75, 'refused')
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

    @property
    def total(self) -> float:
        """Everything spent so far."""
        return add_losses(self.probe, self.test, self.generation)

    def begin(self) -> None:
        """Get ready to draw; an account that others share a budget with takes it here."""
        return

    def after(self, generation: float = 0.0, test: float = 0.0) -> float:
        """Return what the total becomes once that much more is booked, rounded as it will be then."""
        return add_losses(self.probe, add_losses(self.test, test), add_losses(self.generation, generation))

    def affords(self, loss: float) -> bool:
        """Whether a loss may be booked: one that was settled with the worst case always may."""
        return True

    def look_first(self, loss: float) -> None:
        """Book a loss that was settled beforehand, for measuring the data."""
        self.probe = add_losses(self.probe, loss)

    def released(self, hypothesis: Any, **details: Any) -> Release:
        """Return the release of a hypothesis."""
        parameters = {**details.pop("parameters", {}), **self.public}
        return self._release("released", hypothesis=hypothesis, parameters=parameters, **details)

    def refused(self, **details: Any) -> Release:
        """Return the refusal."""
        return self._release("refused", **details)

    def conclude(self, inner: Release, **details: Any) -> Release:
        """Return the outcome of a search inside this one, its losses and reasons added to what was booked before."""
        self.probe = add_losses(inner.epsilon_probe, self.probe)
        self.test = add_losses(inner.epsilon_test, self.test)
        self.generation = add_losses(inner.epsilon_generation, self.generation)
        self.reasons.extend(inner.parameters.get("reasons", ()))
        kept = ("level", "n_levels", "noise", "calibration", "claims", "hypothesis")
        return self._release(inner.status, **{name: getattr(inner, name) for name in kept}, **details)

    def interrupted(self) -> Release:
        """Return what is charged if the search does not come to its end: as much as any outcome could have cost.

        Where it stopped may depend on the rows in ways that no theorem covers, so what was booked so far would not do.
        """
        said = {"interrupted": True}
        return self._part(
            "refused", [*self.reasons, self.INTERRUPTED], generation=self.unit.charge(self.worst_case), parameters=said
        )

    def _release(self, status: Any, **details: Any) -> Release:
        charged = {name: self.unit.charge(getattr(self, name)) for name in ("probe", "test", "generation")}
        return self._part(status, self.reasons, **charged, **details)

    def _part(
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
            epsilon_worst_case=self.unit.worst_case(self.worst_case),  # Release refuses an outcome above it
            secure=self.secure,
            neighbours=self.unit.neighbours,
            parameters=FrozenMapping(parameters),
            **details,
        )


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
            self._complaint = f"{error}{self._what_stays(self._reservation)}"
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


def released(release: Release) -> Release:
    """Return a release, or raise a refusal: where the caller is, and nowhere else."""
    if release.status == "refused":
        raise AccuracyNotReached(release)
    return release
