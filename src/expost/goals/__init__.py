"""Targets people have, each in a file of its own: what it promises, what it is tested on, its units and its flag.

:class:`ExcessRisk` is the paper's. An error rate or a mean squared error is tested as it stands. A fraction of what the
null model leaves on the table becomes an excess risk by a private measurement (`expost.search.gap_probe`).
"""

from expost.goals.error_rate import ErrorRate
from expost.goals.excess_risk import ExcessRisk
from expost.goals.goal import Flag, Goal, TestedGoal
from expost.goals.log_loss import LogLoss
from expost.goals.mean_squared_error import MeanSquaredError
from expost.goals.r2 import R2
from expost.goals.relative import RelativeExcessRisk

#: Every goal, in the order the command line lists them.
GOALS: tuple[type[Goal], ...] = (ErrorRate, LogLoss, R2, MeanSquaredError, ExcessRisk, RelativeExcessRisk)

__all__ = [
    "GOALS",
    "R2",
    "ErrorRate",
    "ExcessRisk",
    "Flag",
    "Goal",
    "LogLoss",
    "MeanSquaredError",
    "RelativeExcessRisk",
    "TestedGoal",
]
