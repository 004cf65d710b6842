"""Exact sums as one integer vector for release: how far one row moves it, what is read off it, how large its noise is.

Default layout (theory B4): ``(A_ii; 2·A_ij for i < j; moment)``, A = XᵀX, of length p(p+1)/2 + p. Doubling
the off-diagonals keeps the sensitivity and makes the noise in A_ij half of what the vector carries. With
``full_matrix=True`` all p² entries of A come first, then the moment; the two noisy copies of A_ij are
averaged.

The minimum over the ball is worked out only if somebody asks for it. Most levels of a covariance path are hopeless: the
noisy matrix is not positive definite, so the minimum lies on the sphere, far from any optimum that lies well inside.
Seeing that takes one look at the diagonal or one Cholesky factorisation; the minimum itself takes an
eigendecomposition. All of it is post-processing of released values.

**How large the noise gets**, at all levels of a path at once: public, nothing of it has seen a row. *Wanted*: β with
P(‖(B_t, b_t/m)‖_op ≤ β/ε_t for every level t) ≥ 1 − γ. B is the noise on XᵀX and b the noise on Xᵀy when each is
revealed at ε_t, and (B, b/m) is B with one more column. If XᵀX gets the part 1 − w of ε_t and Xᵀy the part w, then at
every level and for every θ at once, the noise in (XᵀX)θ − Xᵀy is

    ‖Bθ/(1 − w) − b/w‖ = ‖(B, b/m)(θ/(1 − w); −m/w)‖ ≤ (β/ε_t)·√((‖θ‖/(1 − w))² + (m/w)²).

*Why one norm and not two.* ‖B‖‖θ‖ + ‖b‖ supposes that B is at its worst along θ and there points where b does, which
adds up to a quarter or a third. One more column hardly moves the largest singular value of B while its norm is at most
√2 times that of B's other columns: the normalised trace of (4 − B²)⁻¹ is ½ for a semicircle law on [−2, 2], so the edge
gives way from ‖b/m‖² = 2 on (Benaych-Georges and Nadakuditi 2011). m is chosen by that; any m is sound.

*By simulation* (p ≤ 200). Each path gives one number, the largest ε_t‖(B_t, b_t/m)‖ over the levels. The k-th largest
of N such numbers is above their (1 − γ)-quantile unless fewer than k of them exceed that quantile, which has
probability P(Bin(N, γ) ≤ k − 1); k is the largest with that at most γ/100, which is taken off γ first.

*What that probability means.* The paths come from a seed that is part of the source, so β is a
constant for its p, levels and γ, drawn once. Given the seed there are two cases. Either β is at
least the quantile: then the statement wanted holds with probability 1 − 0.99γ over the noise of a
run, for every run. Or it is not: then it holds with a smaller probability, for every run. γ/100 is
the chance, before the seed was drawn, of the second case. It is no chance over the noise of a run:
no run draws the seed anew, and many runs do not average it out.

*Which paths matter.* One only matters if it exceeds the k-th largest number f so far, which most are seen not to
without eigenvalues: ‖(B, c)‖ < f if and only if f ± B are positive definite and cᵀ(f − B)⁻¹(f + B)⁻¹c < 1, because f²
− B² = (f − B)(f + B). The simulation draws continuous Laplace noise; the path's is discrete with a unit of 2⁻⁴⁰. Its
coins differ by at most (ε/2⁴¹)²/48 in probability, all of them together by less than 10⁻⁹ up to ε = 10⁶ (neglected;
beyond that no ε means anything), and jumps can be coupled within one unit each, which moves each of ‖B‖ and ‖b‖ by at
most p·T·2⁻⁴⁰ (added).

*By proof* (larger p, or a γ too small to simulate): matrix Bernstein for Laplace series (Tropp 2012, theorem 6.2).
(B, b/m) = Σ ξ_k A_k with independent Laplace ξ_k of scale s_k and Eξ^q = q!·s^q for even q, so that P(‖·‖_op ≥ t) ≤
(2p + 1)·exp(−t²/(2(σ² + rt))), σ² the larger of ‖Σ 2s_k²A_kA_kᵀ‖ and ‖Σ 2s_k²A_kᵀA_k‖, r = max s_k‖A_k‖, by the
theorem for the symmetric matrix with A_k and A_kᵀ off its diagonal. A union over the levels makes it simultaneous.
"""

