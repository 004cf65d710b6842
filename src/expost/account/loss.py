"""A privacy loss as a value: it adds, it is compared with a cap, and it is written down without rounding.

A ledger keeps losses and knows nothing else about them, so that a loss of another kind is a class with an entry in
``KINDS`` (:class:`PrivacyLoss` says what is asked of it).

Losses of a budget with a δ: Rényi curves on the public grid of orders, and the cap (ε, δ) that their sum keeps.

*Theorem (the filter, with curves).* Let search i, once begun, book curves whose sum is at every order at most W_i(r),
whatever happens (an account with ``one_curve`` takes no step beyond it), and end with the sum R_i(r) ≤ W_i(r). If at
every moment ΣR_i over the searches that have ended plus ΣW_i over those that have not comes to at most ε at δ (`fits`),
then for every pair of neighbours P[loss of everything that is seen > ε] ≤ δ, so all of it is (ε, δ)-private: however
searches were chosen, one after the other or side by side.

*Proof.* Order the steps of all searches as they are taken. Each is chosen from what came before and has coins of its
own, so with ℓ_s its loss and R_s its curve, Σ_r w_r∏e^((r−1)(ℓ_s − R_s(r))) is a supermartingale that starts at Σw_r ≤
1. A view v is a function of these steps. Searches that have not ended show nothing, so v does not depend on theirs;
those that ended say their R_i in v, and one that was killed has booked at most W_i. So with C(v) what is charged in v,
E Σ_r w_r e^((r−1)(ℓ − C(v)(r))) ≤ 1, ℓ the loss of the steps that v depends on. The ratio of the probabilities of v
under the neighbours is the mean of e^ℓ given v, under the second of them, so by Jensen the same holds with the loss of
v itself in the place of ℓ. C(v) fits, so loss > ε would make the sum exceed 1/δ, which has probability at most δ. ∎
A search that ends replaces W_i by R_i ≤ W_i at every order, which raises no sum; so only reservations can break the
condition, and they are admitted one at a time.

*Pure losses* beside them: an ε that the outcome settles is ε at every order. δ is the budget's alone: the δ at which a
fit states its own ε says what its max_epsilon means, and adds nothing here.

*Where only an ε at a δ is known*, of a search that books curves and does not say which: the curve of Gaussian noise
that comes to it bounds no other (theory D9), but the pure worst case does, as far as sums are concerned.

*Lemma.* Let curves C and R not decrease in r, as those of Rényi divergences do not, and come to c and e at δ. Then
C + R comes to at most C + e + η, e + η at every order, η = √2·δ/(1 − δ).
*Proof.* With a_r = (r − 1)(c − C(r)) and b_r = (r − 1)(e − R(r)), Σw_r e^{a_r} = Σw_r e^{b_r} = 1/δ. As the curves do
not decrease, a_r ≥ 0 up to some order and a_r < 0 after it, and b_r likewise; let a's order s be the first of the two
(if it is b's, exchange them: what C + e + η comes to is c + e + η). Up to s both are ≥ 0, and what lies after s adds
less than 1 to Σw_r e^{a_r}, so Σ_{r≤s} w_r e^{a_r+b_r} > 1/δ − 1. With η more each term is larger by e^{(r−1)η} ≥ 1 +
η/√2, and (1/δ − 1)(1 + η/√2) = 1/δ. ∎
So e + η at every order may be held for a search whose curve R comes to at most e at the budget's δ: that R takes its
place raises what the sum comes to in no case, whatever else is charged (`CurveLoss.within`). What R comes to:
(i) At another δ′ > δ: ln Σw_r e^{(r−1)(x−R(r))} is convex in x, at most 0 at x = 0 and at least ln(1/δ′) at e, so R
comes to at most e·ln(1/δ)/ln(1/δ′) at δ. (ii) With a clock a search states less than its curve comes to: p + T(ρ) or
more, T the tail mean at time ρ, for Gaussian steps of ρ and pure ones of p, whose curve rρ + p comes to p + G(ρ). G − T
grows with ρ, but for less than T/200 where orders are sparse (`tests/account/test_ledger_with_delta.py`), so with p +
T(ρ) ≤ e that is at most 1.005·G(ρ*), T(ρ*) = e. Where rows are held out in secret the curve is the larger of two, and
their account takes no step with which it comes to more than e.

*In numbers*: sums of curves are rounded up order by order, `fits` has room for the rounding of its own sum.
"""

from __future__ import annotations

import json
import math
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from expost import validation
from expost.account.composition import NOTHING, ORDERS, Curve, add_losses, epsilons, room, tail_mean
from expost.numeric import bisected
from expost.shown import down, up

if TYPE_CHECKING:
    from expost.release.release import Release


