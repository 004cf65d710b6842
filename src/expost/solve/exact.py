"""The minimiser to more digits than floating point holds, by Newton's or by the ellipsoid method.

*The gradient* of L is computed in integers, to any precision: the same sums as in ``expost.solve.objective``, without
the rounding. Rows are taken as multiples of 2⁻⁶⁰. Those of the library are multiples of 2⁻²⁰ and stay as they are;
others move by half a unit an entry, which moves the gradient by less than p·2⁻⁶¹(c‖θ‖ + |φ'|), a 250th of the rounding
bound that a certificate adds to it anyway. Everything else is exact up to a few units of 2^−bits.

*Newton's method* works out only the direction in floating point; a wrong digit there makes the next step necessary and
nothing else. Slopes and gradients are integers, so near the minimum they still say which way is down.

*Over a ball* the minimiser is that of L + (ν/2)‖θ‖² for the right ν ≥ 0. ‖θ_ν‖ decreases in ν, and its slope is at most
‖θ_ν‖/(λ + ν) in size. So between 0 and a ν that is large enough there is a stretch of ln(λ + ν) of length 2⁻⁶¹ on which
‖θ_ν‖ is right to 2⁻⁶⁰, and bisection of that logarithm ends. Newton's method for 1/‖θ_ν‖, which is nearly a straight
line (Moré and Sorensen 1983), gets there in a few steps; whenever one of them does not halve the distance to the
sphere, the next is a bisection.

*The ellipsoid method* is slow, but certain to end after a number of steps known beforehand.

*Theorem.* Let F be convex with a C-Lipschitz gradient and its minimiser θ* in the ball of radius r about 0. Each step
asks for ∇F at the centre of an ellipsoid, cuts the ellipsoid in half there and covers the half that contains θ* by a
smaller ellipsoid. After 2p(p + 1)·ln(8Cr/τ) + 1 steps a centre with ‖∇F‖ ≤ τ has been found.

*Proof.* While none is found, the ball T of radius ρ = τ/(4C) about θ* stays inside: ⟨∇F(c), c − θ*⟩ ≥ ‖∇F(c)‖²/C
(convex and smooth), so ⟨∇F(c), c − w⟩ ≥ ‖∇F(c)‖(τ/C − ρ) > 0 for w in T, and no cut takes w off. The volume falls by
e^{−1/(2(p+1))} at least each time, from (2r)^p times that of the unit ball, and cannot fall below ρ^p times it. ∎

*Rounding.* The margin above is at least τ²/(2C). A centre is at most 2r(2r/ρ)² from T, because the longest axis grows
by p/√(p² − 1) a step at most; so an error of the gradient below τ²/(8Cr)·(ρ/2r)² changes nothing, and :func:`precision`
asks for that. Ellipsoids are kept in four times as many bits and made longer by 2⁻⁶⁵ each time, far more than rounding
takes off (their shortest axis is ρ) and far less than a step gains.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
from scipy.linalg import lapack

from expost.exceptions import ConvergenceError
from expost.numeric import AnyArray, FloatArray, Private
from expost.passes.sums import SUM_UNIT, Sums
from expost.solve.losses import Loss, array_to_units, norm, to_floats, to_units
from expost.solve.objective import Objective

_CLOSE_TO_BALL = 60


def on_ball(
    solve: Callable[[int], AnyArray],
    rate: Callable[[AnyArray, int], float],
    radius: int,
    most: int,
    lam: int,
    bits: int,
) -> AnyArray:
    """Return θ_ν with ‖θ_ν‖ = radius, or θ_0 if it lies inside; all in units of 2^−bits.

    Parameters
    ----------
    solve
        ν ↦ θ_ν.
    rate
        (θ_ν, ν) ↦ −d ln‖θ_ν‖/dν, as far as floating point knows it.
    radius, most, lam
        Of the ball; a ν for which θ_ν lies inside; λ.
    bits
        Of the units.
    """
    theta = solve(0)
    if norm(theta) <= radius + (radius >> _CLOSE_TO_BALL):
        return theta
    low, high, nu, before = 0, most, 0, 2 * norm(theta)
    while high - low > 1:
        beyond = norm(theta) - radius
        if abs(beyond) <= radius >> _CLOSE_TO_BALL:
            break
        low, high = (nu, high) if beyond > 0 else (low, nu)
        speed = rate(theta, nu) if theta.any() else 0.0
        if 0.0 < speed < math.inf and math.isfinite(1.0 / speed):
            nu += beyond * to_units(1.0 / speed, bits) // radius
        if not low < nu < high or 2 * abs(beyond) > before:
            nu, beyond = math.isqrt((lam + low) * (lam + high)) - lam, 2 * norm(theta)
        before = abs(beyond)
        theta = solve(nu)
    return theta


_ROW_BITS = 60  # |x| ≤ 1 in such units fits an int64


class ExactObjective(Private):
    """L + (ν/2)‖θ‖² over given rows, in integers. Private.

    Parameters
    ----------
    objective : Objective
        The same in floating point; its loss must provide ``derivative_in_units``.
    bits : int
        Units are 2^−bits.
    """

    def __init__(self, objective: Objective, bits: int) -> None:
        self._objective, self.bits, self.p = objective, bits, objective.p
        self._rows = np.rint(np.ldexp(objective.X, _ROW_BITS)).astype(np.int64)
        targets = np.rint(np.ldexp(objective.y, _ROW_BITS)).astype(np.int64)
        self._targets = targets.astype(object) << (bits - _ROW_BITS)
        self._counts = None if objective.counts is None else objective.counts.astype(np.int64).astype(object)
        self.lam = to_units(objective.lam, bits)

    def gradient(self, theta: AnyArray, nu: int) -> tuple[AnyArray, AnyArray]:
        """Return the predictions Xθ and the gradient ∇L(θ) + νθ.

        The gradient is off by less than c + 4 + 2√p units: a prediction is rounded down by less than one unit and moves
        φ' by c times that, φ' itself is off by at most four, and ‖x‖₂ ≤ 1; two more roundings for each entry.
        """
        bits, n = self.bits, self._objective.n
        predictions = self.along(theta)
        slopes = self._slopes(predictions)
        total: AnyArray = np.zeros(self.p, dtype=object)
        for rows, block in zip(self._blocks(), self._objective.blocks(), strict=True):
            total = total + slopes[block] @ rows
        return predictions, total // (n << _ROW_BITS) + ((self.lam + nu) * theta >> bits)

    def along(self, step: AnyArray) -> AnyArray:
        """Return X·step."""
        return np.concatenate([rows @ step >> _ROW_BITS for rows in self._blocks()])

    def slope_along(self, theta: AnyArray, step: AnyArray, u: AnyArray, v: AnyArray, nu: int, t: float) -> int:
        """Return the derivative of L(θ + t·step) + (ν/2)‖θ + t·step‖² in t, times a constant."""
        bits, part = self.bits, to_units(t, self.bits)
        slopes = self._slopes(u + (part * v >> bits))
        penalty = (self.lam + nu) * int((theta + (part * step >> bits)) @ step) >> bits
        return int(slopes @ v) // self._objective.n + penalty

    def root(self, u: AnyArray, nu: int) -> FloatArray:
        """Return an upper triangular R in floating point with RᵀR close to the Hessian, XᵀDX/n + (λ + ν)I.

        By orthogonal transformation of the rows themselves, not of their products: an error of order u·‖·‖ in
        rows of length √λ and more, which is a small part of the Hessian in every direction even where λ is near u.
        """
        objective = self._objective
        weights = objective.loss.second_derivative(to_floats(u, self.bits), objective.y)
        if objective.counts is not None:
            weights = weights * objective.counts
        roots = np.sqrt(weights / objective.n)
        triangle = math.sqrt((self.lam + nu) / (1 << self.bits)) * np.eye(self.p)
        for block in objective.blocks():
            stacked = np.vstack([triangle, objective.X[block] * roots[block, None]])
            triangle = np.asarray(np.linalg.qr(stacked, mode="r"))
        return triangle

    def rate(self, theta: AnyArray, nu: int) -> float:
        """Return θᵀH⁻¹θ/‖θ‖², H the Hessian at θ: how fast the minimiser's norm falls in ν, as a part of it."""
        largest = max(abs(value) for value in theta.tolist())
        scaled = np.array([value / largest for value in theta.tolist()])
        half, _ = lapack.dtrtrs(self.root(self.along(theta), nu), scaled, trans=1)
        return float(half @ half) / float(scaled @ scaled)

    def _slopes(self, u: AnyArray) -> AnyArray:
        slopes = self._objective.loss.derivative_in_units(u, self._targets, self.bits)
        return slopes if self._counts is None else slopes * self._counts

    def _blocks(self) -> Iterator[AnyArray]:
        """Yield the rows block by block: as Python integers they take many times their space."""
        for block in self._objective.blocks():
            yield self._rows[block].astype(object)