from __future__ import annotations

import heapq
import math
from functools import cached_property, lru_cache
from typing import Any, Final, cast

import numpy as np
from scipy.linalg import lapack

from expost.numeric import AnyArray, FloatArray, IntegerArray
from expost.passes.sums import SUM_UNIT, Sums
from expost.solve.ball import minimise_in_ball


class Layout:
    """The release layout for p features, with its index arrays worked out once.

    Parameters
    ----------
    p : int
        Number of features.
    full_matrix : bool
        Lay out all p² entries of XᵀX instead of the diagonal and the doubled upper triangle.

    Attributes
    ----------
    size : int
        Length of the vector.

    Examples
    --------
    >>> import numpy as np
    >>> sums = Sums(1, 2, np.array([[4, 3], [3, 9]]), np.array([5, 6]), 1)
    >>> Layout(2).pack(sums)
    array([4, 9, 6, 5, 6])
    >>> gram, moment = Layout(2).unpack(Layout(2).pack(sums))
    >>> gram * 2**40
    array([[4., 3.],
           [3., 9.]])
    """

    def __init__(self, p: int, full_matrix: bool = False) -> None:
        if p < 1:
            raise ValueError("p must be at least 1")
        self.p = p
        self.full_matrix = full_matrix
        self._upper = np.triu_indices(p, 1)
        self._pairs = p * p if full_matrix else p * (p + 1) // 2
        self.size = self._pairs + p

    def __repr__(self) -> str:
        return f"Layout(p={self.p}, full_matrix={self.full_matrix})"

    def pack(self, sums: Sums) -> IntegerArray:
        """Return the sums as one integer vector in units of 2⁻⁴⁰ (int64, or object dtype if the sums are)."""
        if sums.p != self.p:
            raise ValueError(f"sums over {sums.p} features do not fit a layout for {self.p}")
        if self.full_matrix:
            parts = [sums.gram.ravel(), sums.moment]
        else:
            # No overflow: |x_i·x_j| ≤ 1/4 off the diagonal, so the doubled entries are below n·2³⁹.
            parts = [sums.gram.diagonal(), 2 * sums.gram[self._upper], sums.moment]
        return cast(IntegerArray, np.concatenate(parts))

    def diagonal_allows(self, values: AnyArray, floor: float) -> bool:
        """Whether every diagonal entry of the matrix in ``values`` exceeds ``floor``; no matrix is built."""
        diagonal = values[: self.p] if not self.full_matrix else values[: self._pairs : self.p + 1]
        return bool((diagonal.astype(np.float64) > floor * SUM_UNIT).all())

    def unpack(self, values: AnyArray, *, symmetric: bool = True) -> tuple[FloatArray, FloatArray]:
        """Return a (noisy) vector as a symmetric matrix and a moment: sums over rows, in float64.

        Parameters
        ----------
        values : array of shape (size,)
            Integers in units of 2⁻⁴⁰.
        symmetric : bool, default=True
            False leaves a noisy full matrix as it is; the triangle is symmetric either way.

        Returns
        -------
        gram : array of shape (p, p)
            Symmetric unless told otherwise; an estimate of the sum of x·xᵀ over rows (not their mean).
        moment : array of shape (p,)
            An estimate of the sum of y·x.
        """
        if values.shape != (self.size,):
            raise ValueError(f"expected {self.size} values, got shape {values.shape}")
        scaled = values.astype(np.float64)
        scaled /= SUM_UNIT  # a power of two: no rounding
        pairs, moment = scaled[: self._pairs], scaled[self._pairs :]
        if self.full_matrix:
            square = pairs.reshape(self.p, self.p)
            return ((square + square.T) / 2.0 if symmetric else square), moment
        gram = np.zeros((self.p, self.p))
        gram[self._upper] = pairs[self.p :] / 2.0
        gram += gram.T
        np.fill_diagonal(gram, pairs[: self.p])
        return gram, moment


