"""What was paid: ex-post losses, how they add up, whom they protect, and budgets that bound their sum."""

from __future__ import annotations

from typing import TYPE_CHECKING

from expost.lazy import public_names

if TYPE_CHECKING:
    from expost.account.account import Budget as Budget, budget as budget
    from expost.account.composition import (
        ROW as ROW,
        Composition as Composition,
        Unit as Unit,
        add_losses as add_losses,
        compose as compose,
    )
    from expost.account.ledger import Ledger as Ledger
    from expost.account.levels import doubling_rounds as doubling_rounds, geometric_levels as geometric_levels
    from expost.account.loss import (
        ApproximateCap as ApproximateCap,
        CurveLoss as CurveLoss,
        PrivacyLoss as PrivacyLoss,
        PureLoss as PureLoss,
    )

__getattr__, __all__ = public_names(__name__)
