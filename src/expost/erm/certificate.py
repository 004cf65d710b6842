"""What a computed gradient proves about the exact one: what a minimiser is accepted by."""

from __future__ import annotations

import math

import numpy as np

from expost.erm._rounding import INFLATION, gamma
from expost.erm._types import FloatArray
from expost.erm.objective import Gradient


def certificate(
    theta: FloatArray, gradient: Gradient, radius: float, rho: float, *, careful: bool = False
) -> tuple[float, float]:
    """Return the multiplier ν and a certified bound on ‖∇L(θ) + νθ‖₂.

    Any ν ≥ 0 is admissible on the sphere; the one that makes the residual shortest is taken. Inside, ν = 0.

    Parameters
    ----------
    theta, gradient
        The point and what was computed there.
    radius, rho
        Of the ball (``inf`` for none), and how far off ‖θ‖ may be for θ to count as on the sphere.
    careful
        Sum the products in ν exactly, so that ν has all its digits whatever p is.
    """
    square = float(theta @ theta)
    norm = math.sqrt(square)
    # The computed norm is within γ(p+2) of the true one, so half of ρ here certifies all of it.
    on_sphere = square > 0.0 and abs(norm - radius) <= 0.5 * rho
    along = math.fsum((gradient.vector * theta).tolist()) if careful else float(gradient.vector @ theta)
    nu = max(0.0, -along / square) if on_sphere else 0.0
    residual = gradient.vector + nu * theta
    bound = float(np.linalg.norm(residual)) * (1.0 + gamma(theta.size + 4))
    return nu, INFLATION * (bound + gradient.rounding + gamma(3) * nu * norm)
