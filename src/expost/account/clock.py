"""What Gaussian and pure steps come to at δ, ex post, on a clock that was settled before the run.

A run takes Gaussian steps, each chosen from what was released before, and pure ones between them. Its *time* is the sum
ρ of what the Gaussian steps cost. Before it begins, times r_1 < r_2 < … are settled where it will probably end, and
shares of δ: δ_k = δ/(k(k + 1)). The run ends whenever it likes, by what it has released, if not after the last time.
Let it end at time ρ, r_k the first of them that is not before ρ, with pure steps of ε_p in all, and m = √(2r_k). What
is shown in the end, o, may be less than all that was released, but it shows ρ and ε_p.

*Theorem (ex post).* With e = ln(δ_k/Φ(Φ⁻¹(δ_k) − m)) and ε(o) = ε_p + e: for every ordered pair of neighbours
P[ℓ > ε(o)] ≤ δ, ℓ the loss of what is shown.
*Theorem (usual sense, ex post).* With e solving Φ(m/2 − e/m) − e^e·Φ(−m/2 − e/m) = δ_k instead: for every set S of
outcomes P[S] ≤ E′[e^{ε(o)}; S] + δ.

*Proof.* Write the loss of all that was released as g + p, the sums over Gaussian and over pure steps; p ≤ ε_p always.
Given the past, whatever pure steps answered included, a Gaussian step of shift v in units of its noise, |v|²/2 ≤ ρ_t,
has a loss N(|v|²/2, |v|²) under D. So g is s/2 + W_s at a random time s ≤ 2ρ, W a Brownian motion. Follow the run until
its time would pass r_k: then s ≤ m². X = e^{−g} = e^{−s/2−W_s} is a martingale under D stopped at s, so for convex f
E f(X) ≤ E f(L), L = e^{−N}, N ~ N(m²/2, m²): its value at m².
(i) Let B be the shown outcomes between r_{k−1} and r_k with ℓ > ε(o). e^{−ℓ} is the mean of e^{−g−p} given what is
shown, and e^{−p} ≥ e^{−ε_p}, so E[X; B] < e^{−e}P[B]. Among all events of probability b, L has the least mean on the
one where it is smallest, Φ(Φ⁻¹(b) − m), and by convex order (f = (c − x)₊, c that quantile) E[X; B] is at least that
with b = P[B]. Φ(Φ⁻¹(b) − m)/b increases with b. So P[B] < δ_k, and Σδ_k ≤ δ.
(ii) f(x) = (1 − e^e·x)₊ is convex, and E f(L) is the second formula's left side (Balle, Wang 2018). For runs that end
between r_{k−1} and r_k, 1 − e^{ε(o)−g−p} ≤ f(X). So E(1 − e^{ε(o)−g−p})₊ ≤ Σδ_k ≤ δ, and P[S] − E′[e^{ε(o)}; S] is the
mean of 1 − e^{ε(o)−g−p} on S. ∎
Without shares a run that stops at a good moment breaks both (`tests/account/test_clock.py`). The tail of g itself would
not do for (i): who shows only where a run ended merges outcomes, and their losses with them.

*Filter.* If no outcome has ε(o) > ε then P[ℓ > ε] ≤ δ and the run is (ε, δ)-private: steps are taken only if the sum
with them stays within the budget.

*Noise on integers.* Steps draw discrete Gaussians X of σ ≥ 2¹⁶ units. With Y a Gaussian rounded to the nearest integer
|ln P[X = k]/P[Y = k]| ≤ (1 + k²/σ²)/(12σ²): P[Y = k] is the density at k times the mean of e^{−kt/σ²−t²/(2σ²)} over
|t| ≤ ½, which is between 1 − 1/(24σ²) and sinh(u)/u ≤ e^{u²/6}, u = k/(2σ²), and what normalises both differs by
e^{−2π²σ²}. Integers plus Y are Gaussian releases, rounded: what is shown of them may be less than all. So the
probability of an outcome of N draws is another by a factor e^{±η}, η = (N + Σk²/σ²)/(12σ²), and Σk²/σ² ≤ 2N + 400 but
with probability e^{−100}. Gradients and moments have σ ≥ 2²⁵ and fewer than 10⁸ draws; looks, and how long rows are,
fewer than 100: η < 10⁻⁷ together, which is added twice, and taken off δ. That is why δ is at least :data:`LEAST`.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

_UP = 1.0 + 1e-9  # rounding of a solution
_LATTICE = 2e-7  # what integers add to a loss, both ways, and take off δ as a part of it
_TINY = 1e-290  # what erfc still knows
_MOST = 600.0  # e^ε beyond is no number
#: Below this δ nothing is stated by a clock.
LEAST = 1e-30


@dataclass(frozen=True)
class Clock:
    """Times that were settled before a run.

    Parameters
    ----------
    times
        r_1 < r_2 < …, sums of ρ.

    Examples
    --------
    >>> clock = Clock.of([1e-4, 2e-4])
    >>> round(clock.epsilon(1e-4, 0.0, 1e-6), 4), round(clock.usual_epsilon(1e-4, 0.0, 1e-6), 4)
    (0.072, 0.0514)
    >>> round(clock.epsilon(1e-4, 0.05, 1e-6), 4), clock.epsilon(3e-4, 0.0, 1e-6)
    (0.122, inf)
    """

    times: tuple[float, ...]

    @classmethod
    def of(cls, times: Iterable[float]) -> Clock:
        """Return a clock of some times, in any order."""
        return cls(tuple(sorted({float(time) for time in times if time > 0})))

    def epsilon(self, rho: float, pure: float, delta: float) -> float:
        """Return ε(o) at δ, rounded up: P[loss > ε] ≤ δ for every ordered pair of neighbours."""
        return self._stated(rho, pure, delta, tail_mean)

    def usual_epsilon(self, rho: float, pure: float, delta: float) -> float:
        """Return the same in the usual sense of (ε, δ)."""
        return self._stated(rho, pure, delta, _hockey_stick)

    def _stated(self, rho: float, pure: float, delta: float, solved: Callable[[float, float], float]) -> float:
        if rho == 0.0:
            return pure
        place = bisect_left(self.times, rho)
        if place == len(self.times):
            return math.inf
        share = delta * (1.0 - _LATTICE) / ((place + 1) * (place + 2))
        return (pure + solved(math.sqrt(2.0 * self.times[place]), share) + _LATTICE) * _UP


@lru_cache(maxsize=4096)
def tail_mean(m: float, delta: float) -> float:
    """Return ln(δ/Φ(Φ⁻¹(δ) − m)), rounded up."""
    least = _upper(m - NormalDist().inv_cdf(delta))
    return math.log(delta) - math.log(least) + 1e-12 if least > _TINY else math.inf


@lru_cache(maxsize=4096)
def _hockey_stick(m: float, delta: float) -> float:
    """Return the smallest e ≥ 0 with Φ(m/2 − e/m) − e^e·Φ(−m/2 − e/m) ≤ δ, rounded up."""

    def exceeds(e: float) -> bool:
        return _upper(e / m - m / 2) - math.exp(e) * _upper(e / m + m / 2) > delta

    low, high = 0.0, m * m / 2 + m * 40.0
    if high > _MOST:
        return math.inf
    for _ in range(80):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if exceeds(middle) else (low, middle)
    return high


def _upper(z: float) -> float:
    """Return Φ(−z), to the last digits in the tail as well."""
    return 0.5 * math.erfc(z / math.sqrt(2.0))
