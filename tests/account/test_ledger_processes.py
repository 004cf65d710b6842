"""Several processes and one budget: none overspends it, and killed at any moment none leaves it understated."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

from expost import Ledger
from expost.account.account import Account
from expost.exceptions import BudgetExceeded
from tests.account.ledger_helpers import charged, new_ledger

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
FORKS = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked and killed")

# reserves until it is refused, or as often as it may, once all are ready
GREEDY = """
import sys
from expost import Ledger
from expost.exceptions import BudgetExceeded
from expost.account.events import Budget
from expost.account.account import Account

ledger, worst, most = Ledger(sys.argv[1], "survey"), float(sys.argv[2]), int(sys.argv[3])
if sys.argv[4] == "broken":
    looked, admits = ledger.budget, Budget.admits
    Budget.admits = lambda budget, loss: admits(looked, loss)
delta = float(sys.argv[5])
account = Account("by hand", worst, secure=True, delta=delta, one_curve="gaussian") if delta else None
print("ready", flush=True)
sys.stdin.readline()
done = 0
try:
    while done < most:
        ledger.reserve(worst, held=None if account is None else account.interrupted())
        done += 1
except BudgetExceeded:
    pass
print(done, flush=True)
"""


def compete(path: Path, worst: float, most: int, how: str, delta: float = 0.0, processes: int = 3) -> list[int]:
    """Let processes reserve side by side; returns how often each could."""
    command = [sys.executable, "-c", GREEDY, str(path), str(worst), str(most), how, str(delta)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "env": ENVIRONMENT}
    children = [subprocess.Popen(command, **pipes) for _ in range(processes)]
    for child in children:
        assert child.stdout.readline() == "ready\n"
    for child in children:
        child.stdin.write("go\n")
        child.stdin.flush()
    counts = [int(child.communicate(timeout=60)[0]) for child in children]
    assert [child.returncode for child in children] == [0] * processes
    return counts


def test_processes_cannot_overspend(tmp_path):
    ledger = new_ledger(tmp_path, cap=3.0)
    counts = compete(ledger.path, 0.1, 1000, "sound")
    assert sum(counts) == len(charged(ledger)) == 29  # thirty times the float 0.1 is more than 3
    assert sum(map(Fraction, charged(ledger))) <= 3


def test_processes_cannot_overspend_with_a_delta(tmp_path):
    """As many as one process could reserve one after the other: costs add in squares, so more than cap over ε."""
    alone = new_ledger(tmp_path, cap=1.0, delta=1e-6)
    account = Account("by hand", 0.3, secure=True, delta=1e-6, one_curve="gaussian")
    with contextlib.suppress(BudgetExceeded):
        while True:
            alone.reserve(0.3, held=account.interrupted())
    together = Ledger.create(tmp_path / "together.db", "survey", cap=1.0, delta=1e-6)
    counts = compete(together.path, 0.3, 1000, "sound", delta=1e-6)
    assert sum(counts) == len(alone.budget.entries) > 7
    assert together.budget.total.within(together.budget.cap)


def test_looking_before_adding_is_caught(tmp_path):
    """The broken variant: what is left is looked up before the transaction that adds."""
    ledger = new_ledger(tmp_path, cap=3.0)
    assert compete(ledger.path, 2.0, 1, "broken") == [1, 1, 1]
    assert sum(charged(ledger)) > 3


def test_processes_can_make_one_file_together(tmp_path):
    script = "import sys\nfrom expost import Ledger\nprint()\nsys.stdin.readline()\n"
    script += "Ledger.create(sys.argv[1], sys.argv[2], cap=1.0)"
    path, names = tmp_path / "ledger.db", ["a", "b", "c"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "env": ENVIRONMENT}
    children = [subprocess.Popen([sys.executable, "-c", script, str(path), name], **pipes) for name in names]
    for child in children:
        child.stdout.readline()
    for child in children:
        child.communicate(b"\n", timeout=60)
    assert [child.returncode for child in children] == [0, 0, 0]
    assert sorted(Ledger.datasets(path)) == names


def killed(folder: Path, points: int, *hows: str) -> dict[str, list[dict]]:
    command = [sys.executable, "-m", "tests.account.killed_fits", str(folder), str(points), *hows]
    done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, check=True)
    assert done.stderr == ""
    return json.loads(done.stdout)


def understated(found: list[dict]) -> list[dict]:
    return [left for left in found if Fraction(left["total"]) < Fraction(0.25) + Fraction(left["spent"])]


def check(found: list[dict], points: int) -> None:
    assert understated(found) == []
    assert [left["status"] for left in found].count(0) == 2  # one to its end for each kind of step
    assert [left["status"] for left in found].count(-9) >= 2 * points
    for left in found:
        assert left["losses"][0] == 0.25  # nothing that was there is lost
        assert len(left["losses"]) <= 2
        assert left["total"] <= 200
        if left["drawn"]:
            assert len(left["losses"]) == 2
        elif len(left["losses"]) == 2:
            assert left["held"][1]
    # the points were spread over the whole search: before it began, while it was held, and after it was settled
    assert {(left["drawn"], left["held"][-1]) for left in found} >= {(False, False), (True, True), (True, False)}


@FORKS
def test_killed_at_any_moment_nothing_is_understated(tmp_path):
    """Of the broken variant, which books a search when it is over, the same points find something understated."""
    found = killed(tmp_path, 6, "sound", "broken")
    check(found["sound"], 6)
    wrong = understated(found["broken"])
    assert len(wrong) > 2
    assert all(left["drawn"] for left in wrong)


@FORKS
@pytest.mark.slow
def test_killed_with_a_delta(tmp_path):
    check(killed(tmp_path, 3, "delta")["delta"], 3)


@FORKS
@pytest.mark.slow
def test_killed_at_every_step(tmp_path):
    check(killed(tmp_path, 1000, "sound")["sound"], 250)
