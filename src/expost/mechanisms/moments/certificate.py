"""Certified covariance perturbation (theory B6): stop when what is released proves that it is good enough.

*Released*: Z = XᵀX + B and z = Xᵀy + b, level by level. *Neighbours*: one row replaced. *Sensitivity*: 2 each in ℓ₁;
XᵀX gets the part 1 − w of ε_t and Xᵀy the part w. *Theorem (privacy)*: gradual release of both; the rule reads only
released values and fresh randomness, so stopping at t costs ε_t and nothing else.

*Theorem (accuracy)*: `expost.mechanisms.moments.statistics` has β and m such that with probability 1 − γ (γ is the
norm's part: all of the search's, or three quarters if the ray is tried), at every level and for every θ, ‖Bθ − b‖ ≤
(β/ε_t)·h(‖θ‖), h(r)² = (r/(1 − w))² + (m/w)². For any θ computed from Z and z, ĝ = (Zθ − z)/n + λθ is known and ∇L(θ) =
ĝ − (Bθ − b)/n, so

    L(θ) − min L ≤ ‖∇L(θ)‖²/(2μ) ≤ (‖ĝ‖ + β·h(‖θ‖)/(nε_t))²/(2μ),

where L is μ-strongly convex for μ = λ, and on the same event for μ = λ + λ_min(Z)/n − β/((1 − w)nε_t): its Hessian is
XᵀX/n + λI = Z/n + λI − B/n, and the norm of B alone is no larger than that of B with one more column. (The lemma on
gradients is that of `expost.goals.measure`.) Few columns of similar scale have such curvature in every direction;
the certificate then comes at half the ε. For many columns it does nothing.

The event does not mention θ, so θ may be chosen to make the certificate smallest.

*Split*: h(r) is smallest at w = 1/(1 + (r/m)^⅔), where the derivative of h² in w, 2r²/(1 − w)³ − 2m²/w³, is zero. r is
a typical norm of the θ that is certified first: a part of the radius that θ* is known to lie within, but no more than
a constant, because where the radius is large a θ much shorter than θ* will do.

The θ released is the one, among candidates computed from Z and z, whose certificate is smallest; the event above
covers all of them. Where that does not suffice, `expost.mechanisms.moments.ray` may still prove θ = cz good enough, for
a part of the failure probability.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from expost.account import Account, add_losses
from expost.goals.measure import gradient_target
from expost.mechanisms.moments.ray import Released, affordable, best_on_ray
from expost.mechanisms.moments.statistics import PART_SENSITIVITY, Layout, discreteness, noise_norm, shrink, simulated
from expost.noise import KeptLevels, LevelValue, NoisePath, WordSource
from expost.numeric import AnyArray, FloatArray
from expost.passes.sums import SUM_UNIT, Sums
from expost.release.release import Release
from expost.shown import up
from expost.solve.problem import Problem

_RATIO = 1.12  # from one level to the next
_EARLIER = 2.0  # a certificate with μ = λ first comes this many times above the first level
_RAY, _RAY_FROM = 0.25, 40  # the ray's part of the failure probability, and the columns it takes for it to pay
_EARLIER_RAY = 6.0  # where the norm is not simulated the ray needs about a quarter of the ε
_COUNT_BY = 4  # levels come in such multiples, so that one simulation serves several targets
_DAMPINGS = np.concatenate([[0.0], 2.0 ** np.arange(-16.0, 9.0)])  # μ of the candidates, in units of λ²


@dataclass(frozen=True)
class CovariancePlan:
    """Levels, their split, and how large noise gets; public.

    Attributes
    ----------
    problem, excess_risk
        What is to be proved.
    levels, steps
        Privacy levels within the budget, and all of them in units of the first.
    split
        The part of ε that Xᵀy gets.
    failure_probability
        Of the whole.
    ray
        The ray's part of it; zero if it is not tried.
    keep_statistics
        Whether what the last level revealed is released with the hypothesis, which it is paid for with.
    """

    problem: Problem
    excess_risk: float
    levels: tuple[float, ...]
    steps: tuple[float, ...]
    split: float
    failure_probability: float
    ray: float = 0.0
    keep_statistics: bool = False

    @classmethod
    def of(
        cls,
        problem: Problem,
        excess_risk: float,
        failure_probability: float,
        keep_statistics: bool = False,
    ) -> CovariancePlan:
        """Settle levels from where nothing could be certified yet to where all is.

        A certificate by the norm needs β·h(‖θ‖)/(nε) ≤ √(2μα). It cannot be had while that fails for ‖θ‖ = 0, and it is
        had at the latest when it holds for ‖θ‖ = R + √(2α/λ), the norm of the noisy optimum at most, and μ = λ. How
        much larger μ is depends on the rows; levels begin where μ = 4λ would do, or earlier for the ray. They end a
        margin beyond that last point, as β is only roughly known when they are chosen. A search without a budget then
        refuses with probability at most γ.

        *Lemma (it comes).* On the event of the module's theorem, if (β/(nε))·h(R + √(2α/λ)) ≤ √(2λα), some θ has a
        certificate of at most α; R > 0 is any bound on the norm of the unconstrained θ*. *Proof.* Write s = √(2α/λ),
        ℓ = R + s and e = β/(nε), so e·h(ℓ) ≤ λs. As h(ℓ) > ℓ/(1 − w), ‖B‖/n ≤ e/(1 − w) < e·h(ℓ)/ℓ ≤ λs/ℓ < λ. So
        Ĥ = Z/n + λI = XᵀX/n + λI + B/n is positive definite, and ĝ = 0 at some θ; let r be its norm. Then ‖∇L(θ)‖ ≤
        e·h(r), and strong convexity gives r ≤ R + e·h(r)/λ ≤ R + s·h(r)/h(ℓ). If r > ℓ, then h(r)/h(ℓ) ≤ r/ℓ, hence
        r(1 − s/ℓ) ≤ R, that is r ≤ ℓ, a contradiction. So r ≤ ℓ, and the certificate of θ is at most (e·h(ℓ))²/(2λ)
        ≤ α. ∎ A radius stated by the caller is no such R: within it ∇L need not vanish, and a gradient says nothing
        about the best θ of a smaller ball.
        """
        plan = cls._unbounded(problem, excess_risk, failure_probability, _RAY if problem.p >= _RAY_FROM else 0.0)
        if plan.ray and not affordable(problem.p, plan.ray_probability):
            plan = cls._unbounded(problem, excess_risk, failure_probability, 0.0)
        return replace(plan, keep_statistics=keep_statistics)

    def within(self, budget: float, total: Callable[[float], float]) -> CovariancePlan | None:
        """Return it with the levels that the budget has room for, None if there are none.

        ``total`` says what all will have cost once a level is charged.
        """
        levels = tuple(level for level in self.levels if total(self.charge(level)) <= budget)
        return replace(self, levels=levels) if levels else None

    @classmethod
    def _unbounded(cls, problem: Problem, excess_risk: float, failure_probability: float, ray: float) -> CovariancePlan:
        """Settle split and levels for that part of the failure probability, without regard to a budget."""
        target = gradient_target(excess_risk, problem.regularization)
        split = best_split(typical_norm(problem), shrink(problem.p, (1 - ray) * failure_probability))
        plan = cls(problem, excess_risk, (), (), split, failure_probability, ray)
        longest = problem.optimum_radius + target / problem.regularization
        margin = max(1.3, 1.1 + 1 / math.sqrt(problem.p))  # β is only roughly known, and least so for few columns
        # where the norm is only bounded by a proof, the ray comes much earlier
        earlier = _EARLIER_RAY if ray and not simulated(problem.p, plan.norm_probability) else _EARLIER
        reach = margin * earlier * plan.lever(longest) / plan.lever(0.0)
        return plan._from(plan.expected(0.0) / earlier, math.log(reach) / math.log(_RATIO) + 1)

    def _from(self, least: float, count: float) -> CovariancePlan:
        """Return it with at least so many levels, from the least on."""
        steps = tuple(_RATIO**t for t in range(_COUNT_BY * math.ceil(count / _COUNT_BY)))
        return replace(self, levels=tuple(least * step for step in steps), steps=steps)

    @classmethod
    def refinable(
        cls, problem: Problem, excess_risk: float, finest: float, failure_probability: float
    ) -> tuple[CovariancePlan, int]:
        """Settle levels that also serve later requests, down to ``finest``; and the last one that this one may use.

        The event of the module's theorem is about all levels at once, and mentions neither α nor λ, so it covers every
        promise made on the path. The ray is not tried: its bound holds once at each level, and a path that is kept may
        be asked twice.
        """
        plan = cls._unbounded(problem, excess_risk, failure_probability, 0.0)
        last, end = len(plan.levels) - 1, cls._unbounded(problem, finest, failure_probability, 0.0).levels[-1]
        more = math.ceil(math.log(end / plan.levels[0]) / math.log(_RATIO)) + 1
        return plan._from(plan.levels[0], max(more, last + 1)), last

    @property
    def norm_probability(self) -> float:
        """Failure probability of the noise norm."""
        return (1 - self.ray) * self.failure_probability

    @property
    def ray_probability(self) -> float:
        """Failure probability of the ray at one level."""
        return self.ray * self.failure_probability / len(self.steps)

    def lever(self, norm: float) -> float:
        """Return h(‖θ‖)."""
        return math.hypot(norm / (1 - self.split), shrink(self.problem.p, self.norm_probability) / self.split)

    def charge(self, level: float) -> float:
        """Return what a level costs: its two parts as they are used, rounded up."""
        return add_losses(level * (1 - self.split), level * self.split)

    def norm(self) -> float:
        """Return β; simulated at the first call for a p, so asked for only when a certificate is needed."""
        beta = noise_norm(self.problem.p, self.steps, self.norm_probability)
        return beta + discreteness(self.problem.p, len(self.steps), self.levels[-1])

    def expected(self, norm: float = 1.0) -> float:
        """Roughly what a certificate costs for an optimum of that norm; used to choose, never to promise."""
        p, gamma = self.problem.p, self.norm_probability
        if simulated(p, gamma):
            rough = 2 * (math.sqrt(2 * p) + math.log(1 / gamma))  # the edge of a semicircle and a tail
        else:
            rough = noise_norm(p, (1.0,) * 12, gamma)  # proved, hence cheap
        target = gradient_target(self.excess_risk, self.problem.regularization)
        return rough * self.lever(norm) / (self.problem.n * target)

    def predicted(self, norm: float, curvature: float) -> float:
        """Return the first level that certifies an optimum of that norm where XᵀX/n has no smaller eigenvalue.

        The module's theorem with a rough β; used to choose, never to promise.
        """
        lam = self.problem.regularization
        rough = self.expected(norm) * gradient_target(self.excess_risk, lam) / self.lever(norm)
        for level in self.levels:
            convexity = lam + max(0.0, curvature - rough / level / (1 - self.split))
            if rough / level * self.lever(norm) <= gradient_target(self.excess_risk, convexity):
                return level
        return self.levels[-1]


def typical_norm(problem: Problem) -> float:
    """Return a norm of θ* to balance noise for, part of the radius and no more than a constant; any is sound."""
    return min(0.4 * problem.optimum_radius, 2.5)


def best_split(norm: float, shrunk: float) -> float:
    """Return the part of ε that Xᵀy should get for an optimum of that norm."""
    return 1 / (1 + math.cbrt(norm / shrunk) ** 2)


def certified_covariance(sums: Sums, plan: CovariancePlan, account: Account, source: WordSource) -> FloatArray | None:
    """Reveal levels until a certificate meets the target; return θ, or None. The account is charged either way."""
    problem, beta, before = plan.problem, plan.norm(), account.generation
    target = gradient_target(plan.excess_risk, problem.regularization)
    for step in split_path(sums, plan, source):
        level = step.epsilon
        account.generation = add_losses(before, plan.charge(level))
        seen = Seen.of(step.values, plan, level, beta)
        theta = seen.certified(plan, level, account)
        if theta is not None:
            return theta
        if plan.ray:
            scale = 2 / (problem.n * level)  # each part moves by at most 2
            grain = 1 / (SUM_UNIT * problem.n)
            released = Released(
                seen.second, seen.first, scale / (1 - plan.split), scale / plan.split, seen.matrix_noise, grain
            )
            along = best_on_ray(released, problem.regularization, target, plan.ray_probability, source)
            if along is not None:
                account.reasons.append(f"covariance certificate along the first moments at epsilon = {up(level)}")
                return along
    account.reasons.append("covariance certificate: no level sufficed")
    return None


def certify_from(
    revealed: int | None, last: int, kept: KeptLevels, plan: CovariancePlan, account: Account, budget: float
) -> Release:
    """Reveal levels of a kept path until one is certified; the account has what was spent so far, and gets the level.

    ``revealed`` is the last level revealed before, which is looked at again: what it shows is paid for.
    """
    beta, n_levels = plan.norm(), len(plan.levels)
    for t in range(revealed or 0, last + 1):
        charge = plan.charge(plan.levels[t])
        if add_losses(account.probe, account.test, charge) > budget:
            account.reasons.append("covariance certificate: the next level would exceed the budget")
            break
        account.generation, revealed = charge, t
        theta = Seen.of(kept[t], plan, plan.levels[t], beta).certified(plan, plan.levels[t], account)
        if theta is not None:
            return account.released(theta, level=t, n_levels=n_levels)
    else:
        account.reasons.append("covariance certificate: no level sufficed")
    return account.refused(level=revealed, n_levels=n_levels)


def split_path(sums: Sums, plan: CovariancePlan, source: WordSource) -> Iterator[LevelValue]:
    """Draw the two gradual releases, of XᵀX and of Xᵀy; yield their values together, level by level."""
    p = plan.problem.p
    layout = Layout(p)
    packed = layout.pack(sums)
    of_matrix, of_vector = ([level * part for level in plan.levels] for part in (1 - plan.split, plan.split))
    matrices = NoisePath(packed[: layout.size - p], PART_SENSITIVITY, of_matrix, random_state=source)
    vectors = NoisePath(packed[layout.size - p :], PART_SENSITIVITY, of_vector, random_state=source)
    for level, matrix, vector in zip(plan.levels, matrices, vectors, strict=True):
        yield LevelValue(matrix.index, level, np.concatenate([matrix.values, vector.values]))


@dataclass(frozen=True)
class Seen:
    """What a level has revealed, and how much noise is in it; public by then.

    Attributes
    ----------
    second, first
        Noisy XᵀX/n and Xᵀy/n.
    noise, matrix_noise
        β/(nε), and what it makes of XᵀX/n alone.
    split, shrunk
        w and m of the module's theorem.
    """

    second: FloatArray
    first: FloatArray
    noise: float
    split: float
    shrunk: float

    @classmethod
    def of(cls, values: AnyArray, plan: CovariancePlan, level: float, beta: float) -> Seen:
        """Read the values of a level."""
        n, p = plan.problem.n, plan.problem.p
        gram, moment = Layout(p).unpack(values)
        return cls(gram / n, moment / n, beta / (n * level), plan.split, shrink(p, plan.norm_probability))

    @classmethod
    def read(cls, said: Mapping[str, Any]) -> Seen:
        """Read what :attr:`said` says."""
        first = np.asarray(said["first"], dtype=np.float64)
        second = np.zeros((len(first), len(first)))
        second[np.triu_indices(len(first))] = said["second"]
        second += np.triu(second, 1).T
        return cls(second, first, said["noise"], said["split"], said["shrunk"])

    @property
    def said(self) -> dict[str, Any]:
        """All of it in plain values; of the symmetric matrix the upper triangle, row by row."""
        upper = self.second[np.triu_indices(len(self.first))]
        return {
            "second": upper.tolist(),
            "first": self.first.tolist(),
            "noise": self.noise,
            "split": self.split,
            "shrunk": self.shrunk,
        }

    def of_columns(self, places: Sequence[int]) -> Seen:
        """Return what was revealed about some of the columns.

        The bound on the noise holds for them too: for θ that is zero elsewhere, ‖(Bθ − b)_S‖ ≤ ‖Bθ − b‖.
        """
        chosen = list(places)
        return replace(self, second=self.second[np.ix_(chosen, chosen)], first=self.first[chosen])

    @property
    def matrix_noise(self) -> float:
        """The largest norm of the noise on XᵀX/n."""
        return self.noise / (1 - self.split)

    def lever(self, norm: float) -> float:
        """Return h(‖θ‖)."""
        return math.hypot(norm / (1 - self.split), self.shrunk / self.split)

    def best(self, lam: float) -> tuple[FloatArray, float]:
        """Return the θ with the smallest certificate, and the certificate."""
        return best_certified(self.second, self.first, lam, self.noise, self.lever, self.matrix_noise)

    def certified(self, plan: CovariancePlan, level: float, account: Account) -> FloatArray | None:
        """Return θ if its certificate meets the target, and say so to the account."""
        theta, certificate = self.best(plan.problem.regularization)
        account.public = {"statistics": self.said} if plan.keep_statistics else {}
        if certificate > plan.excess_risk:
            return None
        account.reasons.append(f"covariance certificate {up(certificate, 3)} at epsilon = {up(level)}")
        return theta


def best_certified(
    second: FloatArray,
    first: FloatArray,
    lam: float,
    noise: float,
    lever: Callable[[float], float],
    matrix_noise: float,
) -> tuple[FloatArray, float]:
    """Return the candidate with the smallest certificate, and the certificate: noise is at most ``noise·lever(‖θ‖)``.

    *Lemma.* With Ĥ = Z/n + λI and ĝ = Ĥθ − z/n, the smallest ‖ĝ‖ + noise·h(‖θ‖) is attained at θ = 0 or at
    θ = (Ĥ² + μI)⁻¹Ĥz/n for some μ ≥ 0. *Proof.* Both terms are convex in θ. Where ĝ ≠ 0 and θ ≠ 0, the gradient
    Ĥĝ/‖ĝ‖ + noise·h′(‖θ‖)θ/‖θ‖ is zero only if Ĥ(Ĥθ − z/n) + μθ = 0 with μ = noise·h′(‖θ‖)‖ĝ‖/‖θ‖ ≥ 0; ĝ = 0 is the
    case μ = 0. ∎ Candidates are θ = 0 and points of that curve, for a grid of μ. Any θ is sound: the certificate is
    evaluated for the one returned.
    """
    values, vectors = np.linalg.eigh(second)
    rotated = (vectors.T @ first)[:, None]
    bent = (values + lam)[:, None]
    candidates = bent * rotated / np.maximum(bent**2 + lam**2 * _DAMPINGS, 1e-300)
    candidates = np.column_stack([candidates, np.zeros(len(values))])
    lengths = np.linalg.norm(candidates, axis=0)
    levers = np.array([lever(length) for length in lengths.tolist()])
    bounds = np.linalg.norm(bent * candidates - rotated, axis=0) + noise * levers
    theta = vectors @ candidates[:, int(np.argmin(bounds))]
    # evaluated afresh for the θ that leaves, so that rounding in the eigenbasis does not matter
    gradient = second @ theta + lam * theta - first
    length = float(np.linalg.norm(theta))
    norm = float(np.linalg.norm(gradient)) + noise * lever(length)
    # rounding of the products: |second| has Frobenius norm below, hence γ_{2p}·(‖second‖_F + λ)‖θ‖ and the like
    size = (float(np.linalg.norm(second)) + lam) * length + float(np.linalg.norm(first))
    rounding = (4 * len(theta) + 32) * 2.0**-52 * size
    convexity = curvature(second, float(values[0]), lam, matrix_noise)
    return np.asarray(theta), (norm * (1 + 1e-9) + rounding) ** 2 / (2 * convexity)


def curvature(second: FloatArray, lowest: float, lam: float, matrix_noise: float) -> float:
    """Return μ: L is μ-strongly convex where the noise on XᵀX/n has at most that norm; from its lowest eigenvalue.

    A computed eigenvalue is off by no more than rounding relative to the largest.
    """
    rounding = (4 * len(second) + 32) * 2.0**-52 * float(np.linalg.norm(second))
    return lam + max(0.0, lowest - matrix_noise * (1 + 1e-9) - rounding) * (1 - 1e-9)
