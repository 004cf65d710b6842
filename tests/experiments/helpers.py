"""A small generated task and a small grid: every method, in a second or two."""

import numpy as np

from experiments import Plan, Task, methods_for
from experiments.datasets import Dataset


def small_task(kind="regression", n=3000, p=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1 / p, 1 / p, size=(n, p))
    score = X @ np.linspace(2, -1, p)
    y = np.clip(score + 0.1 * rng.normal(size=n), -1, 1)
    if kind == "classification":
        y = np.where(y > 0, 1.0, -1.0)
    return Task.of(Dataset("small", kind, X, y, ("generated",)))


def small_plan(kind="regression", **changes):
    settings = {"trials": 3, "alphas": (0.05, 0.1, 0.15), "regularization": 0.05, "n_levels": 40} | changes
    return Plan(methods_for(kind), **settings)


def contents(folder):
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir())}
