"""What an excess risk costs by every way there is, and by `auto`, which chooses among them without looking.

    python benchmarks/excess_risk.py [--seeds 12] [--only REGEX]

Generated rows of ‖x‖₁ ≤ 1, dense (each column a p-th part) or sparse (one column at a time), targets that have nothing,
a little or most to do with them. The ways: noise on the *gradient* (objective perturbation, for ridge regression
through Huber's loss; nothing is asked before), on the second *moments* and on the *minimiser*, which ask about the null
model first. *Ratio*: what `auto` costs over the cheapest way of the task, found by looking. Means of seeded runs,
everything charged. Simulation: the noise is seeded and protects nobody.
"""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from expost import ExcessRisk, __version__
from expost.account.account import Account
from expost.mechanisms import Covariance, Output, mechanism_for
from expost.noise import SeededSource
from expost.passes.engine import watching
from expost.search import METHODS, Request
from expost.solve import LogisticLoss, Loss, Problem, SquaredLoss
from expost.table import Preparation
from expost.table.rows import Rows
from expost.table.shape import l1_ball

RESULT = Path(__file__).parent / "results" / "excess_risk.md"
GAMMA, FAIR = 0.1, 1.2
SHAPES = [(2, 20_000, False), (10, 50_000, False), (10, 50_000, True), (50, 100_000, False), (50, 100_000, True)]
SHAPES += [(300, 100_000, False)]
SIGNALS = {"none": 0.0, "weak": 0.3, "strong": 0.95}
ALPHAS, LAMBDAS = (0.05, 0.01, 0.002), (0.01, 0.001)


@dataclass(frozen=True)
class Task:
    """Rows of a kind, and what is asked of them."""

    loss: Loss
    p: int
    n: int
    sparse: bool
    signal: str
    lam: float

    @property
    def name(self) -> str:
        """What it is called."""
        kind = "ridge" if self.loss.name == "squared" else "logistic"
        return f"{kind} | {self.n:,} × {self.p} {'sparse' if self.sparse else 'dense'} | {self.signal} | {self.lam}"

    @property
    def problem(self) -> Problem:
        """What is minimised."""
        return Problem.of(self.loss, n=self.n, p=self.p, regularization=self.lam)

    def rows(self) -> Rows:
        """Make the rows."""
        rng, n, p, signal = np.random.default_rng([self.p, self.n]), self.n, self.p, SIGNALS[self.signal]
        slopes = rng.choice([-1.0, 1.0], p) * rng.uniform(0.5, 1, p)
        if self.sparse:
            x = np.zeros((n, p))
            x[np.arange(n), rng.integers(0, p, n)] = rng.uniform(0.5, 1, n)
        else:
            x = rng.uniform(-1, 1, (n, p)) / p
        score = x @ slopes
        y = signal * score / score.std() + math.sqrt(1 - signal**2) * rng.normal(size=n)
        labels = self.loss.labels == "binary"
        recipe = Preparation(None, 1.0, target=None if labels else (-1.0, 1.0), intercept_weight=0.0, n_columns=p)
        if labels:
            return recipe.prepare_classification(x, y > 0, (False, True))
        return recipe.prepare_regression(x, np.clip(y / 3, -1, 1))


class Counted:
    """Counts passes over the rows."""

    passes = 0

    def begin(self, rows: int) -> None:
        """Count one."""
        self.passes += 1

    def advance(self, rows: int) -> None:
        """Do nothing."""

    def end(self) -> None:
        """Do nothing."""

    def note(self, text: str) -> None:
        """Do nothing."""


def request(task: Task, alpha: float, mechanism: Any) -> Request:
    return Request(task.problem, ExcessRisk(alpha), METHODS["auto"], mechanism, GAMMA)


def chosen(task: Task) -> Any:
    """Return the mechanism that `auto` has, which settles what it does once it knows α."""
    return mechanism_for(None, task.problem, shape=l1_ball(task.p))


