"""Numbers behind the figures: statistics over trials, and the curves that theorems give without any trial.

Curves that theorems give and only plots use: the paper's ridge theorem as printed, and private SGD's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from experiments.oracle import floor
from experiments.plan import Plan, Task, loss_of
from experiments.table import Row
from experiments.trial import Bench
from expost.solve.losses import Loss


def output_ridge_as_printed_epsilon(target: float, *, n: int, p: int, regularization: float, radius: float) -> float:
    """ε from the paper's ridge theorem *as printed*: (1/n + λ)(R+1)²p²/(nλε²) ≤ α.

    Not a valid bound (a sum over rows was lost in its proof, and simulation violates it); kept only to draw
    the paper's curve under that name.
    """
    return (radius + 1) * p * math.sqrt((1 / n + regularization) / (n * regularization * target))


def private_sgd_epsilon(target: float, *, n: int, p: int, delta: float, diameter: float, lipschitz: float) -> float:
    """ε of (ε, δ)-private stochastic gradient descent by its utility theorem; ``inf`` if n is too small for any.

    Bassily, Smith and Thakurta (2014), Theorem 2.4, with the step-size analysis of Shamir and Zhang (2013),
    Theorem 2, over a set of diameter D and a G-Lipschitz loss, as in the authors' own plots: with
    c = (nα/(4(1 + ln n)·D·G))² − 1, ε = √(32·p·ln(n/δ)·ln(1/δ)/c).
    """
    a = 32 * p * math.log(n / delta) * math.log(1 / delta)
    c = (n * target / (4 * (1 + math.log(n)) * diameter * lipschitz)) ** 2 - 1
    return math.sqrt(a / c) if c > 0 else math.inf


def private_sgd_rows_needed(target: float, *, diameter: float, lipschitz: float) -> int:
    """Return the number of rows from which :func:`private_sgd_epsilon` is finite: n ≥ 4(1 + ln n)·D·G/α."""
    n = 2
    while n * target <= 4 * (1 + math.log(n)) * diameter * lipschitz:
        n *= 2
    low, high = n // 2, n
    while high - low > 1:
        middle = (low + high) // 2
        if middle * target > 4 * (1 + math.log(middle)) * diameter * lipschitz:
            high = middle
        else:
            low = middle
    return high


BAND = (0.1, 0.9)
TITLES = {"twitter": "Twitter buzz", "twitter-q95": "Twitter buzz, clipped at 95 %", "kdd99": "KDD-99"}
MORE_ROWS = 10  # "an order of magnitude more data points", the paper says of private SGD


@dataclass(frozen=True)
class Curve:
    """A quantity over the targets: mean, and the band that holds the middle 80 % of trials (NaN without trials)."""

    alphas: NDArray[np.float64]
    mean: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


def curve(rows: Sequence[Row], method: str, column: str) -> Curve:
    """Return one column of one method. Refusals count in ε, and have neither excess risk nor norm."""
    values: dict[float, list[float]] = {}
    for row in rows:
        if row.method == method:
            cell = getattr(row, column)
            values.setdefault(row.alpha, []).extend([] if cell is None else [cell])
    alphas = sorted(values)

    def over(statistic: Callable[[list[float]], float]) -> NDArray[np.float64]:
        return np.array([statistic(values[alpha]) if values[alpha] else math.nan for alpha in alphas])

    return Curve(
        np.array(alphas),
        over(lambda cells: float(np.mean(cells))),
        over(lambda cells: float(np.quantile(cells, BAND[0]))),
        over(lambda cells: float(np.quantile(cells, BAND[1]))),
    )


def main_perturbation(kind: str) -> str:
    """Return what a task's main curves perturb: the logistic task has no covariance perturbation."""
    return "covariance" if kind == "regression" else "output"


