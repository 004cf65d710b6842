"""Sums over batches: exact, and so the same however rows are cut, ordered and counted."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from expost.numeric import exact_parts, prediction_rounding
from expost.passes.engine import LocalEngine, add_totals, blocks, predictions
from expost.solve import row_sums as passes
from expost.solve.losses import CappedLogisticLoss, HuberLoss, LogisticLoss, SmoothedHingeLoss
from expost.solve.row_sums import Passes, PassGradients, slope_rounding
from expost.table.rows import ONE, Batch, MemorySource, Rows

LOSSES = [CappedLogisticLoss(0.5), LogisticLoss(), HuberLoss(0.25), HuberLoss(3.0), SmoothedHingeLoss(0.1)]


def rows(n=500, p=4, seed=0, *, extreme=False):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (n, p)) / np.sqrt(p)
    if extreme:
        x = np.zeros((n, p))
        x[:, 0] = 1.0
    y = rng.choice([-1, 1], n) * ONE
    return Rows(np.trunc(x * ONE).astype(np.int32), y.astype(np.int32), "l2")


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_sums_of_slopes_are_exact(loss):
    """Against fractions; rows of length one and the steepest slopes fill the 53 bits of a float to the last."""
    for given in (rows(), rows(5000, 2, extreme=True)):
        theta = np.random.default_rng(1).normal(size=given.p) * 50
        found = Passes(loss, MemorySource(given)).slopes(theta).gradient
        u = predictions(given.x.astype(np.float64), exact_parts(theta))
        slopes = loss.derivative(u, given.y / ONE).tolist()
        step = Fraction(2 * slope_rounding(loss))
        rounded = [round(Fraction(slope) / step) * step for slope in slopes]
        for j in range(given.p):
            exact = sum(w * int(x) for w, x in zip(rounded, given.x[:, j], strict=True)) / (given.n * ONE)
            assert found[j] == float(exact)
            off = sum(abs(a - Fraction(b)) for a, b in zip(rounded, slopes, strict=True)) / given.n
            assert off <= Fraction(slope_rounding(loss))


@pytest.mark.parametrize("threads", [1, 3])
def test_order_and_cuts_do_not_matter(threads, monkeypatch):
    from expost.passes import engine as local
    from expost.table import rows as batches

    monkeypatch.setattr(local, "_SMALL", 0)
    given, theta = rows(4000, 6), np.linspace(-3, 3, 6)
    order = np.random.default_rng(3).permutation(given.n)
    shuffled = Rows(given.x[order], given.y[order], "l2")
    whole = Passes(LogisticLoss(), MemorySource(given)).slopes(theta, curvature=True)
    for size in (7, 1000):
        monkeypatch.setattr(batches, "_SLICE", size if threads == 1 else 500)
        found = Passes(LogisticLoss(), MemorySource(shuffled), LocalEngine(threads)).slopes(theta, curvature=True)
        assert found.gradient.tobytes() == whole.gradient.tobytes()
        assert found.curvature.tobytes() == whole.curvature.tobytes()


def test_sums_in_floating_point_do_depend_on_the_order():
    """What all this is for: without the grid, a product over shuffled rows differs."""
    given, theta = rows(4000, 6), np.linspace(-3, 3, 6)
    order = np.random.default_rng(3).permutation(given.n)
    x, y = given.x / ONE, given.y / ONE
    slopes = LogisticLoss().derivative(x @ theta, y)
    assert (slopes @ x).tobytes() != (slopes[order] @ x[order]).tobytes()


def test_blocks_are_never_too_long():
    rng = np.random.default_rng(0)
    counts = rng.integers(1, 2048, 3000).astype(np.float64)
    batch = Batch(np.zeros((3000, 2), np.int32), np.zeros(3000, np.int32), counts)
    found = list(blocks(batch))
    assert max(block[2].sum() for block in found) <= 2048
    assert np.concatenate([block[2] for block in found]).tolist() == counts.tolist()


def test_totals_never_wrap():
    large = np.array([2**61, -(2**61)])
    total = (0, large)
    for _ in range(8):
        total = add_totals(total, (1, large))
    assert total[0] == 8
    assert total[1].tolist() == [9 * 2**61, -9 * 2**61]


@pytest.mark.parametrize("p", [1, 50, 5000])
def test_predictions_of_many_columns_are_off_by_no_more_than_stated(p):
    rng = np.random.default_rng(p)
    x = np.trunc(rng.choice([-1, 1], (max(2, min(20, 20_000 // p)), p)) / np.sqrt(p) * ONE)
    for theta in (rng.normal(size=p) * 1e4, np.full(p, 1 / 3), rng.normal(size=p) * 10.0 ** rng.uniform(-9, 3, p)):
        found = predictions(x, exact_parts(theta))
        bound = Fraction(prediction_rounding(p)) * Fraction(float(np.linalg.norm(theta)) * (1 + 1e-9))
        worst = 0
        for row, u in zip(x.astype(int).tolist(), found.tolist(), strict=True):
            exact = sum(a * Fraction(b) for a, b in zip(row, theta.tolist(), strict=True)) / ONE
            worst = max(worst, abs(Fraction(u) - exact))
        assert worst <= bound
        order = rng.permutation(p)
        assert predictions(x[:, order], exact_parts(theta)[order]).tobytes() == found.tobytes()


def test_wide_rows_are_minimised_without_second_derivatives():
    """p = 5,000: nothing of size p² is formed."""
    from expost.solve.perturbed import PerturbedErrors, PerturbedObjective

    rng, p, n = np.random.default_rng(0), 5000, 300
    x = np.zeros((n, p), np.int32)
    x[np.arange(n)[:, None], rng.integers(0, p, (n, 6))] = int(0.4 * ONE)
    y = np.where(rng.random(n) < 0.5, ONE, -ONE).astype(np.int32)
    passes = Passes(LogisticLoss(), MemorySource(Rows(x, y, "l2")))
    errors = PerturbedErrors(LogisticLoss(), n, p, 0.05, 0.0, 1.0)
    asked = []

    class Watched(Passes):
        def slopes(self, theta, *, curvature=False, sample=0):
            asked.append(curvature)
            return super().slopes(theta, curvature=curvature, sample=sample)

    linear = rng.normal(size=p) / p
    watched = Watched(LogisticLoss(), passes.source)
    theta = PerturbedObjective(watched).minimiser(errors, np.zeros(p), linear)
    gradient = passes.slopes(theta).gradient + 0.05 * theta + linear
    assert np.linalg.norm(gradient) <= errors.tolerance
    assert errors.tolerance < 1e-11
    assert not any(asked)
    assert len(asked) < 60


def test_a_sample_is_the_same_rows_wherever_they_stand(monkeypatch):
    """Second derivatives of a sample do not depend on order, cuts or threads, and are close to those of all rows."""
    from expost.passes import engine as local
    from expost.solve import row_sums as passes
    from expost.table import rows as batches

    monkeypatch.setattr(local, "_SMALL", 0)
    monkeypatch.setattr(passes, "_FEW", 100)
    given, theta = rows(20_000, 4), np.linspace(-3, 3, 4)
    order = np.random.default_rng(3).permutation(given.n)
    every = Passes(LogisticLoss(), MemorySource(given)).slopes(theta, curvature=True)
    some = Passes(LogisticLoss(), MemorySource(given)).slopes(theta, curvature=True, sample=3)
    monkeypatch.setattr(batches, "_SLICE", 501)
    shuffled = MemorySource(Rows(given.x[order], given.y[order], "l2"))
    found = Passes(LogisticLoss(), shuffled, LocalEngine(3)).slopes(theta, curvature=True, sample=3)
    assert some.gradient.tobytes() == found.gradient.tobytes() == every.gradient.tobytes()
    assert some.curvature.tobytes() == found.curvature.tobytes() != every.curvature.tobytes()
    assert np.linalg.norm(some.curvature - every.curvature) < 0.1 * np.linalg.norm(every.curvature)


def test_a_sample_that_a_few_kinds_of_rows_make_odd_is_not_used(monkeypatch):
    """Equal rows are all in a sample or none is; its size tells, and second derivatives are of all rows then."""
    from expost.solve import row_sums as passes

    monkeypatch.setattr(passes, "_FEW", 10)
    given, theta = rows(20_000, 4), np.linspace(-3, 3, 4)
    which = np.minimum(np.arange(given.n), 10_000)  # half of the rows are one
    odd = Rows(given.x[which], given.y[which], "l2")
    assert Passes(LogisticLoss(), MemorySource(given)).slopes(theta, curvature=True, sample=3).sample == 3
    found = Passes(LogisticLoss(), MemorySource(odd)).slopes(theta, curvature=True, sample=3)
    every = Passes(LogisticLoss(), MemorySource(odd)).slopes(theta, curvature=True)
    assert found.sample == 0
    assert found.curvature.tobytes() == every.curvature.tobytes()


@pytest.mark.parametrize("kinds", [None, 40])
def test_a_minimiser_with_a_sample_meets_the_same_tolerance(kinds, monkeypatch):
    """Also where there are few kinds of rows, most of which a sample leaves out."""
    from expost.solve import perturbed, row_sums as passes

    monkeypatch.setattr(perturbed, "_SAMPLED", 8)
    monkeypatch.setattr(passes, "_FEW", 10)
    given = rows(20_000, 6)
    if kinds is not None:
        which = np.random.default_rng(1).integers(0, kinds, given.n)
        given = Rows(given.x[which], given.y[which], "l2")
    judge = Passes(LogisticLoss(), MemorySource(given))
    errors = perturbed.PerturbedErrors(LogisticLoss(), given.n, 6, 1e-4, 0.0, 1e-3)
    theta = perturbed.PerturbedObjective(judge).minimiser(errors, np.zeros(6), np.full(6, 1e-4))
    gradient = judge.slopes(theta).gradient + 1e-4 * theta + 1e-4
    assert np.linalg.norm(gradient) <= errors.tolerance < 1e-10


@pytest.mark.parametrize("repeated", [False, True])
def test_sparse_rows_give_the_same_bits(repeated, monkeypatch):
    """Rows of indicators are worked on without their zeros, in memory and in batches; sums are those of dense ones."""
    rng = np.random.default_rng(0)
    x = np.zeros((5000, 160), np.int32)
    x[np.arange(5000)[:, None], rng.integers(0, 160, (5000, 3))] = rng.integers(-ONE // 2, ONE // 2, (5000, 3))
    if repeated:
        x = x[rng.integers(0, 50, 5000)]
    given = Rows(x, rng.choice([-ONE, ONE], 5000).astype(np.int32), "l2")
    thin = Passes.over(LogisticLoss(), given)
    dense = Passes(LogisticLoss(), MemorySource(given))
    held = [batch.x for part in thin.source.parts() for batch in thin.source.read(part)]
    assert not any(isinstance(part, np.ndarray) for part in held)
    theta = rng.normal(size=160)
    for sample in (0, 2):
        options = {"curvature": True, "sample": sample}
        found = [thin.slopes(theta, **options)[:2], dense.slopes(theta, **options)[:2]]
        with monkeypatch.context() as context:
            context.setattr(passes, "thinned", lambda batch: batch)
            found.append(dense.slopes(theta, **options)[:2])
        assert len({tuple(sums.tobytes() for sums in each) for each in found}) == 1
    assert thin.errors(theta) == dense.errors(theta)
    assert thin.mean_of(np.hypot, theta) == dense.mean_of(np.hypot, theta)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_gradients_are_as_exact_as_is_said(loss):
    """At θ = 0 slopes are known, so a mean in exact arithmetic tells; the bound is no more than it has to be."""
    some, at = rows(), np.zeros(4)
    slopes = loss.derivative(np.zeros(some.n), some.y / ONE)
    mean = [sum(Fraction(s) * int(c) for s, c in zip(slopes, column, strict=True)) for column in some.x.T]
    exact = float(np.linalg.norm([float(value / ONE / some.n) for value in mean]))
    gradients = PassGradients(Passes.over(loss, some), 0.01)
    assert abs(gradients.gradient_norm(at) - exact) <= gradients.gradient_error_bound(0.0) < 1e-12
    assert gradients.gradient_error_bound(1.0) > gradients.gradient_error_bound(0.0)
    assert gradients.gradient_lower(at) <= exact
