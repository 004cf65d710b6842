"""Second moments under Gaussian noise for goals that are tested: less noise and less shrinkage stage by stage (C4, C5).

A stage releases XᵀX and Xᵀy once more (`expost.mechanisms.moment_noise`); its model is ridge regression on the average
of all releases so far, with a λ that goes with the noise that is left. Stages, looks and budget are those of
`expost.search.descent`, and so are both theorems: accuracy is shown by looks alone, so nothing has to be right about λ.

*λ* is a part of a quantile of ‖B‖_op/n, B the noise in the average: a public number that follows from ρ. The realised
‖B‖ is private and never used. Columns are divided by the noise's own d for it, so that noise is alike in all of them;
the negative eigenvalues that noise leaves count as zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from expost.erm.geometry import Geometry
from expost.erm.measures import to_grid
from expost.erm.problem import Problem
from expost.goals.goal import TestedGoal
from expost.mechanisms.gaussian_moments import GaussianMoments, MomentGenerator
from expost.mechanisms.moment_noise import AveragedMoments, MomentNoise
from expost.noise.source import WordSource
from expost.privacy.account import Account
from expost.privacy.release import Release
from expost.privacy.renyi_account import RenyiAccount
from expost.privacy.unit import ROW, Unit
from expost.search.descent import DescentPlan, Floats, StagedSearch, descent_request
from expost.search.methods import METHODS
from expost.search.request import Request
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


@dataclass(frozen=True)
class MomentsPlan(DescentPlan):
    """Where stages start and how they go on; public. Attributes are those of :class:`DescentPlan`."""

    @property
    def _least_stage(self) -> float:
        return moments_rho(self.geometry, self.n, self.unit)

    @property
    def each(self) -> str:
        """What a stage is, for people."""
        return "second moments under Gaussian noise: {} stage(s), averaged"

    def search(self, generator: Any, account: Account, source: WordSource) -> Release:
        """Go from stage to stage until a look passes or the budget is used up."""
        assert isinstance(account, RenyiAccount)
        walk = MomentWalk(generator, MomentNoise(self.geometry, _TYPICAL, self.unit.rows))
        return StagedSearch(self, walk, generator.judge, account, source).run()


class MomentWalk:
    """Releases so far, averaged, and the ridge regression on them."""

    def __init__(self, generator: MomentGenerator, noise: MomentNoise) -> None:
        self._generator, self._noise = generator, noise
        self._averaged = AveragedMoments(noise)

    def stage(self, rho: float, source: WordSource) -> Floats:
        """Release the moments once more; return the model, on a public grid."""
        self._averaged.add(self._generator.reveal(self._noise, rho, source), rho)
        n = self._generator.problem.n
        second, first = (part / n for part in self._averaged.moments)
        lam = _PART * self._averaged.sigma * matrix_norm(len(first), _QUANTILE) / n
        values, vectors = np.linalg.eigh(second)
        model = vectors @ ((vectors.T @ first) / (np.maximum(values, 0.0) + lam)) / self._noise.divisors
        return to_grid(model, float(np.abs(model).max(initial=0.0)) or 1.0, norm="l2")


def moments_request(
    goal: TestedGoal,
    geometry: Geometry,
    n: int,
    failure_probability: float,
    budget: float,
    delta: float,
    unit: Unit = ROW,
) -> Request:
    """Return the request for a goal in people's units by second moments; it promises nothing about a λ."""
    problem = Problem.of(goal.chain().loss, n=n, p=geometry.columns, regularization=1.0)
    return Request(
        problem,
        goal,
        METHODS["auto"],
        GaussianMoments(geometry),
        failure_probability,
        max_epsilon=budget,
        unit=unit,
        delta=delta,
    )


def staged_request(
    perturbation: str | None,
    goal: TestedGoal,
    geometry: Geometry,
    n: int,
    failure_probability: float,
    budget: float,
    delta: float,
    unit: Unit = ROW,
) -> Request:
    """Return the request at δ for a goal in people's units: by gradients, or by second moments if that is stated."""
    if perturbation not in (None, "covariance"):
        raise ValueError(
            f"perturbation must be 'covariance' (second moments) or left out with a delta, got {perturbation!r}"
        )
    made = descent_request if perturbation is None else moments_request
    return made(goal, geometry, n, failure_probability, budget, delta, unit)
