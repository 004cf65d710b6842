"""InteractiveAboveThreshold over privately generated hypotheses (theory A3, B5).

*Released*: the first t whose measure plus noise stays below the noisy threshold. *Neighbours*: one row replaced.
*Sensitivity*: each measure changes by at most Δ, in grid units, rounding and floating point included.
*Theorem*: with threshold noise of rate e₁/Δ and fresh query noise of rate e₂/Δ, stopping at t costs e₁ + 2e₂ plus the
prefix of hypotheses up to t, and never stopping costs e₁ plus the whole prefix; for Laplace and for one-sided
geometric noise alike. With w the limit, hypothesis t is accepted if e_t + ρ ≤ w + ν_t for one-sided noise (ρ, ν_t ≥ 0),
and if e_t + ν_t ≤ w + ρ for Laplace noise.

*Proof.* Fix the hypotheses; they contribute what their prefix costs. Let e_t and e′_t be the errors on two neighbours.
One-sided noise: put ρ + Δ in the place of ρ. It stays in the support, and its probability is e^{−e₁} times that of ρ.
An earlier s was rejected because ν_s < e_s + ρ − w; then ν_s < e′_s + (ρ + Δ) − w as well, as e′_s + Δ ≥ e_s. And
P(ν_t ≥ e_t + ρ − w) ≤ e^{2e₂}·P(ν_t ≥ e′_t + ρ + Δ − w), because the bound moves by at most 2Δ. Sum over ρ: a factor of
at most e^{e₁ + 2e₂} for stopping at t. Never stopping needs no acceptance, hence e^{e₁}. Laplace noise: the same with
ρ − Δ. ∎

*Own units.* Where every hypothesis has a sensitivity Δ_t of its own, a function of the released θ_t, the ratio
v(θ_t)/Δ_t is a query of sensitivity one and the theorem applies to it. With limits τ/Δ_t − c − ρ + ν_t a wrong accept
needs ν_t ≥ c + ρ, whatever the Δ_t turn out to be: a calibration made for a typical sensitivity keeps its promise for
all. In real units the margin is c·Δ_t, smaller where the hypothesis is less sensitive.

The paper writes queries that should be *large*; errors that should be *small* are the same thing with the sign
turned, and are what every caller here has.

*Calibration*: how much noise a test needs so that, with probability 1 − γ, nothing worse than α is accepted. It fixes
the threshold and two budgets: e₁ for the noise on the threshold, e₂ for the noise on each query; noise of scale Δ/e.
Whatever the kind (Laplace or one-sided exponential), stopping costs e₁ + 2·e₂ and never stopping costs e₁ (theory A3,
B5; proof above). The accuracy side, for errors e_t ≥ 0 that should not exceed α, T tests:

``theorem``
    Laplace, ε_A = 16Δ·ln(2T/γ)/α, threshold α/2, (e₁, e₂) = (ε_A/2, ε_A/4).
``published``
    Laplace, the calibration behind the paper's curves: b = α/(4·ln(1.5^¾·√T/γ)), threshold
    α/4 + ¾b·ln 1.5 − ½b·ln T, ε_A = 2Δ/b. A wrong accept has probability at most 1.5^(−7/4)·γ^(3/2), which is
    0.016 for γ = 0.1: with ρ the threshold's noise, T·½·E[e^(ρ/2b)]·e^(−(α−threshold)/2b), and E[e^(ρ/2b)] = 4/3.
    The paper bounds two failures together instead, ½e^(−threshold/b) + T^⅔·e^(−(α−threshold)/3b). Its constant makes
    their sum 2·1.5^(−3/2)·γ = 1.09γ rather than γ. Only the second is a wrong accept, and it is γ/√1.5 = 0.82γ: the
    accuracy promise holds either way.
``tight``
    One-sided exponential noise, its two scales and the threshold chosen together to make ε_A smallest. An error of α or
    more is accepted at one test only if ν ≥ α − threshold + ρ; see :func:`exponential_failure`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, Protocol

import numpy as np

from expost import validation
from expost.account.composition import add_losses
from expost.goals.measure import Measure, check_sensitivity
from expost.noise import WordSource, discrete_laplace, geometric, resolve_source
from expost.numeric import UNITS, Private

CalibrationName = Literal["theorem", "published", "tight"]


@dataclass(frozen=True)
class Calibration:
    """Threshold and noise budgets of an AboveThreshold test.

    Attributes
    ----------
    threshold
        In the units of the error.
    epsilon_threshold, epsilon_query
        e₁ and e₂: the noise scales are Δ/e₁ and Δ/e₂.
    sensitivity
        The Δ it was made for.
    kind
        ``"laplace"`` or ``"exponential"``.
    """

    name: str
    kind: Literal["laplace", "exponential"]
    threshold: float
    epsilon_threshold: float
    epsilon_query: float
    sensitivity: float

    @property
    def epsilon(self) -> float:
        """What stopping costs: e₁ + 2·e₂."""
        return add_losses(self.epsilon_threshold, 2 * self.epsilon_query)

    @property
    def epsilon_never(self) -> float:
        """What never stopping costs: e₁ alone."""
        return self.epsilon_threshold


def calibrate(
    name: CalibrationName | str,
    *,
    target: float,
    failure_probability: float,
    n_tests: int,
    sensitivity: float,
) -> Calibration:
    """Return the calibration called ``name`` for a target α, a failure probability γ, T tests and a sensitivity Δ.

    Examples
    --------
    The paper's ridge experiment, n = 100,000 and λ = 0.005: Δ = (1/√λ + 1)²/n.

    >>> delta = (0.005**-0.5 + 1) ** 2 / 100_000
    >>> args = dict(target=0.05, failure_probability=0.1, n_tests=1000, sensitivity=delta)
    >>> [round(calibrate(name, **args).epsilon, 2) for name in ("theorem", "published", "tight")]
    [7.27, 2.22, 1.43]
    """
    _check(target, failure_probability, n_tests, sensitivity)
    return _RULES[validation.calibration(name)](target, failure_probability, n_tests, sensitivity)


def _check(target: float, failure_probability: float, n_tests: int, sensitivity: float) -> None:
    validation.positive("the target", target)
    validation.share("failure_probability", failure_probability)
    if n_tests < 1:
        raise ValueError(f"the number of tests must be at least 1, got {n_tests}")
    validation.positive("sensitivity", sensitivity)


def _theorem(target: float, gamma: float, n_tests: int, delta: float) -> Calibration:
    epsilon = 16 * delta * math.log(2 * n_tests / gamma) / target
    return Calibration("theorem", "laplace", target / 2, epsilon / 2, epsilon / 4, delta)


def _published(target: float, gamma: float, n_tests: int, delta: float) -> Calibration:
    b = target / (4 * math.log(1.5**0.75 * math.sqrt(n_tests) / gamma))
    threshold = target / 4 + 0.75 * b * math.log(1.5) - 0.5 * b * math.log(n_tests)
    return Calibration("published", "laplace", threshold, delta / b, delta / (2 * b), delta)


def _tight(target: float, gamma: float, n_tests: int, delta: float) -> Calibration:
    w, e1, e2 = _tight_for_one(gamma, n_tests)
    return Calibration("tight", "exponential", w * target, e1 * delta / target, e2 * delta / target, delta)


@lru_cache(maxsize=256)  # a tenth of a second, and the same for every run of an experiment
def _tight_for_one(gamma: float, n_tests: int) -> tuple[float, float, float]:
    """Choose (threshold, 1/b₁, 1/b₂) for the smallest 1/b₁ + 2/b₂.

    Two constraints, for a target of 1: the chance of a wrong accept is at most γ; and the threshold noise stays
    below the threshold with probability 1 − γ, so that a perfect hypothesis is accepted (without it b₁ would
    grow without bound and the search would run on for ever). With w the threshold, b₁ = w/ln(1/γ), and b₂ is the
    largest that keeps the chance at γ.
    """

    def budgets(w: float) -> tuple[float, float]:
        b1 = w / math.log(1 / gamma)
        b2 = _largest_query_scale(1 - w, b1, n_tests, gamma)
        return 1 / b1, 1 / b2

    def cost(w: float) -> float:
        e1, e2 = budgets(w)
        return e1 + 2 * e2

    from scipy import optimize  # here, because it takes longer to import than most searches take

    best = optimize.minimize_scalar(cost, bounds=(0.01, 0.9), method="bounded", options={"xatol": 1e-3})
    w = float(best.x)
    return (w, *budgets(w))


def exponential_failure(margin: float, b1: float, b2: float, n_tests: int) -> float:
    """Bound the chance that any of T errors at threshold + ``margin`` or worse is accepted (theory B5).

    E_ρ[1 − (1 − e^(−(margin+ρ)/b₂))^T] with ρ ~ Exp(b₁): given ρ, each test accepts only if its own ν ~ Exp(b₂) is at
    least margin + ρ, independently of the others. Summed over 2000 equally likely cells of ρ, each at its larger end so
    that the result is an upper bound.
    """
    levels = np.linspace(0.0, 1.0, 2001)[:-1]
    rho = -b1 * np.log1p(-levels)  # left ends of equally likely cells: the integrand decreases in ρ
    single = np.exp(-(margin + rho) / b2)
    return float(np.mean(-np.expm1(n_tests * np.log1p(-single))))


def _largest_query_scale(margin: float, b1: float, n_tests: int, gamma: float) -> float:
    low, high = margin / (math.log(n_tests / gamma) + 1), margin / 1e-3
    if exponential_failure(margin, b1, high, n_tests) <= gamma:
        return high
    for _ in range(60):
        middle = math.sqrt(low * high)
        if exponential_failure(margin, b1, middle, n_tests) <= gamma:
            low = middle
        else:
            high = middle
    return low


_RULES = {"theorem": _theorem, "published": _published, "tight": _tight}


# The calibrations are computed for continuous noise. One-sided noise on the grid is its floor, so the difference of
# the two noises is less than one unit above the continuous one. Two-sided noise on the grid is stochastically below
# the continuous one plus one unit (half a unit for the upper tail alone: P(k or more) = q^k/(1 + q) ≤ ½q^(k − ½)),
# twice. Error and threshold are rounded to the safe side. Lowering the threshold by this many units covers all of it.
_SLACK = 3


class AboveThreshold(Private):
    """A stopping rule: accept the first hypothesis whose measure passes a noisy test.

    Parameters
    ----------
    measure
        What is tested, a :class:`~expost.search.Measure`.
    calibration
        Threshold and noise budgets, from :func:`~expost.search.calibrate` or :meth:`with_epsilon`.
    n_tests
        At most how many hypotheses may be tested; the accuracy promise was made for that many.
    target, room
        Where hypotheses have sensitivities of their own: what must not be exceeded, and the target that the calibration
        was made for, its sensitivity being a typical one. See :class:`ThresholdTest`.
    name
        What the release calls the method.
    random_state
        ``None`` for the secure source.

    Notes
    -----
    One object serves one search: its threshold noise must not be used twice.
    """

    def __init__(
        self,
        measure: Measure,
        calibration: Calibration,
        n_tests: int,
        *,
        target: float | None = None,
        room: float = 0.0,
        name: str = "above_threshold",
        random_state: int | WordSource | None = None,
    ) -> None:
        source = resolve_source(random_state)
        self.secure, self.name, self.n_tests = source.secure, name, n_tests
        self.claims = validation.source_claims(source)
        self.calibration = calibration
        self._measure = measure
        grid = measure.uniform
        units = UNITS if grid is None else grid.units
        if grid is not None:
            check_sensitivity(calibration.sensitivity, grid)
        elif target is None:
            raise ValueError("a measure without one sensitivity for all hypotheses needs a target and room")
        if calibration.kind == "laplace":
            on_threshold = int(discrete_laplace(calibration.epsilon_threshold, units, 1, random_state=source)[0])
            on_queries = discrete_laplace(calibration.epsilon_query, units, n_tests, random_state=source)
        else:
            on_threshold = -int(geometric(calibration.epsilon_threshold, units, 1, random_state=source)[0])
            on_queries = geometric(calibration.epsilon_query, units, n_tests, random_state=source)
        self._aim, margin = calibration.threshold, _SLACK
        if target is not None:
            self._aim = target
            margin += math.ceil((room - calibration.threshold) / calibration.sensitivity * units)
        self._offsets = [on_threshold + int(noise) - margin for noise in on_queries]
        self._next, self._done = 0, False

    @classmethod
    def with_epsilon(
        cls,
        measure: Measure,
        *,
        epsilon: float,
        threshold: float,
        n_tests: int,
        random_state: int | WordSource | None = None,
    ) -> AboveThreshold:
        """Return the paper's algorithm as it stands: Lap(2Δ/ε) on the threshold, Lap(4Δ/ε) on each query."""
        if measure.uniform is None:
            raise ValueError("the paper's algorithm needs one sensitivity for all hypotheses")
        delta = measure.uniform.effective_sensitivity
        given = Calibration("given", "laplace", threshold, epsilon / 2, epsilon / 4, delta)
        return cls(measure, given, n_tests, random_state=random_state)

    @property
    def used(self) -> bool:
        """Whether a hypothesis was tested: the threshold's noise is for one search."""
        return self._next > 0

    @property
    def epsilon_stop(self) -> float:
        """Test loss if the rule has accepted."""
        return self.calibration.epsilon

    @property
    def epsilon_never(self) -> float:
        """Test loss if the rule has accepted nothing."""
        return self.calibration.epsilon_never

    @property
    def epsilon_worst_case(self) -> float:
        """Largest test loss of any outcome."""
        return self.calibration.epsilon

    def accepts(self, hypothesis: Any) -> bool:
        """Test the next hypothesis."""
        if self._done:
            raise RuntimeError("this test has already stopped; start another one for another search")
        if self._next >= self.n_tests:
            raise RuntimeError(f"this test was calibrated for {self.n_tests} hypotheses, and all were used")
        unit = self._measure.grid(hypothesis).unit
        limit = self._limit(unit)
        self._next += 1
        self._done = self._measure.at_most(hypothesis, limit, unit)
        return self._done

    def _limit(self, unit: float) -> int:
        return math.floor(self._aim / unit) + self._offsets[self._next]

    @property
    def rejects_next_unseen(self) -> bool:
        """Whether the noise alone already rejects the next hypothesis, so that it need not be computed."""
        grid = self._measure.uniform
        return not self._done and self._next < self.n_tests and grid is not None and self._limit(grid.unit) < 0

    def skip(self) -> None:
        """Reject the next hypothesis without looking at it; only where :attr:`rejects_next_unseen`."""
        if not self.rejects_next_unseen:
            raise RuntimeError("the next hypothesis has to be tested")
        self._next += 1


