"""Spherical noise of a gradual release; analysed over the reals.

*Spherical noise* (theory B8) has density ∝ e^(−‖b‖₂). *Released*: v + b·Δ₂/ε. *Sensitivity*: ‖v − v′‖₂ ≤ Δ₂.
*Theorem*: the density ratio is at most e^{ε‖v−v′‖₂/Δ₂}. The norm is Gamma(p), the direction uniform.

In floating point it is not exactly of its density (numbers of 52 bits are put through the inverse of a distribution
function) and what is released is the sum itself, to the last bit, so a release made with it says "over the reals", and
it is never the default. For noise on integers there are exact draws (`expost.noise.laplace`, `expost.noise.gaussian`),
and for noise on an objective draws that are exact up to what is charged (`expost.mechanisms.objective.draws`).

**Gradual release with spherical noise** (theory B8): one real vector under ℓ₂ sensitivity. *Released*: the values of a
real vector v ∈ ℝᵖ plus noise of density ∝ e^(−ε_t‖b‖₂/Δ) at levels ε₁ < … < ε_t, for whatever t the search stops at.
*Neighbours*: v and v′ with ‖v − v′‖₂ ≤ Δ. *Guarantee*: every prefix up to t is a randomised function of the value at t
alone, which is ε_t-private because its density ratio is at most e^(ε_t‖v−v′‖₂/Δ); revealing the prefix is therefore
ε_t-private.

*Lemma 1.* Noise b of density ∝ e^(−‖b‖₂) has characteristic function (1 + ‖s‖²)^(−(p+1)/2). *Proof.* e^(−r) =
∫ (πw)^(−½)·e^(−w−r²/(4w)) dw over w > 0, and e^(−‖b‖²/(4w)) is (4πw)^(p/2) times the density of √(2w)·N(0, I). So b is
√(2V)·N(0, I) with V of density ∝ w^((p−1)/2)·e^(−w), which is Gamma((p+1)/2), and E e^(−V‖s‖²) is as claimed. ∎

*Lemma 2.* Let ε₁ < ε₂ and r = ε₁/ε₂. Noise at ε₂ plus an independent √(2W)·N(0, I)·Δ/ε₁ is noise at ε₁, if W is the
sum of Poisson((p+1)·ln(1/r)) many independent exponentials of rates s, ln s uniform on [0, 2·ln(1/r)]. *Proof.* With
u = ‖s‖²Δ²/ε₁² the two levels' characteristic functions have the quotient ((1 + ur²)/(1 + u))^((p+1)/2), so E e^(−uW)
must be that. For a compound Poisson sum, ln E e^(−uW) = −((p+1)/2)·∫ (1 − s/(s+u)) ds/s over 1 ≤ s ≤ 1/r², the
number's mean being (p+1)/2 times ∫ ds/s. The integrand is u/(s(s+u)), the derivative of −ln(1 + u/s), and the
integral is ln(1 + u) − ln(1 + ur²). ∎

Put s = (η/ε₁)²: the jumps of all steps together are one Poisson process of intensity (p+1) in ln η over [ε₁, ε_T],
and a jump at η belongs to the step whose levels enclose it. There are (p+1)·ln(ε_T/ε₁) of them on average however many
levels there are, and only levels at which the value changes are stored. One W serves all coordinates of a step: noise
that is the same in every direction has dependent coordinates, and with a W for each the marginal would be another.

In floating point every value is computed from the one after it and fresh noise, so the prefix is a function of the
last value there as well; but the draws have their stated densities only to about fifty bits.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from expost.noise.laplace import LevelValue, Path, check_levels
from expost.noise.source import WordSource, resolve_source
from expost.numeric import FloatArray
from expost.validation import source_claims


def uniforms(count: int, source: WordSource) -> FloatArray:
    """Return numbers in (0, 1), of 52 bits each; never 0 or 1 (with 53 the largest would round to 1)."""
    words = source.words(4 * count).view(np.uint64)
    return ((words >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52


def spherical_noise(p: int, source: WordSource, count: int = 1) -> FloatArray:
    """Draw so many vectors of density ∝ e^(−‖b‖₂) in p dimensions, a line for each."""
    direction = normals(count * p, source).reshape(count, p)
    norms = _exponentials(count * p, source).reshape(count, p).sum(axis=1)  # Gamma(p)
    squares = direction[:, None, :] @ direction[:, :, None]
    return np.asarray(direction * (norms / np.sqrt(squares.ravel()))[:, None])


def normals(count: int, source: WordSource) -> FloatArray:
    """Draw standard normal variables."""
    return np.asarray(special.ndtri(uniforms(count, source)))


class SphericalPath(Path):
    """The gradual release of a real vector at an increasing list of privacy levels, with spherical noise.

    Parameters
    ----------
    values, sensitivity
        The private vector of floats, and its ℓ₂-sensitivity Δ.
    levels, random_state
        As for :class:`~expost.noise.NoisePath`.
    """

    noise = "over the reals"

    def __init__(
        self,
        values: ArrayLike,
        sensitivity: float,
        levels: Sequence[float],
        *,
        random_state: int | WordSource | None = None,
    ) -> None:
        self.levels = check_levels(levels)
        self.sensitivity = _check_sensitivity(sensitivity, self.levels[0])
        exact = _check_values(values)
        source = resolve_source(random_state)
        self.secure, self.claims, self.size = source.secure, source_claims(source), exact.size

        (self._values,), self._row = spherical_paths(exact, self.sensitivity, self.levels, source)

    def __iter__(self) -> Iterator[LevelValue]:
        """Yield the value at every level, the most private first."""
        for t, epsilon in enumerate(self.levels):
            yield LevelValue(t, epsilon, self._values[self._row[t]].copy())


def spherical_paths(
    exact: FloatArray, sensitivity: float, levels: tuple[float, ...], source: WordSource, count: int = 1
) -> tuple[FloatArray, NDArray[np.intp]]:
    """Return the different values of so many paths (path, place, coordinate), and the place of each level among them.

    Examples
    --------
    >>> from expost.noise.source import SeededSource
    >>> values, place = spherical_paths(np.zeros(3), 1.0, (1.0, 2.0), SeededSource(0), 5)
    >>> values[:, place].shape
    (5, 2, 3)
    """
    last = exact + spherical_noise(exact.size, source, count) * (sensitivity / levels[-1])
    spread = _draw_spreads(levels, exact.size, source, count)
    steps = np.flatnonzero(spread.any(axis=0))
    scales = (np.sqrt(2 * spread[:, steps]) * (sensitivity / np.array(levels)[steps])).ravel()
    jumped, added = np.flatnonzero(scales), np.zeros((scales.size, exact.size))
    added[jumped] = normals(jumped.size * exact.size, source).reshape(jumped.size, exact.size) * scales[jumped, None]
    # the least private value first, then after each step that has jumps, each computed from the one before
    ways = np.concatenate([last[:, None], added.reshape(count, steps.size, exact.size)[:, ::-1]], axis=1)
    return np.cumsum(ways, axis=1), steps.size - np.searchsorted(steps, np.arange(len(levels)))


def _draw_spreads(levels: tuple[float, ...], p: int, source: WordSource, count: int) -> FloatArray:
    """Return W of each step (between levels t and t + 1) of so many paths: 0 where it has no jumps."""
    intensity, logs = _intensity(p), np.log(levels)
    edges = intensity * (logs - logs[0])  # of the steps, on a scale on which jumps have rate 1
    end = float(edges[-1])
    if end == 0:
        return np.zeros((count, len(levels) - 1))
    block = 16 + math.ceil(end + 6 * math.sqrt(end))  # nearly always enough
    at = np.cumsum(_exponentials(count * block, source).reshape(count, block), axis=1)
    while at[:, -1].min() <= end:
        more = np.cumsum(_exponentials(count * block, source).reshape(count, block), axis=1)
        at = np.concatenate([at, at[:, -1:] + more], axis=1)
    path, place = np.nonzero(at <= end)
    at = at[path, place]
    step = np.searchsorted(edges, at) - 1
    jumps = _exponentials(at.size, source) * np.exp(-2 * (at - edges[step]) / intensity)  # at rate s = (η/ε_t)²
    steps = len(levels) - 1
    return np.asarray(np.bincount(path * steps + step, jumps, count * steps).reshape(count, steps), dtype=np.float64)


def _intensity(p: int) -> int:
    return p + 1


def _exponentials(count: int, source: WordSource) -> FloatArray:
    return -np.log(uniforms(count, source))


def _check_sensitivity(sensitivity: float, first: float) -> float:
    checked = float(sensitivity)
    if not 0 < checked < math.inf:
        raise ValueError(f"the sensitivity must be positive and finite, got {sensitivity}")
    if not checked / first < 1e150:  # squares must be finite too
        raise ValueError("the sensitivity divided by the first privacy level is too large for floating point")
    return checked


def _check_values(values: ArrayLike) -> FloatArray:
    checked = np.asarray(values)
    if checked.ndim != 1 or checked.size == 0:
        raise ValueError(f"values must be one-dimensional and not empty, got shape {checked.shape}")
    if checked.dtype.kind not in "fiu":
        raise ValueError(f"values must be real numbers, got an array of {checked.dtype}")
    checked = checked.astype(np.float64)
    if not np.isfinite(checked).all():
        raise ValueError("values must be finite")
    return checked
