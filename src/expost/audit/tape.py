"""What a run lets out, written down, and let out again on the neighbour: a tape, and the laws of single draws."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost.noise.source import exactly


class Differs(Exception):
    """On the neighbour something else was let out, or in another order, though all that was released is the same."""


@dataclass
class Step:
    """One thing that came out.

    Attributes
    ----------
    kind, public
        What it is, and what is public about how it is drawn.
    output
        What came out.
    held
        What its law says of it on the data set that it came from; private.
    """

    kind: str
    public: Any
    output: Any = None
    held: Any = None


@dataclass
class Tape:
    """What a run let out; and on replay, how much likelier that was.

    Attributes
    ----------
    steps
        What came out, in order.
    replaying
        Whether that is to come out again.
    pure, gaussian
        The log ratio of probabilities, data set recorded over data set replayed: of steps with Gaussian noise, whose
        losses have no bound, and of all others.
    moved
        Σ‖v − v′‖²/(2σ²) over all steps with Gaussian noise: the ρ that these neighbours have.
    sides
        Who is held out on replay, if not those who were.
    kept, keeping
        The outputs of paths whose levels were kept to be looked at later; and while they are, what they are added to.
    beside
        In which a solver that replays do not need runs all the same, for what else it might show; if anybody looks.
    """

    steps: list[Step] = field(default_factory=list)
    replaying: bool = False
    place: int = 0
    pure: float = 0.0
    gaussian: float = 0.0
    moved: float = 0.0
    sides: NDArray[np.bool_] | None = None
    paths: list[tuple[Step, Any]] = field(default_factory=list)
    finishing: list[Callable[[], None]] = field(default_factory=list)
    kept: list[dict[str, Any]] = field(default_factory=list)
    keeping: list[dict[str, Any]] | None = None
    differs: str = ""
    beside: Callable[[], AbstractContextManager[None]] | None = None

    @property
    def loss(self) -> float:
        """The loss of the whole transcript."""
        return self.pure + self.gaussian

    def add(self, loss: float, moved: float | None = None) -> None:
        """Add what a step lets out; one with Gaussian noise, how far its values are apart as well."""
        if moved is None:
            self.pure += loss
        else:
            self.gaussian, self.moved = self.gaussian + loss, self.moved + moved

    def look(self, output: dict[str, Any], level: int) -> None:
        """Note that a level of a path was looked at: all before it tell nothing more."""
        if self.keeping is not None:
            if not any(output is other for other in self.keeping):
                self.keeping.append(output)
            return
        name = "again" if self.replaying else "last"
        output[name] = level if output[name] is None else max(level, output[name])

    def stray(self, what: str) -> Differs:
        """Return the exception for something that differs, which is noted: whoever catches it does not hide it."""
        self.differs = self.differs or what
        return Differs(what)

    def next(self, kind: str, public: Any) -> Step:
        """Return a new step; on replay the next one there was, which must be of that kind."""
        if not self.replaying:
            self.steps.append(Step(kind, public))
            return self.steps[-1]
        if self.place == len(self.steps):
            raise self.stray(f"a further {kind}")
        step = self.steps[self.place]
        self.place += 1
        if step.kind != kind:
            raise self.stray(f"a {kind} in the place of a {step.kind}")
        if step.public != public:
            raise self.stray(f"a {kind} drawn in another way")
        return step

    def rewind(self) -> None:
        """Go back to the beginning, to replay, once or again."""
        self.replaying, self.place, self.differs = True, 0, ""
        self.pure = self.gaussian = self.moved = 0.0
        self.paths, self.finishing, self.kept = [], [], []
        for step in self.steps:
            if isinstance(step.output, dict):
                step.output["again"] = None

    def finish(self) -> None:
        """Add up what paths have shown, once it is known how far they were looked at."""
        if self.place < len(self.steps):
            raise self.stray(f"no {self.steps[self.place].kind}")
        for finishing in self.finishing:
            finishing()
        for step, private in self.paths:
            last, values = step.output["last"], step.output["values"]
            if last is None:
                continue
            if step.output["again"] != last:
                raise self.stray("a path looked at to another level")
            level, sensitivity = step.public[0][last], step.public[1]
            apart = length(values[last], private, step.kind) - length(values[last], step.held, step.kind)
            self.pure += float(exactly(level) / exactly(sensitivity) * exactly(apart))


def length(released: Any, private: Any, kind: str) -> Any:
    """Return how far a released value is from a private one, in the norm of its noise."""
    if kind == "spherical path":
        return float(np.linalg.norm(released - private))
    return sum(abs(int(a) - int(b)) for a, b in zip(released, private, strict=True))


class Draws:
    """A sampler that notes what it has drawn; on replay it draws what is needed."""

    def __init__(self, sampler: Callable[..., Any], gaussian: bool) -> None:
        self.sampler, self.gaussian = sampler, gaussian
        self.made: list[tuple[Any, NDArray[Any]]] = []
        self.wanted: list[int] | None = None

    def __call__(self, *given: Any, random_state: Any = None) -> NDArray[Any]:
        """Draw."""
        scale = given[:-1]
        if self.wanted is not None:
            self.made.append((scale, np.array(self.wanted, dtype=object)))
            return self.made[-1][1]
        self.made.append((scale, self.sampler(*given, random_state=random_state)))
        return self.made[-1][1]

    def take(self) -> tuple[Any, NDArray[Any]]:
        """Return the last draw and its scale."""
        return self.made.pop()


def log_law(scale: Any, noise: NDArray[Any]) -> Fraction:
    """Return the log of a discrete Laplace or Gaussian law at integers, but for a constant."""
    if len(scale) == 2:
        return -exactly(scale[0]) / int(scale[1]) * sum(abs(int(k)) for k in noise)
    return -sum(int(k) ** 2 for k in noise) / (2 * exactly(scale[0]) ** 2)


def gaussian_step(tape: Tape, sigma: float, released: list[int], here: list[int], there: list[int]) -> None:
    """Add what integers with Gaussian noise show, and how far they are apart."""
    noise = [np.array([a - b for a, b in zip(released, side, strict=True)], dtype=object) for side in (here, there)]
    loss = log_law((sigma,), noise[0]) - log_law((sigma,), noise[1])
    tape.add(float(loss), float(-log_law((sigma,), noise[0] - noise[1])))
