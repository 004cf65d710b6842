"""Second moments under Gaussian noise for goals that are tested: less noise and less shrinkage stage by stage (C4, C5).

A stage releases XᵀX and Xᵀy once more (`expost.mechanisms.moment_noise`); its model is ridge regression on the average
of all releases so far, with a λ that goes with the noise that is left. Stages, looks and budget are those of
`expost.search.staged`, and so are both theorems: accuracy is shown by looks alone, so nothing has to be right about λ.

*λ* is a part of a quantile of ‖B‖_op/n, B the noise in the average: a public number that follows from ρ. The realised
‖B‖ is private and never used. Columns are divided by the noise's own d for it, so that noise is alike in all of them;
the negative eigenvalues that noise leaves count as zero.
"""

from __future__ import annotations

import numpy as np

from expost.erm.geometry import Geometry
from expost.erm.losses import Loss
from expost.erm.measures import Judge, to_grid
from expost.goals.goal import TestedGoal
from expost.mechanisms.gaussian_moments import MomentGenerator
from expost.mechanisms.moment_noise import AveragedMoments, MomentNoise
from expost.noise.source import WordSource
from expost.privacy.renyi import Curve
from expost.privacy.unit import ROW, Unit
from expost.search.pace import Pace
from expost.search.staged import USUALLY, Floats, StagedPlan
from expost.tails.gaussian_moments import matrix_norm

_TYPICAL = 2.0  # ‖θ‖ of a model, columns divided by d; looked at on Diamonds and Adult, any value is sound
_PART = 0.25  # λ as a part of the quantile
_QUANTILE = 0.1  # noise is larger than its quantile with at most this probability
_START = 8.0  # a first stage leaves noise of at most 1/8 on a mean gradient, in units of the table


def moments_rho(geometry: Geometry, n: int, unit: Unit = ROW) -> float:
    """Return the ρ at which second moments leave something to be seen: public, to compare mechanisms by.

    The counterpart for gradients is :func:`expost.search.descent.first_rho`.

    Examples
    --------
    >>> from expost.erm.geometry import l2_ball
    >>> few, many = (moments_rho(l2_ball(p), 10_000) for p in (4, 100))
    >>> bool(20 < many / few < 30)
    True
    """
    noise = MomentNoise(geometry, _TYPICAL, unit.rows)
    return float(0.5 * (noise.typical * _START * geometry.scale / n) ** 2)


class MomentsPlan(StagedPlan):
    """Second moments, stage by stage; attributes are those of :class:`~expost.search.staged.StagedPlan`."""

    each = "second moments under Gaussian noise: {stages} stage(s), averaged"

    @classmethod
    def serves(cls, loss: Loss) -> bool:
        """Whether least squares will do: they tell classes apart, but estimate no probabilities."""
        return loss.name != "logistic"

    @classmethod
    def usual_pace(cls, loss: Loss, goal: TestedGoal | None = None) -> Pace:
        """Return the pace for any goal: looks cost little beside moments."""
        return Pace(test_part=0.1)

    @property
    def least_stage(self) -> float:
        """ρ of a stage whose noise leaves something to be seen."""
        return moments_rho(self.geometry, self.n, self.unit)

    @property
    def usually(self) -> float:
        """How many times less noise searches usually end with; regression needs far better moments than labels do."""
        return USUALLY if self.loss.labels == "binary" else 4.0 * USUALLY

    def walk(self, generator: MomentGenerator) -> tuple[MomentWalk, Judge]:
        """Return what averages releases, before the first."""
        return MomentWalk(generator, MomentNoise(self.geometry, _TYPICAL, self.unit.rows)), generator.judge


class MomentWalk:
    """Releases so far, averaged, and the ridge regression on them."""

    def __init__(self, generator: MomentGenerator, noise: MomentNoise) -> None:
        self._generator, self._noise = generator, noise
        self._averaged = AveragedMoments(noise)

    def cost(self, rho: float) -> Curve:
        """Return what a stage costs: it is a Gaussian release."""
        return Curve.gaussian(rho)

    def stage(self, rho: float, source: WordSource) -> Floats:
        """Release the moments once more; return the model, on a public grid."""
        self._averaged.add(self._generator.reveal(self._noise, rho, source), rho)
        n = self._generator.problem.n
        second, first = (part / n for part in self._averaged.moments)
        lam = _PART * self._averaged.sigma * matrix_norm(len(first), _QUANTILE) / n
        values, vectors = np.linalg.eigh(second)
        model = vectors @ ((vectors.T @ first) / (np.maximum(values, 0.0) + lam)) / self._noise.divisors
        return to_grid(model, float(np.abs(model).max(initial=0.0)) or 1.0, norm="l2")
