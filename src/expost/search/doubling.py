"""The doubling method (theory A6): run a black box at ε, test, and start again with twice the ε.

*Released*: every hypothesis tried, and whether each passed. *Neighbours*: one row replaced. *Sensitivity*: the
error query's. *Theorem*: round i costs its ε_i (the black box's claim) plus the test's 2Δ·ln(T/γ)/α; rounds add up,
so stopping at round k costs k tests and ε₁(f^k − 1)/(f − 1) for a factor f. With the test noise as chosen, a wrong
accept needs one of T one-sided Laplace tails beyond α/2, which has probability at most γ/2; ``published`` and ``tight``
use up that half, with ln(T/(2γ)).

*Why f = 2.* If an ε just above ε₁f^{k−2} is needed, the rounds go on to k, and their hypotheses cost up to f²/(f − 1)
times that ε, which is smallest, 4, at f = 2.

The error tested may be the excess risk or any other :class:`~expost.search.Measure`: a gradient (theory B12) needs no
optimum and no radius. Hypotheses are then projected only to bound the worst case.

Beside it, without any search, *one shot* at one ε: what a utility theorem asks for, or what the caller says.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Literal

from expost import validation
from expost.account import Ledger, add_losses
from expost.account.account import Account, Spending, current, released, unspent
from expost.exceptions import TargetUnreachable, too_dear
from expost.goals.goal import ABOUT_RISK
from expost.goals.measure import Measure, charged_grid, check_sensitivity
from expost.mechanisms.mechanism import Generator
from expost.noise import WordSource, discrete_laplace, resolve_source
from expost.release.release import Promise, Release
from expost.search.gradual import MADE_CLAIM, TESTED_CLAIM
from expost.search.noisy_test import OneTest
from expost.search.request import Method, Request
from expost.shown import down, up
from expost.solve.ball import into_ball

CALLER_CLAIM = "the black box is ε-private at every ε it was called with, in the neighbouring relation stated here"
EXACT_CLAIM = "the noise of the black box has exactly its stated law"


def doubling_rounds(first: float, last: float, factor: float = 2.0) -> int:
    """Return how many rounds reach ``last`` from ``first``: T = ⌈log_factor(last/first)⌉ (theory A6)."""
    if not factor > 1:
        raise ValueError(f"factor must exceed 1, got {factor}")
    if not 0 < first < math.inf or not 0 < last < math.inf:
        raise ValueError("first and last must be positive and finite")
    # log(2²⁹)/log 2 comes out as 29.000000000000004, which is 29 rounds and not 30
    return max(1, math.ceil(math.log(last / first) / math.log(factor) - 1e-12))


@dataclass(frozen=True)
class DoublingPlan:
    """Rounds and test budget of a doubling search; public.

    Attributes
    ----------
    test
        The question asked after each round.
    sensitivity
        The largest sensitivity a hypothesis may have, rounding charged.
    first, factor, rounds
        ε of the first round, the step between rounds, and how many.
    epsilon_test
        What a test costs at most.

    Examples
    --------
    >>> plan = DoublingPlan.of(target=0.05, failure_probability=0.1, sensitivity=0.0023, first=1e-5, last=70.8)
    >>> plan.rounds, round(plan.epsilon_test, 3)
    (23, 0.5)
    """

    test: OneTest
    sensitivity: float
    first: float
    factor: float
    rounds: int
    epsilon_test: float

    @classmethod
    def of(
        cls,
        *,
        target: float,
        failure_probability: float,
        sensitivity: float,
        first: float,
        last: float,
        factor: float = 2.0,
        calibration: str = "theorem",
        max_epsilon: float | None = None,
    ) -> DoublingPlan:
        """Settle T and the test's ε; with ``max_epsilon``, T is cut so that no outcome costs more."""
        validation.positive("the target", target)
        validation.share("failure_probability", failure_probability)
        # one tail suffices: ln(T/2γ); the theorem as it stands has ln(T/γ)
        tails = 1 if validation.calibration(calibration) == "theorem" else 2
        for rounds in range(doubling_rounds(first, last, factor), 0, -1):
            each = min(tails * failure_probability / rounds, 1 / math.e) / 2
            scale = math.log(max(rounds / (tails * failure_probability), math.e))
            test = OneTest(target, each, 0.5)
            plan = cls(test, sensitivity, first, factor, rounds, 2 * sensitivity * scale / target)
            if max_epsilon is None or plan.epsilon_after(rounds) <= max_epsilon:
                return plan
        raise TargetUnreachable(
            f"a single round of doubling would already cost more than max_epsilon = {down(max_epsilon or math.inf)}; "
            f"pass a larger excess_risk or max_epsilon, or more rows. Nothing was spent."
        )

    @property
    def worst_case(self) -> float:
        """No outcome costs more, however the cost of a test is rounded."""
        dearest = max(self.epsilon_test, self.test.epsilon(self.sensitivity))
        return add_losses(self.generation_after(self.rounds), add_losses(*([dearest] * self.rounds)))

    def level(self, index: int) -> float:
        """Return the ε of round ``index`` (from 0)."""
        return self.first * self.factor**index

    def generation_after(self, rounds: int) -> float:
        """Return what the hypotheses of that many rounds cost."""
        return add_losses(*(self.level(i) for i in range(rounds)))

    def tests_after(self, rounds: int) -> float:
        """Return what the tests of that many rounds cost at most."""
        return add_losses(*(self.epsilon_test for _ in range(rounds)))

    def epsilon_after(self, rounds: int) -> float:
        """Return the total cost of stopping after that many rounds."""
        return add_losses(self.generation_after(rounds), self.tests_after(rounds))


