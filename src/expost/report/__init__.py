"""A release on paper: what was promised and paid, for a privacy officer, and the model it holds.

A report is a function of the release alone (and of the data set's budget, if that is given): the same release gives the
same bytes, and nothing is read from elsewhere.
"""

from expost.report.budget import BudgetLine
from expost.report.page import report

__all__ = ["BudgetLine", "report"]
