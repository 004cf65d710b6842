"""Rows kept on a file without a name between passes: the same release, nothing left behind, and a way out."""

from __future__ import annotations

import os
import pickle
import stat
import tempfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from expost.exceptions import SearchInterrupted
from expost.passes import engine as local, first_pass as look, scratch
from expost.passes.engine import LocalEngine, watching
from expost.passes.scratch import Scratch
from expost.table.rows import Batch, by_column, room_for
from tests.passes.helpers import fitted, table, told, write


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.setattr(look, "KEPT", 0)
    monkeypatch.setattr(local, "_SMALL", 0)
    return write(tmp_path)["parquet"]


def batch(n=1000, p=3):
    rng = np.random.default_rng(0)
    return Batch(rng.integers(-(2**20), 2**20, (n, p), dtype=np.int32), rng.integers(-5, 5, n, dtype=np.int32))


def test_a_fit_is_the_same_and_reads_the_table_once(file, tmp_path, monkeypatch):
    from expost.table.parquet import ParquetTable

    read, seen = ParquetTable.read, []
    monkeypatch.setattr(ParquetTable, "read", lambda self, *a: seen.append(1) or read(self, *a))
    folder = tmp_path / "scratch"
    folder.mkdir()
    whole = told(fitted(table()))
    assert told(fitted(file, engine=LocalEngine(3, scratch=folder))) == whole
    once = len(seen)
    assert told(fitted(file, engine=LocalEngine(3, scratch=False))) == whole
    assert once < len(seen) - once  # without a scratch file every pass reads
    assert not list(folder.iterdir())


def test_by_default_rows_are_kept_where_temporary_files_go(file, tmp_path, monkeypatch):
    """Unless that is memory, or has too little room, which nobody has to be told of."""
    made: list[Path] = []

    whole = told(fitted(table()))
    monkeypatch.setattr(look, "Scratch", lambda *stated: made.append(stated[0]) or Scratch(*stated))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(scratch, "_IN_MEMORY", ())
    assert told(fitted(file)) == whole
    assert made == [tmp_path.resolve()]
    monkeypatch.setattr(look, "UNSTATED", 1e12)
    assert told(fitted(file)) == whole
    assert len(made) == 2
    kinds = {line.split(b" ")[2] for line in Path("/proc/self/mounts").read_bytes().splitlines()}
    monkeypatch.setattr(scratch, "_IN_MEMORY", tuple(kinds))  # as if every disk were
    assert told(fitted(file)) == whole
    assert len(made) == 2


@pytest.mark.parametrize(
    ("mounts", "kept"),
    [
        (b"a / ext4 rw 0 0\n", True),
        (b"a / ext4 rw 0 0\nb %s tmpfs rw 0 0\n", False),
        (b"a / ext4 rw 0 0\nb %s tmpfs rw 0 0\nc %s ext4 rw 0 0\n", True),  # the last one on a place counts
        (b"a / tmpfs rw 0 0\n\nb /elsewhere/\xe9\r\x85 ext4 rw 0 0\n", False),  # names that are no text
        (b"nothing of the kind", True),
    ],
)
def test_what_is_on_a_disk(tmp_path, monkeypatch, mounts, kept):
    folder = tmp_path / "with a space"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    named = str(folder).replace(" ", "\\040").encode()
    monkeypatch.setattr(Path, "read_bytes", lambda self: mounts.replace(b"%s", named))
    assert scratch.usual_folder() == (folder if kept else None)


def test_a_machine_may_have_its_own_default(tmp_path, monkeypatch):
    monkeypatch.setenv("EXPOST_SCRATCH", str(tmp_path))
    assert scratch.usual_folder() == tmp_path
    monkeypatch.setenv("EXPOST_SCRATCH", "no")
    assert scratch.usual_folder() is None
    monkeypatch.setenv("EXPOST_SCRATCH", "nowhere/at/all")
    with pytest.raises(ValueError, match="scratch must be a folder that can be written to; nowhere/at/all is none"):
        scratch.usual_folder()


def test_no_folder_for_temporary_files_at_all(monkeypatch):
    def none():
        raise FileNotFoundError("no usable temporary directory")

    monkeypatch.setattr(tempfile, "gettempdir", none)
    assert scratch.usual_folder() is None


