"""Noise energy: the lemmas behind its bounds by simulation and in closed form, and how far from the truth they are.

Statistical tests are seeded. Each raises a false alarm with probability at most RARE = 1e-6 unless another rate is
stated, and is paired with something false that it catches.
"""

import math

import numpy as np
import pytest
from scipy import integrate, special, stats

from expost.noise.tails import (
    _CUT,
    _STEP,
    _TAIL_STEP as _CELL,
    _increments,
    _square_sum,
    _worst_tails,
    laplace_energy,
    spherical_energy,
)
from tests.helpers import RARE, at_most_by_chance

BOUNDS = {"laplace": laplace_energy, "spherical": spherical_energy}
NOISES = sorted(BOUNDS)


def variances(noise, p, draws, rng):
    """Draw D: given it, the coordinates of the noise are normal with these variances."""
    if noise == "laplace":
        return 2 * rng.exponential(size=(draws, p))
    return np.repeat(2 * rng.gamma((p + 1) / 2, size=(draws, 1)), p, axis=1)


def noise_of(noise, p, draws, rng):
    return np.sqrt(variances(noise, p, draws, rng)) * rng.standard_normal((draws, p))


def matrices(p, rng):
    """Matrices of trace one: a coordinate, other directions, several directions alike or not, everything."""
    one = np.eye(p)[0]
    unit = rng.standard_normal(p)
    dense = rng.standard_normal((p, p))
    found = [np.outer(one, one), np.full((p, p), 1 / p), np.outer(unit, unit), dense @ dense.T]
    found += [np.diag(rng.dirichlet(np.full(p, 0.3)))]
    found += [np.diag((np.arange(p) < n) / n) for n in {2, 3, 5, p} if n <= p]
    return [S / np.trace(S) for S in found]


def energy(b, S, k, lam):
    return 0.5 * k * ((b @ S) * b).sum(axis=1) + 0.5 * lam * (b**2).sum(axis=1)


# --- the lemmas ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", NOISES)
def test_spherical_noise_and_laplace_noise_are_normal_given_variances(noise):
    b = noise_of(noise, 3, 40_000, np.random.default_rng(1))
    sizes, law = (
        (np.abs(b).ravel(), stats.expon()) if noise == "laplace" else (np.linalg.norm(b, axis=1), stats.gamma(3))
    )
    assert stats.kstest(sizes, law.cdf).pvalue > RARE
    assert stats.kstest(1.03 * sizes, law.cdf).pvalue < RARE


@pytest.mark.parametrize("noise", NOISES)
def test_representation(noise):
    """X and Q + Y have one law; with jumps twice as frequent they have not."""
    p, k, lam, draws = 4, 0.3, 0.05, 30_000
    rng = np.random.default_rng([2, len(noise)])
    root = rng.standard_normal((p, p)) * [1, 0.7, 0.3, 0.1]
    root /= np.linalg.norm(root)
    X = energy(noise_of(noise, p, draws, rng), root @ root.T, k, lam)

    def represented(frequency):
        D = variances(noise, p, draws, rng)
        h2 = (rng.standard_normal((draws, p)) @ root.T) ** 2
        jumps = rng.poisson(frequency * k / (2 * lam) * h2)  # of each label: labels thin a Poisson variable
        return 0.5 * lam * (D * rng.chisquare(1, size=(draws, p))).sum(axis=1) + lam * (
            D * rng.standard_gamma(jumps)
        ).sum(axis=1)

    assert stats.ks_2samp(X, represented(1)).pvalue > RARE
    assert stats.ks_2samp(X, represented(2)).pvalue < RARE


