"""Data to try the library on."""

from expost.datasets.household import HOUSEHOLD_BOUNDS, make_household_energy

__all__ = ["HOUSEHOLD_BOUNDS", "make_household_energy"]
