"""Generated data to try the library on."""

from expost.datasets.survey import HOUSEHOLD_BOUNDS, SURVEY_SCHEMA, make_household_energy, make_survey

__all__ = [
    "HOUSEHOLD_BOUNDS",
    "SURVEY_SCHEMA",
    "make_household_energy",
    "make_survey",
]
