"""Output perturbation (theory A5): noise on the minimiser itself, for any smooth convex loss.

*Released*: θ* plus noise, rescaled into the ball. *Neighbours*: one row replaced. *Sensitivity*: θ* moves by at most
Δ₁ in ℓ₁ (``expost.erm.sensitivity``); the minimiser found numerically lies within d of θ* in ℓ₂, d a public number
fixed by the solver's tolerance, so 2√p·d is added; rounding to a public grid g makes it ⌊Δ₁/g⌋ + p units (theory B1).
*Theorem*: gradual release of the rounded vector (``expost.noise.path``); rescaling is post-processing.

With spherical noise (theory B8) the minimiser is not rounded: its ℓ₂-sensitivity is Δ₂ + 2d, Δ₂ = S(R)/(nλ)
(``expost.erm.gradient_sensitivity``), and the theorem is that of ``expost.noise.spherical_path``, over the reals.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from expost.data.fixed_point import ONE
from expost.data.rows import Rows
from expost.erm.distinct import distinct
from expost.erm.minimise import default_tolerance, minimise
from expost.erm.risk import GeneralRisk
from expost.erm.sensitivity import grid_sensitivity
from expost.noise.laplace import Integers
from expost.noise.path import NoisePath
from expost.noise.source import WordSource
from expost.noise.spherical_path import SphericalPath
from expost.search.covariance import CHARGED, into_ball
from expost.search.plan import Noise, Problem
from expost.search.query import ErrorQuery, public_grid


class OutputGenerator:
    """Hypotheses from a noisy minimiser.

    Parameters
    ----------
    rows
        The private rows.
    problem
        The public side; its loss says what is minimised.
    """

    exact = ("rows in fixed point", "generation noise", "test noise and comparisons")
    charged = (
        "minimiser: solver tolerance and, with Laplace noise, rounding to a public grid charged to its sensitivity",
        *CHARGED,
    )

    def __init__(self, rows: Rows, problem: Problem) -> None:
        self.problem = problem
        kinds, targets, counts = distinct(rows)
        x, y = kinds.astype(np.float64) / ONE, targets.astype(np.float64) / ONE
        radius = problem.radius if problem.radius_stated else None
        tolerance = default_tolerance(problem.loss, rows.n, rows.p, problem.regularization, radius)
        lam = problem.regularization
        found = minimise(problem.loss, x, y, lam, tolerance=tolerance, radius=radius, counts=counts)
        self.risk = GeneralRisk(problem.loss, x, y, lam, found, counts)
        self._distance = found.distance_bound
        delta = problem.output_sensitivity + 2 * math.sqrt(problem.p) * found.distance_bound
        self._grid = public_grid(delta / problem.p)
        self._units = grid_sensitivity(delta, self._grid, problem.p)
        # exact: fixed-point squares, at most 2⁴⁰ a row
        self.trace_units = sum(int(np.vdot(row, row)) for row in _wide(rows))

    def path(
        self, levels: tuple[float, ...], source: WordSource, noise: Noise = "laplace"
    ) -> NoisePath | SphericalPath:
        """Draw the gradual release of the minimiser."""
        if noise == "spherical":
            return SphericalPath(self.risk.optimum, self.charged_sensitivity("spherical"), levels, random_state=source)
        rounded = np.rint(self.risk.optimum / self._grid).astype(np.int64)
        return NoisePath(rounded, self._units, levels, random_state=source)

    @property
    def size(self) -> int:
        """Number of coordinates."""
        return self.problem.p

    def shot(self, noise: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the hypothesis for given noise, in units of the sensitivity; for simulations, which draw their own."""
        return into_ball(self.risk.optimum + noise * (self._units * self._grid), self.problem.radius)

    def hypothesis(self, values: Integers | NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the noisy minimiser, rescaled into the ball if it lies outside."""
        return into_ball(self.unrescaled(values), self.problem.radius)

    def unrescaled(self, values: Integers | NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the noisy minimiser as it is, which is what the utility theorem is about."""
        if values.dtype.kind == "f":  # spherical noise: no grid
            return values
        return np.asarray(values.astype(np.float64) * self._grid)

    def charged_sensitivity(self, noise: Noise) -> float:
        """Return the sensitivity that noise of a kind is scaled by: ℓ₁ on the grid for Laplace, ℓ₂ for spherical."""
        if noise == "laplace":
            return self._units * self._grid
        return self.problem.output_l2_sensitivity + 2 * self._distance

    @property
    def release_error(self) -> float:
        """ℓ₂ distance between what is released and θ* plus continuous noise: solver, rounding, discreteness.

        Rounding moves a coordinate by half a unit; a discrete Laplace variable can be coupled to a continuous one
        within one.
        """
        return self._distance + 1.5 * self._grid * math.sqrt(self.problem.p)

    def query(self) -> ErrorQuery:
        """Return the excess risk as a question a test may ask."""
        risk, problem = self.risk, self.problem
        return ErrorQuery(
            risk.excess,
            sensitivity=problem.risk_sensitivity,
            error_bound=risk.excess_error_bound(problem.radius),
            lower=(risk.lower_by_distance, risk.lower),
            upper=risk.upper,
        )


def _wide(rows: Rows) -> Iterator[NDArray[np.int64]]:
    for start in range(0, rows.n, 1 << 16):
        yield rows.x[start : start + (1 << 16)].astype(np.int64).ravel()
