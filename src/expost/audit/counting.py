"""Attacks by counting: samplers, paths and tests are run on neighbours many times, and outcomes are counted.

Every attack here puts outcomes into a few public kinds, each with what it claims, and leaves the rest to
`expost.audit.attack`. Neighbours are those on which a mechanism does worst, as far as that is known.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product

import numpy as np
from numpy.typing import NDArray

from expost.account.account import Account
from expost.account.composition import Clock, Curve
from expost.audit.attack import BOTH, Attack, Counts, Found, Setting, interval, strongest
from expost.goals.labels_and_base_rate import noisy_best
from expost.goals.measure import ErrorMeasure, Measure
from expost.mechanisms.objective.draws import block_noise
from expost.mechanisms.objective.perturbation import ObjectiveRows, Shot
from expost.noise import (
    NoisePath,
    SecureSource,
    SeededSource,
    WordSource,
    discrete_gaussian,
    discrete_laplace,
    geometric,
)
from expost.noise.spherical import spherical_noise, spherical_paths
from expost.numeric import FloatArray, Grid
from expost.search.above_threshold import AboveThreshold, Calibration
from expost.search.new_rows import Parting
from expost.search.noisy_test import GradualTest, NoisyValue, OneTest
from expost.solve.losses import CappedLogisticLoss
from expost.table.rows import ONE, Rows
from expost.table.shape import l1_ball

#: Kinds of outcomes of so many runs on data set 0 or 1.
Draw = Callable[[int, int, WordSource], NDArray[np.int64]]

_AT_ONCE = 1 << 16


def source_of(setting: Setting, place: int = 0) -> WordSource:
    """Return where the random words of an attack come from: for a seed, others in every place."""
    return SecureSource() if setting.seed is None else SeededSource([setting.seed, place])


def counted(
    setting: Setting,
    draw: Draw,
    claims: NDArray[np.float64],
    *,
    delta: float = 0.0,
    directions: tuple[tuple[int, int], ...] = BOTH,
) -> Found:
    """Run either data set so many times; half of the runs choose the event, and the others bound its loss."""
    chosen, bounded, halves = _tallies(setting, draw, len(claims))
    return strongest(chosen, bounded, halves, claims, 1.0 - setting.confidence, delta, directions)


def _tallies(setting: Setting, draw: Draw, kinds: int) -> tuple[Counts, Counts, tuple[int, int]]:
    """Return how often kinds of outcomes came up on either data set, in each half of the runs, and their sizes."""
    halves = setting.runs // 2, setting.runs - setting.runs // 2
    found, done = np.zeros((2, 2, kinds), dtype=np.int64), 0
    for (k, half), side in product(enumerate(halves), (0, 1)):
        source = source_of(setting, 2 * k + side)
        for start in range(0, half, _AT_ONCE):
            count = min(_AT_ONCE, half - start)
            found[k, side] += np.bincount(draw(side, count, source), minlength=kinds)[:kinds]
            done += count
            setting.tell(done // 2)
    return found[0], found[1], halves


def one_by_one(run: Callable[[int, WordSource], int]) -> Draw:
    """Return the draws of what can be run once at a time only."""

    def draw(side: int, count: int, source: WordSource) -> NDArray[np.int64]:
        return np.array([run(side, source) for _ in range(count)], dtype=np.int64)

    return draw


def _kinds(values: NDArray[np.int64], low: int, high: int) -> NDArray[np.int64]:
    return np.asarray(np.clip(values, low, high) - low)


# --- samplers ---------------------------------------------------------------------------------------------------------

_UNITS = 3  # what one row moves an integer by


def laplace(setting: Setting) -> Found:
    """Attack an integer with discrete Laplace noise."""

    def draw(side: int, count: int, source: WordSource) -> NDArray[np.int64]:
        return _kinds(side * _UNITS + discrete_laplace(1.0, _UNITS, count, random_state=source), -12, 15)

    return counted(setting, draw, np.full(28, 1.0))


def one_sided(setting: Setting) -> Found:
    """Attack an integer with geometric noise, where the larger one is to hide behind the smaller."""

    def draw(side: int, count: int, source: WordSource) -> NDArray[np.int64]:
        return _kinds(side * _UNITS + geometric(1.0, _UNITS, count, random_state=source), 0, 27)

    return counted(setting, draw, np.full(28, 1.0), directions=((1, 0),))


_SIGMA, _MOVED, _DELTA = 3.0, 3, 0.01


def gaussian_epsilon(sigma: float, moved: int, delta: float) -> float:
    """Return the least ε that discrete Gaussian noise has at δ: P[loss > ε] less e^ε times that of the neighbour.

    Examples
    --------
    >>> round(gaussian_epsilon(3.0, 3, 0.01), 2)
    2.33
    """
    k = np.arange(-int(12 * sigma), int(12 * sigma) + moved + 1)
    law = np.exp(-(k**2) / (2 * sigma**2)), np.exp(-((k - moved) ** 2) / (2 * sigma**2))
    here, there = (part / np.exp(-(np.arange(-int(40 * sigma), int(40 * sigma)) ** 2) / (2 * sigma**2)).sum()
                   for part in law)  # fmt: skip
    low, high = 0.0, 50.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        over = float(np.maximum(here - math.exp(middle) * there, 0.0).sum())
        low, high = (middle, high) if over > delta else (low, middle)
    return high


def _gaussian(side: int, count: int, source: WordSource) -> NDArray[np.int64]:
    return _kinds(side * _MOVED + discrete_gaussian(_SIGMA, count, random_state=source), -10, 13)


def gaussian(setting: Setting) -> Found:
    """Attack what its law says at a δ."""
    claim = gaussian_epsilon(_SIGMA, _MOVED, _DELTA)
    return counted(setting, _gaussian, np.full(24, claim), delta=_DELTA)


def low_bits(setting: Setting) -> Found:
    """Attack the last digits of a real number with noise, which must not tell what was added to."""
    value = NoisyValue.of(0.01, 1e-9)

    def run(side: int, source: WordSource) -> int:
        steps = value.ask(0.1 + 0.01 * side, 1.0, source) / value.grid.unit
        return int(steps) % 8 if steps == int(steps) else 8

    return counted(setting, one_by_one(run), np.full(9, 1.0))


# --- noise over the reals ---------------------------------------------------------------------------------------------

_BINS = 40


def _reals(
    setting: Setting,
    noise: Callable[[int, WordSource], FloatArray],
    norm: Callable[[FloatArray], FloatArray],
    moves: list[list[float]],
) -> Found:
    """Attack noise of density ∝ exp(−norm) that hides moves of length two: binned by what the density says.

    All moves are made from the same draws, and each bound has its part of the chance, so that they hold together; the
    move that is furthest from its claim speaks for all.
    """

    def draw(side: int, count: int, source: WordSource) -> NDArray[np.int64]:
        drawn, kinds = noise(count, source), []
        for first, move in zip(range(0, _BINS * len(moves), _BINS), moves, strict=True):
            x = drawn + side * np.array(move)
            part = 0.25 * (norm(x - move) - norm(x) + 2.0)
            kinds.append(first + np.clip((part * _BINS).astype(np.int64), 0, _BINS - 1))
        return np.concatenate(kinds)

    chosen, bounded, halves = _tallies(setting, draw, _BINS * len(moves))
    chance, claims = (1.0 - setting.confidence) / len(moves), np.full(_BINS, 2.0)
    found = [
        strongest(chosen[:, first : first + _BINS], bounded[:, first : first + _BINS], halves, claims, chance)
        for first in range(0, _BINS * len(moves), _BINS)
    ]
    return next((one for one in found if one.broken), min(found, key=lambda one: one.tightness))


def spherical(setting: Setting) -> Found:
    """Attack spherical noise."""
    return _reals(
        setting,
        lambda count, source: spherical_noise(2, source, count),
        lambda x: np.asarray(np.linalg.norm(x, axis=1)),
        [[1.2, 1.6]],
    )


_BLOCKS = [(2, "box"), (1, "l1"), (2, "l2")]
_MOVES = [[2.0, 2.0, 0, 0, 0], [0, 0, 2.0, 0, 0], [0, 0, 0, 2.0, 0]]  # each of length two, in one block
_TOGETHER = 256


def in_blocks(setting: Setting) -> Found:
    """Attack noise that follows the shape of a row: a move of length two in one block after the other.

    Blocks are independent of each other, so many rows get their noise in one call, as blocks of one long row.
    """

    def norm(x: FloatArray) -> FloatArray:
        return np.asarray(np.abs(x[:, :2]).max(axis=1) + np.abs(x[:, 2]) + np.linalg.norm(x[:, 3:], axis=1))

    def noise(count: int, source: WordSource) -> FloatArray:
        many = [min(_TOGETHER, count - start) for start in range(0, count, _TOGETHER)]
        drawn = [block_noise(_BLOCKS * rows, [1.0, 1.0, 1.0] * rows, source).reshape(rows, -1) for rows in many]
        return np.concatenate(drawn)

    return _reals(setting, noise, norm, _MOVES)


def spherical_path(setting: Setting) -> Found:
    """Attack a path with spherical noise, gone along further where its first value is positive."""

    def draw(side: int, count: int, source: WordSource) -> NDArray[np.int64]:
        values, place = spherical_paths(np.array([float(side)]), 1.0, (1.0, 2.0), source, count)
        first, second = values[:, place, 0].T
        kinds = np.where(first <= 0.5, first > 0.0, 2 + np.clip(np.ceil(2 * second), 0, 3))
        return np.asarray(kinds, dtype=np.int64)

    return counted(setting, draw, np.repeat([1.0, 2.0], [2, 4]))


# --- paths and tests --------------------------------------------------------------------------------------------------


def path_prefix(setting: Setting) -> Found:
    """Attack a gradual release whose first value decides whether there is a second: each outcome costs its last."""

    def draw(side: int, count: int, source: WordSource) -> NDArray[np.int64]:
        values = np.full(count, _UNITS * side, dtype=np.int64)  # every coordinate is a run of its own
        path = NoisePath(values, _UNITS, (1.0, 2.0), random_state=source)
        first, second = (_kinds(np.asarray(level.values, dtype=np.int64), -6, 9) for level in path)
        return np.where(first < 8, first, 16 + 16 * (first - 8) + second)

    return counted(setting, draw, np.repeat([1.0, 2.0], [16, 128]))


class Whole(Measure):
    """A whole number that one row moves by one."""

    uniform = Grid(1.0, 1)

    def value(self, hypothesis: float) -> float:
        """Return it."""
        return hypothesis

    def sensitivity(self, hypothesis: float) -> float:
        """Return one."""
        return 1.0


_TESTS = 5


def _above_threshold(setting: Setting, calibration: Calibration) -> Found:
    """Attack a run of tests of values that are all at the limit, or all just above it."""

    def run(side: int, source: WordSource) -> int:
        rule = AboveThreshold(Whole(), calibration, _TESTS, random_state=source)
        return next((k for k in range(_TESTS) if rule.accepts(27.0 + side)), _TESTS)

    claims = np.append(np.full(_TESTS, calibration.epsilon), calibration.epsilon_never)
    return counted(setting, one_by_one(run), claims)


def above_threshold(setting: Setting) -> Found:
    """Attack the rule with one-sided noise, which whatever is not stated otherwise has."""
    return _above_threshold(setting, Calibration("tight", "exponential", 30.0, 2.0, 4.0, 1.0))


def above_threshold_laplace(setting: Setting) -> Found:
    """Attack the rule with Laplace noise, as in the paper."""
    return _above_threshold(setting, Calibration("published", "laplace", 30.0, 2.0, 4.0, 1.0))


def one_test(setting: Setting) -> Found:
    """Attack one question with a limit."""
    test, measures = OneTest(1.0, 0.2, 0.5), _measures(0.5)

    def run(side: int, source: WordSource) -> int:
        return int(test.ask(measures[side], None, source)[0])

    return counted(setting, one_by_one(run), np.full(2, test.cost(1.0, 0.0)))


def _measures(value: float) -> list[ErrorMeasure]:
    """Return a measure on two data sets between which it moves by one."""

    def measure(side: int) -> ErrorMeasure:
        return ErrorMeasure(lambda _: value + side, sensitivity=1.0)

    return [measure(0), measure(1)]


def gradual_question(setting: Setting) -> Found:
    """Attack a question whose noise is taken away step by step: each outcome costs the level it ended at."""
    test, measures = OneTest(1.0, 0.02, 0.5), _measures(0.5)
    most = test.cost(1.0, 0.0)

    def run(side: int, source: WordSource) -> int:
        answer, paid = test.ask_gradually(measures[side], None, source)
        return 4 if answer else round(math.log2(8.0 * paid / most))

    return counted(setting, one_by_one(run), most * np.array([1 / 8, 1 / 4, 1 / 2, 1.0, 1.0]))


def gradual_test(setting: Setting) -> Found:
    """Attack the test of a search in levels, by what its account says afterwards: each outcome costs what is booked."""
    claims = np.zeros(64)

    def run(side: int, source: WordSource) -> int:
        account = Account("", 10.0, False)
        test = GradualTest(account, source)
        passed = test.pass_at(-1.5 + side, 1.0, 0.0, 1.0, 0.2)
        kind = 32 * passed + 2 * test.count + (test.noisy > 0.0)
        claims[kind] = account.test
        return kind

    return counted(setting, one_by_one(run), claims)


def two_numbers(setting: Setting) -> Found:
    """Attack two noisy numbers from one source, that move in opposite directions: each has noise of its own."""
    value = NoisyValue.of(1.0, 0.0)

    def run(side: int, source: WordSource) -> int:
        first, second = value.ask(side, 1.0, source), value.ask(-side, 1.0, source)
        beyond = 2 * (first >= 1.0) + (second <= -1.0)
        return 3 * beyond + (0 if abs(first - second) < 0.01 else 1 if abs(first - second - 2.0) < 0.01 else 2)

    return counted(setting, one_by_one(run), np.full(12, 2.0))


def two_tests(setting: Setting) -> Found:
    """Attack tests of two models in a row, by how far their last noisy values are apart: they share no noise."""
    claims = np.zeros(41 * 80)

    def run(side: int, source: WordSource) -> int:
        account = Account("", 10.0, False)
        test, seen = GradualTest(account, source), []
        for truth in (1.0 + side, 1.0):
            test.pass_at(truth, 1.0, 0.0, 1.0, 0.2)
            seen.append(test.noisy)
        kind = 41 * min(test.count, 79) + min(max(round(4.0 * (seen[0] - seen[1])) + 20, 0), 40)
        claims[kind] = max(claims[kind], account.test)
        return kind

    return counted(setting, one_by_one(run), claims)


def new_rows(setting: Setting) -> Found:
    """Attack the draw of who is held out: the first of four rows is replaced by one like it, which comes last.

    If that were told by their places, both sums would be others.
    """
    ones = ([1, 0, 0, 0], [0, 0, 0, 1])
    tables = [Rows(np.zeros((4, 1), dtype=np.int32), np.array(y, dtype=np.int32) * ONE) for y in ones]

    def run(side: int, source: WordSource) -> int:
        sums = [int(part.y.sum()) // ONE for part in Parting(0.5, source).of(tables[side])]
        fitted, held = _kinds(np.array(sums) + discrete_laplace(1.0, 1, 2, random_state=source), -2, 3).tolist()
        return 6 * int(fitted) + int(held)

    return counted(setting, one_by_one(run), np.full(36, 1.0))


def best_of_scores(setting: Setting) -> Found:
    """Attack the choice of a cut-off: one score goes down and all others up."""
    scores = [0, 0, 0, 0, 0], [-1, 1, 1, 1, 1]

    def run(side: int, source: WordSource) -> int:
        return noisy_best(scores[side], 2.0, 1, source)

    return counted(setting, one_by_one(run), np.full(5, 2.0))


def perturbed_objective(setting: Setting) -> Found:
    """Attack what objective perturbation draws from one row, whose label is turned round."""
    loss = CappedLogisticLoss(0.5)
    shot = Shot(loss, l1_ball(1), 1, 3.0, 2.0)
    tables = [
        ObjectiveRows(Rows(np.full((1, 1), ONE, np.int32), np.array([y], np.int32)), loss).perturbed
        for y in (ONE, -ONE)
    ]

    def run(side: int, source: WordSource) -> int:
        theta = float(shot.draw(tables[side], np.zeros(1), source)[0])
        return min(max(int(20 * theta + 30), 0), 59)

    return counted(setting, one_by_one(run), np.full(60, shot.epsilon))


# --- losses at a δ ----------------------------------------------------------------------------------------------------

_TIMES = tuple(1e-5 * 1.5**k for k in range(40))
_SHARE = 0.05  # δ
_MOVE = 1 << 24  # what one row moves a sum by, far more than the units that noise is drawn in


def stopped(stated: Callable[[float], float]) -> Callable[[Setting], Found]:
    """Attack what is stated at a δ by runs that watch their own loss and end at the best moment.

    Each run takes Gaussian steps from one time to the next, a time being the sum of their ρ, and ends as soon as its
    loss is above what would be stated there. That must happen in a share of δ of the runs at most, however they end:
    so the claim is δ, and the bound one on the share.
    """

    def attack(setting: Setting) -> Found:
        source, beyond = source_of(setting), 0
        for start in range(0, setting.runs, _AT_ONCE):
            loss = np.zeros(min(_AT_ONCE, setting.runs - start))
            over, before = np.zeros(loss.size, dtype=bool), 0.0
            for time in _TIMES:
                sigma = _MOVE / math.sqrt(2.0 * (time - before))
                noise = discrete_gaussian(sigma, loss.size, random_state=source).astype(np.float64)
                loss = np.where(over, loss, loss + (0.5 * _MOVE - noise) * _MOVE / sigma**2)
                over |= loss > stated(time)
                before = time
            beyond += int(over.sum())
        low, _ = interval(beyond, setting.runs, 1.0 - setting.confidence)
        return Found(_SHARE, float(low), delta=_SHARE)

    return attack


def by_curve(time: float) -> float:
    """Return the ε of a curve that has no order to be chosen after the fact."""
    return Curve.gaussian(time).epsilon(_SHARE)


def by_clock(time: float) -> float:
    """Return the ε of a clock whose times were settled before."""
    return Clock.of(_TIMES).epsilon(time, 0.0, _SHARE)


def _attack(
    name: str, attacked: str, carry_out: Callable[[Setting], Found], runs: int, full: int, *, tight: bool = True
) -> Attack:
    return Attack(name, attacked, "counted", carry_out, runs, full, tight)


ATTACKS = (
    _attack("discrete-laplace", "an integer with discrete Laplace noise", laplace, 2_000_000, 10_000_000),
    _attack("geometric", "an integer with one-sided geometric noise", one_sided, 4_000_000, 10_000_000),
    _attack("discrete-gaussian", "its law at delta = 0.01", gaussian, 3_000_000, 10_000_000),
    _attack("low-bits", "the last digits of a noisy real number", low_bits, 10_000, 2_000_000, tight=False),
    _attack("spherical-noise", "spherical noise in two dimensions", spherical, 50_000, 10_000_000),
    _attack("block-noise", "noise for rows of three blocks", in_blocks, 60_000, 10_000_000),
    _attack("path", "a path of gradual release, stopped by its values", path_prefix, 2_000_000, 10_000_000),
    _attack("spherical-path", "the same with spherical noise", spherical_path, 24_000, 10_000_000),
    _attack("above-threshold", "five tests, one-sided noise", above_threshold, 12_000, 500_000),
    _attack("above-threshold-laplace", "five tests, Laplace noise", above_threshold_laplace, 8_000, 500_000),
    _attack("answer", "the answer to one noisy question", one_test, 6_000, 1_000_000, tight=False),
    _attack("answer-gradual", "the same, given up early", gradual_question, 4_000, 500_000, tight=False),
    _attack("answer-levels", "that of a search in levels", gradual_test, 2_000, 300_000, tight=False),
    _attack("two-numbers", "two noisy numbers: each has its own noise", two_numbers, 10_000, 1_000_000, tight=False),
    _attack("two-tests", "tests of two models: the same", two_tests, 1_500, 100_000, tight=False),
    _attack("stopped-curve", "runs that end above a curve", stopped(by_curve), 20_000, 1_000_000, tight=False),
    _attack("stopped-clock", "runs that end above a clock", stopped(by_clock), 20_000, 1_000_000, tight=False),
    _attack("new-rows", "which rows, or persons, are held out", new_rows, 2_000, 1_000_000, tight=False),
    _attack("noisy-best", "the choice of a cut-off", best_of_scores, 20_000, 1_000_000),
    _attack("objective-draw", "objective perturbation of one row", perturbed_objective, 1_500, 100_000, tight=False),
)
