"""One budget for several runs: a filter that they share (theory C3 ii).

*Theorem.* Everything that is booked inside it, by whatever runs, in whatever order, later ones chosen by earlier ones,
is one long run whose steps are taken only while the sum of their Rényi curves comes to at most ε at δ. So all of it
together is (ε, δ)-private (`expost.account.renyi`, the filter): what a run did not spend is left for the next, and
nothing has to be split beforehand. A run that does not come to its end may have stopped for private reasons; the whole
budget counts as spent then. So a run takes the budget before it draws anything (`Budget.begin`) and gives it back when
it ends; meanwhile no other may begin. All runs are about one unit: a loss for one row says little about a person with
several. Searches that book no curve refuse to begin inside a budget.
"""

from __future__ import annotations

from contextvars import ContextVar, Token
from threading import Lock
from types import TracebackType
from typing import Self

from expost import validation
from expost.account.renyi import NOTHING, Curve, check_delta, room
from expost.account.unit import ROW, Unit
from expost.shown import down, up

_CURRENT: ContextVar[Budget | None] = ContextVar("budget", default=None)


class Budget:
    """What several runs may spend together; made by :func:`budget`.

    Attributes
    ----------
    epsilon, delta
        What all of it comes to at most.
    spent : Curve
        What was booked so far.
    unit : Unit or None
        What neighbours differ in, settled by the first run.
    """

    def __init__(self, epsilon: float, delta: float) -> None:
        self.epsilon, self.delta = validation.positive("epsilon", epsilon), validation.delta(delta)
        check_delta(self.delta, positive=True)
        self.spent: Curve = NOTHING
        self.unit: Unit | None = None
        self._taken_by: object | None = None
        self._lock = Lock()
        self._tokens: list[Token[Budget | None]] = []

    def __repr__(self) -> str:
        return f"Budget(epsilon={down(self.epsilon)}, delta={self.delta:g}, spent={up(self.epsilon_spent)})"

    def __enter__(self) -> Self:
        if _CURRENT.get() is not None:
            raise ValueError("budgets cannot be nested: runs inside are counted by one")
        self._tokens.append(_CURRENT.set(self))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _CURRENT.reset(self._tokens.pop())

    @property
    def epsilon_spent(self) -> float:
        """What was spent so far, at δ; all of it once a run did not come to its end."""
        return self.epsilon if self.closed else self.spent.epsilon(self.delta)

    @property
    def rho_left(self) -> float:
        """The largest ρ of Gaussian noise that may still be spent."""
        return 0.0 if self.closed else room(self.spent, self.epsilon, self.delta)

    @property
    def closed(self) -> bool:
        """Whether a run inside it has begun and not come to its end."""
        return self._taken_by is not None

    def require_open(self, unit: Unit, run: object | None = None) -> None:
        """Say why a run about that unit cannot begin, if so; nothing is spent."""
        if self._taken_by is not None and self._taken_by is not run:
            raise ValueError(
                "a run inside this budget did not come to its end, so all of it counts as spent; begin with a new one"
            )
        if self.unit is not None and self.unit != unit:
            raise ValueError(
                f"this budget is about one {self.unit.noun} replaced, this run about one {unit.noun}; a loss for one "
                f"is not a loss for the other, so begin with a new budget"
            )

    def begin(self, run: object, unit: Unit) -> None:
        """Take it for a run that is about to draw; until the run ends, all of it counts as spent."""
        with self._lock:
            self.require_open(unit, run)
            self._taken_by, self.unit = run, unit

    def end(self, run: object) -> None:
        """Give it back."""
        if self._taken_by is run:
            self._taken_by = None

    def fits(self, step: Curve, run: object) -> bool:
        """Whether a run may take a step."""
        free = self._taken_by is None or self._taken_by is run
        return free and (self.spent + step).fits(self.epsilon, self.delta)


def budget(epsilon: float, delta: float = 1e-6) -> Budget:
    """Return a budget that the fits inside a ``with`` block share.

    Parameters
    ----------
    epsilon, delta
        Everything released inside is (ε, δ)-private together. The fits inside have to state the same ``delta``;
        ``max_epsilon`` still bounds each by itself. Fits that run in other threads or processes are not inside. A
        :func:`~expost.gradient_path` is asked at every stage, wherever it began: one begun before brings all that it
        cost so far, and one begun inside stays counted when it goes on outside.

    Examples
    --------
    >>> import numpy as np
    >>> from expost import AccuracyFirstModel, ErrorRate, budget
    >>> hours = np.random.default_rng(0).uniform(0, 80, 20_000)
    >>> table = {"hours": hours, "late": np.where(hours > 40, "yes", "no")}
    >>> schema = {"target": "late", "classes": ["no", "yes"], "columns": {"hours": {"bounds": [0, 80]}}}
    >>> with budget(epsilon=1.0, delta=1e-6) as shared:
    ...     for seed in (1, 2):
    ...         model = AccuracyFirstModel(schema, ErrorRate(0.2), delta=1e-6, random_state=seed).fit(table)
    >>> shared.epsilon_spent < 1.0, model.release_.parameters["budget"]["epsilon"]
    (True, 1.0)
    """
    return Budget(epsilon, delta)


def current(delta: float, unit: Unit = ROW) -> Budget | None:
    """Return the budget that a run at δ is counted by, if any, or say why it cannot begin; nothing is spent."""
    found = _CURRENT.get()
    if found is None:
        return None
    if delta != found.delta:
        raise ValueError(
            f"inside expost.budget(...) runs need its delta: pass delta={found.delta:g}, got {delta:g}"
            f"{' (pure privacy)' if not delta else ''}"
        )
    found.require_open(unit)
    return found