STATISTICS_SENSITIVITY: Final = 2**42
"""ℓ₁-sensitivity of either layout to the replacement of one row, in units of 2⁻⁴⁰.

Proof. One row adds the vector (x_i²; 2x_i x_j, i < j; y·x_i), whose ℓ₁ norm is Σ x_i² + Σ_{i<j} 2|x_i||x_j|
+ |y|Σ|x_i| = ‖x‖₁² + |y|·‖x‖₁ ≤ 2. In the full layout the off-diagonal entries x_i x_j and x_j x_i appear
once each instead of doubled, with the same total. Replacing a row subtracts one such vector and adds
another: at most 4, which is 4·2⁴⁰ units. The rows (e₁, 1) and (e₂, 1) attain it. ∎
"""

TRACE_SENSITIVITY: Final = 2**40
"""Sensitivity of the trace of XᵀX to the replacement of one row, in units of 2⁻⁴⁰.

Proof. One row adds ‖x‖₂², between 0 and 1. ∎
"""

PART_SENSITIVITY: Final = 2**41
"""ℓ₁-sensitivity of XᵀX alone (off-diagonals doubled), and of Xᵀy alone, in units of 2⁻⁴⁰: each moves by at most 2."""


class BallMinimum:
    """The minimiser of ½θᵀHθ − gᵀθ over ‖θ‖₂ ≤ radius, H and g from noisy statistics; an array once asked for."""

    def __init__(self, values: AnyArray, layout: Layout, n: int, regularization: float, radius: float) -> None:
        self._values, self._layout = values, layout
        self._n, self._regularization, self._radius = n, regularization, radius

    @cached_property
    def _quadratic(self) -> tuple[FloatArray, FloatArray]:
        gram, moment = self._layout.unpack(self._values)
        hessian = gram / self._n
        hessian[np.diag_indices_from(hessian)] += self._regularization
        return hessian, moment / self._n

    @cached_property
    def _interior(self) -> FloatArray | None:
        """The unconstrained minimiser if it exists and lies inside."""
        if not self._layout.diagonal_allows(self._values, -self._regularization * self._n):
            return None  # a diagonal entry of H is not positive, so H is not positive definite
        _, solution, failed = lapack.dposv(*self._quadratic)
        inside = not failed and np.linalg.norm(solution) <= self._radius
        return np.asarray(solution) if inside else None

    @property
    def on_sphere(self) -> bool:
        """Whether the hypothesis has norm ``radius`` (to ten digits)."""
        return self._interior is None

    @cached_property
    def _minimum(self) -> FloatArray:
        if self._interior is not None:
            return self._interior
        theta = minimise_in_ball(*self._quadratic, self._radius)
        norm = float(np.linalg.norm(theta))
        if norm < self._radius * (1 - 1e-10):
            # H is singular to working precision, and a minimum inside was found after all. Bounds rely on
            # ``on_sphere``, and any point may be the hypothesis, so it goes where it was said to be.
            theta = theta * (self._radius / norm) if norm > 0 else self._radius * np.eye(1, len(theta)).ravel()
        return theta

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> FloatArray:
        return np.array(self._minimum, dtype=dtype, copy=copy)


SIMULATED_UP_TO = 200
_DOUBT = 0.01  # part of γ that goes to the one draw of the seed having been unlucky
_SEED = 20170529
_TOO_MANY = (
    50_000  # paths times columns: two seconds at 100 columns, four at 200; a few more for a few columns and a tiny γ
)
_SHRINK = 1.3  # m; b has entries of scale 2 and B of scale 1, so √2 where p is large, a little less where it is small
_SHRINK_PROVED = 2.0  # beyond that a longer column raises the bound at once


def simulated(p: int, gamma: float) -> bool:
    """Whether β comes from simulation: not for a large p, nor for a γ so small that it takes too many paths."""
    return p <= SIMULATED_UP_TO and _fewest(gamma) * p <= _TOO_MANY


def shrink(p: int, gamma: float) -> float:
    """Return m."""
    return _SHRINK if simulated(p, gamma) else _SHRINK_PROVED


