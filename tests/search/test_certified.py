"""The certified search: its lemmas on small cases, its promise on many runs, its costs against formulas.

Statistical tests are seeded; the false-alarm rate of each is stated where it is not 10⁻⁶.
"""

import dataclasses
import math

import numpy as np
import pytest
from scipy import optimize, stats

from expost import (
    AccuracyNotReached,
    LogisticLoss,
    Preparation,
    Problem,
    SeededSource,
    SquaredLoss,
    sums_of,
)
from expost.erm.gradient_sensitivity import gradient_sensitivity
from expost.erm.risk import RidgeRisk
from expost.erm.sums import Sums
from expost.exceptions import TargetUnreachable
from expost.noise.path import NoisePath
from expost.privacy.composition import add_losses
from expost.search.account import Account
from expost.search.certified_covariance import CovariancePlan, best_certified, best_split
from expost.search.few_statistics import FewPlan
from expost.search.generators import make_generator
from expost.search.noise_norms import PART_UNITS, _below, _norm, noise_norm, shrink
from expost.search.null_model import null_cost
from expost.search.run import run
from expost.search.stationarity import gradient_target

from .tools import RARE, logistic_rows, problem_of, ridge_rows


def empty(p):
    """Sums of rows that are all zero: enough where only public numbers are asked for."""
    return np.zeros((p, p), dtype=np.int64), np.zeros(p, dtype=np.int64), 0


@pytest.mark.parametrize("k", [1, 2, 3])
def test_few_statistics_sensitivities(k):
    """Neighbours move M, doubled off the diagonal, by at most 2δ² (δ² for one direction), and w by at most 2‖d‖_∞."""
    rng = np.random.default_rng(k)
    worst_m = worst_w = 0.0
    for _ in range(300):
        p = int(rng.integers(k, 6))
        D = np.linalg.qr(rng.normal(size=(p, k)))[0]
        delta = np.abs(D).sum(axis=1).max()
        rows = rng.dirichlet(np.full(p, 0.2), 60) * rng.choice([-1, 1], (60, p))
        v = rows @ D
        weights = 2.0 - np.eye(k)
        parts = (v[:, :, None] * v[:, None, :] * np.where(np.triu(np.ones((k, k))) > 0, weights, 0)).reshape(60, -1)
        worst_m = max(worst_m, np.abs(parts[:, None] - parts[None]).sum(axis=2).max() / delta**2)
        w = rows * (rows @ D[:, :1])
        worst_w = max(worst_w, np.abs(w[:, None] - w[None]).sum(axis=2).max() / (2 * np.abs(D[:, 0]).max()))
    assert worst_m <= (1 if k == 1 else 2) + 1e-12
    assert worst_m > 0.5
    assert worst_w <= 1 + 1e-12


def lever(kappa):
    return lambda norm: math.hypot(norm, kappa)


