"""What was paid: ex-post losses, how they add up, and the one door through which results leave."""

from expost.privacy.composition import Composition, add_losses, compose
from expost.privacy.frozen import FrozenMapping
from expost.privacy.release import NEIGHBOURS, Promise, Release

__all__ = ["NEIGHBOURS", "Composition", "FrozenMapping", "Promise", "Release", "add_losses", "compose"]
