"""A generated survey of household energy use: bounded columns, a clear signal, nobody's data."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# What anyone could state about such a survey without having seen it.
HOUSEHOLD_BOUNDS: dict[str, tuple[float, float]] = {
    "floor_area_m2": (20.0, 220.0),
    "residents": (1.0, 7.0),
    "outdoor_temperature": (-15.0, 35.0),
    "insulation_grade": (0.0, 10.0),
    "electric_heating": (0.0, 1.0),
}
TARGET_BOUNDS = (0.0, 80.0)


def make_household_energy(n: int = 200_000, *, seed: int = 0) -> dict[str, NDArray[np.float64]]:
    """Return columns of a generated survey, the target ``kwh_per_day`` last.

    Examples
    --------
    >>> list(make_household_energy(10))
    ['floor_area_m2', 'residents', 'outdoor_temperature', 'insulation_grade', 'electric_heating', 'kwh_per_day']
    """
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n}")
    rng = np.random.default_rng(seed)
    area = np.clip(rng.gamma(6.0, 18.0, n), 20, 220)
    residents = np.clip(1 + rng.poisson(1.4, n), 1, 7).astype(np.float64)
    temperature = np.clip(rng.normal(10.0, 9.0, n), -15, 35)
    grade = np.clip(np.round(rng.normal(5.0, 2.5, n)), 0, 10)
    electric = (rng.random(n) < 0.35).astype(np.float64)
    use = 4 + 0.09 * area + 2.5 * residents - 0.45 * (temperature - 10) - 1.1 * (grade - 5) + 14 * electric
    columns = dict(zip(HOUSEHOLD_BOUNDS, (area, residents, temperature, grade, electric), strict=True))
    return {**columns, "kwh_per_day": np.clip(use + rng.normal(0.0, 4.0, n), 0, 90)}
