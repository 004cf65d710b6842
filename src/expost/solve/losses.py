"""The losses that can be minimised, each with the constants that privacy and accuracy rest on.

A loss is φ(u, y) of the prediction u = xᵀθ and the target y, convex and smooth in u. Because ‖x‖₁ ≤ 1, a θ
with ‖θ‖₂ ≤ R predicts |u| ≤ ‖θ‖_∞ ≤ R: the constants below are maxima over |u| ≤ R and all admissible
targets (|y| ≤ 1, or y = ±1 for classification). The objective is L(θ) = mean φ(xᵀθ, y) + (λ/2)‖θ‖².

Slopes are also to be had as Python integers in units of 2^−bits, of any precision (`expost.solve.exact`). Sums and
products of those are not rounded, a shift rounds down by less than one unit, and arrays have object dtype.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from functools import lru_cache
from typing import Any, ClassVar, Literal

import numpy as np
from scipy.special import expit, lambertw

from expost.numeric import UNIT, AnyArray, FloatArray, round_up
from expost.validation import foreign


def to_units(value: float, bits: int) -> int:
    """Return a finite float in units, rounded down."""
    numerator, denominator = value.as_integer_ratio()
    return (numerator << bits) // denominator


def array_to_units(values: FloatArray, bits: int) -> AnyArray:
    """Return finite floats in units, rounded down."""
    return np.array([to_units(value, bits) for value in values.tolist()], dtype=object)


def to_floats(values: AnyArray, bits: int) -> FloatArray:
    """Return integers in units as the nearest floats: Python divides integers with correct rounding."""
    one = 1 << bits
    return np.array([value / one for value in values.tolist()], dtype=np.float64)


def norm(values: AnyArray) -> int:
    """Return the ℓ₂ norm, rounded down."""
    return math.isqrt(sum(value * value for value in values.tolist()))


def sigmoid(values: AnyArray, bits: int) -> AnyArray:
    """Return 1/(1 + e^{−z}), off by less than two units."""
    one = 1 << bits
    # exp is rounded correctly; x·e^{−x} < 1, so a relative error of x leaves less than that of 1/(1 + e^x). Untrapped,
    # what is too large is infinite
    digits = math.ceil(bits * math.log10(2.0)) + 6
    with localcontext(Context(prec=digits, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])):
        unit = Decimal(one)
        small = [int(unit / (1 + (abs(Decimal(value)) / unit).exp())) for value in values.tolist()]
    low = np.array(small, dtype=object)
    return np.asarray(np.where(values >= 0, one - low, low))


Labels = Literal["real", "binary"]


class Loss(ABC):
    """A convex, smooth, non-negative loss φ(u, y) and its constants.

    A new loss provides the three functions (value, derivative, second derivative in u) and the constants;
    solvers, risks and sensitivities do not notice which one it is.

    Notes
    -----
    ``value`` must be convex in u and in y. ``value`` and ``derivative`` must be evaluated to within
    ``EVALUATION_ULPS`` units of 2⁻⁵³, relative to max(1, |value|) and to |derivative|; certified minimisers
    and risks charge exactly that.
    """

    EVALUATION_ULPS: ClassVar[int] = 16
    #: Which targets are admissible: any in [−1, 1], or ±1.
    labels: ClassVar[Labels]
    #: Whether φ′(u, y) has one sign for each y, whatever u is (margin losses); Gaussian noise costs less then.
    one_sided: ClassVar[bool] = False

    @property
    @abstractmethod
    def name(self) -> str:
        """Name used in reports."""

    @property
    @abstractmethod
    def curvature(self) -> float:
        """Largest φ''."""

    @property
    @abstractmethod
    def null_value(self) -> float:
        """Largest φ(0, y): what the model θ = 0 costs at most."""

    @property
    @abstractmethod
    def pull(self) -> float:
        """K, the largest −φ'(u, y)·u over all u and y (rounded up). See :meth:`radius`."""

    @abstractmethod
    def value(self, u: FloatArray, y: FloatArray) -> FloatArray:
        """Return φ(u, y) elementwise."""

    @abstractmethod
    def derivative(self, u: FloatArray, y: FloatArray) -> FloatArray:
        """Return the derivative of φ in u elementwise."""

    @abstractmethod
    def second_derivative(self, u: FloatArray, y: FloatArray) -> FloatArray:
        """Return the second derivative of φ in u elementwise (one of its values at a kink of φ')."""

    def derivative_in_units(self, u: AnyArray, y: AnyArray, bits: int) -> AnyArray:
        """Return φ' where u, y and the result are integers in units of 2^−bits, off by at most four units.

        Optional. With it the minimiser is found for every λ there can be; without it, for those where gradient
        descent in floating point is certain to end (:class:`expost.solve.error_bounds.DescentBounds`).
        """
        raise NotImplementedError

    @property
    def has_units(self) -> bool:
        """Whether :meth:`derivative_in_units` is provided."""
        return type(self).derivative_in_units is not Loss.derivative_in_units

    @abstractmethod
    def lipschitz(self, radius: float) -> float:
        """Return the largest |φ'(u, y)| over |u| ≤ radius. Since ‖x‖₂ ≤ 1 it also bounds ‖∇φ(xᵀθ, y)‖₂."""

    @abstractmethod
    def spread(self, radius: float) -> float:
        """Return max φ − min φ over |u| ≤ radius and admissible y."""

    def maximum(self, radius: float) -> float:
        """Return the largest φ over |u| ≤ radius: φ is convex in u and in y, so a corner attains it."""
        corners = np.array([-radius, radius])
        return max(float(np.max(self.value(corners, np.full(2, y)))) for y in (-1.0, 1.0))

    def gap_range(self, radius: float) -> float:
        """Return ω ≥ max − min of φ(0, y) − φ(u, y) over |u| ≤ radius; see :mod:`expost.goals.relative_excess_risk`.

        Slopes bound it; for a symmetric loss of labels φ(0, y) is one number, and it is the spread.
        """
        steep = 2.0 * radius * self.lipschitz(radius)
        return min(self.spread(radius), steep) if self.symmetric and self.labels == "binary" else steep

    @property
    def class_weights(self) -> tuple[float, float]:
        """What a row counts for whose label is negative, and whose is positive (:class:`WeightedLoss`)."""
        return 1.0, 1.0

    @property
    def unweighted(self) -> Loss:
        """The loss of a row, whatever its label counts for."""
        return self

    #: Whether φ(−u, −y) = φ(u, y) and the slope φ′(u, y) is largest at y = −1; sharper sensitivities rest on it.
    symmetric: bool = False
    #: M with |φ‴| ≤ M·φ″ everywhere, or None: where there is one, φ″ changes by at most e^{M|s|} as u moves by s.
    self_concordance: float | None = None

    def paper_radius(self, lam: float) -> float:
        """Return √(2·null_value/λ) ≥ ‖θ*‖₂, the bound from (λ/2)‖θ*‖² ≤ L(θ*) ≤ L(0)."""
        return math.sqrt(2.0 * self.null_value / lam)

    def radius(self, lam: float) -> float:
        """Return √(K/λ) ≥ ‖θ*‖₂, the smaller bound of theory B10 (rounded up).

        Proof. ∇L(θ*) = 0 says λθ* = −mean φ'(u, y)·x; the inner product with θ* is λ‖θ*‖² = mean −φ'(u,
        y)·u ≤ K. ∎
        """
        return round_up(math.sqrt(self.pull / lam))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value}' for name, value in vars(self).items())})"

    def __setattr__(self, name: str, value: Any) -> None:
        """Let a constructor state an attribute once; nothing changes afterwards, and no constant of the library's."""
        if name in vars(self) or (hasattr(type(self), name) and not foreign(self)):
            raise AttributeError(
                f"{name} of {type(self).__name__} cannot be set: privacy rests on a loss's constants. Write a Loss of "
                f"your own that states others, which the release then records as a claim"
            )
        super().__setattr__(name, value)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(other) == vars(self)

    def __hash__(self) -> int:
        return hash((type(self), *sorted(vars(self).items())))