class TestCertificate:
    def test_the_certificate_holds_on_its_event(self):
        """For noise of exactly the assumed size in random directions, the certificate bounds the true excess risk."""
        rng = np.random.default_rng(5)
        lam = 0.05
        for _ in range(200):
            p = int(rng.integers(1, 6))
            root = rng.normal(size=(p, p)) * rng.choice([0.02, 0.3])
            second, first = root @ root.T, rng.normal(size=p) * 0.1
            noise = rng.normal(size=(p, p))
            noise = (noise + noise.T) / 2
            size_b, size_v = rng.choice([1e-4, 1e-2, 0.1], 2)
            noise *= size_b / np.linalg.norm(noise, 2)
            vector = rng.normal(size=p)
            vector *= size_v / np.linalg.norm(vector)
            kappa = float(rng.choice([0.1, 1.0, 10.0]))
            joint = float(np.linalg.norm(np.column_stack([noise, vector / kappa]), 2))
            theta, certificate = best_certified(second + noise, first + vector, lam, joint, lever(kappa), size_b)
            best = np.linalg.solve(second + lam * np.eye(p), first)
            step = theta - best
            assert 0.5 * step @ (second + lam * np.eye(p)) @ step <= certificate

    def test_a_smaller_claimed_noise_is_caught(self):
        """With a tenth of the noise admitted to, certificates are violated: the test above can fail."""
        rng = np.random.default_rng(6)
        lam, violated = 0.05, 0
        for _ in range(200):
            noise = rng.normal(size=(3, 3))
            noise = (noise + noise.T) / 2
            noise *= 0.1 / np.linalg.norm(noise, 2)
            vector = rng.normal(size=3)
            vector *= 0.1 / np.linalg.norm(vector)
            theta, certificate = best_certified(np.eye(3) * 0.1 + noise, vector, lam, 0.01, lever(1.0), 0.01)
            violated += 0.5 * 0.15 * theta @ theta > certificate  # the optimum is zero
        assert violated > 20

    def test_no_other_theta_has_a_certificate_much_smaller(self):
        """Against a general minimiser started from several points; the candidates are points of the best curve."""
        rng, lam = np.random.default_rng(7), 0.05
        for _ in range(20):
            p, noise = int(rng.integers(2, 6)), float(rng.choice([1e-3, 0.02, 0.1]))
            root = rng.normal(size=(p, p)) * 0.2
            second, first = root @ root.T - 0.04 * np.eye(p), rng.normal(size=p) * 0.1

            def bound(theta, second=second, first=first, noise=noise):
                gradient = second @ theta + lam * theta - first
                return np.linalg.norm(gradient) + noise * math.hypot(np.linalg.norm(theta), 1.0)

            starts = [np.zeros(p), np.linalg.solve(second + lam * np.eye(p), first), rng.normal(size=p)]
            found = min(optimize.minimize(bound, start, method="Powell").fun for start in starts)
            theta, certificate = best_certified(second, first, lam, noise, lever(1.0), math.inf)
            assert certificate == pytest.approx(bound(theta) ** 2 / (2 * lam), rel=1e-6)
            assert math.sqrt(2 * lam * certificate) <= 1.02 * found

    def test_curvature_in_every_direction_makes_it_smaller(self):
        """By (λ + λ_min − noise)/λ, and it still bounds the risk; counting no noise against the curvature is caught."""
        rng, lam, violated = np.random.default_rng(8), 0.01, 0
        for _ in range(300):
            noise = rng.normal(size=(2, 2))
            noise = (noise + noise.T) / 2
            noise *= 0.2 / np.linalg.norm(noise, 2)
            second, first = np.eye(2) * 0.25, rng.normal(size=2) * 0.01
            shared = (second + noise, first, lam, 0.2, lambda norm: norm)
            (theta, plain), (_, sharp) = best_certified(*shared, math.inf), best_certified(*shared, 0.2)
            lowest = np.linalg.eigvalsh(second + noise)[0]
            assert sharp == pytest.approx(plain * lam / (lam + max(0.0, lowest - 0.2)), rel=1e-6)
            hessian = second + lam * np.eye(2)
            gradient = hessian @ theta - first
            risk = 0.5 * gradient @ np.linalg.solve(hessian, gradient)
            assert risk <= sharp
            exact = np.linalg.norm(gradient) ** 2 / 2  # what a certificate with no slack in ‖∇L(θ)‖ would divide
            violated += risk > exact / (lam + lowest)
        assert violated > 20

    @pytest.mark.parametrize("parallel", [True, False])
    def test_certificates_hold_under_fresh_noise(self, parallel):
        """Where gradients bound risks exactly (no curvature), or θ* is far from Xᵀy; a fourth of β is caught.

        With one strong direction and first moments elsewhere too, θ* is not parallel to them.
        """
        p, lam, gamma, split, size, runs = 6, 1.0, 0.1, 0.4, 0.02, 1500
        beta, m = noise_norm(p, (1.0,), gamma), shrink(p, gamma)
        second = np.diag([0.0 if parallel else 5.0] + [0.0] * (p - 1))
        first = np.full(p, 0.8)
        best = np.linalg.solve(second + lam * np.eye(p), first)
        rng = np.random.default_rng([10, parallel])
        violated = {1.0: 0, 0.25: 0}
        for _ in range(runs):
            B = np.triu(rng.laplace(size=(p, p)), 1)
            B = (B + B.T + np.diag(rng.laplace(scale=2, size=p))) * size / (1 - split)
            b = rng.laplace(scale=2, size=p) * size / split
            for part in violated:
                theta, certificate = best_certified(
                    second + B,
                    first + b,
                    lam,
                    part * size * beta,
                    lambda r: math.hypot(r / (1 - split), m / split),
                    part * size * beta / (1 - split),
                )
                step = theta - best
                violated[part] += 0.5 * step @ (second + lam * np.eye(p)) @ step > certificate
        assert stats.binomtest(violated[1.0], runs, gamma, alternative="greater").pvalue > RARE
        assert stats.binomtest(violated[0.25], runs, gamma, alternative="greater").pvalue < RARE


