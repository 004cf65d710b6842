"""Going on from a released model of a table to a stricter goal: one more search, which begins where the last one ended.

*Released*: the levels and looks of a search in levels (`expost.search.levels`) whose first level is the one after that
of an earlier release, centred at its model (`ContinuedChain` in `expost.mechanisms.objective.chain`). Nothing private
is kept in between: centre and level stand in the earlier release. *Neighbours*: those of that release.

*Theorem (privacy)*. A level is as private whatever its centre is, so given the earlier release the new search costs
what it books, and both together cost the sum (adaptive composition). The account begins with what was paid before, and
takes a step only if the sum with it is within the budget, which is about both. The release states the sum, names what
it continues, and says what of it is new; a ledger that has charged the one is charged the difference. It holds for
whatever file is gone on from: a model and a level that somebody has changed are public numbers all the same, and what
that release cost is taken as stated, unless a ledger knows it.

*Theorem (accuracy)*. Tests of the new search have a γ of their own, and read nothing of the earlier one: what it
promises and shows holds with probability 1 − γ, and with what the earlier release promises and shows, all of it with
the probability 1 less the sum of both γ's.

What is gone on from is checked before a row is looked at; the number of rows, and what the budget allows, before
anything is spent.
"""

from __future__ import annotations

import dataclasses
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from expost import validation
from expost.account.account import Spending
from expost.account.composition import Unit, add_losses
from expost.exceptions import TargetUnreachable
from expost.goals.goal import TestedGoal
from expost.noise.source import SeededSource
from expost.release.release import Release
from expost.release.words import asked, shown
from expost.shown import down, exact, up
from expost.table.encoding import Encoding

_LEVEL = ("typical_noise", "noise_reach", "noise_reach_coverage")  # what a chain says of the level of its model


