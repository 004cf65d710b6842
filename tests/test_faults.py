"""The campaign of kills finds what is planted for it: a ledger that forgets, and files that are written in place."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked and killed")

# some kills before calls that change files, evenly spread over those of a fit: of the package, and of broken ones
PLANTED = """
import contextlib, io, json, sys, tempfile
from pathlib import Path

sys.path[:0] = sys.argv[1:]
import faults
from expost import whole
from tests.account.killed_fits import forgetful

@contextlib.contextmanager
def in_place(path, **_):
    whole = io.BytesIO()
    yield whole
    with open(path, "wb", buffering=0) as file:
        for place in range(0, len(whole.getvalue()), 256):
            file.write(whole.getvalue()[place : place + 256])

def some(*numbers):
    return [faults.run_case(0, "fit", number, 6, base, usual) for number in numbers]

with tempfile.TemporaryDirectory() as folder:
    base, found = Path(folder), {}
    faults.prepare()
    usual = faults.material(base, ["fit"])
    found["calls"], found["sound"], usually = usual["fit"][0], some(0, 4), whole.whole_file
    whole.whole_file = in_place
    found["in place"] = some(4)
    whole.whole_file = usually
    forgetful()
    found["forgetful"] = some(0, 2)
print(json.dumps(found))
"""


def script(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *command], capture_output=True, text=True, check=False, timeout=600)


def test_what_is_planted_is_found():
    done = script("-c", PLANTED, str(ROOT / "tools"), str(ROOT), str(ROOT / "src"))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    if not found["calls"]:
        pytest.skip("system calls of other processes cannot be counted here")
    assert [case["killed"] for case in (*found["sound"], *found["in place"])] == [1, 1, 1]
    said = {name: " ".join(text for case in found[name] for text in case["found"]) for name in found if name != "calls"}
    assert said["sound"] == ""
    assert "is half a file, or unknown" in said["in place"]
    assert "noise was drawn, and nothing is charged for it" in said["forgetful"]


@pytest.mark.slow
def test_a_sample_of_the_campaign():
    """`make faults` runs ten times as many."""
    done = script(str(ROOT / "tools/faults.py"), "--cases", "50", "--seed", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^5\d cases, seed 1, 0 kinds of findings", done.stdout, re.MULTILINE)  # shares are rounded