class SquaredLoss(Loss):
    """φ(u, y) = ½(u − y)², |y| ≤ 1 (with λ: ridge regression).

    Examples
    --------
    >>> loss = SquaredLoss()
    >>> loss.spread(2.0), loss.lipschitz(2.0), loss.curvature
    (4.5, 3.0, 1.0)
    """

    labels: ClassVar[Labels] = "real"
    name = "squared"
    symmetric = True
    self_concordance = 0.0
    curvature = 1.0
    null_value = 0.5
    #: u(y − u) is largest at u = ½, y = 1.
    pull = 0.25

    def value(self, u: FloatArray, y: FloatArray) -> FloatArray:
        """Return ½(u − y)²."""
        residual = u - y
        return 0.5 * residual * residual

    def derivative(self, u: FloatArray, y: FloatArray) -> FloatArray:
        """Return u − y."""
        return u - y

    def derivative_in_units(self, u: AnyArray, y: AnyArray, bits: int) -> AnyArray:
        """Return u − y, exactly."""
        return u - y

    def second_derivative(self, u: FloatArray, y: FloatArray) -> FloatArray:
        """Return ones."""
        return np.ones_like(u)

    def lipschitz(self, radius: float) -> float:
        """Return 1 + radius."""
        return 1.0 + radius

    def spread(self, radius: float) -> float:
        """Return (1 + radius)²/2: from 0 at u = y to its value at u = −radius, y = 1."""
        return 0.5 * (1.0 + radius) ** 2

    def gap_range(self, radius: float) -> float:
        """Return the range of uy − u²/2: its maximum is at u = y = min(1, radius), its minimum at u = −y·radius."""
        return 2.0 * radius if radius <= 1.0 else 0.5 * (1.0 + radius) ** 2


