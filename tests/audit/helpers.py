"""What tests of the audit share: words that can be repeated, and an attack that is carried out."""

from __future__ import annotations

import itertools

from expost.audit import Setting, attacks
from expost.audit.attack import Found
from expost.noise import SeededSource


class Seeded(SeededSource):
    """A seeded source that a ledger takes for a secure one, so that what is drawn beside ledgers can be repeated."""

    secure = True
    places = itertools.count()

    def __init__(self, seed=None):
        super().__init__([next(self.places), 9] if seed is None else seed)


def found(name: str, runs: int = 0, seed: int = 1) -> Found:
    """What an attack finds, by that many runs."""
    (attack,) = attacks(f"^{name}$")
    return attack.carry_out(Setting(runs or attack.runs, seed))
