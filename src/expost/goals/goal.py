"""What a goal is: what the caller asks for, what is promised about it, and in whose units.

A new goal is one file here and an entry in ``goals/__init__.py`` with its flag, which the command line reads there.

How far a hypothesis misses a goal, as one number: what a chain of releases is tested and steered by.

*Released*: noisy shortfalls. *Neighbours*: one row replaced. A goal says how far one row can move its shortfall.
"""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from expost import validation
from expost.goals import FLAGS
from expost.goals.flags import Flag
from expost.goals.measure import Judge
from expost.release.release import Promise
from expost.solve.losses import Loss
from expost.solve.problem import Problem

if TYPE_CHECKING:
    from expost.goals.measure import Measure
    from expost.search.request import Plan, Request


#: For mean squares, of which some tables need far less than others.
LOWEST = 1.0 / 3.0
_DEAR = 0.25  # an ε that is a pity to spend where less might do


def lowered(epsilon: float, lowest: float) -> float:
    """Return the part of a first level to start with that would cost ε: as much of it as is not dear; public.

    Where a whole level is cheap, starting lower would be a level more to pay for; where it is not, it is the least that
    every table pays, however easy its goal.

    Examples
    --------
    >>> lowered(0.1, 0.5), lowered(0.4, 0.5), lowered(3.0, 0.5)
    (1.0, 0.625, 0.5)
    """
    return min(1.0, max(lowest, _DEAR / epsilon)) if epsilon > 0.0 else 1.0


@dataclass(frozen=True)
class ChainSettings:
    """What a goal asks of a chain of releases; public, and any values are sound.

    Attributes
    ----------
    loss
        What is minimised for it.
    reach
        R, a guess of how far apart models are, in units of the table; λ = 1/(xR) at level x.
    start
        x of the first level: the inverse of the typical noise on a mean gradient.
    test_part
        ε of a test, as a part of the ε of the model tested.
    steer
        How large a shortfall is large; settles how far the next level goes.
    lowest
        A first level that would be dear starts with more noise: down to this part of ``start``.
    """

    loss: Loss
    reach: float
    start: float
    test_part: float
    steer: float
    lowest: float = 1.0


RISK_CHARGED = ("excess risk: rounded to a public grid, floating-point error bounded and charged to its sensitivity",)
ABOUT_RISK = "regularised empirical risk of the clipped, rounded rows"


class _OwnFlag:
    """The flag of a goal's class, which stands in the table that is read before any goal is imported."""

    def __get__(self, goal: Goal | None, kind: type[Goal]) -> Flag:
        return FLAGS[kind.__name__]


class Goal(ABC):
    """What the caller asks for."""

    #: What releases call it; None for excess risk, the paper's own target.
    name: ClassVar[str | None]
    flag: ClassVar[_OwnFlag] = _OwnFlag()
    #: Methods that can meet it.
    methods: ClassVar[tuple[str, ...]]

    def settle(self, name: str, end: float = 1.0, *, called: str | None = None) -> None:
        """Check that a field lies strictly between 0 and ``end``, and make it a float of full precision.

        ``called`` is what callers state it by, where that is not the field's name.
        """
        # in single precision limits would be off by more than their slack
        object.__setattr__(self, name, validation.share(called or name, getattr(self, name), end=end))

    def check(self, loss: Loss, *, method: str, calibration: str, on_failure: str) -> None:
        """Raise a helpful error unless the goal, the loss and the method go together."""
        self.require(loss)
        if method not in self.methods:
            raise ValueError(
                f"goal={type(self).__name__}(...) cannot be met by method={method!r}; pass one of {list(self.methods)}"
            )

    def require(self, loss: Loss) -> None:
        """Raise a helpful error unless the goal is one for this loss."""
        return

    def require_rows(self, generator: Any) -> None:
        """Raise, before anything is drawn, unless what was made of the rows is enough for it."""
        return

    @classmethod
    def stated(cls, value: float, margin: float) -> Goal:
        """Return the goal that a flag states."""
        return cls(value)  # type: ignore[call-arg]  # every goal's first argument is its number

    def in_scaled_units(self, square_unit: float) -> Goal:
        """Return the goal for rows in scaled units; 1 in scaled squares is ``square_unit`` in the caller's."""
        return self

    def in_caller_units(self, promise: Promise, square_unit: float) -> Promise:
        """Return the promise with its numbers in the caller's units beside."""
        if promise.excess_risk is None:
            return promise
        return dataclasses.replace(promise, excess_risk_caller_units=promise.excess_risk * square_unit)

    @abstractmethod
    def promise(self, problem: Problem, reduced: Promise | None = None) -> Promise:
        """Return what is promised; ``reduced`` is the promise it was reduced to along the way, if it was."""

    @abstractmethod
    def plan(self, request: Request) -> Plan:
        """Settle how it is searched for, or say why it cannot be met; nothing is looked at."""

    def exact(self) -> tuple[str, ...]:
        """Say what about its test is exact."""
        return ()

    def charged(self, by_method: tuple[str, ...]) -> tuple[str, ...]:
        """Say what is floating point and was charged, given what the method says about gradients."""
        return (*RISK_CHARGED, *by_method)


