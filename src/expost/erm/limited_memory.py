"""Directions from the last few gradients (L-BFGS, Nocedal 1980), for more columns than second derivatives are kept for.

Nothing rests on a direction: a point is judged by its gradient. Memory is 2·10 vectors of p numbers.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable

import numpy as np

from expost.erm._types import FloatArray

_KEPT = 10


class LimitedMemory:
    """Pairs of steps and changes of the gradient, and the inverse second derivatives that they make likely.

    Parameters
    ----------
    scale
        Size of the first step, in units of the gradient.

    Examples
    --------
    >>> memory = LimitedMemory(1.0)
    >>> memory.learn(np.array([1.0, 0.0]), np.array([4.0, 0.0]))
    >>> memory.direction(np.array([8.0, 4.0]))
    array([2., 1.])
    """

    def __init__(self, scale: float) -> None:
        self._scale = scale
        self._pairs: deque[tuple[FloatArray, FloatArray, float]] = deque(maxlen=_KEPT)

    def learn(self, step: FloatArray, change: FloatArray) -> None:
        """Remember how the gradient changed along a step, if it grew."""
        along, square = float(step @ change), float(change @ change)
        if square > 0.0 and along > 1e-14 * float(np.linalg.norm(step)) * math.sqrt(square):
            self._pairs.append((step, change, along))
            self._scale = along / square

    def direction(self, gradient: FloatArray, first: Callable[[FloatArray], FloatArray] | None = None) -> FloatArray:
        """Return about H⁻¹ times the gradient; ``first`` does so before any pair was learnt."""
        result, parts = gradient.copy(), []
        for step, change, along in reversed(self._pairs):
            part = float(step @ result) / along
            result -= part * change
            parts.append(part)
        result = result * self._scale if first is None else first(result)
        for (step, change, along), part in zip(self._pairs, reversed(parts), strict=True):
            result += step * (part - float(change @ result) / along)
        return result
