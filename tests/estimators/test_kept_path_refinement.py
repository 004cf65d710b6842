"""Going on with a kept path: what it costs, what it promises, and ways to get it wrong."""

from __future__ import annotations

import dataclasses
import math
import stat
import warnings
from fractions import Fraction
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy import stats

from expost import AccuracyFirstLogisticRegression, AccuracyFirstRidge, KeepPath, Release, compose, refine
from expost.exceptions import AccuracyNotReached, LargeEpsilonWarning, SearchInterrupted, TargetUnreachable
from expost.mechanisms.moments.certificate import Seen, split_path
from expost.noise.laplace import KeptLevels
from expost.release import kept_path
from expost.release.kept_path import write_key
from expost.search import compare_with_optimum, kept_path_refinement as refinement
from tests.helpers import RARE, CountingSource

N, P = 20_000, 4
LATER = [0.004, 0.001]
RIDGE: dict[str, Any] = {"covariance": {}, "output": {"perturbation": "output"}}  # by default what has a path
LOGISTIC: dict[str, Any] = {"logistic": {}, "spherical": {"noise": "spherical"}}
KINDS = {**RIDGE, **LOGISTIC}


@cache
def data(p: int = P) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(N, p))
    y = np.clip(X @ np.linspace(1.0, -0.8, p) / p * 2 + rng.normal(0, 0.1, N), -1, 1)
    return X, y, y > 0


@pytest.fixture
def key(tmp_path):
    write_key(tmp_path / "curator.key")
    return tmp_path / "curator.key"


def estimator(kind: str, **options: Any) -> Any:
    stated = {"regularization": 0.01, "fit_intercept": False, "max_epsilon": None}
    common = {"bounds": 1.0, "random_state": 0, "excess_risk": 0.02, **stated, **KINDS[kind], **options}
    if kind in RIDGE:
        return AccuracyFirstRidge(target_bound=1.0, **common)
    return AccuracyFirstLogisticRegression(classes=(False, True), **common)


def first(kind: str, file: Any, key: Any, *, later: Any = LATER, p: int = P, **options: Any) -> tuple[Any, Release]:
    """Fit, keep the path, and return the model and its release."""
    X, y, labels = data(p)
    model = estimator(kind, keep_path=KeepPath(file, key, later), **options)
    model.fit(X, y if kind in RIDGE else labels)
    return model, model.release_


def excess_of(model: Any, kind: str, release: Release, lam: float | None = None) -> float:
    X, y, labels = data()
    rows = model.prepared(X, y if kind in RIDGE else labels)
    view = compare_with_optimum(
        rows, release, model._estimator_loss, regularization=model.regularization if lam is None else lam
    )
    assert view.excess_risk is not None
    return view.excess_risk


# --- what it costs ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_the_difference_is_paid(kind, tmp_path, key):
    model, one = first(kind, tmp_path / "path", key)
    two = refine(one, tmp_path / "path", key, excess_risk=LATER[0], max_epsilon=10.0)
    three = refine(Release.from_json(two.to_json()), tmp_path / "path", key, excess_risk=LATER[1], max_epsilon=10.0)
    chain = [one, two, three]
    for before, after in pairwise(chain):
        assert after.continues == before.id
        assert before.epsilon < after.epsilon
        # the parts never add up to less than the whole, nor to visibly more
        assert Fraction(before.epsilon) + Fraction(after.epsilon_increment) >= Fraction(after.epsilon)
        assert after.epsilon_increment == pytest.approx(after.epsilon - before.epsilon, rel=1e-12)
        assert (after.epsilon_test, after.epsilon_probe) == (one.epsilon_test, one.epsilon_probe)
        assert after.epsilon <= after.epsilon_worst_case
    assert compose(chain).epsilon == pytest.approx(three.epsilon, rel=1e-12)
    assert compose([one, two]).epsilon == pytest.approx(two.epsilon, rel=1e-12)
    assert compose([two]).epsilon == two.epsilon  # which is that of both
    assert compose([one, three]).epsilon > three.epsilon  # with a gap in between it counts for itself
    same = {"perturbation": one.perturbation}
    fresh = [estimator(kind, excess_risk=risk, **same).fit(*_rows(kind)).release_ for risk in (0.02, *LATER)]
    assert three.epsilon < compose(fresh).epsilon
    for release, risk in zip(chain, (0.02, *LATER), strict=True):
        assert excess_of(model, kind, release) <= risk


