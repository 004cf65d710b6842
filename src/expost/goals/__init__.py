"""Targets people have, each whole in one file: its promise, its test, its units, its prices.

:class:`ExcessRisk` is the paper's. An error rate or a mean squared error is tested as it stands. A fraction of what the
null model leaves on the table becomes an excess risk by a private measurement (`expost.goals.relative_excess_risk`).

Names are imported when asked for. Which goals there are, their flags and their words stand in `expost.goals.flags`.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from expost.goals import flags
from expost.lazy import public_names

if TYPE_CHECKING:
    from expost.goals.flags import *  # noqa: F403
    from expost.goals.goal import Goal as Goal, TestedGoal as TestedGoal

    GOALS: tuple[type[Goal], ...]


def _goals() -> tuple[type[Goal], ...]:
    """Return every goal, in the order of the flags."""
    return tuple(getattr(sys.modules[__name__], name) for name in flags.FLAGS)


__getattr__, __all__ = public_names(__name__, {"GOALS": _goals}, listed=(flags.__name__,))