def joint_norm(matrix, vector):
    return float(np.linalg.norm(np.column_stack([matrix, vector]), 2))


@pytest.mark.parametrize("p", [1, 4, 15])
def test_noise_norms_hold_along_real_paths(p):
    """Fresh exact paths exceed the bound at most as often as allowed; a bound half as large is exceeded more often."""
    gamma, split = 0.1, 0.4
    levels = [0.05 * 1.3**t for t in range(6)]
    beta, m = noise_norm(p, tuple(levels), gamma), shrink(p, gamma)
    rows, columns = np.triu_indices(p)
    weight = np.where(rows == columns, 1.0, 0.5)
    exceeded = exceeded_small = 0
    runs = 300
    for run_ in range(runs):
        source = SeededSource([9, p, run_])
        matrix = NoisePath(np.zeros(rows.size, int), PART_UNITS, [(1 - split) * e for e in levels], random_state=source)
        vector = NoisePath(np.zeros(p, int), PART_UNITS, [split * e for e in levels], random_state=source)
        seen = 0.0
        for level, a, b in zip(levels, matrix, vector, strict=True):
            B = np.zeros((p, p))
            B[rows, columns] = B[columns, rows] = a.values / 2.0**40 * weight
            seen = max(seen, joint_norm((1 - split) * B, split / m * b.values / 2.0**40) * level / beta)
        exceeded += seen > 1
        exceeded_small += seen > 1 / 2
    assert stats.binomtest(exceeded, runs, gamma, alternative="greater").pvalue > RARE
    assert stats.binomtest(exceeded_small, runs, gamma, alternative="greater").pvalue < RARE


@pytest.mark.parametrize("p", [1, 2, 9])
def test_a_norm_is_compared_without_computing_it(p):
    rng = np.random.default_rng(p)
    for _ in range(50):
        matrix, vector = rng.laplace(size=(p, p)), rng.laplace(size=p) * rng.choice([0, 1, 10])
        upper, size = np.triu(matrix), joint_norm(np.triu(matrix) + np.triu(matrix, 1).T, vector)
        assert _norm(upper, vector) == pytest.approx(size, rel=1e-9)
        assert _below(upper, vector, size * (1 + 1e-6))
        assert not any(_below(upper, vector, limit) for limit in (size * (1 - 1e-6), size / 2, 0.0))


def test_one_more_column_hardly_moves_the_norm():
    """What makes one norm cheaper than two: β for (B, b/m) is within 7 % of the same quantile for B alone."""
    p, rng = 40, np.random.default_rng(8)
    alone = []
    for _ in range(200):
        B = np.triu(rng.laplace(size=(p, p)), 1)
        alone.append(np.linalg.norm(B + B.T + np.diag(rng.laplace(scale=2, size=p)), 2))
    assert noise_norm(p, (1.0,), 0.1) < 1.07 * np.quantile(alone, 0.9)


