"""The account of a search under approximate privacy: every step books a curve (theory C3).

The curves add, whatever steps are taken and whenever the search ends; `expost.privacy.renyi` says what the sum means
at δ. Curves are booked for the unit (where one person has k rows, Gaussian noise costs k² times as much as for one
row). Pure losses are booked for one row, as on any account; they are charged for the unit and count at every order.

*A clock.* A search of Gaussian and pure steps alone settles beforehand at which sums of ρ it will probably end
(`expost.privacy.clock`); then it is that which says what the sum comes to at δ, and what fits: it is sharper.

*One curve for the worst case.* Where a ledger holds the worst case (``one_curve``), a step is taken only if the sum
with it is, at every order, at most one curve (`worst`): for a search that books Gaussian curves that of Gaussian noise
which comes to the worst case at δ, which is the budget itself; for one with pure losses its ε at every order. It makes
the whole search one step of that curve, wherever it ends: what the ledger holds, and what an interruption is charged.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from expost.privacy.account import Account
from expost.privacy.clock import Clock
from expost.privacy.release import Release
from expost.privacy.renyi import NOTHING, ORDERS, Curve, room
from expost.privacy.shared import Budget

Part = Literal["probe", "test", "generation"]
_FULL = 1.0 - 1e-9  # a release adds up its parts, rounded up
_ROOM = 1.0 - 1e-12  # sums are rounded up, in whatever order they are added


@lru_cache(maxsize=64)
def _worst(limit: float, delta: float) -> Curve:
    return Curve.gaussian(room(NOTHING, limit, delta))


@dataclass
class RenyiAccount(Account):
    """An account that ends at a δ.

    Parameters
    ----------
    delta
        δ, settled beforehand.
    shared
        The budget that other runs count on as well, if any.
    one_curve
        Which curve the sum stays within at every order, as a ledger needs it: Gaussian, or that of pure losses.
    clock
        Settled by a search before its first step, if it has one.

    Examples
    --------
    >>> account = RenyiAccount("by hand", worst_case=1.0, secure=False, delta=1e-6)
    >>> account.book("generation", Curve.gaussian(0.001))
    >>> release = account.released([1.0])
    >>> round(release.epsilon, 3), release.delta
    (0.251, 1e-06)
    >>> account.fits(Curve.gaussian(0.01)), account.fits(Curve.gaussian(0.1))
    (True, False)
    """

    delta: float = 0.0
    shared: Budget | None = None
    one_curve: Literal["gaussian", "pure"] | None = None
    clock: Clock | None = None

    def __post_init__(self) -> None:
        self.curves: dict[Part, Curve] = dict.fromkeys(("probe", "test", "generation"), NOTHING)
        self._counted = NOTHING  # pure losses that the shared budget knows of
        self._before = NOTHING  # curves that it has yet to count

    def book(self, part: Part, curve: Curve) -> None:
        """Add what a step costs, before it is taken."""
        self.begin()
        self.curves[part] = self.curves[part] + curve
        if self.shared is not None:
            self.shared.spent, self._before = self.shared.spent + self._before + curve, NOTHING

    def count_on(self, shared: Budget | None) -> None:
        """Count on a budget from the next step on, with all steps before it: what is released inside costs them too.

        Once counted by a budget, an account is for good, wherever it goes on; another budget could not tell.
        """
        if shared is None or shared is self.shared:
            return
        if self.shared is not None:
            raise ValueError(
                "this run is counted by another budget, so it cannot go on inside this one; begin a new one here. "
                "Nothing was spent"
            )
        self.shared, self._before = shared, sum(self.curves.values(), NOTHING)

    def begin(self) -> None:
        """Take the shared budget, before anything is drawn."""
        if self.shared is not None:
            self.shared.begin(self, self.unit)

    def _parts(self) -> dict[Part, Curve]:
        pure: dict[Part, float] = {"probe": self.probe, "test": self.test, "generation": self.generation}
        return {part: curve + Curve.ex_post(self.unit.charge(pure[part])) for part, curve in self.curves.items()}

    @property
    def _pure(self) -> Curve:
        losses = (self.unit.charge(loss) for loss in (self.probe, self.test, self.generation))
        return sum((Curve.ex_post(loss) for loss in losses), NOTHING)

    @property
    def limit(self) -> float:
        """What no outcome may exceed, for the unit."""
        return self.unit.worst_case(self.worst_case)

    @property
    def curve(self) -> Curve:
        """Everything spent so far."""
        return sum(self._parts().values(), NOTHING)

    @property
    def total(self) -> float:
        """Everything spent so far, at δ."""
        return self._at_delta(self.curve)

    def _at_delta(self, curve: Curve) -> float:
        """Return what steps come to at δ: by the clock, if there is one."""
        if self.clock is None:
            return curve.epsilon(self.delta)
        assert curve.split is not None
        return self.clock.epsilon(*curve.split, self.delta)

    def after(self, generation: float = 0.0, test: float = 0.0) -> float:
        """Return what the total becomes once that much more is booked as pure losses."""
        more = self.unit.charge(generation), self.unit.charge(test)
        return self._at_delta(self.curve + Curve.ex_post(more[0]) + Curve.ex_post(more[1]))

    @property
    def worst(self) -> Curve:
        """The curve that the sum stays within at every order, if it is to stay within one."""
        return _worst(self.limit, self.delta) if self.one_curve != "pure" else Curve.ex_post(self.limit)

    def affords(self, loss: float) -> bool:
        """Whether a pure loss for one row, settled beforehand, may be booked."""
        return self.fits(Curve.pure(self.unit.charge(loss)))

    def look_first(self, loss: float) -> None:
        """Book a pure loss for one row that was settled beforehand: it costs less as a curve."""
        self.book("probe", Curve.pure(self.unit.charge(loss)))

    def fits(self, step: Curve) -> bool:
        """Whether a step may be taken: the sum with it is within the worst case, whatever its outcome (a filter)."""
        together = self.shared is None or self.shared.fits(self._before + self._pure + step, self)
        after = self.curve + step
        if self.one_curve and any(a > b * _ROOM for a, b in zip(after.losses, self.worst.losses, strict=True)):
            return False
        if self.clock is not None:
            return together and self._at_delta(after) <= self.limit * _FULL
        return together and after.fits(self.limit, self.delta)

    @property
    def room(self) -> float:
        """The largest ρ of Gaussian noise that may still be taken."""
        own = room(self.curve, self.limit, self.delta)
        if self.one_curve:
            left = zip(ORDERS, self.worst.losses, self.curve.losses, strict=True)
            below = min((worst * _ROOM - spent) / order for order, worst, spent in left)
            own = max(0.0, min(own, below * (1.0 - 1e-9)))
        if self.shared is None:
            return own
        if not self.shared.fits(NOTHING, self):
            return 0.0
        return min(own, room(self.shared.spent + self._before + self._pure, self.shared.epsilon, self.delta))

    def interrupted(self) -> Release:
        """Return what is charged if the search does not come to its end: the whole budget, at δ."""
        return self._part(
            "refused",
            [*self.reasons, self.INTERRUPTED],
            generation=self.limit,
            parameters={"interrupted": True},
            delta=self.delta,
            curve=self.worst.to_dict() if self.one_curve and math.isfinite(self.limit) else {},
        )

    def _release(self, status: Any, **details: Any) -> Release:
        parts, total = self._parts(), self.curve
        epsilon, place = self._at_delta(total), total.order(self.delta)
        # where pure losses alone bound the whole, their sum is it and nothing is converted
        pure = epsilon >= total.most
        shown = {part: curve.most if pure else curve.losses[place] for part, curve in parts.items()}
        part = sum(shown.values())
        if part > epsilon:  # a clock may state less than any one order does
            shown = {name: loss * (epsilon / part) * (1.0 - 1e-12) for name, loss in shown.items()}
        said = {**details.pop("parameters", {}), "rho_left": room(total, self.limit, self.delta)}
        if self.shared is not None:
            said["budget"] = self._settled(self.shared)
        return self._part(
            status,
            self.reasons,
            **shown,
            epsilon_conversion=0.0 if pure else max(0.0, epsilon - sum(shown.values())),
            delta=self.delta,
            curve={**total.to_dict(), **self._timed(total)},
            parameters=said,
            **details,
        )

    def _timed(self, total: Curve) -> dict[str, Any]:
        """Return what a reader needs to state it by the clock again."""
        if self.clock is None or total.split is None:
            return {}
        return {"times": self.clock.times, "rho": total.split[0], "pure": total.split[1]}

    def _settled(self, shared: Budget) -> dict[str, float]:
        """Count pure losses on the shared budget, open it for the next run, and say what is left of it."""
        if self._pure != self._counted:
            shared.spent, self._counted = shared.spent + self._pure, self._pure
        shared.end(self)
        return {"epsilon": shared.epsilon, "delta": shared.delta, "rho_left": shared.rho_left}
