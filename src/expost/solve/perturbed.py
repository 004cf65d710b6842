"""The minimiser of a perturbed objective, certified to a public tolerance, for every set of rows.

F(θ) = mean φ(xᵀθ, y) + (λ/2)‖θ − θ₀‖² + bᵀθ/n, θ₀ released before, b noise. F is λ-strongly convex and C-smooth, C = c
+ λ. Newton's method with a line search finds the minimiser in a few steps. Should it not, gradient descent does, in a
number of steps that is known beforehand: no rows can make it fail.

*Theorem (how long).* Let computed gradients and steps be off by at most e in ℓ₂. Steps of size 1/C reach ‖computed
gradient‖ ≤ 3e, hence ‖∇F‖ ≤ 4e =: τ, after at most (16C/3λ)·ln(1 + hλ/e²) + C/λ + 1 of them, h = F(θ₀) − min F.
*Proof.* While ‖ĝ‖ > 3e, smoothness gives a fall of at least (‖ĝ‖²/C)(1 − e/‖ĝ‖ − ½) ≥ ‖ĝ‖²/(6C), which is at least
1.5e²/C. Also ‖∇F‖ ≤ ‖ĝ‖ + e ≤ (4/3)‖ĝ‖ and ‖∇F‖² ≥ 2λ(F − min F), so each step takes off a part 3λ/(16C) of what is
left. After (16C/3λ)·ln(1 + hλ/e²) steps no more than e²/λ is left, which falls of 1.5e²/C use up in C/λ steps. ∎

*Where e holds.* Rounding at θ is at most a + b‖θ‖. It is taken at N = ‖θ₀‖ + 2D, e = a + bN, with D = (κ + ‖b‖/n)/λ
≥ ‖∇F(θ₀)‖/λ, which the minimiser θ̂ is within of θ₀; or D = W, if that is less and the caller needs minimisers no
farther from θ₀ than W (``within``): h(θ̂) is what he is after, h 1-Lipschitz, θ₀ everywhere beyond W, and nowhere
farther from θ₀ than W.

*Theorem (how close).* Let b ≤ λ/2. The point θ that is returned has ‖h(θ) − h(θ̂)‖ ≤ d = 4e/(λ − b), whatever the rows
and however long the noise; h is the identity where there is no W.
*Proof.* Let θ be accepted, ‖ĝ‖ ≤ 3e, wherever that is, and S its distance from θ̂. Newton's steps may go anywhere, and
nothing is said about points on their way. λS ≤ ‖∇F(θ)‖ ≤ 3e + a + b‖θ‖. If ‖θ̂ − θ₀‖ ≤ D, then ‖θ‖ ≤ N + S and λS ≤
4e + bS, so S ≤ d. If not, D = W and h(θ̂) = θ₀. Where ‖θ − θ₀‖ ≤ 2W, ‖θ‖ ≤ N and again S ≤ d; beyond, h(θ) = θ₀ too. ∎
*On the way of descent.* A step without error takes a part λ/C of the distance from θ̂ off (F is λ-strongly convex and
C-smooth), so distances stay below max(S₀, e/λ), S₀ = ‖θ̂ − θ₀‖, as long as e holds. If S₀ ≤ D, points stay within 2D of
θ₀, or within D + e/λ, where rounding is at most e(1 + b/λ): e holds all the way, up to what ``INFLATION`` has room for.
If S₀ > D = W, either e holds to the end, or a point is more than 2W away from θ₀ and is returned: h is θ₀ there and at
θ̂. Should rounding make such a point where S₀ ≤ W, then e/λ > W, and d > 2W exceeds what h can be off by. ∎

*How long at most.* Descent is for rows on which both Newton's method and L-BFGS stall; none are known. Its steps are
some 300·C/λ, each a pass. A λ below C/10⁷ is refused before a row is looked at, or not chosen.

*Rounding.* Predictions, slopes and their sums are those of `expost.solve.row_sums`: a prediction is off by a unit or
two of ‖θ‖, slopes are rounded to a public grid and add up exactly, so the gradient does not depend on how the rows were
read.

*Passes.* Each point that is looked at costs one pass over the rows, for its gradient and far from the end for its
second derivatives as well; close to it those of a point before will do. From 2¹⁹ rows on they are of a sample of the
rows (`expost.passes.engine.sampled`); should steps be poor, of all of them again. From 200 columns on, where second
derivatives cost far more than gradients, directions come from the last few gradients first (L-BFGS), and from 1200
columns on, where p² numbers would not do, always. Nothing rests on a direction: a point is judged by its gradient.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.linalg import LinAlgError
from scipy.linalg import cho_factor, cho_solve

from expost.exceptions import ConvergenceError
from expost.numeric import INFLATION, UNIT, FloatArray, Private, gamma, prediction_rounding
from expost.solve.error_bounds import STEEPEST as STEEPEST
from expost.solve.losses import Loss
from expost.solve.row_sums import Passes, Slopes, slope_rounding

_KEPT = 10  # pairs of vectors of p numbers


class LimitedMemory:
    """Pairs of steps and changes of the gradient, and the inverse second derivatives they make likely (Nocedal 1980).

    Parameters
    ----------
    scale
        Size of the first step, in units of the gradient.

    Examples
    --------
    >>> memory = LimitedMemory(1.0)
    >>> memory.learn(np.array([1.0, 0.0]), np.array([4.0, 0.0]))
    >>> memory.direction(np.array([8.0, 4.0]))
    array([2., 1.])
    """

    def __init__(self, scale: float) -> None:
        self._scale = scale
        self._pairs: deque[tuple[FloatArray, FloatArray, float]] = deque(maxlen=_KEPT)

    def learn(self, step: FloatArray, change: FloatArray) -> None:
        """Remember how the gradient changed along a step, if it grew."""
        along, square = float(step @ change), float(change @ change)
        if square > 0.0 and along > 1e-14 * float(np.linalg.norm(step)) * math.sqrt(square):
            self._pairs.append((step, change, along))
            self._scale = along / square

    def direction(self, gradient: FloatArray, first: Callable[[FloatArray], FloatArray] | None = None) -> FloatArray:
        """Return about H⁻¹ times the gradient; ``first`` does so before any pair was learnt."""
        result, parts = gradient.copy(), []
        for step, change, along in reversed(self._pairs):
            part = float(step @ result) / along
            result -= part * change
            parts.append(part)
        result = result * self._scale if first is None else first(result)
        for (step, change, along), part in zip(self._pairs, reversed(parts), strict=True):
            result += step * (part - float(change @ result) / along)
        return result


_NEWTON_STEPS = 60
_QUASI_STEPS = 2000
_HALVINGS = 40
_SAMPLED_HALVINGS = 4  # each is a pass: sooner than go on halving, second derivatives are taken at all rows
_SAMPLED = 17  # log₂ of the fewest rows that second derivatives are taken at, if there are that many
_CLOSE = 0.1  # a step that leaves less of the gradient than this has found second derivatives that will do for others
_SOME, _NEAR = 64, 0.3  # from so many columns on, where second derivatives cost four times what a gradient does
_POOR = 0.3  # a step that leaves more of the gradient than this is far from the end, or second derivatives are bad
_PATIENCE = 4  # such steps in a row before second derivatives are taken at all rows
_BROAD = 200  # columns from which on L-BFGS is tried first: a pass for second derivatives costs p/16 of others
_WIDE = 1200  # columns from which on second derivatives are not formed: 11 MB for each thread, p²n operations a pass


@dataclass(frozen=True)
class PerturbedErrors:
    """How exact the minimiser is; public given θ₀ and a bound on the noise.

    Attributes
    ----------
    loss, n, p, lam
        What is minimised.
    center_norm
        ‖θ₀‖₂.
    pull
        Bound on ‖b‖₂/n.
    within
        W: minimisers farther from θ₀ are all the same to the caller.
    enough
        A distance that the caller does not mind: e may be as large as that takes, which saves passes.
    """

    loss: Loss
    n: int
    p: int
    lam: float
    center_norm: float
    pull: float
    within: float = math.inf
    enough: float = 0.0

    @property
    def gap(self) -> float:
        """Bound on F(θ₀) − min F: ‖∇F(θ₀)‖²/(2λ), and ‖x‖₂ ≤ 1."""
        return (self.loss.lipschitz(math.inf) + self.pull) ** 2 / (2.0 * self.lam)

    @property
    def norm(self) -> float:
        """N: bound on ‖θ‖₂ at every point that e has to hold at."""
        return self.center_norm + 2.0 * min(self.within, math.sqrt(2.0 * self.gap / self.lam)) * INFLATION

    @property
    def growth(self) -> float:
        """b: predictions, penalty, and the rounding of a step of descent, for a θ of length one."""
        steep = self.loss.curvature + self.lam
        predicted = self.loss.curvature * prediction_rounding(self.p)
        return INFLATION * (predicted + gamma(10) * self.lam + 2.0 * UNIT * steep)

    @property
    def rounding(self) -> float:
        """e, at every such point: slopes, sums, centre and linear term beside; or what is good enough."""
        slope = self.loss.lipschitz(math.inf)
        slopes = slope_rounding(self.loss) + self.loss.EVALUATION_ULPS * UNIT * slope
        rest = gamma(10) * (slope + self.lam * self.center_norm + self.pull)
        return max(INFLATION * (slopes + rest) + self.growth * self.norm, 0.25 * self.lam * self.enough)

    @property
    def tolerance(self) -> float:
        """τ, which ‖∇F‖ at the point returned does not exceed."""
        return 4.0 * self.rounding

    @property
    def distance(self) -> float:
        """d: bound on the ℓ₂ distance of the point returned from the exact minimiser."""
        if self.growth > 0.5 * self.lam:
            raise ValueError("too many columns for so small a regularization: nothing can be said of rounding")
        return INFLATION * self.tolerance / (self.lam - self.growth)

    @property
    def steps(self) -> int:
        """Steps of gradient descent that suffice from θ₀."""
        steep = (self.loss.curvature + self.lam) / self.lam
        return math.ceil(steep * (16.0 / 3.0 * math.log1p(self.gap * self.lam / self.rounding**2) + 1.0)) + 2


def _stages(n: int, p: int) -> list[tuple[int | None, int]]:
    """Return ways to the minimiser, one after the other: how second derivatives are formed, and how many steps; public.

    One row in 2ᵏ leaves between 2¹⁷ and 2¹⁸ of many.
    """
    last: tuple[int | None, int] = (None, _QUASI_STEPS)
    if p >= _WIDE:
        return [last]
    sample = max(0, (n >> _SAMPLED).bit_length() - 1) if n >> (_SAMPLED + 2) else 0
    newton: list[tuple[int | None, int]] = [(each, _NEWTON_STEPS) for each in ((sample, 0) if sample else (0,))]
    return [(None, p // 8), *newton, last] if p >= _BROAD else [*newton, last]


class _Point(NamedTuple):
    """A point that was looked at, ∇F there, and about the loss's second derivatives, from one row in 2^sample."""

    theta: FloatArray
    gradient: FloatArray
    curvature: FloatArray | None
    sample: int | None

    @property
    def length(self) -> float:
        return float(np.linalg.norm(self.gradient))


