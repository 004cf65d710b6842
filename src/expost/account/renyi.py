"""Losses under approximate privacy: Rényi curves that add step by step, and what they come to at a δ, ex post (C3).

*Curves.* Step t of a run, chosen from what was released before, costs R_t(r) at the orders r of one public grid: for
every ordered pair of neighbours D, D′ its loss ℓ_t = log P[o|D]/P[o|D′] has E e^{(r−1)ℓ_t} ≤ e^{(r−1)R_t(r)} under D,
given the past. Gaussian noise of deviation σ on what one row moves by Δ: R(r) = rΔ²/(2σ²). A pure ε settled before the
step: min(ε, rε²/2). A pure loss ε(o) that depends on the outcome: ε(o) at every order, as ℓ_t ≤ ε(o).

*Theorem (ex post).* Let weights w_r > 0 add up to one, δ be settled beforehand, and the run end whenever it likes, by
what it has released. With ℓ the loss of the whole run between D and D′ and R(r) = Σ_t R_t(r) over the steps taken, let
ε(o) solve Σ_r w_r e^{(r−1)(ε − R(r))} = 1/δ. Then P[ℓ > ε(o)] ≤ δ under D.
*Proof.* M_t = Σ_r w_r ∏_{s≤t} e^{(r−1)(ℓ_s − R_s(r))} starts at Σ w_r = 1 and is a supermartingale: given the past each
factor has mean at most one. It is not negative, so E M ≤ 1 where the run ends (Fatou; runs here are finite). The sum is
increasing in ε, so ℓ > ε(o) says that M > 1/δ, which has probability at most δ (Markov). ∎
Keeping one term of the sum gives C3's ε(o) ≤ min_r R(r) + ln(1/(w_rδ))/(r − 1). The weights are the price of choosing
r by the outcome: without them, stopping at a good moment breaks the statement (`tests/account/test_renyi.py`).

*What it says.* For each ordered pair of neighbours: whoever's row it is, whatever it might be replaced by, the chance
that the outcome speaks for that row, against the other, by more than e^{ε(o)} is at most δ. That it speaks for the
other so strongly has under D at most e^{−ε(o)} times the probability that it has under D′. So both directions together
have at most 2δ, and (1 + e^{−ε})δ where ε(o) ≥ ε always. It is about two tables and not about mixtures of several, nor
about the worst neighbour of each outcome: in many dimensions some row would nearly always have moved it more.

*Theorem (the usual sense, ex post).* With the same weights let ε*(o) be the largest ℓ + ln(1 − δM(ℓ)) over ℓ, M(ℓ) =
Σ_r w_r e^{(r−1)(ℓ − R(r))} < 1/δ. Then for every ordered pair of neighbours and every set S of outcomes P[o ∈ S] ≤
E′[e^{ε*(o)}; o ∈ S] + δ, E′ under D′. Where ε* is one number, that is (ε*, δ)-privacy as other libraries state it.
*Proof.* By its choice (1 − e^{ε*−ℓ})₊ ≤ δM(ℓ) for every ℓ, so its mean where the run ends is at most δ·E M ≤ δ. And
P[S] − E′[e^{ε*}; S] is the mean of 1 − e^{ε*−ℓ} on S. ∎ M is convex, so what is maximised is concave. As ℓ stays below
ε(o), ε*(o) ≤ ε(o): this sense lets losses exceed it more often, as long as it is by little.

*Theorem (filter).* If no outcome has ε(o) > ε, then P[ℓ > ε] ≤ δ, so the run is (ε, δ)-private. So a step is taken only
if the sum *with it* stays within the budget (`fits`); what was not spent is left.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost.account.composition import add_losses

Floats = NDArray[np.float64]

_COUNT, _MIDDLE, _WIDTH = 29, 15, 3.0  # orders 1 + 2^(−½), …, 1 + 2^(13½); weights are largest near r = 129
#: r − 1 for each order of the grid.
STEPS: tuple[float, ...] = tuple(2.0 ** ((k - 1) / 2) for k in range(_COUNT))
#: The public grid of orders.
ORDERS: tuple[float, ...] = tuple(1.0 + step for step in STEPS)
_RAW = [1.0 / (1.0 + ((k - _MIDDLE) / _WIDTH) ** 2) for k in range(_COUNT)]
#: Their weights, which add up to at most one.
WEIGHTS: tuple[float, ...] = tuple(raw / math.fsum(_RAW) * (1.0 - 1e-15) for raw in _RAW)
_UP = 1.0 + 1e-10  # rounding of a solution: each exponent is within 10⁻¹¹ of its value
_DOWN = 1.0 - 1e-9
_TINY = 1e-15  # rounding of one minus a sum
_ENDLESS = 1e6  # an ε that stands for no bound


@dataclass(frozen=True)
class Curve:
    """What steps cost together: R(r) on the grid, and a bound on the loss that holds always.

    Attributes
    ----------
    losses
        R(r) for each of :data:`ORDERS`.
    most
        No outcome's loss is above this; infinite once Gaussian noise is among the steps.
    split
        ρ and ε, if all steps were Gaussian, of ρ together, or pure, of ε together (`expost.account.clock`); else None.

    Examples
    --------
    >>> step = Curve.gaussian(0.001)  # one row moves it by √0.002 deviations of the noise
    >>> round(step.epsilon(1e-6), 3), round((step + step).epsilon(1e-6), 3)
    (0.251, 0.357)
    >>> Curve.pure(0.5).epsilon(1e-6)
    0.5
    """

    losses: tuple[float, ...]
    most: float
    split: tuple[float, float] | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if len(self.losses) != len(ORDERS) or not all(loss >= 0 for loss in (*self.losses, self.most)):
            raise ValueError(f"a curve has a loss that is not negative for each of {len(ORDERS)} orders")

    @classmethod
    def stated(cls, orders: tuple[float, ...], losses: tuple[float, ...], most: float) -> Curve:
        """Return a curve that was written down, if it is on this grid."""
        if tuple(orders) != ORDERS:
            raise ValueError("the curve is on another grid of orders")
        return cls(tuple(losses), most)

    def to_dict(self) -> dict[str, Any]:
        """Return what :meth:`stated` takes."""
        return {"orders": ORDERS, "losses": self.losses, "most": self.most}

    @classmethod
    def gaussian(cls, rho: float) -> Curve:
        """Return rρ, ρ = Δ²/(2σ²): Gaussian noise, continuous or exact."""
        _check("rho", rho)
        return cls(tuple(order * rho * _UP for order in ORDERS), math.inf if rho > 0 else 0.0, (rho * _UP, 0.0))

    @classmethod
    def pure(cls, epsilon: float) -> Curve:
        """Return min(ε, rε²/2): a pure step whose ε was settled before it (Bun, Steinke 2016)."""
        _check("epsilon", epsilon)
        return cls(tuple(min(epsilon, order * epsilon**2 / 2 * _UP) for order in ORDERS), epsilon, (0.0, epsilon))

    @classmethod
    def ex_post(cls, epsilon: float) -> Curve:
        """Return ε at every order: a pure loss that was settled by the outcome."""
        _check("epsilon", epsilon)
        return cls((epsilon,) * len(ORDERS), epsilon, (0.0, epsilon))

    def __add__(self, other: Curve) -> Curve:
        both = zip(self.losses, other.losses, strict=True)
        split = None
        if self.split is not None and other.split is not None:
            split = add_losses(self.split[0], other.split[0]), add_losses(self.split[1], other.split[1])
        return Curve(tuple(add_losses(*pair) for pair in both), add_losses(self.most, other.most), split)

    def at_most(self, other: Curve) -> bool:
        """Whether it is at most another curve at every order."""
        return self.most <= other.most and all(a <= b for a, b in zip(self.losses, other.losses, strict=True))

    def joined(self, other: Curve) -> Curve:
        """Return the larger of both at every order."""
        return Curve(tuple(map(max, self.losses, other.losses)), max(self.most, other.most))

    @cached_property
    def _array(self) -> Floats:
        return np.array(self.losses)

    def _terms(self, epsilon: float) -> Floats:
        """Return the logarithm of each term of the theorem's sum."""
        with np.errstate(invalid="ignore"):
            return np.asarray(_LOG_WEIGHTS + _STEPS * (epsilon - self._array))

    def fits(self, epsilon: float, delta: float) -> bool:
        """Whether it comes to at most ε at δ, with room for rounding."""
        least = epsilon * _DOWN
        return self.most <= least or _log_sum(self._terms(least)) >= -math.log(delta)

    def epsilon(self, delta: float) -> float:
        """Return ε(o) at δ, rounded up: P[loss > ε] ≤ δ for every ordered pair of neighbours.

        Parameters
        ----------
        delta
            Settled before the run.
        """
        check_delta(delta)
        if delta == 0.0 or self.most == 0.0:
            return self.most
        low, high = 0.0, float(np.min(self._array - (math.log(delta) + _LOG_WEIGHTS) / _STEPS))
        if math.isfinite(high):
            for _ in range(100):
                middle = 0.5 * (low + high)
                low, high = (low, middle) if _log_sum(self._terms(middle)) >= -math.log(delta) else (middle, high)
        return min(self.most, high * _UP)

    def usual_epsilon(self, delta: float) -> float:
        """Return ε*(o) at δ, rounded up: what the curve comes to in the usual sense of (ε, δ).

        Parameters
        ----------
        delta
            Settled before the run.

        Examples
        --------
        >>> step = Curve.gaussian(0.001)
        >>> round(step.usual_epsilon(1e-6), 3), round(step.epsilon(1e-6), 3)
        (0.2, 0.251)
        """
        low, high = 0.0, self.epsilon(delta)
        if delta == 0.0 or not 0.0 < high < math.inf:
            return high

        def value(loss: float) -> tuple[float, float]:
            """Return ℓ + ln(1 − δM(ℓ)) and its slope."""
            terms = delta * np.exp(self._terms(loss))
            left = 1.0 - float(terms.sum())
            return (loss + math.log(left), 1.0 - float(_STEPS @ terms) / left) if left > 0.0 else (-math.inf, -math.inf)

        for _ in range(60):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if value(middle)[1] > 0.0 else (low, middle)
        most, slope = value(low)  # concave: nowhere above its tangent
        return min(max(0.0, most + max(0.0, slope) * (high - low)) * _UP + _TINY, self.epsilon(delta))

    def order(self, delta: float) -> int:
        """Return the place in the grid of the order that counts most at δ."""
        return int(np.argmax(self._terms(self.epsilon(delta))))


