"""Everything about a search that is settled before a row is looked at: radius, sensitivities, levels, test budgets.

A plan is public. It is also where hopeless requests end: a target that no data set of this size could meet within
the budget is refused here, before anything is spent.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from expost.erm.gradient_sensitivity import gradient_sensitivity
from expost.erm.losses import Loss
from expost.erm.sensitivity import (
    excess_risk_sensitivity,
    minimiser_l1_sensitivity,
    paper_ridge_output_sensitivity,
)
from expost.exceptions import TargetUnreachable
from expost.noise.path import check_levels
from expost.privacy.composition import add_losses
from expost.search.calibration import Calibration, calibrate
from expost.search.levels import geometric_levels
from expost.search.query import QueryGrid
from expost.search.theory import (
    covariance_epsilon,
    output_logistic_epsilon,
    output_smooth_epsilon,
    output_spherical_epsilon,
)

Perturbation = Literal["covariance", "output"]
Noise = Literal["laplace", "spherical"]

_PAPER = ("theorem", "published")
_DEFAULT_LEVELS = {"theorem": 1000, "published": 1000, "tight": 32}
_REGULARIZATIONS, _LEAST_PROBABILITY = (1e-15, 1e15), 1e-9
_ROUNDING = 1 + 1e-9  # a hypothesis may exceed the ball by rounding; sensitivities are charged for this much more


@dataclass(frozen=True)
class Problem:
    """A regression problem as far as it is public.

    Attributes
    ----------
    loss, n, p, regularization
        What is minimised: mean loss over n rows of p columns plus (λ/2)‖θ‖².
    excess_risk
        α, the accuracy asked for.
    failure_probability
        γ.
    radius
        Hypotheses and optimum are compared within the ball of this ℓ₂ radius.
    paper_constants
        Whether radius and sensitivities are the paper's own (calibrations ``theorem`` and ``published``) or the
        sharper proved ones.
    """

    loss: Loss
    n: int
    p: int
    regularization: float
    excess_risk: float
    failure_probability: float
    radius: float
    radius_stated: bool
    paper_constants: bool

    @classmethod
    def of(
        cls,
        loss: Loss,
        *,
        n: int,
        p: int,
        regularization: float,
        excess_risk: float,
        failure_probability: float = 0.1,
        calibration: str = "tight",
        radius: float | None = None,
    ) -> Problem:
        """Check the arguments and settle the radius: stated, the paper's, or the smaller proved one (theory B10)."""
        if calibration not in _DEFAULT_LEVELS:
            raise ValueError(f"calibration must be one of {sorted(_DEFAULT_LEVELS)}, got {calibration!r}")
        positive("regularization", regularization)
        positive("excess_risk", excess_risk)
        if not 0 < failure_probability < 1:
            raise ValueError(f"failure_probability must lie strictly between 0 and 1, got {failure_probability}")
        # beyond these, constants such as 1/(nλ) leave what floating point can hold, and tails drown in its rounding
        least, most = _REGULARIZATIONS
        if not least <= regularization <= most:
            raise ValueError(f"regularization must lie between {least:g} and {most:g}, got {regularization}")
        if failure_probability < _LEAST_PROBABILITY:
            raise ValueError(f"failure_probability must be at least {_LEAST_PROBABILITY:g}, got {failure_probability}")
        paper = calibration in _PAPER
        natural = loss.paper_radius(regularization) if paper else loss.radius(regularization)
        if radius is not None:
            positive("radius", radius)
        # a ball larger than the one the optimum is known to lie in would only cost more
        stated = radius is not None and radius < loss.radius(regularization)
        chosen = natural if radius is None else min(float(radius), natural)
        return cls(loss, n, p, regularization, excess_risk, failure_probability, chosen, stated, paper)

    @property
    def optimum_radius(self) -> float:
        """Bound on ‖θ‖₂ of the unconstrained optimum: where gradients vanish, whatever ball was stated."""
        return self.loss.radius(self.regularization)

    def require_same_rows(self, other: Problem) -> None:
        """Raise unless the two problems differ in nothing but target and failure probability."""
        same = dataclasses.replace(other, excess_risk=self.excess_risk, failure_probability=self.failure_probability)
        if same != self:
            raise ValueError("the generator was made for another problem; only the target may differ")

    @property
    def risk_sensitivity(self) -> float:
        """Sensitivity of the excess risk of any hypothesis in the ball."""
        return excess_risk_sensitivity(self.loss, self.radius * _ROUNDING, self.n)

    @property
    def output_sensitivity(self) -> float:
        """ℓ₁-sensitivity of the exact minimiser."""
        if self.paper_constants and self.loss.name == "squared":
            return paper_ridge_output_sensitivity(self.radius, self.n, self.p, self.regularization)
        if self.paper_constants:
            return minimiser_l1_sensitivity(self.loss, self.radius, self.n, self.regularization, self.p)
        return math.sqrt(self.p) * self.output_l2_sensitivity * (1 + 1e-12)

    @property
    def output_l2_sensitivity(self) -> float:
        """ℓ₂-sensitivity of the exact minimiser: S(R)/(nλ), since ‖θ*‖_∞ ≤ R (theory B8 with B12).

        With the paper's calibrations too: it has no spherical noise, so there is no constant of its own to keep. (Its
        proofs would give 2G/(nλ) for a G-Lipschitz loss and (R + 1)/√(nλ) for ridge, neither smaller if nλ ≥ 4.)
        """
        return gradient_sensitivity(self.loss, self.radius) / (self.n * self.regularization) * (1 + 1e-12)

    def theory_epsilon(self, perturbation: Perturbation, noise: Noise = "laplace") -> float:
        """Return the ε at which the utility theorem promises expected excess risk α (theory A7)."""
        if perturbation == "covariance":
            return covariance_epsilon(self.excess_risk, n=self.n, p=self.p, radius=self.radius)
        if noise == "spherical":
            return output_spherical_epsilon(
                self.excess_risk,
                sensitivity=self.output_l2_sensitivity,
                p=self.p,
                curvature=self.loss.curvature,
                regularization=self.regularization,
            )
        if self.paper_constants and self.loss.name == "logistic":
            return output_logistic_epsilon(self.excess_risk, n=self.n, p=self.p, regularization=self.regularization)
        return output_smooth_epsilon(
            self.excess_risk,
            sensitivity=self.output_sensitivity,
            p=self.p,
            curvature=self.loss.curvature,
            regularization=self.regularization,
        )

    @property
    def compared_with(self) -> str:
        """Name the set the promise is made against."""
        if self.radius_stated:
            return f"the best θ with ‖θ‖₂ ≤ {self.radius:.6g} (the radius you stated)"
        return "the unconstrained optimum"


