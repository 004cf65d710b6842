"""From a request to a release: levels, noisy tests, above threshold, doubling, and the choice of a mechanism.

Names are imported when asked for: the command line reads :data:`METHOD_NAMES` alone until it knows that it was called
rightly.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from expost.lazy import public_names

if TYPE_CHECKING:
    from expost.goals.measure import (
        ErrorMeasure as ErrorMeasure,
        GradientLength as GradientLength,
        Measure as Measure,
        gradient_target as gradient_target,
    )
    from expost.numeric import Grid as Grid, geometric_levels as geometric_levels
    from expost.search.above_threshold import (
        AboveThreshold as AboveThreshold,
        Calibration as Calibration,
        StoppingRule as StoppingRule,
        calibrate as calibrate,
    )
    from expost.search.doubling import (
        DoublingPlan as DoublingPlan,
        doubling_rounds as doubling_rounds,
        doubling_search as doubling_search,
    )
    from expost.search.gradual import PrefixPrivate as PrefixPrivate, search_path as search_path
    from expost.search.kept_path_refinement import KeepPath as KeepPath, refine as refine, refit as refit
    from expost.search.noisy_test import OneTest as OneTest
    from expost.search.request import Method as Method, Plan as Plan, Request as Request
    from expost.search.run import (
        CuratorView as CuratorView,
        compare_with_optimum as compare_with_optimum,
        cov_nr as cov_nr,
        output_nr as output_nr,
        run_search as run_search,
    )

    METHODS: dict[str, Method]

#: The module and class of every method, by the name the caller knows it by: how the privacy level is found.
METHOD_NAMES = {
    "auto": ("gradual", "Automatic"),
    "certified": ("gradual", "Certified"),
    "stationarity": ("gradual", "Stationarity"),
    "above_threshold": ("gradual", "RiskTested"),
    "doubling": ("doubling", "Doubling"),
    "theory": ("doubling", "Theory"),
    "fixed": ("doubling", "Fixed"),
}


def _methods() -> dict[str, Method]:
    """Return every method by name."""
    homes = METHOD_NAMES.items()
    return {name: getattr(import_module(f"expost.search.{module}"), kind)() for name, (module, kind) in homes}


__getattr__, __all__ = public_names(__name__, {"METHODS": _methods})