@pytest.mark.parametrize(("k", "lam"), [(0.03, 0.005), (0.3, 0.005), (0.01, 0.1)])
@pytest.mark.parametrize("p", [2, 6])
def test_a_coordinate_is_the_worst_for_laplace_noise(p, k, lam):
    """No S has larger expected overshoots, by z-tests; that one has smaller ones than a coordinate is seen.

    Coordinates are alike, so each S is compared with a mixture of them that has the same mean given most of the noise.
    """
    rng = np.random.default_rng([3, p])
    b = noise_of("laplace", p, 60_000, rng)
    coordinates = 0.5 * k * b**2 + 0.5 * lam * (b**2).sum(axis=1, keepdims=True)
    z = []
    for S in matrices(p, rng)[1:]:
        X = energy(b, S, k, lam)
        for t in np.quantile(coordinates, [0.3, 0.7, 0.9, 0.97]):
            more = np.maximum(X - t, 0) - np.maximum(coordinates - t, 0) @ np.diag(S)
            z.append(more.mean() / (more.std() / math.sqrt(more.size)))
    assert max(z) < stats.norm.isf(RARE)
    assert min(z) < -stats.norm.isf(RARE)


def test_tails_of_quadratic_forms():
    """No form of trace one is above S̄ where it is claimed; χ²₁ alone is, at 1.2, below χ²₂/2."""
    rng = np.random.default_rng(4)
    tails, draws = _worst_tails(), 40_000
    x = _CELL * np.arange(tails.size)
    assert stats.chi2(1).sf(1.2) < math.exp(-1.2) - 0.02
    for _ in range(40):
        p = int(rng.integers(1, 30))
        weights = rng.dirichlet(np.full(p, rng.choice([0.2, 1, 20])))
        T = np.sort(rng.chisquare(1, size=(draws, p)) @ weights)
        above = draws - np.searchsorted(T, x, side="right")
        assert np.all(above <= stats.binom.isf(RARE / (40 * x.size), draws, tails))


def test_tails_of_forms_in_few_normals():
    """The same in closed form: σχ²₁ + (1 − σ)χ²₁ as a mean over angles, and pairs of equal weights as exponentials."""
    tails = _worst_tails()
    x = _CELL * np.arange(tails.size)[:, None]
    squares = np.cos((np.arange(4000) + 0.5) * math.pi / 8000) ** 2
    for share in np.linspace(0, 0.5, 26):
        two = np.exp(-x / (2 * (share * squares + (1 - share) * (1 - squares)))).mean(axis=1)
        assert np.all(two <= tails + 1e-9)
        a, b = share, 1 - share  # ½a·χ²₂ + ½b·χ²₂
        if 0 < a < b:
            four = (b * np.exp(-x[:, 0] / b) - a * np.exp(-x[:, 0] / a)) / (b - a)
            assert np.all(four <= tails + 1e-9)


def test_beyond_the_grid_one_degree_of_freedom_is_the_worst():
    x = _CELL * _worst_tails().size + np.linspace(0, 20, 500)
    for n in range(2, 400):
        assert np.all(stats.chi2(n).sf(n * x) <= stats.chi2(1).sf(x))
    just_before = _CELL * (_worst_tails().size - 1)
    assert stats.chi2(2).sf(2 * just_before) > stats.chi2(1).sf(just_before)


@pytest.mark.parametrize(("p", "y"), [(1, 0.3), (5, 40.0), (38, 300.0), (100, 2000.0)])
def test_increments(p, y):
    """Against the Bessel functions themselves, and their sum against an integral over W."""
    t = _increments(p, y, 60)
    m = np.arange(60)
    log_k = np.log(special.kve(m - 0.5, 2 * math.sqrt(y))) - 2 * math.sqrt(y)
    logs = math.log(2) + (p / 2 + 0.25 + m / 2) * math.log(y) + log_k - special.gammaln(p / 2 + m + 1)
    assert t == pytest.approx(np.exp(logs - special.gammaln((p + 1) / 2)), rel=1e-9)
    W = stats.gamma((p + 1) / 2).ppf
    exact, _ = integrate.quad(lambda u: special.gammaincc(p / 2 + 60, y / W(u)), 0, 1, limit=500)
    assert special.gammaincc(p, 2 * math.sqrt(y)) + t.sum() == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize("t", [0.1, 1.0, 5.0, 30.0, 150.0])
