"""Attacks on sensitivities: how far one row is said to move what gets noise, beside how far it does move it.

Noise that is made for a sensitivity of Δ and has scale Δ/ε costs ε between neighbours that are Δ apart, and ε times
|v − v′|/Δ between others. So the claim is 1 and the bound is the ratio, computed from the two private values that a
search would compute, with no noise and no statistics. Neighbours are chosen for each: a sensitivity is attained where
the row that is replaced stands at an end of what is allowed and all others turn the rest of the table the same way.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

import expost.goals.labels_and_base_rate as counts_module
import expost.mechanisms.moments.covariance as covariance_module
from expost.account.account import Account
from expost.account.composition import ROW, Unit
from expost.audit.attack import Attack, Found, Setting, nearest
from expost.audit.searches import DELTA, extreme_rows, replaced
from expost.audit.transcripts import log_choice
from expost.goals import R2, ErrorRate, LogLoss, Precision, Recall
from expost.goals.goal import TestedGoal
from expost.goals.labels_and_base_rate import BaseRate, ErrorShare
from expost.goals.measure import GradientLength, mean_left_out
from expost.goals.relative_excess_risk import Baseline, GapPlan, constant_gain
from expost.goals.squared_errors import SquaredErrorMean
from expost.mechanisms import mechanism_of, output
from expost.mechanisms.descent import gradient_descent as descent
from expost.mechanisms.descent.clipping import ClippedGradients, Frame, SlopeTable
from expost.mechanisms.moments import certificate
from expost.mechanisms.moments.covariance import FewPlan
from expost.mechanisms.moments.statistics import Layout
from expost.noise import SeededSource
from expost.noise.source import exactly
from expost.numeric import to_grid
from expost.passes.sums import sums_over
from expost.solve import LogisticLoss, Passes, Problem, SquaredLoss
from expost.solve.losses import CappedLogisticLoss, HuberLoss
from expost.solve.row_sums import PassGradients
from expost.table.rows import ONE, MemorySource, Rows
from expost.table.shape import l1_ball


class Pair(NamedTuple):
    """What is computed on two neighbours, and how far the charge takes it to move in ℓ₁."""

    here: Sequence[float]
    there: Sequence[float]
    charged: float


def moves(pair: Callable[[np.random.Generator], Pair]) -> Callable[[Setting], Found]:
    """Attack how far one row is said to move numbers, on neighbours that follow from random numbers."""

    def one(rng: np.random.Generator) -> Found:
        here, there, charged = pair(rng)
        return Found(1.0, float(sum(abs(a - b) for a, b in zip(here, there, strict=True)) / charged))

    return lambda setting: nearest(one(rng) for _, rng in setting.each())


def _pair(measured: Callable[[Rows], Sequence[float]], both: Sequence[Rows], charged: float) -> Pair:
    here, there = (measured(rows) for rows in both)
    return Pair(here, there, charged)


# --- what models are made of ------------------------------------------------------------------------------------------


def sums(numbers: Callable[[Rows], list[int]], said: tuple[Any, str]) -> Callable[[Setting], Found]:
    """Attack integers, by what a name in a module says of them."""

    def pair(rng: np.random.Generator) -> Pair:
        rows, other = extreme_rows(rng, int(rng.integers(2, 12)), 2, labels=True)
        if rng.random() < 0.5:  # an empty row in the place of one at the end of what is allowed
            other = Rows(np.where(np.arange(rows.n)[:, None] == 0, 0, rows.x).astype(np.int32), rows.y)
        return _pair(numbers, (rows, other), vars(said[0])[said[1]])

    return moves(pair)


def _parts(rows: Rows) -> list[int]:
    return [int(value) for value in Layout(rows.p).pack(sums_over(MemorySource(rows)))[: -rows.p]]


def _first_moments(rows: Rows) -> list[int]:
    return [int(value) for value in sums_over(MemorySource(rows)).moment]


def _trace(rows: Rows) -> list[int]:
    return [sum(int(value) for value in sums_over(MemorySource(rows)).gram.diagonal())]


def _lengths(rows: Rows) -> list[int]:
    gradients = ClippedGradients(rows, SlopeTable.of(CappedLogisticLoss(0.5)))
    return [gradients.lengths_total(Frame.of(l1_ball(rows.p)), 1.0)]


def generator(rows: Rows, problem: Problem) -> Any:
    """Return what makes models of rows: from second moments where a loss has them."""
    return mechanism_of("covariance" if problem.loss.name == "squared" else "output").on(rows, problem)


def paper_minimiser(rng: np.random.Generator) -> Pair:
    """Return the minimiser of a single row, which is turned round: the paper's bound, a root, is nearest there."""
    problem = Problem.of(SquaredLoss(), n=1, p=1, regularization=rng.uniform(1.5, 4.0), paper_constants=True)
    both = replaced(((1.0,), 1.0), 1, ((1.0,), 1.0), ((1.0,), -1.0))
    of = mechanism_of("output")
    return _pair(lambda rows: of.on(rows, problem).risk.optimum.tolist(), both, problem.output_sensitivity)


