"""Ways to make hypotheses of private rows: where the noise goes, and what a hypothesis costs at every level."""

from expost import validation
from expost.mechanisms.covariance import Covariance, CovarianceGenerator
from expost.mechanisms.mechanism import Generator, Mechanism, Noise
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


__all__ = [
    "MECHANISMS",
    "Covariance",
    "CovarianceGenerator",
    "Generator",
    "Mechanism",
    "Noise",
    "Output",
    "OutputGenerator",
    "mechanism_of",
]
