"""The release, the one door through which results leave: what it says, predicts, and looks like on paper.

A report is a function of the release alone (and of the data set's budget, if that is given): the same release gives the
same bytes, and nothing is read from elsewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from expost.lazy import public_names

if TYPE_CHECKING:
    from expost.account.composition import NEIGHBOURS as NEIGHBOURS
    from expost.release.evaluation import Evaluation as Evaluation
    from expost.release.page import BudgetLine as BudgetLine, report as report
    from expost.release.release import FrozenMapping as FrozenMapping, Promise as Promise, Release as Release

__getattr__, __all__ = public_names(__name__)