def few_statistics(projected: bool) -> Callable[[np.random.Generator], Pair]:
    """Return what a search with few statistics reveals: second moments times a direction, or between directions."""

    def pair(rng: np.random.Generator) -> Pair:
        n = int(rng.integers(2, 12))
        problem = Problem.of(SquaredLoss(), n=n, p=2, regularization=1.0)
        plan = FewPlan.of(problem, 0.1, 0.05, mechanism_of("covariance").errors(problem))
        basis = np.eye(2)[:, : rng.integers(1, 3)]
        both = replaced(((1.0, 0.0), 1.0), n, ((1.0, 0.0), 1.0), ((0.0, 1.0), 1.0))
        asked: list[tuple[list[float], float]] = []

        def revealed(values: list[float], *, sensitivity: float, **_: Any) -> list[float]:
            asked.append((values, sensitivity))
            return values

        with mock.patch.object(covariance_module, "noisy_values", revealed):
            for rows in both:
                gram, account = sums_over(MemorySource(rows)).as_floats()[0], Account("audit", 1.0, False)
                if projected:
                    covariance_module._projected(gram, basis, plan, account, SeededSource(0))
                else:
                    covariance_module._direction(gram, np.full(2, math.sqrt(0.5)), plan, account, SeededSource(0))
        (here, charged), (there, _) = asked
        return Pair(here, there, charged)

    return pair


# --- what is asked about models ---------------------------------------------------------------------------------------


def shortfall(goal: TestedGoal, labels: bool) -> Callable[[Setting], Found]:
    """Attack a goal's shortfall."""

    def pair(rng: np.random.Generator) -> Pair:
        n = int(rng.integers(2, 12))
        judges = [Passes.over(goal.chain().loss, rows) for rows in extreme_rows(rng, n, 2, labels=labels)]
        theta = to_grid(rng.choice([-1.0, 1.0], 2) * 10.0 ** rng.uniform(-2, 2), 128.0)
        here, there = ([goal.shortfall(judge, theta)] for judge in judges)
        return Pair(here, there, goal.shortfall_sensitivity(n))

    return moves(pair)


def mistakes(rng: np.random.Generator) -> Pair:
    """Return the share of mistakes that above threshold asks about: a row's label is turned round."""
    n = int(rng.integers(2, 12))
    both = replaced(((1.0,), 1.0), n, ((1.0,), 1.0), ((1.0,), -1.0))
    measures = [ErrorShare(Passes.over(LogisticLoss(), rows)) for rows in both]
    here, there = ([measure.value(np.ones(1))] for measure in measures)
    return Pair(here, there, measures[0].sensitivity())


def mean_square(rng: np.random.Generator) -> Pair:
    """Return the mean square that above threshold asks about: the largest residual there can be is taken away."""
    n, m = int(rng.integers(2, 12)), 10.0 ** rng.uniform(-2, 1)
    right = min(1.0, 1.0 / m)  # where the prediction is at most 1, and can be right
    both = replaced(((1.0,), 1.0), n, ((1.0,), -1.0), ((right,), right * m))
    problem = Problem.of(SquaredLoss(), n=n, p=1, regularization=1.0)
    measures = [SquaredErrorMean(generator(rows, problem).mean_square(), n) for rows in both]
    here, there = ([measure.value(np.array([m]))] for measure in measures)
    return Pair(here, there, measures[0].sensitivity(np.array([m])))


