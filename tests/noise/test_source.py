"""Where words come from: never the same twice, not across forks, threads, copies or buffers."""

from __future__ import annotations

import copy
import os
import pickle
import signal
import threading
import warnings

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20

from expost.noise import NoisePath, SecureSource, SeededSource, WordSource, resolve_source
from tests.noise.helpers import RARE, chi_square


def quadruples(words):
    """Words as 64-bit numbers: two of a few hundred thousand agree by chance once in 10⁸ runs."""
    return np.ascontiguousarray(words).view(np.uint64)


def repeated(*streams):
    pooled = np.concatenate([quadruples(stream) for stream in streams])
    return pooled.size - np.unique(pooled).size


class TestSecure:
    """The cryptographic source."""

    def test_uniform(self):
        """χ² on bytes, unseeded: one run in 10⁶ fails. The control replaces one byte in a hundred."""
        stream = SecureSource().words(500_000).view(np.uint8).copy()
        flat = np.full(256, 1 / 256)
        assert chi_square(np.bincount(stream, minlength=256), flat) > RARE
        stream[::100] = 7
        assert chi_square(np.bincount(stream, minlength=256), flat) < RARE

    def test_two_sources_differ(self):
        assert repeated(SecureSource().words(4000), SecureSource().words(4000)) == 0
        assert repeated(SeededSource(1).words(4000), SeededSource(1).words(4000)) == 1000  # the control

    def test_stream_never_repeats_across_requests(self):
        source = SecureSource()
        sizes = [4, 400, 16380, 16384, 16388, 4, 100_000, 8, 0, 4]  # inside, across and past the buffer
        streams = [source.words(size) for size in sizes]
        assert [stream.size for stream in streams] == sizes
        assert repeated(*streams) == 0

    def test_handed_out_words_stay(self):
        source = SecureSource()
        words = source.words(1000)
        before = words.copy()
        for _ in range(100):
            source.words(1000)
        assert (words == before).all()

    def test_key_is_erased_and_never_handed_out(self):
        source = SecureSource()
        key = source._key
        words = source.words(20_000)
        stream = Cipher(ChaCha20(key, bytes(16)), mode=None).encryptor().update(bytes(32 + 40_000))
        assert words.tobytes() == stream[32:]
        assert source._key == stream[:32]

    def test_more_than_64_mebibytes(self):
        source = SecureSource()
        count = 2**25 + 12
        words = source.words(count)
        assert words.size == count
        edge = 2**25
        assert repeated(words[:2000], words[edge - 2000 : edge], words[edge:], source.words(2000)) == 0

    def test_negative_count(self):
        source = SecureSource()
        first = source.words(8).copy()
        with pytest.raises(ValueError, match="negative"):
            source.words(-8)  # would move the position back to words already used
        assert repeated(first, source.words(8)) == 0

    @pytest.mark.parametrize("attempt", [pickle.dumps, copy.copy, copy.deepcopy])
    def test_cannot_be_copied(self, attempt):
        with pytest.raises(TypeError, match="cannot be copied or pickled"):
            attempt(SecureSource())
        with pytest.raises(TypeError, match="cannot be pickled"):
            attempt(NoisePath(np.zeros(2, dtype=np.int64), 1, [1.0]))

    def test_repr_shows_nothing(self):
        source = SecureSource()
        source.words(3)
        assert repr(source) == "SecureSource()"

    def test_threads_share_no_word(self):
        source = SecureSource()

        def pooled(draw):
            drawn = [[] for _ in range(4)]

            def work(mine):
                for size in [4, 400, 2000, 20_000] * 25:
                    mine.append(draw(size))

            threads = [threading.Thread(target=work, args=(mine,)) for mine in drawn]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            return [words for mine in drawn for words in mine]

        assert repeated(*pooled(source.words)) == 0
        one = SeededSource(3).words(20_000)
        assert repeated(*pooled(lambda size: one[:size])) > 0  # the control


def words_of_child(source, count):
    """Fork, draw in the child, and return what it drew."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn when threads exist
        child = os.fork()
    if child == 0:
        signal.alarm(20)  # a deadlock ends the child, not the test run
        try:
            os.write(writing, source.words(count).tobytes())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        received = pipe.read()
    os.waitpid(child, 0)
    assert len(received) == 2 * count
    return np.frombuffer(received, dtype=np.uint16)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
class TestFork:
    """A child must not add the noise its parent adds."""

    def test_child_has_its_own_stream(self):
        source = SecureSource()
        source.words(100)  # leaves a filled buffer and a key for the child to inherit
        first, second = words_of_child(source, 4000), words_of_child(source, 4000)
        assert repeated(first, second, source.words(4000)) == 0

    def test_child_does_not_inherit_the_next_block(self):
        source = SecureSource()
        source.words(2**14)
        assert repeated(words_of_child(source, 20_000), source.words(20_000)) == 0

    def test_control(self):
        source = SeededSource(1)
        assert repeated(words_of_child(source, 4000), source.words(4000)) == 1000

    def test_fork_while_another_thread_draws(self):
        source = SecureSource()
        with source._lock:  # as another thread would hold it at the moment of the fork
            assert words_of_child(source, 8).size == 8


class TestSeeded:
    """The reproducible source."""

    def test_same_seed_same_words(self):
        assert (SeededSource(7).words(101) == SeededSource(7).words(101)).all()
        assert (SeededSource(7).words(101) != SeededSource(8).words(101)).any()

    def test_moves_on(self):
        source = SeededSource(7)
        assert repeated(*[source.words(size) for size in (4, 400, 16384, 100_000)]) == 0

    def test_negative_count(self):
        with pytest.raises(ValueError, match="negative"):
            SeededSource(1).words(-1)


class TestResolve:
    """What ``random_state`` may be."""

    def test_kinds(self):
        assert resolve_source(None).secure
        assert not resolve_source(0).secure
        assert not resolve_source(np.int64(3)).secure
        source = SecureSource()
        assert resolve_source(source) is source
        assert isinstance(source, WordSource)
        assert isinstance(SeededSource(1), WordSource)

    def test_random_state_moves_on(self):
        state = np.random.RandomState(0)
        first, second = resolve_source(state).words(8), resolve_source(state).words(8)
        again = resolve_source(np.random.RandomState(0)).words(8)
        assert (first == again).all()
        assert (first != second).any()

    @pytest.mark.parametrize("value", [-1, True, 1.5, "secure", np.random.default_rng(0)])
    def test_refused(self, value):
        with pytest.raises(ValueError, match="random_state must be"):
            resolve_source(value)
