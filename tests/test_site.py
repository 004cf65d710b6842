"""The documentation site: pages that are made of parsers, docstrings and notebooks say what those say.

The site itself is built by `make docs`, with warnings as errors, and by the slow test at the end.
"""

from __future__ import annotations

import json
import re
import runpy
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import expost
from expost.cli.command import COMMANDS, build_parser
from tests.helpers import tool

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "docs/notebooks").glob("*.ipynb"))


@pytest.fixture(scope="module")
def site():
    before = list(sys.path)
    yield tool("site")
    sys.path[:] = before


def test_every_command_and_option_is_on_the_page_of_the_command_line(site):
    page = site.cli_page()
    for name in COMMANDS:
        assert f"\n## {name}\n" in page
        part = page.split(f"\n## {name}\n")[1].split("\n## ")[0]
        for action in build_parser(name)[1]._actions:
            for option in action.option_strings:
                assert option in part or option in ("-h", "--help"), (name, option)
    assert "None" not in page
    assert "%(" not in page


def test_every_public_name_is_on_a_page_of_the_library(site):
    named = re.findall(r"^::: expost\.[\w.]+\.(\w+)$", site.api_page(), flags=re.MULTILINE)
    assert sorted([*named, "__version__"]) == sorted(expost.__all__)
    pieces = re.findall(r"^::: (expost\.[\w.]+)\.(\w+)$", site.pieces_page(), flags=re.MULTILINE)
    assert len(pieces) > 30
    assert not {name for _, name in pieces} & set(named)


def test_every_page_is_in_the_navigation():
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for path in sorted((ROOT / "docs").glob("*.md")):
        assert f"- {path.name}\n" in navigation, path.name
    for path in NOTEBOOKS:
        assert f"- notebooks/{path.stem}.md\n" in navigation


def test_links_of_pages_stay_on_the_site(site):
    """To a page of docs/, to one that is made, or to a result: what the build would complain of, without MkDocs."""
    pages = {path.name: path for path in (ROOT / "docs").glob("*.md")}
    pages |= {target: ROOT / name for name, target in site.BESIDE.items()}
    for name, path in pages.items():
        page = SimpleNamespace(file=SimpleNamespace(src_uri=name))
        text = site.on_page_markdown(path.read_text(encoding="utf-8"), page)
        for target in re.findall(r"\]\(([\w./-]+\.md)(?:#[^)]*)?\)", text):
            result = target.split("/")[0] in ("benchmarks", "experiments") and (ROOT / target).is_file()
            there = target in pages or result
            assert there or target.startswith(("reference/", "notebooks/")), (name, target)


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_run_and_say_what_they_show(path):
    """In a process of its own, as Jupyter would; the noise is seeded, so that texts are the same."""
    program = (
        "import json, sys, pathlib, matplotlib; matplotlib.use('Agg'); sys.path.insert(0, sys.argv[1]); "
        "from run_notebook import printed, read, run; print(json.dumps(printed(run(read(pathlib.Path(sys.argv[2]))))))"
    )
    command = [sys.executable, "-W", "error", "-c", program, str(ROOT / "tools"), str(path)]
    done = subprocess.run(command, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    notebooks = tool("run_notebook")
    kept = notebooks.read(path)
    assert json.loads(done.stdout) == notebooks.printed(kept)
    assert (
        sum("image/png" in output.get("data", {}) for cell in kept["cells"] for output in cell.get("outputs", ())) > 0
    )


def test_a_notebook_that_says_something_else_is_noticed():
    notebooks = tool("run_notebook")
    cell = {"cell_type": "code", "source": ["x = 1\n", "print('a')\n", "x + 1"], "outputs": []}
    made = notebooks.run({"cells": [cell, {**cell, "source": ["x"]}]})
    assert notebooks.printed(made) == ["a\n2", "1"]  # cells share names
    assert "```text\na\n```" in notebooks.as_markdown(made)
    of_its_own = ["class A:\n", "    def _repr_html_(self):\n", "        return '<p>b</p>'\n", "A()"]
    shown = notebooks.run({"cells": [{**cell, "source": of_its_own}]})
    assert '<div class="shown"><p>b</p></div>' in notebooks.as_markdown(shown)
    with pytest.raises(ZeroDivisionError):
        notebooks.run({"cells": [{**cell, "source": ["1 / 0"]}]})


SMALLER = {
    "price_of_accuracy": {"n": 2000, "runs": 1, "rates": (0.35, 0.3)},
    "rows": {"sizes": (2000, 4000), "runs": 1},
    "gradual_release": None,  # takes a minute: drawn when it changes
}


@pytest.mark.parametrize("path", sorted((ROOT / "docs/pictures").glob("*.py")), ids=lambda path: path.stem)
def test_pictures_can_be_drawn(path, tmp_path):
    settings = SMALLER.get(path.stem, {})
    if settings is None:
        pytest.skip("drawn by hand, for it takes a minute")
    picture = tmp_path / "picture.png"
    runpy.run_path(str(path))["draw"](picture, **settings)
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_the_site_builds_without_a_warning(tmp_path):
    pytest.importorskip("mkdocs", reason="the extra docs is not installed")
    command = [sys.executable, "-m", "mkdocs", "build", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    for page in (
        "index",
        "reference/cli",
        "reference/api",
        "notebooks/first_model",
        "notebooks/what_it_is_worth",
        "benchmarks/results/panel",
    ):
        assert (tmp_path / f"site/{page}.html").is_file()
    text = "".join(path.read_text(encoding="utf-8") for path in (tmp_path / "site").rglob("*.html"))
    assert not re.search(r'src="https?://', text)  # nothing is fetched
