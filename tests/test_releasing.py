"""What is published is built by two tools, which have to notice what they are for."""

from __future__ import annotations

import hashlib
import re
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from tests.helpers import tool

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_oldest_versions_are_those_that_are_stated():
    found = tool("oldest").oldest(PROJECT)
    for stated in (*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["dask"]):
        name, version = re.fullmatch(r"([\w-]+)(?:\[.*\])?>=([\d.]+)", stated).groups()
        assert found[name] == version
    assert {"pandas", "matplotlib", "pytest"} <= set(found)  # of extras, and of extras that those name
    assert not {"mypy", "ruff", "expost"} & set(found)


@pytest.mark.parametrize("stated", ["numpy", "numpy<3", "numpy>=2.0,<3"])
def test_a_bound_that_is_not_stated_is_noticed(stated):
    broken = {**PROJECT, "dependencies": [stated]}
    with pytest.raises(ValueError, match="which version is the oldest"):
        tool("oldest").oldest(broken)


def test_builds_that_differ_are_noticed(tmp_path):
    differences = tool("release").differences
    folders = tmp_path / "first", tmp_path / "second"
    for folder in folders:
        folder.mkdir()
        (folder / "one.whl").write_bytes(b"same")
    assert differences(*folders) == []
    (folders[0] / "one.whl").write_bytes(b"some")
    (folders[1] / "two.tar.gz").touch()
    assert differences(*folders) == ["one.whl", "two.tar.gz"]


def test_a_wheel_with_more_or_less_than_the_package_is_noticed(tmp_path):
    misplaced = tool("release").misplaced
    wheel = tmp_path / "expost-0.2.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as packed:
        for name in ("expost/a.py", "tests/b.py", "expost-0.2.0.dist-info/METADATA"):
            packed.writestr(name, "")
    assert misplaced(wheel, ["src/expost/a.py", "src/expost/report.css"]) == ["expost/report.css", "tests/b.py"]
    assert misplaced(wheel, ["src/expost/a.py", "src/tests/b.py"]) == []


def test_sums_are_those_of_the_files(tmp_path):
    (tmp_path / "one.whl").write_bytes(b"content")
    (tmp_path / "SHA256SUMS").write_text("of before")
    assert tool("release").sums(tmp_path) == f"{hashlib.sha256(b'content').hexdigest()}  one.whl\n"


ANSWERS = {
    "nothing known": ('{"dependencies": [{"name": "a", "version": "1", "vulns": []}]}', 0, "1 packages looked up, 0"),
    "vulnerable": (
        '{"dependencies": [{"name": "a", "version": "1", "vulns": [{"id": "PYSEC-1", "fix_versions": []}]}]}',
        1,
        "vulnerable: a 1: PYSEC-1",
    ),
    "not looked up": ('{"dependencies": [{"name": "a", "skip_reason": "not found"}]}', 1, "NOT AUDITED"),
    "no network": ("", 1, "NOT AUDITED: no advisory of 1 packages could be read (no route)"),
}


@pytest.mark.parametrize("answer", ANSWERS)
def test_what_was_not_looked_up_is_no_pass(answer, tmp_path, monkeypatch, capsys):
    """The tool that asks the database ends with 0 where it was answered for no package."""
    release = tool("release")
    text, status, said = ANSWERS[answer]
    asks = tmp_path / "pip-audit"
    asks.write_text(
        f"#!{sys.executable}\nimport sys\nopen(sys.argv[-1], 'w').write({text!r})\nprint('no route', file=sys.stderr)\n"
    )
    asks.chmod(0o755)
    monkeypatch.setattr(release, "HERE", tmp_path)
    monkeypatch.setattr(release, "said", lambda *_: "a==1")
    assert release.advisories(Path(sys.executable)) == status
    assert said in capsys.readouterr().out


@pytest.mark.parametrize("answer", ANSWERS)
def test_what_is_published_is_complete_before_advisories_are_asked_for(answer, tmp_path, monkeypatch, capsys):
    """A release where no database answers has everything but that, and says so."""
    release = tool("release")
    _, status, _ = ANSWERS[answer]

    def asked(_: Path) -> int:
        assert (tmp_path / "dist/SHA256SUMS").read_text() == release.sums(tmp_path / "dist") != ""
        return status

    def built(base: Path, name: str, *_: object) -> Path:
        with zipfile.ZipFile(base / "expost-0-py3-none-any.whl", "w") as wheel:
            wheel.writestr("expost/a.py", "")
        return base

    def described(_wheel: Path, out: Path, *_: object) -> int:
        out.write_text("{}")
        return 1

    answers = {"status": "", "log": "0123 1", "ls-tree": "src/expost/a.py"}
    monkeypatch.setattr(release, "ROOT", tmp_path)
    monkeypatch.setattr(release, "said", lambda _, command, *rest, **__: answers[command])
    monkeypatch.setattr(release, "built", built)
    monkeypatch.setattr(release, "materials", described)
    monkeypatch.setattr(release, "advisories", asked)
    assert release.main([]) == status
    assert ("dist/ is complete" in capsys.readouterr().out) == bool(status)
    assert {path.name for path in (tmp_path / "dist").iterdir()} == {
        "SHA256SUMS",
        "expost-0-py3-none-any.whl",
        "expost-0.cdx.json",
    }
