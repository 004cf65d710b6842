"""Rényi curves: what they come to at δ, stopping whenever one likes, the filter, releases and composition."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats

from expost.account.account import Account
from expost.account.composition import NOTHING, ORDERS, STEPS, WEIGHTS, Curve, compose, room
from expost.release.release import Release

RHOS = [1e-5, 1e-3, 0.1, 3.0]
DELTAS = [1e-9, 1e-6, 0.01]


def unweighted(losses, delta):
    """The broken variant: the best order by the outcome, as if it had been chosen before."""
    return np.min(losses + math.log(1 / delta) / np.array(STEPS), axis=-1)


class TestConversion:
    def test_weights_add_up_to_at_most_one(self):
        assert 1 - 1e-12 < math.fsum(WEIGHTS) <= 1
        assert min(WEIGHTS) > 0
        assert min(ORDERS) > 1

    @pytest.mark.parametrize("delta", DELTAS)
    @pytest.mark.parametrize("rho", RHOS)
    def test_it_solves_the_theorems_equation(self, rho, delta):
        epsilon = Curve.gaussian(rho).epsilon(delta)
        exponents = np.array(STEPS) * (epsilon - np.array(ORDERS) * rho)
        assert math.isclose(float(np.log(WEIGHTS @ np.exp(exponents))), -math.log(delta), rel_tol=1e-6)
        simple = np.min(np.array(ORDERS) * rho - np.log(np.array(WEIGHTS) * delta) / np.array(STEPS))
        assert epsilon <= simple * (1 + 1e-9)

    @pytest.mark.parametrize("delta", DELTAS)
    @pytest.mark.parametrize("rho", RHOS)
    def test_the_true_tail_of_a_gaussian_mechanism_is_below_delta(self, rho, delta):
        """Between the worst pair the loss is N(ρ, 2ρ) exactly."""
        epsilon = Curve.gaussian(rho).epsilon(delta)
        assert stats.norm.sf((epsilon - rho) / math.sqrt(2 * rho)) <= delta

    @pytest.mark.parametrize("delta", DELTAS)
    @pytest.mark.parametrize("rho", RHOS)
    def test_against_dp_accounting(self, rho, delta):
        """Theirs is a hockey-stick ε of a run that is settled beforehand: below ours, and not by far."""
        rdp = pytest.importorskip("dp_accounting.rdp")
        dp = pytest.importorskip("dp_accounting")
        theirs = rdp.RdpAccountant(list(ORDERS))
        theirs.compose(dp.GaussianDpEvent(math.sqrt(1 / (2 * rho))))
        ours = Curve.gaussian(rho)
        np.testing.assert_allclose(ours.losses, theirs._rdp, rtol=1e-9)
        assert theirs.get_epsilon(delta) <= ours.epsilon(delta)
        if delta <= 1e-6:  # a hockey-stick is much less strict where δ is large
            assert ours.epsilon(delta) <= 2.0 * theirs.get_epsilon(delta)

    @pytest.mark.parametrize("epsilon", [0.01, 0.5, 3.0])
    def test_pure_steps_against_the_worst_pure_mechanism(self, epsilon):
        """Randomised response attains every pure ε; its Rényi divergences are below min(ε, rε²/2)."""
        p = 1 / (1 + math.exp(-epsilon))
        for order, step, bound in zip(ORDERS, STEPS, Curve.pure(epsilon).losses, strict=True):
            terms = [order * math.log(a) - step * math.log(b) for a, b in ((p, 1 - p), (1 - p, p))]
            assert np.logaddexp(*terms) / step <= bound * (1 + 1e-9) + 1e-12

    def test_control_half_of_a_pure_curve_is_too_little(self):
        epsilon, p = 0.01, 1 / (1 + math.exp(-0.01))
        order, step = ORDERS[5], STEPS[5]
        exact = np.logaddexp(order * math.log(p) - step * math.log(1 - p), order * math.log(1 - p) - step * math.log(p))
        assert exact / step > 0.9 * Curve.pure(epsilon).losses[5]

    def test_pure_losses_alone_are_never_dearer_than_their_sum(self):
        both = Curve.pure(0.3) + Curve.ex_post(0.2)
        assert both.epsilon(1e-6) <= 0.5 * (1 + 1e-12)
        assert both.epsilon(0.0) == both.most
        many = sum((Curve.pure(0.01) for _ in range(1000)), NOTHING)
        assert many.epsilon(1e-6) < 0.25 * many.most  # they add in squares

    def test_nothing_costs_nothing(self):
        assert NOTHING.epsilon(1e-6) == 0.0
        assert Curve.gaussian(0.0).epsilon(1e-6) == 0.0

    @settings(max_examples=30, deadline=None)
    @given(st.floats(1e-6, 1), st.floats(1e-6, 1), st.sampled_from(DELTAS))
    def test_more_costs_more(self, first, second, delta):
        both = Curve.gaussian(first) + Curve.pure(second)
        assert both.epsilon(delta) >= Curve.gaussian(first).epsilon(delta)
        assert both.fits(both.epsilon(delta) * 1.001, delta)
        assert not both.fits(both.epsilon(delta) * 0.999, delta)

    @pytest.mark.parametrize("delta", [-0.1, 1.0, float("nan")])
    def test_a_delta_that_is_none(self, delta):
        with pytest.raises(ValueError, match="delta must be"):
            Curve.gaussian(0.1).epsilon(delta)


class TestStopping:
    """A run that watches its own loss and stops once it is above ε(o): the worst that stopping can do.

    ℓ between one pair is a walk of Gaussian steps, N(ρ_t, 2ρ_t), each ρ_t chosen by the past. 4000 runs; false alarm
    below 10⁻⁶ for the first test (exact binomial), and the control fails it by far.
    """

    DELTA, RUNS = 0.05, 4000

    def broken(self, bound):
        rng = np.random.default_rng(5)
        loss, spent = np.zeros(self.RUNS), np.zeros(self.RUNS)
        over = np.zeros(self.RUNS, dtype=bool)
        for _ in range(120):
            rho = np.where(loss > spent, 0.05, 0.02) * np.maximum(spent, 1e-5) + 1e-6  # bolder when it goes well
            loss += np.where(over, 0.0, rng.normal(rho, np.sqrt(2 * rho)))
            spent += np.where(over, 0.0, rho)
            over |= loss > bound(spent)
        return int(over.sum())

    def test_at_most_delta_of_the_runs_end_above(self):
        grid = np.geomspace(1e-7, 10, 400)  # ε is concave in ρ, so values in between lie above the chords
        at = np.array([Curve.gaussian(rho).epsilon(self.DELTA) for rho in grid])
        broken = self.broken(lambda spent: np.interp(spent, grid, at))
        assert stats.binomtest(broken, self.RUNS, self.DELTA, alternative="greater").pvalue > 1e-6

    def test_control_without_weights(self):
        broken = self.broken(lambda spent: unweighted(spent[:, None] * np.array(ORDERS), self.DELTA))
        assert stats.binomtest(broken, self.RUNS, self.DELTA, alternative="greater").pvalue < 1e-6

    def test_the_largest_loss_over_neighbours_is_not_bounded(self):
        """In many dimensions some neighbour has moved nearly every outcome by more: the statement is per pair."""
        rho, p = 0.01, 100
        noise = np.random.default_rng(0).standard_normal((1000, p))
        worst = rho + math.sqrt(2 * rho) * np.linalg.norm(noise, axis=1)  # the row along the noise
        assert np.mean(worst > Curve.gaussian(rho).epsilon(1e-6)) > 0.99


def usual_unweighted(losses, delta):
    """The broken variant of the usual sense: the best order by the outcome, with its own sharpest factor."""
    orders, steps = np.array(ORDERS), np.array(STEPS)
    sharp = -np.log(orders) + steps * np.log1p(-1 / orders)  # of (1 − e^−x)₊ ≤ c_r e^{(r−1)x}
    return np.min(losses + (sharp + math.log(1 / delta)) / steps, axis=-1)


class TestUsual:
    """ε in the sense of other libraries: P[S] ≤ E′[e^ε(o); S] + δ."""

    @pytest.mark.parametrize("delta", DELTAS)
    @pytest.mark.parametrize("rho", RHOS)
    def test_the_exact_hockey_stick_of_a_gaussian_mechanism_is_below_delta(self, rho, delta):
        """Balle and Wang's exact condition, for a run of which the length is settled."""
        epsilon, mu = Curve.gaussian(rho).usual_epsilon(delta), math.sqrt(2 * rho)
        beyond = stats.norm.cdf(mu / 2 - epsilon / mu)
        other = math.exp(epsilon + stats.norm.logcdf(-mu / 2 - epsilon / mu))
        assert beyond - other <= delta

    @pytest.mark.parametrize("delta", [1e-9, 1e-6])
    @pytest.mark.parametrize("rho", RHOS)
    def test_against_dp_accounting(self, rho, delta):
        """Theirs need not pay for stopping when one likes: ours is above the exact one, and not by far."""
        pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
        exact = pld.from_gaussian_mechanism(math.sqrt(1 / (2 * rho)), value_discretization_interval=1e-3 * rho**0.5)
        theirs, curve = exact.get_epsilon_for_delta(delta), Curve.gaussian(rho)
        assert theirs * (1 - 1e-3) <= curve.usual_epsilon(delta) < curve.epsilon(delta)
        assert curve.usual_epsilon(delta) <= 1.5 * theirs

    @pytest.mark.parametrize("delta", DELTAS)
    @pytest.mark.parametrize("curve", [Curve.gaussian(0.01), Curve.gaussian(1e-5) + Curve.pure(0.02)])
    def test_it_is_the_largest_of_the_theorem(self, curve, delta):
        losses = np.linspace(0, curve.epsilon(delta), 20_001)[:-1]
        sums = np.exp(np.array(STEPS) * (losses[:, None] - np.array(curve.losses))) @ np.array(WEIGHTS)
        largest = float((losses + np.log1p(-delta * sums)).max())
        assert largest * (1 - 1e-9) <= curve.usual_epsilon(delta) <= largest * (1 + 1e-6)

    def test_pure_losses_and_nothing(self):
        assert Curve.pure(0.5).usual_epsilon(0.0) == 0.5
        assert Curve.pure(0.5).usual_epsilon(1e-6) <= 0.5
        assert NOTHING.usual_epsilon(1e-6) == 0.0

    def stopped(self, bound, delta):
        """Return the largest E(1 − e^{ε(o)−ℓ})₊ of all ways to stop a walk of 40 steps, by going backwards."""
        rhos = 1e-4 * 1.25 ** np.arange(40)
        points, weights = np.polynomial.hermite_e.hermegauss(41)
        losses, value = np.linspace(-4, 14, 6001), None
        for rho in rhos[::-1]:
            here = -np.expm1(np.minimum(0.0, bound(rho, delta) - losses))
            value = here if value is None else np.maximum(here, value)
            step = rho - rho / 1.25 if rho > rhos[0] else rho
            ahead = losses[:, None] + step + math.sqrt(2 * step) * points
            value = np.interp(ahead, losses, value) @ (weights / weights.sum())
        return float(np.interp(0.0, losses, value))

    @pytest.mark.parametrize("delta", [0.01, 0.1])
    def test_no_way_to_stop_exceeds_delta(self, delta):
        """Exact but for quadrature: the best stopping rule of all, for the pair whose loss is largest."""
        assert 0.05 * delta < self.stopped(lambda rho, d: Curve.gaussian(rho).usual_epsilon(d), delta) <= delta

    @pytest.mark.parametrize("delta", [0.01, 0.1])
    def test_control_without_weights(self, delta):
        assert self.stopped(lambda rho, d: usual_unweighted(rho * np.array(ORDERS), d), delta) > delta

    def test_a_release_says_it_and_keeps_it(self):
        made = release()
        assert made.account_curve().usual_epsilon(1e-6) == made.epsilon_usual < made.epsilon
        raw = json.loads(made.to_json())
        assert raw["epsilon_usual"] == made.epsilon_usual
        assert Release.from_json(json.dumps({k: v for k, v in raw.items() if k != "epsilon_usual"})) == made
        for wrong in (0.9 * made.epsilon_usual, made.epsilon, "small"):
            with pytest.raises(ValueError, match="epsilon_usual"):
                Release.from_json(json.dumps({**raw, "epsilon_usual": wrong}))
        assert "in the usual, less strict sense of" in str(made)

    def test_where_there_is_nothing_to_tell_apart(self):
        pure = Account("by hand", worst_case=1.0, secure=False, generation=0.5).released([1.0])
        assert pure.epsilon_usual == pure.epsilon
        assert "epsilon_usual" not in json.loads(pure.to_json())
        assert "in the usual, less strict sense of" not in str(pure)
        at_a_delta = Account("by hand", worst_case=2.0, secure=False, delta=1e-6, generation=0.5).released([1.0])
        assert at_a_delta.delta == 1e-6
        assert "sense of" not in str(at_a_delta)
        held = Account("by hand", worst_case=2.0, secure=False, delta=1e-6).interrupted()
        assert held.epsilon_usual == held.epsilon