def _rows(kind: str) -> tuple[np.ndarray, np.ndarray]:
    X, y, labels = data()
    return X, y if kind in RIDGE else labels


def test_going_on_twice_from_one_release_is_booked_at_more_than_it_costs(tmp_path, key):
    _, one = first("covariance", tmp_path / "path", key)
    two, other = (refine(one, tmp_path / "path", key, excess_risk=risk) for risk in LATER)
    assert compose([one, two, other]).epsilon > max(two.epsilon, other.epsilon)


def shared(one: Release, two: Release) -> int:
    """Return how many noisy moments are the same in two releases."""
    return sum(
        a == b
        for name in ("first", "second")
        for a, b in zip(one.parameters["statistics"][name], two.parameters["statistics"][name], strict=True)
    )


def same_path(tmp_path, key) -> bool:
    """Whether two releases look like levels of one path: a moment is the same at both as often as the theorem has it.

    Each of the two parts of ε grows by the same factor from level to level, and a coordinate has not jumped with
    probability (ε_s/ε_t)², up to a unit in 2⁴⁰. False alarms: RARE on either side, together with the other part.
    """
    p = 24
    _, one = first("covariance", tmp_path / "path", key, p=p, keep_statistics=True, excess_risk=0.002, later=0.0005)
    two = refine(one, tmp_path / "path", key, excess_risk=0.0005)
    size, chance = p * (p + 1) // 2 + p, (one.epsilon_generation / two.epsilon_generation) ** 2
    assert 0.05 < chance < 0.9
    found = shared(one, two)
    return bool(stats.binom.isf(RARE, size, chance) >= found >= stats.binom.ppf(RARE, size, chance))


def test_a_later_release_is_a_level_of_the_same_path(tmp_path, key):
    assert same_path(tmp_path, key)


def test_fresh_noise_for_the_difference_is_caught(tmp_path, key, monkeypatch):
    """Two independent looks at the same moments would tell more than the larger ε: their mean has less noise."""
    genuine = KeptLevels.from_bytes

    def redrawn(*given):
        kept = genuine(*given)
        rng = np.random.default_rng(0)
        fresh = (values + rng.laplace(scale=2.0**41, size=len(values)).astype(np.int64) for values in kept.values)
        return KeptLevels(kept.first, tuple(fresh))

    monkeypatch.setattr(KeptLevels, "from_bytes", redrawn)
    assert not same_path(tmp_path, key)


# --- what it promises -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_promises_hold_together(kind, tmp_path, key):
    """Sixteen paths, two promises each, γ = 0.5: one of a path's promises fails with at most that probability."""
    broken = 0
    for seed in range(16):
        file = tmp_path / f"path {seed}"
        model, one = first(kind, file, key, random_state=seed, failure_probability=0.5, later=[0.004])
        two = refine(one, file, key, excess_risk=0.004)
        broken += excess_of(model, kind, one) > 0.02 or excess_of(model, kind, two) > 0.004
    assert broken <= 8  # more would not refute them, and be a finding all the same


