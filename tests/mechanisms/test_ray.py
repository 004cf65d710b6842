"""The ray: each step of its proof on its own, then that its promise is kept and when it gives up."""

import dataclasses
import itertools
import math

import numpy as np
import pytest
from scipy import stats

from expost.mechanisms.moments import ray
from expost.mechanisms.moments.ray import (
    _EXPONENTS,
    _STEP,
    Released,
    _Cells,
    _Drawn,
    _Energy,
    _grid,
    _least_energies,
    _log_laplace,
    affordable,
    best_on_ray,
    draws_needed,
)
from expost.noise import SeededSource
from tests.helpers import CountingSource
from tests.noise.tail_helpers import matrix_noise, unit

RARE = 1e-3  # false-alarm rate of each statistical check; all are seeded


def parts(direction):
    """v_k: what each independent entry of B, of scale one on the diagonal and a half beside it, adds to Bθ."""
    p = len(direction)
    for i, j in itertools.combinations_with_replacement(range(p), 2):
        v = np.zeros(p)
        v[i] += direction[j] / 2
        v[j] += direction[i] / 2
        yield v


def test_the_gradient_in_parts():
    """‖∇L(cz)‖² = ‖G‖² + 2v·b + (2a − 1)‖b‖² + 2c·bᵀZb − 2c·bᵀBb, and Q = G + Bθ."""
    rng = np.random.default_rng(1)
    p, lam, c = 5, 0.3, 1.7
    root = rng.normal(size=(p, p))
    second, first = root @ root.T, rng.normal(size=p)
    noise, b = matrix_noise(rng, p, 0.5), rng.laplace(size=p)
    Z, z = second + noise, first + b
    A, a = c * (second + lam * np.eye(p)) - np.eye(p), c * lam
    gradient = (second + lam * np.eye(p)) @ (c * z) - first
    G, v = A @ z, A @ first
    assert gradient == pytest.approx(G + b)
    assert (Z + lam * np.eye(p)) @ (c * z) - z == pytest.approx(G + noise @ (c * z))
    expected = G @ G + 2 * v @ b + (2 * a - 1) * b @ b + 2 * c * b @ Z @ b - 2 * c * b @ noise @ b
    assert gradient @ gradient == pytest.approx(expected)


@pytest.mark.parametrize("kind", ["spread", "even", "one"])
def test_closed_forms(kind):
    """Norms and determinants of the three matrices, against their sums over all entries of B."""
    rng = np.random.default_rng(2)
    d = unit(rng, 7, kind)
    vs = np.array(list(parts(d)))
    energy = _Energy.of(d)
    lengths, sums = (vs**2).sum(axis=1), np.abs(vs).sum(axis=1) ** 2
    assert energy.longest == pytest.approx(lengths.max())
    plain, weighted = (np.linalg.eigvalsh((vs * w[:, None]).T @ vs)[-1] for w in (np.ones(len(vs)), lengths))
    assert plain <= energy.top <= 1.2 * plain
    assert weighted <= energy.top_weighted <= 1.5 * weighted
    for r, cut in ((0.02, 4.0), (0.05, 3.0)):
        weights = 1 - r * cut**2 * sums
        inside = np.eye(7) + 4 * r * (vs * weights[:, None]).T @ vs
        beyond = 7 * 2 * stats.norm.sf(cut)
        found = _log_laplace(np.abs(d), np.array([[r]]), np.array([cut]))[0, 0]
        assert found == pytest.approx(math.log(np.linalg.det(inside) ** -0.5 + beyond) if weights.min() >= 0 else 0.0)


