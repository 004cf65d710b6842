"""What was paid: ex-post losses, how they add up, and the one door through which results leave."""

from expost.privacy.composition import Composition, add_losses, compose
from expost.privacy.curve_loss import ApproximateCap, CurveLoss
from expost.privacy.frozen import FrozenMapping
from expost.privacy.ledger import Ledger
from expost.privacy.loss import PrivacyLoss, PureLoss
from expost.privacy.release import NEIGHBOURS, Promise, Release
from expost.privacy.shared import Budget, budget
from expost.privacy.unit import ROW, Unit

__all__ = [
    "NEIGHBOURS",
    "ROW",
    "ApproximateCap",
    "Budget",
    "Composition",
    "CurveLoss",
    "FrozenMapping",
    "Ledger",
    "PrivacyLoss",
    "Promise",
    "PureLoss",
    "Release",
    "Unit",
    "add_losses",
    "budget",
    "compose",
]
