"""Noise that is exactly what the theorems say it is.

Discrete Laplace, geometric and discrete Gaussian variables on the integers and exact coins, drawn from a
cryptographic stream, and paths of gradual release built from them; and one exception, spherical noise, which is
analysed over the reals and says so. Nothing here knows about regression.
"""

from expost.noise.coins import bernoulli
from expost.noise.gaussian import discrete_gaussian
from expost.noise.laplace import discrete_laplace, geometric
from expost.noise.path import LevelValue, NoisePath
from expost.noise.source import SecureSource, SeededSource, WordSource, resolve_source
from expost.noise.spherical_path import SphericalPath

__all__ = [
    "LevelValue",
    "NoisePath",
    "SecureSource",
    "SeededSource",
    "SphericalPath",
    "WordSource",
    "bernoulli",
    "discrete_gaussian",
    "discrete_laplace",
    "geometric",
    "resolve_source",
]
