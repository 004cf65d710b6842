"""What becomes of a stated loss when less is shown: every inequality exactly, in rational numbers, on small cases.

An outcome o has probability P(o) on one table and Q(o) on a neighbour; its x is P/Q = e^ℓ, and f is e^ε of what is
stated of it. A public rule, which may toss coins of its own, makes z of o.
"""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest

from expost import AccuracyFirstModel, ErrorRate, Release
from expost.account.composition import Clock

ZERO, ONE = Fraction(0), Fraction(1)
CASES = 60


def laws(rng, count, *, zeros=False):
    """Return the probabilities of outcomes on both tables; some may be impossible on the second."""
    first, other = rng.integers(1, 50, count), rng.integers(0 if zeros else 1, 50, count)
    other[0] = max(1, other[0])
    return [[Fraction(int(each), int(law.sum())) for each in law] for law in (first, other)]


def rule(rng, count, results):
    """Return how probable each result is given each outcome."""
    found = []
    for _ in range(count):
        parts = rng.integers(0, 4, results)
        parts[rng.integers(results)] += 1
        found.append([Fraction(int(part), int(parts.sum())) for part in parts])
    return found


def made(P, Q, rows, kept=None):
    """Return the probabilities on both tables of what is made by a rule, and of what of the outcome it keeps."""
    found = defaultdict(lambda: [ZERO, ZERO])
    for o, chances in enumerate(rows):
        for z, chance in enumerate(chances):
            if chance:
                entry = found[z if kept is None else (z, kept[o])]
                entry[0] += chance * P[o]
                entry[1] += chance * Q[o]
    return found


def largest(f, rows):
    """Return the largest of what is stated of the outcomes that each result can come from."""
    return [max((f[o] for o in range(len(f)) if rows[o][z]), default=ONE) for z in range(len(rows[0]))]


def excess(found, stated):
    """Return the largest of P[S] − E′[f; S] over sets S of results: the δ of the usual sense."""
    return sum((max(ZERO, p - stated(z) * q) for z, (p, q) in found.items()), ZERO)


def beyond(found, stated):
    """Return the probability of results that speak by more than is stated: the δ of the strict sense."""
    return sum((p for z, (p, q) in found.items() if p > stated(z) * q), ZERO)


@pytest.fixture(params=range(CASES))
def case(request):
    rng = np.random.default_rng(request.param)
    P, Q = laws(rng, 6, zeros=request.param % 2 == 1)
    f = [Fraction(int(each), 10) for each in rng.choice([10, 12, 15, 30], 6)]
    return P, Q, f, rule(rng, 6, 3)


class TestPure:
    @pytest.mark.parametrize("seed", range(CASES))
    def test_what_holds(self, seed):
        rng = np.random.default_rng(seed)
        (P, Q), rows = laws(rng, 6), rule(rng, 6, 3)
        f = [max(p / q, q / p) for p, q in zip(P, Q, strict=True)]
        for (_, kept), (p, q) in made(P, Q, rows, f).items():
            assert p <= kept * q
            assert q <= kept * p
        most = largest(f, rows)
        for z, (p, q) in made(P, Q, rows).items():
            mean = sum(rows[o][z] * Q[o] * f[o] for o in range(6)) / q
            assert p / q <= mean <= most[z]
            assert q / p <= most[z]

    def test_control_the_loss_of_what_came_out_is_none_of_what_is_shown(self):
        """Two outcomes look the same: one was cheap, one was dear."""
        P, Q = [Fraction(11, 20), Fraction(1, 5), Fraction(1, 4)], [Fraction(1, 2), Fraction(1, 10), Fraction(2, 5)]
        f = [Fraction(11, 10), Fraction(2), Fraction(8, 5)]
        assert all(p <= each * q and q <= each * p for p, q, each in zip(P, Q, f, strict=True))
        [p, q] = made(P, Q, [[ONE, ZERO], [ONE, ZERO], [ZERO, ONE]])[0]
        assert p / q == Fraction(5, 4) > f[0]

    def test_the_largest_can_be_what_it_takes(self):
        P, Q = [Fraction(2, 3), Fraction(1, 3)], [Fraction(1, 3), Fraction(2, 3)]
        [p, q] = made(P, Q, [[ONE, ZERO], [ZERO, ONE]])[0]
        assert p == 2 * q


class TestUsualSense:
    def test_what_holds(self, case):
        P, Q, f, rows = case
        delta = excess({o: (P[o], Q[o]) for o in range(6)}, lambda o: f[o])
        assert excess(made(P, Q, rows, f), lambda z: z[1]) <= delta
        most = largest(f, rows)
        assert excess(made(P, Q, rows), lambda z: most[z]) <= delta

    def test_control_the_least_of_what_is_stated_will_not_do(self):
        """As if what came out were always the cheap outcome."""
        P, Q = (
            [Fraction(5, 10), Fraction(3, 10), Fraction(2, 10)],
            [Fraction(5, 11), Fraction(1, 10), Fraction(49, 110)],
        )
        f = [Fraction(11, 10), Fraction(3), ONE]
        delta = excess({o: (P[o], Q[o]) for o in range(3)}, lambda o: f[o])
        assert delta == 0
        assert excess(made(P, Q, [[ONE, ZERO], [ONE, ZERO], [ZERO, ONE]]), lambda z: f[0]) > delta


