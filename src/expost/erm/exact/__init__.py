"""Minimisers in integer arithmetic, for the rows on which floating point gives up.

``expost.erm.minimisation`` says when. Nothing here is fast, and nothing here can fail: no rows keep
these methods from a minimiser that is right to its last digit. Private, as all minimisers are.
"""

from expost.erm.exact.ridge import exact_ridge
from expost.erm.exact.solution import exact_minimiser, exact_steps

__all__ = ["exact_minimiser", "exact_ridge", "exact_steps"]
