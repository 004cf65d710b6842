"""Second moments under Gaussian noise, for goals that are tested and for an excess risk (theory C1, C4).

First how far one row can move both moments together, then what is released and what it costs, then how large its noise
gets, and last the models that are made of it: least squares, for labels −1 and 1 as well.

*Claim (sensitivity, theory C1).* Let rows have ‖x‖₂ ≤ 1 and |y| ≤ 1, and let (u·xxᵀ, v·yx) be what a row adds, xxᵀ in
the Frobenius norm. Then replacing a row moves the sum by at most Δ with

    Δ² = 2u² + 2v² + v⁴/(2u²) = (2u² + v²)²/(2u²)  if v² ≤ 2u²,   and   Δ² = 4v²  otherwise,

and some pair of rows moves it that far. *Proof.* With a = ‖x‖², a′ = ‖x′‖² and c = ⟨x, x′⟩ the square of the change is

    u²(a² + a′² − 2c²) + v²(y²a + y′²a′ − 2yy′c).

It is convex in (y, y′), so largest where both are ±1, and then −2yy′c ≤ 2|c|; it increases in a and a′ for given c. So
it is at most 2u²(1 − c²) + 2v²(1 + |c|), and unit vectors at that angle with y = −y′ attain it. In |c| ≤ 1 this is a
parabola with its top at |c| = v²/(2u²), or at 1 if that is beyond. ∎ Bounding the parts by themselves would give
2u² + 4v².

*On the integers* nothing is multiplied by √2: an entry off the diagonal stands for two of the Frobenius norm, so its
noise has half the variance of the diagonal's, and Σ_j Δ_j²/σ_j² over the entries on and above the diagonal is
‖xxᵀ − x′x′ᵀ‖²/σ².

*Other shapes.* If columns are divided by d_j and rows of the shape have Σ_j (x_j/d_j)² ≤ Z², then z = x/(d·Z) is in the
unit ball, and noise of deviation σd_id_jZ² (off the diagonal by √2 less) and τd_jZ does for them what σ and τ do there.

*Best weights.* Noise of deviations 1/u and 1/v makes ‖Bθ − b‖² about p(r²/(2u²) + 1/v²) at ‖θ‖ = r. With q = v²/u² ≤ 2
and Δ = 1, u² = 2/(2 + q)², so that is p(2 + q)²(r²/2 + 1/q)/2, whose derivative is zero where r²q² + q = 2: q = (√(1 +
8r²) − 1)/(2r²), between 0 and 2. Beyond q = 2 more noise on XᵀX buys nothing.

*Released*: XᵀX + B_s and Xᵀy + b_s for s = 1, 2, …, integers in units of 2⁻⁴⁰. *Neighbours*: one row replaced; k rows
for a person with k. *Sensitivity*: columns are divided by public d_j such that Σ_j (x_j/d_j)² ≤ 1 for every row of the
shape. Then z = x/d is in the unit ball, and noise of deviation σd_id_j on the diagonal, σd_id_j/√2 above it and τd_j on
Xᵀy has Σ_j Δ_j²/σ_j² = ‖zzᵀ − z′z′ᵀ‖²/σ² + ‖yz − y′z′‖²/τ² ≤ Δ²(1/σ, 1/τ), the joint sensitivity above; k rows
replaced one after the other move it by at most k times that (triangle inequality).

*Theorem (one release)*. It costs rρ at Rényi order r, ρ = k²Δ²/2: the discrete Gaussian's divergence, coordinate by
coordinate (`expost.noise.gaussian`), on integers that are exact. *Theorem (gradual release, C4)*. Releases at ρ_1, …,
ρ_t, each chosen from what came before, cost rΣρ_s, and their average with weights ρ_s/Σρ_s has the variance of one
release at Σρ_s: the deviations are κ/√(2ρ_s), so Σ(ρ_s/Σρ)²κ²/(2ρ_s) = κ²/(2Σρ). So going on to less noise costs
exactly the last precision, and nothing that was released is thrown away; no coupling is needed. (Under Laplace noise it
is: fresh draws would add up to the *sum* of the ε.)

*Which d.* Noise in a gradient has a mean square in proportion to Σ_j d_j², which for one Σ_j (x_j/d_j)² is least at
d_b² ∝ r_b√(k_b/s_b), s_b columns within r_b and k_b = s_b for a box, 1 otherwise, as for noisy gradients
(`expost.mechanisms.descent.gradient_descent`). Rounded to powers of √2, which leaves few different deviations to draw
with.

*Weights of labels* in (0, 1] (`expost.solve.losses.WeightedLoss`) make a row (√w·x, √w·y), truncated towards zero in
units of 2⁻²⁰: Σ w·xxᵀ and Σ w·yx but for that. It is a function of the row alone, no entry of it is larger than it was,
and |√w·y| ≤ 1: a row of the shape stays one, so nothing of the above changes.

*How large the noise gets*: public numbers, proved. Let B be symmetric of size p with independent entries on and above
the diagonal, N(0, σ²) on it and N(0, σ²/2) off it, and b have p independent entries N(0, τ²).

*Lemma (the matrix).* P(‖B‖_op > σ(√(2p) + z)) ≤ 2Φ(−z). *Proof.* X_w = wᵀBw over unit vectors has E(X_w − X_w′)² =
σ²‖wwᵀ − w′w′ᵀ‖² = 2σ²(1 − c²) ≤ 4σ²(1 − c) = 2σ²‖w − w′‖², c = ⟨w, w′⟩ (the inequality is (1 − c)² ≥ 0). That is
what √2σ⟨w, g⟩ has, g standard normal, so Sudakov and Fernique's comparison gives E λ_max(B) ≤ √2σ·E‖g‖ ≤ σ√(2p). As a
function of σ⁻¹ times the entries in isometric coordinates (off the diagonal by √2), which are standard normal, λ_max is
convex and σ-Lipschitz: a Gaussian half-space bounds its excess over the median (Borell 1975; Tsirelson, Ibragimov,
Sudakov 1976), P(λ_max > median + zσ) ≤ Φ(−z), and its median is at most its mean (Kwapień 1994: it is convex). The same
holds for −B. ∎ For few columns the Frobenius norm, which is not smaller and σ·χ with p(p + 1)/2 degrees of freedom, has
the smaller quantile; the better of the two is taken.

*The vector* has ‖b‖ = τ·χ with p degrees of freedom, whose quantile is known.

*Exact noise, averaged.* Releases are f plus independent discrete Gaussians of deviations σ_s, averaged with weights
w_s ≥ 0 that add up to one. Each discrete Gaussian can be coupled with a normal one within two units (dominance in
`expost.noise.gaussian`), hence so can the average, with a normal of variance Σ w_s²σ_s², which is 1/Σσ_s⁻² for
weights ∝ 1/σ_s². So the norms above hold with 2p units more for B (a matrix of entries within 2 has norm at most 2p)
and 2√p for b. The number of releases does not matter.

*Stages for goals that are tested (C4, C5).* A stage releases XᵀX and Xᵀy once more; its model is ridge regression on
the average of all releases so far, with a λ that goes with the noise that is left. Stages, tests and budget are those
of `expost.search.levels`, and so are both theorems: tests alone show accuracy, so nothing has to be right about λ.

*λ* is a part of a quantile of ‖B‖_op/n, B the noise in the average: a public number that follows from ρ. The realised
‖B‖ is private and never used. Columns are divided by the noise's own d for it, so that noise is alike in all of them;
the negative eigenvalues that noise leaves count as zero.

*Typical noise.* Let Z/n = VΛVᵀ and z be what the model is made of, V f(Λ)Vᵀz/n with f(x) = 1/(x⁺ + λ), x⁺ = max(x, 0).
To first order noise (B, b) moves it by V(F ∘ VᵀBV/n)Vᵀz/n + V f(Λ)Vᵀb/n, where F_ij = (f(x_i) − f(x_j))/(x_i − x_j) =
−f(x_i)f(x_j)·(x_i⁺ − x_j⁺)/(x_i − x_j) (Daleckii and Krein 1965); where no eigenvalue is negative that is the delta
method, (Z/n + λI)⁻¹(b − Bθ)/n. B keeps its law when it is turned (σ on the diagonal, σ/√2 off it), so with w = Vᵀz/n
the covariance in the basis V is σ²/(2n²) times F_ij²w_iw_j off the diagonal and Σ_k F_ik²w_k² + F_ii²w_i² on it, and
τ²/n² times f(x_i)² there. All of it is released or public: Z itself says how the loss bends, for nothing. It is an
estimate, not a bound, as the noise that it is about is in Z as well (`benchmarks/results/noise_bands.md`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from scipy.special import chdtri

from expost.account.composition import ROW, Curve, Unit
from expost.goals.goal import TestedGoal
from expost.goals.measure import Judge
from expost.mechanisms.mechanism import require_made_for
from expost.noise.gaussian import deviations, discrete_gaussian
from expost.noise.laplace import Integers
from expost.noise.source import WordSource
from expost.numeric import FloatArray, Private, round_up, to_grid
from expost.passes.sums import SUM_UNIT, Sums, sums_over
from expost.search.levels import Schedule, StagedMechanism, StagedPlan, block_sums, noise_of_level
from expost.solve import Loss, Passes, Problem, RidgeErrors, RidgeRisk
from expost.table.rows import Rows, RowSource
from expost.table.shape import Geometry

if TYPE_CHECKING:
    from expost.search.request import Request


def moments_sensitivity(second: float, first: float) -> float:
    """Return Δ for weights u on XᵀX and v on Xᵀy.

    Parameters
    ----------
    second, first
        u > 0 and v ≥ 0.
    """
    if not (second > 0.0 and first >= 0.0):
        raise ValueError("weights must be positive, that of the first moments zero at least")
    if first * first <= 2.0 * second * second:
        return round_up((2.0 * second * second + first * first) / (math.sqrt(2.0) * second))
    return round_up(2.0 * first)


def best_weights(norm: float) -> tuple[float, float]:
    """Return u and v with Δ = 1, rounded down, that are best for a θ of that norm; public, and any are sound."""
    square = max(norm, 1e-3) ** 2
    ratio = min(2.0, (math.sqrt(1.0 + 8.0 * square) - 1.0) / (2.0 * square))
    length = moments_sensitivity(1.0, math.sqrt(ratio)) * (1.0 + 1e-12)
    return 1.0 / length, math.sqrt(ratio) / length


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
        raw = [math.log2(b.radius * math.sqrt(b.full / b.size)) for b in self.geometry.blocks]
        of_blocks = [round(value - raw[0]) for value in raw]
        return tuple(e for e, block in zip(of_blocks, self.geometry.blocks, strict=True) for _ in range(block.size))

    @cached_property
    def common(self) -> float:
        """Z: Σ_j (x_j/d_j)² ≤ 1 for d_j = Z·√2^exponent, rounded up."""
        place, square = 0, 0.0
        for block in self.geometry.blocks:
            square += block.full * block.radius**2 / 2.0 ** self.exponents[place]
            place += block.size
        return math.sqrt(square) * _UP

    @cached_property
    def divisors(self) -> FloatArray:
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
    def moments(self) -> tuple[FloatArray, FloatArray]:
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


class MomentGenerator(Private):
    """The private side: exact sums of the rows, and what goals are measured on."""

    def __init__(self, mechanism: GaussianMoments, rows: Rows | RowSource | Sums, problem: Problem) -> None:
        self.mechanism, self.problem = mechanism, problem
        self.sums = rows if isinstance(rows, Sums) else sums_over(rows, problem.loss.class_weights)
        self.rows = rows
        self._packed = packed(self.sums)

    @cached_property
    def judge(self) -> Passes:
        """What goals are measured by."""
        assert not isinstance(self.rows, Sums)
        return Passes.over(self.problem.loss, self.rows)

    @cached_property
    def risk(self) -> RidgeRisk:
        """True risks and gradients."""
        return RidgeRisk(self.sums, self.problem.regularization, self.problem.radius)

    def reveal(self, noise: MomentNoise, rho: float, source: WordSource) -> Integers:
        """Return the moments with fresh noise that costs ρ; integers, added exactly."""
        found: Integers = self._packed + noise.draw(rho, source)
        return found


@dataclass(frozen=True)
class GaussianMoments(StagedMechanism):
    """Gaussian noise on the second moments, under approximate privacy.

    Parameters
    ----------
    geometry
        The rows' shape, which the noise follows.
    """

    geometry: Geometry

    gaussian = True
    name = "covariance"
    instead = "with a delta, second moments are released until a proof or a test passes; pass method='auto'"
    exact = ("rows in fixed point", "XᵀX and Xᵀy", "generation noise", "test noise and comparisons")
    charged = ()
    risks = True  # by the sums

    def require_declared(self, rows: Rows | RowSource | Sums) -> None:
        """Take rows of the shape for goals that are tested; gradients are bounded for rows of the ℓ₁ ball alone."""
        if self._for_risk:
            super().require_declared(rows)
        require_made_for(rows, self.geometry)

    @property
    def _for_risk(self) -> bool:
        """Whether noise is alike in every column, as a certificate needs it."""
        return len(self.geometry.blocks) == 1 and self.geometry.blocks[0].norm == "l2"

    def refinable(self, request: Request, excess_risk: float, later: tuple[float, ...]) -> NoReturn:
        """Refuse: fresh releases need no path."""
        raise ValueError("with a delta there is no path to keep: noise is fresh at every level; leave keep_path out")

    def minimised(self, problem: Problem) -> str:
        """Least squares, whatever the goal."""
        return "squared" if problem.loss.class_weights == (1.0, 1.0) else "weighted squared"

    def errors(self, problem: Problem) -> RidgeErrors:
        """Return the errors of risks that come from exact sums."""
        return RidgeErrors(problem.p, problem.regularization, problem.radius)

    def on(self, rows: Rows | RowSource | Sums, problem: Problem) -> Any:
        """Return the generator for private rows, or for their exact sums."""
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


_SLACK = 1.0 + 1e-9  # quantiles of χ² are good to ten digits
_UNITS = 2.0  # how far an exact draw is from a normal one


def matrix_norm(p: int, probability: float) -> float:
    """Return c with P(‖B‖_op > cσ) at most that probability."""
    by_comparison = math.sqrt(2.0 * p) + deviations(0.5 * probability)
    by_entries = math.sqrt(float(chdtri(p * (p + 1) / 2, probability)))
    return min(by_comparison, by_entries) * _SLACK


def vector_norm(p: int, probability: float) -> float:
    """Return c with P(‖b‖ > cτ) at most that probability."""
    return math.sqrt(float(chdtri(p, probability))) * _SLACK


@dataclass(frozen=True)
class NoiseBound:
    """‖Bθ − b‖ ≤ matrix·‖θ‖ + vector for every θ at once; public.

    Attributes
    ----------
    matrix, vector
        Bounds on ‖B‖_op and ‖b‖.
    """

    matrix: float
    vector: float

    @classmethod
    def of(cls, p: int, sigma: float, tau: float, unit: float, probability: float) -> NoiseBound:
        """Settle it for averages of exact draws on a grid of that unit; fails with at most that probability."""
        matrix = sigma * matrix_norm(p, 0.5 * probability) + _UNITS * p * unit
        return cls(matrix, tau * vector_norm(p, 0.5 * probability) + _UNITS * math.sqrt(p) * unit * _SLACK)

    def lever(self, norm: float) -> float:
        """Return the bound for that ‖θ‖."""
        return (self.matrix * norm + self.vector) * _SLACK


_TYPICAL = 2.0  # ‖θ‖ of a model, columns divided by d; looked at on Diamonds and Adult, any value is sound
_PART = 0.25  # λ as a part of the quantile
_QUANTILE = 0.1  # noise is larger than its quantile with at most this probability
_START = 8.0  # a first stage leaves noise of at most 1/8 on a mean gradient, in units of the table


def moments_rho(geometry: Geometry, n: int, unit: Unit = ROW) -> float:
    """Return the ρ at which second moments leave something to be seen: public, to compare mechanisms by."""
    noise = MomentNoise(geometry, _TYPICAL, unit.rows)
    return float(0.5 * (noise.typical * _START * geometry.scale / n) ** 2)


class MomentsPlan(StagedPlan):
    """Second moments, stage by stage; attributes are those of :class:`~expost.search.levels.StagedPlan`."""

    each = "second moments under Gaussian noise: {stages} stage(s), averaged"

    @classmethod
    def usual_schedule(cls, loss: Loss, goal: TestedGoal | None = None) -> Schedule:
        """Return the schedule for any goal: looks cost little beside moments."""
        return Schedule()

    @property
    def least_stage(self) -> float:
        """ρ of a stage whose noise leaves something to be seen."""
        return moments_rho(self.geometry, self.n, self.unit)

    def walk(self, generator: MomentGenerator) -> tuple[MomentWalk, Judge]:
        """Return what averages releases, before the first."""
        return MomentWalk(generator, MomentNoise(self.geometry, _TYPICAL, self.unit.rows)), generator.judge


class MomentWalk:
    """Releases so far, averaged, and the ridge regression on them."""

    def __init__(self, generator: MomentGenerator, noise: MomentNoise) -> None:
        self._generator, self._noise = generator, noise
        self._averaged = AveragedMoments(noise)

    def cost(self, rho: float) -> Curve:
        """Return what a stage costs: it is a Gaussian release."""
        return Curve.gaussian(rho)

    def stage(self, rho: float, source: WordSource) -> FloatArray:
        """Release the moments once more; return the model, on a public grid."""
        self._averaged.add(self._generator.reveal(self._noise, rho, source), rho)
        n = self._generator.problem.n
        second, first = (part / n for part in self._averaged.moments)
        lam = _PART * self._averaged.sigma * matrix_norm(len(first), _QUANTILE) / n
        values, vectors = np.linalg.eigh(second)
        self._made = values, vectors, vectors.T @ first, lam
        model = vectors @ ((vectors.T @ first) / (np.maximum(values, 0.0) + lam)) / self._noise.divisors
        return to_grid(model, float(np.abs(model).max(initial=0.0)) or 1.0, norm="l2")

    @property
    def noise_levels(self) -> tuple[dict[str, Any], ...]:
        """How far noise scatters each parameter, to first order."""
        covariance, blocks = self._covariance(), self._noise.geometry.blocks
        return (noise_of_level(covariance.diagonal(), block_sums(covariance, blocks).diagonal(), blocks),)

    def _covariance(self) -> FloatArray:
        """Return the covariance that noise gives the parameters of the model, to first order."""
        values, vectors, along, lam = self._made
        n, kept = self._generator.problem.n, np.maximum(values, 0.0)
        sigma, tau = self._averaged.sigma / n, self._averaged.tau / n
        f, apart = 1.0 / (kept + lam), values[:, None] - values
        alike = apart == 0.0
        slopes = np.where(alike, values > 0.0, (kept[:, None] - kept) / np.where(alike, 1.0, apart))
        squares = np.square(slopes * np.outer(f, f))
        found = squares * np.outer(along, along)
        found[np.diag_indices_from(found)] += squares @ np.square(along)
        turned = vectors / self._noise.divisors[:, None]
        return np.asarray(turned @ (0.5 * sigma**2 * found + np.diag(np.square(tau * f))) @ turned.T)
