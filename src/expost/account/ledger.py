"""The ledger of a data set: no search begins unless its worst case fits, and none ends without being accounted for."""

from __future__ import annotations

import math
import os
import secrets
import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from expost import validation
from expost.account.composition import NEIGHBOURS, Unit, add_losses
from expost.account.events import Budget, Entry, Event, Kind, Process, user
from expost.account.ledger_file import Store
from expost.account.loss import AnyLoss, ApproximateCap, Cap, PureLoss
from expost.exceptions import BudgetExceeded, LedgerRefused
from expost.release.release import Release, today
from expost.shown import down, exact

_NOTHING = "Nothing was spent"
UNCHARGED = "Nothing was charged here"  # for what was spent before it came to the ledger


def require_taken(budget: Budget, delta: float, nothing: str = _NOTHING) -> None:
    """Refuse approximate privacy where the budget is pure: an ε at a δ does not add to pure ones without its δ."""
    if not budget.cap.takes(delta):
        raise LedgerRefused(
            f"the budget of data set {budget.dataset!r} is pure, and this search holds but for a chance of delta = "
            f"{exact(delta)}. Leave delta out, or state a budget for it (a data set of another name, created with a "
            f"delta). {nothing}"
        )


def _require(
    budget: Budget, unit: str, delta: float, secure: bool, release: Release | None, nothing: str = _NOTHING
) -> None:
    """Refuse what a budget cannot be charged for: a simulation, another unit (losses do not add), a δ too many.

    ``nothing`` says what has not happened by then.
    """
    if not secure:
        raise LedgerRefused(
            f"seeded noise protects nobody, and a ledger books no simulation; leave random_state out, or the ledger. "
            f"{nothing}"
        )
    if unit != budget.unit:
        option = "" if unit == NEIGHBOURS else f" --unit {shlex.quote(unit)}"
        if release is not None and "person" in release.parameters:
            option = f" --person {shlex.quote(release.parameters['person'])}"
        raise LedgerRefused(
            f"the budget of data set {budget.dataset!r} is about {budget.unit!r}, this search about {unit!r}. State a "
            f"budget for that, under another name: expost ledger create FILE --dataset NAME --cap E{option}. "
            f"{nothing}"
        )
    require_taken(budget, delta, nothing)


def exceeded(
    budget: Budget,
    loss: AnyLoss | None,
    delta: float = 0.0,
    *,
    by_hand: bool = False,
    before: float = 0.0,
    charged: bool = False,
) -> BudgetExceeded:
    """Return the refusal of a worst case that is more than what is left.

    ``before`` is what the release cost that the search goes on from, if it does, for its ``max_epsilon`` is about both;
    ``charged`` says that the budget has been charged for that one.
    """
    ceiling, left = budget.ceiling(delta, by_hand=by_hand), budget.remaining.text(rounding="down")
    held = f" ({budget.held.text()} held for searches not settled)" if any(e.held for e in budget.entries) else ""
    has = f"data set {budget.dataset!r} has {left} of {budget.cap.text(rounding='down')} left{held}"
    asks = "" if loss is None else f", and this search may cost up to {loss.text()}"
    most = -add_losses(-ceiling, -before) if charged and ceiling else ceiling
    if most <= before:
        return BudgetExceeded(f"{has}{asks}. {_NOTHING}", 0.0)
    at = f" (at its delta = {exact(delta)})" if delta else ""
    advice = f"Pass max_epsilon={down(most)}{at}, or when_short='lower' to have it lowered"
    return BudgetExceeded(f"{has}{asks}. {advice}. {_NOTHING}", most)


WhenShort = Literal["refuse", "lower"]


