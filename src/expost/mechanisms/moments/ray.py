"""A certificate for θ = cz (theory B6, "ray"): noise that does not depend on θ can be subtracted, not only bounded.

*Where it helps*: many columns. Rows of many columns with ‖x‖₁ ≤ 1 often have curvature of λ or less, so that θ* is
nearly parallel to Xᵀy, and beyond 200 columns ‖B‖ is only bounded by a proof that is far from sharp. Elsewhere θ = cz
is rarely good, and this says no. It reads released values only, so it costs nothing beside its part of γ.

Everything is divided by n. Z = Σ + B and z = first moments + b are released, Laplace scales s on the diagonal of B,
s/2 beside it and σ for b. Fix c, put a = cλ, H = Σ + λI, A = cH − I, v = A·(first moments). For θ = cz

    ∇L(θ) = G + b,  G = Az = v + Ab;    Q = (Z + λI)θ − z = G + Bθ is known;
    ‖∇L(θ)‖² = ‖G‖² + 2v·b + (2a − 1)‖b‖² + 2c·bᵀZb − 2c·bᵀBb.

*Claim.* But for probability γ, and where ‖B‖ exceeds the bound given, no c of a public grid is accepted with
‖∇L(cz)‖ > T. *Proof.* Failure probabilities add up. Σ ⪰ 0 and a ≤ 1, so ‖A‖ ≤ max(1 − a, c(λ_max(Z) + ‖B‖) + a − 1).

(i) *Quadratic terms.* Z is independent of b, so the largest of ‖b̃‖², of b̃ᵀZb̃ and of W(b̃) over N fresh draws of b's
law bound those of b, but for 1/(N + 1) each. Given b, bᵀBb = sΣ ξ_k w_k with independent Laplace ξ_k and Σ w_k² =
(‖b‖⁴ + Σ b_i⁴)/2 =: W². Given variances D_k the square of such a sum is Σ w_k²D_k times that of a normal variable, and
Σ (w_k/W)²D_k is a convex combination of copies of one law; so the square is below (Wξ₁)² in convex order, and as
min_t E(ξ₁² − t)₊/(x² − t) = e^{1−√(x²−1)} for x ≥ √2, P(−bᵀBb > sWx) ≤ ½e^{1−√(x²−1)} by symmetry.

(ii) *The cross term.* v is fixed, so likewise P(v·b ≥ ‖v‖σl) ≤ ½e^{1−√(l²−1)} for l ≥ √2, and ½ for 0 < l < √2.
Suppose l ≤ v·b/(‖v‖σ) < u (l = −∞ and P = 1 for the first cell) and ‖∇L(θ)‖ > T. As ‖v‖ ≤ ‖G‖ + ‖A‖‖b‖, ‖G‖ exceeds
the root g of g² + 2(g + ‖A‖‖b‖)σu + (the quadratic terms) = T².

(iii) *Energy.* Given b, θ and G are fixed and Bθ = Σ ξ_k v_k with Laplace ξ_k of scale one. For r > 0

    E e^{−r‖G + Bθ‖²} ≤ e^{−r‖G‖²}·ψ(r)·E e^{2rG·Bθ},  ψ(r) = E e^{−r‖Bθ‖²}:

given the variances of the ξ_k as normal mixtures, Bθ ~ N(0, C) and the left side is det(I + 2rC)^{−½}·exp(−rGᵀ(I +
2rC)⁻¹G) ≤ det(I + 2rC)^{−½}·exp(−r‖G‖² + 2r²GᵀCG); the first factor falls and the last rises in every variance, so they
are negatively correlated. Next, E e^{2rG·Bθ} = Π 1/(1 − 4r²(G·v_k)²), and ψ(r) = E Π 1/(1 + 2r(ζ·v_k)²) for a standard
normal ζ, because e^{−r‖x‖²} = E e^{i√(2r)ζ·x}. The law of Bθ is symmetric and log-concave, so the left side falls as G
is lengthened (Anderson): a bound for length g holds for every longer G. With Markov's inequality, P(‖Q‖² ≤ q | b) ≤ φ
if ‖G‖ ≥ g and q = q(g, φ) as `_Energy` computes it with the best r of a grid.

(iv) *Cells.* For each c take cells of l in steps, the j-th with φ_j = φ₀e^{ωl_j}; accepted is a c with ‖Q‖² ≤ q(g_j,
φ_j) for every j. Which cell it is depends on c and b only. Events {‖Q‖² ≤ q} for one φ_j are nested, so the largest
q(g, φ_j) over g ≤ ‖G‖ and over r has probability φ_j too, given b; ‖G‖ > g_j puts q(g_j, φ_j) below it, though g_j
depends on Z and r on g_j. A wrong accept has probability at most Σ_j P(v·b ≥ ‖v‖σl_j)(φ_j − φ_{j−1}), and φ₀ makes
that the part for energies of γ over the number of c. ∎

*Discreteness.* Noise on the grid is within one grain of continuous noise. θ and G contain b as it is; ‖b‖², bᵀZb,
v·b, bᵀBb and Bθ are compared with those of continuous noise. With grains far below T and both scales, and T taken
down by two millionths, that and rounding are covered; otherwise the answer is no.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from expost.noise.source import WordSource
from expost.numeric import FloatArray

_ENERGY, _DRAWN, _CROSS = 0.6, 0.25, 0.15  # how its failure probability is shared out
_SMALLEST = 0.25  # of a = cλ: beyond that the curvature along z is more than three times λ
_STEP, _SLOPE = 0.5, 0.8  # cells of the cross term, and ω
_MOST_POINTS = 48  # of the grid of c
_EXPONENTS = np.geomspace(2e-4, 0.5, 32)[:, None]  # r, in units of 1/(scale·‖θ‖)²
_CUTS = np.array([4.0, 4.7, 5.5, 6.5, 8.0, 11.0, 16.0])  # |ζ_i| beyond these is counted as probability
_MOST_DRAWS, _MOST_WORK = 300_000, 2.5e10  # and draws times p²: a few seconds
_BLOCK = 1 << 22  # numbers drawn at a time


def draws_needed(gamma: float) -> int:
    """Return N of (i) for one level's failure probability."""
    return math.ceil(3 / (_DRAWN * gamma))


