"""No outcome costs more than its worst case, to the last bit: otherwise what was spent would go unreported."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from expost import ExcessRisk
from expost.account.composition import add_losses
from expost.exceptions import AccuracyNotReached
from expost.goals.measure import GradientLength, charged_grid, gradient_target
from expost.mechanisms import Output, output as module
from expost.mechanisms.mechanism import NullQuestion
from expost.mechanisms.moments.covariance import _ATTEMPTS, _ROUNDINGS, FewPlan
from expost.mechanisms.output import OutputCertificate
from expost.numeric import Grid
from expost.search import DoublingPlan, doubling_search, run_search
from expost.solve.ball import into_ball
from expost.solve.error_bounds import GeneralErrors, RidgeErrors
from expost.solve.losses import HuberLoss, LogisticLoss, SmoothedHingeLoss, SquaredLoss, WeightedLoss
from expost.solve.problem import Problem, gradient_sensitivity
from tests.helpers import classification_rows

LOSSES = [
    LogisticLoss(),
    HuberLoss(0.1),
    HuberLoss(0.5),
    SmoothedHingeLoss(0.5),
    SquaredLoss(),
    WeightedLoss(LogisticLoss(), 0.25, 1.0),
]


def exponents(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(low, high).map(lambda power: 10.0**power)


def certificate(loss, p, lam, gamma, noise, sensitivity=0.7, probe=0.01):
    """Return a certificate for an excess risk of one, whatever it would cost."""
    problem = Problem.of(loss, n=1000, p=p, regularization=lam)
    null = NullQuestion.of(problem, 1.0, 0.15 * gamma, GeneralErrors(loss, 1000, p, lam))
    return OutputCertificate(problem, 1.0, gamma, noise, sensitivity, 0.0, null, probe, float("inf"))


class TestCertifiedOutput:
    @pytest.mark.parametrize("noise", ["laplace", "spherical"])
    @pytest.mark.parametrize("cell", [0, 1, 256, 510, 511])
    def test_a_penalty_beside_which_rows_do_not_show(self, noise, cell):
        plan = certificate(LogisticLoss(), 10, 3.95e8, 0.00169, noise, sensitivity=1.0)
        assert plan.epsilon_at(cell / 512) <= plan.epsilon_at(1.0)

    @given(
        noise=st.sampled_from(["laplace", "spherical"]),
        loss=st.sampled_from(LOSSES),
        p=st.integers(1, 40),
        lam=exponents(-9, 13),
        gamma=exponents(-6, -0.5),
        trace=st.floats(0.0, 1.0) | st.integers(500, 512).map(lambda cell: cell / 512),
    )
    @settings(max_examples=60)
    def test_no_trace_costs_more_than_the_largest(self, noise, loss, p, lam, gamma, trace):
        plan = certificate(loss, p, lam, gamma, noise)
        assert plan.energy(0.0) <= plan.energy(1.0)
        spent = add_losses(plan.epsilon_at(trace), plan.null.cost, plan.epsilon_probe)
        assert spent <= plan.worst_case

    @pytest.mark.slow
    def test_no_trace_costs_more_than_the_largest_of_many(self):
        rng = np.random.default_rng(0)
        for _ in range(3000):
            lam, gamma = 10.0 ** rng.uniform(-9, 13), 10.0 ** rng.uniform(-6, -0.5)
            noise, p = str(rng.choice(["laplace", "spherical"])), int(rng.integers(1, 60))
            plan = certificate(LogisticLoss(), p, lam, gamma, noise)
            assert plan.epsilon_at(float(rng.choice([rng.random(), 1 - 1 / 512]))) <= plan.epsilon_at(1.0)

    @pytest.mark.parametrize("noise", ["laplace", "spherical"])
    @pytest.mark.parametrize("lam", [1e8, 3.95e8, 1e12, 1e15])
    @pytest.mark.parametrize("trace", [None, 511 / 512])
    def test_the_search_ends_with_a_release(self, noise, lam, trace, monkeypatch):
        """Also where a smaller trace saves nothing, so that it is not asked for."""
        if trace is not None:
            monkeypatch.setattr(OutputCertificate, "probe_trace", lambda *args: trace)
        rows = classification_rows(500)
        problem = Problem.of(LogisticLoss(), n=rows.n, p=rows.p, regularization=lam)
        generator = Output(noise).on(rows, problem)
        settings = {"method": "certified", "failure_probability": 0.00169}
        for seed in range(5):
            release = run_search(generator, problem, ExcessRisk(1e-6), random_state=seed, **settings)
            assert release.epsilon <= release.epsilon_worst_case

    @pytest.mark.parametrize("noise", ["laplace", "spherical"])
    def test_a_trace_that_saves_nothing_is_not_asked_for(self, noise, monkeypatch):
        monkeypatch.setattr(module, f"{noise}_energy", lambda *args, **options: 5.0)
        rows = classification_rows(500)
        problem = Problem.of(LogisticLoss(), n=rows.n, p=rows.p, regularization=1.0)
        generator = Output(noise).on(rows, problem)
        release = run_search(generator, problem, ExcessRisk(0.01), method="certified", random_state=0)
        assert (release.status, release.epsilon_probe) == ("released", 0.0)


class TestGradientDoubling:
    @pytest.mark.parametrize("factor", [1.3, 2.0, 3.0])
    @pytest.mark.parametrize("loss", [HuberLoss(0.1), LogisticLoss()], ids=repr)
    def test_every_round_at_its_dearest(self, loss, factor):
        """A slope that has a limit makes the test of every long θ cost the same, so that nothing is left over."""
        rng = np.random.default_rng(1)
        rows = classification_rows(200)
        for _ in range(10):
            problem = Problem.of(loss, n=rows.n, p=rows.p, regularization=1e-6)
            risk = Output().on(rows, problem).risk
            far = into_ball(np.full(rows.p, -1e9), problem.radius)
            first, longest = 10.0 ** rng.uniform(-4, 0), problem.radius * (1 + 1e-9)
            error = risk.gradient_error_bound(longest)
            dearest = charged_grid(gradient_sensitivity(loss, longest) / rows.n, error).effective_sensitivity
            plan = DoublingPlan.of(
                target=gradient_target(10.0 ** rng.uniform(-3, -1), problem.regularization),
                failure_probability=0.1,
                sensitivity=dearest,
                first=first,
                last=30 * first,
                factor=factor,
                calibration="tight",
            )
            with pytest.raises(AccuracyNotReached) as refusal:
                doubling_search(lambda epsilon, far=far: far, GradientLength(risk, loss, rows.n), plan, random_state=0)
            assert refusal.value.release.epsilon <= refusal.value.release.epsilon_worst_case

    @given(st.lists(exponents(-6, 2), min_size=1, max_size=30))
    def test_sums_in_turn_may_exceed_the_sum_of_all(self, losses):
        assert add_losses(*losses) <= reduce(add_losses, losses) <= add_losses(*losses) * (1 + len(losses) * 2.0**-52)


class TestFewStatistics:
    @given(
        n=st.integers(10, 10**7),
        p=st.integers(1, 200),
        lam=exponents(-9, 12),
        alpha=exponents(-6, -0.5),
        gamma=exponents(-6, -0.5),
        before=exponents(-9, 0),
        sizes=st.lists(st.floats(0.0, 1.0) | st.just(1.0), min_size=12, max_size=12),
        stop=st.integers(0, _ATTEMPTS),
    )
    def test_attempts_as_dear_as_they_can_be(self, n, p, lam, alpha, gamma, before, sizes, stop):
        """The losses in the order they are booked, each anything up to its largest, against the plan's worst case."""
        problem = Problem.of(SquaredLoss(), n=n, p=p, regularization=lam)
        bounds = RidgeErrors(p, lam, problem.radius)
        plan = FewPlan.of(problem, alpha, gamma, bounds)
        test, probe, generation = before, plan.trace_epsilon, 0.0
        for attempt in range(stop):
            # what the budget must have room for
            allowed = add_losses(add_losses(probe, test, generation), plan.next_attempt(attempt)) * _ROUNDINGS
            generation = plan.levels[attempt]
            k, (overlap, largest, length) = attempt + 1, sizes[3 * attempt : 3 * attempt + 3]
            if attempt:
                probe = add_losses(probe, plan.direction_epsilon(largest))
            probe = add_losses(probe, plan.probe_epsilon(overlap * np.sqrt(k) * (1 + 1e-12), k))
            sensitivity = gradient_sensitivity(problem.loss, length * problem.optimum_radius) / n
            error = bounds.gradient_error_bound(length * problem.optimum_radius * (1 + 1e-12))
            charged = Grid.of(sensitivity, error_bound=error).effective_sensitivity
            test = add_losses(test, plan.test.epsilon(charged))
            assert add_losses(generation, test, probe) <= allowed
        assert add_losses(generation, test, probe) <= add_losses(before, plan.most)


@given(
    loss=st.sampled_from(LOSSES),
    n=st.integers(1, 10**7),
    lam=exponents(-9, 12),
    longest=exponents(-6, 6),
    share=st.floats(0.0, 1.0) | st.floats(0.0, 1e-6).map(lambda less: 1.0 - less),
)
def test_a_shorter_hypothesis_is_not_dearer_to_test(loss, n, lam, longest, share):
    bounds = GeneralErrors(loss, n, 5, lam)

    def charged(norm: float) -> float:
        error = bounds.gradient_error_bound(norm * (1 + 1e-12))
        return Grid.of(gradient_sensitivity(loss, norm) / n, error_bound=error).effective_sensitivity

    assert charged(share * longest) <= charged(longest * (1 + 1e-9))