@dataclass(frozen=True)
class Continuation:
    """A release that a search is to go on from, checked against what is public about that search.

    Attributes
    ----------
    before
        The release.
    """

    before: Release

    @classmethod
    def of(cls, release: Any, encoding: Encoding, goal: TestedGoal, delta: float) -> Continuation:
        """Return it, or say why this release is nothing to go on from for this goal."""
        validation.instance("release", release, Release, "a Release, as model.release_ or Release.from_json has it")
        named, schema = f"release {release.id}", encoding.schema
        if release.hypothesis is None:
            raise ValueError(f"{named} was refused: it holds no model to go on from")
        if release.held_out:
            raise ValueError(f"{named} is about new rows: its models were not fitted to all rows, so fit anew")
        if release.delta or delta:
            raise ValueError("a search is gone on from without a delta only; fit anew, with all of the budget")
        if not all(isinstance(release.parameters.get(name), int | float) for name in _LEVEL):
            raise ValueError(f"{named} does not say at which level its model was drawn: it is of another search")
        if release.schema_fingerprint != schema.fingerprint():
            raise ValueError(f"{named} is about another schema, or other persons")
        if not _same_model(release, encoding):
            raise ValueError(f"{named} states a model in two ways that do not agree; was it changed?")
        if release.promise.numbers.keys() != {each.name for each in goal.each}:
            raise ValueError(f"{named} was searched for by its {release.promise.goal}, which cannot change")
        if release.promise.costs != goal.costs:
            raise ValueError(
                f"{named} was searched for by errors that cost {_said(release.promise.costs)}, which cannot change, "
                f"not {_said(goal.costs)}"
            )
        cls(release)._require_stricter(goal)
        return cls(release)

    def _require_stricter(self, goal: TestedGoal) -> None:
        """Raise if all that is asked for was shown already, or where nothing was, promised."""
        known = self.before.promise.numbers if self.before.status == "released" else {}
        known |= self.before.numbers_shown
        beyond = [
            each
            for each in goal.each
            if (had := known.get(str(each.name))) is None
            or (each.number < had if each.sign == "≤" else each.number > had)
        ]
        if not beyond:
            was = asked(self.before) or ("", "")
            raise ValueError(
                f"release {self.before.id} has that already: {was[0] or goal.name} {shown(self.before) or was[1]}. "
                f"State a goal beyond it"
            )

    def class_weight(self, stated: Any, classes: Sequence[Any] | None) -> Any:
        """Return the weights of classes that the earlier search had, or say that others are stated."""
        had = self.before.parameters.get("class_weights", (1.0, 1.0))
        if stated is not None and validation.class_weights(stated, classes) != tuple(had):
            raise ValueError(
                f"release {self.before.id} was searched for with rows of the negative and of the positive label "
                f"counting {had[0]:g} and {had[1]:g}, which cannot change; leave class_weight out"
            )
        return dict(zip(classes, had, strict=True)) if stated is None and classes is not None else stated

    def require_rows(self, n: int, unit: Unit) -> None:
        """Refuse another number of rows, which is public, or other neighbours."""
        known = self.before.parameters.get("n")
        if n != known or unit.neighbours != self.before.neighbours:
            raise ValueError(f"release {self.before.id} is about other rows: n = {known}, not {n}, or other neighbours")

    def ceiling(self, max_epsilon: float, spending: Spending) -> float:
        """Return what the new search may cost, lowered if a ledger is to lower it: it may have charged the other."""
        if spending.charged(self.before):
            left = self._left(max_epsilon)
            return self._with_room(spending.ceiling(left) or left)
        return self._with_room(self._left(spending.ceiling(max_epsilon) or max_epsilon))

    def _left(self, max_epsilon: float) -> float:
        """Return what is left of a budget for both searches together."""
        paid = self.before.epsilon
        if paid >= max_epsilon:
            raise TargetUnreachable(
                f"max_epsilon = {down(max_epsilon)} is about both searches, and epsilon = {up(paid)} is spent. Pass a "
                f"larger one. Nothing was spent beside it."
            )
        return max_epsilon - paid

    def _with_room(self, left: float) -> float:
        """Return a little less: the sum with what was paid is rounded up, and so is what of it is new to a ledger."""
        return max(left - 1e-12 * (left + self.before.epsilon), 0.5 * left)

    def source(self, random_state: Any) -> Any:
        """Return where noise comes from: for a seed, not what the earlier search had from it."""
        if isinstance(random_state, int | np.integer) and not isinstance(random_state, bool) and random_state >= 0:
            return SeededSource([int(random_state), zlib.crc32(repr(self.before.hypothesis).encode())])
        return random_state

    def described(self, release: Release) -> Release:
        """Say of an outcome what it continues, and what of its cost is new."""
        before = self.before
        beside = f"release {before.id}, which this one continues, has a probability of its own"
        said: Mapping[str, Any] = {
            **release.parameters,
            "continues": before.id,
            "epsilon_increment": add_losses(release.epsilon, -before.epsilon),
        }
        return release.with_details(
            parameters=said,
            promise=dataclasses.replace(release.promise, statement=f"{release.promise.statement}; {beside}"),
            claims=(*release.claims, f"release {before.id} cost what it says"),
        )


def _said(costs: Mapping[str, float] | None) -> str:
    """Say what errors cost."""
    return " and ".join(f"{name}={exact(cost)}" for name, cost in (costs or {}).items()) or "what is not stated"


def _same_model(release: Release, encoding: Encoding) -> bool:
    """Whether coefficients in the table's units are those of the hypothesis, but for rounding on another machine."""
    coefficients, intercept = encoding.to_caller_units(np.asarray(release.hypothesis, dtype=np.float64))
    stated = (*release.parameters.get("coef", ()), release.parameters.get("intercept"))
    made = (*coefficients.values(), intercept)
    return len(stated) == len(made) and None not in stated and bool(np.allclose(stated, made, rtol=1e-9, atol=1e-300))