def compared(kind: str) -> tuple[str, ...]:
    """Return the methods that are held against the oracle, cheapest family first."""
    main = main_perturbation(kind)
    names = ["auto-{}", "auto-{}-spherical", "certified-{}", "stationarity-{}"]
    names += ["reduction-{}-tight", "reduction-{}", "doubling-{}", "theory-{}"]
    return tuple(name.format(main) for name in names if kind != "regression" or "spherical" not in name)


def oracle_curve(rows: Sequence[Row], oracle: str, n: int) -> Curve:
    """Return the oracle's ε, without the targets that noise alone meets."""
    best = curve(rows, oracle, "epsilon")
    known = best.mean > floor(n)
    return Curve(best.alphas[known], best.mean[known], best.low[known], best.high[known])


def ratio_curve(rows: Sequence[Row], method: str, oracle: str, n: int) -> Curve:
    """Return the ε of a method as a multiple of the oracle's, at the targets that both have."""
    mine, best = curve(rows, method, "epsilon"), oracle_curve(rows, oracle, n)
    both, left, right = np.intersect1d(mine.alphas, best.alphas, return_indices=True)
    scale = best.mean[right]
    return Curve(both, mine.mean[left] / scale, mine.low[left] / scale, mine.high[left] / scale)


@dataclass(frozen=True)
class Facts:
    """What a reader of the results has to know about the data; the last three are private truths."""

    name: str
    kind: str
    n: int
    p: int
    notes: tuple[str, ...]
    regularization: float
    failure_probability: float
    n_levels: int
    trials: int
    alphas: tuple[float, ...]
    radius: float
    smaller_radius: float
    optimum_norm: float
    null_excess_risk: float

    @classmethod
    def of(cls, task: Task, plan: Plan) -> Facts:
        """Look at the data."""
        bench, method = Bench(task, plan), plan.methods[0]
        return cls(
            task.name,
            task.kind,
            task.n,
            task.p,
            task.notes,
            plan.regularization,
            plan.failure_probability,
            plan.n_levels,
            plan.trials,
            plan.alphas,
            task.loss.paper_radius(plan.regularization),
            task.loss.radius(plan.regularization),
            float(np.linalg.norm(bench.optimum(method))),
            bench.null_excess_risk(method),
        )

    @property
    def loss(self) -> Loss:
        """What is minimised."""
        return loss_of(self.kind)

    @property
    def title(self) -> str:
        """Name of the data as a reader knows it."""
        return TITLES.get(self.name, self.name)

    @property
    def sgd_lipschitz(self) -> float:
        """Lipschitz constant of the regularised loss over the paper's ball, which private SGD's theorem asks for."""
        of_loss = self.radius + 1 if self.kind == "regression" else 1.0
        return of_loss + self.regularization * self.radius

    def sgd_epsilon(self, alpha: float, n: int) -> float:
        """Return private SGD's ε by its theorem, δ = 1/n; infinite where n rows are too few for any."""
        return private_sgd_epsilon(
            alpha, n=n, p=self.p, delta=1 / n, diameter=2 * self.radius, lipschitz=self.sgd_lipschitz
        )

    def sgd_rows_needed(self, alpha: float, lipschitz: float | None = None) -> int:
        """Return how many rows private SGD's theorem needs to say anything."""
        return private_sgd_rows_needed(alpha, diameter=2 * self.radius, lipschitz=lipschitz or self.sgd_lipschitz)

    def ridge_output_as_printed(self, alpha: float) -> float:
        """Return ε from the paper's theorem on ridge output perturbation, which does not hold."""
        return output_ridge_as_printed_epsilon(
            alpha, n=self.n, p=self.p, regularization=self.regularization, radius=self.radius
        )


def theorem_curve(alphas: Sequence[float], epsilon: Callable[[float], float]) -> tuple[list[float], list[float]]:
    """Return the targets at which a theorem says something, and the ε it gives there."""
    points = [(alpha, epsilon(alpha)) for alpha in alphas]
    finite = [(alpha, value) for alpha, value in points if math.isfinite(value)]
    return [alpha for alpha, _ in finite], [value for _, value in finite]
