"""Noisy gradient descent: each step releases a sum of clipped gradients with exact Gaussian noise (theory C6).

*Released*: first M = Σ x̂_i + noise, x̂ a row shortened to a public length; its mean is where rows are looked at from
(`expost.erm.frame`). Then how long rows are there, one noisy number: a sum of whole parts between 0 and 2¹⁶, which one
row moves by 2¹⁶ at most. Then G_t = Σ s_i x̃_i + noise at θ_t, which was computed from what was released before; x̃ is a
row in that frame. *Neighbours*: one row replaced. *Sensitivity*: ‖s·x̃‖ ≤ C for every row, in integers
(`expost.erm.clipped_gradient`), so a sum moves by ‖s·x̃ − s′·x̃′‖ ≤ 2C, whatever the frame and C are; k rows that are
replaced together move it by 2kC.

*Theorem*. A step costs rρ at Rényi order r, ρ = (2kC)²/(2σ²), whatever θ_t and the frame are: by the discrete
Gaussian's divergence, coordinate by coordinate (`expost.noise.gaussian`). Steps are chosen from what was released
before, so their curves add (`expost.privacy.renyi`); nothing is subsampled and nothing amplified. θ_{t+1}, averages of
iterates, the frame and step sizes read released numbers only.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from expost.data.batches import RowSource
from expost.data.fixed_point import ONE
from expost.data.rows import Rows
from expost.erm.clipped_gradient import SLOPE_ONE, ClippedGradients, SlopeTable
from expost.erm.error_bounds import GeneralErrors
from expost.erm.frame import Frame
from expost.erm.geometry import Geometry
from expost.erm.passes import Passes
from expost.erm.problem import Problem
from expost.erm.sums import Sums
from expost.mechanisms.mechanism import Mechanism
from expost.mechanisms.objective import require_shape
from expost.noise.gaussian import discrete_gaussian
from expost.noise.laplace import Integers
from expost.noise.source import WordSource

if TYPE_CHECKING:
    from expost.search.request import Plan, Request

_UP = 1.0 + 1e-12  # rounding of a few products


@dataclass(frozen=True)
class GradientNoise:
    """How one noisy sum is drawn, and what it costs; public.

    Attributes
    ----------
    columns
        How many numbers it has.
    most
        C, in units of 2⁻³²; k times that where k rows are replaced together.
    rho
        ρ of one step.
    """

    columns: int
    most: int
    rho: float

    @property
    def deviation(self) -> float:
        """σ, in units of 2⁻³²."""
        return 2.0 * self.most / math.sqrt(2.0 * self.rho) * _UP

    def draws(self, steps: int, source: WordSource) -> Integers:
        """Return the noise of that many steps, one in each row: it depends on nothing that is private."""
        drawn = discrete_gaussian(self.deviation, steps * self.columns, random_state=source)
        return drawn.reshape(steps, self.columns)


def noisy_sum(total: Iterable[int], noise: Integers) -> NDArray[np.float64]:
    """Return a sum with its noise, added in integers, in units of 1."""
    exact = [int(value) + int(more) for value, more in zip(total, noise, strict=True)]
    return np.array([value / (ONE * SLOPE_ONE) for value in exact], dtype=np.float64)


class DescentGenerator:
    """The private side: rows whose gradients are summed, and what goals are measured on."""

    def __init__(self, mechanism: GradientDescent, rows: Rows | RowSource, problem: Problem) -> None:
        self.mechanism, self.problem = mechanism, problem
        self.gradients = ClippedGradients(rows, SlopeTable.of(problem.loss))
        self.judge = Passes.over(problem.loss, rows)


@dataclass(frozen=True)
class GradientDescent(Mechanism):
    """Noise on every gradient; for losses whose slope is bounded, under approximate privacy.

    Parameters
    ----------
    geometry
        The rows' shape, which says how they are looked at.
    """

    geometry: Geometry

    gaussian = True
    name = "gradient descent"
    exact = ("rows in fixed point", "sums of clipped gradients", "generation noise", "test noise and comparisons")
    charged = ()

    @classmethod
    def of(cls, *, noise: str, full_matrix: bool) -> GradientDescent:
        """Refuse: the shape of the rows has to be known."""
        raise ValueError("gradient descent is made from the shape of the rows: GradientDescent(geometry)")

    def require(self, problem: Problem) -> None:
        """Raise unless slopes are bounded."""
        if not math.isfinite(problem.loss.lipschitz(math.inf)):
            raise ValueError(f"gradient descent needs a loss of bounded slope, not the {problem.loss.name} loss")

    def require_declared(self, rows: Rows | RowSource | Sums) -> None:
        """Raise unless rows declare the shape, and the constant that frames are moved by."""
        constant = self.geometry.constant
        fitting = require_shape(rows, self.geometry, self.name)
        if constant is not None and fitting.constant != (constant, Frame.of(self.geometry).value):
            raise ValueError(
                f"rows do not declare the constant that {self.name} is made for; pass constant to Rows. "
                f"Nothing was spent"
            )

    def errors(self, problem: Problem) -> GeneralErrors:
        """Return the errors of risks that come from passes over the rows."""
        return GeneralErrors(problem.loss, problem.n, problem.p, problem.regularization)

    def theory_epsilon(self, problem: Problem, excess_risk: float) -> NoReturn:
        """Refuse: no utility theorem is used."""
        raise ValueError("gradient descent is for goals that are tested, not for an excess risk")

    def gradient_epsilon(self, problem: Problem, excess_risk: float) -> NoReturn:
        """Refuse likewise."""
        self.theory_epsilon(problem, excess_risk)

    def certificate(self, request: Request, excess_risk: float, *, automatic: bool) -> Plan:
        """Refuse likewise."""
        return self.theory_epsilon(request.problem, excess_risk)

    def can_certify(self, problem: Problem) -> bool:
        """Whether a certificate applies: none does."""
        return False

    def on(self, rows: Rows | RowSource | Sums, problem: Problem) -> Any:
        """Return the generator for private rows."""
        self.require_rows(rows, problem)
        assert not isinstance(rows, Sums)
        return DescentGenerator(self, rows, problem)