def by_gradient(task: Task, alpha: float) -> Any:
    """Return the plan of noise on the gradient alone, whatever is predicted."""
    asked = request(task, alpha, chosen(task))
    plan = asked.mechanism.tries(asked, alpha) if task.loss.name == "squared" else asked.plan()
    return replace(plan, null=None)


def ways(task: Task) -> dict[str, tuple[Any, Callable[[float], Any]]]:
    """Return the mechanism of every way and its plan for an α."""
    found: dict[str, tuple[Any, Callable[[float], Any]]] = {"auto": (chosen(task), lambda a: None)}
    found["gradient"] = (chosen(task), lambda alpha: by_gradient(task, alpha))
    if task.loss.name == "squared":
        found["moments"] = (Covariance(), lambda a: None)
    found["minimiser"] = (Output(), lambda a: None)
    return {name: (mechanism, _planned(task, mechanism, plan)) for name, (mechanism, plan) in found.items()}


def _planned(task: Task, mechanism: Any, plan: Callable[[float], Any]) -> Callable[[float], Any]:
    return lambda alpha: plan(alpha) or request(task, alpha, mechanism).plan()


def tasks(only: str) -> Iterator[Task]:
    for loss, shape, signal, lam in product((SquaredLoss(), LogisticLoss()), SHAPES, SIGNALS, LAMBDAS):
        task = Task(loss, *shape, signal, lam)
        if re.search(only, task.name):
            yield task


def spent(plan: Any, generator: Any, seed: int) -> float:
    account = Account("auto", plan.worst_case, False)
    return float(plan.search(generator, account, SeededSource([17, seed])).epsilon)


def measured(task: Task, seeds: int, names: set[str] | None = None) -> Iterator[tuple[float, dict[str, float], int]]:
    """Yield for every α what the ways cost in the mean, and how many passes `auto` takes at most."""
    rows = task.rows()
    settled = {name: each for name, each in ways(task).items() if names is None or name in names}
    for alpha in ALPHAS:
        costs, most = {}, 0
        for name, (mechanism, plan) in settled.items():
            planned, losses = plan(alpha), []
            for seed in range(seeds):
                with watching(count := Counted()):
                    if name == "auto" or not seed:
                        generator = mechanism.on(rows, task.problem)
                    losses.append(spent(planned, generator, seed))
                most = max(most, count.passes) if name == "auto" else most
            costs[name] = float(np.mean(losses))
        yield alpha, costs, most


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=12)
    parser.add_argument("--only", default="", help="tasks whose name matches")
    options = parser.parse_args()
    head = "| loss | rows | signal | λ | α | gradient | moments | minimiser | `auto` | ratio | passes |"
    lines, ratios = [head, "|---|---|---|---|---|---|---|---|---|---|---|"], []
    for task in tasks(options.only):
        for alpha, costs, passes in measured(task, options.seeds):
            auto = costs.pop("auto")
            ratios.append(auto / min(costs.values()))
            cells = " | ".join(
                f"{costs[way]:.3g}" if way in costs else "" for way in ("gradient", "moments", "minimiser")
            )
            lines.append(f"| {task.name} | {alpha} | {cells} | **{auto:.3g}** | {ratios[-1]:.2f} | {passes} |")
            print(lines[-1], flush=True)
    above = sum(ratio > FAIR for ratio in ratios)
    summary = (
        f"Over {len(ratios)} tasks `auto` costs {math.exp(float(np.mean(np.log(ratios)))):.2f} times the cheapest way "
        f"in the geometric mean and {max(ratios):.2f} times at worst; {above} are above {FAIR}."
    )
    print(summary)
    if options.only:
        return
    RESULT.write_text(
        "# What an excess risk costs\n\n`python benchmarks/excess_risk.py`\n\n"
        f"expost {__version__}; means of {options.seeds} seeded runs, γ = {GAMMA}, everything charged. {summary} The "
        "cheapest way is found by looking at what each costs, which `auto` may not.\n\n" + "\n".join(lines) + "\n",
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()
