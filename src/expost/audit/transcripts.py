"""Runs that are recorded on one data set and replayed on its neighbour: the loss of what came out, with no statistics.

A search is carried out on D, by the functions that `fit` calls, and everything that it lets out is written down: values
along paths, noisy numbers, models, answers of tests. Then the same search is carried out on D′, and wherever something
is let out, what was written down comes out again: the draw is the one that would have been needed, the released value
less the private one of D′. As the same comes out every time, the search has to go the same way and to end in the same
release; whatever else differs was let out without being charged for (`Found.differs`).

*The loss.* Step after step is a release whose law, given what was released before, is known: the log ratio of its
densities at what came out is computed from both private values, and their sum is the loss of the whole transcript. It
must not exceed the ε that the release states, for any transcript and neighbours. No probability is estimated, so one
transcript beyond its ε refutes the claim.

| what comes out | its law, as the module that draws it states it |
|---|---|
| a path up to the last level looked at, then or later | the value at that level: discrete Laplace, or spherical |
| a number, or numbers, with noise | discrete Laplace or Gaussian at the rate that the sampler was asked for |
| the answers of above threshold | summed over the noise of the threshold, in cells, to the safe side |
| the choice of a cut-off | summed over the noise of the chosen score |
| a model of a perturbed objective | the density of b = −G(θ), times the determinant of its derivative, at θ |
| steps of a descent | discrete Gaussian |

Where rows or persons are held out, drawn at random and in secret, D and D′ are coupled as in the proof (`expost.search.
new_rows`): the newcomer is on the side of the one that is replaced, which is as likely. Given that, the loss of a
transcript is at most what the release states where all is pure, and so is that of the mixture over draws. In small
tables that mixture itself is computed, set by set (`expost.audit.searches.mixed`).

That samplers and paths have these laws is for the other attacks to refute (`expost.audit.counting`,
`expost.audit.exhaustive`). The released model of a perturbed objective has a little more noise, which covers its
solver; what is bounded is the loss of a model without it, at the very point that was released, which the proof bounds
at every point.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray

import expost.goals.labels_and_base_rate as counts_module
import expost.goals.yardstick as yardstick_module
import expost.mechanisms.descent.gradient_descent as descent_module
import expost.mechanisms.moments.covariance as covariance_module
import expost.mechanisms.moments.gaussian_moments as moments_module
import expost.mechanisms.output as output_module
import expost.release.evaluation_count as histogram_module
import expost.search.above_threshold as threshold_module
import expost.search.doubling as doubling_module
import expost.search.new_rows as new_rows_module
import expost.search.noisy_test as noisy_test_module
import expost.search.request as request_module
from expost.audit.tape import Draws, Step, Tape, gaussian_step, log_law
from expost.mechanisms.descent.clipping import SLOPE_ONE, ClippedGradients
from expost.mechanisms.objective.gaussian_objective import GaussianShot
from expost.mechanisms.objective.perturbation import PerturbedMinimum
from expost.noise.laplace import KeptLevels, LevelValue, NoisePath, check_levels, narrowed
from expost.noise.source import SeededSource, exactly, resolve_source
from expost.noise.spherical import SphericalPath
from expost.numeric import Grid
from expost.passes.dask import as_engine
from expost.solve.perturbed import PerturbedObjective
from expost.table.rows import ONE
from expost.validation import source_claims

_ORDERS: dict[str, Any] = {"box": np.inf, "l1": 1, "l2": 2}


class _Looked:
    """A level of a path, which notes that its values were looked at."""

    def __init__(self, level: LevelValue, output: dict[str, Any], tape: Tape) -> None:
        self.index, self.epsilon, self._values = level.index, level.epsilon, level.values
        self._output, self._tape = output, tape

    @property
    def values(self) -> Any:
        """Return them."""
        self._tape.look(self._output, self.index)
        return self._values


def _path_patches(tape: Tape, kind: str, owner: Any) -> list[tuple[Any, str, Any]]:
    begin, iterate = owner.__init__, owner.__iter__

    def init(self: Any, values: Any, sensitivity: Any, levels: Any, *, random_state: Any = None) -> None:
        step = tape.next(kind, (check_levels(levels), sensitivity))
        self._audited = step
        if tape.replaying:
            source = resolve_source(random_state)
            self.levels, self.sensitivity, self.size = check_levels(levels), sensitivity, len(values)
            self.secure, self.claims = source.secure, source_claims(source)
            tape.paths.append((step, np.array(values)))
            return
        begin(self, values, sensitivity, levels, random_state=random_state)
        step.held, step.output = np.array(values), {"last": None, "again": None, "values": []}

    def levels_of(self: Any) -> Iterator[Any]:
        output = self._audited.output
        if tape.replaying:
            for index, value in enumerate(output["values"]):
                yield _Looked(LevelValue(index, self.levels[index], value.copy()), output, tape)
            if len(output["values"]) < len(self.levels):
                raise tape.stray("a further level of a path")
            return
        for level in iterate(self):
            output["values"].append(level.values)
            yield _Looked(level, output, tape)

    return [(owner, "__init__", init), (owner, "__iter__", levels_of)]


def _kept_patches(tape: Tape) -> list[tuple[Any, str, Any]]:
    """Note which levels of a path that is kept are looked at, then or later; what is kept is sealed."""
    keep, read = KeptLevels.of, KeptLevels.__getitem__

    def of(cls: type[KeptLevels], steps: Any, first: int = 0) -> KeptLevels:
        tape.keeping = []
        try:
            return keep(steps, first)
        finally:
            tape.kept, tape.keeping = tape.keeping, None

    def opened(self: KeptLevels, level: int) -> Any:
        for output in tape.kept:
            tape.look(output, level)
        return read(self, level)

    return [(KeptLevels, "of", classmethod(of)), (KeptLevels, "__getitem__", opened)]


def _numbers(
    tape: Tape, module: Any, owner: Any, name: str, private: Callable[..., list[int]]
) -> list[tuple[Any, str, Any]]:
    """Note what a function releases that adds noise to integers: ``private`` says which, given its arguments."""
    honest = getattr(owner, name)
    samplers = {
        each: Draws(getattr(module, each), each == "discrete_gaussian")
        for each in ("discrete_laplace", "discrete_gaussian")
        if hasattr(module, each)
    }

    def asked(*given: Any, **named: Any) -> Any:
        values = private(*given, **named)
        step = tape.next("noisy number", name)
        for draws in samplers.values():
            draws.wanted = None
            if tape.replaying:  # the released value less the private one of this data set
                was, noise = step.held[1], step.held[2]
                draws.wanted = [int(k) + a - b for k, a, b in zip(noise, was, values, strict=True)]
        kept = {each: getattr(module, each) for each in samplers}
        try:
            for each, draws in samplers.items():
                setattr(module, each, draws)
            output = honest(*given, **named)
        finally:
            for each, sampler in kept.items():
                setattr(module, each, sampler)
        (draws,) = (each for each in samplers.values() if each.made)
        scale, noise = draws.take()
        if not tape.replaying:
            step.output, step.held = _plain(output), (scale, values, noise)
            return output
        if _plain(output) != step.output or scale != step.held[0]:
            raise tape.stray(f"another answer of {name}")
        apart = np.array([a - b for a, b in zip(step.held[1], values, strict=True)], dtype=object)
        moved = float(-log_law(scale, apart)) if draws.gaussian else None
        tape.add(float(log_law(scale, step.held[2]) - log_law(scale, noise)), moved)
        return output

    return [(owner, name, asked)]


def _plain(output: Any) -> Any:
    return repr(output)


def _floors(value: Any, truth: float, *_: Any) -> list[int]:
    return [math.floor(truth / value.grid.unit)]


def _several(values: list[float], *, sensitivity: float, error_bound: float, **_: Any) -> list[int]:
    unit = Grid.of(sensitivity, error_bound=len(values) * error_bound).unit
    return [math.floor(value / unit) for value in values]


def _question(_: Any, measure: Any, hypothesis: Any, *__: Any) -> list[int]:
    unit = measure.fine_grid(hypothesis).unit
    return [math.ceil((measure.value(hypothesis) + measure.error_bound(hypothesis)) / unit)]


def _mean(law: Any, mean: float, *_: Any) -> list[int]:
    return [round(mean * law.m) if law.counts else math.floor(mean / law.grid.unit)]


def _sides_patches(tape: Tape) -> list[tuple[Any, str, Any]]:
    """Let a newcomer be on the side of the one that is replaced, as tables have both in the same place; or as told."""
    honest = new_rows_module.drawn

    def drawn(n: int, m: int, source: Any) -> NDArray[np.bool_]:
        step = tape.next("draw of who is held out", (n, m))
        if not tape.replaying:
            step.held = honest(n, m, source)
        return np.array(step.held if tape.sides is None else tape.sides)

    return [(new_rows_module, "drawn", drawn)]


def _trace(sums: Any, *_: Any) -> list[int]:
    return [sum(int(value) for value in sums.gram.diagonal())]


# --- above threshold --------------------------------------------------------------------------------------------------

_CELLS = 20_000


def _tail(kind: str, rate: float, at: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return P(noise ≥ k) for integers k."""
    if kind == "exponential":
        return np.asarray(np.exp(-rate * np.maximum(at, 0.0)))
    beyond = np.exp(-rate * np.abs(at)) / (1.0 + math.exp(-rate))
    return np.asarray(np.where(at > 0, beyond, 1.0 - beyond * math.exp(-rate)))


