"""Kill commands at every step, fill disks, turn clocks back, and look at what is left behind: ``make faults``.

``python tools/faults.py`` runs :data:`CASES` cases in the shares of :data:`SHARES`, on Linux and macOS. Every case is a
function of ``--seed``, its kind and its number (as far as noise, other processes and a clock let it be) and is run
again by ``--only KIND --case NUMBER``. A command runs in a process of its own, in a folder of its own, and

- *fit*, *keep* (a fit that keeps its path), *refine*, *settle*, *evaluate*, *predict*, *over* (a prediction over a file
  that is there): it is killed (``kill -9``), half of them before the n-th system call that changes a file, which is
  every state of the disk there is (``ptrace``; Linux on x86-64), the others at any moment;
- *full*: a disk, or the size that a file may have, ends at some byte: under the ledger, the results, temporary files;
- *read-only*: one of those folders is;
- *clock*: the day goes back and forth by years, between commands and within them;
- *writers*: two to eight commands at once on one ledger with too small a budget for all, some of them killed;
- *dask*: a worker, all workers as often as they come back, or the scheduler and all workers are killed.

What is checked after each is :data:`CHECKED`; a finding is printed with what runs it again, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import datetime
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from fractions import Fraction
from pathlib import Path
from typing import Any

from killing import SECONDS, Ran, alone, ended, mount, run, run_traced, start, unmount

SHARES = {"fit": 14, "keep": 14, "refine": 12, "settle": 10, "evaluate": 12, "predict": 8, "over": 8}
SHARES |= {"full": 10, "read-only": 4, "clock": 3, "writers": 3, "dask": 2}
KILLED = ("fit", "keep", "refine", "settle", "evaluate", "predict", "over")
CASES = 500

#: What is checked after each case, as it is printed.
CHECKED = (
    "the ledger opens, verifies, and has lost nothing that it had",
    "what was released (a file under its name, or printed) is charged at least what it cost, under its id",
    "where noise was drawn the worst case is held, or what came of it is charged",
    "the sum is at least the exact sum of what was there and what was released, and within the cap",
    "no half of a file stands under the name of a result; one that was to be replaced is the old or the new",
    "beside them there is nothing but the journal of the ledger and .expost-… files; nothing at all in TMPDIR",
    "a command that ends says so by an exit status of its help, without a traceback; 2 means that nothing was spent",
    "a held entry can be settled, the same command works when it is run again, and all of the above holds after that",
)

NUMBERS = ["in/numbers.csv", "--task", "regression", "--target", "y", "--columns", "a", "b", "--bounds", "0", "1"]
NUMBERS += ["--target-bounds", "0", "3"]
BOOK = ["--ledger", "book/book.db", "--dataset", "d"]
OPENED = ["--path", "in/kept", "--key", "in/key"]
MADE = ["--output", "out/made.json"]
KEEP = ["--keep-path", "out/path", "--key", "in/key", "--later", "0.05", "0.02", "--keep-statistics"]
TABLE = ["in/model.json", "in/survey.csv"]
COMMANDS = {
    "fit": ["fit", *NUMBERS, "--excess-risk", "0.3", "--max-epsilon", "9", *BOOK, *MADE, "--report", "out/made.html"],
    "keep": ["fit", *NUMBERS, "--excess-risk", "0.1", "--max-epsilon", "20", *BOOK, *MADE, *KEEP],
    "refine": ["refine", "in/kept.json", *OPENED, "--excess-risk", "0.05", "--max-epsilon", "40", *BOOK, *MADE],
    "settle": ["ledger", "settle", "book/book.db", "ENTRY", "--worst-case", "--reason", "it was killed"],
    "evaluate": ["evaluate", *TABLE, "--margin", "0.05", "--max-epsilon", "50", *BOOK, *MADE],
    "predict": ["predict", *TABLE, "--output", "out/made.csv"],
    "over": ["predict", *TABLE, "--output", "out/made.csv", "--force"],
}
CAP = 1000.0
_SPARE = re.compile(r"\.expost-[0-9a-f]{16}")
_BEFORE = "what was there before\n"


# --- what is there before, and how the commands go when nothing happens ----------------------------------------------


Usual = dict[str, tuple[int, float]]


def material(base: Path, kinds: Sequence[str]) -> Usual:
    """Make what commands of these kinds take; returns, for those that are killed, how many calls and how long."""
    case = base / "material"
    for name in ("in", "book", "out", "tmp"):
        (case / name).mkdir(parents=True)
    rng = random.Random(0)
    rows = [(rng.random(), rng.random()) for _ in range(2000)]
    (case / "in/numbers.csv").write_text("a,b,y\n" + "".join(f"{a:.4f},{b:.4f},{a + 2 * b:.4f}\n" for a, b in rows))
    model = ["fit", "in/survey.csv", "--schema", "in/survey.toml", "--error-rate", "0.3", "--max-epsilon", "100"]
    commands = [["key", "in/key"], ["ledger", "create", "book/book.db", "--dataset", "d", "--cap", str(CAP)]]
    if not set(kinds) <= {"fit", "keep", "settle"}:
        commands += [["example", "survey", "--rows", "2000"], [*model, *BOOK, "--output", "in/model.json"]]
        commands += [COMMANDS["keep"], COMMANDS["predict"]]
    for command in commands:
        done = run(command, case)
        if done.status != 0:
            raise RuntimeError(f"{command}: {done.status} {done.out} {done.err}")
        for made in case.glob("survey.*"):
            made.rename(case / "in" / made.name)
    for made, name in (("made.json", "kept.json"), ("path", "kept"), ("made.csv", "expected.csv")):
        if (case / "out" / made).exists():
            (case / "out" / made).rename(case / "in" / name)
    pid = os.fork()
    if not pid:  # a search that its process has left
        (case / "in/entry").write_text(book(case).reserve(0.5).id)
        os._exit(0)
    os.waitpid(pid, 0)
    usual = {}
    for kind in KILLED if {"writers", "dask"} & set(kinds) else set(KILLED) & set(kinds):
        done, counted = (go(commanded(kind, case), fresh(base, f"{kind}-{go.__name__}")) for go in (run, run_traced))
        usual[kind] = counted.calls, done.seconds
    return usual


def fresh(base: Path, name: str) -> Path:
    """Return a copy of the material; there is a result already in that of a command that writes over one."""
    case = base / name
    shutil.copytree(base / "material", case)
    if Path(name).name.startswith("over"):
        (case / "out/made.csv").write_text(_BEFORE)
    return case


def commanded(kind: str, case: Path) -> list[str]:
    """Return the command of a kind; to settle it needs the entry that is held."""
    return [(case / "in/entry").read_text() if word == "ENTRY" else word for word in COMMANDS[kind]]


# --- what is checked -------------------------------------------------------------------------------------------------


def book(case: Path) -> Any:
    """Return the ledger of a case."""
    from expost import Ledger

    return Ledger(case / "book/book.db", "d")


def released(case: Path, ran: Sequence[Ran]) -> dict[str, Any]:
    """Return what came out: releases under their names, and those that were printed instead."""
    from expost import Release

    found = {}
    texts = [path.read_text(encoding="utf-8") for path in (case / "out").glob("made*.json")]
    for one in ran:
        for said in (one.out, one.err):
            texts += [said[place.start() :] for place in re.finditer(r"^\{", said, re.MULTILINE)]
    for text in texts:
        with contextlib.suppress(ValueError):
            raw, _ = json.JSONDecoder().raw_decode(text)
            release = Release.from_json(json.dumps(raw))
            found[release.id] = release
    return found


def wrong_files(case: Path, entries: Sequence[Any]) -> list[str]:
    """Return what is wrong with files: halves under the names of results, and what nobody knows."""
    from expost import Release
    from expost.release.kept_path import read_key, unseal

    found = [f"{path.name} is left in TMPDIR" for path in (case / "tmp").iterdir() if path.name != "filler"]
    known = {"book.db", "book.db-journal", "filler"}
    found += [f"{path.name} is left beside the ledger" for path in (case / "book").iterdir() if path.name not in known]
    for path in (case / "out").iterdir():
        if path.name == "filler" or _SPARE.fullmatch(path.name):
            continue
        content, whole = path.read_bytes(), False
        if path.suffix == ".json":
            with contextlib.suppress(ValueError):
                Release.from_json(content.decode())
                whole = content.endswith(b"}\n")
        elif path.suffix == ".html":
            whole = content.rstrip().endswith(b"</html>")
        elif path.suffix == ".csv":
            whole = content in ((case / "in/expected.csv").read_bytes(), _BEFORE.encode())
        elif path.name.startswith(("path", "again")):
            for entry in entries:
                with contextlib.suppress(ValueError):
                    unseal(content, read_key(case / "in/key"), entry.id)
                    whole = True
        if not whole:
            found.append(f"{path.name} is half a file, or unknown ({len(content)} bytes)")
    return found


def complaints(kind: str, one: Ran, paid: bool) -> list[str]:
    """Return what is wrong with how a command ended that was not killed."""
    from importlib import import_module

    from expost.cli.command import COMMANDS as ALL

    name = COMMANDS[kind][0]
    found = []
    if one.status == -signal.SIGALRM:
        return [f"{name} did not end within {SECONDS} seconds"]
    if one.status not in import_module(ALL[name][0]).EXITS:
        found.append(f"{name} ended with {one.status}")
    if "Traceback" in one.err:
        found.append(f"{name} showed a traceback: {one.err.strip().splitlines()[-1][:100]}")
    if one.status == 2 and (one.drawn or paid):
        found.append(f"{name} drew noise or charged for it, and ended with 2: {one.err.strip()[-100:]}")
    return found


def left_behind(kind: str, case: Path, before: Any, ran: Sequence[Ran]) -> list[str]:
    """Return what is wrong after commands of a kind that were killed or not; ``before`` is the budget before them."""
    from expost import Ledger

    try:
        damage, budget = Ledger.damage(case / "book/book.db"), book(case).budget
    except Exception as error:
        return [f"the ledger does not open: {type(error).__name__}: {error}"]
    found = [f"the ledger does not verify: {damage}"] if damage else []
    if budget.events[: len(before.events)] != before.events:
        return [*found, "the ledger has lost what it had"]
    new, made = budget.entries[len(before.entries) :], released(case, ran)
    costs = {name: Fraction(before.cost(release).epsilon) for name, release in made.items()}
    for name, cost in costs.items():
        charges = [entry.loss.epsilon for entry in new if name in (entry.id, entry.release_id)]
        if len(charges) != 1 or charges[0] < cost:
            found.append(f"a release of epsilon {float(cost):.4g} is charged {charges}")
    charged = [entry for entry in new if entry.events[-1].kind != "returned"]
    if len(charged) < sum(one.drawn for one in ran):
        found.append("noise was drawn, and nothing is charged for it")
    total = Fraction(budget.total.epsilon)
    if total < sum(Fraction(loss.epsilon) for loss in before.losses) + sum(costs.values()):
        found.append("the sum is less than what was released")
    if total > Fraction(budget.cap.epsilon):
        found.append("the sum is more than the cap")
    for one in ran:
        if one.status != -signal.SIGKILL:
            found += complaints(kind, one, bool(charged) and len(ran) == 1)
            spends = kind in ("fit", "keep", "refine", "evaluate") and one.status not in (2, -signal.SIGALRM)
            if spends and not released(case, [one]):
                found.append(f"{kind} ended with {one.status}, and its release is nowhere")
    return found + wrong_files(case, new)


def again(kind: str, case: Path, before: Any, ran: Sequence[Ran]) -> list[str]:
    """Run a command once more, settle what is held, and return what is wrong with that."""
    was_held = any(entry.held for entry in book(case).budget.entries[: len(before.entries)])
    command = commanded(kind, case)
    if (case / "out/path").exists() and "out/path" in command:
        command[command.index("out/path")] = "out/again"
    if "--output" in command and "--force" not in command:
        command.append("--force")
    once_more = run(command, case)
    expected = (0, 3, 5) if kind != "settle" or was_held else (2,)
    if once_more.status not in expected:
        said = once_more.err.strip().splitlines()
        return [f"run again it ended with {once_more.status}: {said[-1][:160] if said else ''}"]
    entries = [entry for entry in book(case).budget.entries if entry.held]
    for entry in entries:
        try:
            book(case).decide(entry.id, None, reason="it was killed")
        except Exception as error:
            return [f"what is held cannot be settled: {error}"]
    found = left_behind(kind, case, before, [*ran, once_more] if kind != "settle" else [])
    if (case / "book/book.db-journal").exists():
        found.append("the journal of the ledger is left after a transaction that ended")
    return [f"run again: {text}" for text in found]


# --- cases: each returns what was found, and how many processes were killed -------------------------------------------

Found = tuple[list[str], int]


def killed_case(kind: str, number: int, many: int, rng: random.Random, case: Path, usual: Usual) -> Found:
    """Kill a command at a call or at a moment."""
    before, (calls, seconds) = book(case).budget, usual[kind]
    if calls and number % 2 == 0:
        steps = max(1, (many + 1) // 2)
        one = run_traced(commanded(kind, case), case, 1 + int(calls * (number // 2 + rng.random()) / steps))
    else:
        one = run(commanded(kind, case), case, after=rng.uniform(0, 1.1 * seconds))
    found = left_behind(kind, case, before, [one])
    return found or again(kind, case, before, [one]), int(one.status == -signal.SIGKILL)


def full_case(_: str, number: int, many: int, rng: random.Random, case: Path, usual: Usual) -> Found:
    """Let a disk end, or the size that a file may have."""
    kind, place, room = rng.choice(KILLED), rng.choice(("book", "out", "tmp")), rng.randrange(24)
    if kind == "over":
        (case / "out/made.csv").write_text(_BEFORE)
    before, size = book(case).budget, rng.randrange(40_000)
    shutil.copytree(case / place, case.parent / "copy")
    if number % 2 == 0 and mount(b"tmpfs", case / place, b"size=1m"):
        shutil.copytree(case.parent / "copy", case / place, dirs_exist_ok=True)
        filler = case / place / "filler"
        with open(filler, "wb", buffering=0) as stream, contextlib.suppress(OSError):
            while True:
                stream.write(bytes(4096))
        os.truncate(filler, max(0, filler.stat().st_size - room * 4096))
        one = run(commanded(kind, case), case)
        found = left_behind(kind, case, before, [one])
        filler.unlink()
    else:
        limited = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))  # noqa: E731
        one = run(commanded(kind, case), case, before=limited)
        found = left_behind(kind, case, before, [one])
    return [f"{kind}, {text}" for text in found or again(kind, case, before, [one])], 0


def read_only_case(_: str, number: int, many: int, rng: random.Random, case: Path, usual: Usual) -> Found:
    """Let nothing be written in some of the folders."""
    kind, places = rng.choice(KILLED), rng.sample(("book", "out", "tmp"), rng.randint(1, 3))
    if kind == "over":
        (case / "out/made.csv").write_text(_BEFORE)
    before = book(case).budget
    for place in places:
        if not mount(None, case / place, None):
            (case / place).chmod(0o500)
    one = run(commanded(kind, case), case)
    for place in places:
        if not unmount(case / place):
            (case / place).chmod(0o700)
    found = left_behind(kind, case, before, [one])
    return [f"{kind}, {text}" for text in found or again(kind, case, before, [one])], 0


def clock_case(_: str, number: int, many: int, rng: random.Random, case: Path, usual: Usual) -> Found:
    """Turn the day back and forth by years, whenever a command asks for it."""

    def turned() -> None:
        class Turned(datetime.datetime):
            @classmethod
            def now(cls, tz: Any = None) -> datetime.datetime:
                return datetime.datetime(1970, 1, 2, tzinfo=tz) + datetime.timedelta(days=rng.randrange(50_000))

        datetime.datetime, usual_time = Turned, time.time
        time.time = lambda: usual_time() - rng.randrange(10**9)

    before, found, ran = book(case).budget, [], []
    for kind in rng.sample(("fit", "refine", "settle", "evaluate"), 4):
        rng.random()  # another clock for each
        ran.append(run([*commanded(kind, case), *(["--force"] if kind != "settle" else [])], case, before=turned))
        found += [f"{kind}, {text}" for text in left_behind(kind, case, before, ran)]
        found += [] if ran[-1].status in (0, 3, 5) else [f"{kind} ended with {ran[-1].status}: {ran[-1].err[-100:]}"]
    for action in ("show", "history", "export", "verify"):
        one = run(["ledger", action, "book/book.db"], case)
        found += [] if one.status == 0 else [f"ledger {action} ended with {one.status}: {one.err[-100:]}"]
    return found, 0


def writers_case(_: str, number: int, many: int, rng: random.Random, case: Path, usual: Usual) -> Found:
    """Let several commands charge one budget that is too small for all, and kill some of them."""
    from expost import Ledger

    (case / "book/book.db").unlink()
    before = Ledger.create(case / "book/book.db", "d", cap=rng.choice([3.0, 10.0, 25.0])).budget
    kinds = [rng.choice(("fit", "keep", "refine", "evaluate")) for _ in range(rng.randint(2, 8))]
    since, pids = time.monotonic(), {}
    for place, kind in enumerate(kinds):
        command = [word.replace("out/made", f"out/made-{place}") for word in commanded(kind, case)]
        pids[start([word.replace("out/path", f"out/path-{place}") for word in command], case)] = kind
    for pid, after in sorted(((pid, rng.uniform(0, 1.5 * len(kinds))) for pid in pids), key=lambda one: one[1]):
        if rng.random() < 0.4:
            time.sleep(max(0.0, since + after * usual["fit"][1] - time.monotonic()))
            os.kill(pid, signal.SIGKILL)
    ran = [ended(pid, case, os.waitpid(pid, 0)[1], 0, since) for pid in pids]
    found = left_behind("fit", case, before, ran)
    for entry in book(case).budget.entries:
        if entry.held:
            book(case).decide(entry.id, None, reason="it was killed")
    return found or left_behind("fit", case, before, ran), sum(one.status == -signal.SIGKILL for one in ran)


_CLUSTER = """
import sys
from distributed import LocalCluster
if __name__ == "__main__":
    cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50)
    print(cluster.scheduler_address, flush=True)
    for line in sys.stdin:
        print(*(worker.pid for worker in cluster.workers.values() if worker.pid), flush=True)
