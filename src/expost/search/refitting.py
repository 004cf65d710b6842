"""Another λ, or fewer columns, from second moments that were released: at no further cost.

*Released*: θ, a function of the noisy XᵀX and Xᵀy that a release holds (``keep_statistics``). *Theorem (privacy)*:
post-processing. Whoever has the release could do this; that the moments may be in it at all is because the loss it
reports is that of revealing them (`expost.stopping.certificates.covariance`), θ̂ being a function of them.
*Theorem (accuracy)*: the event of the covariance certificate is about every θ and mentions no λ. So with the
probability stated for the first promise the certificate evaluated here holds too, for every λ and every choice of
columns at once: where θ is zero but for the columns S, the risk over S has the gradient (∇L(θ))_S and the second
moments of S, and ‖(Bθ − b)_S‖ ≤ ‖Bθ − b‖. λ and S may be chosen by what was released. What is promised is what comes
out, not what was asked for; where it is no less than the null model misses at most, nothing is promised.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from expost import validation
from expost.erm.losses import SquaredLoss
from expost.erm.problem import Problem
from expost.goals.excess_risk import ExcessRisk
from expost.mechanisms import Covariance
from expost.privacy.account import Account
from expost.privacy.release import Promise, Release
from expost.search.described import with_model
from expost.search.methods import METHODS
from expost.search.request import Request
from expost.stopping.certificates.covariance import Seen


def refit(release: Release, *, regularization: float | None = None, columns: Sequence[str] | None = None) -> Release:
    """Fit another λ or fewer columns to second moments that were released; costs nothing.

    Parameters
    ----------
    release : Release
        A release with statistics: ``AccuracyFirstRidge(..., keep_statistics=True)``.
    regularization : float, optional
        Another λ; by default the release's own.
    columns : sequence of str, optional
        The columns to predict from; by default all of them. A constant stays.

    Returns
    -------
    Release
        Its ``epsilon_increment`` is zero. The promise states what the moments prove about the new model.

    Examples
    --------
    >>> import numpy as np
    >>> from expost import AccuracyFirstRidge, refit
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 10, size=(50_000, 3))
    >>> y = X @ [2.0, -1.0, 0.5] + rng.normal(size=50_000)
    >>> model = AccuracyFirstRidge(
    ...     excess_risk=0.01, bounds=(0, 10), target_bounds=(-15, 30), keep_statistics=True, random_state=0
    ... )
    >>> first = model.fit(X, y).release_
    >>> other = refit(first, regularization=0.05, columns=["x0", "x1"])
    >>> other.epsilon_increment, other.parameters["coef"][2], other.promise.excess_risk < 0.05
    (0.0, 0.0, True)
    """
    said = release.parameters.get("statistics")
    if said is None:
        raise ValueError(
            f"release {release.id} has no statistics to fit to: pass keep_statistics=True to the first fit, one "
            f"without a schema and for an excess risk. Where the null model was good enough none are revealed"
        )
    lam = validation.regularization(release.promise.regularization if regularization is None else regularization)
    seen = Seen.read(said)
    places = _places(release.parameters, len(seen.first), columns)
    theta = np.zeros(len(seen.first))
    theta[places], certificate = seen.of_columns(places).best(lam)
    account = Account("refit", release.epsilon_worst_case, release.secure)
    account.generation, account.test = release.epsilon_generation, release.epsilon_test
    account.probe = release.epsilon_probe
    made = account.released(theta)
    problem = Problem.of(SquaredLoss(), n=release.parameters["n"], p=len(places), regularization=lam)
    gamma = release.promise.failure_probability
    assert gamma is not None
    request = Request(problem, ExcessRisk(certificate), METHODS["certified"], Covariance(), gamma)
    made = made.with_details(**request.details(made))
    parameters = {**made.parameters, "statistics": said, "continues": release.id, "epsilon_increment": 0.0}
    made = with_model(made.with_details(method="refit", parameters=parameters), release, request)
    return made.with_details(promise=_promise(made.promise, certificate, len(places) < len(theta)))


def _promise(promise: Promise, certificate: float, fewer: bool) -> Promise:
    if certificate >= SquaredLoss().null_value:
        return Promise("no accuracy is promised: the moments are too noisy for this regularization")
    if not fewer:
        return promise
    return dataclasses.replace(promise, statement=f"{promise.statement}, among models of the columns kept")


def _places(said: Mapping[str, Any], p: int, columns: Sequence[str] | None) -> list[int]:
    """Return the places of the columns, and of a constant, which comes last."""
    names = list(said.get("columns", [f"x{j}" for j in range(p)]))
    if columns is None:
        return list(range(p))
    if isinstance(columns, str) or not columns:
        raise ValueError("columns must list at least one column")
    unknown = [name for name in columns if name not in names]
    if unknown:
        raise ValueError(
            f"there are no column(s) {', '.join(map(str, unknown))} in the release; it has {', '.join(names)}"
        )
    if len(set(columns)) < len(columns):
        raise ValueError("columns are listed twice")
    return sorted(names.index(name) for name in columns) + list(range(len(names), p))
