"""Mechanisms that release one model at an ε somebody has to name, and an oracle that names the smallest that will do.

The oracle looks at the private rows: it takes the ε of a geometric grid, and the mechanism's own settings (λ, steps,
step size, clip), with which the median of a few draws meets the goal. That is more than anybody could know, and the
peers promise nothing. Plain NumPy over the reals, in single precision: whatever is left out is to their advantage.
Neighbours are tables with one row replaced; rows lie in the unit ball. ε at a δ is the usual hockey-stick one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri

from expost.table.shape import block_geometry, cheapest_geometry, gaussian_deviations, l2_ball

if TYPE_CHECKING:
    from panel import Task

RATIO = 1.2
GRID = [RATIO**k for k in range(-38, 23)]  # from .001 to 55
MOST = 45_000  # rows
Setting = tuple[float, ...]
# where the oracle starts to look for settings, and by which factors it moves each of them
STARTS: dict[str, tuple[Setting, Setting]] = {
    "objective": ((0.15, 0.25), (2.5, 3.0)),  # part of ε that pays for λ; slope of Huber's loss (regression only)
    "shaped": ((0.15, 0.5), (2.5, 2.0)),  # the same, for labels as well
    "moments": ((0.1,), (3.0,)),  # λ in units of the noise's largest eigenvalue
    "descent": ((64.0, 2.0, 0.25), (2.0, 2.0, 2.0)),  # steps, step size, clip
}
APART = ((16.0, 4.0, 0.25), (64.0, 4.0, 0.125), (256.0, 1.0, 0.25), (256.0, 2.0, 1.0))  # other descents to start from


@cache
def deviations(epsilon: float, delta: float) -> float:
    """Return the largest μ = Δ/σ of a Gaussian release that is (ε, δ)-private: Balle and Wang's exact condition."""
    low, high = 0.0, 50.0
    for _ in range(60):
        mu = 0.5 * (low + high)
        loss = ndtr(mu / 2 - epsilon / mu) - np.exp(epsilon + log_ndtr(-mu / 2 - epsilon / mu))
        low, high = (mu, high) if loss <= delta else (low, mu)
    return low


def usual(mu: float, delta: float) -> float:
    """Return the smallest ε of a Gaussian release at δ."""
    low, high = 0.0, 100.0
    for _ in range(50):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if deviations(middle, delta) >= mu else (middle, high)
    return high


def block_noise(size: int, norm: str, rng: np.random.Generator) -> Any:
    """Return eleven draws of density ∝ exp(−‖b‖) in a block's norm."""
    if norm == "l1":
        return rng.laplace(size=(size, 11))
    if norm == "box":
        return rng.uniform(-1.0, 1.0, (size, 11)) * rng.gamma(size + 1, size=11)
    direction = rng.normal(size=(size, 11))
    return direction / np.linalg.norm(direction, axis=0) * rng.gamma(size, size=11)


