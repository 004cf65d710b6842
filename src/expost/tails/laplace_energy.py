"""How large ½bᵀ(cΣ + λI)b can be for Laplace noise b on a minimiser, when only the trace of Σ is known.

*Wanted*: a q with P(X > q) ≤ γ, X = ½c·bᵀΣb + ½λ‖b‖², for **every** Σ ⪰ 0 with tr Σ ≤ τ; b has unit scale, and q grows
with its square. X grows with Σ, so let Σ = τS with tr S = 1, and k = cτ. Public numbers only.

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
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

_STEP = 0.25
_CUT = 40.0  # |b| beyond this (probability e⁻⁴⁰ each) is accounted for separately


def laplace_energy(p: int, trace: float, *, curvature: float, regularization: float, gamma: float) -> float:
    """Return q for independent Lap(1) coordinates.

    Examples
    --------
    >>> q = laplace_energy(38, 0.1, curvature=0.25, regularization=0.005, gamma=0.1)
    >>> 0.41 < q < 0.43
    True
    """
    along = curvature * trace
    if p == 1:
        return 0.5 * (along + regularization) * math.log(1 / gamma) ** 2 * (1 + 1e-9)
    return _cvar(p, along, regularization, gamma)


@lru_cache(maxsize=256)
def _cvar(p: int, along: float, regularization: float, gamma: float) -> float:
    head = along + regularization  # 2X₁ = head·b₁² + λ·rest
    law, missed, beyond, rounding = _square_sum(p - 1)
    rest = regularization * _STEP * np.arange(law.size)

    def size(t: float) -> NDArray[np.float64]:
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
def _square_sum(count: int) -> tuple[NDArray[np.float64], float, float, float]:
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


def convolved_power(law: NDArray[np.float64], count: int, size: int) -> NDArray[np.float64]:
    """Return the law of a sum of independent copies, cut to ``size`` values (by repeated squaring)."""
    result, base = np.array([1.0]), law
    while count:
        if count & 1:
            result = _convolve(result, base, size)
        count >>= 1
        if count:
            base = _convolve(base, base, size)
    return result


def _convolve(a: NDArray[np.float64], b: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    length = 1 << math.ceil(math.log2(a.size + b.size))
    product = np.fft.irfft(np.fft.rfft(a, length) * np.fft.rfft(b, length), length)
    return np.maximum(product[: min(size, a.size + b.size - 1)], 0.0)
