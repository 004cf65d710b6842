"""What running time, memory and the number of passes tell of one row, beside what a release tells.

    PYTHONPATH=. python benchmarks/side_channels.py [--seeds 200] [--repeat 60]

Every search is run on a table and on neighbours of it, one row replaced, with the same draws: what then differs is due
to that row. *Told apart*: how often the longer of two runs, one on each table, is the one on the neighbour (or the
shorter, if that is more often): 50 % is guessing, and a single guess is right so often. Times are of the processor, in
turns, without imports; those of a machine with other users on it are noisier, which an observer who repeats averages
out, but a search is run once. Memory is the peak of what Python and NumPy ask for. Simulation: seeds protect nobody.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scale import Counter

from expost import AccuracyFirstModel, ErrorRate, __version__
from expost.exceptions import AccuracyNotReached
from expost.noise import NoisePath, SeededSource, discrete_laplace
from expost.passes import constant_passes
from expost.passes.engine import watching

RESULT = Path(__file__).parent / "results" / "side_channels.md"
N, SETTLED = 3000, 60
SCHEMA = {
    "target": "late",
    "classes": ["no", "yes"],
    "columns": {"age": {"bounds": [18, 90]}, "hours": {"bounds": [0, 80]}},
}
ROWS = [(18.0, 80.0, "no"), (90.0, 80.0, "no"), (18.0, 0.0, "yes"), (90.0, 0.0, "no"), (54.0, 40.0, "yes")]
KINDS: dict[str, dict[str, Any]] = {"pure": {}, "δ = 10⁻⁶": {"delta": 1e-6}}
Table = dict[str, Any]


def tables(n: int = N, kinds: int | None = None) -> Iterator[Table]:
    """Yield a table, of so many kinds of rows, and neighbours of it."""
    rng = np.random.default_rng(1)
    age, hours = rng.uniform(18, 90, n), rng.uniform(0, 80, n)
    late = np.where((age - 54) / 20 + (hours - 40) / 25 + rng.normal(size=n) > 0, "yes", "no")
    place = 0
    if kinds is not None:
        of = rng.permutation(np.arange(n) % kinds)
        age, hours, late, place = age[of], hours[of], late[of], int(np.flatnonzero(of == 0)[0])  # one of several
    for row in (None, *ROWS):
        table = {"age": age.copy(), "hours": hours.copy(), "late": late.copy()}
        if row is not None:
            table["age"][place], table["hours"][place], table["late"][place] = row
        yield table


def fitted(
    table: Table, seed: int, settled: int | None, schema: Any = SCHEMA, goal: float = 0.25, **options: Any
) -> tuple[int, tuple[str, float]]:
    """Return how many passes one search made, and its outcome."""
    model = AccuracyFirstModel(schema, ErrorRate(goal), random_state=seed, **options)
    with watching(counted := Counter()), contextlib.nullcontext() if settled is None else constant_passes(settled):
        try:
            release = model.fit(table).release_
        except AccuracyNotReached as refusal:
            release = refusal.release
    return counted.count, (release.status, release.epsilon)


def passes(seeds: int) -> list[str]:
    """Return how the number of passes depends on one row."""
    lines = [
        "| search | settled | passes | pairs that differ in them | of these with the same ε | more than settled |",
        "|---|---|---|---|---|---|",
    ]
    given = list(tables())
    for kind, options in KINDS.items():
        for settled in (None, SETTLED):
            found = [[fitted(table, seed, settled, **options) for table in given] for seed in range(seeds)]
            pairs = [(first, other) for first, *others in found for other in others]
            apart = [first[1] == other[1] for first, other in pairs if first[0] != other[0]]
            counts = [count for each in found for count, _ in each]
            beyond = "–" if settled is None else f"{sum(count > settled for count in counts)} of {len(counts)}"
            lines.append(
                f"| {kind} | {settled or 'no'} | {min(counts)} to {max(counts)}, median {statistics.median(counts):g} "
                f"| {len(apart)} of {len(pairs)} | {sum(apart)} | {beyond} |"
            )
    return lines


def harder(seeds: int) -> list[str]:
    """Return how many passes searches take of tables with more columns, and for goals near what a model can do."""
    lines = ["| rows × columns | search | error rate | passes |", "|---|---|---|---|"]
    for n, columns in ((3000, 2), (10_000, 10), (20_000, 30)):
        rng = np.random.default_rng(1)
        x, names = rng.uniform(0, 1, (n, columns)), [f"c{j}" for j in range(columns)]
        score = 3 * (x - 0.5) @ rng.normal(size=columns) + rng.normal(size=n) / 2
        table = {**dict(zip(names, x.T, strict=True)), "y": np.where(score > 0, "yes", "no")}
        schema = {"target": "y", "classes": ["no", "yes"], "columns": {name: {"bounds": [0, 1]} for name in names}}
        for kind, options in KINDS.items():
            for goal in (0.3, 0.15, 0.1, 0.05):
                counts = [fitted(table, seed, None, schema, goal, **options)[0] for seed in range(seeds)]
                lines.append(f"| {n:,} × {columns} | {kind} | {goal} | {min(counts)} to {max(counts)} |")
    return lines


def apart(first: Callable[[], object], other: Callable[[], object], repeat: int) -> tuple[float, float, float]:
    """Return the median times of two runs, taken in turns, in ms, and how often a single run gives away which it is."""
    times: tuple[list[float], list[float]] = ([], [])
    for k in range(repeat + 2):
        for place in (0, 1) if k % 2 else (1, 0):
            start = time.process_time()
            (first, other)[place]()
            if k > 1:  # caches are warm
                times[place].append(1e3 * (time.process_time() - start))
    longer = float(np.mean([a < b for a in times[0] for b in times[1]]))
    return statistics.median(times[0]), statistics.median(times[1]), max(longer, 1.0 - longer)


def peak(work: Callable[[], object]) -> int:
    """Return the most memory that was in use, beyond what was before."""
    work()
    tracemalloc.start()
    work()
    found = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return found


def searches(repeat: int) -> list[str]:
    """Return how time and memory of whole searches depend on one row."""
    lines = [
        "| search | passes | ms | ms, neighbour | told apart | peak, KB |",
        "|---|---|---|---|---|---|",
    ]
    few, at_the_edge = list(tables()), list(tables(20_000, 14_000))
    cases = [
        ("one row replaced, as many passes", few[0], few[1], None),
        ("one row replaced, one pass less", few[0], few[3], None),
        (f"the same, {SETTLED} passes settled", few[0], few[3], SETTLED),
        ("one more kind of equal rows, at the edge", at_the_edge[0], at_the_edge[1], None),
        (f"the same, {SETTLED} passes settled", at_the_edge[0], at_the_edge[1], SETTLED),
    ]
    for name, first, other, settled in cases:
        counts = [fitted(table, 0, settled)[0] for table in (first, other)]
        runs = [lambda table=table, settled=settled: fitted(table, 0, settled) for table in (first, other)]
        a, b, told = apart(runs[0], runs[1], repeat)
        memory = [peak(run) / 1024 for run in runs]
        lines.append(
            f"| {name} | {counts[0]}, {counts[1]} | {a:.1f} | {b:.1f} | {told:.0%} | {memory[0]:,.0f}, "
            f"{memory[1]:,.0f} |"
        )
    return lines


def samplers(repeat: int) -> list[str]:
    """Return how time depends on what is drawn, and on private values that noise is added to."""
    lines = ["| what | µs | µs, the other | told apart |", "|---|---|---|---|"]

    def drawn(scale: float, size: int, seed: int) -> Any:
        return discrete_laplace(1.0, round(scale), size, random_state=SeededSource(seed))

    seeds = [(int(abs(drawn(2.0**20, 1, seed))[0]), seed) for seed in range(400)]
    small, large = min(seeds)[1], max(seeds)[1]
    cases: list[tuple[str, Callable[[], object], Callable[[], object]]] = [
        (
            f"a draw at scale 2²⁰: {min(seeds)[0]:,}, and {max(seeds)[0]:,}",
            lambda: drawn(2.0**20, 1, small),
            lambda: drawn(2.0**20, 1, large),
        )
    ]
    wide = [(max(int(value).bit_length() for value in drawn(2.0**61, 1, seed)), seed) for seed in range(400)]
    fits = next(seed for bits, seed in wide if bits <= 61)
    beyond = next(seed for bits, seed in wide if bits > 62)
    cases.append(
        (
            "a draw at scale 2⁶¹: of 61 bits at most, and of more than 62",
            lambda: drawn(2.0**61, 1, fits),
            lambda: drawn(2.0**61, 1, beyond),
        )
    )

    def walked(value: int) -> None:
        values = np.full(300, value, dtype=object if value >= 2**62 else np.int64)
        for _ in NoisePath(values, 2, [0.01, 0.1, 1.0], random_state=SeededSource(0)):
            pass

    near = 2**62 - 2**20
    cases.append(("a path of 300 sums of a few, and of others as small", lambda: walked(1000), lambda: walked(1001)))
    cases.append(("a path of sums below 2⁶², and one more", lambda: walked(near), lambda: walked(near + 2**21)))
    for name, first, other in cases:
        a, b, told = apart(first, other, 5 * repeat)
        lines.append(f"| {name} | {1e3 * a:,.0f} | {1e3 * b:,.0f} | {told:.0%} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--repeat", type=int, default=60)
    options = parser.parse_args()
    parts = [
        "# What time, memory and passes tell of one row",
        f"`PYTHONPATH=. python benchmarks/side_channels.py`; expost {__version__}. Searches for an error rate of 0.25 "
        f"on {N:,} made-up rows, and on neighbours of them, with the same draws. Simulation.",
        f"## Passes\n\n{options.seeds} seeds, five neighbours each.",
        "\n".join(passes(options.seeds)),
        "How many it takes of other made-up tables, six seeds each:",
        "\n".join(harder(6)),
        "## Whole searches\n\n*Told apart*: how often one run gives away on which of the two tables it was; 50 % is "
        f"guessing. Medians of {options.repeat} runs in turns, of the processor. Rows of which there are several are "
        "worked on once if there are at most 0.7 times as many kinds as rows: 20,000 rows of exactly as many kinds, "
        "and one more.",
        "\n".join(searches(options.repeat)),
        "## Samplers\n\nNoise does not depend on rows; what is drawn is a secret as well.",
        "\n".join(samplers(options.repeat)),
    ]
    RESULT.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    print(RESULT.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