class TestFilter:
    @settings(max_examples=20, deadline=None)
    @given(st.lists(st.floats(1e-6, 0.05), max_size=40), st.floats(0.05, 3))
    def test_no_outcome_is_above_the_budget(self, steps, budget):
        account = Account("by hand", worst_case=budget, secure=False, delta=1e-6)
        for rho in steps:
            if account.fits(Curve.gaussian(rho)):
                account.book("generation", Curve.gaussian(rho))
        assert account.released([0.0]).epsilon <= budget  # Release would raise

    def test_room(self):
        account = Account("by hand", worst_case=1.0, secure=False, delta=1e-6)
        account.book("test", Curve.gaussian(0.004))
        left = account.room
        assert account.fits(Curve.gaussian(left))
        assert not account.fits(Curve.gaussian(left * 1.001))
        assert room(Curve.ex_post(2.0), 1.0, 1e-6) == 0.0


def release(rho=0.01, delta=1e-6, **booked):
    account = Account("by hand", worst_case=9.0, secure=False, delta=delta, **booked)
    account.book("generation", Curve.gaussian(rho))
    account.book("test", Curve.gaussian(rho / 10))
    return account.released([1.0])


class TestReleases:
    def test_parts_add_up(self):
        made = release(probe=0.01)
        assert made.delta == 1e-6
        assert made.epsilon_probe == 0.01
        assert made.epsilon_generation > made.epsilon_test > 0
        assert math.isclose(made.epsilon, made.account_curve().epsilon(1e-6), rel_tol=1e-12)

    def test_round_trip(self):
        made = release()
        assert Release.from_json(made.to_json()) == made
        text = json.loads(made.to_json())
        assert text["curve"]["orders"] == list(ORDERS)
        pure = Account("by hand", worst_case=1.0, secure=False, generation=0.5).released([1.0])
        assert "delta" not in json.loads(pure.to_json())

    @pytest.mark.parametrize("change", [{"delta": 1e-9}, {"delta": 0.0}, {"delta": 1.0}])
    def test_tampered_texts_are_refused(self, change):
        raw = json.loads(release().to_json())
        with pytest.raises(ValueError, match=r"not a release|without delta|delta must be"):
            Release.from_json(json.dumps({**raw, **change}))

    def test_settled_by_the_search(self):
        with pytest.raises(ValueError, match="settled"):
            release().with_details(delta=0.5)

    def test_an_interruption_charges_the_budget(self):
        account = Account("by hand", worst_case=2.0, secure=False, delta=1e-6)
        held = account.interrupted()
        assert (held.epsilon, held.delta, dict(held.curve)) == (2.0, 1e-6, {})
        with pytest.raises(ValueError, match="only epsilon at delta"):
            held.account_curve()
        account.one_curve = "gaussian"
        assert account.interrupted().account_curve() == account.worst  # which no outcome exceeds at any order
        assert account.worst.fits(2.0, 1e-6)

    def test_composition(self):
        pure = Account("by hand", worst_case=1.0, secure=False, generation=0.5).released([1.0])
        approximate = [release(), release()]
        together = compose([*approximate, pure])
        assert together.delta == 2e-6
        assert together.epsilon >= 2 * approximate[0].epsilon + 0.5
        joint = compose([*approximate, pure], delta=1e-6)
        assert (joint.delta, joint.epsilon < together.epsilon) == (1e-6, True)
        assert joint.epsilon > approximate[0].epsilon + 0.5
        assert joint.epsilon_worst_case == math.inf  # worst cases were stated at 2·10⁻⁶ together
