"""How large covariance noise gets, at all levels of a path at once. Public: nothing here has seen a row.

*Wanted*: β_B and β_b with P(‖B_t‖_op ≤ β_B/ε_t and ‖b_t‖₂ ≤ β_b/ε_t for every level t) ≥ 1 − γ, for the noise B, b
that the path draws.

*By simulation* (p ≤ 100). A pilot of 32 paths gives two typical sizes; each further path, independent of the pilot,
gives one number, the largest of ε_t‖B_t‖_op and ε_t‖b_t‖₂ over the levels in units of those sizes. The k-th largest
of N such numbers is above their (1 − γ)-quantile unless fewer than k of them exceed that quantile, which has
probability P(Bin(N, γ) ≤ k − 1); k is the largest with that at most γ/100, which is taken off γ first. So but for
that probability, of a seed fixed once and for all, the bound holds. The simulation draws continuous Laplace noise;
the path's is discrete with a unit of 2⁻⁴⁰. Coin probabilities differ by less than 10⁻²⁰ and jumps can be coupled
within one unit each, which moves the norms by at most p·T·2⁻⁴⁰ (added).

*By proof* (larger p, or a γ too small to simulate): matrix Bernstein for Laplace series (Tropp 2012, theorem 6.2). B
= Σ ξ_k A_k with independent Laplace ξ_k of scale s_k and Eξ^q = q!·s^q for even q, so that P(‖B‖_op ≥ t) ≤
2p·exp(−t²/(2(σ² + rt))), σ² = ‖Σ 2s_k²A_k²‖, r = max s_k‖A_k‖; the vector b is treated as a (p+1)-dimensional
symmetric matrix with b in one row and column. A union over the levels makes it simultaneous.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from expost.erm.sums import SUM_UNIT

SIMULATED_UP_TO = 100
PART_UNITS = 2 * SUM_UNIT  # each of XᵀX and Xᵀy moves by at most 2 in ℓ₁
_PILOT = 32
_DOUBT = 0.01  # part of γ that goes to the simulation itself being unlucky
_SEED = 20170529
_TOO_MANY = 60_000  # paths times columns: about two seconds


@lru_cache(maxsize=64)
def noise_norms(p: int, count: int, ratio: float, split: float, gamma: float) -> tuple[float, float]:
    """Return (β_B, β_b) for ``count`` levels, each ``ratio`` times the one before.

    XᵀX gets the part 1 − ``split`` of every level and Xᵀy the part ``split``. The norms scale as 1/ε, so the first
    level does not matter, and a search that stops short of the last one is covered too.

    Examples
    --------
    >>> beta_matrix, beta_vector = noise_norms(3, 2, 1.25, 0.5, 0.1)
    >>> 8 < beta_matrix < 60, 8 < beta_vector < 60
    (True, True)
    """
    if not 0 < gamma < 1 or not 0 < split < 1 or not ratio > 1:
        raise ValueError("gamma and split must lie strictly between 0 and 1, and ratio above 1")
    doubt, gamma = _DOUBT * gamma, (1 - _DOUBT) * gamma
    least = math.ceil(math.log(doubt) / math.log1p(-gamma))
    if p > SIMULATED_UP_TO or least * p > _TOO_MANY:  # large p, or a very small gamma
        return _proved(p, count, split, gamma)
    levels = tuple(ratio ** float(t - count + 1) for t in range(count))
    rng = np.random.Generator(np.random.SFC64([_SEED, p]))
    pilot = np.array([_sizes(p, levels, rng) for _ in range(_PILOT)]).max(axis=0)
    # many paths where they are cheap: the bound then lies closer to the quantile it stands for
    paths = max(least, min(2000, 20_000 // p))
    numbers = np.sort([float((_sizes(p, levels, rng) / pilot).max()) for _ in range(paths)])
    worst = float(numbers[-_rank(paths, gamma, doubt)])
    matrix, vector = pilot * worst * (1 + 1e-9)
    return float(matrix) / (1 - split), float(vector) / split


def _rank(draws: int, gamma: float, doubt: float) -> int:
    """Return the largest k with P(Bin(draws, γ) ≤ k − 1) at most the doubt; at least 1 by the choice of draws."""
    return max(1, int(stats.binom.ppf(doubt, draws, gamma)))


def discreteness(p: int, count: int, level: float) -> float:
    """Return what discrete noise can add to either norm over the continuous noise simulated, times ε."""
    return p * count * level / SUM_UNIT


def _sizes(p: int, levels: tuple[float, ...], rng: np.random.Generator) -> NDArray[np.float64]:
    """Return the suprema over levels of ε‖B‖_op and ε‖b‖₂ for one path in which both parts get all of ε."""
    pairs = p * (p + 1) // 2
    noise = _paths(pairs + p, levels, rng)  # ε_t times the noise at level t
    rows, columns = np.triu_indices(p)
    weight = np.where(rows == columns, 1.0, 0.5)  # off-diagonal entries carry half
    # single precision halves the time; its eigenvalues are good to p·2⁻²⁴ of the norm, covered by the factor
    matrices = np.zeros((len(levels), p, p), dtype=np.float32)
    matrices[:, rows, columns] = noise[:, :pairs] * weight
    matrices[:, columns, rows] = noise[:, :pairs] * weight
    top = float(np.abs(np.linalg.eigvalsh(matrices)).max()) * (1 + 1e-4)
    return np.array([top, float(np.linalg.norm(noise[:, pairs:], axis=1).max())])


def _paths(size: int, levels: tuple[float, ...], rng: np.random.Generator) -> NDArray[np.float64]:
    """Return ε_t·(noise at level t) along a gradual release of sensitivity 2 (theory A2), one row a level."""
    current = rng.laplace(scale=2 / levels[-1], size=size)
    values = [current * levels[-1]]
    for lower, upper in zip(reversed(levels[:-1]), reversed(levels[1:]), strict=True):
        jumps = rng.random(size) >= (lower / upper) ** 2
        current = current + np.where(jumps, rng.laplace(scale=2 / lower, size=size), 0.0)
        values.append(current * lower)
    return np.array(values)


def _proved(p: int, levels: int, split: float, gamma: float) -> tuple[float, float]:
    diagonal, off = 2 / (1 - split), 1 / (1 - split)  # scales at ε = 1
    spread = 2 * diagonal**2 + 2 * (p - 1) * off**2
    matrix = _bernstein(spread, diagonal, 2 * p, gamma / (2 * levels))
    scale = 2 / split
    vector = _bernstein(2 * p * scale**2, scale, 2 * (p + 1), gamma / (2 * levels))
    return matrix, vector


def _bernstein(variance: float, scale: float, dimension: int, gamma: float) -> float:
    """Solve dimension·exp(−t²/(2(σ² + rt))) = γ for t."""
    log = math.log(dimension / gamma)
    return scale * log + math.sqrt((scale * log) ** 2 + 2 * variance * log)
