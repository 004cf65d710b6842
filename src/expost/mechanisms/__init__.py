"""Ways to make hypotheses of private rows: where the noise goes, and what a hypothesis costs at every level."""

import math
from typing import Literal

from expost import validation
from expost.erm.geometry import l1_ball, l2_ball
from expost.erm.problem import Problem
from expost.mechanisms.covariance import Covariance, CovarianceGenerator
from expost.mechanisms.mechanism import Generator, Mechanism, Noise
from expost.mechanisms.objective import ObjectiveGenerator, ObjectivePerturbation
from expost.mechanisms.output import Output, OutputGenerator
from expost.mechanisms.through_huber import ThroughHuber, ThroughHuberGenerator, cheaper_than_moments

Given = Literal["l1", "l2", "sums"]

#: Every mechanism by the name the caller knows it by.
MECHANISMS: dict[str, type[Mechanism]] = {kind.name: kind for kind in (Covariance, Output)}


def mechanism_of(name: str, *, noise: str = "laplace", full_matrix: bool = False) -> Mechanism:
    """Return the mechanism of a name.

    Examples
    --------
    >>> mechanism_of("output", noise="spherical")
    Output(noise='spherical')
    """
    validation.one_of("perturbation", name, list(MECHANISMS))
    return MECHANISMS[name].of(noise=noise, full_matrix=full_matrix)


def mechanism_for(
    name: str | None,
    problem: Problem,
    *,
    noise: str = "laplace",
    full_matrix: bool = False,
    excess_risk: float | None = None,
    failure_probability: float = 0.1,
    max_epsilon: float | None = None,
    given: Given = "l1",
) -> Mechanism:
    """Return the mechanism of a name, or the one that is predicted to be cheapest.

    For an excess risk and a loss whose slope is bounded that is objective perturbation: its noise is on the gradient,
    which one row moves by 2/n, and not on the minimiser, which one row moves by 2/(nλ). The squared loss gets there
    through Huber's, where that is predicted to cost less than second moments. Both are analysed over the reals, and
    compare with the unconstrained optimum.

    Parameters
    ----------
    name, problem, noise, full_matrix
        The caller's choice, what is minimised, and options of the choice.
    excess_risk
        What is asked, where the mechanism may be chosen by it; None where it may not.
    failure_probability, max_epsilon
        γ and the budget, which predictions depend on.
    given
        Rows in the ℓ₁ ball, in the Euclidean one, or their sums only.

    Examples
    --------
    >>> from expost.erm import LogisticLoss, SquaredLoss
    >>> [
    ...     mechanism_for(None, Problem.of(loss, n=1000, p=p, regularization=0.001), excess_risk=0.05).name
    ...     for loss, p in ((SquaredLoss(), 5), (SquaredLoss(), 40), (LogisticLoss(), 5))
    ... ]
    ['covariance', 'objective', 'objective']
    """
    if name is not None:
        return mechanism_of(name, noise=noise, full_matrix=full_matrix)
    free = noise == "laplace" and not full_matrix and not problem.radius_stated and not problem.paper_constants
    if excess_risk is not None and free and given != "sums":
        ball = l1_ball(problem.p) if given == "l1" else l2_ball(problem.p)
        if math.isfinite(problem.loss.lipschitz(math.inf)):
            return ObjectivePerturbation(ball)
        squared = problem.loss.name == "squared" and given == "l1"
        if squared and cheaper_than_moments(problem, excess_risk, failure_probability, max_epsilon):
            return ThroughHuber(ball)
    chosen = "covariance" if problem.loss.name == "squared" else "output"
    return mechanism_of(chosen, noise=noise, full_matrix=full_matrix)


__all__ = [
    "MECHANISMS",
    "Covariance",
    "CovarianceGenerator",
    "Generator",
    "Mechanism",
    "Noise",
    "ObjectiveGenerator",
    "ObjectivePerturbation",
    "Output",
    "OutputGenerator",
    "ThroughHuber",
    "ThroughHuberGenerator",
    "mechanism_for",
    "mechanism_of",
]
