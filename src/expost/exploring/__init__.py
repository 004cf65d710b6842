"""A page to explore prices with: one file, computed beforehand, that asks nobody for anything."""

from expost.exploring.bundle import page
from expost.exploring.data import explorer_data

__all__ = ["explorer_data", "page"]