Rounding = Literal["up", "down"]


class PrivacyLoss:
    """What a release costs, or may cost, as the ledger sees it; or the cap of a budget, which makes its losses.

    Of a loss: ``within(cap)``, true only if it keeps what the cap promises; or, against what was held, if it raises no
    sum in its place. ``raised_to(other)``, a loss below neither. ``to_dict`` and ``from_dict``, which give the same
    value, to the last bit.

    Of a cap: ``total(losses)``, not below the loss of the joint release, *whatever* earlier outcomes a later one was
    chosen by: for pure losses that is theory A1 (`expost.account.composition`), for others a theorem of their own (a
    filter) stands beside it. ``totals``, with each loss and those before it; work per loss does not grow.
    ``left(losses)``, the largest loss that is within the cap together with them. ``ceiling(losses, delta)``, the
    largest ``max_epsilon`` of a search at δ that fits beside them; ``by_hand`` of one that does not say what it books.
    ``takes(delta)``, whether a search at δ may be charged. ``reserved(worst_case, delta, held)``, what is held for a
    search, ``held`` being what an interruption would release; ``charged(release, booked)``, what a release costs where
    those of other ids are booked; ``decided(epsilon, held)``, an ε that somebody decided on for what was held.
    """

    kind: ClassVar[str]
    if TYPE_CHECKING:

        @property
        def epsilon(self) -> float:
            """What it comes to."""

        def to_dict(self) -> dict[str, Any]:
            """Return plain values from which the same loss can be made."""

    @property
    def bounded(self) -> bool:
        """Whether it can be reserved: a worst case of infinity cannot."""
        return math.isfinite(self.epsilon)

    def text(self, *, rounding: Rounding = "up") -> str:
        """Return ε in four digits for people: what is spent rounded up, what is left rounded down."""
        return up(self.epsilon) if rounding == "up" else down(self.epsilon)

    def texts(self, losses: Iterable[Any]) -> list[str]:
        """Return each of many losses in a few digits, rounded up."""
        return [loss.text() for loss in losses]

    def to_json(self) -> str:
        """Return one line of JSON, its kind included."""
        return json.dumps({"kind": self.kind, **self.to_dict()})


