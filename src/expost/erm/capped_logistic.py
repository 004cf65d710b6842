"""The logistic loss with its slope capped: a straight line where a row is on the wrong side by far.

For an error rate it is as good as the logistic loss and costs a fraction of the privacy: a row moves the gradient by at
most ``slope`` times its length. It is convex with φ′ < 0 at margin 0, hence calibrated for classification (Bartlett,
Jordan, McAuliffe 2006); its values are no log loss, and probabilities are not what it estimates.
"""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
from scipy.special import expit

from expost.erm._rounding import UNIT, round_up
from expost.erm._types import FloatArray
from expost.erm.losses import Labels, LogisticLoss, Loss


class CappedLogisticLoss(Loss):
    """φ with φ′ = −y·min(σ(−m), s), m = yu, y = ±1.

    Parameters
    ----------
    slope : float
        s, the largest slope; ½ caps it at margin 0.

    Examples
    --------
    >>> loss = CappedLogisticLoss(0.5)
    >>> loss.lipschitz(3.0), loss.curvature, round(loss.null_value, 6)
    (0.5, 0.25, 0.693147)
    """

    labels: ClassVar[Labels] = "binary"
    name = "capped logistic"
    symmetric = True
    one_sided = True

    def __init__(self, slope: float) -> None:
        if not 0.0 < slope < 1.0:
            raise ValueError("slope must lie strictly between 0 and 1")
        self.slope = slope

    def __repr__(self) -> str:
        return f"CappedLogisticLoss(slope={self.slope})"

    @property
    def _corner(self) -> float:
        """The margin at which σ(−m) = s."""
        return math.log((1.0 - self.slope) / self.slope)

    @property
    def curvature(self) -> float:
        """σ(m)σ(−m) where the slope is below s: ¼, or s(1 − s) if that leaves out margin 0."""
        return 0.25 if self.slope >= 0.5 else round_up(self.slope * (1.0 - self.slope))

    @property
    def null_value(self) -> float:
        """φ at margin 0."""
        return self._at(0.0)

    @property
    def pull(self) -> float:
        """m·min(σ(−m), s) is largest where the logistic loss's is, or at the corner if that lies beyond."""
        corner = self._corner
        best = 1.0 + LogisticLoss.pull  # where m/(1 + e^m) is stationary
        return LogisticLoss.pull if corner <= best else round_up(corner * self.slope)

    def _at(self, margin: float) -> float:
        return float(self.value(np.array([margin]), np.ones(1))[0])

    def value(self, u: FloatArray, y: FloatArray) -> FloatArray:
        """Return log(1 + e^{−m}) above the corner, the tangent there below it."""
        margin, corner = y * u, self._corner
        held = np.maximum(margin, corner)
        smooth = np.log1p(np.exp(-np.abs(held))) + np.maximum(-held, 0.0)
        return np.asarray(smooth + self.slope * (held - margin))

    def derivative(self, u: FloatArray, y: FloatArray) -> FloatArray:
        """Return −y·min(σ(−m), s)."""
        return np.asarray(-y * np.minimum(expit(-y * u), self.slope), dtype=np.float64)

    def second_derivative(self, u: FloatArray, y: FloatArray) -> FloatArray:
        """Return σ(u)σ(−u) above the corner, 0 below."""
        return np.asarray(np.where(y * u >= self._corner, expit(u) * expit(-u), 0.0), dtype=np.float64)

    def lipschitz(self, radius: float) -> float:
        """Return s, or the logistic loss's slope where that is less."""
        return min(self.slope, LogisticLoss().lipschitz(radius))

    def spread(self, radius: float) -> float:
        """Return φ at margin −radius less φ at margin radius (rounded up)."""
        top = self._at(-radius)
        return min(top, top - self._at(radius) + 8.0 * UNIT * top)
