"""Cost per draw of the exact discrete Laplace and Gaussian samplers, beside OpenDP's, in one run on one machine.

Both are exact and both draw from cryptographic randomness. OpenDP is called the way its users call it, on a
vector of zeros; what handing that vector over and back costs is measured too and shown in a line of its own.

Run with ``python benchmarks/sampler.py``; it prints a table and writes ``benchmarks/results/sampler.md``.
"""

from __future__ import annotations

import platform
import statistics
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

from expost.noise import SecureSource, discrete_gaussian, discrete_laplace

DRAWS = 200_000
REPEATS = 5
REQUIRED = 10.0
GAUSSIAN_AT_MOST = 3.0  # times the cost of a Laplace draw
SCALES = (10, 45)  # powers of two
LAPLACE, GAUSSIAN = "expost `discrete_laplace`", "expost `discrete_gaussian`"
RESULT = Path(__file__).parent / "results" / "sampler.md"


def nanoseconds_per_draw(competitors: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Median over the repeats; the competitors take turns, so that a busy moment hits all of them."""
    seconds: dict[str, list[float]] = {name: [] for name in competitors}
    for _ in range(REPEATS):
        for name, run in competitors.items():
            start = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(times) / DRAWS * 1e9 for name, times in seconds.items()}


def competitors_at(scale: int) -> dict[str, Callable[[], object]]:
    import opendp.prelude as dp

    dp.enable_features("contrib", "honest-but-curious")  # the latter for the identity alone
    integers = dp.vector_domain(dp.atom_domain(T="i64"))
    floats = dp.vector_domain(dp.atom_domain(T="f64", nan=False))
    l1 = {"i64": dp.l1_distance(T="i64"), "f64": dp.l1_distance(T="f64")}
    integer_laplace = dp.m.make_laplace(integers, l1["i64"], scale=float(scale))
    float_laplace = dp.m.make_laplace(floats, l1["f64"], scale=float(scale))
    integer_gaussian = dp.m.make_gaussian(integers, dp.l2_distance(T="i64"), scale=float(scale))
    hand_over = dp.t.make_identity(integers, l1["i64"])
    zeros, float_zeros = [0] * DRAWS, [0.0] * DRAWS
    source = SecureSource()
    discrete_laplace(1.0, scale, 1, random_state=source)  # tables of digits, made once per scale
    discrete_gaussian(scale, 1, random_state=source)
    return {
        LAPLACE: lambda: discrete_laplace(1.0, scale, DRAWS, random_state=source),
        "OpenDP `make_laplace`, i64": lambda: integer_laplace(zeros),
        "OpenDP `make_laplace`, f64": lambda: float_laplace(float_zeros),
        GAUSSIAN: lambda: discrete_gaussian(scale, DRAWS, random_state=source),
        "OpenDP `make_gaussian`, i64": lambda: integer_gaussian(zeros),
        "OpenDP `make_identity`, i64 (hand-over alone)": lambda: hand_over(zeros),
    }


def main() -> int:
    try:
        opendp = version("opendp")
    except ModuleNotFoundError:
        print("OpenDP is not installed: nothing to compare with. Skipped (pip install 'expost[bench]').")
        return 0
    rows, ratios, gaussian = [], [], []
    for power in SCALES:
        measured = nanoseconds_per_draw(competitors_at(2**power))
        for name, cost in measured.items():
            ours = measured[GAUSSIAN if "gaussian" in name else LAPLACE]
            ratios += [cost / ours] if "OpenDP `make_laplace" in name or "make_gaussian" in name else []
            rows.append(f"| 2^{power} | {name} | {cost:,.0f} | {cost / ours:.1f} |")
        gaussian.append(measured[GAUSSIAN] / measured[LAPLACE])
    report = "\n".join(
        [
            "# Exact discrete Laplace and Gaussian: cost per draw",
            "",
            f"Median of {REPEATS} runs of {DRAWS:,} draws each, taking turns, one thread, secure source.",
            f"Python {platform.python_version()} on {platform.system()} {platform.machine()}, "
            f"numpy {version('numpy')}, cryptography {version('cryptography')}, opendp {opendp}.",
            "",
            "| scale | sampler | ns per draw | ratio to expost |",
            "|---|---|---:|---:|",
            *rows,
            "",
            f"Required: OpenDP's cost at least {REQUIRED:.0f} times ours; the least here is {min(ratios):.1f}. "
            f"A Gaussian draw at most {GAUSSIAN_AT_MOST:.0f} times a Laplace draw; here {max(gaussian):.1f}. "
            "Reproduce with `python benchmarks/sampler.py`.",
            "",
        ]
    )
    print(report)
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(report, encoding="utf-8")
    return 0 if min(ratios) >= REQUIRED and max(gaussian) <= GAUSSIAN_AT_MOST else 1


if __name__ == "__main__":
    sys.exit(main())