def answers_between(kind: str, rates: tuple[float, float], apart: list[int], accepted: bool) -> tuple[float, float]:
    """Return bounds on the probability of the answers of above threshold: no to all but the last, if that is accepted.

    ``apart`` is by how much each value exceeds its limit without noise; a test says yes where its noise is at least
    that and the threshold's, which is one-sided or symmetric.

    Examples
    --------
    >>> low, high = answers_between("exponential", (1e-3, 1e-3), [0], True)  # P(ν ≥ ρ) is a half
    >>> round(low, 2), round(high, 2)
    (0.5, 0.5)
    """
    first, each = rates
    ends = np.unique(np.rint(np.linspace(0.0, 45.0, _CELLS) ** 1.0 / first))
    above = np.append(_tail("exponential", first, ends), 0.0)
    masses = above[:-1] - above[1:]
    if kind == "laplace":  # sizes with a sign; zero comes up once
        whole = math.tanh(0.5 * first)
        sizes = _tail("laplace", first, np.append(ends, np.inf))
        side = sizes[:-1] - sizes[1:]
        side[0] -= whole if ends[0] == 0 else 0.0
        starts, masses = (
            np.concatenate([-np.append(ends[1:], np.inf)[::-1] + 1, [0.0], ends]),
            np.concatenate([side[::-1], [whole], side]),
        )
        lasts = np.concatenate([-ends[::-1], [0.0], np.append(ends[1:] - 1, np.inf)])
        starts[0] = -math.inf
    else:
        starts, lasts = ends, np.append(ends[1:] - 1, np.inf)
    low, high = np.ones_like(masses), np.ones_like(masses)
    for place, excess in enumerate(apart):
        early, late = _tail(kind, each, excess + starts), _tail(kind, each, excess + lasts)
        if accepted and place == len(apart) - 1:
            low, high = low * late, high * early
        else:
            low, high = low * (1.0 - early), high * (1.0 - late)
    return float(masses @ low), float(masses @ high)


