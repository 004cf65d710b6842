"""No outcome without its charge: whatever is raised once noise has been drawn carries a release.

A fault is put at every line that a fit runs through after its first draw, one line at a time: each has to come out as
an exception that carries a release, or not at all.
"""

from __future__ import annotations

import functools
import inspect
import sys
from pathlib import Path

import numpy as np
import pytest

import expost
from expost import (
    AccuracyFirstLogisticRegression,
    AccuracyFirstModel,
    AccuracyFirstRidge,
    ErrorRate,
    RelativeExcessRisk,
)
from expost.account import account
from expost.exceptions import AccuracyNotReached, SearchInterrupted
from expost.noise import SeededSource

SOURCE = str(Path(expost.__file__).parent)
N = 1000

_LINES, _FIRST = inspect.getsourcelines(inspect.unwrap(account.unspent))
#: By which what carries a release leaves a door, behind the guard and settled: for a fault there it is the context.
DOOR = {(account.__file__, _FIRST + place) for place in range(len(_LINES))}


class Fault(BaseException):
    """Something that nobody expects and nobody catches."""


class CountingSource:
    """A seeded source that says whether anything was drawn."""

    secure = False

    def __init__(self, seed: int = 1) -> None:
        self._source, self.drawn = SeededSource(seed), 0

    def words(self, count: int) -> np.ndarray:
        self.drawn += count
        return self._source.words(count)


def ridge(**options):
    X = np.random.default_rng(0).uniform(-1, 1, (N, 2))
    return lambda source: AccuracyFirstRidge(
        bounds=1.0, target_bound=2.0, regularization=0.1, random_state=source, **options
    ).fit(X, X @ [1.0, -0.8])


def logistic(**options):
    X = np.random.default_rng(0).uniform(-1, 1, (N, 2))
    return lambda source: AccuracyFirstLogisticRegression(
        bounds=1.0, classes=(False, True), regularization=0.1, random_state=source, **options
    ).fit(X, X @ [1.0, -0.8] > 0)


def chain(**options):
    a = np.random.default_rng(0).uniform(0, 1, N)
    schema = {"target": "y", "classes": [False, True], "columns": {"a": {"bounds": [0, 1]}}}
    return lambda source: AccuracyFirstModel(
        schema, max_epsilon=5.0, on_invalid="clip", random_state=source, **options
    ).fit({"a": a, "y": a > 0.4})


FITS = {
    "certified": ridge(excess_risk=0.05),
    "refused": ridge(excess_risk=0.005, max_epsilon=1.0),
    "tested": ridge(excess_risk=0.2, method="above_threshold", n_levels=6),
    "error rate": logistic(goal=ErrorRate(0.4), n_levels=6),
    "relative": logistic(goal=RelativeExcessRisk(0.5, baseline="null"), max_epsilon=9.0),
    "doubling": logistic(excess_risk=0.3, method="doubling"),
    "certified output": logistic(excess_risk=0.1),
    "fixed": ridge(method="fixed", max_epsilon=1.0),
    "chain": chain(goal=ErrorRate(0.3)),
}


@functools.cache
def _holds(code, where):
    """Whether a line is among those of a function: all others are run through untraced, which is much faster."""
    return (code.co_filename, where[1]) == where and any(line == where[1] for *_, line in code.co_lines())


def traced(fit, at=None):
    """Run a fit; return the lines it runs through after the first draw, or what comes out of a fault at one of them."""
    source, seen, hit = CountingSource(), {}, []

    def trace(frame, event, argument):
        name = frame.f_code.co_filename
        if not name.startswith(SOURCE) or (at and not _holds(frame.f_code, at)):
            return None
        if event == "line" and source.drawn:
            where = (name, frame.f_lineno)
            seen.setdefault(where)
            if where == at and not hit:
                hit.append(where)
                raise Fault("a private value")
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        fit(source)
    except BaseException as error:
        outcome = error
    else:
        outcome = None
    finally:
        sys.settrace(before)
    return list(seen), outcome if at is None or hit else "not reached"


def ways_out(fit, every=1):
    """Return the lines at which a fault leaves without a release, of every so many lines."""
    traced(fit)  # fills caches: what a second run passes by cannot be hit
    lines, _ = traced(fit)
    assert len(lines) > 50
    lost = []
    for where in lines[::every]:
        _, outcome = traced(fit, where)
        assert outcome != "not reached"
        if isinstance(outcome, Fault) and where in DOOR:
            outcome = outcome.__context__
        if not isinstance(outcome, SearchInterrupted | AccuracyNotReached):
            lost.append((where, outcome))
        elif "private" in str(outcome):
            lost.append((where, "quotes a private value"))
    return lost


# the others go the same ways and are left to the audit
QUICK = ("chain", "tested", "relative", "doubling")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in QUICK else [pytest.mark.slow]) for name in FITS]
)
def test_a_fault_at_any_line_carries_a_release(name):
    every = 1 if name in ("fixed", "error rate") else 7
    assert ways_out(FITS[name], every) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", FITS)
def test_a_fault_at_every_single_line(name):
    assert ways_out(FITS[name]) == []


def test_without_the_guard_faults_get_lost(monkeypatch):
    monkeypatch.setattr(account.Spending, "guard", lambda self, work: work(self))
    assert len(ways_out(FITS["fixed"])) > 20


def test_an_interruption_is_charged_with_the_worst_case(monkeypatch):
    """By hand, in the middle: what a person gets who presses control-C."""
    fit = ridge(excess_risk=0.05, max_epsilon=3.0, perturbation="covariance")

    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("expost.mechanisms.moments.covariance.certified_covariance", interrupt)
    with pytest.raises(SearchInterrupted, match="KeyboardInterrupt") as caught:
        fit(SeededSource(3))
    release = caught.value.release
    assert release.status == "refused"
    assert release.epsilon == release.epsilon_worst_case <= 3.0
    assert release.promise.excess_risk == 0.05
    assert "did not come to its end" in release.parameters["reasons"][-1]


def test_what_is_wrong_before_a_draw_is_said_as_it_is():
    with pytest.raises(ValueError, match="excess_risk must be given"):
        ridge()(SeededSource(0))
