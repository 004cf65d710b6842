"""Second moments under Gaussian noise: independent exact releases, averaged (theory C1, C4).

*Released*: XᵀX + B_s and Xᵀy + b_s for s = 1, 2, …, integers in units of 2⁻⁴⁰. *Neighbours*: one row replaced; k rows
for a person with k. *Sensitivity*: columns are divided by public d_j such that Σ_j (x_j/d_j)² ≤ 1 for every row of the
shape. Then z = x/d is in the unit ball, and noise of deviation σd_id_j on the diagonal, σd_id_j/√2 above it and τd_j on
Xᵀy has Σ_j Δ_j²/σ_j² = ‖zzᵀ − z′z′ᵀ‖²/σ² + ‖yz − y′z′‖²/τ² ≤ Δ²(1/σ, 1/τ), the joint sensitivity of
`expost.erm.sensitivity.moments`; k rows replaced one after the other move it by at most k times that (triangle
inequality).

*Theorem (one release)*. It costs rρ at Rényi order r, ρ = k²Δ²/2: the discrete Gaussian's divergence, coordinate by
coordinate (`expost.noise.gaussian`), on integers that are exact. *Theorem (gradual release, C4)*. Releases at ρ_1, …,
ρ_t, each chosen from what came before, cost rΣρ_s, and their average with weights ρ_s/Σρ_s has the variance of one
release at Σρ_s: the deviations are κ/√(2ρ_s), so Σ(ρ_s/Σρ)²κ²/(2ρ_s) = κ²/(2Σρ). So going on to less noise costs
exactly the last precision, and nothing that was released is thrown away; no coupling is needed. (Under Laplace noise it
is: fresh draws would add up to the *sum* of the ε.)

*Which d.* Noise in a gradient has a mean square in proportion to Σ_j d_j², which for one Σ_j (x_j/d_j)² is least at
d_b² ∝ r_b√(k_b/s_b), s_b columns within r_b and k_b = s_b for a box, 1 otherwise, as for noisy gradients
(`expost.mechanisms.descent`). Rounded to powers of √2, which leaves few different deviations to draw with.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost.erm.geometry import Geometry
from expost.erm.sensitivity.moments import best_weights
from expost.erm.sums import SUM_UNIT, Sums
from expost.noise.gaussian import discrete_gaussian
from expost.noise.laplace import Integers
from expost.noise.source import WordSource

Floats = NDArray[np.float64]

_UP = 1.0 + 1e-12  # rounding of a few products
_FINE = 2**40  # weights of an average are whole numbers, in such parts of the first one's


@dataclass(frozen=True)
class MomentNoise:
    """How moments are released, and what that costs; public.

    Attributes
    ----------
    geometry
        The rows' shape.
    norm
        ‖θ‖ of a typical model, columns divided by d; settles how noise is shared out, and any value is sound.
    rows
        k: how many rows neighbours differ in.
    """

    geometry: Geometry
    norm: float = 1.0
    rows: int = 1

    @cached_property
    def weights(self) -> tuple[float, float]:
        """u and v, whose joint sensitivity is at most one."""
        return best_weights(self.norm)

    @cached_property
    def exponents(self) -> tuple[int, ...]:
        """What each column's d is a power of √2 by, but for what all have in common."""
        raw = [math.log2(b.radius * math.sqrt(_count(b) / b.size)) for b in self.geometry.blocks]
        of_blocks = [round(value - raw[0]) for value in raw]
        return tuple(e for e, block in zip(of_blocks, self.geometry.blocks, strict=True) for _ in range(block.size))

    @cached_property
    def common(self) -> float:
        """Z: Σ_j (x_j/d_j)² ≤ 1 for d_j = Z·√2^exponent, rounded up."""
        place, square = 0, 0.0
        for block in self.geometry.blocks:
            square += _count(block) * block.radius**2 / 2.0 ** self.exponents[place]
            place += block.size
        return math.sqrt(square) * _UP

    @cached_property
    def divisors(self) -> Floats:
        """d_j."""
        return np.asarray(self.common * np.sqrt(2.0) ** np.array(self.exponents, dtype=np.float64))

    def sigma(self, rho: float) -> float:
        """Return σ at a cost of ρ, columns divided by d, in units of 1."""
        return self.rows / (self.weights[0] * math.sqrt(2.0 * rho)) * _UP

    def tau(self, rho: float) -> float:
        """Return τ likewise."""
        return self.rows / (self.weights[1] * math.sqrt(2.0 * rho)) * _UP

    @property
    def typical(self) -> float:
        """Return N: noise at a cost of ρ has a root mean square of about N/√(2ρ) in a gradient, columns as they are."""
        second, first = self.weights
        spread = math.sqrt(float(np.sum(self.divisors**2)))
        return self.rows * spread * math.hypot(self.norm / (math.sqrt(2.0) * second), 1.0 / first)

    def draw(self, rho: float, source: WordSource) -> Integers:
        """Return the noise of one release, laid out as :func:`packed`: it depends on nothing that is private."""
        p = self.geometry.columns
        upper = np.triu_indices(p, 1)
        e = np.array(self.exponents)
        # off the diagonal by √2 less, which is one power less
        powers = np.concatenate([2 * e, e[upper[0]] + e[upper[1]] - 1])
        noise = np.zeros(powers.size + p, dtype=object)
        for places, power, scale in (
            *((np.flatnonzero(powers == k), int(k), self.sigma(rho) * self.common**2) for k in np.unique(powers)),
            *((powers.size + np.flatnonzero(e == k), int(k), self.tau(rho) * self.common) for k in np.unique(e)),
        ):
            deviation = scale * math.sqrt(2.0) ** power * SUM_UNIT * _UP
            noise[places] = discrete_gaussian(deviation, len(places), random_state=source).astype(object)
        return noise