def _threshold_patches(tape: Tape) -> list[tuple[Any, str, Any]]:
    owner = threshold_module.AboveThreshold
    begin, accepts = owner.__init__, owner.accepts
    drawn = [Draws(vars(threshold_module)[name], False) for name in ("geometric", "discrete_laplace")]

    def init(self: Any, measure: Any, calibration: Any, *given: Any, **named: Any) -> None:
        for draws in drawn:
            draws.made.clear()
        begin(self, measure, calibration, *given, **named)
        (made,) = (draws.made for draws in drawn if draws.made)
        (first, threshold), (each, queries) = made
        sign = -1 if calibration.kind == "exponential" else 1
        self._audited_margin = sign * int(threshold[0]) + int(queries[0]) - self._offsets[0]
        rates = tuple(float(exactly(epsilon) / int(units)) for epsilon, units in (first, each))
        self._audited = tape.next("answers of above threshold", (calibration.kind, rates))
        if not tape.replaying:
            self._audited.output, self._audited.held = [], []
        self._audited_again = []
        tape_answers.append((self._audited, self._audited_again))

    tape_answers: list[tuple[Step, list[int]]] = []

    def accepted(self: Any, hypothesis: Any) -> bool:
        measure, step = self._measure, self._audited
        unit = measure.grid(hypothesis).unit
        value = math.ceil((measure.value(hypothesis) + measure.error_bound(hypothesis)) / unit)
        apart = value - math.floor(self._aim / unit) + self._audited_margin
        if not tape.replaying:
            step.held.append(apart)
            step.output.append(accepts(self, hypothesis))
            return bool(step.output[-1])
        if self._next >= len(step.output):
            raise tape.stray("a further test of above threshold")
        self._audited_again.append(apart)
        self._next += 1
        self._done = step.output[self._next - 1]
        return bool(self._done)

    def finish() -> None:
        for step, again in tape_answers if tape.replaying else ():
            if len(again) != len(step.output):
                raise tape.stray("another number of tests of above threshold")
            if again:
                kind, rates = step.public
                here = answers_between(kind, rates, step.held, step.output[-1])
                there = answers_between(kind, rates, again, step.output[-1])
                # to the safe side, whichever way the loss goes
                tape.add(max(math.log(here[0] / there[1]), 0.0) + min(math.log(here[1] / there[0]), 0.0))

    tape.finishing.append(finish)
    return [
        (threshold_module, "geometric", drawn[0]),
        (threshold_module, "discrete_laplace", drawn[1]),
        (owner, "__init__", init),
        (owner, "accepts", accepted),
        (owner, "rejects_next_unseen", False),  # spares work by the noise alone; every hypothesis is made here
    ]