def test_the_event_is_about_all_levels():
    """The noise of a later level stays within the bound too, which was settled for all levels at once."""
    model = estimator("covariance", perturbation="covariance")
    X, y, _ = data()
    model.fit(X, y)
    rows = model.prepared(X, y)
    request = model._request(N, model.preparation_)
    plan = request.mechanism.refinable(request, 0.02, (0.001,)).plan
    generator = request.mechanism.on(rows, request.problem)
    gram, moment, _ = generator.sums.as_floats()
    beta, theta = plan.norm(), np.array([1.0, -0.5, 0.25, 2.0])
    for step in split_path(generator.sums, plan, CountingSource(7)):
        seen = Seen.of(step.values, plan, step.epsilon, beta)
        off = (seen.second - gram) @ theta - (seen.first - moment)
        assert np.linalg.norm(off) <= seen.noise * seen.lever(float(np.linalg.norm(theta)))


def test_another_lambda_on_second_moments_only(tmp_path, key):
    model, one = first("covariance", tmp_path / "path", key)
    two = refine(one, tmp_path / "path", key, excess_risk=0.01, regularization=0.03)
    assert two.promise.regularization == 0.03
    assert excess_of(model, "covariance", two, lam=0.03) <= 0.01
    before, after = (release.preparation["regularization_per_column"] for release in (one, two))
    np.testing.assert_allclose(after, np.asarray(before) * 3)
    _, other = first("output", tmp_path / "other", key)
    with pytest.raises(ValueError, match="needs a path of second moments"):
        refine(other, tmp_path / "other", key, excess_risk=LATER[0], regularization=0.03)


def test_the_release_says_what_it_is(tmp_path, key):
    model, one = first("covariance", tmp_path / "path", key)
    two = refine(one, tmp_path / "path", key, excess_risk=LATER[0])
    assert (two.promise.excess_risk, two.promise.failure_probability) == (LATER[0], 0.1)
    assert "every promise made on this path holds" in two.promise.statement
    assert (two.method, two.perturbation, two.secure) == ("certified", "covariance", False)
    assert two.parameters["columns"] == one.parameters["columns"]
    coef, intercept = model.preparation_.to_caller_units(np.asarray(two.hypothesis))
    assert two.parameters["coef"] == tuple(coef.tolist())
    assert two.parameters["intercept"] == intercept
    assert two.not_covered == one.not_covered
    assert two.date is not None
    assert two.id != one.id
    labels = first("logistic", tmp_path / "labels", key)[1]
    assert refine(labels, tmp_path / "labels", key, excess_risk=LATER[1]).parameters["classes"] == (False, True)


# --- what is refused --------------------------------------------------------------------------------------------------


def test_nothing_private_is_plain_on_disk(tmp_path, key):
    first("covariance", tmp_path / "path", key)
    text = (tmp_path / "path").read_bytes()
    assert stat.S_IMODE((tmp_path / "path").stat().st_mode) == 0o600
    assert b"covariance" not in text
    assert b"levels" not in text
    lengths = set()
    for seed in range(4):
        _, one = first("covariance", tmp_path / f"{seed}", key, random_state=seed)
        kept = one.n_levels - one.level
        lengths.add((tmp_path / f"{seed}").stat().st_size - kept * 14 * 16)
    assert max(lengths) - min(lengths) < 100  # digits of public numbers: moments take as much room whatever they are


def mixed_up(tmp_path, key) -> list[bool]:
    """Whether a path, a key or a release of another fit is accepted."""
    accepted = []
    _, one = first("covariance", tmp_path / "one", key)
    _, two = first("covariance", tmp_path / "two", key, random_state=1)
    write_key(tmp_path / "other.key")
    for release, path, with_key in ((one, "two", key), (two, "one", key), (one, "one", tmp_path / "other.key")):
        try:
            refine(release, tmp_path / path, with_key, excess_risk=LATER[0])
            accepted.append(True)
        except (ValueError, SearchInterrupted) as error:  # interrupted: it was opened, and did not fit
            accepted.append("does not" not in str(error))
    return accepted


def test_path_key_and_release_must_belong_together(tmp_path, key):
    assert mixed_up(tmp_path, key) == [False, False, False]


