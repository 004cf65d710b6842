"""Data to try the library on, and the paper's two data sets."""

from expost.datasets.household import HOUSEHOLD_BOUNDS, make_household_energy
from expost.datasets.paper import Dataset, load_kddcup99, load_twitter_buzz
from expost.datasets.survey import SURVEY_SCHEMA, make_survey

__all__ = [
    "HOUSEHOLD_BOUNDS",
    "SURVEY_SCHEMA",
    "Dataset",
    "load_kddcup99",
    "load_twitter_buzz",
    "make_household_energy",
    "make_survey",
]
