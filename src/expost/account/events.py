"""What the events of a ledger amount to: entries, their losses, what is spent, held and left.

*Released*: a view, which is everything that anybody sees, in order: which searches are begun, what the ledger says,
what searches end in. *Neighbours*: those of the data set, the same for every search. *Searches*: search i, once begun,
computes an outcome from the rows with coins that are independent of all else, and shows nothing until it ends. Outcome
o has the ex-post loss 𝓔_i(o) ≤ w_i (`expost.account.composition`), and w_i is finite. Analysts, which may be many
people and processes, choose what to begin, and when to look, by what they have seen and by coins of their own.

*Theorem (the filter).* If at every moment Σ 𝓔_i(o_i) over the searches that have ended, plus Σ w_i over those that have
not, is at most the cap, then the view is cap-differentially private.

*Proof.* Take neighbours D, D′ and a view v of finitely many steps. Its probability, or density, is the product over its
steps of each one's given those before.

1. What an analyst does has the same factor under D and D′: it depends on the rows through what was seen alone. What the
   ledger says is a function of the steps before; its factor is 1.
2. Search i ends in o. Until then nothing was shown that depends on its coins, and they are independent of those of the
   searches beside it. So the factor is Pr[M_i(D) = o], whatever else is running and however i was chosen, and the
   factors under D and D′ have a log ratio of at most 𝓔_i(o). (If a search showed answers on its way, this would hold
   for each answer given its earlier ones, and its factors would multiply to the probability of its transcript: pure
   privacy composes concurrently. Searches that go on with a kept path are one such search, and what is charged for
   them adds up to no less than the loss of its transcript.)

So log Pr_D[v] − log Pr_D′[v] ≤ Σ 𝓔_i(o_i) over the searches that end in v, which at the last step of v is at most the
cap. This holds for every v, so it holds for every set of views of finitely many steps, and in the limit for views that
go on. ∎

*Why worst cases are held.* The condition has to hold whatever the outcomes will be. Ending replaces w_i by 𝓔_i(o_i) ≤
w_i, which raises no sum; so only reservations do, and they are admitted one at a time against all the others
(`Budget.admits`, inside a transaction of `store`), before a search draws anything. If nothing were held, two searches
side by side could each cost all that is left.

*A search that is killed* shows at most that it was. As far as that is a function of what its own mechanism revealed to
the process, it is an outcome of a w_i-private mechanism, and charging w_i covers it. To charge less is a decision:
right if nothing was seen of the search, or if what is charged is the loss of the outcome that was.

*With a δ.* Losses are curves then, and the cap is (ε, δ); the theorem and its proof stand in
`expost.account.loss`.

*In numbers.* Losses are floats, added exactly and rounded upwards once (`PureLoss.total`). Here are values only.
"""

from __future__ import annotations

import contextlib
import getpass
import json
import os
import socket
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal

from expost.account.composition import add_losses
from expost.account.loss import AnyLoss, Cap
from expost.release.release import Release


@dataclass(frozen=True)
class Process:
    """Who holds a reservation, by host and number, and by when it was started where the system tells.

    A decision that charges less than the worst case is right only if the search is over. Nothing is proved by what
    stands here: it keeps people from settling a search that is visibly still running.
    """

    host: str
    pid: int
    started: str | None = None

    @classmethod
    def this(cls) -> Process:
        """Return the process that asks."""
        return cls(socket.gethostname(), os.getpid(), _started(os.getpid()))

    @property
    def alive(self) -> bool:
        """Whether it is running on this host now."""
        if self.host != socket.gethostname() or not _exists(self.pid):
            return False
        now = _started(self.pid)
        return None in (now, self.started) or now == self.started

    def to_json(self) -> str:
        """Return one line of JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Process:
        """Read what :meth:`to_json` wrote; anything else is a ``ValueError``."""
        try:
            read = cls(**json.loads(text))
        except (TypeError, RecursionError):
            raise ValueError("not a process") from None
        named = isinstance(read.host, str) and isinstance(read.started, str | None)
        if not named or type(read.pid) is not int or not 0 < read.pid < 2**31:
            raise ValueError("not a process")
        return read


def user() -> str:
    """Return who is asking, by the name of the account."""
    try:
        return getpass.getuser()
    except (KeyError, ImportError, OSError):  # an account without a name, as in some containers
        return "unknown"


def _exists(pid: int) -> bool:
    if os.name != "posix":
        return False  # a signal would end it there; it is not seen to be running
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True  # it is somebody else's
    return True


def _started(pid: int) -> str | None:
    """Return the boot and the clock tick at which a process began; Linux alone tells."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        # the name of the command, in brackets, may hold spaces and brackets itself
        return f"{boot} {Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()[19]}"
    except (OSError, IndexError):
        return None


Kind = Literal["reserved", "settled", "returned", "decided", "booked"]


@dataclass(frozen=True)
class Event:
    """One line of a data set's history; nothing in a ledger is ever changed or deleted.

    Attributes
    ----------
    entry
        Of which search, or of which release where no search was reserved for.
    kind
        ``reserved``: the worst case of a search, before it begins. ``settled``: its ex-post loss. ``returned``: it
        ended before anything was drawn. ``decided``: somebody decided what a search that never ended is charged, or,
        where it is the first of its entry, what is charged for what a damaged file may have lost.
        ``booked``: a release that was made without the ledger.
    loss
        What the entry is charged from here on.
    day
        In UTC. No time: beside that of the reservation it would tell how long a search took.
    by
        Who ran the command.
    reason
        Of a decision, in words; of what was returned, the type of the error.
    release_id, release
        The release that was booked, as JSON; for a reservation, what an interruption of the search would release.
    process
        That holds the reservation.
    """

    entry: str
    kind: Kind
    loss: AnyLoss
    day: str
    by: str
    reason: str | None = None
    release_id: str | None = None
    release: str | None = field(default=None, repr=False)
    process: Process | None = None


