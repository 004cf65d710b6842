"""What a goal is: what the caller asks for, what is promised about it, and in whose units.

A new goal is one file here and an entry in ``goals/__init__.py`` with its flag, which the command line reads there.
"""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from expost import validation
from expost.erm.losses import Loss
from expost.erm.measures import Judge
from expost.erm.problem import Problem
from expost.goals import FLAGS
from expost.goals.flags import Flag
from expost.goals.shortfall import ChainSettings
from expost.privacy.release import Promise

if TYPE_CHECKING:
    from expost.search.request import Plan, Request
    from expost.stopping.measure import Measure

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
    hypotheses, `expost.stopping.above_threshold` for the test; sensitivities stand with the measures.
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
        """Return what it asks of a chain of releases (`expost.search.chain`)."""

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
