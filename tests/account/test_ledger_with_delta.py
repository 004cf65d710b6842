"""A budget with a δ: curves that add, the filter's theorem, pure fits beside, and what a pure budget says to a δ."""

from __future__ import annotations

import contextlib
import math
import re
import sqlite3

import numpy as np
import pytest
from scipy import stats

from expost import AccuracyFirstModel, AccuracyFirstRidge, ErrorRate, Ledger
from expost.account.account import Account
from expost.account.composition import NOTHING, Curve, room, tail_mean
from expost.account.loss import ApproximateCap, CurveLoss, PureLoss, loss_from_json
from expost.exceptions import AccuracyNotReached, BudgetExceeded, LedgerRefused, SearchInterrupted
from expost.noise.source import SecureSource
from tests.account.ledger_helpers import new_ledger, released
from tests.estimators.model_helpers import LABELS, table
from tests.helpers import RARE

DELTA = 1e-6
CAP = ApproximateCap(1.0, DELTA)


def gaussian(rho: float, delta: float = DELTA) -> CurveLoss:
    return CurveLoss(Curve.gaussian(rho), delta)


class TestFilter:
    """Gaussian searches of Δ = 1 between two neighbours; δ is large, so that failures can be counted."""

    EPSILON, AT, RUNS = 1.0, 0.05, 4000

    def exceeded(self, admits, side_by_side):
        """How often the loss exceeds ε, searches being begun while admitted, by one who goes on while it is small."""
        cap, rng, above = ApproximateCap(self.EPSILON, self.AT), np.random.default_rng(4), 0
        rho = room(NOTHING, self.EPSILON, self.AT) / side_by_side * 0.999
        one = gaussian(rho, self.AT)
        counts = next(k for k in range(60) if not admits(cap, [one] * k, one))
        for _ in range(self.RUNS):
            loss = 0.0
            for _ in range(counts):
                if loss > self.EPSILON:  # whoever wants it to be exceeded stops here
                    break
                loss += rho + math.sqrt(2 * rho) * rng.normal()
            above += loss > self.EPSILON
        return stats.binomtest(above, self.RUNS, self.AT, alternative="greater").pvalue

    def test_the_cap_is_kept(self):
        assert self.exceeded(lambda cap, spent, more: cap.total([*spent, more]).within(cap), 8) > RARE

    def test_control_each_by_itself(self):
        """A broken rule: each search is looked at alone, and the budget is taken to hold thirty of them."""
        broken = lambda cap, spent, more: len(spent) < 30 and more.within(cap)  # noqa: E731
        assert self.exceeded(broken, 4) < RARE

    def test_ending_raises_no_sum(self):
        """What a search ends with is at most what was held, at every order, wherever it stops."""
        account = Account("auto", worst_case=1.0, secure=True, delta=DELTA, one_curve="gaussian")
        held = account.interrupted()
        for _ in range(50):
            if account.affords(0.02):
                account.look_first(0.02)
            step = Curve.gaussian(0.3 * account.room)
            if account.fits(step):
                account.book("generation", step)
            ended = CAP.charged(account.refused(), ())
            assert ended.within(CAP.charged(held, ()))
        assert not account.fits(Curve.gaussian(account.room * 1.01 + 1e-9))
        assert held.epsilon == 1.0

    def test_control_a_budget_in_epsilon_alone_is_no_curve(self):
        """Pure steps up to ε at δ would exceed the curve that is held at small orders: they are not taken."""
        account = Account("auto", worst_case=1.0, secure=True, delta=DELTA, one_curve="gaussian")
        assert Curve.ex_post(0.9).fits(1.0, DELTA)
        assert not Curve.ex_post(0.9).at_most(account.worst)
        assert not account.affords(0.9)
        assert Account("auto", worst_case=1.0, secure=True, delta=DELTA).fits(Curve.ex_post(0.9))

    def test_searches_with_pure_losses_at_a_delta_are_held_as_pure(self):
        account = Account("auto", worst_case=1.0, secure=True, delta=DELTA, one_curve="pure")
        assert account.interrupted().account_curve() == Curve.ex_post(1.0)
        account.generation = 0.75
        assert account.affords(0.2)
        assert not account.fits(Curve.gaussian(1e-4))
        assert CAP.charged(account.refused(), ()).within(CAP.charged(account.interrupted(), ()))