@lru_cache(maxsize=64)
def noise_norm(p: int, levels: tuple[float, ...], gamma: float) -> float:
    """Return β for m = ``shrink(p, gamma)``.

    The norms scale as 1/ε, so levels matter only up to a factor, and a search that stops short of the last one is
    covered too.
    """
    if not 0 < gamma < 1:
        raise ValueError("gamma must lie strictly between 0 and 1")
    kept = (1 - _DOUBT) * gamma
    if not simulated(p, gamma):
        return _proved(p, len(levels), kept) * (1 + 1e-9)
    # many paths where they are cheap: the bound then lies closer to the quantile it stands for
    paths = max(_fewest(gamma), min(1000, 30_000 // p, 720_000 // (p * len(levels))))
    from scipy import stats  # here, because it takes longer to import than most searches take

    rank = max(1, int(stats.binom.ppf(_DOUBT * gamma, paths, kept)))
    return _simulated(p, levels, paths, rank) * (1 + 1e-9)


def _fewest(gamma: float) -> int:
    """Return how many paths it takes for their maximum to be a bound."""
    return math.ceil(math.log(_DOUBT * gamma) / math.log1p(-(1 - _DOUBT) * gamma))


def discreteness(p: int, count: int, level: float) -> float:
    """Return what discrete noise can add to ε‖(B, b/m)‖ over the continuous noise simulated, for m ≥ 1."""
    return 2 * p * count * level / SUM_UNIT


def _simulated(p: int, levels: tuple[float, ...], paths: int, rank: int) -> float:
    """Return the ``rank``-th largest of the suprema along ``paths`` paths."""
    rng = np.random.Generator(np.random.SFC64([_SEED, p]))
    rows, columns = np.triu_indices(p)
    weight = np.concatenate([np.where(rows == columns, 1.0, 0.5), np.full(p, 1 / _SHRINK)])
    upper = rows * p + columns
    largest = [0.0] * rank
    matrix = np.zeros((p, p))
    for _ in range(paths):
        size = largest[0]
        for noise in _path(weight.size, levels, rng):
            noise *= weight
            matrix.reshape(-1)[upper] = noise[:-p]
            if not _below(matrix, noise[-p:], size):
                size = max(size, _norm(matrix, noise[-p:]))
        heapq.heappushpop(largest, size)
    return largest[0]


def _below(upper: FloatArray, column: FloatArray, limit: float) -> bool:
    """Whether the symmetric matrix with this upper triangle, and one more column, has operator norm below the limit."""
    solved = []
    for sign in (1.0, -1.0):
        shifted = sign * upper
        shifted.reshape(-1)[:: len(column) + 1] += limit  # a view: the flat iterator takes as long as the factorisation
        root, failed = lapack.dpotrf(shifted.T, lower=1, overwrite_a=1, clean=0)
        if failed:
            return False
        solved.append(lapack.dpotrs(root, column, lower=1)[0])
    return float(solved[0] @ solved[1]) < 1.0


def _norm(upper: FloatArray, column: FloatArray) -> float:
    matrix = upper + np.triu(upper, 1).T
    return math.sqrt(float(np.linalg.eigvalsh(matrix @ matrix + np.outer(column, column))[-1]))


def _path(size: int, levels: tuple[float, ...], rng: np.random.Generator) -> list[FloatArray]:
    """Return ε_t·(noise at level t) along a gradual release of sensitivity 2 (theory A2), the last level first."""
    current = rng.laplace(scale=2 / levels[-1], size=size)
    values = [current * levels[-1]]
    for lower, upper in zip(reversed(levels[:-1]), reversed(levels[1:]), strict=True):
        (jumps,) = (rng.random(size) >= (lower / upper) ** 2).nonzero()
        current[jumps] += rng.laplace(scale=2 / lower, size=jumps.size)
        values.append(current * lower)
    return values


def _proved(p: int, count: int, gamma: float) -> float:
    """Solve (2p + 1)·exp(−t²/(2(σ² + rt))) = γ/count for t."""
    diagonal, off, column = 2.0, 1.0, 2 / _SHRINK_PROVED  # scales at ε = 1
    square = 2 * diagonal**2 + 2 * (p - 1) * off**2
    variance = max(square + 2 * column**2, 2 * p * column**2)
    log = math.log((2 * p + 1) / (gamma / count))
    return diagonal * log + math.sqrt((diagonal * log) ** 2 + 2 * variance * log)
