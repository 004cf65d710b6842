"""A path that is kept, so that a later request can go on where an earlier one stopped (theory B11).

*Released*: the values at levels ε₁ < … < ε_t of a gradual release, in several instalments; how far each goes may depend
on everything revealed before. *Theorem*: after any number of instalments the loss is ε_s, s the largest level revealed,
not the sum. *Proof.* The path is a Markov chain that runs from its last level to its first: each level is made of the
next by adding noise that does not look at the private vector (`expost.noise.path`, `expost.noise.spherical_path`). So,
given the value at s, all levels before it have a law that is the same for neighbours. The levels revealed in the
instalments, the requests chosen in between (functions of what was revealed, of public numbers and of independent
randomness) and the decision to stop at s are a function of the levels up to s and of randomness beside them. By the
lemma on prefixes the probability of all of it changes by a factor of at most e^(ε_s). ∎ It is essential that the *same*
path goes on. Fresh noise at s, beside what was revealed at t, would cost ε_t + ε_s: the two are independent looks.

What is kept are the values at the levels not yet revealed and at the last one that was, never the private vector. So
whoever gets hold of it has what the path's last level costs, and no more.

The text of a kept path has a length that follows from public numbers, because how many jumps a path has, or how large
its noise is, are private until they are paid for.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost.noise.laplace import Integers, narrowed
from expost.noise.path import LevelValue

_BYTES = 16  # of an integer: sums are below 2⁸⁰ and noise has 47 bits more
_MOST = (1 << (8 * _BYTES - 1)) - 1

Values = Integers | NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class KeptLevels:
    """Values at the levels of a path from one on; private.

    Attributes
    ----------
    first
        Index of the first level that is kept.
    values
        Integers, or floats from a spherical path, level by level.

    Examples
    --------
    >>> from expost.noise import NoisePath
    >>> path = NoisePath(np.array([1000, 2000]), 1, [0.01, 0.1, 1.0], random_state=3)
    >>> kept = KeptLevels.of(path, first=1)
    >>> len(kept.to_bytes()), KeptLevels.from_bytes(kept.to_bytes(), 1, 2, "integers")
    (64, KeptLevels(levels 1 to 2))
    """

    first: int
    values: tuple[Values, ...]

    @classmethod
    def of(cls, steps: Iterable[LevelValue], first: int = 0) -> KeptLevels:
        """Keep the levels of a path."""
        return cls(first, tuple(step.values for step in steps if step.index >= first))

    def after(self, first: int) -> KeptLevels:
        """Keep only what a search that has revealed everything before ``first`` needs."""
        return KeptLevels(first, self.values[first - self.first :])

    def __getitem__(self, level: int) -> Values:
        if not self.first <= level < self.first + len(self.values):
            raise IndexError(f"level {level} is not kept")
        return self.values[level - self.first]

    def __repr__(self) -> str:
        return f"KeptLevels(levels {self.first} to {self.first + len(self.values) - 1})"

    def __reduce__(self) -> str:
        raise TypeError("a kept path holds values not yet paid for; it cannot be pickled")

    @property
    def kind(self) -> str:
        """``"integers"`` or ``"floats"``."""
        return "floats" if self.values[0].dtype.kind == "f" else "integers"

    def to_bytes(self) -> bytes:
        """Return all values in a text whose length is public."""
        if self.kind == "floats":
            return b"".join(np.asarray(values, dtype="<f8").tobytes() for values in self.values)
        # a value beyond the width is moved to its end: next to impossible, and no reason to raise, which would tell
        return b"".join(
            max(-_MOST, min(_MOST, int(value))).to_bytes(_BYTES, "little", signed=True)
            for values in self.values
            for value in values.tolist()
        )

    @classmethod
    def from_bytes(cls, text: bytes, first: int, size: int, kind: str) -> KeptLevels:
        """Read what :meth:`to_bytes` returned, for paths of ``size`` coordinates."""
        each = size * (8 if kind == "floats" else _BYTES)
        if not text or len(text) % each:
            raise ValueError("not the values of such a path")
        parts = [text[i : i + each] for i in range(0, len(text), each)]
        read: Any = _floats if kind == "floats" else _integers
        return cls(first, tuple(read(part) for part in parts))


def _floats(part: bytes) -> NDArray[np.float64]:
    return np.frombuffer(part, dtype="<f8").astype(np.float64)


def _integers(part: bytes) -> Integers:
    whole = [int.from_bytes(part[i : i + _BYTES], "little", signed=True) for i in range(0, len(part), _BYTES)]
    return narrowed(np.array(whole, dtype=object))
