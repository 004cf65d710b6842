"""How large noise gets: ½bᵀ(cΣ + λI)b for noise b on a minimiser when only the trace of Σ is known, and ‖b‖₂; public.

**Laplace noise on a minimiser.** *Wanted*: a q with P(X > q) ≤ γ, X = ½c·bᵀΣb + ½λ‖b‖², for **every** Σ ⪰ 0 with tr Σ ≤
τ; b has unit scale, and q grows with its square. X grows with Σ, so let Σ = τS with tr S = 1, and k = cτ. Public
numbers only.

*Lemma 1 (a tail from expected overshoots).* For any random X and level γ, P(X > q) ≤ γ for q = CVaR(X) := min_t t +
E(X − t)₊/γ. Proof: X > q implies (X − t)₊ > q − t, so P ≤ E(X − t)₊/(q − t), which is γ at the minimising t. ∎

*Lemma 2 (representation).* Let b_i = √D_i·g_i given D, g standard normal, and h ~ N(0, S) apart from both. In law, and
given D, X = Q + Y with independent Q = ½λ Σ D_i g_i² and Y = λ Σ_{j≤N} D_{I_j}E_j: N is Poisson with mean k‖h‖²/(2λ),
the labels I_j are i.i.d. with P(I = i) = h_i²/‖h‖², and E_j are standard exponential. Proof: given D,
E e^{−zX} = det(I + zλD + zkD^½SD^½)^{−½} = det(I + zλD)^{−½}·det(I + kR^½SR^½)^{−½} with R_i = zD_i/(1 + zλD_i). The
first factor belongs to Q. The second is E exp(−½k Σ h_i²R_i), and ½k h_i²R_i = (k h_i²/(2λ))·(1 − 1/(1 + zλD_i)) is
the exponent of a compound Poisson variable whose jumps are exponential of mean λD_i. ∎

*Theorem (the worst S is a coordinate).* For independent Lap(1) coordinates (D_i exponential of mean 2) and convex φ,
Eφ(X) ≤ Eφ(X₁), X₁ = ½(k + λ)b₁² + ½λ Σ_{i≥2} b_i². Proof: S = Σ σ_m v_mv_mᵀ with Σ σ_m = 1, so by convexity Eφ(X) is
at most the same mixture of values for rank one, and S = vvᵀ may be assumed. Then P(I = i) = v_i², and N does not depend
on v. Given D, Q, N and E, Σ D_{I_j}E_j is a convex combination of the copies D_{I_j}·ΣE of one law, so
Eφ(Q + Y) ≤ Σ v_i² Eφ(Q + λD_i·ΣE). As (D, Q) is exchangeable, no term depends on i: each is the one of S = e₁e₁ᵀ,
for which all labels are equal. ∎

So q = CVaR(X₁). |b₁| is exponential, so given the rest the overshoot has a closed form; the law of the rest is a
convolution that errs upwards. With one column there is no other S, and q is the quantile of ½(k + λ)b₁² itself.

**The length of a Laplace vector.** *Wanted*: q with P(‖b‖₂ > q) ≤ γ for p independent Lap(1) variables. Each b² is
rounded *up* to a grid, which makes the sum larger; the law of the sum is a convolution, mass beyond the grid counts as
infinite, and what rounding in the transforms may have misplaced is added to the tail. The quantile of that law is an
upper bound.

**Spherical noise on a minimiser.** *Wanted*: the q of the first part, whose notation and Lemma 2 are used, for noise of
density ∝ e^{−‖b‖₂}: b = √(2W)·g with g standard normal and W ~ Gamma((p+1)/2). Public numbers only.

*Lemma 3 (one number of S matters).* Let T = ‖h‖², h ~ N(0, S). Then P(X > q) = E G(T), where G(x) = P(2λWΓ > q) with
Γ ~ Gamma(p/2 + N), N Poisson of mean κx, κ = k/(2λ); G increases. Proof: all D_i are 2W, so labels do not matter: Q and
Y are 2λW times gammas of shapes p/2 and N. ∎ For rank one T is χ²₁, and X is X₁ = ½‖b‖²(ku² + λ) with u² ~
Beta(½, (p−1)/2) independent of ‖b‖ ~ Gamma(p).

*Lemma 4 (tails and overshoots of T).* P(T > x) ≤ S̄(x) := max_n P(χ²_n/n > x) for x > 1, which is P(χ²₁ > x) =: S₁(x)
from x = 1.5364 on (Székely and Bakirov, "Extremal probabilities for Gaussian quadratic forms", Probab. Theory Relat.
Fields 126 (2003) 184–202, as E T = 1). And Eφ(T) ≤ Eφ(χ²₁) for convex φ, as T is a convex combination of such. ∎

*Theorem.* For every non-decreasing r ≥ 0, P(X > q) ≤ G(0) + ∫ r·S₁ + ∫ (G′ − r)₊·S̄ over x > 0 (S̄ = 1 for x ≤ 1).
Proof: E G(T) = G(0) + ∫ G′(x)P(T > x)dx and G′ ≤ r + (G′ − r)₊; ∫ r·P(T > x) is Eφ(T) for φ convex with slope r. ∎
With r = min(a, running maximum of G′), slopes up to a are charged to what rank one costs and only the rest to S̄. r = 0
would be the quantile at the worst tail of T, which no single S has: 4 % more at p = 38, k = 5λ. With the best a, q is
at most 2.4 % above what rank one needs, for 10 ≤ p ≤ 300 and γ below 0.1.

*Computed* is P(X₁ > q) and what the theorem adds to it. On a grid x_i of step s up to some end ≥ 1.5364, with rises
ΔG_i = G(x_{i+1}) − G(x_i), r_i non-decreasing numbers and sums for integrals, everything upwards: P(X > q) − P(X₁ > q)
≤ Σ ΔG_i·(P(T > x_i) − S₁(x_{i+1})), and Σ ΔG_i·P(T > x_i) ≤ Σ (ΔG_i − r_i)₊·S̄(x_i) + Σ r_i·P(T > x_i), where
s·P(T > x_i) ≤ ∫ P(T > x) over the cell before (1 for i = 0), and the slopes r_i/s there, the last of which goes on
for ever, make a convex function.

*Rises*: the increments t_m = P(WΓ_{p/2+m+1} > y) − P(WΓ_{p/2+m} > y) = E e^{−y/W}(y/W)^{p/2+m}/Γ(p/2 + m + 1) are
2y^{p/2+¼+m/2}·K_{m−½}(2√y)/(Γ((p+1)/2)·Γ(p/2 + m + 1)), which obey a recurrence with positive terms; with y = q/(2λ),
ΔG_i = Σ_m t_m·(P(N > m at x_{i+1}) − P(N > m at x_i)).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from scipy import special

from expost.numeric import AnyArray, FloatArray

_STEP = 0.25
_CUT = 40.0  # |b| beyond this (probability e⁻⁴⁰ each) is accounted for separately


@lru_cache(maxsize=256)
def laplace_energy(p: int, trace: float, *, curvature: float, regularization: float, gamma: float) -> float:
    """Return q for independent Lap(1) coordinates."""
    along = curvature * trace
    if p == 1:
        return 0.5 * (along + regularization) * math.log(1 / gamma) ** 2 * (1 + 1e-9)
    head = along + regularization  # 2X₁ = head·b₁² + λ·rest
    law, missed, beyond, rounding = _square_sum(p - 1)
    rest = regularization * _STEP * np.arange(law.size)

    def size(t: float) -> FloatArray:
        """Return, for every value of the rest, the |b₁| beyond which 2X₁ exceeds t."""
        return np.asarray(np.sqrt(np.maximum(t - rest, 0.0) / head))

    from scipy import optimize  # here, because it takes longer to import than most searches take

    # any t gives a bound; the best one is the quantile
    top = head * (math.log(1 / gamma) + 1) ** 2 + float(rest[-1])
    t = float(optimize.brentq(lambda t: float(law @ np.exp(-size(t))) - gamma, 0.0, top, xtol=1e-6 * top))
    y = size(t)  # E(b² − y²)₊ = e^{−y}(2y + 2)
    overshoot = float(law @ (head * np.exp(-y) * (2 * y + 2) + np.maximum(rest - t, 0.0)))
    overshoot += regularization * missed + beyond * (2 * head + regularization * p * _CUT**2)
    overshoot += rounding * (2 * head + float(rest[-1]))  # mass in the wrong place is still within the window
    return 0.5 * (t + overshoot / gamma) * (1 + 1e-9)


@lru_cache(maxsize=8)
def _square_sum(count: int) -> tuple[FloatArray, float, float, float]:
    """Return a law on the grid above that of Σ b_i² in convex order, the overshoot cut off, and two masses.

    The masses: what lies beyond the grid, and what rounding in the transforms may have put in a wrong place.

    Each b² is cut at M, which takes at most E(b² − M)₊ off any overshoot, and its mass between two points of the grid
    goes to these two with the mean kept, which is above it in convex order. The overshoots of the new law are those
    of the old on the grid and linear in between, so its masses are their second differences.
    """
    y = np.sqrt(np.arange(0.0, _CUT**2 + _STEP, _STEP))
    overshoots = np.exp(-y) * (2 * y + 2)
    slopes = np.concatenate([[-1.0], np.diff(overshoots) / _STEP, [0.0]])
    # the sum concentrates near 2·count with spread √(20·count)
    reach = 2.0 * count + 40.0 * math.sqrt(20.0 * count) + 2.0 * _CUT**2
    law = convolved_power(np.diff(slopes), count, math.ceil(reach / _STEP))
    missed = count * math.exp(-_CUT) * 2 * (_CUT + 1)
    return law, missed, max(0.0, 1.0 - float(law.sum())), 1e-13 * (count + 1)


def convolved_power(law: FloatArray, count: int, size: int) -> FloatArray:
    """Return the law of a sum of independent copies, cut to ``size`` values (by repeated squaring)."""
    result, base = np.array([1.0]), law
    while count:
        if count & 1:
            result = _convolve(result, base, size)
        count >>= 1
        if count:
            base = _convolve(base, base, size)
    return result


def _convolve(a: FloatArray, b: FloatArray, size: int) -> FloatArray:
    length = 1 << math.ceil(math.log2(a.size + b.size))
    product = np.fft.irfft(np.fft.rfft(a, length) * np.fft.rfft(b, length), length)
    return np.maximum(product[: min(size, a.size + b.size - 1)], 0.0)


_NORM_STEP = 2.0**-6  # a quantile comes out a thousandth too large
_NORM_CUT = 28.0  # |b| beyond this has probability 7·10⁻¹³ each, counted as infinite


@lru_cache(maxsize=64)
def laplace_norm(p: int, gamma: float) -> float:
    """Return q."""
    if not 0 < gamma < 1:
        raise ValueError("gamma must lie strictly between 0 and 1")
    if p == 1:
        return math.log(1 / gamma) * (1 + 1e-12)
    below = _below(p)
    place = int(np.searchsorted(below, 1 - gamma))
    if place >= below.size:  # the tail drowns in rounding: a union over the coordinates holds for every γ
        return math.sqrt(p) * math.log(p / gamma) * (1 + 1e-12)
    return math.sqrt(place * _NORM_STEP) * (1 + 1e-12)


@lru_cache(maxsize=4)  # some megabytes each where p is in the thousands
def _below(p: int) -> FloatArray:
    """Return a lower bound on P(‖b‖₂² ≤ k·step) for every k: what takes time, and is the same for every γ."""
    # cells (k − 1)·step < b² ≤ k·step, each at its right end; P(|b| > y) = e^{−y}
    tail = np.exp(-np.sqrt(np.arange(0.0, _NORM_CUT**2 + _NORM_STEP, _NORM_STEP)))
    law = np.concatenate([[0.0], -np.diff(tail)])
    reach = 2.0 * p + 40.0 * math.sqrt(20.0 * p) + 2.0 * _NORM_CUT**2
    total = convolved_power(law, p, math.ceil(reach / _NORM_STEP))
    misplaced = 1e-12 * (p + 1)
    below: FloatArray = np.cumsum(total) - misplaced
    return below


_TAIL_STEP = 0.01
_KNOWN = 1.54  # from here on no tail of T is above that of χ²₁
_MOST_DEGREES = 100  # the worst n is about 0.67/(x − 1): 67 at 1 + _TAIL_STEP, and fewer beyond
_LEVELS = np.linspace(0.0, 1.0, 25)


@lru_cache(maxsize=256)
def spherical_energy(p: int, trace: float, *, curvature: float, regularization: float, gamma: float) -> float:
    """Return q for noise of density ∝ e^{−‖b‖₂}: norm Gamma(p), direction uniform (theory B8)."""
    along = curvature * trace
    # X grows with λ, so λ may be raised, which keeps the Poisson means moderate; it matters from p = 1000 on only
    least = along / min(100.0 * p, 8000.0) if p > 1 else 0.0
    regularization = max(regularization, least)
    shares, masses = _shares(p)
    half = 0.5 * (along * shares + regularization)  # X₁ = half·‖b‖² within a cell
    beyond_rank_one = _beyond_rank_one(p, along / (2 * regularization))

    def above(q: float) -> float:
        """Return a bound on P(X > q)."""
        return float(masses @ special.gammaincc(p, np.sqrt(q / half))) + beyond_rank_one(q / (2 * regularization))

    from scipy import optimize  # here, because it takes longer to import than most searches take

    low = 0.5 * regularization * float(special.gammainccinv(p, gamma)) ** 2
    top = 0.5 * (along + regularization) * float(special.gammainccinv(p, gamma * 1e-3)) ** 2
    aim = gamma * (1 - 1e-4)  # less than γ by more than the root can be off
    return float(optimize.brentq(lambda q: above(q) - aim, low, top, xtol=1e-10 * low, rtol=1e-10))


@lru_cache(maxsize=8)
def _shares(p: int) -> tuple[FloatArray, FloatArray]:
    """Return upper ends of cells of u², finer towards the tail, and their masses."""
    if p == 1:
        return np.ones(1), np.ones(1)
    survival = np.exp(-np.concatenate([0.005 * np.arange(1, 2000), 10 + 0.05 * np.arange(400)]))
    masses = -np.diff(survival, prepend=1.0)
    masses[-1] += survival[-1]  # the mass beyond, of order 1e-13
    return np.append(special.betainccinv(0.5, (p - 1) / 2, survival[:-1]), 1.0), masses


def _beyond_rank_one(p: int, kappa: float) -> Callable[[float], float]:
    """Return y ↦ a bound on P(X > 2λy) − P(X₁ > 2λy)."""
    if p == 1 or kappa == 0.0:
        return lambda y: 0.0  # there is no other S, or none that matters
    end = min(max(1000.0 / kappa, _KNOWN), 8.0)
    x = _TAIL_STEP * np.arange(math.ceil(end / _TAIL_STEP) + 1)
    mean = kappa * x[-1]
    m = np.arange(math.ceil(mean + 12 * math.sqrt(mean) + 40))  # what is left out is below 1e-15
    counts = np.exp(special.xlogy(m, kappa * x[:, None]) - kappa * x[:, None] - special.gammaln(m + 1))
    passed = -np.diff(np.cumsum(counts, axis=1), axis=0)  # P(N > m) rises by that within a cell
    ends = _chi_square(x)
    tails = ends.copy()
    tails[: _worst_tails().size] = _worst_tails()
    overshoots = special.gammaincc(1.5, x / 2) - x * ends  # E(χ²₁ − x)₊
    charged = np.concatenate([[1.0], -np.diff(overshoots[:-1]) / _TAIL_STEP])  # what r_i costs
    charged[-1] += overshoots[-2] / _TAIL_STEP  # the convex function goes on beyond the grid

    def bound(y: float) -> float:
        rises = passed @ _increments(p, y, m.size)
        highest = np.maximum.accumulate(rises)
        r = np.minimum(_LEVELS[:, None] * highest[-1], highest)
        return float(np.min(np.maximum(rises - r, 0.0) @ tails[:-1] + r @ charged) - rises @ ends[1:])

    return bound


def _chi_square(x: AnyArray, n: int = 1) -> FloatArray:
    """Return P(χ²_n/n > x)."""
    return np.asarray(special.gammaincc(n / 2, n * x / 2))


@lru_cache(maxsize=1)
def _worst_tails() -> FloatArray:
    """Return S̄ on the grid, up to where one degree of freedom is the worst."""
    x = _TAIL_STEP * np.arange(math.ceil(_KNOWN / _TAIL_STEP))
    worst = np.max([_chi_square(x, n) for n in range(1, _MOST_DEGREES)], axis=0)
    return np.where(x < 1 + 0.5 * _TAIL_STEP, 1.0, worst)


def _increments(p: int, y: float, count: int) -> FloatArray:
    """Return t_0, t_1, … by the recurrence of the ratios K_{m+½}/K_{m−½}."""
    z, ratio = 2 * math.sqrt(y), 1.0
    ratios = [ratio]
    for odd in range(1, 2 * count - 3, 2):
        ratio = 1 / ratio + odd / z
        ratios.append(ratio)
    steps = np.log(np.array(ratios)) + math.log(z / 2) - np.log(p / 2 + np.arange(1, count))
    first = (p / 2 + 0.25) * math.log(y) + 0.5 * math.log(math.pi / z) - z  # with 2·K_½(z) = √(2π/z)·e^{−z}
    first += 0.5 * math.log(2) - math.lgamma((p + 1) / 2) - math.lgamma(p / 2 + 1)
    return np.asarray(np.exp(first + np.concatenate([[0.0], np.cumsum(steps)])))
