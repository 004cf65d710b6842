"""Build what is published, twice, and say what is in it: ``make release``; or look up advisories: ``make audit-deps``.

``python tools/release.py`` exports the last commit to two folders, builds an sdist and a wheel in each (another folder,
umask and time zone; ``SOURCE_DATE_EPOCH`` is the time of the commit) and compares them byte by byte. The wheel has to
hold what is in ``src/``, no more and no less. It is then installed into an empty environment, of which a bill of
materials is written (CycloneDX), and ``SHA256SUMS`` over all of it. In the end, or alone with ``--advisories``, known
vulnerabilities of all that ``make test`` installs are looked up. What could not be looked up is named, and is no pass:
the exit status is 0 only if every package was.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import venv
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
HERE = Path(sys.executable).parent  # of the tools of releasing
#: What may differ between two machines and must not tell: a folder's name, who may read files, the time zone.
MACHINES = (("a", 0o022, "UTC"), ("another folder", 0o077, "Asia/Kathmandu"))


def said(*command: str | Path, **options: Any) -> str:
    """Run a command and return what it printed; one that fails ends this one, with what it complained of."""
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False, **options)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")
    return done.stdout.strip()


def built(base: Path, name: str, umask: int, zone: str, epoch: str) -> Path:
    """Build the last commit in a folder of its own; returns the folder of what came of it."""
    source, out = base / name, base / f"{name}, built"
    source.mkdir()
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout
    subprocess.run(["tar", "-x", "-C", source], input=archive, check=True, umask=umask)
    environment = {**os.environ, "SOURCE_DATE_EPOCH": epoch, "TZ": zone}
    said(sys.executable, "-m", "build", "--no-isolation", "--outdir", out, source, env=environment, umask=umask)
    return out


def differences(first: Path, second: Path) -> list[str]:
    """Return the names of files that are in one folder only, or not the same bytes in both."""
    names = {path.name for folder in (first, second) for path in folder.iterdir()}
    content = [{path.name: path.read_bytes() for path in folder.iterdir()} for folder in (first, second)]
    return sorted(name for name in names if content[0].get(name) != content[1].get(name))


def misplaced(wheel: Path, tracked: Iterable[str]) -> list[str]:
    """Return the names of files that are in a wheel only, but for what describes it, or in ``src/`` only."""
    described = f"{'-'.join(wheel.name.split('-')[:2])}.dist-info/"
    with zipfile.ZipFile(wheel) as content:
        packed = {name for name in content.namelist() if not name.startswith(described)}
    return sorted(packed ^ {name.removeprefix("src/") for name in tracked})


def materials(wheel: Path, out: Path, base: Path, epoch: str) -> int:
    """Write the bill of materials of an environment with nothing but the wheel; returns how many packages it brings."""
    empty = base / "installed"
    venv.create(empty, with_pip=False)
    python = empty / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    said(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", wheel)
    options = ["--pyproject", ROOT / "pyproject.toml", "--mc-type", "library", "--output-reproducible", "-o", out]
    said(HERE / "cyclonedx-py", "environment", *options, python, env={**os.environ, "SOURCE_DATE_EPOCH": epoch})
    return len(json.loads(out.read_text(encoding="utf-8"))["components"])


def sums(folder: Path) -> str:
    """Return the SHA-256 of every file in a folder, as ``sha256sum --check`` reads them."""
    files = sorted(path for path in folder.iterdir() if path.name != "SHA256SUMS")
    return "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files)


def release(folder: Path) -> None:
    """Write everything that is published into a folder."""
    if said("git", "status", "--porcelain", cwd=ROOT):
        sys.exit("what is built is the last commit, and there are changes beside it: commit them, or put them aside")
    commit, epoch = said("git", "log", "-1", "--format=%H %ct", cwd=ROOT).split()
    with tempfile.TemporaryDirectory() as temporary:
        base = Path(temporary)
        first, second = (built(base, *machine, epoch) for machine in MACHINES)
        if wrong := differences(first, second):
            sys.exit(f"two builds of {commit} differ in {', '.join(wrong)}; nothing was written")
        tracked = said("git", "ls-tree", "-r", "--name-only", "HEAD", "src", cwd=ROOT).splitlines()
        if wrong := misplaced(next(first.glob("*.whl")), tracked):
            sys.exit(f"the wheel and src/ do not have the same files: {', '.join(wrong)}; nothing was written")
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(first, folder)
        (wheel,) = folder.glob("*.whl")
        bill = folder / f"{wheel.name.split('-py3')[0]}.cdx.json"
        many = materials(wheel, bill, base, epoch)
    (folder / "SHA256SUMS").write_text(sums(folder), encoding="utf-8")
    print(f"commit {commit}, SOURCE_DATE_EPOCH {epoch}: two builds are the same, byte for byte")
    print(f"{bill.name} names {many} packages that the wheel brings, as they are installed today")
    print(sums(folder), end="")


def looked_up(answer: dict[str, Any]) -> tuple[list[str], list[str], int]:
    """Return what pip-audit found, what it could not look up, and how many packages it was asked about.

    Examples
    --------
    >>> known = {"name": "a", "version": "1", "vulns": [{"id": "PYSEC-1", "fix_versions": ["2"]}]}
    >>> looked_up({"dependencies": [known, {"name": "b", "skip_reason": "not found"}, {"name": "c", "vulns": []}]})
    (['a 1: PYSEC-1 (mended in 2)'], ['b'], 3)
    """
    packages = answer["dependencies"]
    found = [
        f"{one['name']} {one['version']}: {known['id']} (mended in {', '.join(known['fix_versions']) or 'none'})"
        for one in packages
        for known in one.get("vulns", ())
    ]
    return found, [one["name"] for one in packages if "skip_reason" in one], len(packages)


def advisories(python: Path) -> int:
    """Look up known vulnerabilities of what is installed beside a Python; returns the exit status."""
    frozen = said(python, "-m", "pip", "freeze", "--exclude-editable")
    with tempfile.TemporaryDirectory() as folder:
        listed, answer = Path(folder, "requirements.txt"), Path(folder, "answer.json")
        listed.write_text(frozen + "\n", encoding="utf-8")
        command = [HERE / "pip-audit", "--progress-spinner", "off", "--disable-pip", "--no-deps", "-r", listed]
        options = ["--format", "json", "--output", answer]
        done = subprocess.run([*map(str, [*command, *options])], capture_output=True, text=True, check=False)
        asked = len(frozen.splitlines())
        if not answer.exists() or not answer.read_text(encoding="utf-8").strip():
            why = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
            print(f"NOT AUDITED: no advisory of {asked} packages could be read ({why})")
            return 1
        found, unknown, asked = looked_up(json.loads(answer.read_text(encoding="utf-8")))
    print(*(f"vulnerable: {text}" for text in found), sep="\n", end="\n" if found else "")
    if unknown:
        which = "any" if len(unknown) == asked else f"{len(unknown)} ({', '.join(unknown)})"
        print(
            f"NOT AUDITED: the advisory database did not answer for {which} of {asked} packages; nothing is known here"
        )
    else:
        print(f"{asked} packages looked up, {len(found)} known vulnerabilities")
    return int(bool(found or unknown))


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what was asked for; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--advisories", action="store_true", help="only look up known vulnerabilities")
    parser.add_argument("--of", type=Path, default=ROOT / ".venv/bin/python", help="the Python of what is looked up")
    stated = parser.parse_args(arguments)
    if stated.advisories:
        return advisories(stated.of)
    release(ROOT / "dist")
    if status := advisories(stated.of):
        print("dist/ is complete; what failed is the line about advisories above, and make audit-deps tries that again")
        return status
    return 0


if __name__ == "__main__":
    sys.exit(main())