@lru_cache(maxsize=4096)
def _steepest(radius: float) -> float:
    return min(1.0, round_up(float(expit(radius))))


class LogisticLoss(Loss):
    """φ(u, y) = log(1 + e^{−yu}), y = ±1 (with λ: regularised logistic regression).

    Examples
    --------
    >>> loss = LogisticLoss()
    >>> loss.spread(3.0), loss.curvature
    (3.0, 0.25)
    >>> round(loss.pull, 5)
    0.27846
    """

    labels: ClassVar[Labels] = "binary"
    name = "logistic"
    symmetric = True
    one_sided = True
    self_concordance = 1.0  # φ‴ = φ″·(1 − 2σ)
    curvature = 0.25
    null_value = math.log(2.0)
    #: m/(1 + e^m) is stationary where (m − 1)e^{m−1} = 1/e, i.e. at m = 1 + W(1/e), with the value m − 1 =
    #: W(1/e).
    pull = round_up(float(lambertw(math.exp(-1.0)).real))

    def value(self, u: FloatArray, y: FloatArray) -> FloatArray:
        """Return log(1 + e^{−yu}) without overflow or cancellation."""
        margin = y * u
        return np.log1p(np.exp(-np.abs(margin))) + np.maximum(-margin, 0.0)

    def derivative(self, u: FloatArray, y: FloatArray) -> FloatArray:
        """Return −y/(1 + e^{yu})."""
        return np.asarray(-y * expit(-y * u), dtype=np.float64)

    def derivative_in_units(self, u: AnyArray, y: AnyArray, bits: int) -> AnyArray:
        """Return −y/(1 + e^{yu})."""
        sign = np.where(y > 0, 1, -1).astype(object)
        return np.asarray(-sign * sigmoid(-sign * u, bits))

    def second_derivative(self, u: FloatArray, y: FloatArray) -> FloatArray:
        """Return σ(u)σ(−u)."""
        return np.asarray(expit(u) * expit(-u), dtype=np.float64)

    def lipschitz(self, radius: float) -> float:
        """Return 1/(1 + e^{−radius}) (rounded up, at most 1)."""
        return _steepest(radius)

    def spread(self, radius: float) -> float:
        """Return log((1 + e^R)/(1 + e^{−R})), which is R exactly."""
        return radius