class TestValues:
    @pytest.mark.parametrize("loss", [gaussian(0.01), CurveLoss(Curve.ex_post(0.3), DELTA), CAP], ids=str)
    def test_text_gives_the_same_loss(self, loss):
        assert loss_from_json(loss.to_json()) == loss

    @pytest.mark.parametrize("spent", [[], [gaussian(0.003)], [gaussian(0.003), CurveLoss(Curve.ex_post(0.2), DELTA)]])
    @pytest.mark.parametrize("delta", [0.0, 1e-6, 1e-9])
    def test_what_is_left_fits_and_little_more_does(self, spent, delta):
        for by_hand in (False, True):
            left = CAP.ceiling(spent, delta, by_hand=by_hand)
            assert CAP.total([*spent, self.reserved(left, delta, by_hand)]).within(CAP)
            assert not CAP.total([*spent, self.reserved(left * 1.001, delta, by_hand)]).within(CAP)
        assert CAP.total([*spent, CAP.left(spent)]).within(CAP)

    def reserved(self, worst, delta, by_hand):
        account = Account("auto", worst, secure=True, delta=delta, one_curve="gaussian")
        return CAP.reserved(worst, delta, None if by_hand or not delta else account.interrupted())

    def test_larger_of_two_and_at_most(self):
        one, other = gaussian(0.001), CurveLoss(Curve.ex_post(0.05), DELTA)
        both = one.raised_to(other)
        assert one.within(both)
        assert other.within(both)
        assert not one.within(other)

    def test_infinity_is_not_bounded(self):
        assert not CAP.reserved(math.inf, DELTA).bounded

    @pytest.mark.parametrize(("cap", "delta"), [(0.0, 1e-6), (math.inf, 1e-6), (1.0, 0.7)])
    def test_caps_that_are_none(self, tmp_path, cap, delta):
        with pytest.raises(ValueError, match="must be"):
            Ledger.create(tmp_path / "ledger.db", "survey", cap=cap, delta=delta)


