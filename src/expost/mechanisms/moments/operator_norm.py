"""How large covariance noise gets, at all levels of a path at once. Public: nothing here has seen a row.

*Wanted*: β with P(‖(B_t, b_t/m)‖_op ≤ β/ε_t for every level t) ≥ 1 − γ. B is the noise on XᵀX and b the noise on Xᵀy
when each is revealed at ε_t, and (B, b/m) is B with one more column. If XᵀX gets the part 1 − w of ε_t and Xᵀy the
part w, then at every level and for every θ at once, the noise in (XᵀX)θ − Xᵀy is

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
from functools import lru_cache

import numpy as np
from scipy.linalg import lapack

from expost.numeric import FloatArray
from expost.passes.sums import SUM_UNIT

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

    Examples
    --------
    >>> 5 < noise_norm(3, (1.0, 1.25), 0.1) < 30
    True
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
