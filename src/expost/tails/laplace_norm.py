"""How long a vector of independent Laplace variables gets; public.

*Wanted*: q with P(‖b‖₂ > q) ≤ γ for p independent Lap(1) variables. Each b² is rounded *up* to a grid, which makes the
sum larger; the law of the sum is a convolution, mass beyond the grid counts as infinite, and what rounding in the
transforms may have misplaced is added to the tail. The quantile of that law is an upper bound.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from expost.tails.laplace_energy import convolved_power

_STEP = 2.0**-6  # a quantile comes out a thousandth too large
_CUT = 28.0  # |b| beyond this has probability 7·10⁻¹³ each, counted as infinite


@lru_cache(maxsize=64)
def laplace_norm(p: int, gamma: float) -> float:
    """Return q.

    Examples
    --------
    >>> 10.5 < laplace_norm(38, 0.1) < 10.7
    True
    """
    if not 0 < gamma < 1:
        raise ValueError("gamma must lie strictly between 0 and 1")
    if p == 1:
        return math.log(1 / gamma) * (1 + 1e-12)
    below = _below(p)
    place = int(np.searchsorted(below, 1 - gamma))
    if place >= below.size:  # the tail drowns in rounding: a union over the coordinates holds for every γ
        return math.sqrt(p) * math.log(p / gamma) * (1 + 1e-12)
    return math.sqrt(place * _STEP) * (1 + 1e-12)


@lru_cache(maxsize=4)  # some megabytes each where p is in the thousands
def _below(p: int) -> npt.NDArray[np.float64]:
    """Return a lower bound on P(‖b‖₂² ≤ k·step) for every k: what takes time, and is the same for every γ."""
    # cells (k − 1)·step < b² ≤ k·step, each at its right end; P(|b| > y) = e^{−y}
    tail = np.exp(-np.sqrt(np.arange(0.0, _CUT**2 + _STEP, _STEP)))
    law = np.concatenate([[0.0], -np.diff(tail)])
    reach = 2.0 * p + 40.0 * math.sqrt(20.0 * p) + 2.0 * _CUT**2
    total = convolved_power(law, p, math.ceil(reach / _STEP))
    misplaced = 1e-12 * (p + 1)
    below: npt.NDArray[np.float64] = np.cumsum(total) - misplaced
    return below
