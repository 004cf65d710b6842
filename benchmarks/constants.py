"""Choose the constants of a search on one half of the panel: by the mean and the worst log ratio to the floor.

    EXPOST_DATA=… python benchmarks/constants.py                    what each constant is worth, switched by a factor
    EXPOST_DATA=… python benchmarks/constants.py --choose           go downhill from today's values, one at a time
    EXPOST_DATA=… python benchmarks/constants.py --half report      what today's values come to on the other half

Floors are those of `benchmarks/panel.py`, which has to have been run for peers. Seeds start at 1000; the panel's own
page is made of seeds from 0. What is minimised is the mean of ln(ε/floor) over goals, refusals counted as the cap, plus
a tenth of the largest. Simulation: the noise is seeded, the rows are looked at, and nobody is protected.
"""

from __future__ import annotations

import argparse
import math
import os
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import fields, replace

import numpy as np
from panel import CAP, DELTAS, kept, run_expost, settled, tasks

from expost.mechanisms.descent.gradient_descent import DescentPlan
from expost.mechanisms.objective.chain import ChainPlan
from expost.search import levels, noisy_test
from expost.search.levels import Schedule

WORST = 0.1
IN_SCHEDULES = {field.name for field in fields(Schedule)}
#: Constants by the way they belong to, and the factors that are tried.
CONSTANTS = {
    "pure": ["start", "growth", "fastest", "jump", "test_part", "kept", "reach", "FURTHER", "_SURELY", "_BETTER"],
    "delta": ["start", "growth", "test_part", "kept", "step", "length", "FURTHER", "_SURELY", "_PATIENCE"],
}
FACTORS = (0.5, 0.71, 1.41, 2.0)


@contextmanager
def changed(privacy: str, factors: dict[str, float]) -> Iterator[None]:
    """Multiply constants, for one kind of privacy."""
    kind = {"pure": ChainPlan, "delta": DescentPlan}[privacy]
    usual, before = kind.usual_schedule.__func__, {}

    def schedule(cls, loss, goal=None):
        found = usual(cls, loss, goal)
        given = {name: getattr(found, name) * factor for name, factor in factors.items() if name in IN_SCHEDULES}
        if "kept" in given:
            given["kept"] = min(given["kept"], 0.95)
        found = replace(found, **given)
        return replace(found, fastest=max(found.fastest, found.growth))

    kind.usual_schedule = classmethod(schedule)
    for name in factors.keys() - IN_SCHEDULES:
        module = noisy_test if hasattr(noisy_test, name) else levels
        before[module, name] = getattr(module, name)
        setattr(module, name, before[module, name] * factors[name])
    try:
        yield
    finally:
        kind.usual_schedule = classmethod(usual)
        for (module, name), value in before.items():
            setattr(module, name, value)


def of_task(given: tuple[str, str, dict[str, float], range]) -> dict[str, float]:
    """Return ln(ε/floor) of a task's goals, means over seeds."""
    name, privacy, factors, seeds = given
    found, task = {}, tasks()[name]
    with changed(privacy, factors):
        settled.cache_clear()
        for way in ("50", "80", "95"):
            made = [kept().get(f"{name}|{way}|{kind}|peers") or {} for kind in {"pure", privacy}]
            floor = min((part["floor"] for part in made if part.get("floor")), default=math.inf)
            if floor == math.inf:
                continue
            runs = [run_expost(task, task.goal(way), DELTAS[privacy], seed) for seed in seeds]
            paid = [run["epsilon"] if run["status"] == "released" else CAP for run in runs]
            found[f"{name} {way} %"] = float(np.mean(np.log(paid))) - math.log(floor)
    return found


def ratios(
    pool: ProcessPoolExecutor, half: str, privacy: str, factors: dict[str, float], seeds: int
) -> dict[str, float]:
    """Return them for all goals of a half."""
    names = [task.name for task in tasks().values() if task.half == half]
    parts = pool.map(of_task, [(name, privacy, factors, range(1000, 1000 + seeds)) for name in names])
    return {goal: ratio for part in parts for goal, ratio in part.items()}


def judged(found: dict[str, float]) -> float:
    """Return what is minimised."""
    return float(np.mean(list(found.values()))) + WORST * max(found.values())


def said(found: dict[str, float]) -> str:
    """Return mean and worst ratios for people."""
    worst = max(found, key=found.__getitem__)
    mean = math.exp(float(np.mean(list(found.values()))))
    return f"{mean:.3f}, worst {math.exp(found[worst]):.2f} ({worst}); {judged(found):.4f}"


def main() -> None:
    """Look at each constant, or choose."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--choose", action="store_true")
    parser.add_argument("--half", choices=("tune", "report"), default="tune")
    parser.add_argument("--privacy", choices=tuple(DELTAS), default="pure")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--only", nargs="*", default=None, help="constants")
    parser.add_argument("--set", nargs="*", default=[], help="NAME=FACTOR")
    options = parser.parse_args()
    given = {name: float(factor) for name, factor in (part.split("=") for part in options.set)}
    start = time.monotonic()
    with ProcessPoolExecutor(options.jobs) as pool:
        best = ratios(pool, options.half, options.privacy, given, options.seeds)
        print(f"{given or 'as they are'}: {said(best)}", flush=True)
        for name in CONSTANTS[options.privacy] if options.only is None else options.only:
            for factor in FACTORS:
                tried = {**given, name: given.get(name, 1.0) * factor}
                found = ratios(pool, options.half, options.privacy, tried, options.seeds)
                print(f"{time.monotonic() - start:.0f} s: {name} × {tried[name]:.2f}: {said(found)}", flush=True)
                if options.choose and judged(found) < judged(best):
                    best, given = found, tried
        if options.choose:
            print(f"chosen: {given}: {said(best)}")
    for goal, ratio in best.items():
        print(f"  {goal}: {math.exp(ratio):.2f}")


if __name__ == "__main__":
    main()
