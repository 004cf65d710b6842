"""Ways to make hypotheses of private rows: where the noise goes, and what a hypothesis costs at every level.

Names are imported when asked for: the command line reads :data:`NAMES` and :data:`NOISES` alone until it knows that it
was called rightly.
"""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING

from expost import validation
from expost.lazy import public_names

if TYPE_CHECKING:
    from expost.mechanisms.mechanism import Generator as Generator, Mechanism as Mechanism, Noise as Noise
    from expost.mechanisms.moments.covariance import (
        Covariance as Covariance,
        CovarianceGenerator as CovarianceGenerator,
    )
    from expost.mechanisms.objective.perturbation import (
        ObjectiveGenerator as ObjectiveGenerator,
        ObjectivePerturbation as ObjectivePerturbation,
    )
    from expost.mechanisms.objective.through_huber import (
        ThroughHuber as ThroughHuber,
        ThroughHuberGenerator as ThroughHuberGenerator,
    )
    from expost.mechanisms.output import Output as Output, OutputGenerator as OutputGenerator
    from expost.solve.problem import Problem
    from expost.table.shape import Geometry

    MECHANISMS: dict[str, type[Mechanism]]

#: The class of every mechanism, by the name the caller knows it by.
NAMES = {"covariance": "Covariance", "output": "Output"}
#: What may be chosen by name for tables with a schema (`expost.search.request`).
WITH_SCHEMA = ("descent", "objective", "covariance")
#: The kinds of noise, as `Noise` has them.
NOISES = ("laplace", "spherical")


def _mechanisms() -> dict[str, type[Mechanism]]:
    """Return every mechanism by name."""
    return {name: getattr(sys.modules[__name__], kind) for name, kind in NAMES.items()}


__getattr__, __all__ = public_names(__name__, {"MECHANISMS": _mechanisms})


def mechanism_of(name: str, *, noise: str = "laplace", full_matrix: bool = False) -> Mechanism:
    """Return the mechanism of a name."""
    validation.one_of("perturbation", name, list(NAMES))
    return _mechanisms()[name].of(noise=noise, full_matrix=full_matrix)


def mechanism_for(
    name: str | None,
    problem: Problem,
    *,
    noise: str = "laplace",
    full_matrix: bool = False,
    shape: Geometry | None = None,
) -> Mechanism:
    """Return the mechanism of a name, or the one that is predicted to be cheapest.

    Where it may be chosen by an excess risk, that is objective perturbation: its noise is on the gradient, which one
    row moves by 2/n, and not on the minimiser, which one row moves by 2/(nλ). The squared loss gets there through
    Huber's, if that is predicted to cost less than second moments once the excess risk is known. It is analysed over
    the reals, and compares with the unconstrained optimum.

    Parameters
    ----------
    name, problem, noise, full_matrix
        The caller's choice, what is minimised, and options of the choice.
    shape
        The shape of the rows, where an excess risk is asked for and the mechanism may be chosen for it.

    Examples
    --------
    >>> from expost.solve import LogisticLoss, Problem, SquaredLoss
    >>> from expost.table.shape import l1_ball
    >>> problems = [Problem.of(loss, n=1000, p=5, regularization=0.01) for loss in (SquaredLoss(), LogisticLoss())]
    >>> [mechanism_for(None, problem).name for problem in problems]
    ['covariance', 'output']
    >>> [mechanism_for(None, problem, shape=l1_ball(5)).name for problem in problems]
    ['objective', 'objective']
    """
    from expost.mechanisms.objective.perturbation import ObjectivePerturbation
    from expost.mechanisms.objective.through_huber import ThroughHuber

    if name is not None:
        return mechanism_of(name, noise=noise, full_matrix=full_matrix)
    if shape is not None and not full_matrix and ObjectivePerturbation.applies(problem, noise=noise):
        if math.isfinite(problem.loss.lipschitz(math.inf)):
            return ObjectivePerturbation(shape)
        if ThroughHuber.stands_for(problem, shape):
            return ThroughHuber(shape)
    chosen = "covariance" if problem.loss.name == "squared" else "output"
    return mechanism_of(chosen, noise=noise, full_matrix=full_matrix)
