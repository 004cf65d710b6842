"""What a goal would cost, said before any data are read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from expost.lazy import public_names

if TYPE_CHECKING:
    from expost.planning.planner import plan as plan
    from expost.planning.result import (
        GoalPrice as GoalPrice,
        MethodPrice as MethodPrice,
        PricePlan as PricePlan,
        Saving as Saving,
    )

__getattr__, __all__ = public_names(__name__)