class TestStrictSense:
    def test_what_holds_after_any_rule(self, case):
        """Beyond s times what is stated with a chance of δ/(1 − 1/s) at most, whether ε or the largest one is shown."""
        P, Q, f, rows = case
        delta = beyond({o: (P[o], Q[o]) for o in range(6)}, lambda o: f[o])
        most = largest(f, rows)
        for s in (Fraction(21, 20), Fraction(2), Fraction(10)):
            assert beyond(made(P, Q, rows, f), lambda z, s=s: s * z[1]) <= delta / (1 - 1 / s)
            assert beyond(made(P, Q, rows), lambda z, s=s: s * most[z]) <= delta / (1 - 1 / s)

    def test_control_a_bound_on_the_tail_alone_is_lost(self):
        """One outcome in a hundred betrays everything; a rule hides it among those that are just within the bound."""
        delta, within, f = Fraction(1, 100), Fraction(1, 2), Fraction(2)
        P = [delta, within, 1 - delta - within]
        Q = [ZERO, within / f, 1 - within / f]
        stated = [f] * 3
        assert beyond({o: (P[o], Q[o]) for o in range(3)}, lambda o: stated[o]) == delta
        found = made(P, Q, [[ONE, ZERO], [ONE, ZERO], [ZERO, ONE]], stated)
        assert beyond(found, lambda z: z[1]) == delta + within


WEIGHTS = {2: Fraction(1, 3), 3: Fraction(2, 3)}


class TestCurves:
    """A curve is R(r) at some orders, here as g = e^((r − 1)R(r)); M(x) = Σ w·x^(r − 1)/g, and x > f where M > 1/δ."""

    @pytest.mark.parametrize("seed", range(CASES))
    def test_what_holds_where_the_curve_is_shown(self, seed):
        rng = np.random.default_rng(seed)
        (P, Q), rows = laws(rng, 6), rule(rng, 6, 3)
        kinds = [int(kind) for kind in rng.integers(0, 2, 6)]
        g = [{r: Fraction(int(rng.integers(10, 40)), 10) for r in WEIGHTS} for _ in range(2)]

        def M(x, kind):
            return sum(WEIGHTS[r] * x ** (r - 1) / g[kind][r] for r in WEIGHTS)

        mean = sum(p * M(p / q, kind) for p, q, kind in zip(P, Q, kinds, strict=True))
        g = [{r: each * mean for r, each in curve.items()} for curve in g]  # now its mean is one
        found = made(P, Q, rows, kinds)
        assert sum(p * M(p / q, kind) for (_, kind), (p, q) in found.items() if p) <= 1
        for delta in (Fraction(1, 2), Fraction(9, 10)):
            assert sum(p for (_, kind), (p, q) in found.items() if p and M(p / q, kind) > 1 / delta) <= delta

    def test_control_where_epsilon_alone_is_shown_curves_of_one_epsilon_must_not_be_mixed(self):
        """A public coin chooses between two steps, each with its own curve, both of which come to one ε at δ."""
        delta, f, high = Fraction(1, 100), Fraction(400), 1000

        def steep(x):
            return Fraction(1, 2) * x**high / (f**high / 200)

        def flat(x):
            return Fraction(1, 2) * x / 2

        assert steep(f) == flat(f) == 1 / delta
        # within each step: a telling outcome, and the rest
        telling = {"steep": (Fraction(1, 2), Fraction(1, 2) / 396), "flat": (Fraction(1, 800), Fraction(1, 800) / 800)}
        rest = {name: (1 - p, 1 - q) for name, (p, q) in telling.items()}
        for name, power, g in (("steep", high, f**high / 200), ("flat", 1, Fraction(2))):
            assert sum(p * (p / q) ** power for p, q in (telling[name], rest[name])) <= g  # it costs its curve
        coin = {"steep": Fraction(1, 10), "flat": Fraction(9, 10)}
        seen = [(coin[name] * p, coin[name] * q) for name, (p, q) in telling.items()]
        assert sum(p for p, q in seen if p / q > f) <= delta  # with the curves shown
        p, q = (sum(each) for each in zip(*seen, strict=True))
        assert p / q > f  # which of both it was is not told
        assert p > 5 * delta


@pytest.mark.parametrize("perturbation", ["descent", "objective"])
def test_a_release_shows_all_that_its_epsilon_follows_from(perturbation):
    """So that what is proved of outcomes that show it holds of the release, and of what is passed on with it."""
    rng = np.random.default_rng(0)
    age = rng.uniform(18, 90, 4000)
    table = {"age": age, "late": np.where(age + rng.normal(0, 10, 4000) > 50, "yes", "no")}
    schema = {"target": "late", "classes": ["no", "yes"], "columns": {"age": {"bounds": [18, 90]}}}
    model = AccuracyFirstModel(schema, ErrorRate(0.3), delta=1e-6, perturbation=perturbation, random_state=0)
    shown = Release.from_json(model.fit(table).release_.to_json())
    if perturbation == "descent":  # by a clock
        said = shown.curve
        found = Clock(tuple(said["times"])).epsilon(said["rho"], said["pure"], shown.delta)
    else:
        found = shown.account_curve().epsilon(shown.delta)
    assert 0.0 <= shown.epsilon - found < 1e-15  # sums of what was paid are rounded up
