"""The file of a ledger: an SQLite database to which events are only ever added, in a chain of checksums.

What the guarantee needs of it: an event is on the disk when `adding` has come to its end and not before (one
transaction, ``synchronous=EXTRA``), and between reading the events and adding one nobody else adds any
(``BEGIN IMMEDIATE``). Killed at any moment, a process leaves the events before its transaction or all of it.
Losses are text, exact to the last bit; the file refuses to change or delete what is in it. What is committed is in the
file itself, not in a log beside it (``journal_mode=DELETE``), so that nothing is lost with a companion. A journal is
found by the file's name, so a file has one name only; SQLite follows symbolic links to it.

*The chain.* Each row of a data set or an event has a link: the SHA-256 of the link before and of everything in the row,
from a random one that tells this ledger from others. Whoever opens the file computes them anew, from the rows alone. If
the last is not as it stands there, or a row has no link, something was changed or lost, and nothing is taken until
somebody decides (`Store.repair`), which is an event like others: its link is about the rows as they were found. It is
no seal: who means to can compute links as well.

A connection lives as long as one call: nothing is shared with forked processes, and nothing has to be closed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import secrets
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

from expost.account.composition import add_losses
from expost.account.events import Budget, Event, Kind, Process, user
from expost.account.loss import AnyLoss, Cap, loss_from_json
from expost.exceptions import LedgerUnavailable
from expost.release.release import Release, today
from expost.shown import up

APPLICATION, FORMAT, UNCHAINED = 0x65787073, 2, 1  # "exps": how the file says whose it is
PATIENCE = 60.0  # seconds to wait for another process; each holds the lock for milliseconds
ONCE_MORE = 1.0  # for who has waited in vain: a release is on its way to its caller

#: Errors that are about what is around a file: its disk, its folder, other processes. Any other is about its content,
#: and SQLite's words for it may quote that.
_OUTSIDE = {
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PROTOCOL,
}
_UNREADABLE = "the ledger {} cannot be read; restore a copy of it"

_TABLES = """
CREATE TABLE datasets (
    name TEXT PRIMARY KEY NOT NULL, unit TEXT NOT NULL, cap TEXT NOT NULL, day TEXT NOT NULL, by TEXT NOT NULL
);
CREATE TABLE events (
    number INTEGER PRIMARY KEY AUTOINCREMENT, dataset TEXT NOT NULL REFERENCES datasets (name), entry TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('reserved', 'settled', 'returned', 'decided', 'booked')), loss TEXT NOT NULL,
    day TEXT NOT NULL, by TEXT NOT NULL, reason TEXT, release_id TEXT, release TEXT, process TEXT,
    UNIQUE (dataset, entry, kind), UNIQUE (dataset, release_id)
);
"""
_CHAIN = """
CREATE TABLE chain (
    position INTEGER PRIMARY KEY AUTOINCREMENT, dataset TEXT, event INTEGER, checksum TEXT NOT NULL
);
"""
_FOR_EVER = "CREATE TRIGGER {table}_{verb} BEFORE {verb} ON {table} BEGIN SELECT RAISE(ABORT, 'kept for ever'); END"
_HAS_CHAIN = "SELECT 1 FROM sqlite_master WHERE name = 'chain'"
_COLUMNS = "entry, kind, loss, day, by, reason, release_id, release, process"


@dataclass
class _Content:
    """Everything in a file: rows by name and number, and the chain over them; empty in a file from before it."""

    datasets: dict[str, tuple[Any, ...]]
    events: dict[int, tuple[Any, ...]]
    links: list[tuple[str | None, int | None, str]]

    @classmethod
    def read(cls, connection: sqlite3.Connection) -> _Content:
        """Read it without indices, which would hide rows if damaged; the order is that of the numbers, not of pages."""
        datasets = connection.execute("SELECT name, unit, cap, day, by FROM datasets NOT INDEXED ORDER BY rowid")
        events = sorted(connection.execute(f"SELECT number, dataset, {_COLUMNS} FROM events NOT INDEXED"), key=_number)
        rows = {row[0]: row for row in datasets}, {row[0]: row for row in events}
        if _format(connection) == UNCHAINED and not connection.execute(_HAS_CHAIN).fetchone():
            return cls(*rows, [])
        chain = sorted(connection.execute("SELECT position, dataset, event, checksum FROM chain"), key=_number)
        return cls(*rows, [link[1:] for link in chain] or [(None, None, "")])

    def __post_init__(self) -> None:
        """Compute the chain anew, and tell which rows are wrong: those that their links as stored do not fit."""
        self.last, right = self.identity, 0
        for place, (dataset, event, checksum) in enumerate(self.links[1:], start=1):
            self.last = _linked(self.last, self._row(dataset, event))
            right = place if self.last == checksum else right
        self.wrong: list[tuple[str | None, int | None]] = [
            (dataset, event)
            for (_, _, before), (dataset, event, checksum) in pairwise(self.links[right:])
            if checksum != _linked(before, self._row(dataset, event))
        ]
        unlinked = set(self.datasets) - {link[0] for link in self.links[1:] if link[1] is None}
        self.unlinked: list[tuple[str | None, int | None]] = [
            (name, None) for name in self.datasets if name in unlinked
        ]
        self.unlinked += [
            (None, number) for number in sorted(self.events.keys() - {link[1] for link in self.links[1:]})
        ]
        self.damage = ""
        if self.links and (self.wrong or self.unlinked):
            dataset, event = (self.wrong or self.unlinked)[0]
            which = f"event {event}" if event is not None else f"data set {dataset!r}, its cap or its unit"
            self.damage = f"{which} is not as it was recorded, or not there"

    def hit(self) -> set[str]:
        """Return the data sets whose events may be wrong; all of them if one is lost or says another name."""
        if not self.identity:
            return set(self.datasets)
        events = [self.events.get(number) for _, number in (*self.wrong, *self.unlinked) if number is not None]
        names = {row[1] if row is not None and row[1] in self.datasets else None for row in events}
        return set(self.datasets) if None in names else {str(name) for name in names}

    @property
    def identity(self) -> str:
        """What tells this ledger from others."""
        return self.links[0][2] if self.links else ""

    def _row(self, dataset: str | None, event: int | None) -> tuple[Any, ...] | None:
        return self.datasets.get(dataset or "") if event is None else self.events.get(event)

    def link(self, connection: sqlite3.Connection, dataset: str | None, event: int | None = None) -> None:
        """Add a link for a row that is there."""
        if not self.links:
            self.links.append((None, None, secrets.token_hex(32)))
            self.last = self.identity
            connection.execute("INSERT INTO chain (checksum) VALUES (?)", (self.identity,))
        self.last = _linked(self.last, self._row(dataset, event))
        self.links.append((dataset, event, self.last))
        query = "INSERT INTO chain (dataset, event, checksum) VALUES (?, ?, ?)"
        connection.execute(query, (dataset, event, self.last))

    def add(self, connection: sqlite3.Connection, dataset: str, event: Event) -> None:
        """Add an event and its link."""
        process = None if event.process is None else event.process.to_json()
        loss, said = event.loss.to_json(), (event.reason, event.release_id, event.release, process)
        row = (dataset, event.entry, event.kind, loss, event.day, event.by, *said)
        marks = ", ".join("?" * len(row))
        number = connection.execute(f"INSERT INTO events (dataset, {_COLUMNS}) VALUES ({marks})", row).lastrowid
        assert number is not None
        self.events[number] = (number, *row)
        self.link(connection, None, number)

    def budget(self, name: str) -> Budget:
        """Return the state of a data set, from rows that were read field by field."""
        _, unit, cap, day, by = self.datasets[name]
        about = f"data set {name!r}"
        try:
            limit = loss_from_json(_text(cap))
            kind, told = type(limit.total([])), (_text(unit), limit, _text(day), _text(by))
            events = []
            for row in self.events.values():
                if row[1] == name:
                    about = f"event {row[0]}"
                    events.append(_event(kind, *row[2:]))
        except (ValueError, NotImplementedError):
            raise LedgerUnavailable(f"{about} cannot be read; restore a copy of the ledger") from None
        return Budget(name, *told, tuple(events), self.identity, len(self.links))


@dataclass(frozen=True)
class Store:
    """The events in a file; ``patience`` says how many seconds another process is waited for."""

    path: Path
    patience: float = field(default_factory=lambda: PATIENCE)

    def create(self, name: str, unit: str, cap: Cap) -> None:
        """Add a data set, to a new file or to a ledger that is there.

        Raises
        ------
        ValueError
            The file is something else, or has that data set already: a budget is stated once.
        """
        with self._or_nothing(), self._connection("rwc") as connection, _transaction(connection, "IMMEDIATE"):
            if _is_empty(connection):
                for statement in filter(str.strip, _TABLES.split(";")):
                    connection.execute(statement)
                _keep_for_ever(connection, "datasets", "events")
                connection.execute(f"PRAGMA application_id = {APPLICATION}")
                connection.execute(f"PRAGMA user_version = {UNCHAINED}")
            content = self._sound(connection, chained=True)
            if name in content.datasets:
                kept = content.budget(name)
                raise ValueError(
                    f"{self.path} has a data set {name!r} already, whose cap is "
                    f"{kept.cap.text(rounding='down')}; a budget is stated once and cannot be stated anew"
                )
            row = (name, unit, cap.to_json(), today(), user())
            connection.execute("INSERT INTO datasets (name, unit, cap, day, by) VALUES (?, ?, ?, ?, ?)", row)
            content.datasets[name] = row
            content.link(connection, name)

    @contextlib.contextmanager
    def _or_nothing(self) -> Iterator[None]:
        """Leave no empty file behind if a new ledger cannot be written."""
        new = not self.path.exists()
        try:
            yield
        except BaseException:
            if new and self.path.exists() and self.path.stat().st_size == 0:
                self.path.unlink()
            raise

    def datasets(self) -> tuple[str, ...]:
        """Return the names of the data sets, as the file has them."""
        with self._connection("rw") as connection:
            return tuple(map(str, _Content.read(connection).datasets))

    def read(self, name: str) -> Budget:
        """Return the state of a data set."""
        with self._connection("rw") as connection, _transaction(connection, "DEFERRED"):
            return self._found(self._sound(connection), name)

    @contextlib.contextmanager
    def adding(self, name: str) -> Iterator[tuple[Budget, list[Event]]]:
        """Yield the state and a list: what is put in it is added, all or nothing, before anybody else adds any.

        Nothing is added if the block raises.
        """
        with self._connection("rw") as connection, _transaction(connection, "IMMEDIATE"):
            more: list[Event] = []
            content = self._sound(connection, chained=True)
            yield self._found(content, name), more
            for event in more:
                content.add(connection, name, event)

    def damage(self) -> str:
        """Return what is wrong with the chain, in words, or nothing; no repair helps a file that takes nothing more."""
        with self._connection("rw") as connection, _transaction(connection, "DEFERRED"):
            if connection.execute("PRAGMA integrity_check(1)").fetchone() != ("ok",):
                raise LedgerUnavailable(_UNREADABLE.format(self.path))
            return _Content.read(connection).damage

    def repair(self, name: str, epsilon: float, reason: str) -> str:
        """Take the rows as they are from here on and charge a data set for what may be lost; returns what was wrong.

        No decision makes up for a cap or a unit that may have changed, and one about this data set says nothing about
        another: both are refused. What is charged is at least what the releases of wrong events say beyond them.
        """
        with self._connection("rw") as connection, _transaction(connection, "IMMEDIATE"):
            content = _Content.read(connection)
            if not content.damage:
                raise ValueError(f"{self.path} is as it was recorded; there is nothing to repair")
            budget = self._found(content, name)
            stated = {dataset for dataset, event in (*content.wrong, *content.unlinked) if event is None}
            if (stated and content.identity) or any(row[1] not in content.datasets for row in content.events.values()):
                raise LedgerUnavailable(
                    f"what {self.path} says of a data set, its name, cap or unit, is not as it was recorded; restore a "
                    f"copy of the ledger"
                )
            others = sorted(content.hit() - {name})
            if others:
                raise ValueError(
                    f"data sets {', '.join(map(repr, [name, *others]))} of {self.path} may all be wrong, and a "
                    f"decision about one says nothing about the others; restore a copy of the ledger"
                )
            numbers = {number for _, number in (*content.wrong, *content.unlinked)}
            least = _understated(budget, [row for key, row in content.events.items() if key in numbers])
            if epsilon < least:
                raise ValueError(f"the releases in the ledger cost {up(least)} more than it says; state at least that")
            if not content.identity:  # all of the chain is lost
                content.links.clear()
            for dataset, number in content.unlinked:
                content.link(connection, dataset, number)
            loss = budget.cap.decided(epsilon, budget.cap.total([]))
            why = f"{reason} (a repair: {content.damage})"
            event = Event(secrets.token_hex(8), "decided", loss, today(), user(), reason=why)
            content.add(connection, name, event)
            return content.damage

    def _sound(self, connection: sqlite3.Connection, *, chained: bool = False) -> _Content:
        """Return what the file has if its chain is right; one from before there were chains gets its first to write."""
        content = _Content.read(connection)
        if content.damage:
            raise LedgerUnavailable(
                f"the ledger {self.path} was damaged or changed: {content.damage}. It takes nothing until somebody "
                f"decides: restore a copy, or see expost ledger verify and expost ledger repair"
            )
        if chained and not content.links:
            connection.execute(_CHAIN)
            _keep_for_ever(connection, "chain")
            for name in content.datasets:
                content.link(connection, name)
            for number in content.events:
                content.link(connection, None, number)
            connection.execute(f"PRAGMA user_version = {FORMAT}")
        return content

    def _found(self, content: _Content, name: str) -> Budget:
        if name not in content.datasets:
            has = ", ".join(map(repr, content.datasets)) or "none"
            raise ValueError(f"{self.path} has no data set {name!r}; it has {has} (expost ledger create adds one)")
        return content.budget(name)

    @contextlib.contextmanager
    def _connection(self, mode: str) -> Iterator[sqlite3.Connection]:
        if self.path.is_dir():
            raise ValueError(f"{self.path} is a folder; a ledger is a file in one")
        if mode != "rwc" and not self.path.is_file():
            raise ValueError(f"there is no ledger {self.path}; expost ledger create makes one")
        if self.path.exists() and self.path.stat().st_nlink > 1:
            raise LedgerUnavailable(
                f"the ledger {self.path} has {self.path.stat().st_nlink} names, and a process that uses another would "
                f"not see what this one has begun to write; remove all hard links to it but one"
            )
        try:
            connection = sqlite3.connect(
                f"{self.path.absolute().as_uri()}?mode={mode}", uri=True, timeout=self.patience, isolation_level=None
            )
            with contextlib.closing(connection):
                if not _is_empty(connection):
                    _check(connection, self.path)
                elif mode != "rwc":
                    raise ValueError(f"{self.path} is no ledger of expost")
                with contextlib.suppress(sqlite3.OperationalError):  # others have a log of an earlier version open
                    connection.execute("PRAGMA journal_mode = DELETE")
                connection.execute("PRAGMA synchronous = EXTRA")
                yield connection
        except UnicodeDecodeError:
            raise LedgerUnavailable(_UNREADABLE.format(self.path)) from None
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            if code == sqlite3.SQLITE_NOTADB:
                raise ValueError(f"{self.path} is no ledger of expost") from None
            if code in _OUTSIDE:
                raise LedgerUnavailable(f"the ledger {self.path} cannot be used: {error}") from None
            raise LedgerUnavailable(_UNREADABLE.format(self.path)) from None


@contextlib.contextmanager
def _transaction(connection: sqlite3.Connection, kind: str) -> Iterator[None]:
    connection.execute(f"BEGIN {kind}")
    try:
        yield
    except BaseException:
        with contextlib.suppress(sqlite3.Error):  # which would hide what happened
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _is_empty(connection: sqlite3.Connection) -> bool:
    return not connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()


def _format(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _check(connection: sqlite3.Connection, path: Path) -> None:
    if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION:
        raise ValueError(f"{path} is no ledger of expost")
    if _format(connection) not in (UNCHAINED, FORMAT):
        raise ValueError(f"{path} was written by another version of expost")


def _keep_for_ever(connection: sqlite3.Connection, *tables: str) -> None:
    for table in tables:
        for verb in ("UPDATE", "DELETE"):
            connection.execute(_FOR_EVER.format(table=table, verb=verb))


def _number(row: tuple[Any, ...]) -> int:
    return row[0] if isinstance(row[0], int) else 0  # in a damaged file it may be anything


def _linked(before: str, row: tuple[Any, ...] | None) -> str:
    """Return the link of a row after another; of one that is lost as well."""
    return hashlib.sha256(json.dumps([before, row], default=repr).encode()).hexdigest()


def _understated(budget: Budget, rows: list[tuple[Any, ...]]) -> float:
    """Return how much more the releases of events cost than the events say, as far as they can be read.

    That of an event is what it would be charged if it were recorded now, after the events before it. A reservation
    counts as what an interruption of its search would release, as long as that is what is charged.
    """
    wrong, short = {(row[2], row[3]) for row in rows}, 0.0
    held = {entry.id for entry in budget.entries if entry.held}
    for place, event in enumerate(budget.events):
        counts = event.release_id is not None or event.entry in held
        if (event.entry, event.kind) in wrong and event.release is not None and counts:
            with contextlib.suppress(ValueError):
                before = replace(budget, events=budget.events[:place])
                cost: Any = before.cost(Release.from_json(event.release))
                says: Any = budget.cap.total([event.loss])
                short = add_losses(short, max(0.0, add_losses(cost.epsilon, -says.epsilon)))
    return short


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("not a text")
    return value


def _event(of: type[AnyLoss], entry: Any, kind: Any, loss: Any, day: Any, by: Any, *said: Any) -> Event:
    """Return an event from what a row has, whatever that is; ``of`` is what losses of its budget are."""
    cost = loss_from_json(_text(loss))
    if kind not in get_args(Kind) or not isinstance(cost, of):
        raise ValueError("not an event of this budget")
    reason, release_id, release, process = (None if value is None else _text(value) for value in said)
    holder = None if process is None else Process.from_json(process)
    return Event(_text(entry), kind, cost, _text(day), _text(by), reason, release_id, release, holder)
