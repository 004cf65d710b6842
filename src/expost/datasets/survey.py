"""Two generated surveys of households, nobody's data: one with text, gaps and a schema, one of numbers alone."""

from __future__ import annotations

import csv
import io
from typing import Any

import numpy as np
from numpy.typing import NDArray

# What anyone could state about such a survey without having seen it.
SURVEY_SCHEMA: dict[str, Any] = {
    "target": "satisfied",
    "classes": ["no", "yes"],
    "missing": ["", "?"],
    "columns": {
        "residents": {"bounds": [1, 8]},
        "floor_area": {"bounds": [10, 300]},
        "income": {"bounds": [0, 500000], "transform": "log1p"},
        "tenure": {"categories": ["own", "rent", "social"], "other": True},
        "heating": {"categories": ["gas", "electric", "district", "wood"], "other": True},
        "region": {"categories": ["north", "south", "east", "west"]},
        "balcony": {"boolean": True},
    },
}


def make_survey(n: int = 20_000, *, seed: int = 0) -> dict[str, NDArray[Any]]:
    """Return columns of a generated survey, the target ``satisfied`` last.

    Examples
    --------
    >>> list(make_survey(10))
    ['residents', 'floor_area', 'income', 'tenure', 'heating', 'region', 'balcony', 'satisfied']
    """
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n}")
    rng = np.random.default_rng(seed)
    residents = np.clip(1 + rng.poisson(1.3, n), 1, 8)
    area = np.clip(rng.gamma(6.0, 14.0, n), 12, 290).round()
    income = np.clip(rng.lognormal(10.4, 0.6, n), 0, 400_000).round()
    tenure = rng.choice(["own", "rent", "social", "?"], n, p=[0.45, 0.35, 0.17, 0.03])
    heating = rng.choice(["gas", "electric", "district", "wood", "heat pump"], n, p=[0.5, 0.2, 0.15, 0.1, 0.05])
    region = rng.choice(["north", "south", "east", "west"], n)
    balcony = rng.random(n) < 0.4
    score = 0.035 * (area / residents - 40) + 0.9 * (np.log1p(income) - 10.4) + 0.8 * balcony
    score += 0.9 * (tenure == "own") - 0.9 * (tenure == "social") - 0.6 * (heating == "electric")
    satisfied = 2.5 * score + rng.logistic(size=n) > 0
    return {
        "residents": residents,
        "floor_area": area,
        "income": income,
        "tenure": tenure,
        "heating": heating,
        "region": region,
        "balcony": balcony,
        "satisfied": np.where(satisfied, "yes", "no"),
    }


def survey_csv(n: int = 20_000, *, seed: int = 0) -> str:
    """Return the survey as the text of a CSV file, numbers without a point and truth as yes and no.

    Examples
    --------
    >>> print(survey_csv(2), end="")
    residents,floor_area,income,tenure,heating,region,balcony,satisfied
    2,83,58003,social,gas,east,no,yes
    1,92,21542,social,wood,north,yes,yes
    """
    columns = make_survey(n, seed=seed)
    written = {
        name: np.where(cells, "yes", "no") if cells.dtype.kind == "b" else cells for name, cells in columns.items()
    }
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(written)
    writer.writerows(
        zip(*(cells.astype(int) if cells.dtype.kind == "f" else cells for cells in written.values()), strict=True)
    )
    return file.getvalue()


_TOML = """\
# What is publicly known about the survey: from its questionnaire, not from its rows.
"""


def survey_toml() -> str:
    """Return the schema as the text of a TOML file.

    Examples
    --------
    >>> print(*survey_toml().splitlines()[:3], sep="\\n")
    # What is publicly known about the survey: from its questionnaire, not from its rows.
    target = "satisfied"
    classes = ["no", "yes"]
    """
    from expost.table.schema import Schema

    return f"{_TOML}{Schema.from_dict(SURVEY_SCHEMA).to_toml()}\n"


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
