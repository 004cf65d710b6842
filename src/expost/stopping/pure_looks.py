"""A look at a value with Laplace noise that is taken away step by step until the answer is clear (theory A2, B1).

For searches under approximate privacy whose looks would cost more than their models if noise were Gaussian: one precise
look costs its ε and no factor for δ (theory C3).

*Question*: is the value at most zero? *Released*: the value with discrete Laplace noise at levels ε₁ < … < ε_K, one
after the other, on one path of gradual release (`expost.noise.path`), as far as it takes. *Theorem (privacy)*: however
far that is, and whatever decides it from what is released, the look costs the last level alone. It is booked as the
path is walked, in differences. How many levels there are, and how far apart, was settled before.

*Theorem (accuracy)*. Let the answer be "yes" at level k if the noisy value is at most −c·s_k, s_k the scale of its
noise, s_k/s_{k+1} = q. If the value is above zero, some level says so with probability at most
½e^{−c}(1 + (K − 1)·j·(q/2)·((1 − e^{−(q−1)c/q})/(q − 1) + 1/(q + 1))), j = 1 − 1/q², K levels.
*Proof.* Let A_k: noise at level k is at most −c·s_k. A_K has probability ½e^{−c}. If noise does not jump between k + 1
and k, A_k is in A_{k+1}, as c·s_k > c·s_{k+1}. It jumps with probability j, by a fresh Laplace variable of scale s_k.
So P[A_k but not A_{k+1}] ≤ j·P[Z > −c·s_{k+1}, Z + W ≤ −c·s_k], Z and W independent of scales s_{k+1} and s_k; in
units of s_k that is j·∫ over z > −c/q of (q/2)e^{−q|z|}·½e^{−c−z}, which is the bracket's second term. Add over k. ∎
*What is shown.* That is about the noise alone, whatever the value is: but for that probability every noisy value looked
at is a bound on the value with its margin, c·s_k (theory D3).
On integers: a geometric variable is a rounded exponential one, so each Laplace variable above is within one unit of a
discrete one and the path within K, and keeping probabilities differ by less than 10⁻⁹; both are in the margin.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from expost.erm.sensitivity.grid import Grid
from expost.noise.path import NoisePath
from expost.noise.source import WordSource
from expost.privacy.renyi import Curve
from expost.privacy.renyi_account import RenyiAccount

#: From one level to the next.
RATIO = 1.3
_HOPE = 0.3  # of the last level's margin: a value that looks as if it will not be that clear is given up


@lru_cache(maxsize=256)
def deviations(gamma: float, levels: int) -> float:
    """Return c, in scales of noise: "yes" though the value is above zero has probability at most γ.

    Examples
    --------
    >>> round(deviations(0.05, 3), 2), round(math.log(3 / 2 / 0.05), 2)  # beside what adding probabilities would give
    (3.06, 3.4)
    """
    low, high = 0.0, 2.0 + math.log(levels) + math.log(1.0 / gamma)
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if _misled(middle, levels) <= gamma * (1.0 - 1e-6) else (middle, high)
    return high


def _misled(c: float, levels: int) -> float:
    """Return the theorem's bound."""
    jump = 1.0 - 1.0 / RATIO**2
    further = (1.0 - math.exp(-(RATIO - 1.0) * c / RATIO)) / (RATIO - 1.0) + 1.0 / (RATIO + 1.0)
    return 0.5 * math.exp(-c) * (1.0 + (levels - 1) * jump * 0.5 * RATIO * further)


@dataclass
class PureLooks:
    """Looks that are booked on one account.

    Attributes
    ----------
    account, source
        Where they are booked, and where noise comes from.
    levels
        How many a look may have.
    count
        How many were looked at.
    shown
        The least bound on a value that looks have shown.
    """

    account: RenyiAccount
    source: WordSource
    levels: int
    count: int = 0
    shown: float = math.inf

    def pass_at(self, truth: float, sensitivity: float, error: float, epsilon: float, gamma: float) -> bool:
        """Whether a look shows that the value is at most zero; wrong with probability at most γ.

        Parameters
        ----------
        truth, sensitivity, error
            The value; how far the unit can move it, and how far what was computed may be off.
        epsilon
            What the first level costs; it must fit.
        gamma
            γ.
        """
        levels = [epsilon * RATIO**k for k in range(self.levels)]
        grid = Grid.of(sensitivity, error_bound=error)
        unit, units = grid.unit, grid.units
        wide = deviations(gamma, self.levels) * grid.effective_sensitivity * (1.0 + 1e-9)
        margins = [wide / level + (self.levels + 3) * unit + error for level in levels]
        path = NoisePath(np.array([math.floor(truth / unit)]), units, levels, random_state=self.source)
        paid = 0.0
        for value, margin in zip(path, margins, strict=True):
            # the first was seen to fit; the path has drawn its noise, but nothing of it has been looked at
            step = Curve.ex_post(math.nextafter(value.epsilon - paid, math.inf))
            if paid and not self.account.fits(step):
                return False
            self.account.book("test", step)
            self.count, paid = self.count + 1, value.epsilon
            noisy = int(value.values[0]) * unit
            self.shown = min(self.shown, noisy + margin)
            if noisy + margin <= 0.0:
                return True
            if noisy + _HOPE * margins[-1] > 0.0:
                return False
        return False