def affordable(p: int, gamma: float) -> bool:
    """Whether the draws of one level take no longer than is reasonable; public."""
    return draws_needed(gamma) <= min(_MOST_DRAWS, _MOST_WORK / p**2)


@dataclass(frozen=True)
class Released:
    """What one level has revealed, and how noisy it is; all divided by n.

    Attributes
    ----------
    second, first
        Z and z.
    matrix_scale, vector_scale
        Laplace scales of a diagonal entry of Z and of an entry of z.
    matrix_norm
        Bound on ‖B‖, valid on an event accounted for elsewhere.
    grain
        How far a noisy entry may be from the continuous noise it is coupled with.
    """

    second: FloatArray
    first: FloatArray
    matrix_scale: float
    vector_scale: float
    matrix_norm: float
    grain: float


def best_on_ray(
    released: Released, regularization: float, target: float, gamma: float, source: WordSource
) -> FloatArray | None:
    """Return a θ = cz with ‖∇L(θ)‖ ≤ target, proved but for probability γ, or None.

    Parameters
    ----------
    released
        Z and z of one level.
    regularization, target
        λ, and T = √(2λα).
    gamma
        Failure probability for this level, whether or not anything is returned.
    source
        Randomness for the draws of (i). It protects nobody: what is drawn here is never added to anything.
    """
    z, lam = released.first, regularization
    length = float(np.linalg.norm(z))
    largest = max(length, float(np.linalg.norm(released.second)))
    grain = max(released.grain, 2.0**-50 * largest)
    coarsest = min(target / (1 + largest / lam), released.matrix_scale, released.vector_scale)
    if length == 0.0 or 1e7 * len(z) * grain > coarsest:
        return None
    target *= 1 - 2e-6
    shrinkages = _grid(target / lam)
    cells = _Cells.of(_ENERGY * gamma / len(shrinkages))
    energy = _Energy.of(z / length)
    image = released.second @ z
    cross = math.hypot(1.0, 1 - math.log(2 * _CROSS * gamma))  # x of (i)

    def room(a: float, drawn: _Drawn, top: float) -> float:
        """Return by how much ‖Q‖² stays below what is accepted for θ = (a/λ)z."""
        c = a / lam
        unit = released.matrix_scale * c * length
        size = float(np.linalg.norm(c * image + (a - 1) * z)) / unit
        if size**2 > (target / unit) ** 2 + (len(z) + 3) / 2:  # q(g, φ) ≤ g² + E‖Bθ‖²
            return -math.inf
        least = _least_energies(released, drawn, cells, a, lam, target, top, cross)
        return energy.largest_accepted(least / unit, cells.logs) - size**2

    # draws are dear: first see which c could be accepted if they came out as small as can be expected
    hopeful = [a for a in shrinkages if room(a, _Drawn.typical(released), 0.0) > 0]
    if not hopeful:
        return None
    drawn = _Drawn.of(released, draws_needed(gamma), source)
    top = float(np.linalg.eigvalsh(released.second)[-1])
    rooms = [room(a, drawn, top) for a in hopeful]
    return hopeful[int(np.argmax(rooms))] / lam * z if max(rooms) > 0 else None


