"""What was paid: ex-post losses, how they add up, whom they protect, and budgets that bound their sum."""

from __future__ import annotations

from typing import TYPE_CHECKING

from expost.lazy import public_names

if TYPE_CHECKING:
    from expost.account.account import Account as Account, Budget as Budget, budget as budget
    from expost.account.composition import (
        NOTHING as NOTHING,
        ROW as ROW,
        Composition as Composition,
        Curve as Curve,
        Unit as Unit,
        add_losses as add_losses,
        compose as compose,
    )
    from expost.account.ledger import Ledger as Ledger
    from expost.account.loss import (
        ApproximateCap as ApproximateCap,
        CurveLoss as CurveLoss,
        PrivacyLoss as PrivacyLoss,
        PureLoss as PureLoss,
    )
    from expost.numeric import geometric_levels as geometric_levels

__getattr__, __all__ = public_names(__name__)