@dataclass(frozen=True, order=True)
class PureLoss(PrivacyLoss):
    """An ε of pure differential privacy. Written in hexadecimal, which is the float itself; decimals would round it.

    Examples
    --------
    >>> PureLoss.total([PureLoss(0.1), PureLoss(0.2)]).epsilon >= 0.1 + 0.2
    True
    >>> PureLoss(1.0).left([PureLoss(0.25)])
    PureLoss(epsilon=0.75)
    >>> PureLoss(0.1).to_json()
    '{"kind": "pure", "epsilon": "0x1.999999999999ap-4"}'
    """

    epsilon: float
    kind: ClassVar[str] = "pure"

    def __post_init__(self) -> None:
        if isinstance(self.epsilon, bool) or not isinstance(self.epsilon, int | float) or not self.epsilon >= 0:
            raise ValueError(f"a privacy loss is a number that is not negative, got {self.epsilon!r}")
        if float(self.epsilon) != self.epsilon:
            raise ValueError(f"a privacy loss of {self.epsilon} has no float")
        object.__setattr__(self, "epsilon", float(self.epsilon))

    @classmethod
    def total(cls, losses: Iterable[Any]) -> Self:
        """Return the sum, rounded up once."""
        return cls(add_losses(*(loss.epsilon for loss in losses)))

    def totals(self, losses: Iterable[Any]) -> Iterator[PureLoss]:
        """Yield each sum, exact and rounded up once."""
        exact, infinite = Fraction(0), False
        for loss in losses:
            infinite = infinite or math.isinf(loss.epsilon)
            exact += 0 if infinite else Fraction(loss.epsilon)
            yield PureLoss(math.inf if infinite else _rounded_up(exact))

    def ceiling(self, losses: Iterable[Any], delta: float, *, by_hand: bool = False) -> float:
        """Return what is left: a search costs no more than its ``max_epsilon``."""
        return self.left(losses).epsilon

    def takes(self, delta: float) -> bool:
        """Whether it is pure: an ε at a δ does not add to pure ones without its δ."""
        return not delta

    def reserved(self, worst_case: float, delta: float, held: Release | None = None) -> PureLoss:
        """Return the worst case."""
        return PureLoss(worst_case)

    def charged(self, release: Release, booked: Container[str]) -> PureLoss:
        """Return the release's ε; one that goes on from another that is booked costs what it adds."""
        return PureLoss(release.epsilon_beside(booked))

    def decided(self, epsilon: float, held: Any) -> PureLoss:
        """Return that ε."""
        return PureLoss(epsilon)

    def raised_to(self, other: Any) -> PureLoss:
        """Return the larger."""
        return self if other.epsilon <= self.epsilon else PureLoss(other.epsilon)

    def within(self, cap: Any) -> bool:
        """Return whether ε is at most the cap's. A sum rounded up is so if and only if the exact sum is."""
        return bool(self.epsilon <= cap.epsilon)

    def left(self, losses: Iterable[Any]) -> Self:
        """Return the cap less the exact sum, rounded down; nothing if that is negative."""
        spent = [loss.epsilon for loss in losses]
        if math.isinf(self.epsilon) and not any(map(math.isinf, spent)):
            return self
        return type(self)(max(0.0, -add_losses(-self.epsilon, *spent)))

    def to_dict(self) -> dict[str, Any]:
        """Return ε in hexadecimal."""
        return {"epsilon": self.epsilon.hex()}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Read ε."""
        return cls(float.fromhex(plain["epsilon"]))


def _rounded_up(exact: Fraction) -> float:
    try:
        near = float(exact)
    except OverflowError:
        return math.inf
    return near if near >= exact else math.nextafter(near, math.inf)


_DOWN, _UP = 1.0 - 1e-8, 1.0 + 1e-8


@dataclass(frozen=True)
class CurveLoss(PrivacyLoss):
    """What a search costs as a curve, in a budget at δ.

    Examples
    --------
    >>> cap = ApproximateCap(1.0, 1e-6)
    >>> one = CurveLoss(Curve.gaussian(0.001), 1e-6)
    >>> one.text(), cap.total([one] * 4).text()
    ('0.2512', '0.5107')
    >>> cap.total([one] * 4).within(cap), cap.total([one] * 400).within(cap)
    (True, False)
    """

    curve: Curve
    delta: float
    kind: ClassVar[str] = "curve"

    def __post_init__(self) -> None:
        validation.check_delta(self.delta, positive=True)

    @property
    def epsilon(self) -> float:
        """What it comes to at the budget's δ, by itself."""
        return self.curve.epsilon(self.delta)

    def within(self, cap: Any) -> bool:
        """Whether it keeps a cap; what was held if it is at most that at every order, or comes to at most its least."""
        if isinstance(cap, ApproximateCap):
            return self.curve.fits(cap.epsilon, cap.delta)
        growing = list(self.curve.losses) == sorted(self.curve.losses)
        comes_to = self.epsilon + _beside(self.delta) if growing else math.inf
        return self.curve.at_most(cap.curve) or (comes_to <= min(cap.curve.losses) and math.isinf(cap.curve.most))

    def raised_to(self, other: Any) -> CurveLoss:
        """Return this if the other would raise no sum in its place, else the larger at every order."""
        return self if other.within(self) else CurveLoss(self.curve.joined(other.curve), self.delta)

    def to_dict(self) -> dict[str, Any]:
        """Return δ and the curve, in hexadecimal."""
        return {
            "delta": self.delta.hex(),
            "orders": [order.hex() for order in ORDERS],
            "losses": [loss.hex() for loss in self.curve.losses],
            "most": self.curve.most.hex(),
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Read them."""
        orders, losses = (tuple(float.fromhex(value) for value in plain[name]) for name in ("orders", "losses"))
        return cls(Curve.stated(orders, losses, float.fromhex(plain["most"])), float.fromhex(plain["delta"]))


@dataclass(frozen=True)
class ApproximateCap(PrivacyLoss):
    """(ε, δ): all of it speaks for one table, against a neighbour, by more than e^ε with a chance of at most δ."""

    epsilon: float
    delta: float
    kind: ClassVar[str] = "approximate"

    def __post_init__(self) -> None:
        if isinstance(self.epsilon, bool) or not 0 < self.epsilon < math.inf:
            raise ValueError(f"the cap must be a positive finite number, got {self.epsilon!r}")
        validation.check_delta(self.delta, positive=True)

    def total(self, losses: Iterable[Any]) -> CurveLoss:
        """Return the sum of the curves, rounded up."""
        return CurveLoss(Curve.total(loss.curve for loss in losses), self.delta)

    def totals(self, losses: Iterable[Any]) -> Iterator[CurveLoss]:
        """Yield each sum of curves, rounded up at every step."""
        return (CurveLoss(curve, self.delta) for curve in accumulate(loss.curve for loss in losses))

    def texts(self, losses: Iterable[Any]) -> list[str]:
        """Return what each comes to at δ, all at once."""
        return [up(epsilon) for epsilon in epsilons([loss.curve for loss in losses], self.delta)]

    def within(self, cap: Any) -> bool:
        """Whether it promises as much as another cap."""
        return isinstance(cap, ApproximateCap) and self.epsilon <= cap.epsilon and self.delta <= cap.delta

    def left(self, losses: Iterable[Any]) -> CurveLoss:
        """Return the largest Gaussian curve that fits beside the losses."""
        rho = room(self.total(losses).curve, self.epsilon, self.delta)
        return CurveLoss(Curve.gaussian(rho * _DOWN), self.delta)

    def ceiling(self, losses: Iterable[Any], delta: float, *, by_hand: bool = False) -> float:
        """Return the largest ``max_epsilon`` of a search at δ, or of a pure one, whose worst case fits beside them."""
        spent = self.total(losses).curve
        if delta and not by_hand:
            left = Curve.gaussian(room(spent, self.epsilon, self.delta) * _DOWN)
            return left.epsilon(delta) * _DOWN if left.most else 0.0

        def fitting(most: float) -> bool:
            return (spent + self._known(most, delta)).fits(self.epsilon, self.delta)

        return bisected(fitting, 0.0, self.epsilon, 60)[0] * _DOWN

    def takes(self, delta: float) -> bool:
        """Whether searches at a δ may be charged: they may, and pure ones."""
        return True

    def reserved(self, worst_case: float, delta: float, held: Release | None = None) -> CurveLoss:
        """Return what is held for a search: the curve that no outcome of it exceeds at any order."""
        if not math.isfinite(worst_case):
            return CurveLoss(Curve.ex_post(math.inf), self.delta)
        if delta and held is not None and held.curve:
            return CurveLoss(held.account_curve(), self.delta)
        return CurveLoss(self._known(worst_case, delta), self.delta)

    def charged(self, release: Release, booked: Container[str]) -> CurveLoss:
        """Return what a release costs: its curve, or a pure ε at every order; of an interruption what is known."""
        if release.delta and (release.curve or not release.parameters.get("interrupted", False)):
            return CurveLoss(release.account_curve(), self.delta)
        return CurveLoss(self._known(release.epsilon_beside(booked), release.delta), self.delta)

    def _known(self, epsilon: float, delta: float) -> Curve:
        """Return what holds of a search of which ε alone is known: that at every order, or at a δ the lemma's."""
        if not delta or not math.isfinite(epsilon):
            return Curve.ex_post(epsilon)
        # ρ, which the tail mean is above
        _, rho = bisected(lambda rho: tail_mean(math.sqrt(2.0 * rho), delta) <= epsilon, 0.0, epsilon, 80)
        by_curve = max(epsilon, 1.005 * Curve.gaussian(rho).epsilon(delta))
        comes_to = by_curve * max(1.0, math.log(self.delta) / math.log(delta))
        return Curve((comes_to * _UP + _beside(self.delta),) * len(ORDERS), math.inf)

    def decided(self, epsilon: float, held: Any) -> CurveLoss:
        """Return what somebody decided: nothing, or the ε of a pure search.

        An ε at a δ says too little to be charged: other curves come to it than the search's, at another δ above all.
        """
        if not epsilon:
            return CurveLoss(NOTHING, self.delta)
        if not math.isfinite(held.curve.most):
            raise ValueError(
                "an epsilon at a delta does not settle what a search cost in a budget with a delta; pass its release, "
                "or no loss at all to charge what is held"
            )
        return CurveLoss(Curve.ex_post(epsilon), self.delta)

    def text(self, *, rounding: Rounding = "up") -> str:
        """Return ε in four digits, and δ."""
        return f"{super().text(rounding=rounding)} at δ = {up(self.delta, 6)}"

    def to_dict(self) -> dict[str, Any]:
        """Return both in hexadecimal."""
        return {"epsilon": self.epsilon.hex(), "delta": self.delta.hex()}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Read them."""
        return cls(float.fromhex(plain["epsilon"]), float.fromhex(plain["delta"]))


def _beside(delta: float) -> float:
    """Return the lemma's η, rounded up."""
    return 1.5 * delta / (1.0 - delta)


AnyLoss = PureLoss | CurveLoss
Cap = PureLoss | ApproximateCap
KINDS: dict[str, type[PureLoss] | type[CurveLoss] | type[ApproximateCap]] = {
    kind.kind: kind for kind in (PureLoss, CurveLoss, ApproximateCap)
}


def loss_from_json(text: str) -> Any:
    """Read what :meth:`PrivacyLoss.to_json` wrote."""
    try:
        plain = json.loads(text)
        return KINDS[plain.pop("kind")].from_dict(plain)
    except (AttributeError, KeyError, OverflowError, RecursionError, TypeError, ValueError):
        raise ValueError(f"not a privacy loss of a kind known here ({', '.join(KINDS)}): {text!r}") from None
