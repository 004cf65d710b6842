"""What a mechanism is: a way to make hypotheses of private rows, with a stated privacy at every level.

The public side, :class:`Mechanism`, answers for everything that public numbers settle. The private side,
a :class:`Generator`, holds what hypotheses are made of. A new mechanism is one file here and an entry in
``mechanisms/__init__.py``.

**The null model** is the zeroth candidate (theory B6): is θ = 0 good enough already? *Released*: whether ‖∇L(0)‖ +
noise stays below a limit. *Sensitivity*: S(0)/n (2/n for the squared loss, 1/n for the logistic). *Theorem*:
`expost.search.noisy_test`, on the measure of `expost.goals.measure`. The question is cheap because a gradient is: a few
thousandths at n = 100,000, and an eighth of that where the gradient is many times too long, as noise is taken away step
by step and the question given up as soon as the answer is clear. L(0) itself certifies nothing.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, get_args

import numpy as np

from expost import validation
from expost.account import Account, add_losses
from expost.exceptions import TargetUnreachable
from expost.goals.measure import (
    GradientErrors,
    GradientLength,
    Gradients,
    MeanSquare,
    Measure,
    gradient_target,
)
from expost.noise import NoisePath, SphericalPath, WordSource
from expost.numeric import FloatArray
from expost.passes.sums import Sums
from expost.release.release import Release
from expost.search.noisy_test import OneTest
from expost.shown import down, up
from expost.solve import ErrorBounds, Problem, Risk
from expost.table.rows import ONE, Rows, RowSource
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

    def single(self, generator: Generator, epsilon: float, source: WordSource) -> FloatArray:
        """Run the single-shot mechanism at one ε: a path with one level."""
        (step,) = generator.path((epsilon,), source)
        return np.asarray(generator.hypothesis(step.values))


# A null model that meets the target usually meets it by far, so most of the target may go to noise.
_SHARE = 0.6


@dataclass(frozen=True)
class NullQuestion:
    """The question, settled; public.

    Attributes
    ----------
    problem, excess_risk
        What is asked about, and how good is good enough.
    test
        The test of θ = 0.
    cost
        What it costs at most, rounding and floating point included; known before it is asked.
    """

    problem: Problem
    excess_risk: float
    test: OneTest
    cost: float

    @classmethod
    def of(
        cls, problem: Problem, excess_risk: float, failure_probability: float, errors: GradientErrors
    ) -> NullQuestion:
        """Settle the test."""
        test = OneTest(gradient_target(excess_risk, problem.regularization), failure_probability, _SHARE)
        cost = test.cost(problem.null_gradient_sensitivity, errors.gradient_error_bound(0.0))
        return cls(problem, excess_risk, test, 0.0 if excess_risk >= problem.loss.null_value else cost)

    @property
    def holds_for_any_rows(self) -> bool:
        """Whether θ = 0 meets the target whatever the rows: min L ≥ 0, and L(0) is at most what a row costs there."""
        return self.excess_risk >= self.problem.loss.null_value

    def require_affordable(self, budget: float) -> None:
        """Say so if not even this question fits the budget; nothing is spent by that."""
        if self.cost > budget:
            n = self.problem.n
            rows = math.ceil(n * self.cost / budget * 1.01)
            raise TargetUnreachable(
                f"at n = {n} the first question alone (is the null model good enough?) costs epsilon = "
                f"{up(self.cost)}, more than max_epsilon = {down(budget)}. Pass a larger excess_risk or max_epsilon, "
                f"or at least {rows:,} rows. Nothing was spent."
            )

    def ask(self, risk: Gradients, account: Account, source: WordSource) -> bool:
        """Ask, and charge the account; nothing is asked or charged if the answer does not depend on the rows."""
        if self.holds_for_any_rows:
            account.reasons.append("the null model meets the target whatever the rows: nothing was looked at")
            return True
        measure = GradientLength(risk, self.problem.loss, self.problem.n)
        accepted, epsilon = self.test.ask_gradually(measure, np.zeros(self.problem.p), source)
        account.test = add_losses(account.test, epsilon)
        account.reasons.append(
            f"null model tested for epsilon = {up(epsilon)}: "
            + ("good enough" if accepted else "not shown to be good enough")
        )
        return accepted


def require_shape(
    rows: Rows | RowSource | Sums, geometry: Geometry, name: str = "objective perturbation"
) -> Rows | RowSource:
    """Return the rows, or say that they are not what the noise is made for."""
    if isinstance(rows, Sums):
        raise ValueError(f"{name} needs the rows themselves, not their sums")
    require_made_for(rows, geometry)
    return rows


def require_made_for(rows: Rows | RowSource | Sums, geometry: Geometry) -> None:
    """Raise unless rows, or those that sums are of, declare the shape that the noise is made for."""
    if not _made_for(rows, geometry):
        raise ValueError(
            f"rows do not declare the shape that the noise is made for ({geometry.name}); pass norm, shape or longest "
            f"to Rows. Nothing was spent"
        )


def _made_for(source: Rows | RowSource | Sums, geometry: Geometry) -> bool:
    """Whether no row exceeds the geometry by what rows declare: nothing is looked at."""
    if geometry.columns != source.p or geometry.radius < 1.0:
        return False
    slack = ONE * (1.0 + 1e-14)  # a radius is a rounded quotient; weights have room for that
    if len(geometry.blocks) == 1:
        (block,) = geometry.blocks
        if block.norm == "l2":
            return block.radius >= source.longest
        if block.norm == "l1" and source.norm == "l1":
            return block.radius >= 1.0
    if source.shape is None:
        return False
    if len(geometry.blocks) == 1 and geometry.blocks[0].norm == "l1":
        total = sum(size * unit if norm == "box" else unit for size, norm, unit in source.shape)
        return total <= geometry.blocks[0].radius * slack
    same = [(block.size, block.norm) for block in geometry.blocks] == [part[:2] for part in source.shape]
    return same and all(
        unit <= block.radius * slack for block, (_, _, unit) in zip(geometry.blocks, source.shape, strict=True)
    )