@pytest.mark.parametrize("kind", ["spread", "even", "one"])
def test_laplace_transform_of_the_energy(kind):
    """ψ(r) is bounded, and closely where the direction is spread; 20,000 draws, five standard errors."""
    rng = np.random.default_rng(3)
    p = 25
    d = unit(rng, p, kind)
    energies = ((rng.laplace(size=(20_000, p * (p + 1) // 2)) @ np.array(list(parts(d)))) ** 2).sum(axis=1)
    for r, bound in zip(_EXPONENTS[:, 0], _Energy.of(d).logs[:, 0], strict=True):
        values = np.exp(-r * energies)
        error = 5 * values.std() / math.sqrt(len(values))
        assert values.mean() - error <= math.exp(bound)
        if kind != "one" and r < 0.1:
            assert bound < 0.85 * math.log(values.mean())


@pytest.mark.parametrize(
    ("kind", "toward"), [("spread", "same"), ("spread", "axis"), ("even", "same"), ("one", "same")]
)
def test_small_energies_are_rare(kind, toward):
    """P(‖G + Bθ‖² ≤ q(g, φ)) ≤ φ for ‖G‖ = g and for longer G; as if G were 1.6 times longer, it is caught."""
    rng = np.random.default_rng(4)
    p, runs, phi = 30, 4000, 0.1
    d = unit(rng, p, kind)
    vs = np.array(list(parts(d)))
    noise = rng.laplace(size=(runs, len(vs))) @ vs
    axis = np.eye(p)[int(np.abs(d).argmax())]
    for g in (6.0, 9.0):
        q = _Energy.of(d).largest_accepted(np.array([g]), np.array([math.log(phi)]))
        for longer in (1.0, 1.3):
            G = longer * g * (d if toward == "same" else axis)
            small = int((((G + noise) ** 2).sum(axis=1) <= q).sum())
            assert stats.binomtest(small, runs, phi, alternative="greater").pvalue > RARE
        if kind != "one":
            bold = _Energy.of(d).largest_accepted(np.array([1.6 * g]), np.array([math.log(phi)]))
            small = int((((g * d + noise) ** 2).sum(axis=1) <= bold).sum())
            assert stats.binomtest(small, runs, phi, alternative="greater").pvalue < RARE


@pytest.mark.parametrize("kind", ["spread", "even", "one"])
def test_tails_of_linear_terms(kind):
    """P(v·b ≥ ‖v‖l) ≤ ½e^{1−√(l²−1)}; half of l is caught. 200,000 draws."""
    rng = np.random.default_rng(5)
    v = unit(rng, 6, kind)
    values = rng.laplace(size=(200_000, 6)) @ v
    for level in (2.0, 4.0, 6.0):
        bound = 0.5 * math.exp(1 - math.sqrt(level**2 - 1))
        count = int((values >= level).sum())
        assert stats.binomtest(count, len(values), bound, alternative="greater").pvalue > RARE
    count = int((values >= 2.0).sum())
    assert stats.binomtest(count, len(values), 0.5 * math.exp(1 - math.sqrt(15)), alternative="greater").pvalue < RARE


@pytest.mark.parametrize("gamma", [0.5, 1e-4, 1e-30])
def test_cells_add_up(gamma):
    """Σ P(v·b in cell j)·φ_j ≤ γ for a Laplace variable, and the cells reach as far as φ < 1."""
    cells = _Cells.of(gamma)
    lower = cells.upper - _STEP
    tail = stats.laplace.sf(np.where(lower == 0, -np.inf, lower))
    chances = tail - np.append(tail[1:], 0.0)
    beyond = stats.laplace.sf(cells.upper[-1])
    assert chances @ np.exp(cells.logs) + beyond <= gamma
    assert cells.logs[-1] > -0.4
    assert (np.diff(cells.logs) > 0).all()


@pytest.mark.parametrize("left_out", ["nothing", "square", "form", "width", "shift"])
def test_long_gradients_have_long_G(left_out):
    """‖G‖ is at least g of its cell if ‖∇L(cz)‖ = T and bounds are what they stand for; without any of them, it is not.

    Instances are drawn so that each term matters in some: large noise or little, curvature or none, small c or large.
    """
    rng, broken = np.random.default_rng(13), 0
    for _ in range(1500):
        p, lam = int(rng.integers(1, 5)), 1.0
        root = rng.normal(size=(p, p)) * rng.choice([0.0, 0.5, 2.0])
        second, first = root @ root.T / p, rng.normal(size=p) * rng.choice([0.1, 1.0])
        s, sigma = rng.choice([0.01, 0.3, 2.0], 2)
        noise, b = matrix_noise(rng, p, s), rng.laplace(scale=sigma, size=p)
        Z, z, a = second + noise, first + b, float(rng.uniform(0.25, 1))
        A = a * (second + np.eye(p)) - np.eye(p)
        G, v = A @ z, A @ first
        width = math.sqrt(((b @ b) ** 2 + (b**4).sum()) / 2)
        cross = max(0.0, -b @ noise @ b) / (s * width)  # the smallest x that holds
        drawn = {"square": b @ b, "form": max(0.0, b @ Z @ b), "width": width}
        drawn |= {left_out: 0.0} if left_out in drawn else {}
        norm, top = float(np.linalg.norm(noise, 2)), float(np.linalg.eigvalsh(Z)[-1])
        cells = _Cells.of(1e-6)
        place = v @ b / (np.linalg.norm(v) * sigma)
        cell = int(np.searchsorted(cells.upper, place, side="right"))
        if cell >= len(cells.upper):
            continue
        if left_out == "shift":
            cells = dataclasses.replace(cells, upper=0 * cells.upper)
        released = Released(Z, z, s, sigma, norm, 0.0)
        target = float(np.linalg.norm(G + b)) * (1 - 1e-9)
        least = _least_energies(released, _Drawn(**drawn), cells, a, lam, target, top, cross)
        broken += np.linalg.norm(G) < least[cell]
    assert (broken == 0) == (left_out == "nothing")


@pytest.mark.parametrize(("a", "top", "operator"), [(0.4, 0.0, 0.6), (0.9, 3.0, 0.9 * 3.5 - 0.1)])
def test_least_energies_solve_their_equation(a, top, operator):
    """g² + 2(g + ‖A‖‖b‖)σu + the quadratic terms = T², with ‖A‖ from either end of its spectrum; λ = 1, ‖B‖ ≤ ½."""
    released, drawn = Released(np.eye(2), np.ones(2), 0.1, 0.2, 0.5, 0.0), _Drawn(0.3, 0.4, 0.5)
    cells = _Cells.of(1e-3)
    g = _least_energies(released, drawn, cells, a, 1.0, 20.0, top, 7.0)
    quadratic = max(0.0, 2 * a - 1) * 0.3 + 2 * a * 0.4 + 2 * a * 0.1 * 0.5 * 7.0
    assert g**2 + 2 * (g + operator * math.sqrt(0.3)) * 0.2 * cells.upper + quadratic == pytest.approx(400.0)


def test_shares_of_one_level(monkeypatch):
    """Energies get 0.6γ over the number of c; −bᵀBb exceeds its bound with probability 0.15γ; draws get 0.25γ."""
    gamma, seen = 0.01, {}
    original = _Cells.of

    class Recorded:
        @staticmethod
        def of(share):
            seen["cells"] = share
            return original(share)

    def least(released, drawn, cells, a, lam, target, top, cross):
        seen["cross"] = cross
        return np.zeros(len(cells.upper))

    monkeypatch.setattr(ray, "_Cells", Recorded)
    monkeypatch.setattr(ray, "_least_energies", least)
    released = Released(np.eye(50) * 1e-3, np.full(50, 0.1), 1e-3, 1e-3, 1e-2, 0.0)
    best_on_ray(released, 1.0, 0.5, gamma, SeededSource([1]))
    assert seen["cells"] == pytest.approx(0.6 * gamma / len(_grid(0.5)))
    assert 0.5 * math.exp(1 - math.sqrt(seen["cross"] ** 2 - 1)) == pytest.approx(0.15 * gamma)
    assert 3 / (draws_needed(gamma) + 1) <= 0.25 * gamma


def test_draws_bound_what_they_stand_for():
    """‖b‖², bᵀZb and W of fresh b exceed the largest of N draws in a share 1/(N + 1) of cases each."""
    rng = np.random.default_rng(6)
    p, draws, runs = 4, 9, 1500
    Z = matrix_noise(rng, p, 1.0)
    exceeded = np.zeros(3)
    for run in range(runs):
        released = Released(Z, np.zeros(p), 1.0, 2.0, 0.0, 0.0)
        drawn = _Drawn.of(released, draws, SeededSource([6, run]))
        b = rng.laplace(scale=2.0, size=p)
        width = math.sqrt(((b @ b) ** 2 + (b**4).sum()) / 2)
        exceeded += [b @ b > drawn.square, max(0.0, b @ Z @ b) > drawn.form, width > drawn.width]
    for count in exceeded[[0, 2]]:
        assert stats.binomtest(int(count), runs, 1 / (draws + 1)).pvalue > RARE
    assert stats.binomtest(int(exceeded[1]), runs, 1 / (draws + 1), alternative="greater").pvalue > RARE


def test_draws_come_in_blocks(monkeypatch):
    released = Released(np.eye(3), np.zeros(3), 1.0, 1.0, 0.0, 0.0)
    whole = _Drawn.of(released, 100, SeededSource([1]))
    monkeypatch.setattr(ray, "_BLOCK", 30)
    assert _Drawn.of(released, 100, SeededSource([1])) == whole
    assert draws_needed(0.01) == math.ceil(3 / 0.0025)


def test_wrong_accepts_are_rare():
    """Gradients a little above the target at every c pass in at most a γ share, here 0.3.

    The claim is far from sharp, so nothing passes. Matrix noise believed to be 25 times larger than it is, so that
    too much energy is subtracted, lets most pass.
    """
    rng = np.random.default_rng(7)
    p, lam, gamma, runs = 150, 1.0, 0.3, 60
    direction = np.full(p, 1 / math.sqrt(p))
    across = unit(rng, p, "spread")
    across -= direction * (across @ direction)
    wrong = {1.0: 0, 25.0: 0}
    second = 0.5 * np.outer(across, across) / (across @ across)
    first = direction + 0.3 * across / np.linalg.norm(across)
    least = min(np.linalg.norm((second + lam * np.eye(p)) @ (c * first) - first) for c in np.linspace(0.2, 1.0, 200))
    target = 0.9 * least
    for run in range(runs):
        scale = target / 150
        noise, b = matrix_noise(rng, p, scale), rng.laplace(scale=scale, size=p)
        for believed in wrong:
            released = Released(
                second + noise, first + b, believed * scale, scale, float(np.linalg.norm(noise, 2)), 0.0
            )
            theta = best_on_ray(released, lam, target, gamma, SeededSource([8, run]))
            if theta is not None:
                wrong[believed] += np.linalg.norm((second + lam * np.eye(p)) @ theta - first) > target
    assert stats.binomtest(wrong[1.0], runs, gamma, alternative="greater").pvalue > RARE
    assert stats.binomtest(wrong[25.0], runs, gamma, alternative="greater").pvalue < RARE


def test_nothing_is_drawn_without_hope():
    rng = np.random.default_rng(9)
    released = Released(matrix_noise(rng, 20, 1.0), rng.normal(size=20), 1.0, 1.0, 5.0, 0.0)
    source = CountingSource(1)
    assert best_on_ray(released, 0.1, 0.01, 0.1, source) is None
    assert source.drawn == 0


@pytest.mark.parametrize("kind", ["even", "one"])
def test_less_noise_never_turns_yes_into_no(kind):
    """Where θ = cz is far better than asked for, from some noise on downwards it is accepted."""
    p, lam = 110, 0.005
    first = 0.01 * unit(np.random.default_rng(10), p, kind)
    target = 0.4 * np.linalg.norm(first)
    answers = []
    for part in (10, 40, 100, 400, 1000):
        unit_noise = target / part  # of Bθ, for θ = z/λ
        scale = unit_noise * lam / np.linalg.norm(first)
        noise = matrix_noise(np.random.default_rng(11), p, scale)
        b = np.random.default_rng(12).laplace(scale=scale, size=p)
        released = Released(noise, first + b, scale, scale, float(np.linalg.norm(noise, 2)), 0.0)
        answers.append(best_on_ray(released, lam, target, 1e-3, SeededSource([part])) is not None)
    assert answers == sorted(answers)
    assert answers[2]


def test_a_tiny_target_does_not_take_for_ever():
    for reach in (1e-16, 1e-3, 0.1, 1.0, 100.0):
        grid = _grid(reach)
        assert len(grid) <= 49
        assert (grid[0], grid[-1]) == (1.0, 0.25)


def test_draws_are_bounded():
    assert affordable(400, 1e-3)
    assert not affordable(4000, 1e-3)
    assert not affordable(200, 1e-5)


@pytest.mark.parametrize("grain", [0.0, 1e-3])
def test_no_direction_or_a_coarse_grid_is_no(grain):
    first = np.zeros(20) if grain == 0 else np.ones(20)
    released = Released(np.eye(20) * 1e-3, first, 1e-9, 1e-9, 1e-8, grain)
    assert best_on_ray(released, 1.0, 0.5, 0.1, SeededSource([1])) is None
