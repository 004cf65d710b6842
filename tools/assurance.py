"""Carry out the audit and write its table into docs/assurance.md: ``make assurance``.

Whatever stands between the two marks in that document is replaced; the rest is written by people.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import textwrap
import time
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from expost.audit import Audited, run_audit
from expost.audit.replays import ENTRIES
from expost.audit.run import HEADINGS, table

PAGE = Path(__file__).parents[1] / "docs" / "assurance.md"
BEGIN, END = "<!-- written by make assurance -->\n", "<!-- up to here -->\n"


def _commit() -> str:
    """Return the commit that is attacked, and say so if what is there is not what was committed."""

    def asked(*words: str) -> str:
        done = subprocess.run(["git", *words], cwd=PAGE.parent, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    changed = asked("status", "--porcelain", "--", "../src")
    return asked("rev-parse", "--short=10", "HEAD") + (" with changes" if changed else "")


def _hours(done: Sequence[Audited], started: tuple[float, float]) -> str:
    """Say how long this took on a processor of its own, and how long all runs would: in proportion to their number."""
    busy = (time.process_time() - started[1]) / (time.monotonic() - started[0])
    taken = busy * sum(each.seconds for each in done)
    full = busy * sum(each.seconds * max(each.attack.full, 1) / max(each.setting.runs, 1) for each in done)
    return f"It took {taken:.0f} seconds of a processor; `make audit-full` would take {full / 120:.0f} minutes of two."


def main() -> int:
    """Write the table; returns 3 if a claim was refuted, which is written as well."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="take hours over it, on one processor")
    parser.add_argument("--seed", type=int, help="repeat the same draws")
    options = parser.parse_args()
    started = time.monotonic(), time.process_time()

    def tell(name: str, place: int, runs: int) -> None:
        if not place:
            print(name, file=sys.stderr)

    done = run_audit(full=options.full, seed=options.seed, tell=tell)
    broken = sum(each.found.broken for each in done)
    draws = sum(each.setting.runs for each in done if each.attack.way == "counted")
    searched = sum(each.setting.runs for each in done if each.attack.way == "transcripts")
    moved = sum(each.setting.runs for each in done if each.attack.way == "one row")
    entries = sum(len(kind) for kind in ENTRIES.values())
    findings = sum(bool(each.found.differs) for each in done if each.attack.way == "replayed")
    words = "the operating system" if options.seed is None else f"the seed {options.seed}"
    said = (
        f"expost {metadata.version('expost')}, commit {_commit()}: {len(done)} attacks, {broken} of them successful; "
        f"{draws:,} draws and runs on each of two data sets counted, {searched:,} transcripts replayed, one row moved "
        f"in {moved:,} tables; {findings} findings in {entries} public entries, each replayed with every draw frozen; "
        f"each bound from counts holds with probability {done[0].setting.confidence:.6g}. Words came from {words}. "
        f"{_hours(done, started)}"
    )
    lines = ["| " + " | ".join(HEADINGS) + " |", "|---|---|---|---:|---:|---:|---:|---|"]
    lines += ["| " + " | ".join(row) + " |" for row in table(done)]
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    _, after = rest.split(END)
    text = "\n".join([*textwrap.wrap(said, 100), "", *lines, ""])
    PAGE.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}", encoding="utf-8")
    return 3 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