class HuberLoss(Loss):
    """φ(u, y) = ½r² for |r| ≤ δ and δ|r| − δ²/2 beyond, r = u − y, |y| ≤ 1.

    Parameters
    ----------
    delta : float
        Where the parabola turns into a straight line.

    Examples
    --------
    >>> loss = HuberLoss(0.25)
    >>> loss.lipschitz(5.0), round(loss.pull, 12)
    (0.25, 0.1875)
    """

    labels: ClassVar[Labels] = "real"
    name = "huber"
    symmetric = True
    curvature = 1.0

    def __init__(self, delta: float) -> None:
        if not 0.0 < delta < math.inf:
            raise ValueError("delta must be positive and finite")
        self.delta = delta

    def _at(self, residual: float) -> float:
        return self.delta * residual - 0.5 * self.delta**2 if residual > self.delta else 0.5 * residual**2

    @property
    def null_value(self) -> float:
        """φ(0, 1)."""
        return self._at(1.0)

    @property
    def pull(self) -> float:
        """u·min(1 − u, δ) is largest at u = max(½, 1 − δ)."""
        return 0.25 if self.delta >= 0.5 else round_up(self.delta * (1.0 - self.delta))

    def value(self, u: FloatArray, y: FloatArray) -> FloatArray:
        """Return ½r² or δ|r| − δ²/2."""
        size = np.abs(u - y)
        inner = np.minimum(size, self.delta)
        # inner·(size − inner/2) is both branches at once.
        return inner * (size - 0.5 * inner)

    def derivative(self, u: FloatArray, y: FloatArray) -> FloatArray:
        """Return r clipped to [−δ, δ]."""
        return np.clip(u - y, -self.delta, self.delta)

    def derivative_in_units(self, u: AnyArray, y: AnyArray, bits: int) -> AnyArray:
        """Return r clipped to [−δ, δ]."""
        delta = to_units(self.delta, bits)
        return np.asarray(np.minimum(np.maximum(u - y, -delta), delta))

    def second_derivative(self, u: FloatArray, y: FloatArray) -> FloatArray:
        """Return 1 where |r| ≤ δ, else 0."""
        return (np.abs(u - y) <= self.delta).astype(np.float64)

    def lipschitz(self, radius: float) -> float:
        """Return min(δ, 1 + radius)."""
        return min(self.delta, 1.0 + radius)

    def spread(self, radius: float) -> float:
        """Return φ at residual 1 + radius (its minimum is 0)."""
        return self._at(1.0 + radius)

    def left_out(self, residual: FloatArray) -> FloatArray:
        """Return ½(|r| − δ)₊², by which the squared loss exceeds this one.

        Proof. Beyond δ, ½r² − δ|r| + δ²/2 = ½(|r| − δ)². ∎
        """
        beyond = np.maximum(np.abs(residual) - self.delta, 0.0)
        return 0.5 * beyond * beyond

    def left_out_sensitivity(self, largest_prediction: float, n: int) -> float:
        """Return ½(1 + m − δ)₊²/n (rounded up): how far one row moves the mean of what is left out, |xᵀθ| ≤ m.

        Proof. A residual is at most 1 + m, so a row's term lies between 0 and ½(1 + m − δ)₊². ∎
        """
        return round_up(0.5 * max(0.0, 1.0 + largest_prediction - self.delta) ** 2 / n)


class _MarginLoss(Loss):
    """A loss of labels ±1 that decreases in the margin m = yu; ``_at`` is φ of a margin."""

    labels: ClassVar[Labels] = "binary"
    symmetric = True
    one_sided = True

    @abstractmethod
    def _at(self, margin: float) -> float: ...

    @property
    def null_value(self) -> float:
        """φ at margin 0."""
        return self._at(0.0)

    def spread(self, radius: float) -> float:
        """Return φ at margin −radius less φ at margin radius (rounded up)."""
        top = self._at(-radius)
        return min(top, top - self._at(radius) + 8.0 * UNIT * top)