NOTHING = Curve((0.0,) * len(ORDERS), 0.0, (0.0, 0.0))
_STEPS, _LOG_WEIGHTS = np.array(STEPS), np.log(np.array(WEIGHTS))


def epsilons(curves: Sequence[Curve], delta: float) -> list[float]:
    """Return :meth:`Curve.epsilon` of many curves at once, to all digits that count.

    Examples
    --------
    >>> curves = [Curve.gaussian(0.001), Curve.pure(0.5), NOTHING]
    >>> [round(epsilon, 6) for epsilon in epsilons(curves, 1e-6)] == [round(c.epsilon(1e-6), 6) for c in curves]
    True
    """
    if not curves:
        return []
    losses, most = np.array([curve.losses for curve in curves]), np.array([curve.most for curve in curves])
    with np.errstate(invalid="ignore", divide="ignore"):
        high = np.min(losses - (math.log(delta) + _LOG_WEIGHTS) / _STEPS, axis=1)
        low = np.zeros_like(high)
        for _ in range(60):
            middle = 0.5 * (low + high)
            terms = _LOG_WEIGHTS + _STEPS * (middle[:, None] - losses)
            top = np.max(terms, axis=1)
            enough = top + np.log(np.exp(terms - top[:, None]).sum(axis=1)) >= -math.log(delta)
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        return [float(epsilon) for epsilon in np.minimum(most, high * _UP)]


