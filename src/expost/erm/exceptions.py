"""The one way a computation in this room can fail on admissible input."""

from __future__ import annotations


class ConvergenceError(RuntimeError):
    """A minimiser could not be certified to the public tolerance.

    The charge for an inexact minimiser is computed from the tolerance, so an uncertified one must not be
    used. With the default tolerances this is not expected for any rows; that it was raised is itself a fact
    about private rows.
    """