def _round_patches(tape: Tape) -> list[tuple[Any, str, Any]]:
    """Note the answers after rounds of doubling, whose noise is drawn before the first."""
    owner, sampler = noisy_test_module.OneTest, Draws(vars(doubling_module)["discrete_laplace"], False)
    honest = owner.passes

    def passes(self: Any, measure: Any, hypothesis: Any, noise: int, grid: Grid) -> bool:
        if not sampler.made:  # a single question, which is noted as a noisy number
            return bool(honest(self, measure, hypothesis, noise, grid))
        (value,) = _question(self, measure, hypothesis)
        scale, step = sampler.made[-1][0], tape.next("answer after a round", grid)
        if not tape.replaying:
            step.output, step.held = honest(self, measure, hypothesis, noise, grid), (value, noise)
            return bool(step.output)
        was, drawn = step.held
        needed = drawn + was - value
        if honest(self, measure, hypothesis, needed, grid) != step.output:
            raise tape.stray("another answer after a round")
        tape.add(float(log_law(scale, np.array([drawn])) - log_law(scale, np.array([needed]))))
        return bool(step.output)

    return [(owner, "passes", passes), (doubling_module, "discrete_laplace", sampler)]


# --- choices and models -----------------------------------------------------------------------------------------------


def log_choice(scores: list[int], rate: float, best: int) -> float:
    """Return the log of the probability that geometric noise of that rate makes a score the best, the first of equals.

    Examples
    --------
    >>> round(math.exp(log_choice([0, 0], math.log(2.0), 0)), 6)  # P(G ≥ G′) at q = ½
    0.666667
    """
    place = np.arange(len(scores))
    ahead = (scores[best] - np.array(scores) + (place > best))[place != best]
    top = max(0, -int(ahead.min(initial=0))) + math.ceil(60.0 / rate)
    size = np.arange(top + 1)
    log = np.log(-math.expm1(-rate)) - rate * size
    for room, others in zip(*np.unique(ahead, return_counts=True), strict=True):  # their noise is below size + room
        with np.errstate(divide="ignore"):
            log = log + others * np.log(-np.expm1(-rate * np.maximum(size + room, 0)))
    return float(np.logaddexp.reduce(log))


def _choice_patches(tape: Tape) -> list[tuple[Any, str, Any]]:
    honest, sampler = counts_module.noisy_best, Draws(vars(counts_module)["geometric"], False)

    def chosen(scores: Any, epsilon: float, sensitivity: int, source: Any) -> int:
        step = tape.next("choice of a cut-off", (epsilon, sensitivity, len(scores)))
        if not tape.replaying:
            step.output = honest(scores, epsilon, sensitivity, source)
            (asked, units), _ = sampler.take()
            rate = float(exactly(asked) / int(units))
            step.held = rate, log_choice(list(scores), rate, step.output)
            return int(step.output)
        tape.add(step.held[1] - log_choice(list(scores), step.held[0], step.output))
        return int(step.output)

    return [(counts_module, "noisy_best", chosen), (counts_module, "geometric", sampler)]


