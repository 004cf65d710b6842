"""A privacy loss as a value: it adds, it is compared with a cap, and it is written down without rounding.

A ledger keeps losses and knows nothing else about them, so that a loss of another kind (an ε at a δ, a Rényi curve on a
grid of orders) is a class here with an entry in ``KINDS``. What the ledger's theorem asks of a kind:

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
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

from expost.privacy.composition import add_losses
from expost.privacy.words import down, up

Rounding = Literal["up", "down"]


class PrivacyLoss(ABC):
    """What a release costs, or may cost, as the ledger sees it."""

    kind: ClassVar[str]

    @classmethod
    @abstractmethod
    def total(cls, losses: Iterable[Self]) -> Self:
        """Return a loss not below that of everything together."""

    @abstractmethod
    def within(self, cap: Self) -> bool:
        """Return whether this loss keeps what the cap promises."""

    @abstractmethod
    def left(self, losses: Iterable[Self]) -> Self:
        """Return the largest loss that, together with the losses given, is within this cap."""

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
    def total(cls, losses: Iterable[Self]) -> Self:
        """Return the sum, rounded up once."""
        return cls(add_losses(*(loss.epsilon for loss in losses)))

    def within(self, cap: Self) -> bool:
        """Return whether ε is at most the cap's. A sum rounded up is so if and only if the exact sum is."""
        return self.epsilon <= cap.epsilon

    def left(self, losses: Iterable[Self]) -> Self:
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
    except (AttributeError, KeyError, TypeError, ValueError):
        raise ValueError(f"not a privacy loss of a kind known here ({', '.join(KINDS)}): {text!r}") from None