def ellipsoid_steps(p: int, log_ratio: float) -> int:
    """Return the theorem's number of steps, given ln(8Cr/τ)."""
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


def exact_ridge(sums: Sums, lam: float, radius: float) -> FloatArray:
    """Return the float64 vector nearest to the minimiser of ½θᵀ(XᵀX/n + λI)θ − θᵀXᵀy/n over the ball.

    Elimination of a positive definite matrix needs no pivots, and none falls below λ. Entries are off by a unit of
    2^−bits each time they are touched, p² units in all, which moves θ by a part of p²·2^−bits/λ: less than 2⁻⁶⁴.
    """
    p = sums.p
    spread = math.log2(1.0 / lam + 1.0) + abs(math.log2(min(radius, 1.0 / math.sqrt(lam))))
    bits = 256 + 4 * math.ceil(spread + math.log2(p + 1))
    scale = sums.n * SUM_UNIT
    matrix = (sums.gram.astype(object) << bits) // scale
    moment = (sums.moment.astype(object) << bits) // scale

    def against(vector: AnyArray, nu: int) -> AnyArray:
        shifted = matrix.copy()
        shifted[np.diag_indices(p)] += to_units(lam, bits) + nu
        return eliminate(shifted, vector, bits)

    def solve(nu: int) -> AnyArray:
        return against(moment, nu)

    def rate(theta: AnyArray, nu: int) -> float:
        return int(theta @ against(theta, nu)) / int(theta @ theta)

    if math.isinf(radius):
        return to_floats(solve(0), bits)
    most = to_units((1.0 + 1e-9) / radius, bits) + 1  # ν·radius ≤ ‖Xᵀy/n‖ ≤ 1
    return to_floats(on_ball(solve, rate, to_units(radius, bits), most, to_units(lam, bits), bits), bits)