"""


def dask_case(_: str, number: int, many: int, rng: random.Random, case: Path, usual: Usual) -> Found:
    """Kill a worker, all of them for as long as the search lasts, or the scheduler with them."""
    from expost.passes import dask

    def impatient() -> None:
        dask._ALONE, dask._LOOK = 5.0, 0.5

    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    how, before = ("a worker", "all workers", "the scheduler")[number % 3], book(case).budget
    with subprocess.Popen([sys.executable, "-c", _CLUSTER], text=True, cwd=case, **pipes) as cluster:
        assert cluster.stdin is not None
        assert cluster.stdout is not None
        try:
            engine = ["--engine", "dask", "--scheduler", cluster.stdout.readline().strip()]
            since, many_killed = time.monotonic(), 0
            pid = start([*commanded("fit", case), *engine], case, before=impatient)
            status, after = None, rng.uniform(0, 6 * usual["fit"][1])
            while status is None:
                time.sleep(0.05)
                one, code = os.waitpid(pid, os.WNOHANG)
                status = code if one else None
                if status is None and time.monotonic() - since >= after and (how == "all workers" or not many_killed):
                    victims = [cluster.pid]
                    if how != "the scheduler":
                        cluster.stdin.write("\n")
                        cluster.stdin.flush()
                        victims = [int(word) for word in cluster.stdout.readline().split()]
                    for victim in victims[:1] if how == "a worker" else victims:
                        with contextlib.suppress(ProcessLookupError):
                            os.kill(victim, signal.SIGKILL)
                            many_killed += 1
            fit = ended(pid, case, status, 0, since)
        finally:
            cluster.kill()
    found = left_behind("fit", case, before, [fit])
    if how == "a worker" and fit.status not in (0, 3, 5):
        found.append(f"the fit ended with {fit.status}: {fit.err[-160:]}")
    return [f"{how} killed, {text}" for text in found or again("fit", case, before, [fit])], many_killed


KINDS: dict[str, Callable[..., Found]] = dict.fromkeys(KILLED, killed_case)
KINDS |= {"full": full_case, "read-only": read_only_case, "clock": clock_case}
KINDS |= {"writers": writers_case, "dask": dask_case}


# --- the campaign ----------------------------------------------------------------------------------------------------


def run_case(seed: int, kind: str, number: int, many: int, base: Path, usual: Usual) -> dict[str, Any]:
    """Run one case in a folder of its own; returns what was found and what state things were in."""
    since, home = time.monotonic(), Path(tempfile.mkdtemp(dir=base))
    case = fresh(base, f"{home.name}/{'over' if kind == 'over' else 'case'}")
    try:
        found, killed = KINDS[kind](kind, number, many, random.Random(f"{seed}/{kind}/{number}"), case, usual)
        hidden = sum(1 for path in (case / "out").iterdir() if _SPARE.fullmatch(path.name))
    finally:
        for place in ("book", "out", "tmp"):
            unmount(case / place)
        shutil.rmtree(home)
    return {"kind": kind, "number": number, "found": found, "killed": killed, "hidden": hidden, "since": since}


def prepare() -> None:
    """Import everything once: processes are forked, and begin with the command itself."""
    import importlib
    import pkgutil

    import expost

    for module in pkgutil.walk_packages(expost.__path__, "expost."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)


def bar(done: int, total: int, kind: str) -> None:
    """Show how far the campaign has come, on a terminal."""
    if sys.stderr.isatty():
        full = 30 * done // total
        end = "\n" if done == total else ""
        print(f"\r{'█' * full}{'░' * (30 - full)} {done}/{total} {kind:<10}", end=end, file=sys.stderr, flush=True)


def campaign(cases: int, seed: int, kinds: Sequence[str], processes: int, alone_case: int | None = None) -> int:
    """Run the cases of some kinds, or one of each, print a table and each finding; returns how many there were."""
    started, total = time.monotonic(), sum(SHARES.values())
    many = {kind: max(1, round(cases * SHARES[kind] / total)) for kind in kinds}
    done: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        prepare()
        usual = material(base, kinds)
        with ProcessPoolExecutor(processes, initializer=alone) as pool:
            jobs = [(kind, number) for kind in kinds for number in range(many[kind])]
            jobs = jobs if alone_case is None else [(kind, alone_case) for kind in kinds]
            waiting = [pool.submit(run_case, seed, kind, number, many[kind], base, usual) for kind, number in jobs]
            for one in as_completed(waiting):
                done.append(one.result())
                bar(len(done), len(jobs), done[-1]["kind"])
    print("Checked after each:", *(f"- {text}" for text in CHECKED), "", sep="\n")
    print(f"{'kind':<10} {'cases':>6} {'killed':>7} {'hidden files':>13} {'findings':>9}   calls that change a file")
    findings = collections.defaultdict(list)
    for kind in kinds:
        own = [one for one in done if one["kind"] == kind]
        for one in own:
            for text in one["found"]:
                findings[kind, text].append(one["number"])
        killed, hidden = (sum(one[what] for one in own) for what in ("killed", "hidden"))
        calls = f"   {usual[kind][0]}" if kind in usual else ""
        print(f"{kind:<10} {len(own):>6} {killed:>7} {hidden:>13} {sum(bool(one['found']) for one in own):>9}{calls}")
    for (kind, text), numbers in findings.items():
        rerun = f"--cases {cases} --seed {seed} --only {kind} --case {min(numbers)}"
        print(f"  {len(numbers)} × {kind}: {text}    ({rerun})")
    if not any(calls for calls, _ in usual.values()):
        print("system calls cannot be counted here: processes were killed at moments only")
    print(f"{len(done)} cases, seed {seed}, {len(findings)} kinds of findings, {time.monotonic() - started:.0f} s")
    return len(findings)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what was asked for; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=CASES)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=list(KINDS), nargs="+", default=list(KINDS), metavar="KIND")
    parser.add_argument("--case", type=int, metavar="NUMBER", help="only this case of --only")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    stated = parser.parse_args(arguments)
    return int(campaign(stated.cases, stated.seed, stated.only, stated.processes, stated.case) > 0)


if __name__ == "__main__":
    sys.exit(main())