class PerturbedObjective(Private):
    """F over given rows; private.

    Parameters
    ----------
    passes
        Sums over the rows.
    """

    def __init__(self, passes: Passes) -> None:
        self.passes = passes

    def minimiser(self, errors: PerturbedErrors, center: FloatArray, linear: FloatArray) -> FloatArray:
        """Return a point whose gradient is certified to ``errors.tolerance``; ``linear`` is b/n."""
        return Walk(self.passes, errors, center, linear).minimiser()


class Walk(Private):
    """The way to the minimiser of one F; private.

    Parameters
    ----------
    passes, errors
        Sums over the rows, and how exact the minimiser is to be.
    center, linear
        θ₀ and b/n.
    """

    def __init__(self, passes: Passes, errors: PerturbedErrors, center: FloatArray, linear: FloatArray) -> None:
        self._passes, self._errors, self._center, self._linear = passes, errors, center, linear
        self._steep = errors.loss.curvature + errors.lam

    @np.errstate(all="ignore")  # a warning that some rows cause would tell of them
    def minimiser(self) -> FloatArray:
        """Return the point that is accepted."""
        at = self._center.copy()
        for sample, steps in _stages(self._errors.n, self._errors.p):
            found = self._follow(self.look(at, sample), sample, steps)
            if self.accepted(found.gradient):
                return found.theta
            at = found.theta
        return self._descend()

    def _follow(self, at: _Point, asked: int | None, steps: int) -> _Point:
        """Return the point that is accepted, or the last where there is no way on.

        Close to the end second derivatives hardly change, and those of the point before will do, mended by what
        gradients have shown since: passes for the gradient alone cost far less. If none are ``asked`` for, nothing of
        size p² is formed and directions come from gradients only.
        """
        sample, poor, near = at.sample, 0, False
        first: Callable[[FloatArray], FloatArray] | None = None
        memory = LimitedMemory(1.0 / self._steep)
        for _ in range(steps):
            if self.accepted(at.gradient) or poor > _PATIENCE:
                break
            if at.curvature is not None:
                factor, memory = _factored(at.curvature, self._errors.lam), LimitedMemory(1.0)
                if factor is None:
                    break
                first = partial(cho_solve, factor, check_finite=False)
            step = -memory.direction(at.gradient, first)
            exact = asked is None or (not sample and at.curvature is not None)
            following = self._moved(at, step, None if near else sample, _HALVINGS if exact else _SAMPLED_HALVINGS)
            if following is None and (asked is None or at.curvature is not None):
                break
            if following is None:
                following = self.look(at.theta, sample)
            kept = following.length / at.length
            poor = poor + 1 if sample and kept > _POOR else 0
            near = kept <= (_CLOSE if self._errors.p < _SOME else _NEAR)
            memory.learn(following.theta - at.theta, following.gradient - at.gradient)
            at = following
        return at

    def accepted(self, gradient: FloatArray) -> bool:
        """Whether a point with that gradient is close enough to the minimiser."""
        return float(np.linalg.norm(gradient)) * (1.0 + gamma(self._errors.p + 4)) <= 3.0 * self._errors.rounding

    def look(self, theta: FloatArray, sample: int | None) -> _Point:
        """Look at a point: one pass over the rows; second derivatives are of one row in 2^sample, or not formed."""
        found: Slopes = self._passes.slopes(theta, curvature=sample is not None, sample=sample or 0)
        gradient = np.asarray(found.gradient + (self._errors.lam * (theta - self._center) + self._linear))
        return _Point(theta, gradient, found.curvature, None if sample is None else found.sample)

    def _moved(self, at: _Point, step: FloatArray, sample: int | None, halvings: int) -> _Point | None:
        """Return a point worth going to along a step, or None where floating point finds none.

        The gradient has to be shorter there, or the point hardly past the minimum along the step: as long as the slope
        along it stays negative F, which is convex, has fallen all the way. Otherwise slopes say where that may be.
        """
        if not np.isfinite(step).all():
            return None
        length, start = 1.0, float(at.gradient @ step)
        for _ in range(halvings):
            moved = self.look(np.asarray(at.theta + length * step), sample)
            slope = float(moved.gradient @ step)
            if moved.length < at.length * (1.0 - 0.1 * length) or slope <= -0.1 * start:
                return moved
            length *= min(max(start / (start - slope), 0.1), 0.5) if start < slope else 0.5
        return None

    def _descend(self) -> FloatArray:
        """Go down by steps of 1/C, which is certain to end."""
        theta, size = self._center.copy(), 1.0 / self._steep
        for _ in range(self._errors.steps):
            gradient = self.look(theta, None).gradient
            away = float(np.linalg.norm(theta - self._center))
            if self.accepted(gradient) or away > 2.0 * INFLATION * self._errors.within:
                return theta
            theta = theta - size * gradient
        raise ConvergenceError("the loss is not what it says it is: not convex, or steeper than its constants")


def _factored(curvature: FloatArray, lam: float) -> tuple[FloatArray, bool] | None:
    """Return the Cholesky factor of the second derivatives of F; None where floating point has none."""
    curvature[np.diag_indices_from(curvature)] += lam
    try:
        return cho_factor(curvature, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        return None
