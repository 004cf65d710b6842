"""From rows to what hypotheses are made of, and from there to noisy values: one place for both perturbations."""

from __future__ import annotations

from typing import Any

import numpy as np

from expost.data.rows import Rows
from expost.erm.sums import Sums, sums_of
from expost.noise.path import NoisePath
from expost.noise.source import WordSource
from expost.noise.spherical_path import SphericalPath
from expost.search.covariance import CovarianceGenerator, Solve
from expost.search.output import OutputGenerator
from expost.search.plan import Noise, Perturbation, Problem

Generator = CovarianceGenerator | OutputGenerator


def make_generator(
    rows: Rows | Sums, problem: Problem, perturbation: Perturbation, full_matrix: bool = False, solve: Solve = "ball"
) -> Generator:
    """Return the generator of hypotheses for a perturbation."""
    if perturbation == "covariance":
        if problem.loss.name != "squared":
            raise ValueError(
                f"covariance perturbation needs the squared loss, not {problem.loss.name!r}; use perturbation='output'"
            )
        sums = rows if isinstance(rows, Sums) else sums_of(rows)
        return CovarianceGenerator(sums, problem, full_matrix=full_matrix, solve=solve)
    if isinstance(rows, Sums):
        raise ValueError("output perturbation needs the rows themselves, not their sums")
    return OutputGenerator(rows, problem)


def gradual(
    generator: Generator, levels: tuple[float, ...], noise: Noise, source: WordSource
) -> NoisePath | SphericalPath:
    """Draw the gradual release of what a generator makes hypotheses of."""
    if isinstance(generator, OutputGenerator):
        return generator.path(levels, source, noise)
    return generator.path(levels, source)


def single(generator: Generator, epsilon: float, noise: Noise, source: WordSource) -> Any:
    """Run the single-shot mechanism at one ε: a path with one level."""
    (step,) = gradual(generator, (epsilon,), noise, source)
    return np.asarray(generator.hypothesis(step.values))