@unspent()
def doubling_search(
    mechanism: Callable[[float], Any],
    measure: Measure,
    plan: DoublingPlan,
    *,
    project: Callable[[Any], Any] | None = None,
    noise: Literal["exact", "over the reals"] = "over the reals",
    random_state: int | WordSource | None = None,
    ledger: Ledger | None = None,
) -> Release:
    """Search by doubling ε around any private mechanism.

    Parameters
    ----------
    mechanism
        ``epsilon -> hypothesis``. That it is ε-private is the caller's claim, and the release records it as such.
    measure
        The error to be tested; must have its stated sensitivity for every projected hypothesis.
    plan
        From :meth:`DoublingPlan.of`, made with the largest sensitivity of the measure.
    project
        Applied to each hypothesis before it is tested, for instance into the ball the sensitivity was computed for.
    noise
        Whether the mechanism's noise has exactly its stated law or is analysed over the reals, as that of most
        libraries is. The caller's claim as well.
    random_state
        Source of the test noise; ``None`` is secure.
    ledger : Ledger, optional
        Holds the worst case before the first round, and is charged what the search cost.

    Raises
    ------
    AccuracyNotReached
        When no round passes; carries the refusal and its cost.

    Examples
    --------
    >>> import numpy as np
    >>> from expost.noise import SeededSource, discrete_laplace
    >>> from expost.search import ErrorMeasure
    >>> noise = SeededSource(4)
    >>> def private_count(epsilon):
    ...     return 5000 + int(discrete_laplace(epsilon, 1, 1, random_state=noise)[0])
    >>> measure = ErrorMeasure(lambda count: abs(count - 5000.0), sensitivity=1.0)
    >>> plan = DoublingPlan.of(
    ...     target=100.0,
    ...     failure_probability=0.1,
    ...     sensitivity=measure.effective_sensitivity,
    ...     first=0.001,
    ...     last=1.0,
    ... )
    >>> doubling_search(private_count, measure, plan, random_state=noise).status
    'released'
    """
    current(0.0)  # a search of this kind books no curve, so a shared budget could not count it
    source = resolve_source(random_state)
    if measure.uniform is not None:
        check_sensitivity(plan.sensitivity, measure.uniform)

    def work(spending: Spending) -> Release:
        account = Account("doubling", plan.worst_case, source.secure)
        made, law = () if project is None else (MADE_CLAIM,), (EXACT_CLAIM,) if noise == "exact" else ()
        claims = (CALLER_CLAIM, TESTED_CLAIM, *made, *law, *validation.source_claims(source))
        said: dict[str, Any] = {"claims": claims, "noise": noise}
        spending.begin(account.interrupted().with_details(**said))
        return released(spending.end(doubled(mechanism, measure, plan, project, account, source, **said)))

    return Spending(ledger).guard(work)


def doubled(
    mechanism: Callable[[float], Any],
    measure: Measure,
    plan: DoublingPlan,
    project: Callable[[Any], Any] | None,
    account: Account,
    source: WordSource,
    **details: Any,
) -> Release:
    """Take the rounds, booking each, and return the release or the refusal."""
    grid = measure.uniform
    noise: list[int] = []
    if grid is not None:
        drawn = discrete_laplace(plan.epsilon_test, grid.units, plan.rounds, random_state=source)
        noise = [int(value) for value in drawn]
    generation, test, costs = account.generation, account.test, []
    for index in range(plan.rounds):
        hypothesis = mechanism(plan.level(index))
        if project is not None:
            hypothesis = project(hypothesis)
        # added up as the worst case is, so that it is not exceeded by a rounding
        account.generation = add_losses(generation, plan.generation_after(index + 1))
        if grid is not None:
            accepted, cost = plan.test.passes(measure, hypothesis, noise[index], grid), plan.epsilon_test
        else:
            check_sensitivity(plan.sensitivity, measure.fine_grid(hypothesis))  # dearer than was settled: not asked
            accepted, cost = plan.test.ask(measure, hypothesis, source)
        costs.append(cost)
        account.test = add_losses(test, add_losses(*costs))
        if accepted:
            return account.released(hypothesis, level=index, n_levels=plan.rounds, **details)
    return account.refused(n_levels=plan.rounds, **details)