def test_rows_that_turn_out_to_be_many_more_than_expected_are_not_kept(tmp_path, monkeypatch):
    """A compressed file says little about how many there are; the disk is for others too."""
    monkeypatch.setattr(scratch.shutil, "disk_usage", lambda folder: SimpleNamespace(free=40_000))
    made = Scratch(tmp_path, 3, 10, 2.0)
    made.keep(batch(1000))
    assert not made.failed
    made.keep(batch(1000))
    assert made.failed
    assert os.fstat(made._files[0].fileno()).st_size == 0


class Tampered:
    """Does something to the file when the second pass is over."""

    def __init__(self, act) -> None:
        self._passes, self._act = 0, act

    def begin(self, rows):
        pass

    def advance(self, rows):
        pass

    def note(self, text):
        pass

    def end(self):
        self._passes += 1
        if self._passes == 2:
            self._act()


@pytest.mark.parametrize("damage", ["a lost page", "one bit"])
def test_what_is_not_what_was_written_is_no_rows(file, monkeypatch, damage):
    """It would decrypt to numbers beyond every bound. A search that has begun is charged as interrupted."""
    made: list[Scratch] = []
    monkeypatch.setattr(look, "Scratch", lambda *stated: made.append(Scratch(*stated)) or made[-1])

    def act():
        descriptor, place = made[0]._files[0].fileno(), 100
        there = os.pread(descriptor, 64, place)
        os.pwrite(descriptor, bytes(64) if damage == "a lost page" else bytes([there[0] ^ 1]), place)

    with (
        watching(Tampered(act)),
        pytest.raises(SearchInterrupted, match="scratch file is not what was written") as caught,
    ):
        fitted(file)
    assert caught.value.release.epsilon == 200.0


def on_disk(made):
    return os.pread(made._files[0].fileno(), 1 << 20, 0)


def test_what_is_written_says_nothing_without_the_key(tmp_path, monkeypatch):
    """The same rows look like chance, differently in every file and at every place."""
    given = batch(4096)
    first, second = Scratch(tmp_path, 3, 1000), Scratch(tmp_path, 3, 1000)
    for made in (first, first, second):
        made.keep(given)
    plain = given.x.tobytes() + given.y.tobytes()
    halves = on_disk(first)[: len(plain)], on_disk(first)[len(plain) :], on_disk(second)

    def looks_like_chance(one, other):
        """Each bit of the XOR is one with chance 1/2: within five deviations, which 1 in 1.7 million is not."""
        bits = np.bitwise_count(np.frombuffer(one, np.uint8) ^ np.frombuffer(other, np.uint8)).sum()
        return abs(int(bits) - 4 * len(one)) < 5 * (2 * len(one)) ** 0.5

    pairs = [(halves[0], halves[1]), (halves[0], halves[2]), *((half, plain) for half in halves)]
    assert all(looks_like_chance(*pair) for pair in pairs)

    plainly = SimpleNamespace(update_into=_copied, finalize=lambda: None, tag=b"")
    monkeypatch.setattr(Scratch, "_cipher", lambda *_: SimpleNamespace(encryptor=lambda: plainly))
    broken = Scratch(tmp_path, 3, 1000)
    broken.keep(given)
    assert not looks_like_chance(on_disk(broken), plain)


def _copied(data, room):
    room[: len(data)] = data
    return len(data)


def test_the_file_has_no_name_and_is_for_its_owner(tmp_path):
    made = Scratch(tmp_path, 3, 1000)
    made.keep(batch())
    assert not list(tmp_path.iterdir())
    state = os.fstat(made._files[0].fileno())
    assert state.st_nlink == 0
    assert stat.S_IMODE(state.st_mode) == 0o600
    assert state.st_size == 4 * 1000 * 4
    with pytest.raises(TypeError, match="private"):
        pickle.dumps(made)


