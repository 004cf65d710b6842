"""Mechanisms that release one model at an ε somebody has to name, and an oracle that names the smallest that will do.

None of them promises any accuracy. The oracle looks at the private rows: it takes the ε of a geometric grid and the λ
with which nine of ten draws meet the goal, which is more than anybody could know. Plain NumPy over the reals, the
solver's tolerance uncharged: whatever is left out is to the peers' advantage. Simulation on data one may look at.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
RATIO = 1.15
GRID = [RATIO**k for k in range(-36, 51)]  # from .0065 to 1084
PASS = 0.9


def quality(task: str, margins: Floats, y: Floats) -> float:
    """Return the error rate, or R² of predictions moved into the target's bounds; both of encoded rows."""
    if task == "classification":
        return float(np.mean((margins > 0) != (y > 0)))
    return float(1.0 - np.mean((np.clip(margins, -1.0, 1.0) - y) ** 2) / np.var(y))


def meets(task: str, reached: float, goal: float) -> bool:
    return reached <= goal if task == "classification" else reached >= goal


class Oracle:
    """Find the smallest ε of the grid, and its λ, at which PASS of the draws meet the goal."""

    def __init__(self, met: Callable[[float, float, int], bool], lams: Sequence[float], draws: int) -> None:
        self.met, self.lams, self.draws = met, lams, draws

    def good(self, step: int, lam: float) -> bool:
        """Whether enough draws meet the goal; stops once too many have not."""
        bad, allowed = 0, int((1 - PASS) * self.draws + 1e-9)
        for seed in range(self.draws):
            bad += not self.met(GRID[step], lam, seed)
            if bad > allowed:
                return False
        return True

    def ask(self) -> tuple[float, float] | None:
        """Return ε and λ, or None if not even the largest ε of the grid is enough."""
        best, chosen = len(GRID), math.nan
        for lam in self.lams:
            if best == 0 or not self.good(best - 1, lam):  # every further λ has to beat the best so far
                continue
            low, high = -1, best - 1
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (low, middle) if self.good(middle, lam) else (middle, high)
            best, chosen = high, lam
        return None if best == len(GRID) else (GRID[best], chosen)


