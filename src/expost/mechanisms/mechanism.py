"""What a mechanism is: a way to make hypotheses of private rows, with a stated privacy at every level.

The public side, :class:`Mechanism`, answers for everything that is settled before a row is looked at. The private side,
a :class:`Generator`, holds what hypotheses are made of. A new mechanism is one file here and an entry in
``mechanisms/__init__.py``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from expost import validation
from expost.goals.measure import MeanSquare, Measure
from expost.noise.path import NoisePath
from expost.noise.source import WordSource
from expost.noise.spherical import SphericalPath
from expost.passes.sums import Sums
from expost.release.release import Release
from expost.solve.error_bounds import ErrorBounds
from expost.solve.problem import Problem
from expost.solve.risk import Risk
from expost.table.rows import Rows, RowSource
from expost.table.shape import Geometry

if TYPE_CHECKING:
    from expost.search.request import Plan, Request

Noise = Literal["laplace", "spherical"]
NoiseKind = Literal["exact", "over the reals"]


class Generator(Protocol):
    """Hypotheses from private rows: the private side of a mechanism."""

    @property
    def mechanism(self) -> Mechanism:
        """What it was made by."""
        ...

    @property
    def problem(self) -> Problem:
        """What it was made for."""
        ...

    @property
    def risk(self) -> Risk:
        """True risks and gradients; private."""
        ...

    def path(self, levels: tuple[float, ...], source: WordSource) -> NoisePath | SphericalPath:
        """Draw the gradual release of what hypotheses are made of."""
        ...

    def hypothesis(self, values: Any) -> Any:
        """Return the hypothesis that revealed values make."""
        ...

    def unrescaled(self, values: Any) -> Any:
        """Return the hypothesis as the utility theorem means it."""
        ...

    def excess_risk(self) -> Measure:
        """Return the excess risk as a measure; private."""
        ...

    def mean_square(self) -> MeanSquare:
        """Return the mean squared error; private."""
        ...


class Mechanism(ABC):
    """A way to make hypotheses; public."""

    name: ClassVar[str]
    #: What of it is exact arithmetic, and what is floating point that was bounded and charged.
    exact: ClassVar[tuple[str, ...]]
    charged: ClassVar[tuple[str, ...]]
    #: Whether its noise is Gaussian: it goes with a δ, in stages that book Rényi curves.
    gaussian: bool = False
    #: The shape of rows that its noise follows, where fresh releases make up a chain; None for a gradual release.
    geometry: Geometry | None = None

    @classmethod
    @abstractmethod
    def of(cls, *, noise: str, full_matrix: bool) -> Mechanism:
        """Return the mechanism with the caller's options, or say which of them it does not have."""

    @staticmethod
    def checked(noise: str) -> Noise:
        """Return the name of a kind of noise."""
        validation.one_of("noise", noise, get_args(Noise))
        return noise  # type: ignore[return-value]  # checked above

    @property
    def noise_kind(self) -> NoiseKind:
        """Whether its noise is exact, or analysed over the reals."""
        return "exact"

    @property
    def risks(self) -> bool:
        """Whether its generators know true risks, as those of a gradual release do."""
        return self.geometry is None

    def require(self, problem: Problem) -> None:
        """Raise a helpful error unless the problem is one it can solve."""
        return

    def require_rows(self, rows: Rows | RowSource | Sums, problem: Problem) -> None:
        """Raise unless noise and problem are made for such rows; said by what they declare, never by what they hold."""
        if (rows.n, rows.p) != (problem.n, problem.p):
            raise ValueError(
                f"the problem is about n = {problem.n} rows of p = {problem.p} columns, and these are {rows.n} of "
                f"{rows.p}; pass their numbers to Problem.of. Nothing was spent"
            )
        self.require_declared(rows)

    def require_declared(self, rows: Rows | RowSource | Sums) -> None:
        """Raise unless the noise is made for rows that declare what these do."""
        if rows.norm != "l1":
            raise ValueError(f"perturbation={self.name!r} needs rows in the ℓ₁ ball; these are in the Euclidean one")

    def minimised(self, problem: Problem) -> str:
        """Return the name of the loss that hypotheses minimise."""
        return problem.loss.name

    def noise_sensitivity(self, problem: Problem) -> float | None:
        """Return what noise on the parameters themselves is scaled by, over ε; None if noise goes elsewhere."""
        return None

    @abstractmethod
    def errors(self, problem: Problem) -> ErrorBounds:
        """Return how far computed risks, gradients and minimisers may be off."""

    @abstractmethod
    def theory_epsilon(self, problem: Problem, excess_risk: float) -> float:
        """Return the ε at which its utility theorem promises that expected excess risk (theory A7)."""

    def shot_epsilon(self, problem: Problem, excess_risk: float) -> float:
        """Return the ε at which that is promised of what is released, with all that is charged for computing it."""
        return self.theory_epsilon(problem, excess_risk)

    @abstractmethod
    def gradient_epsilon(self, problem: Problem, excess_risk: float) -> float:
        """Return the ε at which noise typically makes a gradient of √(2λα), hence an excess risk of at most α."""

    def can_certify(self, problem: Problem) -> bool:
        """Whether a certificate applies."""
        return True

    @abstractmethod
    def certificate(self, request: Request, excess_risk: float, *, automatic: bool) -> Plan:
        """Settle the certified search; ``automatic`` if it may also try ways that are cheaper only sometimes."""

    def behind(self, release: Release) -> Mechanism:
        """Return the mechanism that a release came from, where a plan may choose another."""
        return self

    def refinable(self, request: Request, excess_risk: float, later: tuple[float, ...]) -> Any:
        """Settle a certified search whose path can be gone on with, for other excess risks, decreasing."""
        raise ValueError(
            f"perturbation={self.name!r} has no gradual release to go on with; a path can be kept with "
            f"perturbation='covariance' or 'output'"
        )

    @abstractmethod
    def on(self, rows: Rows | RowSource | Sums, problem: Problem) -> Generator:
        """Return the generator for private rows, after :meth:`require_rows`."""

    def single(self, generator: Generator, epsilon: float, source: WordSource) -> NDArray[np.float64]:
        """Run the single-shot mechanism at one ε: a path with one level."""
        (step,) = generator.path((epsilon,), source)
        return np.asarray(generator.hypothesis(step.values))
