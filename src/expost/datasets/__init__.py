"""Data to try the library on, and the paper's two data sets."""

from expost.datasets.paper import Dataset, load_kddcup99, load_twitter_buzz
from expost.datasets.survey import HOUSEHOLD_BOUNDS, SURVEY_SCHEMA, make_household_energy, make_survey

__all__ = [
    "HOUSEHOLD_BOUNDS",
    "SURVEY_SCHEMA",
    "Dataset",
    "load_kddcup99",
    "load_twitter_buzz",
    "make_household_energy",
    "make_survey",
]