@dataclass(frozen=True)
class TestPlan:
    """Levels and test budgets of an AboveThreshold search."""

    __test__ = False  # not a test class, whatever pytest thinks of its name

    problem: Problem
    calibration: Calibration
    levels: tuple[float, ...]
    risk_error: float

    @property
    def epsilon_worst_case(self) -> float:
        """No outcome of the search costs more."""
        return add_losses(self.levels[-1], self.calibration.epsilon)


def plan_test(
    problem: Problem,
    perturbation: Perturbation,
    *,
    risk_error: float,
    noise: Noise = "laplace",
    calibration: str = "tight",
    levels: Sequence[float] | None = None,
    n_levels: int | None = None,
    max_epsilon: float | None = None,
) -> TestPlan:
    """Settle levels and test budgets, or say why nothing can be promised.

    Parameters
    ----------
    problem, perturbation
        What is searched.
    risk_error
        Bound on the floating-point error of an excess risk.
    noise
        ``"laplace"`` or ``"spherical"``: how far up the default levels have to go depends on it.
    calibration
        ``"theorem"``, ``"published"`` or ``"tight"``.
    levels
        Privacy levels of your own; by default geometric, from 1/n (``tight``: from where a level stops mattering
        beside the test) to four times the theory inversion (theory A8).
    n_levels
        How many, when ``levels`` is not given.
    max_epsilon
        No outcome may cost more.
    """
    n_tests = level_count(calibration, levels, n_levels)
    charged = QueryGrid.of(problem.risk_sensitivity, error_bound=risk_error).effective_sensitivity
    test = calibrate(
        calibration,
        target=problem.excess_risk,
        failure_probability=problem.failure_probability,
        n_tests=n_tests,
        sensitivity=charged,
    )
    budget = _left_after(problem.n, test.epsilon, max_epsilon, "a larger excess_risk or max_epsilon, a smaller radius")
    first = 1 / problem.n if calibration in _PAPER else max(1 / problem.n, test.epsilon / 64)
    last = 4 * problem.theory_epsilon(perturbation, noise)
    chosen = _within(budget, levels, first, last, n_tests, test.epsilon, max_epsilon)
    return TestPlan(problem, test, chosen, risk_error)


def _left_after(n: int, epsilon_test: float, max_epsilon: float | None, remedy: str) -> float:
    """Return what a test leaves of the budget, or say that not even the test fits it."""
    if max_epsilon is None:
        return math.inf
    positive("max_epsilon", max_epsilon)
    if epsilon_test >= max_epsilon:
        rows = math.ceil(n * epsilon_test / max_epsilon * 1.1)
        raise TargetUnreachable(
            f"testing alone would cost epsilon = {epsilon_test:.4g} at n = {n}, more than max_epsilon = "
            f"{max_epsilon:.4g}, whatever the data. Pass {remedy}, or about {rows:,} rows. Nothing was spent."
        )
    return max_epsilon - epsilon_test