@dataclass(frozen=True)
class Ledger:
    """The budget of one data set, kept in a file as a filter.

    Before a search its worst case is reserved; afterwards its ex-post loss is settled and the rest returned, so that a
    lucky search leaves more for the next. A crash leaves the reservation standing until :meth:`decide`. Processes that
    share the file cannot overspend, and killed at any moment they leave no sum understated.

    Parameters
    ----------
    path : path
        The file, made by :meth:`create` or ``expost ledger create``. It is opened when needed and holds what is public
        once the releases are: models, losses, names. Keep it on a local disk.
    dataset : str
        Which of the data sets in the file. That the rows are that data set's is for the caller to see to.
    when_short : {"refuse", "lower"}, default="refuse"
        What happens to a search whose worst case is more than what is left: it is refused before anything is spent,
        or its ``max_epsilon`` is lowered to what is left.

    Examples
    --------
    >>> import tempfile
    >>> from expost import Ledger, Release
    >>> file = Path(tempfile.mkdtemp()) / "ledger.db"
    >>> ledger = Ledger.create(file, "survey", cap=2.0)
    >>> reservation = ledger.reserve(1.5)
    >>> ledger.budget.remaining
    PureLoss(epsilon=0.5)
    >>> reservation.settle(Release(status="released", method="by hand", epsilon_generation=0.25))
    >>> ledger.budget.remaining
    PureLoss(epsilon=1.75)
    """

    path: Path
    dataset: str
    when_short: WhenShort = "refuse"

    def __init__(self, path: str | os.PathLike[str], dataset: str, *, when_short: WhenShort = "refuse") -> None:
        if not isinstance(dataset, str) or not dataset.strip():
            raise ValueError(f"dataset must be the name of a data set, got {dataset!r}")
        _require_letters("dataset", dataset)
        if when_short not in ("refuse", "lower"):
            raise ValueError(f"when_short must be 'refuse' or 'lower', got {when_short!r}")
        # absolute, so that a worker in another folder means the same file
        vars(self).update(path=Path(path).absolute(), dataset=dataset, when_short=when_short)

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        dataset: str,
        *,
        cap: float | Cap,
        delta: float = 0.0,
        unit: str = NEIGHBOURS,
        person: str | None = None,
    ) -> Ledger:
        """State the budget of a data set, once, in a new file or in one that has other data sets.

        Parameters
        ----------
        path, dataset
            As above.
        cap : float
            The largest ε that everything released about the data set may cost together.
        delta : float, default=0.0
            0 is a pure budget, and stays one: fits with a δ are refused. With a δ everything is (cap, δ)-private
            together, Gaussian costs add in squares, and pure fits may be charged as well.
        unit : str
            Whom it protects: the neighbouring relation, as releases state it (``release.neighbours``). Releases about
            another unit are refused.
        person : str, optional
            The column that tells persons apart, as fits state it: one person is what it protects. Instead of ``unit``.
        """
        made = cls(path, dataset)
        if person is not None:
            if unit != NEIGHBOURS:
                raise ValueError("person and unit both say whom the budget protects; pass one of them")
            if not isinstance(person, str) or not person.strip():
                raise ValueError(f"person must be the name of a column, got {person!r}")
            unit = Unit(persons=1, column=person.strip()).neighbours
        if not isinstance(unit, str) or not unit.strip():
            raise ValueError("unit must say in words what is replaced between neighbours, as a release states it")
        _require_letters("unit", unit)
        if isinstance(cap, Cap):
            loss = cap
        else:
            most, at = validation.positive("cap", cap), validation.delta(delta)
            loss = ApproximateCap(most, at) if at else PureLoss(most)
        if not made.path.parent.is_dir():
            raise ValueError(f"the folder of {made.path} does not exist")
        Store(made.path).create(dataset, unit, loss)
        return made

    @staticmethod
    def datasets(path: str | os.PathLike[str]) -> tuple[str, ...]:
        """Return the names of the data sets that a file has."""
        return Store(Path(path)).datasets()

    @staticmethod
    def damage(path: str | os.PathLike[str]) -> str:
        """Return what in a file is not as it was recorded, in words, or nothing: damaged, it takes nothing."""
        return Store(Path(path)).damage()

    def repair(self, epsilon: float, *, reason: str) -> str:
        """Take a file that was damaged as it is from here on, by a decision that is recorded; returns what was wrong.

        Parameters
        ----------
        epsilon : float
            What is charged to this data set for whatever may have been lost or lowered.
        reason : str
            Why that is enough, in words.
        """
        return self._store.repair(self.dataset, epsilon, _stated(reason))

    @property
    def budget(self) -> Budget:
        """The state now: cap, unit, entries, what is spent, held and left."""
        return self._store.read(self.dataset)

    @property
    def adds_in_squares(self) -> bool:
        """Whether losses add as curves, so that Gaussian noise is worth more beside other fits than by itself."""
        return isinstance(self.budget.cap, ApproximateCap)

    @property
    def _store(self) -> Store:
        return Store(self.path)

    def ceiling(self, max_epsilon: float | None, delta: float = 0.0) -> float | None:
        """Return the ``max_epsilon`` to settle a search at δ with: the caller's, or what is left if it is to be so."""
        if self.when_short == "refuse":
            return max_epsilon
        budget = self.budget
        require_taken(budget, delta)
        left = budget.ceiling(delta)
        if left == 0:
            raise exceeded(budget, None, delta)
        return left if max_epsilon is None else min(left, max_epsilon)

    def reserve(
        self,
        worst_case: float,
        *,
        delta: float = 0.0,
        unit: str = NEIGHBOURS,
        secure: bool = True,
        held: Release | None = None,
    ) -> Reservation:
        """Hold the worst case of a search that is about to begin.

        Parameters
        ----------
        worst_case : float
            No outcome of the search may cost more.
        delta : float
            At that δ, if the search is not pure. Its steps are booked as Rényi curves then: what is (ε, δ)-private for
            other reasons is nothing that a budget of curves can count.
        unit : str
            The neighbouring relation of the search.
        secure : bool
            Whether its noise will come from the cryptographic source; a simulation is refused.
        held : Release
            What an interruption of the search releases; its id becomes that of the entry. At a δ its curve is held,
            beyond which the search takes no step. Without one something larger is: whatever comes to the worst case.

        Returns
        -------
        Reservation
            To be settled with the release that the search ends in.

        Raises
        ------
        BudgetExceeded
            The worst case is more than what is left.
        LedgerRefused
            The worst case is infinite, the unit another, or the search a simulation.
        """
        at = validation.delta(delta) if held is None else held.delta
        with self._store.adding(self.dataset) as (budget, more):
            _require(budget, unit, at, secure, held)
            loss = budget.cap.reserved(worst_case, at, held)
            if not loss.bounded:
                if held is not None and math.isfinite(held.epsilon_worst_case):  # it is not the search that has none
                    advice = "leave out on_failure='release_optimum', which may release the optimum itself"
                else:
                    advice = f"pass max_epsilon={down(budget.ceiling(at))} or less"
                raise LedgerRefused(
                    f"the cost of this search has no bound, and infinity cannot be reserved; {advice}. {_NOTHING}"
                )
            if not budget.admits(loss):
                before, charged = 0.0, False
                if held is not None and held.continues is not None:
                    before, charged = -add_losses(-held.epsilon, held.epsilon_increment), worst_case < held.epsilon
                raise exceeded(budget, loss, at, by_hand=held is None, before=before, charged=charged)
            entry = secrets.token_hex(8) if held is None else held.id
            more.append(_event(entry, "reserved", loss, held, process=Process.this()))
        return Reservation(self, entry, budget.identity, budget.records + 1)

    def book(self, release: Release, *, reason: str | None = None) -> Entry:
        """Charge a release that was made without the ledger, and return its entry; a second time nothing changes.

        What is spent is spent: it is booked even if it is more than what was left.
        """
        validation.instance("release", release, Release, "a Release, as model.release_ or Release.from_json has it")
        if release.parameters.get("evaluation", {}).get("rows") == "public":
            raise ValueError("exact counts of rows that are stated to be public cost no budget; nothing was recorded")
        with self._store.adding(self.dataset) as (budget, more):
            loss = _cost(budget, release)
            known = [entry for entry in budget.entries if release.id in (entry.id, entry.release_id)]
            if known and known[0].release_id is None:  # its search was held, decided about or given back
                more.append(_event(known[0].id, "settled", loss, release))
            elif known:
                _require_no_more(known[0], release, loss)
            else:
                more.append(_event(release.id, "booked", loss, release, reason=reason))
        return _written(budget, more).entry(release.id)

    def decide(self, entry: str, loss: float | Release | None, *, reason: str) -> Entry:
        """Settle a reservation that its search has left standing, by a decision that is recorded.

        Parameters
        ----------
        entry : str
            Its id, or how that begins.
        loss : float, Release or None
            What is charged: an ε up to what is held, the release that the search made, or ``None`` for what is held.
            Less than what is held, without a release, is right only if nothing came out of the search that cost more.
        reason : str
            Why, in words.

        Returns
        -------
        Entry
        """
        why = _stated(reason)
        with self._store.adding(self.dataset) as (budget, more):
            found = budget.entry(entry)
            if not found.held:
                raise ValueError(f"entry {found.id} is settled: {found.loss.text()} is charged")
            charged = self._charge(budget, found, loss)
            made = loss if isinstance(loss, Release) else None
            more.append(_event(found.id, "decided", charged, made, reason=why))
        return _written(budget, more).entry(found.id)

    def _charge(self, budget: Budget, found: Entry, loss: float | Release | None) -> AnyLoss:
        """Return what a decision charges, if that may be decided."""
        if loss is None:
            return found.loss
        if isinstance(loss, Release):
            charged = _cost(budget, loss)
            if found.events[0].release is not None and loss.id != found.id:
                raise ValueError(f"release {loss.id} is not that of the search {found.id}; its release has its id")
            if any(loss.id == entry.release_id for entry in budget.entries):
                raise ValueError(f"release {loss.id} is booked already")
            return charged
        charged = budget.cap.decided(loss, found.loss)
        if not charged.within(found.loss):
            raise ValueError(f"no outcome of the search could cost more than what is held, {found.loss.text()}")
        process = found.events[0].process
        if process is not None and process.alive and charged != found.loss:
            raise ValueError(
                f"process {process.pid}, which holds entry {found.id}, is still running; end it first, or charge what "
                f"is held"
            )
        return charged