@dataclass(frozen=True)
class ThresholdTest:
    """A test in which every hypothesis is measured in units of its own sensitivity, settled; public.

    Attributes
    ----------
    calibration, n_tests
        Threshold and noise budgets, and at most how many hypotheses may be tested.
    target
        What must not be exceeded, in real units; None: the calibration's own.
    room
        How much of the target the test's noise may take up at the typical sensitivity; costs grow as its inverse.
    name
        What the release calls the method.
    """

    calibration: Calibration
    n_tests: int
    target: float | None = None
    room: float = 0.0
    name: str = "above_threshold"

    @classmethod
    def within(
        cls,
        target: float,
        *,
        room: float,
        typical: float,
        failure_probability: float,
        n_tests: int,
        name: str = "above_threshold",
    ) -> ThresholdTest:
        """Settle a test for a typical sensitivity; any value is sound."""
        chosen = calibrate(
            "tight", target=room, failure_probability=failure_probability, n_tests=n_tests, sensitivity=typical
        )
        return cls(chosen, n_tests, target, room, name)

    @property
    def epsilon(self) -> float:
        """What stopping costs."""
        return self.calibration.epsilon

    def on(self, measure: Measure, random_state: int | WordSource | None = None) -> AboveThreshold:
        """Return the rule for a measure; this draws its noise."""
        return AboveThreshold(
            measure,
            self.calibration,
            self.n_tests,
            target=self.target,
            room=self.room,
            name=self.name,
            random_state=random_state,
        )


class StoppingRule(Protocol):
    """Looks at one hypothesis after another and says stop or go on."""

    @property
    def name(self) -> str:
        """What the release calls this method."""

    @property
    def secure(self) -> bool:
        """Whether its noise may protect anyone."""

    def accepts(self, hypothesis: Any) -> bool:
        """Whether to stop at this hypothesis."""

    @property
    def epsilon_stop(self) -> float:
        """Test loss so far if the rule has just accepted."""

    @property
    def epsilon_never(self) -> float:
        """Test loss if nothing was accepted."""

    @property
    def epsilon_worst_case(self) -> float:
        """Largest test loss of any outcome."""
