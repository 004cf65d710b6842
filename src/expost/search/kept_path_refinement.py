"""Going on with a kept path: more accuracy later, for the difference in privacy (theory B11); and refits for nothing.

A first certified search draws a path whose levels go on beyond what it needs, and keeps the values at the levels that
it did not reveal, sealed under the curator's key together with the first release's id. A later request reveals further
levels of the same path.

*Released*, now and later: levels of one path, and what the first search asked beside it (the null model; a noisy trace
for output perturbation). *Theorem (privacy)*: all instalments together cost what was asked beside the path and the
largest level revealed, not a sum (`expost.noise.laplace`, and adaptive composition with the rest, which does not depend
on the path). *Theorem (accuracy)*: with probability 1 − γ over the noise *all* promises hold that are ever made on the
path, however later requests are chosen. One event sees to that, because the grid of levels is fixed before the path is
drawn: for second moments the norm of the noise is bounded at all levels at once
(`expost.mechanisms.moments.certificate`), an event that mentions neither α nor λ, so λ may change from one request to
the next; for minimisers there is a level for each excess risk that may be asked for (`expost.mechanisms.output`).

The later release states in ``epsilon`` what all releases on the path have cost together, names the one it continues,
and has in ``epsilon_increment`` what it adds, rounded up: the first's ``epsilon`` and the increments never add up to
less than the whole. Going on twice from the same release is sound as well, and booked at more than it costs.

**Another λ, or fewer columns, from second moments that were released**, at no further cost.

*Released*: θ, a function of the noisy XᵀX and Xᵀy that a release holds (``keep_statistics``). *Theorem (privacy)*:
post-processing. Whoever has the release could do this; that the moments may be in it at all is because the loss it
reports is that of revealing them (`expost.mechanisms.moments.certificate`), θ̂ being a function of them.
*Theorem (accuracy)*: the event of the covariance certificate is about every θ and mentions no λ. So with the
probability stated for the first promise the certificate evaluated here holds too, for every λ and every choice of
columns at once: where θ is zero but for the columns S, the risk over S has the gradient (∇L(θ))_S and the second
moments of S, and ‖(Bθ − b)_S‖ ≤ ‖Bθ − b‖. λ and S may be chosen by what was released. What is promised is what comes
out, not what was asked for; where it is no less than the null model misses at most, nothing is promised.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from expost import defaults, validation
from expost.account import Ledger, add_losses
from expost.account.account import Account, Spending, current, released, unspent, warn_if_large
from expost.exceptions import PathNotKeptWarning, TargetUnreachable, warn
from expost.goals.excess_risk import ExcessRisk
from expost.goals.goal import excess_risk_of
from expost.mechanisms import Covariance, mechanism_of
from expost.mechanisms.moments.certificate import CovariancePlan, Seen, certify_from
from expost.noise.laplace import KeptLevels
from expost.numeric import one_thread
from expost.release.kept_path import read_key, seal, unseal, write_private
from expost.release.release import Promise, Release, plain
from expost.search import METHODS
from expost.search.request import Request
from expost.shown import down, up
from expost.solve import LogisticLoss, Loss, Problem, SquaredLoss
from expost.solve.losses import weighted
from expost.table.bounds_encoding import Preparation


def with_model(release: Release, before: Release, request: Request) -> Release:
    """Say of a release what an earlier one about the same table says of it, and give its model in the caller's units.

    A release of rows that were prepared by hand says nothing about units, and then neither does this one.
    """
    said = ("claims", "not_covered", "neighbours", "unit", "target", "columns")
    known = {name: getattr(before, name) for name in (*said, "schema_fingerprint", "data_fingerprint")}
    if "n_columns" not in before.preparation:
        return release.with_details(**known)
    recipe = Preparation.described(before.preparation)
    old, new = before.promise.regularization, request.problem.regularization
    weights = {
        name: np.asarray(value) * (new / old)
        for name, value in before.preparation.items()
        if name in ("regularization_per_column", "regularization_constant") and old
    }
    promise = release.promise
    if request.goal is not None:
        half = 1.0 if recipe.target is None else (recipe.target[1] - recipe.target[0]) / 2
        promise = request.goal.in_caller_units(promise, half**2)
    return release.with_details(
        **known,
        promise=promise,
        preparation={**before.preparation, **weights},
        parameters={**release.parameters, **_model(release, before.parameters, recipe)},
    )


def _model(release: Release, before: Mapping[str, Any], recipe: Preparation) -> dict[str, Any]:
    if release.hypothesis is None:
        return {}
    coef, intercept = recipe.to_caller_units(np.asarray(release.hypothesis))
    names = before.get("columns", [f"x{j}" for j in range(len(coef))])
    labels = {"classes": before["classes"]} if "classes" in before else {}
    return {"columns": list(names), "coef": coef, "intercept": intercept, **labels}


_LOSSES: dict[str, Loss] = {"squared": SquaredLoss(), "logistic": LogisticLoss()}
_APART = 0.99
TOGETHER = "with that probability every promise made on this path holds, those of the releases it continues included"


@dataclass(frozen=True)
class KeepPath:
    """Where a path is kept, under which key, and how accurate later requests may want to be.

    Parameters
    ----------
    file : path
        A new file, for the sealed path.
    key : path
        The curator's key, as ``expost key`` makes it.
    later : float or sequence of float
        Excess risks that later requests may ask for. A path of second moments serves every one down to the smallest; a
        path of minimisers has a level for each, which the others pay for, so name few.
    """

    file: str | os.PathLike[str]
    key: str | os.PathLike[str]
    later: float | Sequence[float]

    def settle(self, request: Request) -> Any:
        """Return the search that keeps its path, or say what is wrong before anything is spent."""
        read_key(self.key)
        file = Path(self.file)
        if file.exists():
            raise ValueError(f"{file} is there already; name another file for the path")
        if not os.access(file.absolute().parent, os.W_OK | os.X_OK):
            raise ValueError(f"the folder of {file} does not exist or cannot be written to")
        alpha = excess_risk_of(request.goal)
        if alpha is None or request.method.name not in ("auto", "certified"):
            raise ValueError("a path is kept for an excess_risk by method='auto' or 'certified', whose proofs go on")
        if request.on_failure != "refuse":
            raise ValueError("a path is kept with on_failure='refuse' only")
        if type(request.problem.loss.unweighted) not in map(type, _LOSSES.values()):
            raise ValueError("a path is kept for the squared and the logistic loss only")
        with one_thread():
            return request.mechanism.refinable(request, alpha, self._later(alpha))

    def _later(self, excess_risk: float) -> tuple[float, ...]:
        """Return the excess risks in decreasing order; levels have to be told apart, so these have to be, too."""
        stated = self.later if isinstance(self.later, Sequence) else [self.later]
        later = tuple(sorted({validation.positive("later", value) for value in stated}, reverse=True))
        if not later or any(low > _APART * high for high, low in pairwise((excess_risk, *later))):
            raise ValueError(
                f"later must be excess risks below the one asked for first, {excess_risk:g}, and apart from each "
                f"other; got {self.later!r}"
            )
        return later

    def store(self, plan: Any, request: Request, release: Release) -> None:
        """Seal what is left of the path and write it; a file that cannot be written does not undo the release."""
        if plan.kept is None:
            return
        problem = request.problem
        header = {
            **plan.said,
            "release": release.id,
            "rows": _rows_of(release),
            "first": release.level or 0,
            "size": len(plan.kept.values[0]),
            "values": plan.kept.kind,
            "loss": problem.loss.unweighted.name,
            "class_weights": problem.loss.class_weights,
            "n": problem.n,
            "p": problem.p,
            "regularization": problem.regularization,
            "failure_probability": request.failure_probability,
            "noise": getattr(request.mechanism, "noise", "laplace"),
            "keep_statistics": request.keep_statistics,
            "finest": self._later(math.inf)[-1],
            "secure": release.secure,
            "epsilon_test": release.epsilon_test,
            "epsilon_probe": release.epsilon_probe,
        }
        content = json.dumps(header).encode() + b"\n" + plan.kept.after(release.level or 0).to_bytes()
        try:
            write_private(Path(self.file), seal(content, read_key(self.key), release.id))
        except (OSError, ValueError) as error:
            warn(
                f"the path could not be kept ({error}); the release stands, but nothing can go on from it",
                PathNotKeptWarning,
            )


@unspent()
def refine(
    release: Release,
    path: str | os.PathLike[str],
    key: str | os.PathLike[str],
    *,
    excess_risk: float,
    regularization: float | None = None,
    max_epsilon: float | None = None,
    ledger: Ledger | None = None,
) -> Release:
    """Go on from a release to a more accurate one on the same path, and pay the difference.

    Parameters
    ----------
    release : Release
        The release to go on from: the first one on the path, or one that continues it.
    path, key : path
        The sealed path of the first release, and the curator's key.
    excess_risk : float
        α, in scaled units, as for the first release, and not below what its path was kept for (``later``).
    regularization : float, optional
        Another λ, on a path of second moments.
    max_epsilon : float, optional
        No outcome may cost more, everything on the path included: 2 unless more is stated, ``math.inf`` for no limit.
    ledger : Ledger, optional
        Is charged what is new, if the release to go on from is booked there, and everything otherwise. The most it
        could be is held before the path is opened any further.

    Returns
    -------
    Release
        ``epsilon`` is what all releases on the path have cost together, ``epsilon_increment`` what this one adds to
        the one it ``continues``.

    Raises
    ------
    AccuracyNotReached
        No level sufficed; the exception's ``release`` says what the refusal cost.
    TargetUnreachable
        It would take more than ``max_epsilon``; nothing was spent.
    ValueError
        Path, key and release do not belong together.

    Examples
    --------
    >>> import numpy as np, pathlib, tempfile
    >>> from expost import AccuracyFirstRidge, KeepPath, refine
    >>> from expost.release.kept_path import write_key
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 10, size=(50_000, 3))
    >>> y = X @ [2.0, -1.0, 0.5] + rng.normal(size=50_000)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     key, file = pathlib.Path(folder, "curator.key"), pathlib.Path(folder, "survey.path")
    ...     write_key(key)
    ...     model = AccuracyFirstRidge(
    ...         excess_risk=0.02,
    ...         bounds=(0, 10),
    ...         target_bounds=(-15, 30),
    ...         keep_path=KeepPath(file, key, later=0.002),
    ...         random_state=0,
    ...     )
    ...     first = model.fit(X, y).release_
    ...     second = refine(first, file, key, excess_risk=0.005)
    >>> second.continues == first.id, second.promise.excess_risk
    (True, 0.005)
    >>> second.epsilon < first.epsilon + second.epsilon_increment * (1 + 1e-9) < 2 * second.epsilon
    True
    """
    validation.instance("release", release, Release, "the Release to go on from, as model.release_ has it")
    current(0.0)  # what a path adds books no curve, so a shared budget could not count it
    kept = _Kept.opened(release, path, key)
    goal = ExcessRisk(validation.number("excess_risk", excess_risk))
    lam = kept.header["regularization"] if regularization is None else regularization
    request = kept.request(goal, validation.regularization(lam))
    kept.require(goal.at_most, request)
    kept.rehearse(request)
    budget = _budget(release, max_epsilon)

    def go_on(spending: Spending) -> Release:
        outcome = released(kept.go_on(request, budget, spending))
        warn_if_large(outcome)
        return outcome

    return Spending(ledger).guard(go_on)


@dataclass(frozen=True, repr=False)
class _Kept:
    """A path that was opened, beside the release to go on from; private."""

    release: Release
    header: Mapping[str, Any]
    levels: KeptLevels

    @classmethod
    def opened(cls, release: Release, path: str | os.PathLike[str], key: str | os.PathLike[str]) -> _Kept:
        file, root = Path(path), str(release.parameters.get("path", release.id))
        if not file.is_file():
            raise FileNotFoundError(f"there is no path {file}")
        try:
            content = unseal(file.read_bytes(), read_key(key), root)
        except ValueError as error:
            raise ValueError(f"{file}: {error}") from None
        text, _, values = content.partition(b"\n")
        header = json.loads(text)
        if header["release"] != root:
            raise ValueError(f"{file}: it belongs to another release")
        level = release.level
        spent = 0.0 if level is None else header["charges"][level] if level < len(header["charges"]) else math.nan
        stated = (release.epsilon_test, release.epsilon_probe, release.epsilon_generation, release.epsilon_conversion)
        if stated != (header["epsilon_test"], header["epsilon_probe"], spent, 0.0):
            raise ValueError(f"release {release.id} does not say what its path says it cost; was it changed?")
        if header.get("rows", _rows_of(release)) != _rows_of(release):  # paths of earlier versions do not say
            raise ValueError(f"release {release.id} is about other columns or bounds than its path; was it changed?")
        return cls(release, header, KeptLevels.from_bytes(values, header["first"], header["size"], header["values"]))

    def request(self, goal: ExcessRisk, lam: float) -> Request:
        """Return what is asked for, as if it were asked afresh."""
        said = self.header
        # paths of earlier versions know no weights
        loss = weighted(_LOSSES[said["loss"]], tuple(said.get("class_weights", (1.0, 1.0))))
        problem = Problem.of(loss, n=said["n"], p=said["p"], regularization=lam)
        mechanism = mechanism_of(said["kind"], noise=said["noise"])
        gamma, keep = said["failure_probability"], said["keep_statistics"]
        return Request(problem, goal, METHODS["certified"], mechanism, gamma, keep_statistics=keep)

    def require(self, excess_risk: float, request: Request) -> None:
        """Say what this path is not for."""
        said = self.header
        changed = request.problem.regularization != said["regularization"]
        if changed and said["kind"] != "covariance":
            raise ValueError("another regularization needs a path of second moments; this one is of minimisers")
        if excess_risk < said["finest"]:
            raise ValueError(
                f"the path was kept for excess risks of at least {up(said['finest'], 6)}, not {excess_risk:g}; a new "
                f"fit is needed. Nothing was spent."
            )
        promised = self.release.promise.excess_risk
        if self.release.status == "released" and not changed and promised is not None and excess_risk >= promised:
            raise ValueError(f"release {self.release.id} promises an excess risk of {promised:g} already")

    def rehearse(self, request: Request) -> None:
        """Say of a made-up model what will be said of the outcome: what does not fit is noticed before it costs."""
        account = self._account(math.inf)
        made_up = self._described(account.released(np.zeros(self.header["p"])), request)
        Release.from_json(made_up.to_json())

    def _account(self, worst: float) -> Account:
        """Return an account on which everything that was revealed on the path is booked."""
        release = self.release
        account = Account("certified", max(worst, release.epsilon), self.header["secure"])
        account.probe, account.test = release.epsilon_probe, release.epsilon_test
        account.generation = release.epsilon_generation
        return account

    def go_on(self, request: Request, budget: float, spending: Spending) -> Release:
        """Reveal what the request takes."""
        release, charges = self.release, self.header["charges"]
        beside = add_losses(release.epsilon_probe, release.epsilon_test)
        worst = min(budget, add_losses(release.epsilon_probe, release.epsilon_test, charges[-1]))
        account = self._account(worst)
        with one_thread():
            level = None if self.header["kind"] == "covariance" else self._level(request, beside, budget)
            spending.begin(self._described(account.interrupted(), request))
            if level is None:
                outcome = certify_from(
                    release.level, len(charges) - 1, self.levels, self._plan(request), account, budget
                )
            else:
                outcome = self._minimiser(level, account)
            return spending.end(self._described(outcome, request))

    def _plan(self, request: Request) -> CovariancePlan:
        said = self.header
        return CovariancePlan(
            request.problem,
            request.goal.number,  # type: ignore[union-attr]  # an excess risk
            tuple(said["levels"]),
            tuple(said["steps"]),
            said["split"],
            said["path_failure_probability"],
            keep_statistics=request.keep_statistics,
        )

    def _level(self, request: Request, beside: float, budget: float) -> int:
        """Return the first level that proves what is asked for; public numbers say which."""
        said, goal = self.header, request.goal
        assert goal is not None
        enough = [t for t, proved in enumerate(said["proves"]) if proved <= goal.number]
        level = max(enough[0], self.release.level or 0)  # there is one: what is asked for is not below the last
        if add_losses(beside, said["charges"][level]) > budget:
            raise TargetUnreachable(
                f"it would take epsilon = {up(add_losses(beside, said['charges'][level]))} altogether, more than "
                f"max_epsilon = {down(budget)}. Nothing was spent."
            )
        return level

    def _minimiser(self, level: int, account: Account) -> Release:
        said = self.header
        account.generation = said["charges"][level]
        account.reasons.append(f"epsilon = {up(said['levels'][level])} provably suffices")
        values = self.levels[level].astype(np.float64)
        theta = values if said["unit"] is None else values * said["unit"]
        return account.released(theta, level=level, n_levels=len(said["levels"]))

    def _described(self, outcome: Release, request: Request) -> Release:
        before = self.release
        noise = "exact" if self.header["noise"] == "laplace" else "over the reals"
        outcome = outcome.with_details(noise=noise)
        made = outcome.with_details(**request.details(outcome))
        promise = replace(made.promise, statement=f"{made.promise.statement}; {TOGETHER}")
        parameters = {
            **made.parameters,
            "path": self.header["release"],
            "continues": before.id,
            "epsilon_increment": add_losses(made.epsilon, -before.epsilon),
        }
        return with_model(made.with_details(promise=promise, parameters=parameters), before, request)


def _rows_of(release: Release) -> str:
    """Return a digest of what a model's units depend on: columns, and how rows were prepared, whatever λ was."""
    made = {name: said for name, said in plain(release.preparation).items() if not name.startswith("regularization")}
    return hashlib.sha256(json.dumps([made, plain(release.columns)], sort_keys=True).encode()).hexdigest()


def _budget(release: Release, max_epsilon: float | None) -> float:
    if max_epsilon == math.inf:
        return math.inf
    stated = validation.budget(max_epsilon) or defaults.MAX_EPSILON
    if stated < release.epsilon:
        raise TargetUnreachable(
            f"max_epsilon = {down(stated)} is about everything on the path, of which epsilon = {up(release.epsilon)} "
            f"is spent. Pass a larger one. Nothing was spent beside it."
        )
    return stated


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
    return replace(promise, statement=f"{promise.statement}, among models of the columns kept")


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