def test_the_grid_errs_upwards_and_by_little(t):
    """Overshoots of b₁² and of b₁² + b₂², the second by an integral over b₁."""

    def one(u):
        y = math.sqrt(max(u, 0.0))
        return math.exp(-y) * (2 * y + 2) + max(-u, 0.0)

    two, _ = integrate.quad(lambda a: math.exp(-a) * one(t - a * a), 0, _CUT, points=[math.sqrt(t)], limit=500)
    for count, exact in ((1, one(t)), (2, two)):
        law, missed, beyond, rounding = _square_sum(count)
        lost = beyond + rounding
        overshoot = law @ np.maximum(_STEP * np.arange(law.size) - t, 0)
        assert exact <= overshoot + missed + lost * count * _CUT**2 <= exact + 0.02 * min(1, exact)
        assert lost < 1e-11


# --- the bounds ----------------------------------------------------------------------------------------------------

CASES = [(0.0266, 0.005), (0.25, 0.005), (1.0, 0.1), (5.0, 1e-4)]
GAMMAS = (0.5, 0.08, 0.005)


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("p", [1, 2, 5, 38])
def test_no_matrix_of_the_trace_exceeds_the_bound(p, noise):
    """One-sided binomial tests, together with a false-alarm rate of 1e-3; bounds without the trace are caught."""
    rng = np.random.default_rng([5, p, len(noise)])
    draws = 20_000
    b = noise_of(noise, p, draws, rng)
    norms, forms = (b**2).sum(axis=1), [((b @ S) * b).sum(axis=1) for S in matrices(p, rng)]
    caught = 0
    for k, lam in CASES:
        for gamma in GAMMAS:
            allowed = stats.binom.isf(1e-3 / (len(CASES) * len(GAMMAS) * len(forms)), draws, gamma)
            settled = {"curvature": 1.0, "regularization": lam, "gamma": gamma}
            q, careless = (BOUNDS[noise](p, trace, **settled) for trace in (k, 0.0))
            energies = [0.5 * k * form + 0.5 * lam * norms for form in forms]
            assert max(np.count_nonzero(energy > q) for energy in energies) <= allowed
            caught += max(np.count_nonzero(energy > careless) for energy in energies) > allowed
    assert caught > len(CASES) * len(GAMMAS) / 2


def drawn_directly(kind, p, count, rng):
    """Draw noise by its definition: independent coordinates, or a length and a direction."""
    if kind == "laplace":
        return rng.laplace(size=(count, p))
    direction = rng.standard_normal((count, p))
    return direction / np.linalg.norm(direction, axis=1, keepdims=True) * rng.gamma(p, size=(count, 1))


@pytest.mark.parametrize("kind", ["laplace", "spherical"])
@pytest.mark.parametrize("p", [1, 2, 3, 10, 38])
def test_no_second_moments_of_that_trace_give_more_energy(kind, p):
    """By definition and for other forms than above; a quarter of the bound is caught."""
    rng = np.random.default_rng([p, 9])
    count, gamma = 20_000, 0.08
    b = drawn_directly(kind, p, count, rng)
    squares = b**2
    bound = BOUNDS[kind]
    for trace, curvature, lam in ((0.1, 0.25, 0.005), (1.0, 1.0, 0.1), (1e-3, 1.0, 0.005), (1.0, 100.0, 0.01)):
        q = bound(p, trace, curvature=curvature, regularization=lam, gamma=gamma)
        dense = rng.standard_normal((p, p))
        dense = dense @ dense.T
        unit = rng.standard_normal(p)
        forms = [
            squares[:, 0],
            squares.mean(axis=1),
            squares @ rng.dirichlet(np.full(p, 0.3)),
            (b @ (unit / np.linalg.norm(unit))) ** 2,
            b.sum(axis=1) ** 2 / p,
            np.einsum("ij,jk,ik->i", b, dense / np.trace(dense), b),
        ]
        energies = [0.5 * curvature * trace * form + 0.5 * lam * squares.sum(axis=1) for form in forms]
        exceeded = [int(np.count_nonzero(energy > q)) for energy in energies]
        assert max(exceeded) <= at_most_by_chance(count, gamma)
        broken = [int(np.count_nonzero(energy > q / 4)) for energy in energies]
        assert max(broken) > at_most_by_chance(count, gamma)


