"""Does a plan tell what a fit pays? Planned ranges, made without data, beside the fits of the panel.

    EXPOST_DATA=... python benchmarks/plan.py [--only REGEX] [--privacy pure|delta] [--fresh] [--show]

A plan is told what the best linear model reaches (``expect``), as somebody might who knows such tables, or nothing.
Fits are those that `benchmarks/panel.py` keeps in results/panel.json. What is found is kept in results/plan.json, so
that a run that was interrupted goes on where it was. Simulation: the noise is seeded, the rows are
looked at, and nobody is protected.
"""

from __future__ import annotations

import argparse
import math
import re
import time
from pathlib import Path

import numpy as np
from panel import CAP, DELTAS, GOALS, kept, tasks

from expost import __version__, plan

PAGE, KEPT = (Path(__file__).parent / "results" / f"plan.{ending}" for ending in ("md", "json"))
HEAD = "| table | goal | fits | likely, told what to expect | likely, told nothing | plan took |"


def measure(task, privacy: str) -> list[dict]:
    """Return, for each goal of a table, what fits paid and both ranges; every plan prices the three goals at once."""
    kind, delta, about = GOALS[task.kind], DELTAS[privacy], task.about
    ways, found = ("50", "80", "95"), kept()
    goals = [kind(task.goal(way)) for way in ways]
    ranges, took = [], 0.0
    for expect in (about["best"][0], None):
        start = time.perf_counter()
        priced = plan(task.schema, goals, rows=about["n"], max_epsilon=CAP, delta=delta, expect=expect).goals
        took = took or time.perf_counter() - start
        taken = [next((way for way in price.methods if way.taken), price.cheapest) for price in priced]
        ranges.append([(way.low, min(way.high, CAP)) for way in taken])
    lines = []
    for place, way in enumerate(ways):
        runs = [run for key, run in found.items() if key.startswith(f"{task.name}|{way}|{privacy}|expost|")]
        paid = [run["ex post" if delta else "epsilon"] for run in runs]
        line = {"table": task.name, "goal": goals[place].words, "paid": paid, "took": took}
        lines.append(line | {"told": ranges[0][place], "nothing": ranges[1][place]})
    return lines


def inside(line: dict, which: str) -> list[bool]:
    """Whether each run lies in a range, to the two digits that it is shown with."""
    low, high = line[which]
    return [0.99 * low <= paid <= 1.01 * high for paid in line["paid"]]


def summary(lines: list[dict], which: str) -> str:
    within = [one for line in lines for one in inside(line, which)]
    above = np.mean([paid > 1.01 * line[which][1] for line in lines for paid in line["paid"]])
    widths = [line[which][1] / line[which][0] for line in lines]
    return (
        f"{np.mean(within):.2f} of {len(within)} runs within ({above:.2f} above); high over low: median "
        f"{np.median(widths):.3g}, geometric mean {math.exp(np.mean(np.log(widths))):.3g}, largest {max(widths):.3g}"
    )


def section(privacy: str, lines: list[dict]) -> list[str]:
    """Return what the page says of one kind of privacy."""
    text = [f"## {'Pure' if privacy == 'pure' else 'At δ = 10⁻⁶, ε ex post'}\n"]
    text += [f"- told what to expect: {summary(lines, 'told')}", f"- told nothing: {summary(lines, 'nothing')}"]
    text += [f"- a plan of three goals took {max(line['took'] for line in lines):.0f} s at most\n", HEAD]
    text.append(f"{'|---' * HEAD[1:].count('|')}|")
    for line in lines:
        shown = [" – ".join(f"{end:.2g}" for end in line[which]) for which in ("told", "nothing")]
        paid = ", ".join(f"{each:.3g}" for each in sorted(line["paid"]))
        text.append(
            f"| {line['table']} | {line['goal']} | {paid} | {shown[0]} ({sum(inside(line, 'told'))} of "
            f"{len(line['paid'])} within) | {shown[1]} | {line['took']:.1f} s |"
        )
    return [*text, ""]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="")
    parser.add_argument("--privacy", choices=DELTAS)
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    measured = kept(None, KEPT)
    for privacy in [options.privacy] if options.privacy else DELTAS:
        for task in tasks().values():
            key = f"{privacy}|{task.name}"
            if options.show or not re.search(options.only, task.name) or (key in measured and not options.fresh):
                continue
            measured = kept({key: measure(task, privacy)}, KEPT)
            print(key, round(measured[key][0]["took"], 1), summary(measured[key], "told"), flush=True)
    text = [
        f"# Planned prices and what fits paid\n\nexpost {__version__}; γ = 0.1, a cap of {CAP:g}. Plans read no data. "
        "Fits are the panel's\n(`benchmarks/results/panel.md`). *Told what to expect*: `--expect`, what the best "
        "linear model reaches on the table.\nTables of the panel that are missing here were not planned with this "
        "search yet. `python benchmarks/plan.py`\n"
    ]
    for privacy in DELTAS:
        lines = [line for name in tasks() for line in measured.get(f"{privacy}|{name}", ())]
        text += section(privacy, lines) if lines else []
    PAGE.write_text("\n".join(text), encoding="utf-8")


if __name__ == "__main__":
    main()