class SmoothedHingeLoss(_MarginLoss):
    """The hinge loss with its corner rounded over a width h.

    With m = yu, y = ±1: φ = 0 for m ≥ 1, (1 − m)²/(2h) for 1 − h ≤ m ≤ 1, and 1 − m − h/2 below.

    Parameters
    ----------
    width : float
        h; the curvature is 1/h.

    Examples
    --------
    >>> loss = SmoothedHingeLoss(0.5)
    >>> loss.curvature, loss.null_value, round(loss.pull, 12)
    (2.0, 0.75, 0.5)
    """

    name = "smoothed hinge"

    def __init__(self, width: float) -> None:
        if not 0.0 < width < math.inf:
            raise ValueError("width must be positive and finite")
        self.width = width

    def _at(self, margin: float) -> float:
        gap = max(0.0, 1.0 - margin)
        return gap - 0.5 * self.width if gap > self.width else gap * gap / (2.0 * self.width)

    @property
    def curvature(self) -> float:
        """1/h."""
        return 1.0 / self.width

    @property
    def pull(self) -> float:
        """m·min((1 − m)/h, 1) is largest at m = max(½, 1 − h): 1 − h if h ≤ ½, else 1/(4h)."""
        return round_up(1.0 - self.width if self.width <= 0.5 else 0.25 / self.width)

    def value(self, u: FloatArray, y: FloatArray) -> FloatArray:
        """Return the three branches at once."""
        gap = np.maximum(1.0 - y * u, 0.0)
        inner = np.minimum(gap, self.width)
        return inner * (gap - 0.5 * inner) / self.width

    def derivative(self, u: FloatArray, y: FloatArray) -> FloatArray:
        """Return −y·clip((1 − m)/h, 0, 1)."""
        return -y * np.clip((1.0 - y * u) / self.width, 0.0, 1.0)

    def derivative_in_units(self, u: AnyArray, y: AnyArray, bits: int) -> AnyArray:
        """Return −y·clip((1 − m)/h, 0, 1)."""
        sign = np.where(y > 0, 1, -1).astype(object)
        one, (numerator, denominator) = 1 << bits, self.width.as_integer_ratio()
        steep = (one - sign * u) * denominator // numerator
        return np.asarray(-sign * np.minimum(np.maximum(steep, 0), one))

    def second_derivative(self, u: FloatArray, y: FloatArray) -> FloatArray:
        """Return 1/h where 1 − h ≤ m ≤ 1, else 0."""
        gap = 1.0 - y * u
        return ((gap >= 0.0) & (gap <= self.width)) / self.width

    def lipschitz(self, radius: float) -> float:
        """Return min(1, (1 + radius)/h)."""
        return min(1.0, (1.0 + radius) / self.width)


class CappedLogisticLoss(_MarginLoss):
    """φ with φ′ = −y·min(σ(−m), s), m = yu, y = ±1: the logistic loss, straight where a row is far on the wrong side.

    For an error rate it is as good as the logistic loss and costs a fraction of the privacy: a row moves the gradient
    by at most ``slope`` times its length. It is convex with φ′ < 0 at margin 0, hence calibrated for classification
    (Bartlett, Jordan, McAuliffe 2006); its values are no log loss, and probabilities are not what it estimates.

    Parameters
    ----------
    slope : float
        s, the largest slope; ½ caps it at margin 0.

    Examples
    --------
    >>> loss = CappedLogisticLoss(0.5)
    >>> loss.lipschitz(3.0), loss.curvature, round(loss.null_value, 6)
    (0.5, 0.25, 0.693147)
    """

    name = "capped logistic"

    def __init__(self, slope: float) -> None:
        if not 0.0 < slope < 1.0:
            raise ValueError("slope must lie strictly between 0 and 1")
        self.slope = slope

    @property
    def _corner(self) -> float:
        """The margin at which σ(−m) = s."""
        return math.log((1.0 - self.slope) / self.slope)

    @property
    def curvature(self) -> float:
        """σ(m)σ(−m) where the slope is below s: ¼, or s(1 − s) if that leaves out margin 0."""
        return 0.25 if self.slope >= 0.5 else round_up(self.slope * (1.0 - self.slope))

    @property
    def pull(self) -> float:
        """m·min(σ(−m), s) is largest where the logistic loss's is, or at the corner if that lies beyond."""
        corner = self._corner
        best = 1.0 + LogisticLoss.pull  # where m/(1 + e^m) is stationary
        return LogisticLoss.pull if corner <= best else round_up(corner * self.slope)

    def _at(self, margin: float) -> float:
        return float(self.value(np.array([margin]), np.ones(1))[0])

    def value(self, u: FloatArray, y: FloatArray) -> FloatArray:
        """Return log(1 + e^{−m}) above the corner, the tangent there below it."""
        margin, corner = y * u, self._corner
        held = np.maximum(margin, corner)
        smooth = np.log1p(np.exp(-np.abs(held))) + np.maximum(-held, 0.0)
        return np.asarray(smooth + self.slope * (held - margin))

    def derivative(self, u: FloatArray, y: FloatArray) -> FloatArray:
        """Return −y·min(σ(−m), s)."""
        return np.asarray(-y * np.minimum(expit(-y * u), self.slope), dtype=np.float64)

    def second_derivative(self, u: FloatArray, y: FloatArray) -> FloatArray:
        """Return σ(u)σ(−u) above the corner, 0 below."""
        return np.asarray(np.where(y * u >= self._corner, expit(u) * expit(-u), 0.0), dtype=np.float64)

    def lipschitz(self, radius: float) -> float:
        """Return s, or the logistic loss's slope where that is less."""
        return min(self.slope, LogisticLoss().lipschitz(radius))


