"""Noise that is exactly what the theorems say it is.

Discrete Laplace and geometric variables on the integers and exact coins, drawn from a cryptographic stream,
and paths of gradual release built from them. Nothing here knows about regression.
"""

from expost.noise.coins import bernoulli
from expost.noise.laplace import discrete_laplace, geometric
from expost.noise.path import LevelValue, NoisePath
from expost.noise.source import SecureSource, SeededSource, WordSource, resolve_source

__all__ = [
    "LevelValue",
    "NoisePath",
    "SecureSource",
    "SeededSource",
    "WordSource",
    "bernoulli",
    "discrete_laplace",
    "geometric",
    "resolve_source",
]
