"""How a search is to be run, as the caller asked for it: one value instead of nine arguments everywhere. Public."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from expost.search.goals import Goal, check_goal
from expost.search.plan import Noise, Perturbation, Problem, one_of, positive

Method = Literal["auto", "certified", "stationarity", "above_threshold", "doubling", "theory", "fixed"]
OnFailure = Literal["refuse", "release_optimum"]


@dataclass(frozen=True)
class Settings:
    """What :func:`expost.search.run.run` takes beside rows and problem; see there."""

    method: Method = "above_threshold"
    perturbation: Perturbation = "covariance"
    noise: Noise = "laplace"
    calibration: str = "tight"
    levels: Sequence[float] | None = None
    n_levels: int | None = None
    max_epsilon: float | None = None
    factor: float = 2.0
    goal: Goal | None = None
    on_failure: OnFailure = "refuse"

    def check(self, problem: Problem) -> None:
        """Raise a helpful error for anything that can be seen to be wrong before rows are looked at."""
        one_of("method", self.method, get_args(Method))
        one_of("perturbation", self.perturbation, get_args(Perturbation))
        one_of("on_failure", self.on_failure, get_args(OnFailure))
        one_of("noise", self.noise, get_args(Noise))
        if self.noise == "spherical" and self.perturbation != "output":
            raise ValueError("spherical noise is for perturbation='output'; noise on the second moments is Laplace")
        if self.max_epsilon is not None:
            positive("max_epsilon", self.max_epsilon)
        if self.method == "stationarity" and problem.radius_stated:
            raise ValueError(
                "method='stationarity' compares with the unconstrained optimum, whose gradient alone is zero; leave "
                "radius out"
            )
        if self.goal is not None:
            check_goal(self.goal, problem.loss, self.method, calibration=self.calibration, on_failure=self.on_failure)

    def certifies(self, problem: Problem) -> bool:
        """Whether the search is a certified one: asked for by name, or automatic and applicable."""
        return self.method == "certified" or (self.method == "auto" and self.can_certify(problem))

    def can_certify(self, problem: Problem) -> bool:
        """Whether a certificate applies: the one for output perturbation is about the unconstrained optimum only."""
        return self.perturbation == "covariance" or not problem.radius_stated

    def within(self, max_epsilon: float | None) -> Settings:
        """Return the same for a search of excess risk, with what is left of the budget."""
        return dataclasses.replace(self, goal=None, max_epsilon=max_epsilon, on_failure="refuse")