@pytest.mark.parametrize("p", [220, 300])
def test_proved_norms_hold(p):
    """Matrix Bernstein is far from tight: a single level stays well below it in 40 draws."""
    beta, m = noise_norm(p, (1.0,), 0.1), shrink(p, 0.1)
    rng = np.random.default_rng(p)
    for _ in range(40):
        B = rng.laplace(size=(p, p))
        B = np.triu(B, 1) + np.triu(B, 1).T + np.diag(rng.laplace(scale=2, size=p))
        assert joint_norm(B, rng.laplace(scale=2 / m, size=p)) < beta


def test_the_split_is_the_best_for_its_norm():
    for norm in (0.1, 1.0, 7.0):
        split = best_split(norm, 1.3)
        cost = [math.hypot(norm / (1 - w), 1.3 / w) for w in (split * 0.98, split, split * 1.02)]
        assert cost[1] == min(cost)


def achieved(generator, problem, seeds, **options):
    excess, spent = [], []
    for seed in seeds:
        try:
            release = run(generator, problem, random_state=SeededSource(seed), **options)
        except AccuracyNotReached as refusal:
            spent.append(refusal.release.epsilon)
            continue
        spent.append(release.epsilon)
        excess.append(generator.risk.excess(np.asarray(release.hypothesis)))
        assert release.epsilon <= release.epsilon_worst_case
    return np.array(excess), np.array(spent)


CASES = [
    ("auto", "covariance", "laplace"),
    ("certified", "covariance", "laplace"),
    ("certified", "output", "laplace"),
    ("auto", "output", "spherical"),
]


@pytest.mark.parametrize(("method", "perturbation", "noise"), CASES)
def test_the_promise(method, perturbation, noise, record_property):
    """Excess risk above α in at most a γ share of runs, where the null model misses α by at least three times."""
    if perturbation == "covariance":
        rows, loss, alpha = ridge_rows(30_000, 4, 11), SquaredLoss(), 0.005
    else:
        rows, loss, alpha = logistic_rows(30_000, 4, 12), LogisticLoss(), 0.005
    problem = problem_of(rows, loss, alpha)
    generator = make_generator(sums_of(rows) if perturbation == "covariance" else rows, problem, perturbation)
    null = generator.risk.excess(np.zeros(rows.p))
    assert null >= 3 * alpha
    options = {"method": method, "perturbation": perturbation, "noise": noise}
    excess, spent = achieved(generator, problem, [[13, s] for s in range(200)], **options)
    assert excess.size > 100
    above = int((excess > alpha).sum())
    assert stats.binomtest(above, 200, problem.failure_probability, alternative="greater").pvalue > 1e-3
    record_property("achieved", f"mean {excess.mean():.3g} of {alpha}, null {null:.3g}, epsilon {spent.mean():.3g}")
    tested = run(generator, problem, method="above_threshold", perturbation=perturbation, random_state=0)
    assert spent.mean() < 0.5 * tested.epsilon  # what all this is for


def adversarial(name):
    rng = np.random.default_rng(14)
    X, y = rng.uniform(-0.3, 0.3, (60, 3)), rng.uniform(-1, 1, 60)
    if name == "p near n":
        X, y = rng.uniform(-1, 1, (12, 10)) / 10, rng.uniform(-1, 1, 12)
    elif name == "collinear":
        X = np.column_stack([X[:, 0], X[:, 0], -X[:, 0]])
    elif name == "constant target":
        y = np.ones(60)
    elif name == "zero rows":
        X = np.zeros((60, 3))
    elif name == "equal rows":
        X, y = np.tile(X[:1], (60, 1)), np.full(60, 0.7)
    elif name == "huge row":
        X[0] = 1e12
    recipe = Preparation(bounds=None, feature_bound=1.0, target=(-1.0, 1.0), intercept_weight=0.0, n_columns=X.shape[1])
    return recipe.prepare_regression(X, y)