def eliminate(matrix: AnyArray, vector: AnyArray, bits: int) -> AnyArray:
    """Solve a positive definite system in units of 2^−bits."""
    p = len(vector)
    table = np.concatenate([matrix, vector[:, None]], axis=1)
    for k in range(p):
        parts = (table[k + 1 :, k] << bits) // table[k, k]
        table[k + 1 :, k + 1 :] -= parts[:, None] * table[k, k + 1 :] >> bits
    solution: AnyArray = np.zeros(p, dtype=object)
    for k in reversed(range(p)):
        rest = table[k, p] - (int(table[k, k + 1 : p] @ solution[k + 1 :]) >> bits)
        solution[k] = (rest << bits) // table[k, k]
    return solution


_ENOUGH = 100  # steps after which any lower point will do
_MAX_STEPS = 2000  # the bracket shrinks by a tenth each time, and a step may overshoot by the condition number


def step_length(slope: Callable[[float], float]) -> float:
    """Return t in (0, 1] where a convex function with derivative ``slope`` is sufficiently lower than at 0.

    Or 0, if no lower point is seen: then the slope at 0 is not negative, or rounding has the better of it.

    With s₀ = |slope(0)| the full step is taken if the function still falls at 1, or if slope(1) ≤ s₀/10 and
    slope(½) ≤ −s₀/4: slopes of a convex function increase, so the change is then at most ½(−s₀/4) +
    ½(s₀/10) = −0.075·s₀. Otherwise a t with −s₀/2 ≤ slope(t) ≤ 0 is bracketed: the function falls all the
    way to it, and smoothness makes t, hence the fall, proportional to s₀.

    Near the minimum, differences of function values drown in rounding while slopes keep their relative accuracy, so no
    value is ever compared.
    """
    start = slope(0.0)
    if start >= 0.0:
        return 0.0
    end = slope(1.0)
    if end <= 0.0 or (end <= -0.1 * start and slope(0.5) <= 0.25 * start):
        return 1.0
    low, slope_low, high, slope_high = 0.0, start, 1.0, end
    for taken in range(_MAX_STEPS):
        if taken >= _ENOUGH and low > 0.0:
            break
        width = high - low
        # Aim for slope s₀/4 short of the root, kept inside the bracket so that it shrinks by a tenth at
        # least.
        secant = low + width * (0.25 * start - slope_low) / (slope_high - slope_low)
        t = min(max(secant, low + 0.1 * width), high - 0.1 * width)
        value = slope(t)
        if value > 0.0:
            high, slope_high = t, value
        elif value >= 0.5 * start:
            return t
        else:
            low, slope_low = t, value
    return low