def room(spent: Curve, epsilon: float, delta: float) -> float:
    """Return the largest ρ of Gaussian noise that still fits beside what was spent; zero if none does.

    Examples
    --------
    >>> rho = room(NOTHING, 1.0, 1e-6)
    >>> Curve.gaussian(rho).fits(1.0, 1e-6), Curve.gaussian(1.01 * rho).fits(1.0, 1e-6)
    (True, False)
    """
    check_delta(delta, positive=True)
    least, orders = min(epsilon, _ENDLESS) * _DOWN, np.array(ORDERS) * _UP
    terms, wanted = spent._terms(least), -math.log(delta)
    low, high = 0.0, max(1.0, least)
    for _ in range(80):
        middle = 0.5 * (low + high)
        fitting = _log_sum(terms - _STEPS * (middle * orders)) >= wanted
        low, high = (middle, high) if fitting else (low, middle)
    return low * _DOWN


def check_delta(delta: float, *, positive: bool = False) -> None:
    """Raise unless δ is a probability below one."""
    if not (delta > 0.0 if positive else delta >= 0.0) or not delta < 1.0:
        raise ValueError(f"delta must be a number between 0 and 1, got {delta!r}")


def _check(name: str, value: float) -> None:
    if not value >= 0:
        raise ValueError(f"{name} must be a non-negative number, got {value}")


def _log_sum(terms: Floats) -> float:
    top = float(np.max(terms))
    if not math.isfinite(top):
        return top
    return top + math.log(float(np.exp(terms - top).sum()))