def _count(block: Any) -> int:
    return block.size if block.norm == "box" else 1


def packed(sums: Sums) -> Integers:
    """Return diagonal, upper triangle and first moments as Python integers in units of 2⁻⁴⁰; private."""
    upper = np.triu_indices(sums.p, 1)
    parts = [sums.gram.diagonal(), sums.gram[upper], sums.moment]
    return np.concatenate([part.astype(object) for part in parts])


class AveragedMoments:
    """Releases of the same moments, averaged; public, as all of it was released."""

    def __init__(self, noise: MomentNoise) -> None:
        self.noise = noise
        self._rhos: list[float] = []
        self._weights: list[int] = []
        self._total: Integers | int = 0

    def add(self, values: Integers, rho: float) -> None:
        """Take in a release that cost ρ."""
        weight = max(1, round(_FINE * rho / (self._rhos[0] if self._rhos else rho)))
        self._rhos.append(rho)
        self._weights.append(weight)
        self._total = self._total + weight * values

    @property
    def rho(self) -> float:
        """ρ of one release as precise as the average, for the weights as they are; rounded down."""
        square = math.fsum(weight**2 / rho for weight, rho in zip(self._weights, self._rhos, strict=True))
        return sum(self._weights) ** 2 / square * (1.0 - 1e-12)

    @property
    def sigma(self) -> float:
        """σ of the average."""
        return self.noise.sigma(self.rho)

    @property
    def tau(self) -> float:
        """τ of the average."""
        return self.noise.tau(self.rho)

    @property
    def moments(self) -> tuple[Floats, Floats]:
        """XᵀX and Xᵀy with noise, columns divided by d; each entry a quotient of integers, rounded, then divided."""
        assert not isinstance(self._total, int)
        p, scale = self.noise.geometry.columns, sum(self._weights) * SUM_UNIT
        values = np.array([int(value) / scale for value in self._total], dtype=np.float64)
        gram = np.zeros((p, p))
        gram[np.triu_indices(p, 1)] = values[p:-p]
        gram += gram.T
        np.fill_diagonal(gram, values[:p])
        d = self.noise.divisors
        return gram / np.outer(d, d), values[-p:] / d
