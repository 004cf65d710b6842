"""Normal variables for a perturbed objective. Analysed over the reals.

*Released*: nothing by itself (`expost.mechanisms.gaussian_objective`). Drawn by inverting the distribution function at
numbers of 52 bits: not exactly normal, so a release made with it says "over the reals". For noise on integers there are
exact draws (`expost.noise.gaussian`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import special

from expost.noise.source import WordSource
from expost.noise.spherical import uniforms

#: No draw is larger: the smallest uniform is 2⁻⁵³, whose quantile is −8.21.
LARGEST = 8.3


def normals(count: int, source: WordSource) -> NDArray[np.float64]:
    """Draw standard normal variables.

    Examples
    --------
    >>> from expost.noise.source import SeededSource
    >>> draws = normals(10_000, SeededSource(0))
    >>> bool(abs(draws.mean()) < 0.05), bool(0.95 < draws.std() < 1.05)
    (True, True)
    """
    return np.asarray(special.ndtri(uniforms(count, source)))
