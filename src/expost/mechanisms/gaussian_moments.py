"""Second moments under Gaussian noise, for goals that are tested and for an excess risk (theory C1, C4).

What is released, its sensitivity and what it costs stand in `expost.mechanisms.moment_noise`; here is the private side,
which holds the exact sums, and the public name of it. Models are least squares, for labels −1 and 1 as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

from expost.data.batches import MemorySource, RowSource
from expost.data.rows import Rows
from expost.erm._private import Private
from expost.erm.error_bounds import RidgeErrors
from expost.erm.geometry import Geometry
from expost.erm.passes import Passes
from expost.erm.problem import Problem
from expost.erm.risk import RidgeRisk
from expost.erm.sums import Sums, sums_over
from expost.mechanisms.mechanism import Mechanism
from expost.mechanisms.moment_noise import MomentNoise, packed
from expost.mechanisms.objective import require_shape
from expost.noise.laplace import Integers
from expost.noise.source import WordSource

if TYPE_CHECKING:
    from expost.search.request import Request


class MomentGenerator(Private):
    """The private side: exact sums of the rows, and what goals are measured on."""

    def __init__(self, mechanism: GaussianMoments, rows: Rows | RowSource | Sums, problem: Problem) -> None:
        self.mechanism, self.problem = mechanism, problem
        source = MemorySource(rows) if isinstance(rows, Rows) else rows
        self.sums = source if isinstance(source, Sums) else sums_over(source)
        self._rows = rows
        self._packed = packed(self.sums)

    @cached_property
    def judge(self) -> Passes:
        """What goals are measured by."""
        assert not isinstance(self._rows, Sums)
        return Passes.over(self.problem.loss, self._rows)

    @cached_property
    def risk(self) -> RidgeRisk:
        """True risks and gradients."""
        return RidgeRisk(self.sums, self.problem.regularization, self.problem.radius)

    def reveal(self, noise: MomentNoise, rho: float, source: WordSource) -> Integers:
        """Return the moments with fresh noise that costs ρ; integers, added exactly."""
        found: Integers = self._packed + noise.draw(rho, source)
        return found


@dataclass(frozen=True)
class GaussianMoments(Mechanism):
    """Gaussian noise on the second moments, under approximate privacy.

    Parameters
    ----------
    geometry
        The rows' shape, which the noise follows.
    """

    geometry: Geometry

    gaussian = True
    name = "covariance"
    exact = ("rows in fixed point", "XᵀX and Xᵀy", "generation noise", "test noise and comparisons")
    charged = ()

    @classmethod
    def of(cls, *, noise: str, full_matrix: bool) -> GaussianMoments:
        """Refuse: the shape of the rows has to be known."""
        raise ValueError("Gaussian noise on moments is made from the shape of the rows: GaussianMoments(geometry)")

    def require_declared(self, rows: Rows | RowSource | Sums) -> None:
        """Take rows of the shape for goals that are tested; gradients are bounded for rows of the ℓ₁ ball alone."""
        if self._for_risk:
            super().require_declared(rows)
        if not isinstance(rows, Sums):
            require_shape(rows, self.geometry, self.name)

    @property
    def _for_risk(self) -> bool:
        """Whether noise is alike in every column, as a certificate needs it."""
        return len(self.geometry.blocks) == 1 and self.geometry.blocks[0].norm == "l2"

    def refinable(self, request: Request, excess_risk: float, later: tuple[float, ...]) -> NoReturn:
        """Refuse: fresh releases need no path."""
        raise ValueError("with a delta there is no path to keep: noise is fresh at every level; leave keep_path out")

    def minimised(self, problem: Problem) -> str:
        """Least squares, whatever the goal."""
        return "squared"

    def errors(self, problem: Problem) -> RidgeErrors:
        """Return the errors of risks that come from exact sums."""
        return RidgeErrors(problem.p, problem.regularization, problem.radius)

    def theory_epsilon(self, problem: Problem, excess_risk: float) -> NoReturn:
        """Refuse: no utility theorem is used."""
        raise ValueError("with a delta, second moments are released until a proof or a test passes; pass method='auto'")

    def gradient_epsilon(self, problem: Problem, excess_risk: float) -> NoReturn:
        """Refuse likewise."""
        self.theory_epsilon(problem, excess_risk)

    def certificate(self, request: Request, excess_risk: float, *, automatic: bool) -> NoReturn:
        """Refuse: `expost.search.moment_risk` has the search for an excess risk."""
        self.theory_epsilon(request.problem, excess_risk)

    def on(self, rows: Rows | RowSource | Sums, problem: Problem) -> Any:
        """Return the generator for private rows, or for their exact sums where they are of the unit ball."""
        self.require_rows(rows, problem)
        return MomentGenerator(self, rows, problem)


def moments_for(
    name: str | None, geometry: Geometry, *, noise: str = "laplace", full_matrix: bool = False
) -> GaussianMoments:
    """Return the mechanism for options as callers state them, or say which do not go with a δ."""
    if name not in (None, "covariance"):
        raise ValueError(f"perturbation={name!r} is pure; with a delta pass perturbation='covariance' or leave it out")
    if noise != "laplace" or full_matrix:
        raise ValueError("with a delta noise is Gaussian, on the upper triangle; leave noise and full_matrix out")
    return GaussianMoments(geometry)
