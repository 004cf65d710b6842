"""What is minimised: losses with their constants, certified minimisers, true risks, sensitivities.

Everything here except constants and public bounds is private: minimisers and risks refuse to be pickled and print no
values. Private values leave through a release, never from here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from expost.lazy import public_names

if TYPE_CHECKING:
    from expost.solve.ball import minimise_in_ball as minimise_in_ball
    from expost.solve.error_bounds import (
        ErrorBounds as ErrorBounds,
        GeneralErrors as GeneralErrors,
        RidgeErrors as RidgeErrors,
        default_tolerance as default_tolerance,
        distance_bound as distance_bound,
        radius_tolerance as radius_tolerance,
    )
    from expost.solve.losses import (
        HuberLoss as HuberLoss,
        LogisticLoss as LogisticLoss,
        Loss as Loss,
        SmoothedHingeLoss as SmoothedHingeLoss,
        SquaredLoss as SquaredLoss,
    )
    from expost.solve.minimiser import (
        GeneralRisk as GeneralRisk,
        Minimum as Minimum,
        RidgeRisk as RidgeRisk,
        Risk as Risk,
        minimise as minimise,
    )
    from expost.solve.problem import (
        Problem as Problem,
        excess_risk_sensitivity as excess_risk_sensitivity,
        gradient_sensitivity as gradient_sensitivity,
        minimiser_l1_sensitivity as minimiser_l1_sensitivity,
        minimiser_l2_sensitivity as minimiser_l2_sensitivity,
        paper_ridge_output_sensitivity as paper_ridge_output_sensitivity,
    )
    from expost.solve.row_sums import Passes as Passes

__getattr__, __all__ = public_names(__name__)
