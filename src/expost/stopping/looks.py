"""One look at a value, and a second if the first is promising: independent Gaussian tests of fixed cost (theory C4).

*Question*: is the value at most zero? *Released*: the value with noise that costs ρ, and perhaps again with noise that
costs ``again``·ρ. *Theorem (privacy)*: each look books its curve. *Theorem (accuracy)*: "yes" though the value is above
zero has probability at most γ, ``first`` of it for the first look and the rest for the average of both. How precise a
second look is does not depend on the first (`expost.stopping.gaussian_value`). *What is shown*: noisy values with their
margins are bounds on the value, all of them but for that probability, whatever the answer (theory D3). No
AboveThreshold is interleaved with fresh releases, so nothing has to be said about their concurrent composition.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from expost.noise.source import WordSource
from expost.privacy.renyi import Curve
from expost.privacy.renyi_account import RenyiAccount
from expost.stopping.gaussian_value import GaussianValue, averaged


@dataclass
class Looks:
    """Looks that are booked on one account.

    Attributes
    ----------
    account, source
        Where they are booked, and where noise comes from.
    again
        ρ of a second look, as a multiple of the first one's.
    first
        Part of γ for the first look.
    count
        How many were taken.
    shown
        The least bound on a value that looks have shown.
    """

    account: RenyiAccount
    source: WordSource
    again: float
    first: float
    count: int = 0
    shown: float = math.inf

    def pass_at(self, value: GaussianValue, truth: float, rho: float, gamma: float) -> bool:
        """Whether looks show that the value is at most zero; wrong with probability at most γ. The first must fit."""
        noisy = self._look(value, truth, rho)
        if self._shows(noisy + value.margin(rho, self.first * gamma)):
            return True
        more = self.again * rho
        margin = value.margin(rho + more, (1.0 - self.first) * gamma)
        if noisy + margin > 0.0 or not self.account.fits(Curve.gaussian(more)):
            return False
        return self._shows(averaged(noisy, rho, self._look(value, truth, more), more) + margin)

    def _shows(self, bound: float) -> bool:
        self.shown = min(self.shown, bound)
        return bound <= 0.0

    def _look(self, value: GaussianValue, truth: float, rho: float) -> float:
        self.account.book("test", Curve.gaussian(rho))
        self.count += 1
        return value.ask(truth, rho, self.source)