class TestFits:
    def model(self, ledger, **options):
        stated = {"goal": ErrorRate(0.3), "delta": DELTA, "max_epsilon": 2.0, "ledger": ledger, **options}
        return AccuracyFirstModel(LABELS, **stated)

    def test_curves_add_in_squares_and_pure_fits_beside(self, tmp_path):
        ledger = new_ledger(tmp_path, cap=4.0, delta=DELTA)
        first = self.model(ledger).fit(table()).release_
        second = self.model(ledger, perturbation="covariance").fit(table()).release_
        together = ledger.budget.total
        assert together.curve == first.account_curve() + second.account_curve()
        assert together.epsilon < 0.85 * (first.epsilon + second.epsilon)
        pure = self.model(ledger, delta=0.0, max_epsilon=1.5).fit(table()).release_
        assert ledger.budget.entries[-1].loss.curve == Curve.ex_post(pure.epsilon)
        assert [entry.held for entry in ledger.budget.entries] == [False] * 3

    def test_a_worst_case_that_does_not_fit_is_refused_or_lowered(self, tmp_path):
        ledger = new_ledger(tmp_path, cap=1.0, delta=DELTA)
        with pytest.raises(BudgetExceeded, match=r"has 0\.9999 of 1 at δ = 1e-06 left.*Pass max_epsilon=0\.9999"):
            self.model(ledger).fit(table())
        lower = Ledger(ledger.path, "survey", when_short="lower")
        release = self.model(lower).fit(table()).release_
        assert release.epsilon_worst_case < 1.0
        assert ledger.budget.total.within(ledger.budget.cap)

    def test_no_refusal_says_that_more_is_left_than_the_cap(self, tmp_path):
        """A max_epsilon at a smaller δ may be larger, and stands with its δ."""
        ledger = new_ledger(tmp_path, cap=1.5, delta=1e-5)
        with pytest.raises(BudgetExceeded) as refused:
            self.model(ledger, delta=1e-6, max_epsilon=2.0).fit(table())
        assert re.match(r"data set 'survey' has 1\.499 of 1\.5 at δ = 1e-05 left, and ", str(refused.value))
        assert re.search(r"Pass max_epsilon=1\.6\d* \(at its delta = 1e-06\), or", str(refused.value))

    def test_refusals_and_interruptions(self, tmp_path, monkeypatch):
        ledger = new_ledger(tmp_path, cap=4.0, delta=DELTA)
        with pytest.raises(AccuracyNotReached) as caught:
            self.model(ledger, goal=ErrorRate(0.05), max_epsilon=0.5).fit(table())
        (entry,) = ledger.budget.entries
        assert entry.loss.curve == caught.value.release.account_curve()
        monkeypatch.setattr(SecureSource, "words", lambda self, count: 1 / 0)
        with pytest.raises(SearchInterrupted) as stopped:
            self.model(ledger).fit(table())
        held = Curve.gaussian(room(NOTHING, 2.0, DELTA))
        assert ledger.budget.entries[-1].loss.curve == stopped.value.release.account_curve() == held

    def test_an_interruption_without_a_ledger_can_be_booked(self, tmp_path, monkeypatch):
        """Only its ε at δ is known: charged is what no curve that comes to it exceeds in a sum."""
        monkeypatch.setattr(SecureSource, "words", lambda self, count: 1 / 0)
        with pytest.raises(SearchInterrupted) as stopped:
            self.model(None).fit(table())
        ledger = new_ledger(tmp_path, cap=8.0, delta=DELTA)
        assert ledger.book(stopped.value.release).loss == CAP.reserved(2.0, DELTA)
        assert ledger.budget.total.epsilon >= 2.0

    @pytest.mark.parametrize("options", [{}, {"perturbation": "covariance"}], ids=str)
    def test_what_is_reserved_by_hand_bounds_what_fits_settle(self, tmp_path, options):
        """Nobody says what a search at a δ books: nine were admitted, and nine fits settled to more than the cap."""
        ledger, held = new_ledger(tmp_path, cap=1.0, delta=DELTA), []
        with contextlib.suppress(BudgetExceeded):
            while len(held) < 9:
                held.append((ledger.reserve(0.31, delta=DELTA), 0.31))
        with pytest.raises(BudgetExceeded) as refused:
            ledger.reserve(0.31, delta=DELTA)
        assert len(held) == 2
        left = refused.value.remaining
        held.append((ledger.reserve(left, delta=DELTA), left))
        for reservation, most in held:
            before = ledger.budget.total.epsilon
            try:
                release = self.model(None, goal=ErrorRate(0.2), max_epsilon=most, **options).fit(table()).release_
            except AccuracyNotReached as refusal:
                release = refusal.release
            reservation.settle(release)
            assert ledger.budget.total.epsilon <= before * (1 + 1e-9)
            assert ledger.budget.total.within(ledger.budget.cap)

    def test_ridge(self, tmp_path):
        ledger = new_ledger(tmp_path, cap=4.0, delta=DELTA)
        X = np.random.default_rng(0).uniform(-1, 1, size=(4000, 2))
        options = {"excess_risk": 0.05, "bounds": 1.0, "target_bound": 2.0, "delta": DELTA, "max_epsilon": 3.0}
        release = AccuracyFirstRidge(**options, ledger=ledger).fit(X, X @ [1.0, -0.5]).release_
        assert ledger.budget.entries[0].loss.curve == release.account_curve()


def test_a_pure_budget_stays_pure_and_is_written_as_ever(tmp_path):
    ledger = new_ledger(tmp_path, cap=2.0)
    ledger.book(released(0.5))
    with pytest.raises(LedgerRefused, match=r"is pure.*Nothing was spent"):
        ledger.reserve(0.1, delta=DELTA)
    with pytest.raises(ValueError, match="a budget is stated once"):
        new_ledger(tmp_path, cap=2.0, delta=DELTA)
    rows = sqlite3.connect(ledger.path).execute("SELECT cap FROM datasets UNION ALL SELECT loss FROM events").fetchall()
    assert [loss_from_json(row[0]) for row in rows] == [PureLoss(2.0), PureLoss(0.5)]
    assert rows[0][0] == '{"kind": "pure", "epsilon": "0x1.0000000000000p+1"}'


