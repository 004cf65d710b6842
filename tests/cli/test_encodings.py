"""Terminals that do not know every letter: whatever is printed there is readable, and nothing fails."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import unicodedata

import pytest

from expost import Release
from expost.cli.command import COMMANDS
from expost.cli.terminal import spelled
from tests.cli.helpers import QUICK, REGRESSION, write

ASCII, CP1252 = {"PYTHONIOENCODING": "ascii"}, {"PYTHONIOENCODING": "cp1252"}
# without the coercion that Python does of itself, C means ASCII
POSIX = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
ENVIRONMENTS = {"ascii": ASCII, "cp1252": CP1252, "C": {"LC_ALL": "C"}, "POSIX": POSIX}
ENCODINGS = {"ascii": "ascii", "cp1252": "cp1252", "C": "utf-8", "POSIX": "ascii"}

# all commands in one process: starting takes longer than what they do
SEVERAL = """
import json, sys
from expost.cli.command import main
for arguments in json.loads(sys.argv[1]):
    try:
        status = main(arguments)
    except SystemExit as stop:
        status = stop.code
    print("ended with", status)
"""


def run(environment, commands, folder):
    """Run commands; returns what each prints, decoded strictly, with its exit status, and all that stands on stderr."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("LC_", "LANG", "PYTHONIO"))}
    done = subprocess.run(
        [sys.executable, "-c", SEVERAL, json.dumps(commands)],
        env={**inherited, **ENVIRONMENTS[environment]},
        cwd=folder,
        capture_output=True,
        check=False,
    )
    encoding = ENCODINGS[environment]
    err = done.stderr.decode(encoding)
    assert done.returncode == 0, err
    assert "Traceback" not in err
    parts = re.split(r"^ended with (\d+)\n", done.stdout.decode(encoding).replace("\r", ""), flags=re.MULTILINE)
    return list(zip(map(int, parts[1::2]), parts[0::2], strict=False)), err


NAME = "Größe ≤ ε"


SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in ("C", "POSIX", "ascii")]


@pytest.mark.parametrize("environment", ["cp1252", *SLOW])
def test_help_summaries_json_and_mistakes(environment, tmp_path):
    write(tmp_path)
    lines = "\n".join(f"{i % 7},{i % 7 + i % 2}" for i in range(300))
    (tmp_path / "other.csv").write_text(f"{NAME},y\n{lines}\n", encoding="utf-8")
    (tmp_path / "schema.toml").write_text('target = "sp≤nd"\n', encoding="utf-8")
    named = ["--target", "y", "--task", "regression", "--bounds", "0", "7", "--target-bounds", "0", "8", *QUICK]
    helps = [["--help"], *([name, "--help"] for name in COMMANDS)]
    works = [
        ["fit", "data.csv", *REGRESSION, *QUICK, "--seed", "1"],
        ["fit", "other.csv", *named, "--seed", "1"],
        ["fit", "other.csv", *named, "--seed", "1", "--json"],
        ["example", "survey", "--rows", "5"],
        ["demo"],
        ["report", "data-spend.json"],
    ]
    mistakes = [
        ["fit", "data.csv", *REGRESSION, *QUICK, "--columns", "Größe ≤ 1"],
        ["check", "data.csv", "--schema", "schema.toml"],
        ["init", "data.csv", "--output", "schema.toml"],
        ["example", "ε"],
        ["fit", "≤.csv"],
    ]
    said, err = run(environment, [*helps, *works, *mistakes], tmp_path)
    knows = ENCODINGS[environment] == "utf-8"
    for status, text in said[: len(helps)]:
        assert status == 0
        assert text.startswith("usage: expost")
    assert ("ℓ₁ norm" if knows else "l1 norm") in "".join(text for _, text in said[: len(helps)])
    first, other, as_json, example, demo, report = said[len(helps) : len(helps) + len(works)]
    assert [first[0], other[0], as_json[0], example[0], report[0]] == [0, 0, 0, 0, 0]
    assert demo[0] in (0, 3)
    for _, text in (first, other, demo):
        assert ("ε = " if knows else "epsilon = ") in text
    release = Release.from_json(as_json[1])  # no letter is lost where it is escaped
    assert release.parameters["columns"] == (NAME,)
    assert [status for status, _ in said[-len(mistakes) :]] == [2] * len(mistakes)
    assert err.count("expost") >= len(mistakes)


def test_every_letter_of_the_package_has_a_reading():
    """A letter that is printed is spelled out; escapes are for those that callers bring along."""
    for letter in "εδγλθαℓ₁₂²·×−–…≤≥≈∞√‖ᵀ½":
        assert "\\" not in spelled(letter), letter
    for letter in "εθλΔ":
        assert spelled(letter).isalpha()
    assert spelled("ö") == "\\xf6"
    for code in range(0x80, 0x3000):
        text = spelled(chr(code))
        assert text.isascii(), unicodedata.name(chr(code), hex(code))
        assert '"' not in text
