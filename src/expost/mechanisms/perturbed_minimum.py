"""The minimiser of a perturbed objective as it is released: solved, rounded, its solver covered by noise on a grid.

*Released*: the point that the solver finds for argmin mean φ(xᵀθ, y) + (λ/2)‖θ − θ₀‖² + bᵀθ/n, rounded to a public
grid, plus discrete Laplace noise there. *Theorem.* The point found lies within d of the exact minimiser θ̂, d public
given θ₀ (`expost.erm.perturbed`); so the point rounded and θ̂ itself, on no grid, are within √p·d and half a unit for
each coordinate in ℓ₁. With f(x) ∝ q^|x| of the noise, made for twice that at ε_s, and s = ε_s/2, E f(o − θ_found) ≤
e^s·E f(o − θ̂) on one data set and E f(o − θ̂) ≤ e^s·E f(o − θ_found) on its neighbour. In between o ↦ f(o − θ̂) adds up
to at most one (q^x + q^{1−x} ≤ 1 + q for x between 0 and 1), which is all that is used of it. So a pure loss about θ̂
grows by 2s = ε_s at most. A Rényi divergence of order r,
ln ∫ p^r p′^{1−r} over r − 1, grows by (rs + (r − 1)s)/(r − 1) = ε_s·(r − ½)/(r − 1). What θ̂ itself costs stands in
`expost.mechanisms.objective` (pure) and `expost.mechanisms.gaussian_objective` (at a δ).

The solver's noise and the rounding are exact; b is continuous, and theorems about it are over the reals.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from expost.erm.geometry import Geometry
from expost.erm.losses import Loss
from expost.erm.perturbed import PerturbedErrors, PerturbedObjective
from expost.erm.sensitivity.grid import Grid, grid_sensitivity, public_grid
from expost.noise.laplace import discrete_laplace
from expost.noise.source import WordSource
from expost.tails.laplace_norm import laplace_norm

LEAST_SOLVER = 1e-8  # part of what the noise on the gradient costs that covering the solver costs at least


class PerturbedMinimum:
    """What perturbed minimisers share, whatever the law of b; public. Subclasses are frozen dataclasses."""

    loss: Loss
    geometry: Geometry
    n: int
    lam: float
    center_norm: float
    solver_part: float

    @property
    @abstractmethod
    def typical(self) -> float:
        """Root mean square of ‖b‖₂/n."""

    @property
    @abstractmethod
    def pull(self) -> float:
        """No draw of the noise has a larger ‖b‖₂/n."""

    @property
    @abstractmethod
    def least_solver(self) -> float:
        """What covering the solver costs at least."""

    @abstractmethod
    def noise(self, source: WordSource) -> NDArray[np.float64]:
        """Draw b."""

    @property
    def slope(self) -> float:
        """κ."""
        return self.loss.lipschitz(math.inf)

    @property
    def jacobian(self) -> float:
        """J, rounded up."""
        size = self.loss.curvature * self.geometry.radius**2 / (self.n * self.lam)
        return math.log1p(size) * (1.0 + 1e-12)

    @cached_property
    def errors(self) -> PerturbedErrors:
        """How exact the solver is."""
        return PerturbedErrors(self.loss, self.n, self.geometry.columns, self.lam, self.center_norm, self.pull)

    @cached_property
    def _solver(self) -> tuple[Grid, float]:
        """The grid that θ is rounded to and the ε of the noise there, which covers the solver."""
        p = self.geometry.columns
        moved = 2.0 * math.sqrt(p) * self.errors.distance
        unit = public_grid(max(moved / p, self.solver_part * self.typical / self.lam / p * 2.0**-20))
        # one unit more: the exact minimiser in between is on no grid, so the sum of two moves need not be whole
        grid = Grid(unit, grid_sensitivity(moved, unit, p) + 1)
        scale = self.solver_part * self.typical / self.lam / math.sqrt(2.0 * p)
        return grid, max(grid.effective_sensitivity / scale, self.least_solver)

    @property
    def epsilon_solver(self) -> float:
        """What the noise that covers the solver costs."""
        return self._solver[1]

    def moved(self, failure_probability: float) -> float:
        """Return a bound on ‖θ_released − θ̂‖₂ that fails with that probability: solver, rounding and its noise.

        A discrete Laplace variable can be coupled to a continuous one within a unit, and rounding takes half of one.
        """
        p = self.geometry.columns
        grid, epsilon = self._solver
        length = grid.effective_sensitivity / epsilon * laplace_norm(p, failure_probability)
        return self.errors.distance + length + 2.0 * math.sqrt(p) * grid.unit

    def draw(
        self, objective: PerturbedObjective, center: NDArray[np.float64], source: WordSource
    ) -> NDArray[np.float64]:
        """Draw the noise, minimise, and return the hypothesis, a multiple of a public power of two."""
        found = objective.minimiser(self.errors, center, self.noise(source) / self.n)
        grid, epsilon = self._solver
        extra = discrete_laplace(epsilon, grid.units, self.geometry.columns, random_state=source)
        steps = [round(float(value) / grid.unit) + int(more) for value, more in zip(found, extra, strict=True)]
        return np.array([step * grid.unit for step in steps], dtype=np.float64)