class Peers:
    """The one-shot mechanisms on encoded rows in the unit ball; ``draw`` returns a model.

    Neighbours are tables with one row replaced. Logistic loss for labels (slope κ = 1, curvature c = ¼); Huber's loss
    with κ = ¼, c = 1 for regression, the one the chain of releases minimises.
    """

    def __init__(self, task: str, x: Floats, y: Floats, blocks: Sequence[tuple[int, str]], scale: float) -> None:
        from expost.solve.losses import HuberLoss, LogisticLoss

        self.task, self.x, self.y, self.n, self.p = task, x, y, *x.shape
        self.loss = LogisticLoss() if task == "classification" else HuberLoss(0.25)
        self.slope = self.loss.lipschitz(math.inf)
        self.values, self.vectors = np.linalg.eigh(x.T @ x / self.n)
        self.optima: dict[float, Floats] = {}
        self._settle_moments(blocks, scale)

    @property
    def mechanisms(self) -> dict[str, Callable[[float, float, int], Floats | None]]:
        """Each mechanism by name: from ε, λ and a seed to a model."""
        return {"objective": self.objective, "output": self.output, "second moments": self.moments}

    def lams(self, name: str) -> Sequence[float]:
        """Return the λ that the oracle may choose from, four to a decade; those from the middle first."""
        lowest, highest = (-14, 1) if name == "second moments" else (-20, -3)
        steps = sorted(range(lowest, highest), key=lambda step: abs(step - (lowest + highest) / 2))
        return [10 ** (step / 4) for step in steps]

    def minimum(self, lam: float, linear: Floats) -> Floats:
        """Minimise mean φ + (λ/2)‖θ‖² + linearᵀθ by L-BFGS in coordinates in which it is nearly round."""
        from scipy.optimize import minimize

        part = 0.15 if self.task == "classification" else 1.0
        root = (self.vectors / np.sqrt(part * np.maximum(self.values, 0.0) + lam)) @ self.vectors.T

        def value(z: Floats) -> tuple[float, Floats]:
            theta = root @ z
            u = self.x @ theta
            gradient = self.x.T @ self.loss.derivative(u, self.y) / self.n + lam * theta + linear
            total = self.loss.value(u, self.y).mean() + 0.5 * lam * theta @ theta + linear @ theta
            return float(total), root @ gradient

        return root @ minimize(value, np.zeros(self.p), jac=True, method="L-BFGS-B", options={"gtol": 1e-5}).x

    def objective(self, epsilon: float, lam: float, seed: int) -> Floats | None:
        """Objective perturbation (Chaudhuri, Monteleoni, Sarwate 2011): density of b ∝ exp(−ε′‖b‖/2κ)."""
        left = epsilon - 2.0 * math.log1p(self.loss.curvature / (self.n * lam))
        if left <= 0.0:
            return None
        return self.minimum(lam, self._sphere(seed) * (2.0 * self.slope / left) / self.n)

    def output(self, epsilon: float, lam: float, seed: int) -> Floats | None:
        """Output perturbation (the same): the minimiser moves by 2κ/(nλ) at most."""
        if lam not in self.optima:
            self.optima[lam] = self.minimum(lam, np.zeros(self.p))
        return self.optima[lam] + self._sphere(seed) * 2.0 * self.slope / (self.n * lam * epsilon)

    def moments(self, epsilon: float, lam: float, seed: int) -> Floats | None:
        """Laplace noise on second moments, then ridge regression; negative eigenvalues count as 0.

        In the table's units a row has B ones at most, d of them in the box, and only what is not known anyway is
        released: products of columns that can both be non-zero, squares of numbers, products with the target. One row
        moves the former by 2·B(B − 1)/2, squares by d − 1 (they are not negative), the target's by 2B.
        """
        rng = np.random.default_rng([17, seed])
        noise = np.triu(rng.laplace(0.0, self.sensitivity / epsilon, (self.p, self.p)) * self.released)
        first = rng.laplace(0.0, self.sensitivity / epsilon, self.p)
        gram = self.gram + noise + np.triu(noise, 1).T
        for j in self.indicators:
            gram[j, j] = gram[0, j]  # an indicator is its own square
        values, vectors = np.linalg.eigh(gram)
        inverse = 1.0 / (np.maximum(values, 0.0) + lam * self.n)
        return vectors @ (inverse * (vectors.T @ (self.cross + first))) * self.scale

    def _settle_moments(self, blocks: Sequence[tuple[int, str]], scale: float) -> None:
        z, self.scale = self.x * scale, scale
        (d, _), rest = blocks[0], blocks[1:]
        b = d + len(rest)
        self.sensitivity = float(b * (b - 1) + 2 * b + (d - 1))
        self.gram, self.cross = z.T @ z, z.T @ self.y
        self.released = np.ones((self.p, self.p))
        self.released[0, 0] = 0.0  # n
        place, self.indicators = d, np.arange(d, self.p)
        for size, _ in rest:
            self.released[place : place + size, place : place + size] = 0.0
            place += size
        if not np.isin(np.round(z[:, d:], 3), (0.0, 1.0)).all():
            raise ValueError("blocks beside the box must be indicators")

    def _sphere(self, seed: int) -> Floats:
        from expost.noise import SeededSource
        from expost.noise.spherical import spherical_noise

        return spherical_noise(self.p, SeededSource([13, seed]))

    def oracles(self, goal: float, draws: int) -> Iterator[tuple[str, tuple[float, float] | None, list[Floats]]]:
        """Yield each mechanism's name, the oracle's ε and λ, and the models of its draws there."""
        for name, draw in self.mechanisms.items():

            def met(epsilon: float, lam: float, seed: int, draw=draw) -> bool:  # type: ignore[no-untyped-def]
                theta = draw(epsilon, lam, seed)
                return theta is not None and meets(self.task, quality(self.task, self.x @ theta, self.y), goal)

            found = Oracle(met, self.lams(name), draws).ask()
            yield name, found, [] if found is None else [draw(*found, seed) for seed in range(draws)]
