"""What an experiment is: the rows it runs on, the grid of targets and trials, and a seed for each trial."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from experiments.datasets import Dataset
from experiments.methods import Method, methods_for
from expost import __version__
from expost.solve.losses import LogisticLoss, Loss, SquaredLoss
from expost.table.rows import Rows

SIMULATION = "Simulation with seeded noise on data that may be looked at: it protects nobody."

PAPER_ALPHAS = tuple(round(0.005 * k, 3) for k in range(1, 41))
QUICK_ALPHAS = tuple(round(0.025 * k, 3) for k in range(1, 9))


def loss_of(kind: str) -> Loss:
    """Return what a task minimises: the squared loss for regression, the logistic loss for classification."""
    return SquaredLoss() if kind == "regression" else LogisticLoss()


@dataclass(frozen=True, eq=False, repr=False)
class Task:
    """Rows in fixed point as plain arrays, which may travel to worker processes, and what to say about them.

    :class:`~expost.table.rows.Rows` refuse to be pickled because rows are private. Here they are not: whoever starts
    an experiment states that the data may be looked at.
    """

    name: str
    kind: Literal["regression", "classification"]
    x: NDArray[np.int32]
    y: NDArray[np.int32]
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, dataset: Dataset) -> Task:
        """Return the task of one of the paper's data sets."""
        rows = dataset.rows()
        return cls(dataset.name, dataset.task, rows.x, rows.y, dataset.notes)

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.x.shape[0])

    @property
    def p(self) -> int:
        """Number of columns."""
        return int(self.x.shape[1])

    @property
    def loss(self) -> Loss:
        """What is minimised."""
        return loss_of(self.kind)

    def rows(self) -> Rows:
        """Return the rows as the library takes them."""
        return Rows(self.x, self.y)

    def fingerprint(self) -> str:
        """Return a hash of the rows, so that a run is never resumed on others."""
        digest = hashlib.sha256(f"{self.x.shape}".encode())
        digest.update(np.ascontiguousarray(self.x).tobytes())
        digest.update(np.ascontiguousarray(self.y).tobytes())
        return digest.hexdigest()[:16]

    def __repr__(self) -> str:
        return f"Task({self.name!r}, n={self.n}, p={self.p})"


@dataclass(frozen=True)
class Job:
    """One trial of one method at one target."""

    method: Method
    alpha: float
    trial: int

    @property
    def key(self) -> tuple[str, float, int]:
        """What identifies its row."""
        return (self.method.name, self.alpha, self.trial)


@dataclass(frozen=True)
class Plan:
    """The grid of an experiment; the defaults are the paper's (theory A8).

    Examples
    --------
    >>> plan = Plan(methods_for("classification"), trials=40)
    >>> len(plan.alphas), sum(1 for job in plan.jobs())
    (40, 10440)
    """

    methods: tuple[Method, ...]
    trials: int
    alphas: tuple[float, ...] = PAPER_ALPHAS
    regularization: float = 0.005
    failure_probability: float = 0.1
    n_levels: int = 1000
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.alphas or not all(0 < alpha < np.inf for alpha in self.alphas):
            raise ValueError("the targets must be positive numbers, and there must be one at least")
        if len(set(self.alphas)) != len(self.alphas):
            raise ValueError("each target must be given only once")
        if self.trials < 1:
            raise ValueError(f"the number of trials must be at least 1, got {self.trials}")
        if self.n_levels < 1:
            raise ValueError(f"the number of levels must be at least 1, got {self.n_levels}")

    def jobs(self) -> Iterator[Job]:
        """Yield all trials, those of one target together: they share tables that take a while to make."""
        for alpha in self.alphas:
            for method in self.methods:
                for trial in range(method.trials(self.trials)):
                    yield Job(method, alpha, trial)

    def seed_of(self, task: str, job: Job) -> int:
        """Return the seed of a trial: its own, whatever else is in the grid, and the same on every machine.

        48 bits, which a spreadsheet still reads exactly. ``SeededSource(seed)`` is the trial's noise.
        """
        text = f"{self.seed}|{task}|{job.method.name}|{job.alpha!r}|{job.trial}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big")

    def identity(self, task: Task) -> dict[str, Any]:
        """Return what two runs must agree on for one to resume the other; all but a grid or methods that grow."""
        return {
            "simulation": SIMULATION,
            "version": __version__,
            "dataset": task.name,
            "task": task.kind,
            "n": task.n,
            "p": task.p,
            "rows": task.fingerprint(),
            "methods": [method.name for method in self.methods],
            "regularization": self.regularization,
            "failure_probability": self.failure_probability,
            "n_levels": self.n_levels,
            "seed": self.seed,
        }


def paper_plan(kind: str, *, quick: bool = False, seed: int = 0) -> Plan:
    """Return the paper's grid for a task, or a small one that shows the same in less than a minute."""
    methods = methods_for(kind)
    if quick:
        return Plan(methods, 3, QUICK_ALPHAS, seed=seed)
    return Plan(methods, 80 if kind == "regression" else 40, seed=seed)
