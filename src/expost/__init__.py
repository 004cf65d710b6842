"""Accuracy-first differential privacy.

You state how accurate a model must be; expost finds the most private model that meets it and reports the ex-post
privacy loss actually paid.

What most people need is here; exceptions and warnings are in `expost.exceptions`. The pieces, each usable alone, are in
`expost.noise` (exact noise, gradual release), `expost.search` (noisy tests, searches over any gradual release),
`expost.mechanisms` and `expost.solve` (losses, minimisers, sensitivities).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from expost.goals import flags
from expost.lazy import public_names

if TYPE_CHECKING:
    from expost.account.account import budget as budget
    from expost.account.composition import compose as compose
    from expost.account.ledger import Ledger as Ledger
    from expost.estimators.logistic import AccuracyFirstLogisticRegression as AccuracyFirstLogisticRegression
    from expost.estimators.model import AccuracyFirstModel as AccuracyFirstModel
    from expost.estimators.pipeline import PublicBoundsScaler as PublicBoundsScaler
    from expost.estimators.ridge import AccuracyFirstRidge as AccuracyFirstRidge
    from expost.goals.flags import *  # noqa: F403
    from expost.passes.dask import DaskEngine as DaskEngine
    from expost.passes.engine import LocalEngine as LocalEngine
    from expost.planning.planner import plan as plan
    from expost.release.release import Release as Release
    from expost.search.kept_path_refinement import KeepPath as KeepPath, refine as refine, refit as refit
    from expost.table.bounds import Bounds as Bounds
    from expost.table.files import read_table as read_table
    from expost.table.schema import Schema as Schema
    from expost.table.streamed import TableOnDisk as TableOnDisk


def _version() -> str:
    from importlib import metadata

    return metadata.version("expost")


#: Names that stand in their rooms alone, and where: asked for here, they come with a warning.
MOVED = {
    "Composition": "expost.account",
    "Preparation": "expost.table",
    "PricePlan": "expost.planning",
    "Promise": "expost.release",
    "curator_view": "expost.estimators",
    "gradient_path": "expost.estimators",
}

__getattr__, __all__ = public_names(__name__, {"__version__": _version}, listed=(flags.__name__,), moved=MOVED)
