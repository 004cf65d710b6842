"""From a request to a release: levels, methods, and the search that joins them."""

from expost.search.curator import CuratorView, compare_with_optimum
from expost.search.gradual_release import PrefixPrivate, search_path
from expost.search.levels import doubling_rounds, geometric_levels
from expost.search.methods import METHODS, DoublingPlan, Method, doubling_search
from expost.search.refinement import KeepPath, refine
from expost.search.refitting import refit
from expost.search.request import Plan, Request
from expost.search.run import cov_nr, output_nr, run_search

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