class WeightedLoss(Loss):
    """w_y·φ(u, y): a loss of labels in which a row counts for as much as its label; weights are public.

    What is minimised is mean w_y·φ + (λ/2)‖θ‖²: it is divided by n, which is public.

    *Theorem (constants).* Let w₋ and w₊ lie in (0, 1], the larger of them 1, and let φ be convex and not negative with
    |φ′| ≤ κ, 0 ≤ φ″ ≤ c and −φ′u ≤ K for |u| ≤ R. Then w_y·φ is convex with the same κ, c and K, and with w the smaller
    weight it lies between w·min φ and max φ: its spread is at most w·spread + (1 − w)·max φ. A row replaced by one of
    the other label is no exception. *Proof.* Each constant is a maximum over u and over both labels of a function that
    w_y, which depends on neither u nor θ, multiplies by at most 1, and by 1 for one label; φ ≥ 0 is at most max φ, and
    at least max φ − spread, which w makes smaller. ∎ (The spread itself would be too small: a heavy row far on the
    wrong side may become a light one on the right side.) |φ‴| ≤ M·φ″ and the sign of φ′ for a label stay what they are.
    φ(−u, −y) = φ(u, y) does not hold, so nothing that rests on it is used.

    So κ, c and the weights are in every price at once: where a row's slope is at most w_max·κ and its curvature
    w_max·c, w_max = 1. A mechanism takes this loss as it takes any other.

    *Theorem (only the quotient counts).* For a > 0 objective perturbation releases with weights a·w, λ and b what it
    releases with w, λ/a and b/a, at the same price. *Proof.* Dividing mean a·wφ + (λ/2)‖θ − θ₀‖² + bᵀθ/n by a moves no
    minimum; 2aκ over the scale of b is 2κ over that of b/a, and a·c/(nλ) is c/(n·(λ/a)). ∎ So stating larger weights
    buys nothing: a level x (noise of 1/x on a mean gradient, λ = 1/(xR)) of a·w is the level a·x of w, and a search
    that begins at a stated x would pay a times as much for its first level, or for a < 1 begin in noise. Dividing
    weights by their maximum leaves constants, prices and the first level as they are without weights.

    *Not by class counts.* Weights n/(2n_y), "balanced", are functions of the rows: one row replaced changes n_y, and
    with it what all other rows of the label add. Nobody would have paid for that.

    Parameters
    ----------
    loss : Loss
        φ, one of the library's own losses of labels.
    negative, positive : float
        Positive weights; they are divided by the larger of them.

    Examples
    --------
    >>> loss = WeightedLoss(LogisticLoss(), negative=1.0, positive=5.0)
    >>> loss.class_weights, loss.curvature, round(loss.spread(3.0), 3), round(LogisticLoss().spread(3.0), 3)
    ((0.2, 1.0), 0.25, 3.039, 3.0)
    """

    labels: ClassVar[Labels] = "binary"

    def __init__(self, loss: Loss, negative: float, positive: float) -> None:
        if loss.labels != "binary" or loss.unweighted is not loss or foreign(loss):
            raise ValueError(f"weights are for the library's own losses of labels, got {loss!r}")
        if not (0.0 < negative < math.inf and 0.0 < positive < math.inf):
            raise ValueError("weights must be positive and finite")
        self.loss, largest = loss, max(negative, positive)
        self.negative, self.positive = negative / largest, positive / largest
        if not min(self.class_weights) > 0.0:
            raise ValueError("weights are so far apart that the smaller one is nothing beside the larger")

    @property
    def class_weights(self) -> tuple[float, float]:
        """w₋ and w₊."""
        return self.negative, self.positive

    @property
    def unweighted(self) -> Loss:
        """φ."""
        return self.loss

    @property
    def name(self) -> str:
        """That of φ, and that it is weighted."""
        return f"weighted {self.loss.name}"

    @property
    def one_sided(self) -> bool:  # type: ignore[override]
        """Whether slopes for a label have one sign: as those of φ."""
        return self.loss.one_sided

    @property
    def self_concordance(self) -> float | None:  # type: ignore[override]
        """M of φ."""
        return self.loss.self_concordance

    @property
    def EVALUATION_ULPS(self) -> int:  # type: ignore[override]
        """Those of φ, and a product's."""
        return self.loss.EVALUATION_ULPS + 1

    @property
    def curvature(self) -> float:
        """c of φ."""
        return self.loss.curvature

    @property
    def null_value(self) -> float:
        """φ(0, y) of the heavier label."""
        return self.loss.null_value

    @property
    def pull(self) -> float:
        """K of φ."""
        return self.loss.pull

    @property
    def has_units(self) -> bool:
        """Whether φ has slopes in units."""
        return self.loss.has_units

    def _each(self, y: FloatArray) -> FloatArray:
        return np.where(y > 0, self.positive, self.negative)

    def value(self, u: FloatArray, y: FloatArray) -> FloatArray:
        """Return w_y·φ(u, y)."""
        return self._each(y) * self.loss.value(u, y)

    def derivative(self, u: FloatArray, y: FloatArray) -> FloatArray:
        """Return w_y·φ′(u, y)."""
        return self._each(y) * self.loss.derivative(u, y)

    def second_derivative(self, u: FloatArray, y: FloatArray) -> FloatArray:
        """Return w_y·φ″(u, y)."""
        return self._each(y) * self.loss.second_derivative(u, y)

    def derivative_in_units(self, u: AnyArray, y: AnyArray, bits: int) -> AnyArray:
        """Return ⌊w_y·φ′⌋, φ′ in units 2⁸ times smaller: together off by less than one unit and a fiftieth."""
        slopes = self.loss.derivative_in_units(u << 8, y << 8, bits + 8)
        (up, over), (other_up, other_over) = (weight.as_integer_ratio() for weight in (self.positive, self.negative))
        return np.asarray(np.where(y > 0, slopes * up // (over << 8), slopes * other_up // (other_over << 8)))

    def lipschitz(self, radius: float) -> float:
        """Return κ of φ."""
        return self.loss.lipschitz(radius)

    def spread(self, radius: float) -> float:
        """Return w·spread + (1 − w)·max φ, w the smaller weight (rounded up)."""
        least, top = min(self.class_weights), self.loss.maximum(radius)
        top += self.loss.EVALUATION_ULPS * UNIT * max(1.0, top)
        return round_up(least * self.loss.spread(radius) + (1.0 - least) * top)


def weighted(loss: Loss, weights: tuple[float, float]) -> Loss:
    """Return a loss with weights of the negative and of the positive label; as it is where those are equal."""
    return loss if weights[0] == weights[1] else WeightedLoss(loss, *weights)