@pytest.mark.parametrize(
    "name", ["tiny n", "p near n", "collinear", "constant target", "zero rows", "equal rows", "huge row"]
)
@pytest.mark.parametrize("perturbation", ["covariance", "output"])
def test_the_promise_on_awkward_data(name, perturbation):
    rows = adversarial(name)
    problem = problem_of(rows, SquaredLoss(), 0.02, lam=0.1)
    generator = make_generator(rows, problem, perturbation)
    options = {"method": "auto", "perturbation": perturbation}
    excess, _ = achieved(generator, problem, [[15, s] for s in range(60)], **options)
    above = int((excess > problem.excess_risk).sum())
    assert stats.binomtest(above, 60, problem.failure_probability, alternative="greater").pvalue > 1e-3


class TestCosts:
    def test_null_model_by_hand(self):
        """n = 100,000, λ = .005, α = .05, δ = .02: Δ = 2/n, s = .6·√(2λα)/ln 25."""
        problem = Problem.of(SquaredLoss(), n=100_000, p=5, regularization=0.005, excess_risk=0.05)
        risk = RidgeRisk(Sums(100_000, 5, *empty(5)), 0.005, problem.radius)
        scale = 0.6 * math.sqrt(2 * 0.005 * 0.05) / math.log(25)
        assert null_cost(risk, problem, 0.02) == pytest.approx(2e-5 / scale, rel=1e-3)

    def test_few_levels_by_hand(self):
        problem = Problem.of(SquaredLoss(), n=100_000, p=77, regularization=0.005, excess_risk=0.05)
        plan = FewPlan.of(problem, 0.035, RidgeRisk(Sums(100_000, 77, *empty(77)), 0.005, problem.radius))
        target = gradient_target(0.05, 0.005)
        generating = 2 * math.sqrt(154) / 1e5 / target
        testing = gradient_sensitivity(SquaredLoss(), 1.0) / 1e5 * math.log(1 / (2 * 0.035 / 4)) / target
        share = math.sqrt(testing) / (math.sqrt(testing) + math.sqrt(generating))
        assert plan.levels[0] == pytest.approx(generating / (1 - share))
        assert plan.levels[1] / plan.levels[0] == pytest.approx(1.35)

    def test_parts_add_up_and_reasons_are_given(self):
        rows = ridge_rows(20_000, 3, 16)
        release = run(rows, problem_of(rows, SquaredLoss(), 0.01), method="auto", random_state=1)
        assert release.method == "auto"
        assert release.epsilon_test > 0
        assert release.parameters["reasons"]
        assert release.parameters["loss"] == "squared"

    def test_budget_is_kept_by_every_outcome(self):
        rows = ridge_rows(3_000, 3, 17)
        problem = problem_of(rows, SquaredLoss(), 0.005)
        generator = make_generator(sums_of(rows), problem, "covariance")
        for budget in (0.3, 0.6, 1.5, 4.0):
            for seed in range(5):
                try:
                    release = run(generator, problem, method="auto", max_epsilon=budget, random_state=seed)
                except AccuracyNotReached as refusal:
                    release = refusal.release
                assert release.epsilon <= release.epsilon_worst_case <= budget

    def test_a_budget_is_kept_to_the_last_bit(self):
        """Losses are rounded up one after another; what is checked beforehand is rounded as it will be charged."""
        rows = ridge_rows(200, 1, 17)
        problem = problem_of(rows, SquaredLoss(), 0.01, lam=1.0)
        free = CovariancePlan.of(problem, 0.08)
        rng, apart, top = np.random.default_rng(29), 0, free.charge(free.levels[3])
        for _ in range(200):
            account = Account("certified", math.inf, True, *(top * 10 ** rng.uniform(-3, 0, 3)).tolist())
            for budget in (account.after(top), add_losses(account.total, top)):  # a level that only just fits
                plan = CovariancePlan.of(problem, 0.08, budget, account.after)
                after = dataclasses.replace(
                    account, generation=add_losses(account.generation, plan.charge(plan.levels[-1]))
                )
                assert after.total <= budget
            apart += account.after(top) > add_losses(account.total, top)
        assert apart > 5  # the check by totals would have let some through

    @pytest.mark.parametrize(("p", "gamma", "lam"), [(1, 0.0045, 1.0), (3, 0.045, 0.01)])
    def test_levels_reach_where_a_certificate_must_come(self, p, gamma, lam):
        problem = Problem.of(SquaredLoss(), n=1000, p=p, regularization=lam, excess_risk=0.01)
        plan = CovariancePlan.of(problem, gamma)
        target = gradient_target(0.01, lam)
        needed = plan.norm() * plan.lever(SquaredLoss().radius(lam) + target / lam) / (1000 * target)
        assert needed <= plan.levels[-1] < 3 * needed

    @pytest.mark.parametrize("method", ["auto", "certified"])
    def test_a_stated_radius_changes_nothing(self, method):
        """Gradients vanish at the unconstrained optimum, wherever the stated ball ends."""
        rows = ridge_rows(20_000, 3, 30)
        free = problem_of(rows, SquaredLoss(), 0.01)
        stated = dataclasses.replace(free, radius=0.1, radius_stated=True)
        one, other = (run(sums_of(rows), problem, method=method, random_state=1) for problem in (free, stated))
        assert np.linalg.norm(one.hypothesis) > 0.1
        assert np.array_equal(one.hypothesis, other.hypothesis)
        assert one.epsilon == other.epsilon

    @pytest.mark.parametrize(("loss", "perturbation"), [(SquaredLoss(), "covariance"), (LogisticLoss(), "output")])
    def test_a_target_that_any_rows_meet_costs_nothing(self, loss, perturbation):
        rows = ridge_rows(200, 3, 1) if loss.labels == "real" else logistic_rows(200, 3, 1)
        problem = problem_of(rows, loss, loss.null_value)
        for budget in (None, 1e-9):
            release = run(rows, problem, method="auto", perturbation=perturbation, max_epsilon=budget, random_state=0)
            assert release.epsilon == 0
            assert not np.asarray(release.hypothesis).any()
            assert "whatever the rows" in release.parameters["reasons"][0]
        generator = make_generator(rows, problem, perturbation)
        assert generator.risk.excess(np.zeros(rows.p)) <= problem.excess_risk
        problem = problem_of(rows, loss, 0.99 * loss.null_value)
        assert run(rows, problem, method="auto", perturbation=perturbation, random_state=0).epsilon > 0

    def test_hopeless_budget_spends_nothing(self):
        rows = ridge_rows(200, 3, 18)

        class Counting(SeededSource):
            drawn = 0

            def words(self, count):
                Counting.drawn += count
                return super().words(count)

        for perturbation in ("covariance", "output"):
            with pytest.raises(TargetUnreachable, match="Nothing was spent"):
                run(
                    rows,
                    problem_of(rows, SquaredLoss(), 1e-4),
                    method="auto",
                    perturbation=perturbation,
                    max_epsilon=0.01,
                    random_state=Counting(1),
                )
        assert Counting.drawn == 0

    def test_spherical_is_for_output_only(self):
        rows = ridge_rows(200, 3, 19)
        with pytest.raises(ValueError, match="spherical"):
            run(rows, problem_of(rows, SquaredLoss(), 0.1), method="auto", noise="spherical")

    def test_spherical_release_says_over_the_reals(self):
        rows = logistic_rows(20_000, 3, 20)
        problem = problem_of(rows, LogisticLoss(), 0.01)
        release = run(rows, problem, method="auto", perturbation="output", noise="spherical", random_state=0)
        assert release.noise == "over the reals"
        assert run(rows, problem, method="auto", perturbation="output", random_state=0).noise == "exact"