def excess_risk(paper: bool) -> Callable[[Setting], Found]:
    """Attack an excess risk within the ball: one of equal rows is turned round, or empty."""

    def pair(rng: np.random.Generator) -> Pair:
        n = int(rng.integers(2, 40))
        problem = Problem.of(
            SquaredLoss(), n=n, p=1, regularization=10.0 ** rng.uniform(-0.5, 0.5), paper_constants=paper
        )
        both = replaced(((1.0,), 1.0), n, ((1.0,), 1.0), ((float(rng.choice([-1.0, 0.0])),), 1.0))
        theta = np.array([rng.choice([-1.0, 1.0]) * problem.radius])
        return _pair(lambda rows: [generator(rows, problem).risk.excess(theta)], both, problem.risk_sensitivity)

    return moves(pair)


def gradient_length(rng: np.random.Generator, m: float) -> Pair:
    """Return how long the gradient is at (m, m).

    At zero the row that is replaced is turned round among rows like it. Elsewhere it points along one axis and then
    along another, both with the steepest slope, and all other rows make the gradient long in the direction between.
    """
    n, loss = 4_000, (SquaredLoss(), LogisticLoss())[rng.integers(2)]
    if m:
        both = replaced(((0.5, -0.5), -1.0), n, ((1.0, 0.0), -1.0), ((0.0, 1.0), -1.0))
    else:
        both = replaced(((1.0, 0.0), 1.0), n, ((1.0, 0.0), 1.0), ((-1.0, 0.0), 1.0))
    theta, lam = np.full(2, m), 1e-6
    problem = Problem.of(loss, n=n, p=2, regularization=lam)
    risks: list[Any] = (
        [generator(rows, problem).risk for rows in both]
        if isinstance(loss, SquaredLoss)
        else [PassGradients(Passes.over(loss, rows), lam) for rows in both]
    )
    measures = [GradientLength(risk, loss, n) for risk in risks]
    here, there = ([measure.value(theta)] for measure in measures)
    return Pair(here, there, measures[0].sensitivity(theta))


def gap(baseline: Baseline) -> Callable[[Setting], Found]:
    """Attack what a baseline leaves on the table, on the scale on which it is released.

    The null model's is moved most where a large penalty makes models small, as the bound takes them to be: one of equal
    rows is turned round. A constant's gets another label at a row that the model mistook before.
    """

    def pair(rng: np.random.Generator) -> Pair:
        n, loss = 2_000, (SquaredLoss(), LogisticLoss())[rng.integers(2)]
        problem = Problem.of(loss, n=n, p=1, regularization=30.0 if baseline == "null" else 1.0)
        errors = mechanism_of("covariance" if loss.name == "squared" else "output").errors(problem)
        plan = GapPlan.of(problem, 0.1, errors, 1e6, baseline)
        first = ((1.0,), 1.0) if baseline == "null" else ((-1.0,), 1.0)
        both = replaced(((1.0,), 1.0), n, first, (first[0], -1.0))

        def height(rows: Rows) -> list[float]:
            risk = generator(rows, problem).risk
            left = risk.excess(np.zeros(1)) - (constant_gain(risk, loss) if baseline == "constant" else 0.0)
            return [plan.scale.height(left)]

        return _pair(height, both, plan.grid.effective_sensitivity)

    return moves(pair)


def left_out(rng: np.random.Generator) -> Pair:
    """Return what Huber's loss leaves out of the squared one: the largest residual there can be is taken away."""
    n, m, loss = int(rng.integers(2, 12)), float(rng.choice([0.5, 2.0])), HuberLoss(1.0)
    both = replaced(((1.0,), 1.0), n, ((1.0,), -1.0), ((0.0,), 0.0))
    theta = np.array([m])
    return _pair(
        lambda rows: [mean_left_out(Passes.over(loss, rows), theta, loss, m)], both, loss.left_out_sensitivity(m, n)
    )


_ABOVE_ONE_EDGE = 3072 - ONE  # of 1024 edges, evenly over what a model of length 1 predicts, beside the first


def cut_offs(unit: Unit, delta: float) -> Callable[[Setting], Found]:
    """Attack the choice of a cut-off by how many rows lie above each: rows above nearly all come to lie below them.

    No run is needed: which cut-off is likeliest to tell the two tables apart follows from the scores.
    """

    def both_ways(rng: np.random.Generator) -> Found:
        x = np.full((int(rng.integers(2, 8)) * unit.rows, 2), [8, _ABOVE_ONE_EDGE], dtype=np.int32)
        both = []
        for side in (1, -1):
            x[: unit.rows, 1] = side * (ONE - 128)
            rows = Rows(x.copy(), np.full(len(x), ONE, dtype=np.int32), norm="l2", constant=(0, 8))
            both.append(_chosen(rows, unit, delta))
        (here, charged, rate), (there, _, _) = both
        ahead = np.subtract(here, there)
        ends = int(np.argmax(ahead)), int(np.argmin(ahead))
        bounds = [abs(log_choice(here, rate, best) - log_choice(there, rate, best)) for best in ends]
        return Found(charged, max(bounds), delta=delta)

    return lambda setting: nearest(both_ways(rng) for _, rng in setting.each())