@dataclass(frozen=True)
class Derivatives:
    """Work that adds up gradients and second derivatives of a loss; it travels to where rows are."""

    loss: Any
    theta: NDArray[np.float64]

    def __call__(self, batch: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return those of a batch."""
        x = batch.x.toarray() if hasattr(batch.x, "toarray") else np.asarray(batch.x, dtype=np.float64)
        x, y = x / ONE, batch.y / ONE
        times = np.ones(len(y)) if batch.counts is None else batch.counts * 2.0**batch.shift
        u = x @ self.theta
        slope, bend = times * self.loss.derivative(u, y), times * self.loss.second_derivative(u, y)
        return slope @ x, (x.T * bend) @ x


def log_density(shot: Any, objective: PerturbedObjective, theta: NDArray[np.float64], center: Any) -> float:
    """Return ln of the density of θ̂ at a point, up to a constant that no data set changes."""
    p, source = shot.geometry.columns, objective.passes.source
    gradient, curvature = as_engine(source.engine).total(source, Derivatives(shot.loss, theta))
    b = -(gradient + shot.n * shot.lam * (theta - np.asarray(center)))
    total = float(np.linalg.slogdet(curvature + shot.n * shot.lam * np.eye(p))[1])
    gaussian, place = isinstance(shot, GaussianShot), 0
    each = shot.deviations if gaussian else shot.geometry.weights(shot.epsilon_noise, shot.slope)
    for block, scale in zip(shot.geometry.blocks, each, strict=True):
        own = b[place : place + block.size]
        total -= (
            float(own @ own) / (2 * scale**2) if gaussian else scale * float(np.linalg.norm(own, _ORDERS[block.norm]))
        )
        place += block.size
    return total


def _objective_patches(tape: Tape) -> list[tuple[Any, str, Any]]:
    honest = PerturbedMinimum.draw

    def draw(self: Any, objective: PerturbedObjective, center: Any, source: Any) -> Any:
        step = tape.next("model of a perturbed objective", (repr(self), tuple(np.asarray(center).tolist())))
        if not tape.replaying:
            step.output = honest(self, objective, center, source)
            step.held = log_density(self, objective, step.output, center)
        else:
            loss = step.held - log_density(self, objective, step.output, center)
            tape.add(loss, 0.0 if isinstance(self, GaussianShot) else None)
            if tape.beside is not None:
                with tape.beside():
                    honest(self, objective, center, SeededSource(0))
        return step.output.copy()

    return [(PerturbedMinimum, "draw", draw)]


def _descent_patches(tape: Tape) -> list[tuple[Any, str, Any]]:
    lengths, add, sampler = (
        ClippedGradients.lengths_total,
        descent_module.noisy_sum,
        vars(descent_module)["discrete_gaussian"],
    )
    seen: list[int] = []  # the sum of lengths that waits for its noise
    sigma: list[Any] = []  # what the noise of the steps to come was drawn with

    def length(self: Any, *given: Any) -> int:
        seen.append(lengths(self, *given))
        return seen[-1]

    def drawn(deviation: float, size: int, *, random_state: Any) -> Any:
        if seen and size != 1:  # the noise of steps is drawn while a length still waits for its own
            seen.clear()
            tape.differs = tape.differs or "a length of rows that was measured without noise"
        if not seen:
            sigma[:] = [deviation]
            return (
                np.zeros(size, dtype=np.int64)
                if tape.replaying
                else sampler(deviation, size, random_state=random_state)
            )
        total, step = seen.pop(), tape.next("length of rows", deviation)
        if not tape.replaying:
            noise = sampler(deviation, size, random_state=random_state)
            step.output, step.held = total + int(noise[0]), total
            return noise
        gaussian_step(tape, deviation, [step.output], [step.held], [total])
        return np.array([step.output - total], dtype=object)

    def noisy_sum(total: Any, noise: Any) -> Any:
        own = [int(value) for value in total]
        step = tape.next("noisy sum", sigma[0])
        if not tape.replaying:
            step.output, step.held = add(own, noise), own
        else:
            released = [round(value * ONE * SLOPE_ONE) for value in step.output.tolist()]
            gaussian_step(tape, sigma[0], released, step.held, own)
        return step.output.copy()

    return [
        (ClippedGradients, "lengths_total", length),
        (descent_module, "discrete_gaussian", drawn),
        (descent_module, "noisy_sum", noisy_sum),
    ]


# --- vectors that get their noise in one go ---------------------------------------------------------------------------


def _vector_patches(
    tape: Tape,
    kind: str,
    sampler: tuple[Any, str],
    owner: Any,
    asked: str,
    before: Callable[..., Any] | None = None,
) -> list[tuple[Any, str, Any]]:
    """Note integers that get their noise from a sampler: they are what a function returns or, ``before``, is given."""
    (module, name), waiting = sampler, list[list[int]]()
    draw, honest = vars(module)[name], getattr(owner, asked)

    def noted(*given: Any, **named: Any) -> Any:
        if before is not None:
            waiting[:] = [[int(value) for value in before(*given)]]
            return honest(*given, **named)
        found = honest(*given, **named)
        waiting[:] = [[int(value) for value in found.ravel()]]
        return found

    def drawn(*given: Any, random_state: Any = None) -> Any:
        (own,), scale = waiting, given[:-1]
        step = tape.next(kind, scale)
        if not tape.replaying:
            noise = draw(*given, random_state=random_state)
            step.output, step.held = [a + int(b) for a, b in zip(own, noise, strict=True)], own
            return noise
        was, now = (
            np.array([a - b for a, b in zip(step.output, side, strict=True)], dtype=object) for side in (step.held, own)
        )
        moved = float(-log_law(scale, was - now)) if len(scale) == 1 else None
        tape.add(float(log_law(scale, was) - log_law(scale, now)), moved)
        return narrowed(now)

    return [(owner, asked, noted), (module, name, drawn)]


def _moment_patches(tape: Tape) -> list[tuple[Any, str, Any]]:
    """Note second moments with Gaussian noise, each number with a deviation of its own."""
    owner, sampler = moments_module.MomentGenerator, "discrete_gaussian"
    honest = owner.reveal

    def reveal(self: Any, noise: Any, rho: float, source: Any) -> Any:
        step = tape.next("second moments at a delta", rho)
        if not tape.replaying:
            step.output, step.held = honest(self, noise, rho, source), self._packed
            return step.output.copy()
        sigma_of = mock.patch.object(
            moments_module, sampler, lambda sigma, size, random_state: np.full(size, exactly(sigma))
        )
        with sigma_of:
            sigmas = noise.draw(rho, source)
        for sigma, released, here, there in zip(sigmas, step.output, step.held, self._packed, strict=True):
            gaussian_step(tape, sigma, [released], [here], [there])
        return step.output.copy()

    return [(owner, "reveal", reveal)]


# --- both together ----------------------------------------------------------------------------------------------------


@contextmanager
def taping(tape: Tape) -> Iterator[None]:
    """Write down, or let come out again, whatever is let out inside; for one thread, and no searches of anyone else."""
    patches = [
        *_path_patches(tape, "path", NoisePath),
        *_path_patches(tape, "spherical path", SphericalPath),
        *_kept_patches(tape),
        *_numbers(tape, noisy_test_module, noisy_test_module.NoisyValue, "ask", _floors),
        *_numbers(tape, noisy_test_module, noisy_test_module.OneTest, "ask", _question),
        *_numbers(tape, noisy_test_module, covariance_module, "noisy_values", _several),
        *_numbers(tape, covariance_module, covariance_module, "_worth_trying", _trace),
        *_numbers(tape, output_module, output_module.OutputCertificate, "probe_trace", lambda _, trace, *__: [trace]),
        *_numbers(tape, new_rows_module, new_rows_module.NoisyMean, "ask", _mean),
        *_sides_patches(tape),
        *_threshold_patches(tape),
        *_round_patches(tape),
        *_choice_patches(tape),
        *_objective_patches(tape),
        *_descent_patches(tape),
        *_moment_patches(tape),
        *_vector_patches(
            tape,
            "whether a table fits",
            (request_module, "discrete_laplace"),
            request_module.CheckedPlan,
            "search",
            lambda plan, *_: (plan.labels, min(plan.columns, default=plan.n)),
        ),
        *_vector_patches(
            tape,
            "mean and spread",
            (yardstick_module, "discrete_gaussian"),
            yardstick_module,
            "_averages",
            lambda values, *_: values,
        ),
        *_vector_patches(tape, "histogram", (histogram_module, "discrete_laplace"), histogram_module, "_counts"),
    ]
    kept = [(owner, name, vars(owner)[name]) for owner, name, _ in patches]
    try:
        for owner, name, new in patches:
            setattr(owner, name, new)
        yield
    finally:
        for owner, name, old in kept:
            setattr(owner, name, old)
