"""The file of a ledger: damaged, restored, replaced, linked or of an earlier version, it says so or is right."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import os
import random
import shutil
import sqlite3

import pytest

from expost import Ledger
from expost.account import ledger_file as store
from expost.account.account import Account
from expost.account.events import Process
from expost.account.loss import PureLoss
from expost.cli import main
from expost.exceptions import LedgerUnavailable
from tests.account.ledger_helpers import charged, new_ledger, released

FLIPS = 2000


def filled(folder, entries=40, **options):
    """Return a ledger with entries of both kinds, on several pages."""
    ledger = new_ledger(folder, cap=100.0, **options)
    for number in range(entries // 2):
        ledger.book(released(0.25 + number / 8))
        ledger.reserve(0.5 + number / 8)
    return ledger


def says(ledger) -> PureLoss | None:
    """Return what is charged as the file says it, or nothing if it says that something is wrong."""
    try:
        return ledger.budget.total
    except (ValueError, OSError):
        return None


def flipped(content: bytes, bit: int) -> bytes:
    changed = bytearray(content)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


class TestDamage:
    def test_one_flipped_bit_never_lowers_a_sum_in_silence(self, tmp_path):
        ledger = filled(tmp_path)
        expected, content, lots = ledger.budget.total, ledger.path.read_bytes(), random.Random(7)
        assert [path.name for path in tmp_path.iterdir()] == ["ledger.db"]  # all of it is in one file
        noticed = 0
        for _ in range(FLIPS):
            ledger.path.write_bytes(flipped(content, lots.randrange(8 * len(content))))
            found = says(ledger)
            assert found in (None, expected)
            noticed += found is None
        assert noticed > FLIPS / 4

    def test_what_is_called_sound_takes_what_comes_next(self, tmp_path):
        """Indices are not in the chain: rows are read without them, and written with them."""
        ledger = filled(tmp_path)
        content, lots, more = ledger.path.read_bytes(), random.Random(7), released(0.125)
        with contextlib.closing(sqlite3.connect(ledger.path)) as connection:
            roots = [row[0] for row in connection.execute("SELECT rootpage FROM sqlite_master WHERE type = 'index'")]
        noticed = 0
        for _ in range(60):
            bit = 8 * 4096 * (lots.choice(roots) - 1) + lots.randrange(8 * 4096)
            ledger.path.write_bytes(flipped(content, bit))
            try:
                assert Ledger.damage(ledger.path) == ""
            except LedgerUnavailable:
                noticed += 1
            else:
                assert ledger.book(more).loss.epsilon == 0.125
        assert 10 < noticed < 60

    def test_nothing_of_what_cannot_be_read_is_quoted(self, tmp_path, capsys):
        ledger = new_ledger(tmp_path)
        ledger.book(dataclasses.replace(released(0.5), claims=("told to nobody",)))
        content = ledger.path.read_bytes().replace(b"told to nobody", b"told to \xffobody")
        ledger.path.write_bytes(content)
        for action in ("verify", "show", "export"):
            assert main(["ledger", action, str(ledger.path)]) == 2
            said = capsys.readouterr()
            assert said.err == f"expost: the ledger {ledger.path} cannot be read; restore a copy of it\n"

    def test_nor_do_two_pages_that_were_exchanged(self, tmp_path, monkeypatch):
        """The first and the last event of an entry on pages in the wrong order: a decision after an outcome lowers."""
        monkeypatch.setattr(Process, "alive", False)
        ledger = new_ledger(tmp_path, cap=100.0)
        outcome = released(1.9)
        held = ledger.reserve(2.0, held=outcome)
        ledger.decide(held.id, 0.0, reason="killed")
        for _ in range(9):
            ledger.book(dataclasses.replace(released(0.01), claims=("x" * 900,)))
        ledger.book(outcome)
        expected, content = ledger.budget.total, ledger.path.read_bytes()
        pages = [content[start : start + 4096] for start in range(0, len(content), 4096)]
        found = set()
        for first, second in itertools.combinations(range(1, len(pages)), 2):
            order = list(range(len(pages)))
            order[first], order[second] = second, first
            ledger.path.write_bytes(b"".join(pages[place] for place in order))
            found.add(says(ledger))
        assert expected in found  # some exchanges are harmless, as the numbers tell the order
        assert found == {None, expected}

    def test_nor_does_one_in_the_journal_of_a_process_that_was_killed(self, tmp_path):
        """What the transaction found is put back from the journal; a damaged one is noticed or does no harm."""
        ledger = filled(tmp_path)
        before, content = ledger.budget.total, ledger.path.read_bytes()
        connection = sqlite3.connect(ledger.path, isolation_level=None)
        connection.execute("PRAGMA cache_size = 1")  # pages go to the file before the transaction ends
        connection.execute("PRAGMA cache_spill = ON")
        with store._transaction(connection, "IMMEDIATE"):
            content_of = store._Content.read(connection)
            for number in range(30):
                event = store.Event(f"{number}" * 400, "booked", PureLoss(1.0), "2026-01-01", "ada", release="x" * 3000)
                content_of.add(connection, "survey", event)
            (journal,) = [path for path in tmp_path.iterdir() if path.name != "ledger.db"]
            torn, kept = ledger.path.read_bytes(), journal.read_bytes()
        connection.close()
        assert torn != content
        lots = random.Random(8)
        for attempt in range(200):
            ledger.path.write_bytes(torn)
            journal.write_bytes(kept if attempt == 0 else flipped(kept, lots.randrange(8 * len(kept))))
            found = says(ledger)
            assert found in (before,) if attempt == 0 else found is None or found.epsilon >= before.epsilon
            journal.unlink(missing_ok=True)

    def test_it_takes_nothing_until_somebody_decides_which_is_recorded(self, tmp_path):
        ledger = new_ledger(tmp_path)
        ledger.book(released(0.75))
        assert Ledger.damage(ledger.path) == ""
        with pytest.raises(ValueError, match="nothing to repair"):
            ledger.repair(0.0, reason="why not")
        change(ledger.path, "UPDATE events SET loss = replace(loss, 'p-1', 'p-3')")
        for use in (
            lambda: ledger.budget,
            lambda: ledger.reserve(0.1),
            lambda: ledger.book(released(0.1)),
            lambda: Ledger.create(ledger.path, "census", cap=1.0),
        ):
            with pytest.raises(LedgerUnavailable, match="was damaged or changed: event 1 is not as it was recorded"):
                use()
        assert "event 1" in Ledger.damage(ledger.path)
        with pytest.raises(ValueError, match="reason must say why"):
            ledger.repair(0.5, reason=" ")
        ledger.repair(0.625, reason="the release in the archive says 0.75")
        assert Ledger.damage(ledger.path) == ""
        assert charged(ledger) == [0.1875, 0.625]
        assert "the release in the archive says 0.75 (a repair: event 1" in ledger.budget.events[-1].reason
        ledger.book(released(0.25))
        assert charged(ledger) == [0.1875, 0.625, 0.25]
        change(ledger.path, "UPDATE events SET day = '2020-01-01' WHERE number = 3")
        assert "event 3" in Ledger.damage(ledger.path)

    @pytest.mark.parametrize(
        "statement",
        [
            "DELETE FROM events WHERE number = 3",
            "DELETE FROM events WHERE number = 1",
            "INSERT INTO events SELECT 9, dataset, 'x', kind, loss, day, by, NULL, NULL, NULL, NULL FROM events"
            " LIMIT 1",
            "DELETE FROM chain WHERE position = (SELECT max(position) FROM chain)",
            "DELETE FROM chain",
            "UPDATE chain SET checksum = 'f' WHERE position = 5",
        ],
    )
    def test_whatever_is_changed_or_lost_is_noticed_and_can_be_repaired(self, tmp_path, statement):
        ledger = new_ledger(tmp_path)
        for _ in range(3):
            ledger.book(released(0.25))
        change(ledger.path, statement)
        assert says(ledger) is None
        assert Ledger.damage(ledger.path)
        ledger.repair(0.5, reason="lost")
        assert Ledger.damage(ledger.path) == ""
        assert ledger.budget.total.epsilon >= 0.75

    @pytest.mark.parametrize(
        "statement",
        [
            "DELETE FROM datasets WHERE name = 'census'",
            "UPDATE datasets SET cap = replace(cap, 'p+1', 'p+3')",
            "UPDATE datasets SET unit = 'one cell replaced'",
            "INSERT INTO datasets SELECT 'b', unit, cap, day, by FROM datasets WHERE name = 'survey'",
            "UPDATE chain SET checksum = 'f' WHERE position = 1",
        ],
    )
    def test_what_a_data_set_is_about_is_not_repaired_away(self, tmp_path, statement):
        """A cap, a unit or a whole data set: no charge makes up for one that may have changed."""
        ledger = new_ledger(tmp_path)
        Ledger.create(ledger.path, "census", cap=1.0).book(released(0.5))
        change(ledger.path, statement)
        with pytest.raises(LedgerUnavailable, match="restore a copy"):
            ledger.repair(0.5, reason="lost")
        assert says(ledger) is None

    def test_a_repair_lowers_no_other_data_set(self, tmp_path):
        ledger = new_ledger(tmp_path)
        ledger.book(released(0.75))
        other = Ledger.create(ledger.path, "census", cap=1.0)
        other.book(released(0.5))
        change(ledger.path, "UPDATE events SET loss = replace(loss, 'p-1', 'p-3') WHERE dataset = 'census'")
        assert "event 2" in Ledger.damage(ledger.path)
        with pytest.raises(ValueError, match=r"'survey', 'census' .* says nothing about the others"):
            ledger.repair(0.25, reason="a disk error")
        with pytest.raises(ValueError, match=r"cost 0\.375 more than it says; state at least that"):
            other.repair(0.25, reason="a disk error")
        other.repair(0.375, reason="what its release says")
        assert (charged(ledger), sum(charged(other))) == ([0.75], 0.5)

    @pytest.mark.parametrize(("base_is_charged", "least"), [(False, "0.5"), (True, "0.125")])
    def test_a_release_that_goes_on_from_another_is_repaired_by_what_it_was_charged(
        self, tmp_path, base_is_charged, least
    ):
        """All that it says it cost, unless the one that it goes on from is charged before it."""
        first = released(0.375)
        later = released(0.625).with_details(parameters={"continues": first.id, "epsilon_increment": 0.25})
        ledger = new_ledger(tmp_path)
        for release in (first, later) if base_is_charged else (later, first):
            ledger.book(release)
        before = sum(charged(ledger))
        change(ledger.path, f"UPDATE events SET loss = '{PureLoss(0.125).to_json()}' WHERE entry = '{later.id}'")
        for too_little in (0.0, float(least) - 1e-9):
            with pytest.raises(ValueError, match=rf"cost {least} more than it says; state at least that"):
                ledger.repair(too_little, reason="nothing is missing")
        ledger.repair(float(least), reason="what its release says")
        assert sum(charged(ledger)) == before

    def test_a_worst_case_that_is_held_is_repaired_as_well(self, tmp_path):
        ledger = new_ledger(tmp_path)
        for epsilon in (0.75, 1.0):
            held = Account("by hand", worst_case=epsilon, secure=True).interrupted()
            reserved = ledger.reserve(epsilon, held=held)
        reserved.settle(dataclasses.replace(held, epsilon_generation=0.25))  # which no longer holds anything
        change(ledger.path, f"UPDATE events SET loss = '{PureLoss(0.125).to_json()}' WHERE kind = 'reserved'")
        with pytest.raises(ValueError, match=r"cost 0\.625 more than it says"):
            ledger.repair(0.0, reason="nothing is missing")
        ledger.repair(0.625, reason="what was held")
        assert charged(ledger) == [0.125, 0.25, 0.625]

    def test_a_file_that_says_it_has_no_chain_and_has_one_is_damaged(self, tmp_path):
        ledger = new_ledger(tmp_path)
        ledger.book(released(0.75))
        change(ledger.path, "UPDATE events SET loss = replace(loss, 'p-1', 'p-3')")
        change(ledger.path, "PRAGMA user_version = 1")
        assert says(ledger) is None

    @pytest.mark.parametrize(
        ("column", "value"),
        [
            ("loss", '{"kind": "pure", "epsilon": "0x1p99999"}'),
            ("loss", '{"kind": "curve"}'),
            ("loss", '{"kind": "approximate", "epsilon": "0x1p0", "delta": "0x1p-20"}'),
            ("loss", "[" * 100_000),
            ("loss", b"\x00"),
            ("process", '{"host": 1, "pid": "x"}'),
            ("process", '{"host": "a", "pid": 99999999999999999999}'),
            ("process", "[]"),
            ("entry", b"x"),
            ("reason", 7),
        ],
    )
    def test_rows_that_make_no_sense_are_an_error_in_words(self, tmp_path, column, value):
        """Whoever wrote them computed links as well."""
        ledger = new_ledger(tmp_path)
        ledger.reserve(0.25)
        change(ledger.path, f"UPDATE events SET {column} = ?", value)
        rechain(ledger.path)
        if (column, value) == ("reason", 7):  # a column of text makes text of it
            assert ledger.budget.events[0].reason == "7"
            return
        with pytest.raises(LedgerUnavailable, match="event 1 cannot be read"):
            _ = ledger.budget


def change(path, statement, *values):
    """Change a file as nobody can who goes through the ledger."""
    with sqlite3.connect(path) as connection:
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute(statement, values)
    connection.close()


def rechain(path):
    with sqlite3.connect(path) as connection:
        content = store._Content.read(connection)
        connection.execute(
            "UPDATE chain SET checksum = ? WHERE position = (SELECT max(position) FROM chain)", (content.last,)
        )
    connection.close()


class TestNames:
    def test_a_hard_link_is_refused(self, tmp_path):
        """Two names are two journals: what one process has begun to write, the other does not see."""
        ledger = new_ledger(tmp_path)
        os.link(ledger.path, tmp_path / "other.db")
        for path in (ledger.path, tmp_path / "other.db"):
            for use in (
                lambda path=path: Ledger(path, "survey").budget,
                lambda path=path: Ledger(path, "survey").reserve(1.5),
                lambda path=path: Ledger.create(path, "census", cap=1.0),
            ):
                with pytest.raises(LedgerUnavailable, match=r"has 2 names.*remove all hard links"):
                    use()
        (tmp_path / "other.db").unlink()
        ledger.reserve(1.5)

    def test_a_symbolic_link_is_the_same_file(self, tmp_path):
        ledger = new_ledger(tmp_path)
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "elsewhere" / "link.db").symlink_to(ledger.path)
        other = Ledger(tmp_path / "elsewhere" / "link.db", "survey")
        blocker = sqlite3.connect(other.path, isolation_level=None)
        blocker.execute("BEGIN IMMEDIATE")
        blocker.execute("CREATE TABLE more (name TEXT)")
        assert (tmp_path / "ledger.db-journal").is_file()  # found by both
        blocker.execute("ROLLBACK")
        blocker.close()
        other.reserve(1.5)
        with pytest.raises(ValueError, match="left"):
            ledger.reserve(1.0)
        assert charged(ledger) == charged(other) == [1.5]


class TestLost:
    def test_a_copy_from_before_the_search_is_charged_for_its_release(self, tmp_path):
        ledger = new_ledger(tmp_path)
        shutil.copy(ledger.path, tmp_path / "copy.db")
        reservation, release = ledger.reserve(1.0), released(0.25, 1.0)
        shutil.copy(tmp_path / "copy.db", ledger.path)
        with pytest.raises(ValueError, match=r"is booked, but the file had lost .* as an older copy has\. What"):
            reservation.settle(release)
        reservation.settle(release)
        assert charged(ledger) == [0.25]

    def test_so_is_another_ledger_in_its_place(self, tmp_path):
        ledger = new_ledger(tmp_path)
        reservation = ledger.reserve(1.0)
        ledger.path.unlink()
        new_ledger(tmp_path)
        with pytest.raises(
            ValueError, match="is booked, but the file had lost what was reserved: it is another ledger"
        ):
            reservation.settle(released(0.25, 1.0))
        assert charged(ledger) == [0.25]


class TestEarlierFiles:
    def unchained(self, tmp_path):
        """Return a ledger as it was written before there were chains."""
        ledger = filled(tmp_path, 4)
        change(ledger.path, "DROP TABLE chain")
        with sqlite3.connect(ledger.path) as connection:
            connection.execute("PRAGMA user_version = 1")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.close()
        return ledger

    def test_they_are_read_and_get_a_chain_with_what_is_written_next(self, tmp_path):
        ledger = self.unchained(tmp_path)
        before = charged(ledger)
        assert ledger.budget.identity == ""
        ledger.book(released(0.125))
        assert charged(ledger) == [*before, 0.125]
        assert ledger.budget.identity
        change(ledger.path, "UPDATE events SET loss = replace(loss, 'p', 'p-') WHERE number = 1")
        assert says(ledger) is None

    def test_a_later_version_is_not_guessed_at(self, tmp_path):
        ledger = new_ledger(tmp_path)
        with sqlite3.connect(ledger.path) as connection:
            connection.execute("PRAGMA user_version = 3")
        connection.close()
        with pytest.raises(ValueError, match="written by another version"):
            _ = ledger.budget
