"""Directions and noise for the tests of the ray."""

import numpy as np


def unit(rng, p, kind):
    d = {"spread": rng.normal(size=p), "even": np.ones(p), "one": np.eye(p)[0] + 0.05}[kind]
    return d / np.linalg.norm(d)


def matrix_noise(rng, p, scale):
    upper = np.triu(rng.laplace(scale=scale / 2, size=(p, p)), 1)
    return upper + upper.T + np.diag(rng.laplace(scale=scale, size=p))
