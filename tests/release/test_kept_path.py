"""What only the curator may open: with the right key, beside the right release, unchanged."""

from __future__ import annotations

import os
import stat

import pytest

from expost.release import kept_path
from expost.release.kept_path import read_key, seal, unseal, write_key

CONTENT = b'{"private": 27182818}'


def test_a_key_is_its_owners_alone(tmp_path):
    file = tmp_path / "curator.key"
    write_key(file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert len(read_key(file)) == 32
    with pytest.raises(FileExistsError):
        write_key(file)
    write_key(tmp_path / "other.key")
    assert read_key(tmp_path / "other.key") != read_key(file)
    file.chmod(0o640)
    with pytest.raises(ValueError, match="can be read by others"):
        read_key(file)


def test_a_private_file_gets_its_name_when_it_is_whole(tmp_path, monkeypatch):
    """Killed before, the process leaves no half of a key or of a path under the name."""
    file, there, fsync = tmp_path / "curator.key", [], os.fsync
    monkeypatch.setattr(os, "fsync", lambda handle: (there.append(file.exists()), fsync(handle)))
    write_key(file)
    assert there == [False]
    assert [path.name for path in tmp_path.iterdir()] == ["curator.key"]
    assert len(read_key(file)) == 32


@pytest.mark.parametrize("text", ["", "expost key 1 ", "expost key 1 zz", "expost key 1 00", "00" * 32, "\xe9"])
def test_what_is_no_key_is_not_quoted(text, tmp_path):
    file = tmp_path / "curator.key"
    file.write_text(text, encoding="utf-8")
    file.chmod(0o600)
    with pytest.raises(ValueError, match="is not a key") as caught:
        read_key(file)
    assert not text.strip() or text not in str(caught.value)
    with pytest.raises(FileNotFoundError, match="expost key makes one"):
        read_key(tmp_path / "none")


def test_it_opens_with_its_own_key_and_release_only():
    key, other = b"k" * 32, b"o" * 32
    closed = seal(CONTENT, key, "a1f")
    assert unseal(closed, key, "a1f") == CONTENT
    assert b"private" not in closed
    assert b"a1f" not in closed
    assert seal(CONTENT, key, "a1f") != closed  # a fresh nonce each time
    for sealed_text, with_key, release in ((closed, other, "a1f"), (closed, key, "a1e"), (closed, key, "")):
        with pytest.raises(ValueError, match="does not open"):
            unseal(sealed_text, with_key, release)


def test_every_change_is_noticed():
    closed = seal(CONTENT, b"k" * 32, "a1f")
    for place in range(len(closed)):
        changed = bytearray(closed)
        changed[place] ^= 1
        with pytest.raises(ValueError, match=r"does not open|no sealed file"):
            unseal(bytes(changed), b"k" * 32, "a1f")
    for length in (0, 5, 20, len(closed) - 1):
        with pytest.raises(ValueError, match=r"does not open|no sealed file"):
            unseal(closed[:length], b"k" * 32, "a1f")


def test_a_seal_that_forgets_the_release_would_be_noticed(monkeypatch):
    monkeypatch.setattr(kept_path, "_about", lambda release_id: b"")
    assert unseal(seal(CONTENT, b"k" * 32, "a1f"), b"k" * 32, "another") == CONTENT
