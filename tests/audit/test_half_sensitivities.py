"""Every shipped sensitivity, halved by a switch, turns the audit red: what is charged for is really needed.

Seeded; transcripts have no false alarms, and bounds from counts are false with probability 10⁻⁶ at most. That the same
attacks call what is shipped sound is part of the test.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from expost.account.composition import Unit
from expost.audit import Setting, counting, sensitivities
from expost.goals import (
    F1,
    R2,
    ErrorRate,
    LogLoss,
    MeanCost,
    MeanSquaredError,
    Precision,
    Recall,
    Specificity,
    labels_and_base_rate as counts,
    measure,
    relative_excess_risk as relative,
    squared_errors,
    yardstick,
)
from expost.mechanisms import output
from expost.mechanisms.descent import gradient_descent as descent
from expost.mechanisms.moments import certificate, covariance, gaussian_moments as gaussian
from expost.mechanisms.objective import gaussian_objective as gaussian_objective
from expost.mechanisms.output import Output
from expost.numeric import Grid
from expost.release import evaluation_count as histogram
from expost.search import new_rows
from expost.search.levels import StagedPlan
from expost.search.request import CheckedPlan
from expost.solve import problem
from expost.solve.losses import HuberLoss
from expost.solve.problem import Problem
from expost.table.shape import Geometry

from .helpers import found

pytestmark = pytest.mark.usefixtures("repeated")


def half(owner: Any, name: str) -> Callable[[pytest.MonkeyPatch], None]:
    """Halve a number, or what a property or a method returns."""

    def breaks(patch: pytest.MonkeyPatch) -> None:
        honest = vars(owner)[name]
        get = getattr(honest, "func", None) or getattr(honest, "fget", None)
        if isinstance(honest, int | float):
            patch.setattr(owner, name, honest // 2 if isinstance(honest, int) else honest / 2)
        elif get is not None:
            patch.setattr(owner, name, property(lambda self: get(self) / 2))
        else:
            patch.setattr(owner, name, lambda *given: honest(*given) / 2)

    return breaks


def slope(patch):
    honest = Geometry.weights
    patch.setattr(Geometry, "weights", lambda self, epsilon, slope: honest(self, epsilon, slope / 2))


def labels(patch):
    """Twice the number, for the noise of one."""
    honest = counts.NoisePath
    patch.setattr(counts, "NoisePath", lambda values, units, levels, **more: honest(2 * values, units, levels, **more))


def cut_off(patch):
    honest = counting.noisy_best
    patch.setattr(counting, "noisy_best", lambda scores, epsilon, *more: honest(scores, 2 * epsilon, *more))


def cells(patch):
    """Twice the counts, for the noise of one."""
    honest = histogram._counts
    patch.setattr(histogram, "_counts", lambda *given: 2 * honest(*given))


def held_out(patch):
    honest = new_rows.NoisyMean.ask
    patch.setattr(
        new_rows.NoisyMean,
        "ask",
        lambda self, mean, source: honest(replace(self, epsilon=2 * self.epsilon), mean, source),
    )


def one_row(patch):
    """What a person costs is what one of their two rows costs."""
    patch.setattr(Unit, "charge", lambda self, loss: loss)
    patch.setattr(Unit, "share", lambda self, budget: budget)


def slope_at_delta(patch):
    honest = gaussian_objective.gaussian_deviations
    patch.setattr(gaussian_objective, "gaussian_deviations", lambda shape, slope, rho: honest(shape, slope / 2, rho))


def gradients(patch):
    honest = descent.GradientNoise
    patch.setattr(descent, "GradientNoise", lambda columns, most, rho: honest(columns, most / 2, rho))


def grids_of(module):
    """The sensitivity that a module states when it settles a grid."""

    class Halved(Grid):
        @classmethod
        def of(cls, sensitivity, *, error_bound=0.0):
            return Grid.of(sensitivity / 2, error_bound=error_bound)

    return lambda patch: patch.setattr(module, "Grid", Halved)


def choice_in_a_search(patch):
    honest = counts.noisy_best
    patch.setattr(counts, "noisy_best", lambda scores, epsilon, *more: honest(scores, 2 * epsilon, *more))


def few_numbers(patch):
    honest = covariance._revealed
    patch.setattr(covariance, "_revealed", lambda values, moved, *more: honest(values, moved / 2, *more))


def moments_at_delta(patch):
    honest = gaussian.MomentNoise.draw
    patch.setattr(gaussian.MomentNoise, "draw", lambda self, rho, source: honest(self, 4 * rho, source))


#: What is halved, the attack that turns red, and how many runs that takes.
HALVED = {
    "moments": (half(covariance, "STATISTICS_SENSITIVITY"), "moments", 10),
    "moments in parts": (half(certificate, "PART_SENSITIVITY"), "parts", 60),
    "first moments": (half(covariance, "PART_SENSITIVITY"), "first-moments", 60),
    "moments at a delta": (moments_at_delta, "gaussian-moments", 10),
    "moments of a path that is kept": (half(certificate, "PART_SENSITIVITY"), "kept-moments", 6),
    "moments times a direction": (few_numbers, "direction", 5),
    "moments between directions": (few_numbers, "projection", 5),
    "trace": (half(output, "TRACE_SENSITIVITY"), "trace", 60),
    "minimiser": (half(Problem, "output_sensitivity"), "minimiser", 10),
    "minimiser, Euclidean": (half(Output, "noise_sensitivity"), "minimiser-spherical", 30),
    "minimiser, the paper's constant": (half(problem, "paper_ridge_output_sensitivity"), "paper-minimiser", 20),
    "minimiser of a path that is kept": (half(Problem, "output_sensitivity"), "kept-minimisers", 10),
    "excess risk": (half(Problem, "risk_sensitivity"), "excess-risk", 30),
    "excess risk, the paper's constant": (half(Problem, "risk_sensitivity"), "excess-risk-paper", 30),
    "null model's gradient": (half(measure, "gradient_sensitivity"), "null-gradient", 4),
    "gradient": (half(measure, "gradient_sensitivity"), "gradient", 4),
    "gap of the null model": (grids_of(relative), "gap-null", 4),
    "gap of the best constant": (grids_of(relative), "gap-constant", 4),
    "what a capped loss leaves out": (half(HuberLoss, "left_out_sensitivity"), "left-out", 5),
    "objective": (slope, "objective-density", 100),
    "objective at a delta": (slope_at_delta, "gaussian-gradient", 100),
    "descent: gradients": (gradients, "descent", 3),
    "descent: how long rows are": (half(descent, "PARTS"), "lengths", 60),
    "readable cells": (half(CheckedPlan, "cost"), "table-fits", 8),
    "base rate": (labels, "base-rate", 10),
    "base rate at a delta": (labels, "base-rate-delta", 4),
    "mean and spread": (half(yardstick, "_SENSITIVITY"), "yardstick", 4),
    "mean and spread at a delta": (half(yardstick, "_EUCLIDEAN"), "yardstick-delta", 4),
    "shortfall in levels": (half(StagedPlan, "sensitivity"), "fit-descent", 6),
    "mistakes": (half(counts.ErrorShare, "sensitivity"), "mistakes", 2),
    "mean square": (half(squared_errors, "mean_square_sensitivity"), "mean-square", 4),
    "cut-offs": (cut_off, "noisy-best", 3_000),
    "cut-offs in a search": (choice_in_a_search, "cut-offs", 2),
    "cut-offs at a delta": (choice_in_a_search, "cut-offs-delta", 2),
    "evaluation": (cells, "evaluation", 10),
    "evaluation at a delta": (cells, "evaluation-delta", 10),
    "new rows": (held_out, "fit-new-rows", 10),
    "new persons": (held_out, "fit-new-persons", 6),
    "new persons at a delta": (held_out, "fit-new-persons-delta", 6),
    "new persons, whose rows count once": (one_row, "fit-new-persons", 6),
    "new persons at a delta, the same": (one_row, "fit-new-persons-delta", 6),
    "new persons: steps of a descent": (gradients, "fit-new-persons-delta", 6),
    "evaluation on rows held out": (cells, "evaluation-new-rows", 10),
    "evaluation on persons": (cells, "evaluation-persons", 10),
    "new rows, exactly": (held_out, "exact-new-rows", 0),
    "new rows at a delta, exactly": (held_out, "exact-new-rows-delta", 0),
    "persons": (half(Unit, "charge"), "fit-persons", 10),
}


@pytest.mark.parametrize(("breaks", "attack", "runs"), HALVED.values(), ids=HALVED)
def test_half_of_a_sensitivity_turns_the_audit_red(monkeypatch, breaks, attack, runs):
    with monkeypatch.context() as patch:
        breaks(patch)
        broken = found(attack, runs)
    output._grid.cache_clear()
    assert broken.broken, broken
    assert not found(attack, runs).broken


GOALS = {
    "error rate": ErrorRate(0.45),
    "recall and precision": Recall(0.6) & Precision(0.5),
    "recall and specificity": Recall(0.6) & Specificity(0.5),
    "F1": F1(0.5),
    "cost": MeanCost(0.5, false_positive=1.0, false_negative=4.0),
    "log loss": LogLoss(0.6),
    "mean squared error": MeanSquaredError(0.3),
    "R2": R2(0.3),
}


@pytest.mark.parametrize("goal", GOALS.values(), ids=GOALS)
def test_half_of_what_one_row_moves_a_goal_by_turns_the_audit_red(monkeypatch, goal):
    attack = sensitivities.shortfall(goal, labels=not isinstance(goal, MeanSquaredError | R2))
    with monkeypatch.context() as patch:
        honest = type(goal).shortfall_sensitivity
        patch.setattr(type(goal), "shortfall_sensitivity", lambda self, n: honest(self, n) / 2)
        assert attack(Setting(100, 1)).broken
    assert not attack(Setting(100, 1)).broken
