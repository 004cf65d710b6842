"""One look at a value with Laplace noise, and a second, as precise as the first suggests, if that will probably do.

For searches under approximate privacy whose looks would cost more than their models if noise were Gaussian: a pure loss
ε enters a Rényi account as min(ε, rε²/2), so one precise look costs its ε and no factor for δ (theory C3).

*Question*: is the value at most zero? *Released*: the value with discrete Laplace noise, perhaps twice. *Theorem
(privacy)*: a look that was settled before it is taken costs ε; the second one's follows from the first one's answer,
which is released. *Theorem (accuracy)*: "yes" though the value is above zero has probability at most γ, ``first`` of it
for the first look and the rest for the second, whose noise is fresh: whatever its precision, it fails with that
probability (`expost.stopping.noisy_value`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from expost.noise.source import WordSource
from expost.privacy.renyi import Curve
from expost.privacy.renyi_account import RenyiAccount
from expost.stopping.noisy_value import ValueTest

_PROMISING = 1.0  # in scales of the first look's noise: how far below zero is worth a second look
_SURELY = 0.7  # a second look fails with probability e^−0.7/2 if the first one was right


@dataclass
class PureLooks:
    """Looks that are booked on one account.

    Attributes
    ----------
    account, source
        Where they are booked, and where noise comes from.
    first
        Part of γ for the first look.
    count
        How many were taken.
    """

    account: RenyiAccount
    source: WordSource
    first: float
    count: int = 0

    def pass_at(
        self, truth: float, sensitivity: float, error: float, epsilon: float, most: float, gamma: float
    ) -> bool:
        """Whether looks show that the value is at most zero; wrong with probability at most γ. The first must fit.

        Parameters
        ----------
        truth, sensitivity, error
            The value; how far the unit can move it, and how far what was computed may be off.
        epsilon, most
            What a first look costs, and what a second may cost at most.
        gamma
            γ.
        """
        test = ValueTest.of(sensitivity, error, epsilon)
        noisy = self._look(test, truth)
        if noisy + test.margin(self.first * gamma, error) <= 0.0:
            return True
        if noisy > -_PROMISING * sensitivity / epsilon:
            return False
        left = (1.0 - self.first) * gamma
        closer = max(sensitivity * (math.log(1.0 / (2.0 * left)) + _SURELY) / -noisy, 1e-9 * epsilon)
        if closer > most or not self.account.fits(Curve.pure(closer)):
            return False
        again = ValueTest.of(sensitivity, error, closer)
        return self._look(again, truth) + again.margin(left, error) <= 0.0

    def _look(self, test: ValueTest, truth: float) -> float:
        self.account.book("test", Curve.pure(test.epsilon))
        self.count += 1
        return test.ask(truth, self.source)
