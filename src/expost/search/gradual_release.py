"""The search: reveal hypotheses level by level, most private first, until a rule says stop.

Anything that yields values whose prefix up to level t is ε_t-private can be searched, with any post-processing of
the values into hypotheses and any stopping rule; nothing here knows about regression.

*Theorem* (the paper's lemma on AboveThreshold with private queries): if the prefix up to t is ε_t-private and,
for every fixed sequence of hypotheses, the rule's decision to stop at t is e-private, then revealing the prefix and
the decision costs ε_t + e. What the rule reads only through the revealed values costs nothing (e = 0).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from expost.exceptions import unspent
from expost.mechanisms.mechanism import Generator
from expost.noise.path import LevelValue
from expost.noise.source import WordSource
from expost.privacy.account import Account, Spending, released
from expost.privacy.composition import add_losses
from expost.privacy.ledger import Ledger
from expost.privacy.release import Release
from expost.privacy.shared import current
from expost.stopping.above_threshold import ThresholdTest
from expost.stopping.measure import Measure
from expost.stopping.rule import StoppingRule

TESTED_CLAIM = "one row replaced moves what is tested by no more than its stated sensitivity"


@dataclass(frozen=True)
class GradualPlan:
    """Levels, and the test that stops at one of them; public.

    Attributes
    ----------
    levels, test
        The privacy levels, and the test.
    measure, hypothesis
        What is tested and how values become hypotheses, for a generator.
    details, reasons
        What the release says.
    """

    levels: tuple[float, ...]
    test: ThresholdTest
    measure: Callable[[Generator], Measure]
    hypothesis: Callable[[Generator], Callable[[Any], Any]] = lambda generator: generator.hypothesis
    details: Mapping[str, Any] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if len(self.levels) > self.test.n_tests:
            raise ValueError(f"{len(self.levels)} levels are more than the {self.test.n_tests} hypotheses of the test")

    @property
    def worst_case(self) -> float:
        """No outcome costs more."""
        return add_losses(self.levels[-1], self.test.epsilon)

    def search(self, generator: Generator, account: Account, source: WordSource) -> Release:
        """Draw the test's noise, then the path, and stop at the first level that passes."""
        rule = self.test.on(self.measure(generator), source)
        account.reasons.extend(self.reasons)
        path = generator.path(self.levels, source)
        return first_accepted(path, rule, self.hypothesis(generator), account, **self.details)


class PrefixPrivate(Protocol):
    """A generator whose first t values together are ``levels[t]``-private."""

    @property
    def levels(self) -> Sequence[float]:
        """The privacy levels, increasing."""
        ...

    @property
    def secure(self) -> bool:
        """Whether its noise may protect anyone."""
        ...

    def __iter__(self) -> Iterator[LevelValue]:
        """Yield the values, the most private first."""
        ...


@unspent()
def search_path(
    path: PrefixPrivate,
    rule: StoppingRule,
    postprocess: Callable[[Any], Any] | None = None,
    *,
    ledger: Ledger | None = None,
) -> Release:
    """Search a path of gradual release for the most private hypothesis that a rule accepts.

    Parameters
    ----------
    path
        A :class:`~expost.noise.NoisePath` or :class:`~expost.noise.SphericalPath`, or anything :class:`PrefixPrivate`.
        Its attribute ``noise``, if it has one, says what the release says: ``"exact"`` or ``"over the reals"``.
    rule
        A :class:`~expost.stopping.StoppingRule`.
    postprocess
        Turns the revealed values into a hypothesis; ``None`` leaves them as they are.
    ledger : Ledger, optional
        Holds the worst case before the first level is tested, and is charged what the search cost.

    Returns
    -------
    Release

    Raises
    ------
    AccuracyNotReached
        When no level qualifies; carries the refusal and its cost.

    Examples
    --------
    A histogram whose largest error is at most 40, as privately as the data allow (one row replaced moves two
    counts by one each; the error itself moves by at most one):

    >>> import numpy as np
    >>> from expost.noise import NoisePath
    >>> from expost.search import geometric_levels
    >>> from expost.stopping import AboveThreshold, ErrorMeasure, calibrate
    >>> counts = np.array([523, 1012, 77, 0, 3141])
    >>> levels = geometric_levels(0.001, 10.0, 40)
    >>> path = NoisePath(counts, 2, levels, random_state=0)
    >>> worst = ErrorMeasure(lambda noisy: float(np.abs(noisy - counts).max()), sensitivity=1.0)
    >>> delta = worst.effective_sensitivity
    >>> test = calibrate("tight", target=40.0, failure_probability=0.05, n_tests=40, sensitivity=delta)
    >>> release = search_path(path, AboveThreshold(worst, test, 40, random_state=1))
    >>> release.status, release.epsilon < 1.5
    ('released', True)
    """

    current(0.0)  # a search of this kind books no curve, so a shared budget could not count it

    claims: tuple[str, ...] = (
        "the first values of the path are together as private as its levels state: one row replaced moves what is on "
        "it by no more than its sensitivity",
        TESTED_CLAIM,
        *(() if postprocess is None else ("what is made of revealed values reads nothing else of the rows",)),
    )

    def work(spending: Spending) -> Release:
        account = Account(rule.name, worst_case(path, rule), path.secure and rule.secure)
        spending.begin(account.interrupted().with_details(claims=claims))
        return released(spending.end(first_accepted(path, rule, postprocess, account, claims=claims)))

    return Spending(ledger).guard(work)


def worst_case(path: PrefixPrivate, rule: StoppingRule) -> float:
    """Return what no outcome exceeds: the last level and the dearest test. Raise if the rule has too few tests."""
    # Running out of tests half-way would tell that nothing passed, and leave without a release that says what it cost.
    if getattr(rule, "n_tests", len(path.levels)) < len(path.levels):
        raise ValueError(f"the rule is made for {rule.n_tests} hypotheses, the path has {len(path.levels)} levels")  # type: ignore[attr-defined]
    return add_losses(path.levels[-1], rule.epsilon_worst_case)


def first_accepted(
    path: PrefixPrivate, rule: StoppingRule, postprocess: Callable[[Any], Any] | None, account: Account, **details: Any
) -> Release:
    """Reveal level after level until the rule accepts; book what that costs and return the release or the refusal."""
    details = {"n_levels": len(path.levels), "noise": getattr(path, "noise", "exact"), **details}
    for step in path:
        if getattr(rule, "rejects_next_unseen", False):
            rule.skip()  # type: ignore[attr-defined]  # decided by noise alone: spare the post-processing
            continue
        hypothesis = step.values if postprocess is None else postprocess(step.values)
        if rule.accepts(hypothesis):
            account.generation = add_losses(account.generation, step.epsilon)
            account.test = add_losses(account.test, rule.epsilon_stop)
            return account.released(hypothesis, level=step.index, **details)
    account.generation = add_losses(account.generation, path.levels[-1])
    account.test = add_losses(account.test, rule.epsilon_never)
    return account.refused(**details)
