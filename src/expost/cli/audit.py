"""``expost audit``: attacks on what is claimed, repeated by anybody."""

from __future__ import annotations

import argparse
import json
from importlib import metadata

from expost.cli.progress import Progress
from expost.cli.terminal import print_text

DESCRIPTION = (
    "Attack the mechanisms that fits are made of, and whole fits, on neighbouring tables made up for the purpose. Each "
    "line says what is claimed, and what its loss is at least: counted (a bound that holds with the confidence "
    "stated), by transcripts (exact log ratios of densities along recorded searches), by one row (how far it moves "
    "what gets noise) or exact (all draws of a tiny case). A bound above its claim refutes it; bounds below do not "
    "prove it. And every public entry is replayed with all draws frozen and one row replaced: whatever "
    "then differs is a finding. No data are read."
)
EXAMPLES = (
    "expost audit",
    "expost audit --mechanism above-threshold --runs 200000",
    "expost audit --mechanism '^fit-' --seed 1 --json",
)
#: What was asked was done, and the answer is no.
BROKEN = 3
_BAR = 20
EXITS = {
    0: "every bound is below its claim, and nothing else differs",
    1: "every bound is below its claim, but that could not be printed",
    2: "a mistake in the arguments",
    BROKEN: "a bound is above its claim, or something else differs: please report it, as SECURITY.md says",
}


def add_arguments(audit: argparse.ArgumentParser) -> None:
    """Add the options."""
    audit.add_argument("--mechanism", metavar="NAME", help="attack this only: a name, or a regular expression")
    audit.add_argument("--runs", type=int, metavar="N", help="runs or draws on each table (default: a minute for all)")
    audit.add_argument("--full", action="store_true", help="take an hour over it: 10,000,000 draws, 100,000 searches")
    audit.add_argument("--processes", type=int, default=1, metavar="N", help="how many share the attacks (default: 1)")
    audit.add_argument(
        "--confidence",
        type=float,
        default=1.0 - 1e-6,
        metavar="C",
        help="with which each bound from counts holds (default: %(default)s)",
    )
    audit.add_argument("--seed", type=int, metavar="S", help="repeat the same draws (default: those of the system)")
    audit.add_argument("--json", action="store_true", help="print the result as JSON")


def run(options: argparse.Namespace) -> int:
    """Attack and show; returns the exit status."""
    from expost.audit import attacks, run_audit
    from expost.audit.run import Audited, as_text, table

    count = len(attacks(options.mechanism))
    # an hour may be lost by an interruption: what is over is said at once
    with Progress(passes=options.full) as progress:
        at_work: dict[str, float] = {}
        over: list[str] = []

        def tell(name: str, place: int, runs: int) -> None:
            at_work[name] = place / max(runs, 1)
            part = (len(over) + sum(at_work.values())) / count
            doing = ", ".join(f"{each} {done:.0%}" for each, done in at_work.items())
            bar = "#" * int(_BAR * part)
            progress.stage(f"[{bar:.<{_BAR}}] {part:.0%}, {len(over)} of {count} attacks over, at work: {doing}")

        def end(done: Audited) -> None:
            over.append(done.attack.name)
            at_work.pop(done.attack.name, None)
            if options.full:
                progress.note(f"{', '.join(filter(None, table((done,))[0]))}, {done.seconds:.0f} s")

        done = run_audit(
            options.mechanism,
            runs=options.runs,
            confidence=options.confidence,
            seed=options.seed,
            full=options.full,
            processes=options.processes,
            tell=tell,
            end=end,
        )
    broken = any(each.found.broken for each in done)
    said = {
        "version": metadata.version("expost"),
        "seed": options.seed,
        "verdict": "broken" if broken else "holds",
        "attacks": [each.to_dict() for each in done],
    }
    print_text(json.dumps(said, indent=2, ensure_ascii=False) if options.json else as_text(done))
    return BROKEN if broken else 0
