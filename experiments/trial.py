"""One trial: a search with its own seed, and the truth about what it found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from experiments.methods import Method
from experiments.oracle import Generator, oracle
from experiments.plan import Job, Plan, Task
from experiments.table import Row
from expost.exceptions import AccuracyNotReached
from expost.goals import ExcessRisk
from expost.mechanisms import Mechanism
from expost.noise.source import SeededSource
from expost.passes.sums import Sums, sums_over
from expost.search import run_search
from expost.solve.problem import Problem
from expost.validation import PAPER_CALIBRATIONS


class Bench:
    """Everything trials share: rows, sums, and one minimisation for each way of making hypotheses."""

    def __init__(self, task: Task, plan: Plan) -> None:
        self._task, self._plan = task, plan
        self._rows = task.rows()
        self._sums: Sums | None = None
        self._generators: dict[tuple[Problem, Mechanism], Generator] = {}
        self._null: dict[int, float] = {}

    def problem(self, calibration: str) -> Problem:
        """Return the public side of a method's searches."""
        return Problem.of(
            self._task.loss,
            n=self._rows.n,
            p=self._rows.p,
            regularization=self._plan.regularization,
            paper_constants=calibration in PAPER_CALIBRATIONS,
        )

    def generator(self, method: Method) -> Generator:
        """Return the hypotheses a method searches, made once for all targets."""
        problem, mechanism = self.problem(method.calibration), method.mechanism
        key = (problem, mechanism)
        if key not in self._generators:
            if mechanism.name == "covariance" and self._sums is None:
                self._sums = sums_over(self._rows)
            rows = self._sums if mechanism.name == "covariance" and self._sums is not None else self._rows
            with threadpool_limits(1, "blas"):  # the order of additions, hence the last bit, depends on threads
                made = mechanism.on(rows, problem)
            assert isinstance(made, Generator)
            self._generators[key] = made
        return self._generators[key]

    def optimum(self, method: Method) -> NDArray[np.float64]:
        """Return θ*, which the figures show the norm of."""
        return self.generator(method).risk.optimum

    def null_excess_risk(self, method: Method) -> float:
        """Return how much worse than the best model θ = 0 is."""
        generator = self.generator(method)
        if id(generator) not in self._null:
            self._null[id(generator)] = float(generator.risk.excess(np.zeros(self._rows.p)))
        return self._null[id(generator)]

    def row(self, job: Job) -> Row:
        """Run one trial."""
        method, plan = job.method, self._plan
        generator = self.generator(method)
        seed = plan.seed_of(self._task.name, job)
        if method.kind == "oracle":
            return self._oracle(job, seed)
        searched = method.kind == "reduction" and method.calibration != "tight"
        try:
            release = run_search(
                generator,
                generator.problem,
                ExcessRisk(job.alpha),
                method=method.run_method,
                failure_probability=plan.failure_probability,
                calibration=method.calibration,
                n_levels=plan.n_levels if searched else None,
                random_state=SeededSource(seed),
            )
        except AccuracyNotReached as refusal:
            release = refusal.release
        excess = norm = None
        if release.hypothesis is not None:
            theta = np.asarray(release.hypothesis, dtype=np.float64)
            excess, norm = float(generator.risk.excess(theta)), float(np.linalg.norm(theta))
        return self._row(
            job,
            seed,
            status=release.status,
            epsilon=release.epsilon,
            epsilon_generation=release.epsilon_generation,
            epsilon_test=release.epsilon_test,
            level=release.level,
            n_levels=release.n_levels,
            excess_risk=excess,
            norm=norm,
        )

    def _oracle(self, job: Job, seed: int) -> Row:
        """Return the oracle's row: its ε, and as excess risk the quantile that it holds at α."""
        method, generator = job.method, self.generator(job.method)
        found = oracle(generator, method.mechanism, job.alpha, self._plan.failure_probability, seed)
        return self._row(
            job,
            seed,
            status="released",
            epsilon=found.epsilon,
            epsilon_generation=found.epsilon,
            epsilon_test=0.0,
            level=0,
            n_levels=1,
            excess_risk=found.quantile,
            norm=found.norm,
        )

    def _row(self, job: Job, seed: int, **found: Any) -> Row:
        return Row(
            dataset=self._task.name,
            method=job.method.name,
            calibration=job.method.calibration,
            perturbation=job.method.perturbation,
            alpha=job.alpha,
            trial=job.trial,
            seed=seed,
            null_excess_risk=self.null_excess_risk(job.method),
            **found,
        )

    def work(self, jobs: Iterable[Job]) -> Iterator[Row]:
        """Run trials one after the other, each to the same bits whoever runs it."""
        with threadpool_limits(1, "blas"):
            for job in jobs:
                yield self.row(job)