def spread_evenly(p, n, k, lam, q):
    """Return P(X > q) for spherical noise and S with n equal eigenvalues: N is negative binomial. To 1e-9."""
    law = stats.nbinom(n / 2, 1 / (1 + k / (lam * n)))
    count = int(law.isf(1e-10)) + 2
    y = q / (2 * lam)
    return special.gammaincc(p, 2 * math.sqrt(y)) + _increments(p, y, count) @ law.sf(np.arange(count))


@pytest.mark.parametrize(("k", "lam"), [(0.0266, 0.005), (0.075, 0.005), (0.25, 0.005), (0.1, 1.0)])
@pytest.mark.parametrize("p", [2, 10, 38])
def test_spherical_bounds_are_bounds_and_tight(p, k, lam):
    """Exactly, for equal eigenvalues: never above γ; and for small γ a bound 5 % smaller would be."""
    for gamma in (0.5, 0.2, 0.08, 0.01, 1e-4):
        q = spherical_energy(p, k, curvature=1.0, regularization=lam, gamma=gamma)
        assert max(spread_evenly(p, n, k, lam, q) for n in range(1, p + 1)) <= gamma
        if gamma < 0.1:
            assert spread_evenly(p, 1, k, lam, 0.95 * q) > gamma
    assert q == pytest.approx(spherical_energy(p, k, curvature=k, regularization=lam * k, gamma=gamma) / k, rel=1e-6)


def test_spherical_bounds_where_regularization_hardly_matters():
    """A tiny λ is raised for the computation; the bound for none at all is the χ²₁ tail, and nearly attained."""
    for p in (2, 38, 100):
        q = spherical_energy(p, 1.0, curvature=1.0, regularization=1e-9, gamma=0.01)
        share = stats.beta(0.5, (p - 1) / 2)
        above, _ = integrate.quad(
            lambda s, p=p, q=q, share=share: special.gammaincc(p, math.sqrt(2 * q / share.isf(s))), 0, 1, limit=500
        )
        assert 0.009 < above <= 0.01


@pytest.mark.parametrize(("p", "k", "lam"), [(2, 0.1, 0.005), (38, 0.0266, 0.005), (38, 0.5, 0.005), (200, 0.1, 0.1)])
def test_laplace_bounds_are_tight(p, k, lam):
    """Within 2 % of the simulated CVaR of the worst matrix, on both sides (the simulation is good to about 0.5 %)."""
    gamma, draws = 0.08, 100_000
    rng = np.random.default_rng([6, p])
    b2 = np.zeros(draws)
    for _ in range(p - 1):
        b2 += rng.laplace(size=draws) ** 2
    X = np.sort(0.5 * (k + lam) * rng.laplace(size=draws) ** 2 + 0.5 * lam * b2)
    q = laplace_energy(p, k, curvature=1.0, regularization=lam, gamma=gamma)
    assert q == pytest.approx(X[-round(gamma * draws) :].mean(), rel=0.02)


@pytest.mark.parametrize("noise", NOISES)
def test_bounds_grow_with_everything(noise):
    base = {"p": 7, "trace": 0.2, "curvature": 0.25, "regularization": 0.01, "gamma": 0.1}
    q = BOUNDS[noise](**base)
    for name, value in (("p", 8), ("trace", 0.21), ("curvature", 0.26), ("regularization", 0.011), ("gamma", 0.09)):
        assert BOUNDS[noise](**{**base, name: value}) > q
    assert BOUNDS[noise](**{**base, "trace": 0.0}) < q


def test_one_column():
    """There the two noises are one, and the quantile is exact."""
    for gamma in (0.5, 0.01):
        for noise in NOISES:
            q = BOUNDS[noise](1, 0.3, curvature=0.25, regularization=0.01, gamma=gamma)
            assert q == pytest.approx(0.5 * 0.085 * math.log(gamma) ** 2, rel=1e-3)
            assert math.exp(-math.sqrt(2 * q / 0.085)) <= gamma
