"""What only the curator may look at: how good a release truly is. Nothing here is covered by any guarantee."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from expost.data.rows import Rows
from expost.erm.losses import Loss
from expost.erm.problem import Problem
from expost.mechanisms import mechanism_of
from expost.privacy.release import Release


@dataclass(frozen=True, repr=False)
class CuratorView:
    """The truth about a release, computed from the private rows. Do not publish it."""

    optimum: NDArray[np.float64]
    excess_risk: float | None
    null_excess_risk: float

    def __repr__(self) -> str:
        return "CuratorView(private)"

    def __reduce__(self) -> str:
        raise TypeError("a curator's view is private and cannot be pickled")


def compare_with_optimum(
    rows: Rows, release: Release | None, loss: Loss, *, regularization: float, radius: float | None = None
) -> CuratorView:
    """Compare a release with the true optimum of prepared rows; :func:`expost.curator_view` takes a fitted model."""
    problem = Problem.of(loss, n=rows.n, p=rows.p, regularization=regularization, radius=radius)
    risk = mechanism_of("covariance" if loss.name == "squared" else "output").on(rows, problem).risk
    released = None if release is None or release.hypothesis is None else np.asarray(release.hypothesis)
    return CuratorView(
        optimum=risk.optimum,
        excess_risk=None if released is None else risk.excess(released),
        null_excess_risk=risk.excess(np.zeros(rows.p)),
    )