class Peers:
    """One-shot mechanisms on the rows of a task: pure at δ = 0, Gaussian else. Several draws are made at once."""

    def __init__(self, task: Task, delta: float) -> None:
        from panel import quality

        self.task, self.delta, self.measured = task, delta, quality
        self.x, self.y = (values.astype(np.float32) for values in task.arrays)
        (self.n, self.p), self.labels = self.x.shape, task.kind != "R2"
        # gradients of the largest tables are those of their first rows, which saves hours; noise is that of all rows
        self.some, self.labelled = self.x[:MOST], self.y[:MOST, None]
        self.gram, self.cross = (self.x.T @ side for side in (self.x, self.y))
        self.values, self.vectors = np.linalg.eigh(self.gram.astype(float) / self.n)
        self.names = ["objective", "moments", "shaped"] + ["descent", "shaped descent"] * bool(delta)
        self.known: dict[Any, float] = {}
        self.draws = 9 if self.x.size < 1_000_000 else 5  # descents take the time
        self.failed: dict[Any, int] = {}

    # ------------------------------------------------------------------------------------------- mechanisms

    def objective(self, epsilon: float, setting: Setting, shaped: bool = False) -> Any:
        """Objective perturbation (Chaudhuri, Monteleoni, Sarwate 2011; Gaussian: Kifer, Smith, Thakurta 2012).

        A row's curvature c changes the density by two factors 1 + c/(nλ), which takes a part of ε; what is left is for
        the noise, against a slope of κ: logistic loss (κ = 1), or Huber's. Shaped: κ < 1 for labels, too.
        """
        part, slope = setting[0], 1.0 if self.labels and not shaped else setting[1]
        if part >= 0.95 or slope > 1.0:
            return None
        curvature, left = 0.25 if self.labels else 1.0, (1.0 - part) * epsilon
        lam = curvature / (self.n * math.expm1(part * epsilon / 2.0))
        rng = np.random.default_rng(13)
        if self.delta:
            mu = deviations(left, self.delta)
            linear = rng.normal(size=(self.p, 11)) * self.spread(slope, mu, shaped) / self.n
        else:
            shape = cheapest_geometry(self.task.encoding) if shaped else l2_ball(self.p)
            parts = zip(shape.blocks, shape.weights(left, slope), strict=True)
            linear = np.concatenate([block_noise(block.size, block.norm, rng) / weight for block, weight in parts])
            linear /= self.n
        return self.minimum(lam, linear, curvature, slope)

    def shaped(self, epsilon: float, setting: Setting) -> Any:
        """Objective perturbation with expost's own noise, shaped like the rows, and capped slopes: for the floor."""
        return self.objective(epsilon, setting, shaped=True)

    def spread(self, slope: float, mu: float, shaped: bool) -> Any:
        """Return the deviation of Gaussian noise on a sum of gradients, for each column."""
        shape = block_geometry(self.task.encoding) if shaped else l2_ball(self.p)
        found = gaussian_deviations(shape, slope, mu**2 / 2.0)
        return np.repeat(found, [block.size for block in shape.blocks])[:, None]

    def minimum(self, lam: float, linear: Any, curvature: float, slope: float) -> Any:
        """Minimise mean φ + (λ/2)‖θ‖² + linearᵀθ: accelerated steps against the largest curvature there can be."""
        inverse = (self.vectors / (curvature * np.maximum(self.values, 0.0) + lam)) @ self.vectors.T
        theta = ahead = np.zeros_like(linear)
        for step in range(80):
            slopes = self.slopes(self.some @ ahead.astype(np.float32), slope)
            move = inverse @ ((self.some.T @ slopes) / len(self.some) + lam * ahead + linear)
            last, theta = theta, ahead - move
            momentum = 0.0 if np.vdot(move, theta - last) > 0 else min(0.9, step / (step + 3.0))  # none uphill
            ahead = theta + momentum * (theta - last)
            if np.abs(move).max() < 2e-3 * np.abs(theta).max():
                break
        return theta

    def slopes(self, u: Any, clip: float) -> Any:
        """Return the slopes of the logistic or the squared loss, clipped."""
        y = self.labelled
        if not self.labels:
            return np.clip(u - y, -clip, clip)
        share = np.float32(0.5) - np.float32(0.5) * np.tanh(np.float32(0.5) * y * u)  # faster than 1/(1 + e^yu)
        return -y * np.minimum(share, np.float32(clip))

    def moments(self, epsilon: float, setting: Setting) -> Any:
        """Noise on second moments, then ridge regression (labels are ±1): AdaSSP (Wang 2018), with an oracle's λ.

        Gaussian: one row moves xxᵀ by √2 at most, xy by 2, ε in halves. Laplace: in the table's units a row has B ones
        at most, d of them numbers, and moves products by B(B − 1), squares of numbers by d − 1, and the target's by 2B.
        """
        rng, shape = np.random.default_rng(17), (5, self.p, self.p)
        scale = self.task.encoding.scale
        (d, _), *rest = self.task.encoding.blocks
        if self.delta:
            sigma, unit = math.sqrt(2.0) * math.sqrt(2.0) / deviations(epsilon, self.delta), 1.0
            noise, first = rng.normal(0.0, sigma, shape), rng.normal(0.0, sigma * math.sqrt(2.0), (self.p, 5))
        else:
            b, unit = d + len(rest), scale
            sigma = (b * (b - 1) + 2 * b + d - 1) / epsilon
            noise, first = rng.laplace(0.0, sigma, shape), rng.laplace(0.0, sigma, (self.p, 5))
        place = d
        for size, _ in rest:  # levels of one category exclude each other: products are known, but for squares
            block = noise[:, place : place + size, place : place + size]
            block *= np.eye(size)
            place += size
        noise[:, 0, 0] = 0.0  # n is public
        gram = self.gram.astype(float) * unit**2 + np.triu(noise) + np.swapaxes(np.triu(noise, 1), 1, 2)
        if not self.delta:
            squares = np.arange(d, self.p)
            gram[:, squares, squares] = gram[:, 0, squares]  # an indicator is its own square, in the table's units
        values, vectors = np.linalg.eigh(gram)
        lam = setting[0] * sigma * math.sqrt(2.0 * self.p)
        found = [
            v @ ((v.T @ (self.cross * unit + first[:, k])) / (np.maximum(w, 0.0) + lam))
            for k, (w, v) in enumerate(zip(values, vectors, strict=True))
        ]
        return np.stack(found, axis=1) * unit

    def shaped_descent(self, epsilon: float, setting: Setting) -> Any:
        """Descend with noise that is shaped like the rows: for the floor."""
        return self.descent(epsilon, setting, shaped=True)

    def descent(self, epsilon: float, setting: Setting, shaped: bool = False) -> Any:
        """Noisy gradient descent on all rows with momentum, slopes clipped, and the mean of the later iterates."""
        steps, size, clip = int(setting[0]), setting[1], setting[2]
        if clip > 1.0 or steps > 1100 or steps < 4:
            return None
        spread = self.spread(clip, deviations(epsilon, self.delta) / math.sqrt(steps), shaped)
        rng = np.random.default_rng(31)
        theta, velocity, later = (np.zeros((self.p, self.draws), np.float32) for _ in range(3))
        for step in range(steps):
            u = np.stack([self.some @ column for column in theta.T.copy()], axis=1)  # faster than one product
            slopes = self.slopes(u, clip).T.copy() / np.float32(len(self.some))
            gradient = np.stack([part @ self.some for part in slopes], axis=1)
            gradient += (spread / self.n * rng.normal(size=(self.p, self.draws))).astype(np.float32)
            velocity = 0.9 * velocity - np.float32(size) * gradient
            theta = theta + velocity
            later += theta if 2 * step >= steps else 0.0
        return later / (steps - (steps + 1) // 2)

    # ------------------------------------------------------------------------------------------- the oracle

    def quality(self, name: str, step: int, setting: Setting) -> float:
        """Return the median quality of the draws at an ε of the grid; NaN where there is no such model."""
        key = (name, step, setting)
        if key not in self.known:
            with np.errstate(all="ignore"):
                thetas = getattr(self, name.replace(" ", "_"))(GRID[step], setting)
                good = thetas is not None and np.isfinite(thetas).all()
                values = self.measured(self.task.kind, self.x @ thetas.astype(np.float32), self.y) if good else np.nan
            self.known[key] = float(np.median(values))
        return self.known[key]

    def neighbours(self, name: str, setting: Setting) -> Iterator[Setting]:
        """Yield settings with one number made larger or smaller, and a few that lie apart."""
        for place, factor in enumerate(STARTS[name.removeprefix("shaped ")][1]):
            if name == "objective" and place == 1 and self.labels:
                continue
            for power in (-1, 1):
                yield tuple(float(f"{v * factor**power:.6g}") if i == place else v for i, v in enumerate(setting))
        if name == "descent":
            yield from APART

    def oracle(self, name: str, goal: float, lowest: int, setting: Setting) -> tuple[int, Setting] | None:
        """Return the first step of the grid at which the goal is met, and the settings, found by going uphill."""

        def met(step: int, setting: Setting) -> bool:
            if step <= self.failed.get((name, setting), -1):  # at more noise than was too much for an easier goal
                return False
            good = bool(self.task.meets(self.quality(name, step, setting), goal))
            if not good:
                self.failed[name, setting] = step
            return good

        def missed(setting: Setting) -> float:
            reached = self.quality(name, len(GRID) - 1, setting)
            return math.inf if math.isnan(reached) else abs(goal - reached)

        while not met(len(GRID) - 1, setting):  # not even at the largest ε: which settings come nearer?
            other = min(
                self.neighbours(name, setting), key=lambda other: 0.0 if met(len(GRID) - 1, other) else missed(other)
            )
            if not met(len(GRID) - 1, other) and missed(other) >= missed(setting):
                return None
            setting = other
        best = self.first(lambda step: met(step, setting), lowest, len(GRID))
        improved = name != "shaped descent"  # which takes the other descent's settings
        while improved and best > lowest:
            improved = False
            for other in self.neighbours(name, setting):
                while best > lowest and met(best - 1, other):
                    best, setting, improved = best - 1, other, True
        return best, setting

    @staticmethod
    def first(met: Callable[[int], bool], low: int, high: int) -> int:
        """Return the least step in [low, high) that is met, or else ``high``, by bisection."""
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if met(middle) else (middle + 1, high)
        return high

    def floor(self, name: str, goal: float, step: int, setting: Setting, gamma: float) -> float:
        """Return what an oracle's training and one honest test of its model cost, if the test passes every other time.

        The oracle knows how good a model of any noise will be and pays for the best one to test: with Laplace noise
        that fails with probability γ the room must be ln(1/2γ) scales wide, with Gaussian noise (at a δ, where costs
        add in squares) z deviations.
        """
        from panel import GOALS

        variance = float(np.var(self.y)) if self.task.kind == "R2" else 1.0
        moved = GOALS[self.task.kind](goal).shortfall_sensitivity(self.n)
        least = math.inf
        for k in range(step, len(GRID)):
            if GRID[k] >= least:
                break
            room = abs(self.quality(name, k, setting) - goal) * variance
            if room > 0 and self.task.meets(self.quality(name, k, setting), goal):
                least = min(least, GRID[k] + moved * math.log(1.0 / (2.0 * gamma)) / room)
                if self.delta and name in ("moments", "descent", "shaped descent"):
                    mu = math.hypot(deviations(GRID[k], self.delta), -float(ndtri(gamma)) * moved / room)
                    least = min(least, usual(mu, self.delta))
        return least


def least_for_a_promise(task: Task, goal: float, gamma: float) -> float:
    """Return an ε below which no mechanism can promise a goal of R² and always release a linear model; a bound.

    *Theorem.* Let k rows be replaced so that no linear model meets the goal on what comes out of it. Whoever promises
    on every table that a released model misses the goal with probability at most γ, and releases a model on this one,
    pays a mean ex-post ε of at least (ln(1/γ) − 1 + γ)/k, however models and tests are made. *Proof.* Let S be the
    outcomes that release a model and state at most e. From one of the k + 1 tables to the next P[S] changes by a factor
    of e^e at most, as every outcome in S has at most that loss; and on the last one all of S are broken promises. So
    P[S] ≤ γe^{ke} here: ε is above e with probability at least 1 − γe^{ke}, and the integral of that over e up to
    ln(1/γ)/k is the bound. ∎ At a δ (the usual sense) P[S] ≤ γe^{ke} + δ(e^{ke} − 1)/(e^e − 1), which is the same for
    all that is shown here. The k rows that explain the most are replaced by ones at the far end of the bounds, where
    rows lie so close to the middle that no straight line follows; least squares says what is left for one.
    """
    x, y = task.arrays
    n, far = len(y), 1.0 if y.mean() < 0.0 else -1.0
    gram, cross, square, total = x.T @ x, x.T @ y, float(y @ y), float(y.sum())
    best = np.linalg.lstsq(x, y, rcond=1e-10)[0]
    explained = np.argsort((y - x @ best) ** 2 - (y - y.mean()) ** 2)
    middling = np.argsort(np.einsum("ij,jk,ik->i", x, np.linalg.pinv(gram), x))[:50]
    to = x[middling[np.argmax(np.abs(x[middling] @ best - far))]]

    def reached(k: int) -> float:
        gone = explained[:k]
        left, moved = gram - x[gone].T @ x[gone] + k * np.outer(to, to), cross - x[gone].T @ y[gone] + k * far * to
        squares, mean = square - float(y[gone] @ y[gone]) + k, (total - float(y[gone].sum()) + k * far) / n
        theta = np.linalg.lstsq(left, moved, rcond=1e-12)[0]
        return 1.0 - (squares - float(moved @ theta)) / (squares - n * mean * mean)

    high = 1
    while reached(high) >= goal:
        high = math.ceil(1.3 * high)
        if high > n // 2:  # too easy for that to say anything
            return 0.0
    low = int(high / 1.3) - 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reached(middle) < goal else (middle, high)
    return (math.log(1.0 / gamma) - 1.0 + gamma) / high


def found_for(task: Task, ways: tuple[str, ...], delta: float, gamma: float) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield for each goal, the easiest first, every peer's ε and settings, the best one, and the floor."""
    peers = Peers(task, delta)
    last = {name: (0, STARTS[name.removeprefix("shaped ")][0]) for name in peers.names}
    for way in ways:
        goal = task.goal(way)
        met: dict[str, tuple[int, Setting]] = {}
        for name in peers.names:
            lowest, setting = last[name] if name != "shaped descent" else (last[name][0], last["descent"][1])
            found = peers.oracle(name, goal, lowest, setting)
            if found is not None:
                last[name] = met[name] = found
        order = sorted(met, key=lambda name: met[name][0])
        best = next((name for name in order if "shaped" not in name), None)
        floor = min((peers.floor(name, goal, *met[name], gamma) for name in order[:2]), default=math.inf)
        answer = {name: [float(f"{GRID[step]:.4g}"), *setting] for name, (step, setting) in met.items()}
        yield way, {"peers": answer, "best": best, "floor": float(f"{floor:.4g}") if math.isfinite(floor) else None}
