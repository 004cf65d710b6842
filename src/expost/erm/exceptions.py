"""The one way a minimiser can fail to be found."""

from __future__ import annotations


class ConvergenceError(RuntimeError):
    """A minimiser could not be certified to the public tolerance: the loss is not what it says it is.

    The charge for an inexact minimiser is computed from the tolerance, so an uncertified one must not
    be used. For a convex loss with the constants it states, no rows can cause this error
    (``expost.erm.minimisation``); for the losses of the library it does not occur.
    """
