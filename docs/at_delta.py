"""Compute the numbers that documents state about losses at a δ; ``tests/test_documents.py`` compares.

python docs/at_delta.py
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Iterable
from functools import cache
from statistics import NormalDist

import numpy as np

from expost import R2, AccuracyFirstModel, ErrorRate, LogLoss, MeanSquaredError, Release, budget, compose
from expost.account.composition import NOTHING, Clock, Curve

DELTA = 1e-6
ENDS = 15  # at which a descent may end
RHOS = [10.0**k for k in (-6, -5, -4, -3, -2, -1)]
GOALS = (ErrorRate(0.25), LogLoss(0.5), R2(0.4), MeanSquaredError(160))
COLUMNS = {"age": {"bounds": [18, 90]}, "hours": {"bounds": [0, 80]}}
SCHEMAS = {
    "late": {"target": "late", "classes": ["no", "yes"], "columns": COLUMNS},
    "spend": {"target": "spend", "target_bounds": [0, 100], "columns": COLUMNS},
}


@cache
def fits(*, shared: bool) -> list[Release]:
    """Return fits of goals of each kind to generated tables, each by itself or in a budget that others may share."""
    made = []
    for n in (5_000, 20_000):
        rng = np.random.default_rng(n)
        age, hours = rng.uniform(18, 90, n), rng.uniform(0, 80, n)
        score = (age - 54) / 20 + (hours - 40) / 25 + rng.normal(size=n)
        targets = {"late": np.where(score > 0, "yes", "no"), "spend": np.clip(50 + 10 * score, 0, 100)}
        for goal, seed in itertools.product(GOALS, (1, 2)):
            target = "late" if isinstance(goal, ErrorRate | LogLoss) else "spend"
            table = {"age": age, "hours": hours, target: targets[target]}
            model = AccuracyFirstModel(SCHEMAS[target], goal, delta=DELTA, random_state=seed)
            with budget(epsilon=2.0, delta=DELTA) if shared else contextlib.nullcontext():
                made.append(model.fit(table).release_)
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
    alone, shared = fits(shared=False), [fit.account_curve() for fit in fits(shared=True)]
    composed = {k: [compose([one] * k, delta=DELTA).epsilon / one.epsilon for one in alone] for k in (5, 10)}
    together = {k: [sum([one] * k, NOTHING).epsilon(DELTA) / one.epsilon(DELTA) for one in shared] for k in (4, 5, 10)}
    dearer = {
        end: max(
            Clock.of(rho * 2.0 ** (k - end) for k in range(1, ENDS + 1)).epsilon(rho, 0.0, DELTA) / of_fixed_length(rho)
            for rho in RHOS
        )
        for end in (1, 2, 4, ENDS)
    }
    more = {end: f"{100 * (part - 1):.0f} %" for end, part in dearer.items()}
    others = between((100 * (Curve.gaussian(rho).epsilon(DELTA) / of_fixed_length(rho) - 1) for rho in RHOS), 0)
    smaller = between((100 * (1 - one.epsilon_usual / one.epsilon) for one in alone), 0)
    return {
        "delta.md": [
            f"inside one budget ten equal fits cost {between(together[10])} times one",
            f"In the fits above, five equal releases then cost {between(composed[5])} times one, and ten "
            f"{between(composed[10])} times",
            f"Five equal fits then cost {between(together[5])} times one",
            f"{more[1]} more at the first end, {more[2]} at the second, {more[4]} at the fourth and {more[ENDS]} at "
            f"the fifteenth; other ways pay {others} %",
            f"In these fits it is {smaller} % smaller than `epsilon`",
        ],
        "ledger.md": [f"four equal ones cost {between(together[4])} times one"],
    }


if __name__ == "__main__":
    for document, texts in stated().items():
        for text in texts:
            print(f"{document}: {text}")
