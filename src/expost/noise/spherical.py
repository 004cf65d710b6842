"""Continuous noise: spherical, normal, and of a density that follows the shape of a row. Analysed over the reals.

*Spherical noise* (theory B8) has density ∝ e^(−‖b‖₂). *Released*: v + b·Δ₂/ε. *Sensitivity*: ‖v − v′‖₂ ≤ Δ₂.
*Theorem*: the density ratio is at most e^{ε‖v−v′‖₂/Δ₂}. The norm is Gamma(p), the direction uniform.

*Noise in blocks* has density ∝ exp(−Σ_j w_j‖b_j‖) and perturbs an objective (`expost.mechanisms.objective.mechanism`).
In a box it is a point of the cube [−1, 1]^d, uniform, times Gamma(d + 1): its density at a point with ‖b‖_∞ = r is the
integral of (2g)^{−d}·g^d e^{−g}/d! over g ≥ r, which is e^{−r}/(2^d d!). In an ℓ₁ ball it is d independent Laplace
variables, in a Euclidean one spherical noise. *Normal variables* do so at a δ (`expost.mechanisms.objective.gaussian`).

In floating point none of these is exactly of its density (numbers of 52 bits are put through the inverse of a
distribution function) and no exact form is known to us, so a release made with them says "over the reals", and they are
never the default. For noise on integers there are exact draws (`expost.noise.laplace`, `expost.noise.gaussian`).

*Theorem (Cantelli: how long noise in blocks is).* P(‖b‖² > m + s√(1/δ − 1)) ≤ δ, m and s² the mean and variance of
‖b‖² = Σ_j ‖b_j‖²/w_j². Blocks are independent, so both are sums. Of noise of density ∝ e^{−‖b‖} on d columns, ‖b‖₂² has
the moments (box: G²‖U‖², G ~ Gamma(d + 1), U uniform in the cube; ℓ₁: d squares of Laplace variables; Euclidean:
Gamma(d)²)

| | E‖b‖₂² | E‖b‖₂⁴ |
|---|---|---|
| box | (d+1)(d+2)·d/3 | (d+1)(d+2)(d+3)(d+4)·(d/5 + d(d−1)/9) |
| ℓ₁ | 2d | 24d + 4d(d−1) |
| Euclidean | d(d+1) | d(d+1)(d+2)(d+3) |

*Theorem (how far it scatters a function).* If f has slopes of at most 1 (‖∇f‖₂ ≤ 1 almost everywhere), then f of noise
in blocks has a variance of at most M + Q. M is the largest of C_j over the blocks that are no boxes, Q the sum of C_j
over the boxes. C_j·w_j² is 4 for an ℓ₁ ball; d(d+1)/(d−1) for a Euclidean one, 4 if d = 1; for a box it is
(d+1)·(4(d+2)/π² + d/3).
*Proof.* Blocks are independent, so Var f ≤ Σ_j E Var_j f, Var_j over block j alone. Where it is no box, Var_j f ≤
C_j·E‖∇_j f‖² is Poincaré's inequality: Laplace variables of scale 1 have the constant 4, and so has their product; a
spherical log-concave law has at most E‖b‖²/(d−1) (Bonnefont, Joulin, Ma 2016). These add up to at most M, as Σ_j‖∇_j
f‖² ≤ 1. In a box b = g·U. Given g, U is uniform on a cube of constant 4/π², which gives (4/π²)·E g²; the mean over U is
a function of g of slope at most E‖U‖₂ ≤ √(d/3), and Var g = d + 1. ∎

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
from collections.abc import Callable, Iterator, Sequence

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


def spherical_noise(p: int, source: WordSource) -> FloatArray:
    """Draw one vector of density ∝ e^(−‖b‖₂) in p dimensions.

    Examples
    --------
    >>> from expost.noise.source import SeededSource
    >>> spherical_noise(3, SeededSource(0)).shape
    (3,)
    """
    direction = normals(p, source)
    norm = _exponentials(p, source).sum()  # Gamma(p)
    return np.asarray(direction * (norm / np.linalg.norm(direction)))


#: No draw is larger: the smallest uniform is 2⁻⁵³, whose quantile is −8.21.
LARGEST = 8.3


def normals(count: int, source: WordSource) -> FloatArray:
    """Draw standard normal variables.

    Examples
    --------
    >>> from expost.noise.source import SeededSource
    >>> draws = normals(10_000, SeededSource(0))
    >>> bool(abs(draws.mean()) < 0.05), bool(0.95 < draws.std() < 1.05)
    (True, True)
    """
    return np.asarray(special.ndtri(uniforms(count, source)))


def block_noise(blocks: Sequence[tuple[int, str]], weights: Sequence[float], source: WordSource) -> FloatArray:
    """Draw one vector.

    Parameters
    ----------
    blocks
        (number of columns, norm) of each block; norms are ``"box"``, ``"l1"`` and ``"l2"``.
    weights
        w_j, how fast the density falls in block j.
    source
        Where random words come from.

    Examples
    --------
    >>> from expost.noise.source import SeededSource
    >>> block_noise([(2, "box"), (3, "l1")], [1.0, 10.0], SeededSource(0)).shape
    (5,)
    """
    parts = [_DRAW[norm](size, source) / weight for (size, norm), weight in zip(blocks, weights, strict=True)]
    return np.concatenate(parts)


def _box(size: int, source: WordSource) -> FloatArray:
    reach = _exponentials(size + 1, source).sum()  # Gamma(d + 1)
    return np.asarray(reach * (2.0 * uniforms(size, source) - 1.0))


def _laplace(size: int, source: WordSource) -> FloatArray:
    first, second = np.log(uniforms(size, source)), np.log(uniforms(size, source))
    return np.asarray(first - second)


_DRAW = {"box": _box, "l1": _laplace, "l2": spherical_noise}


_UP = 1.0 + 1e-12


def block_spread(blocks: Sequence[tuple[int, str]], weights: Sequence[float]) -> float:
    """Return a bound on the standard deviation of a function of the noise, for slopes of at most 1.

    Examples
    --------
    >>> block_spread([(9, "l1"), (4, "l1")], [0.5, 1.0])
    4.0
    """
    found = [
        (norm == "box", _POINCARE[norm](size) / weight**2) for (size, norm), weight in zip(blocks, weights, strict=True)
    ]
    boxes = math.fsum(value for boxed, value in found if boxed)
    others = max((value for boxed, value in found if not boxed), default=0.0)
    return math.sqrt(boxes + others)


_POINCARE: dict[str, Callable[[int], float]] = {
    "box": lambda d: (d + 1) * (4.0 * (d + 2) / math.pi**2 + d / 3.0),
    "l1": lambda d: 4.0,
    "l2": lambda d: 4.0 if d == 1 else d * (d + 1.0) / (d - 1.0),
}


def block_norm(blocks: Sequence[tuple[int, str]], weights: Sequence[float], failure_probability: float) -> float:
    """Return what ‖b‖₂ exceeds with at most that probability.

    Examples
    --------
    >>> round(block_norm([(27, "l2")], [1.0], 0.05) / 27, 2)
    1.67
    """
    mean, variance = 0.0, 0.0
    for (size, norm), weight in zip(blocks, weights, strict=True):
        square, fourth = _moments(size, norm)
        mean += square / weight**2
        variance += (fourth - square**2) / weight**4
    return math.sqrt(mean + math.sqrt(variance * (1.0 / failure_probability - 1.0))) * _UP


def _moments(d: int, norm: str) -> tuple[float, float]:
    if norm == "box":
        rising = (d + 1.0) * (d + 2)
        return rising * d / 3, rising * (d + 3) * (d + 4) * (d / 5 + d * (d - 1) / 9)
    if norm == "l1":
        return 2.0 * d, 24.0 * d + 4.0 * d * (d - 1)
    return d * (d + 1.0), d * (d + 1.0) * (d + 2) * (d + 3)


class SphericalPath(Path):
    """The gradual release of a real vector at an increasing list of privacy levels, with spherical noise.

    Parameters
    ----------
    values, sensitivity
        The private vector of floats, and its ℓ₂-sensitivity Δ.
    levels, random_state
        As for :class:`~expost.noise.NoisePath`.

    Examples
    --------
    >>> import numpy as np
    >>> path = SphericalPath(np.array([0.5, -0.25]), 0.01, [0.01, 0.1, 1.0], random_state=3)
    >>> [step.epsilon for step in path]
    [0.01, 0.1, 1.0]
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

        last = exact + spherical_noise(exact.size, source) * (self.sensitivity / self.levels[-1])
        steps, spread = _draw_steps(self.levels, exact.size, source)
        normal = normals(steps.size * exact.size, source).reshape(steps.size, exact.size)
        added = normal * (np.sqrt(2 * spread) * (self.sensitivity / np.array(self.levels)[steps]))[:, None]
        # the least private value first, then after each step that has jumps, each computed from the one before
        self._values = np.cumsum(np.vstack([last, added[::-1]]), axis=0)
        self._row = steps.size - np.searchsorted(steps, np.arange(len(self.levels)))

    def __iter__(self) -> Iterator[LevelValue]:
        """Yield the value at every level, the most private first."""
        for t, epsilon in enumerate(self.levels):
            yield LevelValue(t, epsilon, self._values[self._row[t]].copy())


def _draw_steps(levels: tuple[float, ...], p: int, source: WordSource) -> tuple[NDArray[np.intp], FloatArray]:
    """Return the steps t (between levels t and t + 1) that have jumps, increasing, and W of each."""
    intensity = _intensity(p)
    edges = intensity * (np.log(levels) - math.log(levels[0]))  # of the steps, on a scale on which jumps have rate 1
    end = float(edges[-1])
    if end == 0:
        return np.zeros(0, dtype=np.intp), np.zeros(0)
    block = 16 + math.ceil(end + 6 * math.sqrt(end))  # nearly always enough
    at = np.cumsum(_exponentials(block, source))
    while at[-1] <= end:
        at = np.concatenate([at, at[-1] + np.cumsum(_exponentials(block, source))])
    at = at[at <= end]
    step = np.searchsorted(edges, at) - 1
    jumps = _exponentials(at.size, source) * np.exp(-2 * (at - edges[step]) / intensity)  # at rate s = (η/ε_t)²
    steps, which = np.unique(step, return_inverse=True)
    spread = np.zeros(steps.size)
    np.add.at(spread, which, jumps)
    return steps, spread


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
