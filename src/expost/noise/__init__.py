"""Noise that is exactly what the theorems say it is, and how large it gets.

Discrete Laplace, geometric and discrete Gaussian variables on the integers and exact coins, drawn from a cryptographic
stream, and paths of gradual release built from them; noise on objectives, exact up to a public remainder; and one
exception, spherical noise of a gradual release, which is analysed over the reals and says so. Nothing here knows about
regression.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from expost.lazy import public_names

if TYPE_CHECKING:
    from expost.noise.gaussian import discrete_gaussian as discrete_gaussian
    from expost.noise.laplace import (
        KeptLevels as KeptLevels,
        LevelValue as LevelValue,
        NoisePath as NoisePath,
        discrete_laplace as discrete_laplace,
        geometric as geometric,
    )
    from expost.noise.source import (
        SecureSource as SecureSource,
        SeededSource as SeededSource,
        WordSource as WordSource,
        resolve_source as resolve_source,
    )
    from expost.noise.spherical import SphericalPath as SphericalPath
    from expost.numeric import Grid as Grid, grid_sensitivity as grid_sensitivity

__getattr__, __all__ = public_names(__name__)