def _grid(reach: float) -> list[float]:
    """Return a = cλ from one downwards, finer where the target √(2α/λ) = ``reach`` is small."""
    widest = -math.log(_SMALLEST)
    steps = math.ceil(widest / max(math.log1p(min(0.5, 0.15 * reach)), widest / _MOST_POINTS))
    return [_SMALLEST ** (k / steps) for k in range(steps + 1)]


@dataclass(frozen=True)
class _Cells:
    """The cells of (iv): their upper ends, and log φ_j."""

    upper: FloatArray
    logs: FloatArray

    @classmethod
    def of(cls, gamma: float) -> _Cells:
        lower = np.arange(0.0, (10 - math.log(gamma)) / _SLOPE, _STEP)  # φ reaches one before that
        growth = np.exp(_SLOPE * lower)
        above = 0.5 * np.exp(np.minimum(0.0, 1 - np.sqrt(np.maximum(lower**2 - 1, 0.0))))
        logs = math.log(gamma / (1 + float(above[1:] @ np.diff(growth)))) + _SLOPE * lower
        needed = logs < 0  # where φ would be one nothing is asked
        return cls(lower[needed] + _STEP, logs[needed])


@dataclass(frozen=True)
class _Drawn:
    """The bounds of (i): on ‖b‖², bᵀZb and W."""

    square: float
    form: float
    width: float

    @classmethod
    def typical(cls, released: Released) -> _Drawn:
        """Return about the least that draws can be expected to give; used to save them, never to promise."""
        p = len(released.first)
        square = released.vector_scale**2 * (2 * p + 3 * math.sqrt(20 * p))
        return cls(square, 0.0, math.sqrt(0.5) * square)

    @classmethod
    def of(cls, released: Released, draws: int, source: WordSource) -> _Drawn:
        """Draw afresh."""
        rng = np.random.Generator(np.random.SFC64(source.words(16).tolist()))
        p = len(released.first)
        square = form = fourth = 0.0
        for start in range(0, draws, max(1, _BLOCK // p)):
            b = rng.laplace(scale=released.vector_scale, size=(min(max(1, _BLOCK // p), draws - start), p))
            squares = b * b
            totals = squares.sum(axis=1)
            square = max(square, float(totals.max()))
            form = max(form, float(((b @ released.second) * b).sum(axis=1).max()))
            fourth = max(fourth, 0.5 * float((totals**2 + (squares**2).sum(axis=1)).max()))
        return cls(square, form, math.sqrt(fourth))


def _least_energies(
    released: Released, drawn: _Drawn, cells: _Cells, a: float, lam: float, target: float, top: float, cross: float
) -> FloatArray:
    """Return g of (ii) for every cell, zero where every G could be too long; ``top`` is λ_max(Z), ``cross`` is x."""
    c = a / lam
    operator = max(1 - a, c * (top + released.matrix_norm) + a - 1)
    rest = max(0.0, 2 * a - 1) * drawn.square + 2 * c * (drawn.form + released.matrix_scale * drawn.width * cross)
    shift = released.vector_scale * cells.upper
    inner = shift**2 + target**2 - rest - 2 * operator * math.sqrt(drawn.square) * shift
    return np.maximum(np.sqrt(np.maximum(inner, 0.0)) - shift, 0.0)


@dataclass(frozen=True)
class _Energy:
    """q(g, φ) of (iii) for θ of length one in a given direction d, and noise of scale one.

    v_k is d_i·e_i on the diagonal and ½(d_j·e_i + d_i·e_j) beside it; write V = Σ v_k v_kᵀ, V′ = Σ ‖v_k‖²v_k v_kᵀ and
    V″ = Σ ‖v_k‖₁²v_k v_kᵀ.

    * −log(1 − y) ≤ y + κy² for y ≤ Y, κ = (−log(1 − Y)/Y − 1)/Y, by convexity, so with Y = 4r²g²·max‖v_k‖² the log of
      E e^{2rG·Bθ} is at most 4r²g²(λ_max(V) + 4κr²g²·λ_max(V′)) for ‖G‖ = g.
    * log(1 + x) ≥ x(1 − X/2) for x ≤ X, so ψ(r) ≤ det(I + 4r(V − r·cut²V″))^{−½} + P(some |ζ_i| > cut).

    All three matrices are diagonal but for rank three, so nothing here takes more than O(p).
    """

    longest: float
    top: float
    top_weighted: float
    logs: FloatArray

    @classmethod
    def of(cls, direction: FloatArray) -> _Energy:
        d = np.abs(direction)  # a change of signs changes none of the norms and determinants below
        longest, fourth = float(d.max()) ** 2, float((d**4).sum())
        # V = ¼(I + ddᵀ) + ½diag(d²); V′ = (d³dᵀ + dd³ᵀ)/16 + diag((d² + Σd⁴)/16 + ¾d⁴)
        weighted = (fourth + math.sqrt(float((d**6).sum())) + longest + fourth) / 16 + 0.75 * longest**2
        logs = _log_laplace(d, _EXPONENTS, _CUTS).min(axis=1, keepdims=True)
        return cls(longest, (0.5 + 0.5 * longest) * (1 + 1e-9), weighted * (1 + 1e-9), logs * (1 - 1e-9))

    def largest_accepted(self, lengths: FloatArray, logs: FloatArray) -> float:
        """Return the smallest q(g_j, φ_j) over the cells."""
        r = _EXPONENTS
        weight = 4 * (r * lengths) ** 2
        usable = weight * self.longest < 0.99
        most = np.clip(weight * self.longest, 1e-9, 0.99)
        curvature = (-np.log1p(-most) / most - 1) / most
        top = self.top + curvature * weight * self.top_weighted
        accepted = np.where(usable, lengths**2 * (1 - 4 * r * top) - (self.logs - logs) / r, -np.inf)
        return float(accepted.max(axis=0).min())


def _log_laplace(d: FloatArray, r: FloatArray, cuts: FloatArray) -> FloatArray:
    """Bound log ψ(r) from above for every r, a column, and |ζ_i| up to every cut; zero where that says nothing."""
    squares, cubes, fourths = d**2, d**3, d**4
    lost = r * cuts**2
    says = lost * float(squares.max()) <= 1  # V − lost·V″ is then a sum of v_k v_kᵀ with weights of at least zero
    lost = np.where(says, lost, 0.0)
    # V″ = (d³dᵀ + dd³ᵀ + 2(d²)(d²)ᵀ)/16 + diag((d² + Σd⁴ + 2d·Σd³)/16 + ½d⁴)
    own = (squares + float(fourths.sum()) + 2 * d * float(cubes.sum())) / 16 + 0.5 * fourths
    diagonal = 1 + 4 * r[..., None] * (0.25 + 0.5 * squares - lost[..., None] * own)
    columns = np.column_stack([d, cubes, squares])
    inner = np.zeros((*lost.shape, 3, 3))
    inner[..., 0, 0] = 0.25
    inner[..., 0, 1] = inner[..., 1, 0] = -lost / 16
    inner[..., 2, 2] = -lost / 8
    products = np.einsum("ki,rck,kj->rcij", columns, 1 / diagonal, columns, optimize=True)
    _, small = np.linalg.slogdet(np.eye(3) + 4 * r[..., None, None] * (inner @ products))
    beyond = math.log(2 * len(d)) + special.log_ndtr(-cuts)
    logs = np.logaddexp(-0.5 * (np.log(diagonal).sum(axis=-1) + small), beyond)
    return np.where(says, np.minimum(logs, 0.0), 0.0)
