"""Where random words come from: the operating system's entropy for protection, a seed for simulation.

Every sampler in this package consumes 16-bit words and nothing else, so the whole of its randomness is either
cryptographic or reproducible, never a mixture.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any, Protocol, runtime_checkable

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20
from numpy.typing import NDArray

from expost import validation

_BUFFER_BYTES = 1 << 15
_LARGEST_BLOCK = 1 << 26  # bytes under one key: far below the 2^38 at which a 32-bit block counter would wrap


@runtime_checkable
class WordSource(Protocol):
    """A stream of independent, uniform 16-bit words."""

    @property
    def secure(self) -> bool:
        """Whether the words may protect anyone."""

    def words(self, count: int) -> NDArray[np.uint16]:
        """Return the next ``count`` words."""


class SecureSource:
    """ChaCha20 keyed by the operating system; the only source whose noise protects anyone.

    After every block the key is replaced by the first 32 bytes of its own stream ("fast key erasure"), so a
    key found in memory tells nothing about the blocks before it. A forked child draws a key of its own: two
    processes sharing a stream would add the same noise twice. The object refuses to be copied or pickled for
    that reason.

    Examples
    --------
    >>> SecureSource().words(3).shape
    (3,)
    """

    secure = True

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rekey()
        _alive.add(self)

    def _rekey(self) -> None:
        self._key = os.urandom(32)
        self._buffer = np.empty(0, dtype=np.uint16)
        self._position = 0

    def _block(self, n_bytes: int) -> NDArray[np.uint16]:
        encryptor = Cipher(ChaCha20(self._key, bytes(16)), mode=None).encryptor()
        stream = encryptor.update(bytes(32 + n_bytes))
        self._key = stream[:32]
        return np.frombuffer(stream, dtype=np.uint16, offset=32)

    def words(self, count: int) -> NDArray[np.uint16]:
        """Return the next ``count`` words of the stream, each handed out once; do not write to them."""
        if count < 0:  # would move the position back, over words already used
            raise ValueError(f"the number of words must not be negative, got {count}")
        with self._lock:
            if count * 2 > _LARGEST_BLOCK:
                parts = [
                    self._block(min(_LARGEST_BLOCK, 2 * count - start)) for start in range(0, 2 * count, _LARGEST_BLOCK)
                ]
                return np.concatenate(parts)
            if count * 2 > _BUFFER_BYTES:
                return self._block(2 * count)
            if self._position + count > self._buffer.size:
                self._buffer, self._position = self._block(_BUFFER_BYTES), 0
            taken = self._buffer[self._position : self._position + count]
            self._position += count
            return taken

    def __reduce__(self) -> str:
        raise TypeError("a secure noise source cannot be copied or pickled: its noise would be used twice")

    def __repr__(self) -> str:
        return "SecureSource()"


_alive: weakref.WeakSet[SecureSource] = weakref.WeakSet()


def _rekey_all() -> None:
    for source in list(_alive):
        source._lock = threading.Lock()  # the parent may have forked while another thread held the old one
        source._rekey()


os.register_at_fork(after_in_child=_rekey_all)


class SeededSource:
    """A reproducible source for simulation and tests. Its noise protects nobody, and releases say so.

    Parameters
    ----------
    seed
        Anything :class:`numpy.random.SeedSequence` takes.

    Examples
    --------
    >>> bool((SeededSource(7).words(5) == SeededSource(7).words(5)).all())
    True
    """

    secure = False

    def __init__(self, seed: int | list[int] | np.random.SeedSequence) -> None:
        self._bits = np.random.SFC64(seed)

    def words(self, count: int) -> NDArray[np.uint16]:
        """Return the next ``count`` words."""
        if count < 0:
            raise ValueError(f"the number of words must not be negative, got {count}")
        raw: NDArray[np.uint64] = self._bits.random_raw((count + 3) // 4)
        return raw.view(np.uint16)[:count]

    def __repr__(self) -> str:
        return "SeededSource()"


def resolve_source(random_state: int | np.random.RandomState | WordSource | None) -> WordSource:
    """Return the source a ``random_state`` argument asks for; ``None`` is the secure one.

    Examples
    --------
    >>> resolve_source(None).secure, resolve_source(0).secure
    (True, False)
    """
    if random_state is None:
        return SecureSource()
    if isinstance(random_state, int | np.integer) and not isinstance(random_state, bool):
        if random_state < 0:
            raise ValueError(f"random_state must be a non-negative integer, got {random_state}")
        return SeededSource(int(random_state))
    if isinstance(random_state, np.random.RandomState):
        # scikit-learn hands these round; drawing from it keeps "same state, same result"
        return SeededSource([int(word) for word in random_state.randint(0, 2**31 - 1, size=4)])
    if isinstance(random_state, WordSource):
        return random_state
    raise ValueError(
        "random_state must be None (secure noise), a non-negative integer or a numpy RandomState "
        f"(simulation), or a noise source; got {type(random_state).__name__}"
    )


def source_claims(random_state: Any) -> tuple[str, ...]:
    """Return what is taken as given of a random source that is not the library's own and says it protects people."""
    if random_state is None or not (validation.secure(random_state) and validation.foreign(random_state)):
        return ()
    return ("the random words given are uniform, independent and known to nobody",)