def test_a_seal_without_the_release_is_caught(tmp_path, key, monkeypatch):
    monkeypatch.setattr(kept_path, "_about", lambda release_id: b"")
    genuine = refinement.json.loads
    changed = lambda text, **how: genuine(text, **how) if how else {**genuine(text), "release": AnyId()}  # noqa: E731
    monkeypatch.setattr(refinement.json, "loads", changed)  # of the path alone: releases are read with hooks
    assert mixed_up(tmp_path, key)[:2] != [False, False]


class AnyId(str):
    """Equal to every id."""

    __slots__ = ()

    def __ne__(self, other: object) -> bool:
        return False

    __eq__ = str.__eq__
    __hash__ = str.__hash__


@pytest.mark.parametrize(
    "changes",
    [{"epsilon_generation": 0.5}, {"epsilon_test": 0.0}, {"level": 0}, {"level": 10_000}, {"level": None}],
    ids=str,
)
def test_a_changed_release_is_noticed(changes, tmp_path, key):
    _, one = first("covariance", tmp_path / "path", key)
    changed = dataclasses.replace(one, epsilon_worst_case=math.inf, **changes)
    with pytest.raises(ValueError, match="was it changed"):
        refine(changed, tmp_path / "path", key, excess_risk=LATER[0])


def test_mistakes_cost_nothing(tmp_path, key):
    _, one = first("covariance", tmp_path / "path", key)
    for options, said in (
        ({"excess_risk": 0.0001}, "kept for excess risks of at least 0.001"),
        ({"excess_risk": 0.02}, "promises an excess risk of 0.02 already"),
        ({"excess_risk": -1.0}, "excess_risk"),
        ({"excess_risk": 0.004, "max_epsilon": one.epsilon / 2}, "Nothing was spent"),
        ({"excess_risk": 0.004, "regularization": -1.0}, "regularization"),
    ):
        with pytest.raises(ValueError, match=said):
            refine(one, tmp_path / "path", key, **options)
    for path, with_key in ((tmp_path / "none", key), (tmp_path / "path", tmp_path / "none")):
        with pytest.raises(FileNotFoundError):
            refine(one, path, with_key, excess_risk=0.004)
    _, other = first("output", tmp_path / "other", key)
    with pytest.raises(TargetUnreachable, match="altogether"):
        refine(other, tmp_path / "other", key, excess_risk=0.001, max_epsilon=1.1 * other.epsilon)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"later": 0.02}, "later must be"),
        ({"later": [0.01, 0.00999]}, "apart from each other"),
        ({"later": []}, "later must be"),
        ({"later": "fine"}, "later"),
        ({"method": "above_threshold"}, "method='auto' or 'certified'"),
        ({"on_failure": "release_optimum"}, "on_failure"),
    ],
)
def test_mistakes_are_named_before_anything_is_drawn(options, said, tmp_path, key):
    source = CountingSource()
    with pytest.raises(ValueError, match=said):
        first("covariance", tmp_path / "path", key, random_state=source, **options)
    assert source.drawn == 0
    assert not (tmp_path / "path").exists()


def test_files_are_looked_at_first(tmp_path, key):
    (tmp_path / "there").write_text("kept")
    for file, with_key, said in (
        ("there", key, "is there already"),
        ("no folder/path", key, "folder"),
        ("path", tmp_path / "none", "there is no key"),
    ):
        source = CountingSource()
        with pytest.raises((ValueError, OSError), match=said):
            first("covariance", tmp_path / file, with_key, random_state=source)
        assert source.drawn == 0
    assert (tmp_path / "there").read_text() == "kept"


def test_a_refusal_can_be_gone_on_from(tmp_path, key):
    enough = first("covariance", tmp_path / "enough", key)[1]
    small, more = (enough.epsilon_test + part * enough.epsilon_generation for part in (0.6, 0.8))
    with pytest.raises(AccuracyNotReached) as caught:
        first("covariance", tmp_path / "path", key, max_epsilon=small)
    one = caught.value.release
    assert one.epsilon <= small
    with pytest.raises(AccuracyNotReached) as again:
        refine(one, tmp_path / "path", key, excess_risk=0.02, max_epsilon=more)
    two = again.value.release
    assert two.continues == one.id
    assert one.epsilon < two.epsilon <= more
    three = refine(two, tmp_path / "path", key, excess_risk=0.02)
    assert three.status == "released"
    assert compose([one, two, three]).epsilon == pytest.approx(three.epsilon)