@dataclass(frozen=True)
class Reservation:
    """A worst case that is held for a search; :meth:`settle` replaces it by what the search cost."""

    ledger: Ledger
    id: str
    identity: str = ""
    records: int = 0

    def settle(self, release: Release) -> None:
        """Book the release that the search ended in, a refusal or an interruption as well; twice is as good as once.

        Raises
        ------
        ValueError
            The release cannot be this search's. If it cost more than was held, or the file has lost what was held, it
            is booked all the same.
        """
        ledger = self.ledger
        with ledger._store.adding(ledger.dataset) as (budget, more):
            loss = _cost(budget, release)
            entry = next((entry for entry in budget.entries if entry.id == self.id), None)
            booked = next((other for other in budget.entries if other.release_id == release.id), None)
            if booked is not None:
                if booked is entry or entry is None:
                    return _require_no_more(booked, release, loss)
                raise ValueError(f"release {release.id} is booked already, for another search")
            if entry is not None and entry.release_id is not None:
                raise ValueError(f"entry {self.id} is settled already, by another release; book this one by itself")
            how = ""
            if entry is None:
                how = f"the file had lost what was reserved: {self._lost(budget)}"
                more.append(_event(release.id, "booked", loss, release, reason=how))
            else:
                more.append(_event(self.id, "settled", loss, release))
        if entry is None:
            raise ValueError(
                f"release {release.id} is booked, but {how}. What else it may have lost is for you to book"
            )
        held = entry.events[0].loss
        if not loss.within(held):
            raise ValueError(f"release {release.id} cost {loss.text()}, more than the {held.text()} held; it is booked")

    def _lost(self, budget: Budget) -> str:
        if budget.identity != self.identity:
            return "it is another ledger than the one that the search was reserved in"
        if budget.records < self.records:
            return f"it has {budget.records} records and had {self.records} then, as an older copy has"
        return "its records are others than then, as those of a copy are"

    def give_back(self, reason: str) -> None:
        """Return everything, if it was written: the search ended before it had drawn anything."""
        with self.ledger._store.adding(self.ledger.dataset) as (budget, more):
            for entry in budget.entries:
                if entry.id == self.id and entry.held:
                    more.append(_event(self.id, "returned", budget.cap.decided(0.0, entry.loss), reason=reason))


