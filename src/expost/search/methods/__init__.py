"""The methods by name: how the privacy level is found.

Names are imported when asked for: the command line reads :data:`NAMES` alone until it knows that it was called rightly.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from expost.lazy import importer

if TYPE_CHECKING:
    from expost.search.methods.doubling import DoublingPlan, doubling_search
    from expost.search.request import Method

    METHODS: dict[str, Method]

#: The module and class of every method, by the name the caller knows it by.
NAMES = {
    "auto": ("certified", "Automatic"),
    "certified": ("certified", "Certified"),
    "stationarity": ("tested", "Stationarity"),
    "above_threshold": ("tested", "RiskTested"),
    "doubling": ("doubling", "Doubling"),
    "theory": ("single_shot", "Theory"),
    "fixed": ("single_shot", "Fixed"),
}

_HOMES = {"DoublingPlan": "doubling", "Method": "doubling", "doubling_search": "doubling"}

__all__ = ["METHODS", "NAMES", "DoublingPlan", "Method", "doubling_search"]


def _methods() -> dict[str, Method]:
    """Return every method by name."""
    return {name: getattr(import_module(f"{__name__}.{module}"), kind)() for name, (module, kind) in NAMES.items()}


__getattr__ = importer(__name__, _HOMES, {"METHODS": _methods})