def _chosen(rows: Rows, unit: Unit, delta: float) -> tuple[list[int], float, float]:
    """Return the scores of cut-offs, what choosing one of them was booked at, and the rate of the noise on each."""
    goal, account = dataclasses.replace(_RARE, base=BaseRate(0.3, 0.01, 0.01)), Account("audit", 100.0, False)
    account.unit, account.delta = unit, delta
    scores: list[int] = []
    rates: list[float] = []
    honest = counts_module.noisy_best

    def noted(given: Sequence[int], epsilon: float, sensitivity: int, source: Any) -> int:
        scores.extend(given)
        return honest(given, epsilon, sensitivity, source)

    def drawn(epsilon: float, units: int, size: int, **_: Any) -> Any:
        rates.append(float(exactly(epsilon) / units))
        return np.zeros(size, dtype=np.int64)

    with mock.patch.multiple(counts_module, noisy_best=noted, geometric=drawn):
        goal.placed(np.array([0.0, 1.0]), Passes.over(LogisticLoss(), rows), account, SeededSource(0), 20.0)
    return scores, account.curve.most if delta else account.test, rates[0]


def _attack(name: str, attacked: str, carry_out: Callable[[Setting], Found], runs: int, full: int = 10_000) -> Attack:
    return Attack(name, attacked, "one row", carry_out, runs, full)


_RARE = Recall(0.6) & Precision(0.5)

#: Each of them carries "what one row moves" in its words.
ATTACKS = (
    _attack("shortfall-error-rate", "what one row moves: errors", shortfall(ErrorRate(0.45), True), 200),
    _attack("shortfall-recall", "the same: recall and precision", shortfall(_RARE, True), 200),
    _attack("shortfall-log-loss", "the same: log loss", shortfall(LogLoss(0.6), True), 200),
    _attack("shortfall-r2", "the same: squared errors", shortfall(R2(0.3), False), 200),
    _attack("mistakes", "the same: the share of mistakes", moves(mistakes), 20),
    _attack("mean-square", "the same: the mean square of residuals", moves(mean_square), 20),
    _attack("left-out", "the same: what a capped loss leaves out", moves(left_out), 20),
    _attack(
        "null-gradient", "the same: the null model's gradient", moves(lambda r: gradient_length(r, 0.0)), 10, 1_000
    ),
    _attack("gradient", "the same: any gradient", moves(lambda r: gradient_length(r, 1.0)), 10, 1_000),
    _attack("gap-null", "the same: what the null model leaves", gap("null"), 10, 1_000),
    _attack("gap-constant", "the same: what the best constant leaves", gap("constant"), 10, 1_000),
    _attack("excess-risk", "the same: excess risk", excess_risk(False), 60),
    _attack("excess-risk-paper", "the same: the paper's constant", excess_risk(True), 60),
    _attack("paper-minimiser", "the same: the minimiser, the paper's constant", moves(paper_minimiser), 60),
    _attack("parts", "the same: second moments", sums(_parts, (certificate, "PART_SENSITIVITY")), 60),
    _attack(
        "first-moments", "the same: first moments", sums(_first_moments, (covariance_module, "PART_SENSITIVITY")), 60
    ),
    _attack("direction", "the same: second moments times a direction", moves(few_statistics(False)), 20),
    _attack("projection", "the same: second moments between directions", moves(few_statistics(True)), 20),
    _attack("trace", "the same: their trace", sums(_trace, (output, "TRACE_SENSITIVITY")), 60),
    _attack("lengths", "the same: how long rows are", sums(_lengths, (descent, "PARTS")), 60),
    _attack("cut-offs", "what one row tells by the choice of a cut-off", cut_offs(ROW, 0.0), 4, 100),
    _attack(
        "cut-offs-delta",
        "the same for persons at a delta",
        cut_offs(Unit(rows=3, persons=20, column="who"), DELTA),
        4,
        100,
    ),
)
