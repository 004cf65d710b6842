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
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NoReturn

from expost.erm.sensitivity.grid import UNITS
from expost.noise.laplace import discrete_laplace, geometric
from expost.noise.source import WordSource, resolve_source
from expost.stopping.calibration import Calibration, calibrate
from expost.stopping.measure import Measure, check_sensitivity

# The calibrations are computed for continuous noise. One-sided noise on the grid is its floor, so the difference of
# the two noises is less than one unit above the continuous one. Two-sided noise on the grid is stochastically below
# the continuous one plus one unit (half a unit for the upper tail alone: P(k or more) = q^k/(1 + q) ≤ ½q^(k − ½)),
# twice. Error and threshold are rounded to the safe side. Lowering the threshold by this many units covers all of it.
_SLACK = 3


class AboveThreshold:
    """A stopping rule: accept the first hypothesis whose measure passes a noisy test.

    Parameters
    ----------
    measure
        What is tested, a :class:`~expost.stopping.Measure`.
    calibration
        Threshold and noise budgets, from :func:`~expost.stopping.calibrate` or :meth:`with_epsilon`.
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

    def __reduce__(self) -> NoReturn:
        raise TypeError("a test holds private data and unrevealed noise; it cannot be pickled")


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