def _require_letters(name: str, text: str) -> None:
    """Refuse text that a file cannot hold, such as an argument in another encoding."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{name} must be text in UTF-8, got {text!r}") from None


def _stated(reason: str) -> str:
    if not isinstance(reason, str) or not reason.strip():
        raise ValueError("reason must say why, in words: it is recorded")
    return reason.strip()


def _event(entry: str, kind: Kind, loss: AnyLoss, release: Release | None = None, **said: Any) -> Event:
    """Return an event of today; a reservation has a release that is not made yet."""
    if release is not None:
        said |= {"release": release.to_json(indent=None), "release_id": None if kind == "reserved" else release.id}
    return Event(entry, kind, loss, today(), user(), **said)


def _written(budget: Budget, more: list[Event]) -> Budget:
    """Return the state as it was left; what was recorded is told, even if the file cannot be read once more."""
    return replace(budget, events=(*budget.events, *more))


def _cost(budget: Budget, release: Release) -> AnyLoss:
    """Return what a release is charged, or refuse what no budget like this one is charged for, however it comes in."""
    _require(budget, release.neighbours, release.delta, release.secure, release, UNCHARGED)
    return budget.cost(release)


def _require_no_more(entry: Entry, release: Release, loss: AnyLoss) -> None:
    """Refuse a release under an id for which less is charged: one of the two was changed."""
    if not loss.within(entry.loss):
        raise ValueError(
            f"release {release.id} is booked already, and {entry.loss.text()} is charged for it; this one says "
            f"{loss.text()}, so it is not the same"
        )