def _within(
    budget: float,
    levels: Sequence[float] | None,
    first: float,
    last: float,
    n_levels: int,
    epsilon_test: float,
    max_epsilon: float | None,
) -> tuple[float, ...]:
    """Return the stated levels, or geometric ones, as far as they fit the budget beside the test."""
    if levels is None:
        last = min(last, budget)
        chosen = geometric_levels(min(first, last / 4), last, n_levels)
    else:
        chosen = tuple(level for level in check_levels(levels) if level <= budget)
        if not chosen:
            raise TargetUnreachable(
                f"every level exceeds what max_epsilon = {max_epsilon:.4g} leaves after a test of "
                f"{epsilon_test:.4g}. Nothing was spent."
            )
    while add_losses(chosen[-1], epsilon_test) > (max_epsilon or math.inf):  # the last bit of rounding
        chosen = (*chosen[:-1], math.nextafter(chosen[-1], 0))
    return chosen


def goal_levels(
    problem: Problem,
    perturbation: Perturbation,
    epsilon_test: float,
    n_levels: int,
    levels: Sequence[float] | None,
    max_epsilon: float | None,
    noise: Noise = "laplace",
) -> tuple[float, ...]:
    """Return levels for a search stopped by a test of a goal, within the budget.

    From where a level stops mattering beside the test to where the single shot has about the excess risk
    ``problem.excess_risk``, by the utility theorem or by its gradient; the caller sets a small part of the goal.
    """
    budget = _left_after(problem.n, epsilon_test, max_epsilon, "a larger target, margin or max_epsilon")
    first = max(1 / problem.n, epsilon_test / 64)
    last = min(problem.theory_epsilon(perturbation, noise), _gradient_epsilon(problem, perturbation, noise))
    return _within(budget, levels, first, last, n_levels, epsilon_test, max_epsilon)


def stationary_levels(
    problem: Problem,
    perturbation: Perturbation,
    epsilon_test: float,
    n_levels: int,
    max_epsilon: float | None,
    noise: Noise = "laplace",
) -> tuple[float, ...]:
    """Return levels for a search stopped by the gradient test, within the budget."""
    budget = _left_after(problem.n, epsilon_test, max_epsilon, "a larger excess_risk or max_epsilon")
    # a gradient stays long for longer than the risk stays high: go on until its noise is a quarter of the target
    last = max(problem.theory_epsilon(perturbation, noise), _gradient_epsilon(problem, perturbation, noise))
    last = min(4 * last, budget * (1 - 1e-12))
    return geometric_levels(min(max(1 / problem.n, epsilon_test / 64), last / 4), last, n_levels)


def _gradient_epsilon(problem: Problem, perturbation: Perturbation, noise: Noise) -> float:
    """Return the ε at which noise typically makes a gradient of √(2λα), hence an excess risk of at most α."""
    target, p = math.sqrt(2 * problem.regularization * problem.excess_risk), problem.p
    if perturbation == "covariance":
        length = 4 * math.sqrt(2) * (math.sqrt(p) + (math.sqrt(p) + 0.5) * problem.radius) / problem.n
    else:  # root mean square of ‖b‖₂ at ε = 1, times the largest curvature
        root = problem.output_sensitivity * math.sqrt(2 * p)
        if noise == "spherical":
            root = problem.output_l2_sensitivity * math.sqrt(p * (p + 1))
        length = (problem.loss.curvature + problem.regularization) * root
    return length / target


def level_count(calibration: str, levels: Sequence[float] | None, n_levels: int | None) -> int:
    """Return how many levels are searched: those given, as many as asked for, or the default."""
    if levels is not None:
        if n_levels is not None:
            raise ValueError("pass levels or n_levels, not both")
        return len(check_levels(levels))
    if n_levels is None:
        return _DEFAULT_LEVELS.get(calibration, 32)
    if n_levels < 1 or int(n_levels) != n_levels:
        raise ValueError(f"n_levels must be a positive integer, got {n_levels}")
    return int(n_levels)


def positive(name: str, value: float) -> None:
    """Raise a helpful error unless ``value`` is a positive finite number."""
    if not (isinstance(value, int | float) and 0 < value < math.inf):
        raise ValueError(f"{name} must be a positive finite number, got {value!r}")


def one_of(name: str, value: object, allowed: Sequence[object]) -> None:
    """Raise a helpful error unless ``value`` is one of ``allowed``."""
    if value not in allowed:
        raise ValueError(f"{name} must be one of {list(allowed)}, got {value!r}")