def test_rows_come_back_as_they_were(tmp_path, monkeypatch):
    monkeypatch.setattr(scratch, "_CELLS", 1)
    made, given = Scratch(tmp_path, 3, 1000), batch()
    made.keep(given)
    made.keep(Batch(given.x[:0], given.y[:0]))
    made.keep(Batch(given.x[::-2], given.y[::-2]))
    found = [piece for part in made.parts() for piece in made.read(part)]
    assert max(map(len, found)) == 250  # a fourth of what came, and at most 256
    assert np.array_equal(np.concatenate([b.x for b in found]), np.concatenate([given.x, given.x[::-2]]))
    assert np.array_equal(np.concatenate([b.y for b in found]), np.concatenate([given.y, given.y[::-2]]))


@pytest.mark.parametrize("columns", [False, True], ids=["by row", "by column"])
def test_the_largest_rows_come_back_however_they_were_held(tmp_path, columns):
    made, x = Scratch(tmp_path, 4, 1000), room_for(5000, 4, columns=columns)
    x[...] = np.random.default_rng(1).choice([-(2**20), -1, 0, 1, 2**20], x.shape)
    y = np.where(x[:, 0] > 0, 2**20, -(2**20)).astype(np.int32)
    made.keep(Batch(x, y))
    [found] = [piece for part in made.parts() for piece in made.read(part)]
    assert by_column(found.x)
    assert np.array_equal(found.x, x)
    assert np.array_equal(found.y, y)


def test_threads_write_to_files_of_their_own(tmp_path, monkeypatch):
    """Rows that come while others are being written go to another file, under other nonces."""
    made, given, write = Scratch(tmp_path, 3, 1000), batch(), scratch._write
    others = iter([given, given])

    def interrupted(*stated):
        for other in others:  # one inside the other, as if by three threads
            made.keep(other)
            break
        write(*stated)

    monkeypatch.setattr(scratch, "_write", interrupted)
    for _ in range(2):
        made.keep(given)
    assert len(made._files) == 3
    assert sorted((record.file, record.place) for [record] in made.parts()) == [(0, 0), (0, 16_000), (1, 0), (2, 0)]
    assert made.size == 4 * 16_000
    first, second, third = (os.pread(file.fileno(), 16_000, 0) for file in made._files)
    assert len({first, second, third}) == 3
    for part in made.parts():
        [found] = made.read(part)
        assert np.array_equal(found.x, given.x)
    made._give_up()
    assert [os.fstat(file.fileno()).st_size for file in made._files] == [0, 0, 0]


def test_what_is_lent_is_the_same_in_memory_that_is_used_again(tmp_path, monkeypatch):
    monkeypatch.setattr(scratch, "_CELLS", 1)
    made, given = Scratch(tmp_path, 3, 1000), batch()
    made.keep(given)
    [part] = made.parts()
    lent, places = [], set()
    for _ in range(2):
        for some in made.lent(part):
            lent.append(some.x.copy())
            places.add(some.x.ctypes.data)
    assert len(places) == 1
    assert np.array_equal(np.concatenate(lent[:4]), given.x)
    both = zip(made.lent(part), made.lent(part), strict=True)  # two at a time do not share it
    assert all(one.x.ctypes.data != other.x.ctypes.data for one, other in both)
    kept = list(made.read(part))
    assert len({piece.x.ctypes.data for piece in kept}) == 4
    assert np.array_equal(np.concatenate([piece.x for piece in kept]), given.x)


@pytest.mark.parametrize("when", ["before", "while writing"])
def test_too_little_room_is_said_and_the_table_read_again(file, tmp_path, monkeypatch, when):
    whole = told(fitted(table()))
    if when == "before":
        monkeypatch.setattr(look, "STATED", 1e12)
    else:

        def full(*stated):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(scratch.os, "pwrite", full)
    with pytest.warns(UserWarning, match="too little room"):
        assert told(fitted(file, engine=LocalEngine(scratch=tmp_path))) == whole


def test_what_is_no_folder():
    with pytest.raises(ValueError, match="scratch must be a folder"):
        LocalEngine(scratch=Path("/nowhere/at/all"))
    with pytest.raises(ValueError, match="memory must be a number of megabytes"):
        LocalEngine(memory=-1)


def test_memory_that_was_stated_is_used(file, tmp_path, monkeypatch):
    """Rows that fit are kept in memory, and no file is made."""
    monkeypatch.setattr(look, "Scratch", None)
    assert told(fitted(file, engine=LocalEngine(memory=10, scratch=tmp_path))) == told(fitted(table()))
