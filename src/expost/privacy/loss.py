"""A privacy loss as a value: it adds, it is compared with a cap, and it is written down without rounding.

A ledger keeps losses and knows nothing else about them, so that a loss of another kind is a class with an entry in
``KINDS``; `expost.privacy.curve_loss` has those of a budget with a δ. A budget's cap is a value of its kind too, and
makes the losses that are charged to it. What the ledger's theorem asks of a kind:

- ``total`` is not below the loss of the joint release of its parts, *whatever* earlier outcomes a later part was chosen
  by. For pure losses that is theory A1 (`expost.privacy.composition`); a kind for which adaptively chosen parameters
  need a theorem of their own (a filter) states it beside its ``total``.
- ``within`` is true only if the loss keeps what the cap promises.
- ``left`` fits: together with the parts it is within the cap.
- Writing and reading gives the same value, to the last bit.
"""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from expost.privacy.composition import add_losses
from expost.rounding import down, up

if TYPE_CHECKING:
    from expost.privacy.release import Release

Rounding = Literal["up", "down"]


class PrivacyLoss(ABC):
    """What a release costs, or may cost, as the ledger sees it; or the cap of a budget."""

    kind: ClassVar[str]

    def total(self, losses: Iterable[Any]) -> PrivacyLoss:
        """Return a loss not below that of everything together; asked of the cap."""
        raise NotImplementedError

    def totals(self, losses: Iterable[Any]) -> Iterator[PrivacyLoss]:
        """Yield a total with each loss and those before it; work per loss does not grow."""
        raise NotImplementedError

    def texts(self, losses: Iterable[Any]) -> list[str]:
        """Return each of many losses in a few digits, rounded up."""
        return [loss.text() for loss in losses]

    @abstractmethod
    def within(self, cap: Any) -> bool:
        """Return whether this loss keeps what the cap promises."""

    def left(self, losses: Iterable[Any]) -> PrivacyLoss:
        """Return the largest loss that, together with the losses given, is within this cap."""
        raise NotImplementedError

    def ceiling(self, losses: Iterable[Any], delta: float, *, by_hand: bool = False) -> float:
        """Return the largest ``max_epsilon`` of a search at δ that fits under this cap beside the losses.

        ``by_hand``: of a search that does not say what it books.
        """
        raise NotImplementedError

    def takes(self, delta: float) -> bool:
        """Return whether a search at δ may be charged under this cap."""
        raise NotImplementedError

    def reserved(self, worst_case: float, delta: float, held: Release | None = None) -> PrivacyLoss:
        """Return what is held, under this cap, for a search at δ; ``held`` is what an interruption would release."""
        raise NotImplementedError

    def charged(self, release: Release, booked: Container[str]) -> PrivacyLoss:
        """Return what a release costs under this cap where those of other ids are booked."""
        raise NotImplementedError

    def decided(self, epsilon: float, held: Any) -> PrivacyLoss:
        """Return an ε that somebody decided on for what was held, as a loss under this cap."""
        raise NotImplementedError

    def raised_to(self, other: Any) -> PrivacyLoss:
        """Return a loss that is below neither."""
        raise NotImplementedError

    @property
    @abstractmethod
    def bounded(self) -> bool:
        """Whether it can be reserved: a worst case of infinity cannot."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return plain values from which the same loss can be made."""

    @classmethod
    @abstractmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Read what :meth:`to_dict` returned."""

    @abstractmethod
    def text(self, *, rounding: Rounding = "up") -> str:
        """Return it in a few digits for people: what is spent rounded up, what is left rounded down."""

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
        return other if other.epsilon > self.epsilon else self

    def within(self, cap: Any) -> bool:
        """Return whether ε is at most the cap's. A sum rounded up is so if and only if the exact sum is."""
        return bool(self.epsilon <= cap.epsilon)

    def left(self, losses: Iterable[Any]) -> Self:
        """Return the cap less the exact sum, rounded down; nothing if that is negative."""
        terms = [self.epsilon, *(-loss.epsilon for loss in losses)]
        rest = math.fsum(terms)
        if math.isinf(rest):
            return self if rest > 0 else type(self)(0.0)
        if math.fsum((*terms, -rest)) < 0:  # fsum is correctly rounded: its sign is exact
            rest = math.nextafter(rest, -math.inf)
        return type(self)(max(0.0, rest))

    @property
    def bounded(self) -> bool:
        """Whether ε is finite."""
        return math.isfinite(self.epsilon)

    def text(self, *, rounding: Rounding = "up") -> str:
        """Return ε in four digits."""
        return up(self.epsilon) if rounding == "up" else down(self.epsilon)

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


KINDS: dict[str, type[PrivacyLoss]] = {PureLoss.kind: PureLoss}


def loss_from_json(text: str) -> PrivacyLoss:
    """Read what :meth:`PrivacyLoss.to_json` wrote.

    Examples
    --------
    >>> loss_from_json(PureLoss(0.1).to_json())
    PureLoss(epsilon=0.1)
    """
    try:
        plain = json.loads(text)
        return KINDS[plain.pop("kind")].from_dict(plain)
    except (AttributeError, KeyError, OverflowError, RecursionError, TypeError, ValueError):
        raise ValueError(f"not a privacy loss of a kind known here ({', '.join(KINDS)}): {text!r}") from None