_MAX_ITERATIONS = 200


def newton(objective: ExactObjective, theta: AnyArray, nu: int, target: int) -> AnyArray | None:
    """Return θ with ‖∇L(θ) + νθ‖ ≤ target, all in units, or None if the steps run out."""
    bits = objective.bits
    for _ in range(_MAX_ITERATIONS):
        u, gradient = objective.gradient(theta, nu)
        if norm(gradient) <= target:
            return theta
        step = _direction(objective.root(u, nu), gradient, bits)
        if step is None:
            return None
        t = _length(objective, theta, step, u, nu)
        if t == 0.0:
            return None
        theta = theta + (to_units(t, bits) * step >> bits)
    return None


def _direction(root: FloatArray, gradient: AnyArray, bits: int) -> AnyArray | None:
    """Return −(RᵀR)⁻¹·gradient, or None if floating point cannot hold it."""
    largest = max(abs(value) for value in gradient.tolist())
    scaled = np.array([value / largest for value in gradient.tolist()])
    half, failed = lapack.dtrtrs(root, scaled, trans=1)
    whole, failed_too = lapack.dtrtrs(root, half)
    if failed or failed_too or not np.isfinite(whole).all():
        return None
    return np.asarray(-(array_to_units(whole, bits) * largest) >> bits)


def _length(objective: ExactObjective, theta: AnyArray, step: AnyArray, u: AnyArray, nu: int) -> float:
    """Return how far to go along a step, 0 if it does not lead down."""
    v = objective.along(step)
    start = objective.slope_along(theta, step, u, v, nu, 0.0)

    def slope(t: float) -> float:
        along = objective.slope_along(theta, step, u, v, nu, t)
        return math.copysign(math.inf, along) if abs(along) >= -start << 1000 else along / -start

    return 0.0 if start >= 0 else step_length(slope)


_CLOSE = 64  # θ is found to within 2⁻⁶⁴ times the largest norm it can have


def exact_minimiser(objective: Objective, radius: float | None, start: FloatArray, bits: int) -> FloatArray:
    """Return the float64 vector nearest to the minimiser.

    Parameters
    ----------
    objective : Objective
        Its loss provides ``derivative_in_units``.
    radius : float or None
        Of the ball.
    start : array of shape (p,)
        Where to begin; zero is taken if it is useless.
    bits : int
        From :func:`precision`.
    """
    loss, lam, p = objective.loss, objective.lam, objective.p
    natural = loss.radius(lam)
    exact = ExactObjective(objective, bits)
    scale, longest = to_units(natural if radius is None else min(radius, natural), bits), to_units(natural, bits)
    usable = bool(np.isfinite(start).all()) and float(np.abs(start).max()) <= 2.0 * natural
    at = [array_to_units(start if usable else np.zeros(p), bits)]  # each search begins where the last one ended

    def solve(nu: int) -> AnyArray:
        target = (exact.lam + nu) * scale >> bits + _CLOSE
        found = newton(exact, at[0], nu, target)
        if found is None:
            steep = (loss.curvature + lam + nu / (1 << bits)) * (1.0 + 1e-6)  # rows may be longer than one by 10⁻⁹
            found = ellipsoid(exact, nu, longest, target, steep)
        at[0] = found
        return found

    if radius is None:
        return to_floats(solve(0), bits)
    # on the sphere ν·radius ≤ ‖mean φ'·x‖
    most = to_units(loss.lipschitz(radius) / radius * (1.0 + 1e-6), bits) + 1
    return to_floats(on_ball(solve, exact.rate, to_units(radius, bits), most, exact.lam, bits), bits)


def precision(loss: Loss, p: int, lam: float, radius: float | None) -> int:
    """Return how many bits units need, for the ellipsoid method to be right and the rest with it.

    Its gradients may be off by τ²/(8Cr)·(ρ/2r)² with 2r/ρ = 8Cr/τ, that is, by τ·(τ/(8Cr))³; computed ones are off by
    c + 4 + 2√p units.
    """
    natural = loss.radius(lam)
    short = natural if radius is None else min(radius, natural)
    ratio = 3 + math.log2((loss.curvature + lam) / lam) + _CLOSE - math.log2(short / natural) + 0.01
    target = math.log2(lam) + math.log2(short) - _CLOSE
    off = math.log2(loss.curvature + 4 + 2 * math.sqrt(p))
    return max(256, math.ceil(3 * ratio - target + off) + 32)