@dataclass(frozen=True)
class MechanismDoubling:
    """Doubling around one of the library's own mechanisms."""

    request: Request
    rounds: DoublingPlan

    gradual: ClassVar[bool] = True

    @property
    def worst_case(self) -> float:
        """No outcome costs more."""
        return self.rounds.worst_case

    def search(self, generator: Generator, account: Account, source: WordSource) -> Release:
        """Take the rounds."""
        mechanism = generator.mechanism
        return doubled(
            lambda epsilon: mechanism.single(generator, epsilon, source),
            generator.excess_risk(),
            self.rounds,
            lambda theta: into_ball(theta, generator.problem.radius),
            account,
            source,
            noise=mechanism.noise_kind,
            calibration=self.request.calibration,
        )


class Doubling(Method):
    """Fresh noise at ε, 2ε, 4ε, …, each tested."""

    name = "doubling"

    def settle(self, request: Request, excess_risk: float) -> MechanismDoubling:
        """Settle rounds and test, or say that not even one round fits the budget."""
        problem, budget = request.problem, request.max_epsilon
        charged = charged_grid(problem.risk_sensitivity, request.errors.excess_error_bound(problem.radius))
        first = 1 / problem.n
        last = 4 * request.mechanism.theory_epsilon(problem, excess_risk)
        settle = partial(
            DoublingPlan.of,
            target=excess_risk,
            failure_probability=request.failure_probability,
            sensitivity=charged.effective_sensitivity,
            first=first,
            factor=request.factor,
            calibration=request.calibration,
        )
        if budget is not None:
            least = settle(last=first).epsilon_after(1)
            if least > budget:  # the first level and the test both shrink as 1/n
                remedy = "a larger excess_risk or max_epsilon, a smaller radius"
                raise too_dear("one round of doubling", least, problem.n, budget, remedy)
        return MechanismDoubling(request, settle(last=last, max_epsilon=budget))


@dataclass(frozen=True)
class SingleShot:
    """One hypothesis at one ε, which is its worst case as well.

    ``rescaled`` moves it into the ball; a utility theorem is about it as it is.
    """

    worst_case: float
    rescaled: bool

    gradual: ClassVar[bool] = True

    def search(self, generator: Generator, account: Account, source: WordSource) -> Release:
        """Draw it."""
        (step,) = generator.path((self.worst_case,), source)
        account.generation = add_losses(account.generation, self.worst_case)
        hypothesis = generator.hypothesis(step.values) if self.rescaled else generator.unrescaled(step.values)
        return account.released(hypothesis, level=0, n_levels=1, noise=generator.mechanism.noise_kind)


class Fixed(Method):
    """One shot at ``max_epsilon``; no accuracy is promised."""

    name = "fixed"

    def check(self, request: Request) -> None:
        """Ask for the ε."""
        if request.max_epsilon is None:
            raise ValueError("method='fixed' spends exactly max_epsilon; pass it")

    def settle(self, request: Request, excess_risk: float) -> SingleShot:
        """Spend the budget."""
        return SingleShot(request.budget, rescaled=True)

    def promise(self, request: Request, reduced: Promise | None) -> Promise:
        """Promise nothing."""
        return Promise("no accuracy is promised")


class Theory(Method):
    """One shot at the ε at which a utility theorem promises *expected* excess risk α (theory A7).

    What an analyst would do without a search.
    """

    name = "theory"

    def settle(self, request: Request, excess_risk: float) -> SingleShot:
        """Invert the mechanism's theorem, or say that it asks for more than the budget."""
        problem, budget = request.problem, request.max_epsilon
        epsilon = request.mechanism.shot_epsilon(problem, excess_risk)
        if budget is not None and epsilon > budget:
            # ε shrinks as 1/n, or as 1/√n with the paper's sensitivity of the ridge minimiser: measure which
            larger = replace(problem, n=4 * problem.n)
            shrink = epsilon / request.mechanism.shot_epsilon(larger, excess_risk)
            rows = math.ceil(problem.n * (epsilon / budget) ** (math.log(4) / math.log(shrink)) * (1 + 1e-9))
            raise TargetUnreachable(
                f"the utility theorem needs epsilon = {up(epsilon)} at n = {problem.n}, more than max_epsilon = "
                f"{down(budget)}; pass a larger excess_risk or max_epsilon, about {rows:,} rows, or another method. "
                f"Nothing was spent."
            )
        # the theorem is about θ* + b; rescaling moves it closer to θ*, which need not lower its risk
        return SingleShot(float(epsilon), rescaled=False)

    def promise(self, request: Request, reduced: Promise | None) -> Promise:
        """Promise an expectation."""
        assert request.goal is not None
        alpha = request.goal.number
        against = request.problem.compared_with
        return Promise(
            f"the expected excess {ABOUT_RISK} is at most {up(alpha, 6)}, against {against}", excess_risk=alpha
        )
