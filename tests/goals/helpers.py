"""Small tasks for the tests of goals beside excess risk."""

import numpy as np
from scipy import stats

from expost.mechanisms import mechanism_of
from expost.solve.losses import LogisticLoss, SquaredLoss
from expost.table.bounds_encoding import Preparation
from expost.table.rows import Rows
from tests.helpers import problem_of

GAMMA = 0.1
RARE, RUNS = 1e-3, 200  # false-alarm rate of each statistical test, and how many runs it takes


def classification(n=3_000, seed=0, loss=None):
    """Labels mostly positive, so that the null model, which predicts negative, is wrong on 60 % of them."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 2)) / 2
    labels = X @ [2.0, -1.0] + 0.2 + 0.02 * rng.logistic(size=n) > 0
    recipe = Preparation(None, 1.0, target=None, intercept_weight=0.25, n_columns=2)
    return settle(recipe.prepare_classification(X, labels, (False, True)), loss or LogisticLoss(), 0.005)


def regression(n=3_000, seed=0, loss=None, lam=0.01):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 2)) / 2
    y = X @ [1.5, -1.0] + 0.05 * rng.normal(size=n)
    recipe = Preparation(None, 1.0, target=(-1.0, 1.0), intercept_weight=0, n_columns=2)
    return settle(recipe.prepare_regression(X, y), loss or SquaredLoss(), lam)


def settle(rows, loss, lam):
    """Return a generator, the problem it was made for, and the rows."""
    problem = problem_of(rows, loss, lam)
    return mechanism_of("covariance" if loss.name == "squared" else "output").on(rows, problem), problem, rows


def too_many(bad, runs=RUNS, gamma=GAMMA):
    return stats.binomtest(bad, runs, gamma, alternative="greater").pvalue < RARE


def neighbours(rng, n, labels):
    """Yield two sets of rows that differ in one, which is at a corner in both."""
    x = rng.integers(-(2**19), 2**19 + 1, (n, 2)).astype(np.int32)
    y = (rng.choice([-(2**20), 2**20], n) if labels else rng.integers(-(2**20), 2**20 + 1, n)).astype(np.int32)
    for _ in range(2):
        x, y = x.copy(), y.copy()
        x[0] = np.eye(2, dtype=np.int32)[rng.integers(2)] * rng.choice([-(2**20), 2**20])
        y[0] = rng.choice([-(2**20), 2**20])
        yield Rows(x, y)
