"""One shot at one ε: what a utility theorem asks for, or what the caller says. Nothing is searched."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

from expost.exceptions import TargetUnreachable
from expost.goals.excess_risk import ExcessRisk
from expost.goals.goal import ABOUT_RISK
from expost.mechanisms.mechanism import Generator
from expost.noise.source import WordSource
from expost.privacy.account import Account
from expost.privacy.composition import add_losses
from expost.privacy.release import Promise, Release
from expost.rounding import down, up
from expost.search.request import Method, Request


@dataclass(frozen=True)
class SingleShot:
    """One hypothesis at one ε.

    ``rescaled`` moves it into the ball; a utility theorem is about it as it is.
    """

    epsilon: float
    rescaled: bool

    @property
    def worst_case(self) -> float:
        """What it costs."""
        return self.epsilon

    def search(self, generator: Generator, account: Account, source: WordSource) -> Release:
        """Draw it."""
        (step,) = generator.path((self.epsilon,), source)
        account.generation = add_losses(account.generation, self.epsilon)
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
            larger = dataclasses.replace(problem, n=4 * problem.n)
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
        assert isinstance(request.goal, ExcessRisk)
        alpha = request.goal.at_most
        against = request.problem.compared_with
        return Promise(f"the expected excess {ABOUT_RISK} is at most {alpha:g}, against {against}", excess_risk=alpha)
