"""The methods that are compared, by name: what the paper ran, what it wrote, and what this library does by default.

Covariance perturbation as the paper's authors coded it; only for reproducing their curves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from expost.mechanisms import Covariance, CovarianceGenerator, Mechanism, Noise, mechanism_of
from expost.noise.laplace import Integers
from expost.passes.sums import Sums, sums_over
from expost.solve.ball import into_ball
from expost.solve.problem import Problem
from expost.table.rows import Rows, RowSource


@dataclass(frozen=True)
class RescaledCovariance(Covariance):
    """Noise on the second moments, whose normal equations are solved and the result rescaled into the ball.

    The solution of noisy normal equations need not be a minimum, and with ``full_matrix`` they are not symmetric; the
    paper's listing takes the minimum over the ball instead.
    """

    def on(self, rows: Rows | RowSource | Sums, problem: Problem) -> RescaledGenerator:
        """Return the generator for private rows, or for their exact sums."""
        self.require_rows(rows, problem)
        return RescaledGenerator(self, rows if isinstance(rows, Sums) else sums_over(rows), problem)


class RescaledGenerator(CovarianceGenerator):
    """Hypotheses from noisy normal equations."""

    def hypothesis(self, values: Integers | NDArray[np.float64]) -> NDArray[np.float64]:
        """Solve the noisy normal equations as they are, and rescale."""
        problem = self.problem
        gram, moment = self.layout.unpack(values, symmetric=False)
        hessian = gram / problem.n + problem.regularization * np.eye(problem.p)
        return into_ball(np.asarray(np.linalg.solve(hessian, moment / problem.n)), problem.radius)


Kind = Literal["reduction", "doubling", "theory", "auto", "certified", "stationarity", "oracle"]
RunMethod = Literal["above_threshold", "doubling", "theory", "auto", "certified", "stationarity", "fixed"]

_RUN: dict[Kind, RunMethod] = {
    "reduction": "above_threshold",
    "doubling": "doubling",
    "theory": "theory",
    "auto": "auto",
    "certified": "certified",
    "stationarity": "stationarity",
    "oracle": "fixed",
}


@dataclass(frozen=True)
class Method:
    """One curve of the figures.

    Attributes
    ----------
    name
        As in the CSV file.
    label
        As in legends and tables.
    full_matrix, rescaled
        Whether noise goes on all p² moments, and whether their normal equations are solved as the authors' code does
        (:class:`~experiments.methods.RescaledCovariance`).
    noise
        What output perturbation adds to the minimiser.
    share
        Part of the trials asked for: variants shown beside the published ones need no more than a few, and the oracle
        has one row a target, over draws of its own.
    weight
        Rough cost of a trial, for the estimate of the time left.
    """

    name: str
    label: str
    kind: Kind
    perturbation: str
    calibration: str = "published"
    full_matrix: bool = False
    rescaled: bool = False
    noise: Noise = "laplace"
    share: float = 1.0
    weight: float = 1.0

    @property
    def run_method(self) -> RunMethod:
        """What :func:`expost.search.run_search` calls it."""
        return _RUN[self.kind]

    @property
    def mechanism(self) -> Mechanism:
        """How its hypotheses are made."""
        if self.rescaled:
            return RescaledCovariance(self.full_matrix)
        return mechanism_of(self.perturbation, noise=self.noise, full_matrix=self.full_matrix)

    def trials(self, asked: int) -> int:
        """Return how many of the trials asked for this method runs."""
        return max(1, round(asked * self.share))


# The authors' code draws noise on all p² entries, solves the noisy normal equations as they are and rescales the
# result; their paper's listing takes the minimum over the ball instead.
RIDGE = (
    Method(
        "reduction-covariance",
        "noise reduction, covariance",
        "reduction",
        "covariance",
        full_matrix=True,
        rescaled=True,
        weight=40,
    ),
    Method(
        "doubling-covariance",
        "doubling, covariance",
        "doubling",
        "covariance",
        full_matrix=True,
        rescaled=True,
        weight=4,
    ),
    Method(
        "reduction-covariance-ball",
        "noise reduction, covariance, ball",
        "reduction",
        "covariance",
        full_matrix=True,
        share=0.25,
        weight=50,
    ),
    Method(
        "doubling-covariance-ball",
        "doubling, covariance, ball",
        "doubling",
        "covariance",
        full_matrix=True,
        share=0.25,
        weight=5,
    ),
    Method("reduction-output", "noise reduction, output", "reduction", "output", weight=6),
    Method("doubling-output", "doubling, output", "doubling", "output", weight=2),
    Method("theory-covariance", "theory, covariance", "theory", "covariance", full_matrix=True, share=0.25),
    Method("theory-output", "theory, output", "theory", "output", share=0.25),
    Method(
        "reduction-covariance-tight",
        "noise reduction, covariance, tight",
        "reduction",
        "covariance",
        calibration="tight",
        weight=5,
    ),
    Method("auto-covariance", "auto, covariance", "auto", "covariance", calibration="tight"),
    Method("certified-covariance", "certified, covariance", "certified", "covariance", calibration="tight", weight=4),
    Method(
        "stationarity-covariance",
        "stationarity, covariance",
        "stationarity",
        "covariance",
        calibration="tight",
        weight=4,
    ),
    Method("oracle-covariance", "oracle, covariance", "oracle", "covariance", calibration="tight", share=0, weight=40),
)

LOGISTIC = (
    Method("reduction-output", "noise reduction, output", "reduction", "output", weight=6),
    Method("doubling-output", "doubling, output", "doubling", "output", weight=2),
    Method("theory-output", "theory, output", "theory", "output"),
    Method("reduction-output-tight", "noise reduction, output, tight", "reduction", "output", calibration="tight"),
    Method("auto-output", "auto, output", "auto", "output", calibration="tight"),
    Method(
        "auto-output-spherical",
        "auto, output, spherical",
        "auto",
        "output",
        calibration="tight",
        noise="spherical",
    ),
    Method("certified-output", "certified, output", "certified", "output", calibration="tight", share=0.25),
    Method(
        "stationarity-output",
        "stationarity, output",
        "stationarity",
        "output",
        calibration="tight",
        share=0.25,
        weight=6,
    ),
    Method("oracle-output", "oracle, output", "oracle", "output", calibration="tight", share=0, weight=50),
)


def methods_for(kind: str) -> tuple[Method, ...]:
    """Return the methods for a task.

    Examples
    --------
    >>> [method.name for method in methods_for("classification")][:4]
    ['reduction-output', 'doubling-output', 'theory-output', 'reduction-output-tight']
    """
    return RIDGE if kind == "regression" else LOGISTIC
