"""Objective perturbation with Gaussian noise (theory C2), under approximate privacy.

*Released*: θ̂ = argmin mean φ(xᵀθ, y) + (λ/2)‖θ − θ₀‖² + bᵀθ/n over all of ℝᵖ, b ~ N(0, Σ), θ₀ public or released
before, plus a little noise that covers the solver (`expost.mechanisms.objective.perturbation`). *Neighbours*: k rows
replaced (k = 1 unless a person has several). *Sensitivity*: φ is convex in the prediction, |φ′| ≤ κ, φ′ is c-Lipschitz;
Σ is diagonal and follows the shape of a row, so that k rows move a sum of gradients by at most μ = 2kκ√A deviations
(`expost.table.shape`). J = k·ln(1 + cX²/(nλ)), ‖x‖₂ ≤ X. N is a standard normal variable below.

*Theorem.* Releasing θ̂ costs, at every Rényi order r > 1 and for every ordered pair of neighbours, at most
J + ln(E e^{(r−1)Y})/(r − 1), where
  Y = max(0, μN + μ²/2) if for each row φ′ has one sign (margin losses: logistic, capped or not, smoothed hinge),
      E e^{(r−1)Y} = Φ(−μ/2) + e^{r(r−1)μ²/2}·Φ((r − ½)μ),
  Y = μ|N| + μ²/2 otherwise (Huber's),
      E e^{(r−1)Y} = 2·e^{r(r−1)μ²/2}·Φ((r − 1)μ).

*Proof.* As for pure privacy (`expost.mechanisms.objective.perturbation`), b = −G(θ̂) is a bijection, so the log ratio of
densities at θ̂ is that of b against b + v plus a Jacobian's, at most J: k rank-one terms come and k go, each that comes
adds a factor of at most 1 + cX²/(nλ). The first part is Σ-weighted: with w = Σ^{−½}v and g = Σ^{−½}b standard normal,
it is g·w + ‖w‖²/2. Now w = Σ_i s_i a_i over the 2k rows that come or go, a_i = ±κΣ^{−½}x_i fixed vectors of length m_i
≤ κ√A, and s_i in [0, 1] (one sign) or [−1, 1]: the s_i depend on θ̂, hence on b, so that we bound by the maximum over
all of them. Make the a_i as long as they may be, μ = Σ m_i, and let p_i = m_i/μ, N_i = g·a_i/m_i, standard normal each,
however they depend on each other. By the triangle inequality and convexity of the square
    g·w + ‖w‖²/2 ≤ Σ p_i·μ s_i N_i + ½μ²(Σ p_i|s_i|)² ≤ Σ p_i·(μ s_i N_i + ½μ²s_i²).
Each term is convex in its own s_i, so largest at an end of the interval: it is at most Y with N_i for N. As e^{(r−1)y}
is convex in y, E e^{(r−1)ΣpᵢYᵢ} ≤ Σ p_i·E e^{(r−1)Y_i} = E e^{(r−1)Y}, which completing squares computes. ∎
For large rμ that is J + rμ²/2, one Gaussian release of sensitivity 2κ (and ln 2/(r − 1) where slopes have both signs).
No angle between the rows is worse than none: the bound is the one for rows in one direction.

*Arithmetic.* Rows, sums of slopes, the solver's noise, tests and comparisons are exact, and b is within a public
remainder of N(0, Σ), for the floats that σ_j are (`expost.mechanisms.objective.draws`), which is covered as the solver
is (`expost.mechanisms.objective.perturbation`). The realised ‖b‖ is n‖∇L(θ̂)‖, a private number: it is not reported or
redrawn by.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import log_ndtr

from expost.account.composition import STEPS, Curve, add_losses
from expost.mechanisms.objective.draws import NormalNoise
from expost.mechanisms.objective.perturbation import LEAST_SOLVER, PerturbedMinimum
from expost.solve.losses import Loss
from expost.table.shape import Geometry, gaussian_deviations, gaussian_size

_UP, _MORE = 1.0 + 1e-10, 1e-14  # rounding of logarithms that are good to a few units in the last place


def largest_moved(mu: float, step: float, one_sided: bool) -> float:
    """Return ln(E e^{(r−1)Y})/(r − 1) for r = 1 + step, rounded up."""
    gaussian = (step + 1.0) * step * mu * mu / 2.0
    if one_sided:
        log = float(np.logaddexp(log_ndtr(-mu / 2.0), gaussian + log_ndtr((step + 0.5) * mu)))
    else:
        log = gaussian + math.log(2.0) + float(log_ndtr(step * mu))
    return max(0.0, log) / step * _UP + _MORE


@dataclass(frozen=True)
class GaussianShot(PerturbedMinimum):
    """One release at given noise and λ; public.

    Attributes
    ----------
    loss, geometry, n
        What is minimised, the rows' shape and number.
    rho
        μ²/2: what the noise would cost on a sum of gradients.
    lam
        λ.
    center_norm
        ‖θ₀‖₂.
    rows
        k, how many rows are replaced together.
    solver_part
        The noise that covers the solver moves θ by about this part of what the noise on the gradient does.
    """

    loss: Loss
    geometry: Geometry
    n: int
    rho: float
    lam: float
    center_norm: float = 0.0
    rows: int = 1
    solver_part: float = 1e-3

    @cached_property
    def law(self) -> NormalNoise:
        """Normal noise that follows the shape."""
        sigmas = gaussian_deviations(self.geometry, self.rows * self.slope, self.rho)
        return NormalNoise([(b.size, sigma) for b, sigma in zip(self.geometry.blocks, sigmas, strict=True)])

    @property
    def typical(self) -> float:
        """Root mean square of ‖b‖₂/n."""
        return 2.0 * self.rows * self.slope * gaussian_size(self.geometry) / (math.sqrt(2.0 * self.rho) * self.n)

    @property
    def least_solver(self) -> float:
        """Noise of no cost would be infinite."""
        return LEAST_SOLVER * math.sqrt(2.0 * self.rho)

    @cached_property
    def curve(self) -> Curve:
        """What the release costs: noise, Jacobian and solver."""
        mu, jacobian, solver = math.sqrt(2.0 * self.rho) * _UP, self.rows * self.jacobian * _UP, self.epsilon_solver
        one_sided = self.loss.one_sided
        return Curve(
            tuple(
                add_losses(largest_moved(mu, step, one_sided), jacobian, solver * (step + 0.5) / step * _UP)
                for step in STEPS
            ),
            math.inf,
        )
