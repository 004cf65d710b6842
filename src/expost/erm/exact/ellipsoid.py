"""The ellipsoid method: slow, but certain to end after a number of steps known beforehand.

*Theorem.* Let F be convex with a C-Lipschitz gradient and its minimiser θ* in the ball of radius r
about 0. Each step asks for ∇F at the centre of an ellipsoid, cuts the ellipsoid in half there and
covers the half that contains θ* by a smaller ellipsoid. After 2p(p + 1)·ln(8Cr/τ) + 1 steps a
centre with ‖∇F‖ ≤ τ has been found.

*Proof.* While none is found, the ball T of radius ρ = τ/(4C) about θ* stays inside: ⟨∇F(c), c − θ*⟩
≥ ‖∇F(c)‖²/C (convex and smooth), so ⟨∇F(c), c − w⟩ ≥ ‖∇F(c)‖(τ/C − ρ) > 0 for w in T, and no cut
takes w off. The volume falls by e^{−1/(2(p+1))} at least each time, from (2r)^p times that of the
unit ball, and cannot fall below ρ^p times it. ∎

*Rounding.* The margin above is at least τ²/(2C). A centre is at most 2r(2r/ρ)² from T, because the
longest axis grows by p/√(p² − 1) a step at most; so an error of the gradient below τ²/(8Cr)·(ρ/2r)²
changes nothing, and ``precision`` in ``expost.erm.exact.solution`` asks for that. Ellipsoids are
kept in four times as many bits and made longer by 2⁻⁶⁵ each time, far more than rounding takes off
(their shortest axis is ρ) and far less than a step gains.
"""

from __future__ import annotations

import math

import numpy as np

from expost.erm._types import AnyArray
from expost.erm.exact.objective import ExactObjective
from expost.erm.exceptions import ConvergenceError
from expost.erm.units import norm


def ellipsoid_steps(p: int, log_ratio: float) -> int:
    """Return the theorem's number of steps, given ln(8Cr/τ).

    Examples
    --------
    >>> ellipsoid_steps(38, 70.0)
    207481
    """
    return math.ceil(2 * p * (p + 1) * log_ratio) + 1


def ellipsoid(objective: ExactObjective, nu: int, radius: int, target: int, smoothness: float) -> AnyArray:
    """Return θ with ‖∇L(θ) + νθ‖ ≤ target; all in units, the minimiser's norm at most ``radius``."""
    p, bits = objective.p, objective.bits
    # the matrix in units of 2^−4·bits: twice what its product with itself needs
    half = 2 * bits
    matrix: AnyArray = np.zeros((p, p), dtype=object)
    np.fill_diagonal(matrix, (2 * radius) ** 2 << (2 * half - 2 * bits))
    centre: AnyArray = np.zeros(p, dtype=object)
    log_ratio = math.log(8) + math.log(smoothness) + math.log(radius) - math.log(target)
    for _ in range(ellipsoid_steps(p, log_ratio) + 1):
        _, gradient = objective.gradient(centre, nu)
        if norm(gradient) <= target:
            return centre
        towards = matrix @ gradient
        square = int(gradient @ towards)
        centre = centre - (towards // ((p + 1) * math.isqrt(square)) >> (half - bits))
        if p == 1:
            matrix = matrix >> 2
        else:
            cut = towards[:, None] * towards[None, :] // square
            matrix = (matrix - 2 * cut // (p + 1)) * (p * p) // (p * p - 1)
        matrix = matrix + (matrix >> 64)
    raise ConvergenceError("the loss is not what it says it is: its slopes do not belong to a convex, smooth function")