@dataclass(frozen=True)
class Entry:
    """One search, or one release, and what it is charged."""

    id: str
    events: tuple[Event, ...]

    @cached_property
    def loss(self) -> AnyLoss:
        """What is charged now. A decision is raised by an outcome that turns up later and cost more, never lowered."""
        charged = self.events[0].loss
        decided = False
        for event in self.events[1:]:
            charged = charged.raised_to(event.loss) if decided else event.loss
            decided = decided or event.kind == "decided"
        return charged

    @property
    def held(self) -> bool:
        """Whether a worst case is held for a search that nobody has accounted for."""
        return self.events[-1].kind == "reserved"

    @property
    def release(self) -> str | None:
        """The JSON of the release, or of what an interruption would release while the entry is held."""
        return next((event.release for event in reversed(self.events) if event.release is not None), None)

    @property
    def release_id(self) -> str | None:
        """The id of the release that was booked."""
        return next((event.release_id for event in self.events if event.release_id is not None), None)


@dataclass(frozen=True)
class Budget:
    """The state of one data set: its cap, the unit it protects, and everything charged so far.

    ``identity`` and ``records`` tell its file from others and from older copies: a random text, and how long it is.

    Examples
    --------
    >>> from expost.account.loss import PureLoss
    >>> event = Event("a1f", "reserved", PureLoss(0.75), "2026-03-03", "ada")
    >>> budget = Budget("survey", "one household replaced", PureLoss(2.0), "2026-03-01", "ada", (event,))
    >>> budget.remaining, budget.admits(PureLoss(1.5))
    (PureLoss(epsilon=1.25), False)
    >>> print(budget)
    survey: 0.75 of 2 charged (0.75 of it held for searches not settled), 1.25 left; 1 entry; one household replaced
    """

    dataset: str
    unit: str
    cap: Cap
    day: str
    by: str
    events: tuple[Event, ...] = field(default=(), repr=False)
    identity: str = field(default="", repr=False, compare=False)
    records: int = field(default=0, repr=False, compare=False)

    def __str__(self) -> str:
        many = len(self.entries)
        held = f" ({self.held.text()} of it held for searches not settled)" if any(e.held for e in self.entries) else ""
        return (
            f"{self.dataset}: {self.total.text()} of {self.cap.text(rounding='down')} charged{held}, "
            f"{self.remaining.text(rounding='down')} left; {many} {'entry' if many == 1 else 'entries'}; {self.unit}"
        )

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        """The entries, in the order in which they were opened."""
        found: dict[str, list[Event]] = {}
        for event in self.events:
            found.setdefault(event.entry, []).append(event)
        return tuple(Entry(name, tuple(events)) for name, events in found.items())

    @cached_property
    def losses(self) -> tuple[AnyLoss, ...]:
        """What each entry is charged."""
        return tuple(entry.loss for entry in self.entries)

    @property
    def total(self) -> AnyLoss:
        """Everything charged: settled losses and held worst cases; never below the exact sum."""
        return self.cap.total(self.losses)

    @property
    def totals(self) -> Iterator[AnyLoss]:
        """What was charged with each entry and those before it."""
        return self.cap.totals(self.losses)

    @property
    def held(self) -> AnyLoss:
        """The worst cases held for searches that are not settled."""
        return self.cap.total(entry.loss for entry in self.entries if entry.held)

    @property
    def remaining(self) -> AnyLoss:
        """The largest worst case that may still be reserved."""
        return self.cap.left(self.losses)

    def ceiling(self, delta: float = 0.0, *, by_hand: bool = False) -> float:
        """Return the largest ``max_epsilon`` of a search at δ that may still begin."""
        return self.cap.ceiling(self.losses, delta, by_hand=by_hand)

    def admits(self, loss: AnyLoss) -> bool:
        """Return whether everything charged and this loss together are within the cap."""
        return self.cap.total([*self.losses, loss]).within(self.cap)

    def cost(self, release: Release) -> AnyLoss:
        """Return what a release costs here: one that goes on from another that is charged, what it says it adds.

        That has to be enough beside what the other says it cost, or all of it counts.
        """
        base, enough = release.continues, False
        for entry in self.entries if base is not None else ():
            if entry.release_id == base and entry.release is not None:
                with contextlib.suppress(ValueError):  # one that cannot be read is not gone on from
                    before = Release.from_json(entry.release).epsilon
                    enough = add_losses(before, release.epsilon_increment) >= release.epsilon
        return self.cap.charged(release, {base} if enough and base is not None else set())

    def entry(self, name: str) -> Entry:
        """Return the entry of that id, or of the one id that begins so.

        Raises
        ------
        ValueError
            None or several begin so.
        """
        exact = [entry for entry in self.entries if name in (entry.id, entry.release_id)]
        close = [e for e in self.entries if e.id.startswith(name) or (e.release_id or "").startswith(name)]
        found = exact or (close if name else [])
        if len(found) != 1:
            here = f"of data set {self.dataset!r}"
            who = f"no entry {here} has" if not found else f"{len(found):,} entries {here} have"
            raise ValueError(f"{who} an id that begins with {name!r}")
        return found[0]
