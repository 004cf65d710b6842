"""Ways to make hypotheses of private rows: where the noise goes, and what a hypothesis costs at every level."""

import math

from expost import validation
from expost.erm.geometry import l1_ball
from expost.erm.problem import Problem
from expost.mechanisms.covariance import Covariance, CovarianceGenerator
from expost.mechanisms.mechanism import Generator, Mechanism, Noise
from expost.mechanisms.objective import ObjectiveGenerator, ObjectivePerturbation
from expost.mechanisms.output import Output, OutputGenerator

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
    name: str | None, problem: Problem, *, noise: str = "laplace", full_matrix: bool = False, excess_risk: bool = False
) -> Mechanism:
    """Return the mechanism of a name, or the one that is predicted to be cheapest.

    For an excess risk (``excess_risk``) and a loss whose slope is bounded that is objective perturbation: its noise is
    on the gradient, which one row moves by 2/n, and not on the minimiser, which one row moves by 2/(nλ). It is
    analysed over the reals, and compares with the unconstrained optimum.

    Examples
    --------
    >>> from expost.erm import LogisticLoss, SquaredLoss
    >>> [
    ...     mechanism_for(None, Problem.of(loss, n=1000, p=3, regularization=0.01), excess_risk=True).name
    ...     for loss in (SquaredLoss(), LogisticLoss())
    ... ]
    ['covariance', 'objective']
    """
    if name is not None:
        return mechanism_of(name, noise=noise, full_matrix=full_matrix)
    bounded = math.isfinite(problem.loss.lipschitz(math.inf)) and not problem.paper_constants
    if excess_risk and bounded and noise == "laplace" and not problem.radius_stated:
        return ObjectivePerturbation(l1_ball(problem.p))
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
    "mechanism_for",
    "mechanism_of",
]
