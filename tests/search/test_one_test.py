"""One question with Laplace noise: its cost and its wrong answers, exactly and by simulation.

The law is read off the implementation and paired with tests that are broken and have to be caught; simulations are
seeded, their false-alarm rate is RARE.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from expost.goals.measure import ErrorMeasure, GradientLength
from expost.mechanisms import Covariance
from expost.noise import SeededSource
from expost.search import noisy_test as one_test
from expost.search.noisy_test import OneTest
from expost.solve.losses import SquaredLoss
from tests.helpers import RARE, problem_of, ridge_rows


class TestOneTest:
    def test_cost_and_scale(self):
        test = OneTest(target=0.02, failure_probability=0.01, share=0.5)
        assert test.scale == pytest.approx(0.01 / math.log(50))
        assert test.epsilon(1e-5) == pytest.approx(1e-5 * math.log(50) / 0.01)

    @pytest.mark.parametrize(("broken", "caught"), [(1.0, False), (0.5, True)])
    def test_wrong_yes(self, broken, caught):
        """An error at the target passes with probability at most δ; one half-way to the limit passes more often."""
        delta = 0.05
        test = OneTest(target=1.0, failure_probability=delta, share=0.5)
        measure = ErrorMeasure(lambda _: 1.0 - 0.5 * (1 - broken), sensitivity=0.01)
        source = SeededSource(3)
        runs = 4000
        passed = sum(test.ask(measure, None, source)[0] for _ in range(runs))
        assert (stats.binomtest(passed, runs, delta, alternative="greater").pvalue < RARE) == caught

    def test_bad_arguments(self):
        with pytest.raises(ValueError, match="failure_probability"):
            OneTest(1.0, 0.6, 0.5)

    def test_the_cost_is_known_beforehand(self):
        """From public numbers alone, rounding and floating point included; and asking costs that, whatever it says."""
        rows = ridge_rows(500, 3, 0)
        measure = GradientLength(Covariance().on(rows, problem_of(rows, SquaredLoss())).risk, SquaredLoss(), rows.n)
        test, answers = OneTest(target=0.05, failure_probability=0.1, share=0.5), set()
        small = ErrorMeasure(lambda _: 0.0, sensitivity=1e-6)  # passes but for a chance far below RARE
        answers.add(test.ask(small, None, SeededSource(0))[0])
        for theta in (np.zeros(4), np.full(4, 0.3), np.full(4, 5.0)):
            cost = test.cost(measure.sensitivity(theta), measure.error_bound(theta))
            assert cost > test.epsilon(measure.sensitivity(theta) + 2 * measure.error_bound(theta))
            for seed in range(40):
                accepted, epsilon = test.ask(measure, theta, SeededSource(seed))
                assert epsilon == cost
                answers.add(accepted)
        assert answers == {True, False}


def test_one_test():
    """The answer costs Δ/s: a value moved by its whole sensitivity changes the odds of a yes by at most e^ε."""
    test = OneTest(target=1.0, failure_probability=0.1, share=0.5)
    delta = 0.3
    low, high = (ErrorMeasure(lambda _, v=value: v, sensitivity=delta) for value in (0.4, 0.4 + delta))
    epsilon = test.epsilon(low.effective_sensitivity)
    runs, source = 6000, SeededSource(4)
    yes_low, yes_high = (sum(test.ask(m, None, source)[0] for _ in range(runs)) / runs for m in (low, high))
    slack = 6 / math.sqrt(runs * min(yes_low, yes_high))
    assert abs(math.log(yes_low / yes_high)) <= epsilon + slack
    assert abs(math.log(yes_low / yes_high)) >= 0.5 * epsilon  # and the charge is not far off


@pytest.mark.parametrize(("broken", "caught"), [(1.0, False), (3.0, True)])
def test_a_question_given_up_early_costs_what_it_says(monkeypatch, broken, caught):
    """Answer and price together are what is seen: no such outcome's odds move by more than e^ε (RARE for each).

    With noise of a third of the scale that is charged they do.
    """
    if broken != 1.0:
        path = one_test.NoisePath
        monkeypatch.setattr(
            one_test, "NoisePath", lambda v, units, levels, **k: path(v, units, [broken * t for t in levels], **k)
        )
    test, delta, runs = OneTest(target=1.0, failure_probability=0.1, share=0.5), 0.3, 1500
    beyond = False
    for value in (0.4, 1.6):
        seen = []
        for number, at in enumerate((value, value + delta)):
            measure, source = ErrorMeasure(lambda _, v=at: v, sensitivity=delta), SeededSource([4, number])
            answers = [test.ask_gradually(measure, None, source) for _ in range(runs)]
            seen.append([(yes, round(cost / broken, 9)) for yes, cost in answers])
        for outcome in set(seen[0]) | set(seen[1]):
            counts = [side.count(outcome) for side in seen]
            odds = stats.beta.ppf([RARE / 2, 1 - RARE / 2], max(counts) + 0.5, min(counts) + 0.5)[0]
            beyond |= math.log(odds / (1 - odds)) > outcome[1]
    assert beyond == caught


@pytest.mark.parametrize(("value", "caught"), [(1.0, False), (0.7, True)])
def test_a_wrong_yes_is_no_likelier_where_it_may_be_given_up(value, caught):
    """An error at the target passes with probability at most δ; one nearer the limit passes more often (RARE)."""
    test, source, runs = OneTest(target=1.0, failure_probability=0.05, share=0.5), SeededSource(3), 1500
    measure = ErrorMeasure(lambda _: value, sensitivity=0.01)
    answers = [test.ask_gradually(measure, None, source) for _ in range(runs)]
    passed = sum(yes for yes, _ in answers)
    assert (stats.binomtest(passed, runs, 0.05, alternative="greater").pvalue < RARE) == caught
    most = test.cost(measure.sensitivity(), 0.0)
    assert {cost for yes, cost in answers if yes} == {most}
    far = ErrorMeasure(lambda _: 100.0, sensitivity=0.01)
    assert test.ask_gradually(far, None, source) == (False, most / 8)


# --- exactly ---------------------------------------------------------------------------------------------------------


def chance_of_yes(test: OneTest, measure: ErrorMeasure, monkeypatch) -> tuple[float, float, float]:
    """Return P(yes), P(no) and the ε charged: the law is read off the implementation, not simulated."""
    seen: dict[str, float] = {}

    def answer(noise: int) -> bool:
        def planted(epsilon, sensitivity, size, *, random_state):
            seen.update(rate=epsilon / sensitivity)
            return np.full(size, noise)

        monkeypatch.setattr(one_test, "discrete_laplace", planted)
        yes, seen["epsilon"] = test.ask(measure, None, SeededSource(0))
        return yes

    low, high = -(1 << 40), 1 << 40
    assert answer(low)
    assert not answer(high)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if answer(middle) else (low, middle)
    rate = seen["rate"]

    def below(k: int) -> float:  # P(noise ≤ k) for k < 0
        return math.exp(rate * k) / (1 + math.exp(-rate))

    yes = below(low) if low < 0 else 1 - below(-low - 1)
    no = 1 - below(low) if low < 0 else below(-low - 1)
    return yes, no, seen["epsilon"]


def loss_of_a_test(monkeypatch, *, stated: float = 0.01, real: float = 0.01) -> float:
    """Return the largest log-ratio over ε, for answers a true sensitivity ``real`` apart."""
    test, worst = OneTest(0.3, 0.02, 0.6), 0.0
    for value in (0.0, 0.1003, 0.11777, 0.12, 0.25, 0.31):
        for error in (0.0, 1e-7):
            pair = [
                chance_of_yes(test, ErrorMeasure(lambda _, v=v: v, sensitivity=stated, error_bound=error), monkeypatch)
                for v in (value, value + real + 2 * error)
            ]
            for side in (0, 1):
                worst = max(worst, abs(math.log(pair[0][side] / pair[1][side])) / pair[0][2])
    return worst


def test_one_test_costs_what_it_says(monkeypatch):
    assert 0.99 < loss_of_a_test(monkeypatch) <= 1 + 1e-12


def test_an_understated_sensitivity_shows(monkeypatch):
    assert loss_of_a_test(monkeypatch, stated=0.005) > 1.5


@pytest.mark.parametrize("failure", [0.3, 0.02, 1e-6])
@pytest.mark.parametrize("share", [0.1, 0.6, 0.99])
def test_a_wrong_yes_is_as_rare_as_promised(monkeypatch, failure, share):
    for target in (0.3, 0.3000001, 7.0):
        measure = ErrorMeasure(lambda _, t=target: t, sensitivity=0.01)
        yes, _, _ = chance_of_yes(OneTest(target, failure, share), measure, monkeypatch)
        assert 0.99 * failure < yes <= failure


def test_without_a_margin_a_wrong_yes_is_common(monkeypatch):
    measure = ErrorMeasure(lambda _: 0.3, sensitivity=0.01)
    units = math.ceil(0.6 * 0.3 / measure.fine_grid(None).unit)
    monkeypatch.setattr(one_test, "_SLACK", -units)
    assert chance_of_yes(OneTest(0.3, 0.02, 0.6), measure, monkeypatch)[0] > 0.4
