"""Fits in processes that are killed at a chosen point; run as a script, it prints what was left behind as JSON.

Each child appends to a diary of its own what only an omniscient observer knows: that noise is about to be drawn, and
what an outcome cost once there is one. The draw is written down first, so that the diary never claims too little. With
a δ costs are curves, of which the first order is looked at.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import sys
import traceback
from pathlib import Path

import numpy as np

from expost import AccuracyFirstRidge, Ledger
from expost.account.account import Account, Spending
from expost.account.loss import PureLoss
from expost.noise.source import SecureSource

CAP, EARLIER, WORST, DELTA = 200.0, 0.25, 100.0, 1e-6
WATCHED = ("account/ledger.py", "account/ledger_file.py", "account/account.py", "search/run.py")
X = np.random.default_rng(0).uniform(-1, 1, size=(2_000, 2))
Y = X @ [1.0, -0.5]


class Killer:
    """Kill this process at the n-th step: a line of Python in the files watched, or a step inside SQLite."""

    def __init__(self, kind: str, at: int) -> None:
        self.kind, self.at, self.count = kind, at, 0

    def step(self) -> int:
        self.count += 1
        if self.count == self.at:
            os.kill(os.getpid(), signal.SIGKILL)
        return 0

    def trace(self, frame, event, _argument):
        if not any(part in frame.f_code.co_filename for part in WATCHED):
            return None
        if event == "line":
            self.step()
        return self.trace

    def start(self) -> None:
        if self.kind == "line":
            sys.settrace(self.trace)
            return
        connect = sqlite3.connect

        def connected(*arguments, **options):
            connection = connect(*arguments, **options)
            connection.set_progress_handler(self.step, 1)
            connection.set_trace_callback(lambda _: self.step())
            return connection

        sqlite3.connect = connected


def observed(diary: Path) -> None:
    """Let the diary know of draws and outcomes."""
    handle = os.open(diary, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    words = SecureSource.words

    def draw(self, count):
        os.write(handle, b"draw\n")
        return words(self, count)

    def watch(kind, worst, cost):
        make, interrupted = kind._release, kind.interrupted

        def begun(self):
            os.write(handle, f"worst {worst(self).hex()}\n".encode())
            return interrupted(self)

        def outcome(self, *arguments, **details):
            release = make(self, *arguments, **details)
            if self.method != "none":
                os.write(handle, f"cost {cost(release).hex()}\n".encode())
            return release

        kind._release, kind.interrupted = outcome, begun

    watch(
        Account,
        lambda self: self.worst.losses[0] if self.delta else self.worst_case,
        lambda release: release.account_curve().losses[0] if release.delta else release.epsilon,
    )
    SecureSource.words = draw


def forgetful() -> None:
    """Break the ledger: book what a search cost when it is over, and reserve nothing before."""

    def reserve(self, held, *, worst_case):
        self._reservation = self

    def settle(self, release):
        self._ledger.book(release)

    Spending.reserve, Spending.settle, Spending.give_back, Spending.id = reserve, settle, lambda *_: None, "none"


def fit(ledger: Ledger, delta: float) -> None:
    pure = {"excess_risk": 0.4, "regularization": 1.0, "method": "above_threshold", "calibration": "theorem"}
    pure |= {"n_levels": 8, "max_epsilon": WORST}
    approximate = {"excess_risk": 0.05, "regularization": 0.01, "delta": delta}
    model = AccuracyFirstRidge(bounds=1.0, target_bound=2.0, ledger=ledger, **(approximate if delta else pure))
    try:
        model.fit(X, Y)
    except Exception as error:
        if not hasattr(error, "release"):
            raise


def child(folder: Path, kind: str, at: int, how: str) -> int:
    """Fit in a process of its own; returns how it ended."""
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    status = 1
    try:
        observed(folder / "diary")
        if how == "broken":
            forgetful()
        killer = Killer(kind, at)
        killer.start()
        fit(Ledger(folder / "ledger.db", "survey"), DELTA if how == "delta" else 0.0)
        sys.settrace(None)
        (folder / "steps").write_text(str(killer.count))
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def spent(diary: list[list[str]]) -> float:
    """Return what has to be charged: what the outcome cost, or the worst case if noise was drawn and there is none."""
    if ["draw"] not in diary:
        return 0.0
    known = {line[0]: float.fromhex(line[1]) for line in diary if line != ["draw"]}
    return known.get("cost", known["worst"])


def counted(loss) -> float:
    """Return a loss as a number that adds up: ε, or a curve at its first order."""
    return loss.epsilon if isinstance(loss, PureLoss) else loss.curve.losses[0]


def left_behind(folder: Path, kind: str, at: int, how: str) -> dict:
    """Let a fit be killed; returns what the ledger says afterwards, and what it has to say at least."""
    folder.mkdir()
    shutil.copy(folder.parent / "ledger.db", folder)
    status = child(folder, kind, at, how)
    lines = (folder / "diary").read_text().splitlines() if (folder / "diary").is_file() else []
    budget = Ledger(folder / "ledger.db", "survey").budget
    return {
        "kind": kind,
        "at": at,
        "status": status,
        "drawn": "draw" in lines,
        "spent": spent([line.split() for line in lines]),
        "losses": [counted(entry.loss) for entry in budget.entries],
        "held": [entry.held for entry in budget.entries],
        "total": counted(budget.total),
    }


def everywhere(folder: Path, points: int, how: str) -> list[dict]:
    """Kill fits at points that are spread evenly over the steps of one."""
    folder.mkdir()
    earlier = Account("earlier", worst_case=EARLIER, secure=True, generation=EARLIER).refused()
    Ledger.create(folder / "ledger.db", "survey", cap=CAP, delta=DELTA if how == "delta" else 0.0).book(earlier)
    found = []
    for kind in ("line", "sqlite"):
        found.append(left_behind(folder / kind, kind, 0, how))  # to its end: how many steps there are
        steps = int((folder / kind / "steps").read_text())
        chosen = sorted({1 + step * steps // points for step in range(points)})
        found += [left_behind(folder / f"{kind}{at}", kind, at, how) for at in chosen]
    return found


def main() -> None:
    folder, points, hows = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    print(json.dumps({how: everywhere(folder / how, points, how) for how in hows}))


if __name__ == "__main__":
    main()
