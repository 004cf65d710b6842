"""The search: reveal hypotheses level by level, most private first, until a rule says stop.

Anything that yields values whose prefix up to level t is ε_t-private can be searched, with any post-processing of
the values into hypotheses and any stopping rule; nothing here knows about regression.

*Theorem* (the paper's lemma on AboveThreshold with private queries): if the prefix up to t is ε_t-private and,
for every fixed sequence of hypotheses, the rule's decision to stop at t is e-private, then revealing the prefix and
the decision costs ε_t + e. What the rule reads only through the revealed values costs nothing (e = 0).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, Protocol

from expost.exceptions import AccuracyNotReached
from expost.noise.path import LevelValue
from expost.privacy.composition import add_losses
from expost.privacy.release import Release


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


class StoppingRule(Protocol):
    """Looks at one hypothesis after another and says stop or go on."""

    @property
    def name(self) -> str:
        """What the release calls this method."""
        ...

    @property
    def secure(self) -> bool:
        """Whether its noise may protect anyone."""
        ...

    def accepts(self, hypothesis: Any) -> bool:
        """Whether to stop at this hypothesis."""
        ...

    @property
    def epsilon_stop(self) -> float:
        """Test loss so far if the rule has just accepted."""
        ...

    @property
    def epsilon_never(self) -> float:
        """Test loss if nothing was accepted."""
        ...

    @property
    def epsilon_worst_case(self) -> float:
        """Largest test loss of any outcome."""
        ...


def search(
    path: PrefixPrivate,
    postprocess: Callable[[Any], Any] | None,
    rule: StoppingRule,
    *,
    on_failure: Literal["raise", "return"] = "raise",
) -> Release:
    """Search a path of gradual release for the most private hypothesis that a rule accepts.

    Parameters
    ----------
    path
        A :class:`~expost.noise.NoisePath` or :class:`~expost.noise.SphericalPath`, or anything :class:`PrefixPrivate`.
        Its attribute ``noise``, if it has one, says what the release says: ``"exact"`` or ``"over the reals"``.
    postprocess
        Turns the revealed values into a hypothesis; ``None`` leaves them as they are.
    rule
        A :class:`StoppingRule`.
    on_failure
        What to do when no level qualifies: raise :class:`~expost.exceptions.AccuracyNotReached` (which carries the
        refusal), or return the refusal.

    Returns
    -------
    Release

    Examples
    --------
    A histogram whose largest error is at most 40, as privately as the data allow (one row replaced moves two
    counts by one each; the error itself moves by at most one):

    >>> import numpy as np
    >>> from expost import AboveThreshold, ErrorQuery, NoisePath, calibrate, geometric_levels, search
    >>> counts = np.array([523, 1012, 77, 0, 3141])
    >>> levels = geometric_levels(0.001, 10.0, 40)
    >>> path = NoisePath(counts, 2, levels, random_state=0)
    >>> worst = ErrorQuery(lambda noisy: float(np.abs(noisy - counts).max()), sensitivity=1.0)
    >>> delta = worst.effective_sensitivity
    >>> test = calibrate("tight", target=40.0, failure_probability=0.05, n_tests=40, sensitivity=delta)
    >>> release = search(path, None, AboveThreshold(worst, test, 40, random_state=1))
    >>> release.status, release.epsilon < 1.5
    ('released', True)
    """
    levels = path.levels
    # Running out of tests half-way would tell that nothing passed, and leave without a release that says what it cost.
    if getattr(rule, "n_tests", len(levels)) < len(levels):
        raise ValueError(f"the rule is made for {rule.n_tests} hypotheses, the path has {len(levels)} levels")  # type: ignore[attr-defined]
    secure = path.secure and rule.secure
    exact = getattr(path, "noise", "exact") == "exact"
    noise: Literal["exact", "over the reals"] = "exact" if exact else "over the reals"
    worst = add_losses(levels[-1], rule.epsilon_worst_case)
    for step in path:
        if getattr(rule, "rejects_next_unseen", False):
            rule.skip()  # type: ignore[attr-defined]  # decided by noise alone: spare the post-processing
            continue
        hypothesis = step.values if postprocess is None else postprocess(step.values)
        if rule.accepts(hypothesis):
            return Release(
                status="released",
                method=rule.name,
                epsilon_generation=step.epsilon,
                epsilon_test=rule.epsilon_stop,
                epsilon_worst_case=worst,
                hypothesis=hypothesis,
                level=step.index,
                n_levels=len(levels),
                noise=noise,
                secure=secure,
            )
    refusal = Release(
        status="refused",
        method=rule.name,
        epsilon_generation=levels[-1],
        epsilon_test=rule.epsilon_never,
        epsilon_worst_case=worst,
        n_levels=len(levels),
        noise=noise,
        secure=secure,
    )
    if on_failure == "return":
        return refusal
    raise AccuracyNotReached(refusal)
