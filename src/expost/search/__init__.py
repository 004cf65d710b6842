"""From a request to a release: levels, methods, and the search that joins them. Names are imported when asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from expost.lazy import importer

if TYPE_CHECKING:
    from expost.search.curator import CuratorView, compare_with_optimum
    from expost.search.gradual_release import PrefixPrivate, search_path
    from expost.search.levels import doubling_rounds, geometric_levels
    from expost.search.methods import METHODS, DoublingPlan, Method, doubling_search
    from expost.search.refinement import KeepPath, refine
    from expost.search.refitting import refit
    from expost.search.request import Plan, Request
    from expost.search.run import cov_nr, output_nr, run_search

_HOMES = {
    "METHODS": "methods",
    "CuratorView": "curator",
    "DoublingPlan": "methods",
    "KeepPath": "refinement",
    "Method": "methods",
    "Plan": "request",
    "PrefixPrivate": "gradual_release",
    "Request": "request",
    "compare_with_optimum": "curator",
    "cov_nr": "run",
    "doubling_rounds": "levels",
    "doubling_search": "methods",
    "geometric_levels": "levels",
    "output_nr": "run",
    "refine": "refinement",
    "refit": "refitting",
    "run_search": "run",
    "search_path": "gradual_release",
}

__all__ = [
    "METHODS",
    "CuratorView",
    "DoublingPlan",
    "KeepPath",
    "Method",
    "Plan",
    "PrefixPrivate",
    "Request",
    "compare_with_optimum",
    "cov_nr",
    "doubling_rounds",
    "doubling_search",
    "geometric_levels",
    "output_nr",
    "refine",
    "refit",
    "run_search",
    "search_path",
]

__getattr__ = importer(__name__, _HOMES)