def test_decisions(tmp_path):
    """What is held, or an ε of a pure search; an outcome that turns up later raises it, order by order."""
    ledger = new_ledger(tmp_path, cap=4.0, delta=DELTA)
    held = [ledger.reserve(1.0, delta=DELTA), ledger.reserve(0.5)]
    with pytest.raises(ValueError, match="no outcome of the search could cost more"):
        ledger.decide(held[1].id, 1.5, reason="too much")
    with pytest.raises(ValueError, match="does not settle what a search cost"):
        ledger.decide(held[0].id, 0.5, reason="an ε at another δ may be a larger curve")
    ledger.decide(held[1].id, None, reason="the worst case")
    assert ledger.budget.entry(held[1].id).loss.curve == Curve.ex_post(0.5)
    account = Account("by hand", 1.0, secure=True, delta=DELTA)
    account.book("generation", Curve.gaussian(0.002))
    ledger.decide(held[0].id, None, reason="the worst case")
    held[0].settle(account.refused())
    assert ledger.budget.entry(held[0].id).loss.curve.losses == CAP.reserved(1.0, DELTA).curve.losses


def curves(delta):
    """Yield curves of many shapes that come to 0.4 at δ: Gaussian, pure, both, and those that jump at some order."""
    rho = room(NOTHING, 0.4, delta)
    yield Curve.gaussian(rho)
    yield Curve.ex_post(0.4)
    yield Curve((0.4,) * 29, math.inf)
    for part in (0.1, 0.3, 0.38):
        yield Curve.ex_post(part) + Curve.gaussian(room(NOTHING, 0.4 - part, delta))
        yield Curve.pure(part) + Curve.gaussian(room(Curve.pure(part), 0.4, delta))
    for jump in range(3, 29):
        low = Curve(tuple([0.0] * jump + [math.inf] * (29 - jump)), math.inf).epsilon(delta)
        if low < 0.4:
            yield Curve(tuple([0.399 - low] * jump + [math.inf] * (29 - jump)), math.inf)


USUAL = {(1e-6, 1e-6), (1e-12, 0.01)}  # of the fit, of the budget; the others are left to the audit


@pytest.mark.parametrize(
    ("delta", "at"),
    [
        pytest.param(delta, at, marks=[] if (delta, at) in USUAL else [pytest.mark.slow])
        for delta in (1e-12, 1e-6, 0.01)
        for at in (1e-12, 1e-6, 0.01)
    ],
)
def test_what_is_held_for_an_epsilon_bounds_every_curve_that_comes_to_it(delta, at):
    """The lemma, whatever else is charged; the Gaussian curve, which was held, is the control."""
    cap, control = ApproximateCap(1.0, at), 0
    held = cap.reserved(0.4, delta)
    was_held = CurveLoss(Curve.gaussian(room(NOTHING, 0.4, delta)), at)
    for ended in curves(delta):
        loss = CurveLoss(ended, at)
        assert loss.within(held)
        for spent in [NOTHING, *curves(at), *curves(delta)]:
            beside = CurveLoss(spent, at)
            assert cap.total([beside, loss]).epsilon <= cap.total([beside, held]).epsilon * (1 + 1e-9)
            control += cap.total([beside, loss]).epsilon > cap.total([beside, was_held]).epsilon * 1.001
    assert control > 20


@pytest.mark.parametrize("delta", [1e-30, 1e-12, 1e-6, 0.01])
def test_what_a_clock_saves_grows_with_time(delta):
    """But for half a per cent at most: what `ApproximateCap` holds for fits with a clock rests on it."""
    times = [2.0 ** (k / 8) for k in range(-160, 40)]
    tails = [tail_mean(math.sqrt(2 * rho), delta) for rho in times]
    saved = [Curve.gaussian(rho).epsilon(delta) - tail for rho, tail in zip(times, tails, strict=True)]
    most = 0.0
    for tail, more in zip(tails, saved, strict=True):
        assert more >= most - 0.005 * tail
        most = max(most, more)


def test_a_pure_budget_settles_no_release_with_a_delta(tmp_path):
    ledger = new_ledger(tmp_path, cap=2.0)
    reservation = ledger.reserve(1.0)
    account = Account("by hand", 1.0, secure=True, delta=DELTA)
    account.book("generation", Curve.gaussian(0.002))
    with pytest.raises(LedgerRefused, match="is pure"):
        reservation.settle(account.refused())
    assert [entry.held for entry in ledger.budget.entries] == [True]
    assert ledger.budget.total == PureLoss(1.0)
