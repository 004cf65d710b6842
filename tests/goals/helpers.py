"""Small tasks for the tests of goals beside excess risk."""

import numpy as np

from expost import AccuracyNotReached, LogisticLoss, Preparation, Problem, SquaredLoss, run
from expost.search.generators import make_generator

GAMMA = 0.1


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
    problem = Problem.of(loss, n=rows.n, p=rows.p, regularization=lam, excess_risk=1.0, failure_probability=GAMMA)
    kind = "covariance" if loss.name == "squared" else "output"
    return make_generator(rows, problem, kind), problem, kind, rows


def outcome(*given, **options):
    """Return the release, be it a refusal."""
    try:
        return run(*given, **options)
    except AccuracyNotReached as refusal:
        return refusal.release
