"""Compute the numbers that documents state about losses at a δ; ``tests/test_documents.py`` compares.

python docs/at_delta.py
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from statistics import NormalDist

from expost import Release, compose
from expost.account.account import Account
from expost.account.composition import NOTHING, Clock, Curve

DELTA = 1e-6
TESTS = (1 / 6, 1 / 2)  # the part of a fit's ε that its tests are, from the least to the most
ENDS = 15  # at which a descent may end
RHOS = [10.0**k for k in (-6, -5, -4, -3, -2, -1)]


def released(epsilon: float, tests: float, end: int) -> Release:
    """Return a descent that ended at one of the times settled beforehand, at so much ε, so large a part of it tests."""
    low, high = 1e-12, 10.0
    for _ in range(60):
        rho = math.sqrt(low * high)
        clock = Clock.of(rho * (1 + 1e-8) * 2.0 ** (k - end) for k in range(1, ENDS + 1))
        account = Account("descent", math.inf, True, test=tests * epsilon, delta=DELTA, clock=clock)
        account.book("generation", Curve.gaussian(rho))
        made = account.released([0.0])
        low, high = (low, rho) if made.epsilon > epsilon else (rho, high)
    return made


def of_fixed_length(rho: float) -> float:
    """Return what Gaussian steps of ρ come to at δ if their number was fixed beforehand: ln(δ/Φ(Φ⁻¹(δ) − m))."""
    far = NormalDist().inv_cdf(DELTA) - math.sqrt(2 * rho)
    return math.log(DELTA / (0.5 * math.erfc(-far / math.sqrt(2))))


def between(values: Iterable[float], digits: int = 1) -> str:
    """Return a range that all values lie in."""
    found, unit = list(values), 10.0**-digits
    low, high = math.floor(min(found) / unit) * unit, math.ceil(max(found) / unit) * unit
    return f"{round(low, digits):g} to {round(high, digits):g}"


def stated() -> dict[str, list[str]]:
    """Return what each document has to say, word for word."""
    usual = [released(epsilon, tests, end) for epsilon in (0.05, 0.5) for tests in TESTS for end in (1, 2, 4)]
    composed = {k: [compose([one] * k, delta=DELTA).epsilon / one.epsilon for one in usual] for k in (5, 10)}
    steps = [Curve.gaussian(rho) for rho in RHOS[:-1]]
    shared = {k: [sum([one] * k, NOTHING).epsilon(DELTA) / one.epsilon(DELTA) for one in steps] for k in (4, 5, 10)}
    dearer = {
        end: max(
            Clock.of(rho * 2.0 ** (k - end) for k in range(1, ENDS + 1)).epsilon(rho, 0.0, DELTA) / of_fixed_length(rho)
            for rho in RHOS
        )
        for end in (1, 2, 4, ENDS)
    }
    more = {end: f"{100 * (part - 1):.0f} %" for end, part in dearer.items()}
    others = between((100 * (Curve.gaussian(rho).epsilon(DELTA) / of_fixed_length(rho) - 1) for rho in RHOS), 0)
    compared = [released(epsilon, tests, end) for epsilon in (0.02, 2) for tests in (0, 0.5) for end in (1, 4)]
    smaller = between((100 * (1 - one.epsilon_usual / one.epsilon) for one in compared), 0)
    return {
        "delta.md": [
            f"inside one budget ten equal fits cost {between(shared[10])} times one",
            f"five equal releases then cost {between(composed[5])} times one, and ten {between(composed[10])} times",
            f"Five equal fits then cost {between(shared[5])} times one",
            f"{more[1]} more at the first end, {more[2]} at the second, {more[4]} at the fourth and {more[ENDS]} at "
            f"the fifteenth; other ways pay {others} %",
            f"It is {smaller} % smaller than `epsilon`",
        ],
        "ledger.md": [f"four equal ones cost {between(shared[4])} times one"],
    }


if __name__ == "__main__":
    for document, texts in stated().items():
        for text in texts:
            print(f"{document}: {text}")
