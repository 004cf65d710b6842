"""The file of a ledger: SQLite with a write-ahead log, to which events are only ever added.

What the guarantee needs of it: an event is on the disk when `adding` has come to its end and not before (one
transaction, ``synchronous=FULL``), and between reading the events and adding one nobody else adds any
(``BEGIN IMMEDIATE``). Killed at any moment, a process leaves the events before its transaction or all of it.
Losses are text, exact to the last bit; the file refuses to change or delete what is in it.

A connection lives as long as one call: nothing is shared with forked processes, and nothing has to be closed.
"""

from __future__ import annotations

import contextlib
import datetime
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from expost.exceptions import LedgerUnavailable
from expost.privacy.ledger.budget import Budget, Event, Kind
from expost.privacy.ledger.process import Process, user
from expost.privacy.loss import PrivacyLoss, loss_from_json

APPLICATION, FORMAT = 0x65787073, 1  # "exps": how the file says whose it is
PATIENCE = 60.0  # seconds to wait for another process; each holds the lock for milliseconds

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
_FOR_EVER = "CREATE TRIGGER {table}_{verb} BEFORE {verb} ON {table} BEGIN SELECT RAISE(ABORT, 'kept for ever'); END"
_COLUMNS = "entry, kind, loss, day, by, reason, release_id, release, process"


def today() -> str:
    """Return the day in UTC."""
    return datetime.datetime.now(datetime.UTC).date().isoformat()


@dataclass(frozen=True)
class Store:
    """The events in a file."""

    path: Path

    def create(self, name: str, unit: str, cap: PrivacyLoss) -> None:
        """Add a data set, to a new file or to a ledger that is there.

        Raises
        ------
        ValueError
            The file is something else, or has that data set already: a budget is stated once.
        """
        with self._connection("rwc") as connection, _writing(connection):
            if _is_empty(connection):
                for statement in filter(str.strip, _TABLES.split(";")):
                    connection.execute(statement)
                for table in ("datasets", "events"):
                    for verb in ("UPDATE", "DELETE"):
                        connection.execute(_FOR_EVER.format(table=table, verb=verb))
                connection.execute(f"PRAGMA application_id = {APPLICATION}")
                connection.execute(f"PRAGMA user_version = {FORMAT}")
            if _names(connection, name):
                kept = _budget(connection, name)
                raise ValueError(
                    f"{self.path} has a data set {name!r} already, whose cap is "
                    f"{kept.cap.text(rounding='down')}; a budget is stated once and cannot be stated anew"
                )
            row = (name, unit, cap.to_json(), today(), user())
            connection.execute("INSERT INTO datasets (name, unit, cap, day, by) VALUES (?, ?, ?, ?, ?)", row)

    def datasets(self) -> tuple[str, ...]:
        """Return the names of the data sets."""
        with self._connection("rw") as connection:
            return _names(connection)

    def read(self, name: str) -> Budget:
        """Return the state of a data set."""
        with self._connection("rw") as connection:
            return self._found(connection, name)

    @contextlib.contextmanager
    def adding(self, name: str) -> Iterator[tuple[Budget, list[Event]]]:
        """Yield the state and a list: what is put in it is added, all or nothing, before anybody else adds any.

        Nothing is added if the block raises.
        """
        with self._connection("rw") as connection, _writing(connection):
            more: list[Event] = []
            yield self._found(connection, name), more
            for event in more:
                process = None if event.process is None else event.process.to_json()
                loss, said = event.loss.to_json(), (event.reason, event.release_id, event.release, process)
                row = (name, event.entry, event.kind, loss, event.day, event.by, *said)
                marks = ", ".join("?" * len(row))
                connection.execute(f"INSERT INTO events (dataset, {_COLUMNS}) VALUES ({marks})", row)

    def _found(self, connection: sqlite3.Connection, name: str) -> Budget:
        known = _names(connection)
        if name not in known:
            has = ", ".join(map(repr, known)) or "none"
            raise ValueError(f"{self.path} has no data set {name!r}; it has {has} (expost ledger create adds one)")
        return _budget(connection, name)

    @contextlib.contextmanager
    def _connection(self, mode: str) -> Iterator[sqlite3.Connection]:
        if mode != "rwc" and not self.path.is_file():
            raise ValueError(f"there is no ledger {self.path}; expost ledger create makes one")
        try:
            connection = sqlite3.connect(
                f"{self.path.absolute().as_uri()}?mode={mode}", uri=True, timeout=PATIENCE, isolation_level=None
            )
            with contextlib.closing(connection):
                if not _is_empty(connection):
                    _check(connection, self.path)
                elif mode != "rwc":
                    raise ValueError(f"{self.path} is no ledger of expost")
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = FULL")
                yield connection
        except sqlite3.DatabaseError as error:
            if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_NOTADB:
                raise ValueError(f"{self.path} is no ledger of expost") from None
            raise LedgerUnavailable(f"the ledger {self.path} cannot be used: {error}") from None


@contextlib.contextmanager
def _writing(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _is_empty(connection: sqlite3.Connection) -> bool:
    return not connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()


def _check(connection: sqlite3.Connection, path: Path) -> None:
    if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION:
        raise ValueError(f"{path} is no ledger of expost")
    if connection.execute("PRAGMA user_version").fetchone()[0] != FORMAT:
        raise ValueError(f"{path} was written by another version of expost")


def _names(connection: sqlite3.Connection, name: str | None = None) -> tuple[str, ...]:
    rows = connection.execute("SELECT name FROM datasets ORDER BY rowid").fetchall()
    return tuple(row[0] for row in rows if name in (None, row[0]))


def _budget(connection: sqlite3.Connection, name: str) -> Budget:
    query = "SELECT name, unit, cap, day, by FROM datasets WHERE name = ?"
    dataset, unit, cap, day, by = connection.execute(query, (name,)).fetchone()
    rows = connection.execute(f"SELECT {_COLUMNS} FROM events WHERE dataset = ? ORDER BY number", (name,))
    return Budget(dataset, unit, loss_from_json(cap), day, by, tuple(_event(*row) for row in rows))


def _event(entry: str, kind: Kind, loss: str, day: str, by: str, *said: str | None) -> Event:
    reason, release_id, release, process = said
    holder = None if process is None else Process.from_json(process)
    return Event(entry, kind, loss_from_json(loss), day, by, reason, release_id, release, holder)