class TestedGoal(Goal):
    """A goal that is tested as it stands, by AboveThreshold on a measure of its own (theory B9 with A3, B5).

    *Released*: hypotheses up to the first whose measure passes a noisy limit. *Theorem*: gradual release for the
    hypotheses, `expost.search.above_threshold` for the test; sensitivities stand with the measures.
    """

    __test__ = False  # not a test class, whatever pytest thinks of its name

    at_most: float
    margin: float
    #: What its number is at most, whatever the model.
    largest: ClassVar[float] = math.inf
    #: Whether it has no measure for a gradual release, only a shortfall for a chain of releases.
    chained_only: ClassVar[bool] = False
    methods: ClassVar[tuple[str, ...]] = ("auto", "above_threshold")

    @classmethod
    def stated(cls, value: float, margin: float) -> Goal:
        """Return the goal that a flag states, with the margin stated beside it."""
        return cls(value, margin)  # type: ignore[call-arg]

    def check(self, loss: Loss, *, method: str, calibration: str, on_failure: str) -> None:
        """Raise a helpful error unless the goal, the loss and the method go together."""
        super().check(loss, method=method, calibration=calibration, on_failure=on_failure)
        name = type(self).__name__
        if calibration != "tight":
            raise ValueError(f"goal={name}(...) is tested with calibration='tight' only, got {calibration!r}")
        if on_failure != "refuse":
            raise ValueError(f"on_failure={on_failure!r} cannot keep {name}: the optimum of the risk need not meet it")

    def plan(self, request: Request) -> Plan:
        """Test the hypotheses of a gradual release."""
        return request.tested(self)

    @abstractmethod
    def typical(self, problem: Problem) -> float:
        """Return a typical sensitivity of the measure, which the margin is stated for; any value is sound."""

    @abstractmethod
    def measure(self, generator: Any) -> Measure:
        """Return what is tested; private."""

    @abstractmethod
    def chain(self) -> ChainSettings:
        """Return what it asks of a chain of releases (`expost.mechanisms.objective.chain`)."""

    @abstractmethod
    def shortfall(self, objective: Judge, theta: Any) -> float:
        """Return how far θ misses the goal, negative if it meets it; private."""

    @abstractmethod
    def shortfall_sensitivity(self, n: int) -> float:
        """Return how far one row can move the shortfall of a fixed hypothesis."""

    @abstractmethod
    def shortfall_error(self, n: int, p: int, theta: Any) -> float:
        """Return a bound on the error of :meth:`shortfall`; public."""

    def shown(self, bound: float) -> dict[str, float]:
        """Return what a bound on the shortfall of some model shows about the goal's own number, as a release says it.

        Nothing where the number is never larger. It is in scaled units, as ``promise.at_most`` is.
        """
        number = math.nextafter(self.at_most + bound, math.inf)
        return {"shown": number} if number < self.largest else {}

    def hypothesis(self, generator: Any) -> Callable[[Any], Any]:
        """Return how revealed values become the hypotheses that are tested."""
        made: Callable[[Any], Any] = generator.hypothesis
        return made

    @property
    def as_risk(self) -> float:
        """Roughly the excess risk that a hypothesis may have and still meet the goal; settles how far levels go."""
        return self.at_most

    def charged(self, by_method: tuple[str, ...]) -> tuple[str, ...]:
        """Say that no risk and no gradient is looked at."""
        return ()