def test_from_a_null_model_the_path_starts_at_its_beginning(tmp_path, key):
    for kind in ("covariance", "output"):
        model, one = first(kind, tmp_path / kind, key, excess_risk=0.1, regularization=0.3, later=[0.001])
        assert not np.any(one.hypothesis)
        assert one.epsilon_generation == 0
        two = refine(one, tmp_path / kind, key, excess_risk=0.001)
        assert np.any(two.hypothesis)
        assert excess_of(model, kind, two) <= 0.001


def test_a_path_that_cannot_be_written_leaves_the_release(tmp_path, key, monkeypatch):
    def full(*_):
        raise OSError("no space left")

    monkeypatch.setattr(refinement, "write_private", full)
    with pytest.warns(UserWarning, match="no space left.*the release stands"):
        model, release = first("covariance", tmp_path / "path", key)
    assert release.status == "released"
    assert model.predict(data()[0][:2]).shape == (2,)


def test_an_interruption_is_charged_for(tmp_path, key, monkeypatch):
    _, one = first("covariance", tmp_path / "path", key)

    def broken(*_):
        raise KeyError("a private value")

    monkeypatch.setattr(refinement, "certify_from", broken)
    with pytest.raises(SearchInterrupted) as caught:
        refine(one, tmp_path / "path", key, excess_risk=LATER[0], max_epsilon=0.5)
    release = caught.value.release
    assert "private" not in str(caught.value)
    assert one.epsilon < release.epsilon <= 0.5
    assert release.continues == one.id
    assert release.epsilon_increment == pytest.approx(release.epsilon - one.epsilon)


def test_no_more_than_two_unless_more_is_stated(tmp_path, key):
    """As for a fit: the cap is about everything on the path, and a release above it warns."""
    _, one = first("output", tmp_path / "path", key)
    with pytest.raises(TargetUnreachable, match="max_epsilon = 2"):
        refine(one, tmp_path / "path", key, excess_risk=LATER[1])
    with pytest.warns(LargeEpsilonWarning, match="is large"):
        assert refine(one, tmp_path / "path", key, excess_risk=LATER[1], max_epsilon=10.0).epsilon > 2.0


def test_a_warning_that_is_an_error_carries_what_was_spent(tmp_path, key):
    """As from a fit: it is raised once the levels are revealed, so it does not say that nothing was spent."""
    _, one = first("output", tmp_path / "path", key)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(SearchInterrupted, match="LargeEpsilonWarning") as raised:
            refine(one, tmp_path / "path", key, excess_risk=LATER[1], max_epsilon=10.0)
    assert (raised.value.release.status, raised.value.release.continues) == ("released", one.id)
    assert raised.value.release.epsilon > 2.0
    assert "Nothing was spent" not in str(getattr(raised.value, "__notes__", ""))


def test_what_is_no_release_or_no_path_to_keep_is_said_before_anything_is_spent(tmp_path):
    with pytest.raises(ValueError, match=r"release must be the Release to go on from.*NoneType") as said:
        refine(None, tmp_path / "path", tmp_path / "key", excess_risk=0.1)
    assert said.value.__notes__ == ["Nothing was spent"]
    model = AccuracyFirstRidge(excess_risk=0.1, bounds=1.0, target_bound=1.0, keep_path=True)
    with pytest.raises(ValueError, match=r"keep_path must be None or KeepPath\(file, key, later=...\)") as said:
        model.fit(np.zeros((10, 2)), np.zeros(10))
    assert said.value.__notes__ == ["Nothing was spent"]
