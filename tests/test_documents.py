"""The documents: what they refer to exists, what they show runs, and a reader can follow them.

Each check is paired with a text that it has to complain about.
"""

from __future__ import annotations

import ast
import io
import json
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from expost.release.words import suspicion
from expost.shown import percent

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
PROOFS, SYMBOLS, CONTRIBUTING = ROOT / "docs/proofs.md", ROOT / "docs/symbols.md", ROOT / "CONTRIBUTING.md"
LONGEST_LINE, LONGEST_CELL, LARGEST_PICTURE = 100, 200, 200_000
KEY = re.compile(r"\b[ABC][1-9][0-9]?\b")
KEYS = [*(f"A{k}" for k in range(1, 9)), *(f"B{k}" for k in range(1, 13)), *(f"C{k}" for k in range(1, 8))]

each_document = pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)


# --- reading a document ----------------------------------------------------------------------------------------------


def prose(text: str) -> Iterator[str]:
    """Yield the lines outside code blocks."""
    inside = False
    for line in text.splitlines():
        if line.lstrip().startswith("```"):
            inside = not inside
        elif not inside:
            yield line


def blocks(text: str) -> Iterator[tuple[str, str]]:
    """Yield (language, code) of every code block."""
    yield from re.findall(r"^```(\w*)\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)


def paragraphs(text: str) -> Iterator[str]:
    """Yield paragraphs, table rows and headings, each as one line."""
    kept: list[str] = []
    for line in [*prose(text), ""]:
        if kept and (not line.strip() or line.startswith("|") or re.match(r"\s*[-*] ", line)):
            yield " ".join(kept)
            kept = []
        if line.strip():
            kept.append(line.strip())


def sections(text: str) -> dict[str, str]:
    """Return what stands under each heading of the second rank."""
    parts = re.split(r"^## (.+)$", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


# --- lengths ---------------------------------------------------------------------------------------------------------


def too_long(text: str) -> list[str]:
    """Return prose lines and table cells that are too long. Where links lead to does not count."""
    found = []
    for line in prose(text):
        shown = re.sub(r"!\[[^\]]*\]\([^)]*\)|\]\([^)]*\)|https?://\S+", "", line)
        if line.startswith("|"):
            cells = re.split(r"(?<!\\)\|", line.strip().strip("|"))
            found += [cell.strip() for cell in cells if len(cell.strip()) > LONGEST_CELL]
        elif len(shown) > LONGEST_LINE:
            found.append(line)
    return found


@each_document
def test_lines_are_short(path):
    assert too_long(path.read_text(encoding="utf-8")) == []


def test_long_lines_and_cells_are_noticed():
    assert too_long("a" * 101) == ["a" * 101]
    assert too_long(f"| short | {'b' * 201} |") == ["b" * 201]
    assert too_long(f"```\n{'c' * 300}\n```\n[d]({'e' * 300})\n| {'f' * 200} |") == []


# --- numbers ----------------------------------------------------------------------------------------------------------


def unsaid(text: str, phrases: list[str]) -> list[str]:
    """Return the phrases, computed numbers in them, that a document does not have."""
    words = " ".join(text.split())
    return [phrase for phrase in phrases if phrase not in words]


@pytest.mark.parametrize("script", ["at_delta", "ex_post"])
def test_numbers_are_what_the_script_computes(script):
    stated = runpy.run_path(str(ROOT / f"docs/{script}.py"))["stated"]()
    assert stated
    for name, phrases in stated.items():
        text = (ROOT / "docs" / name).read_text(encoding="utf-8")
        assert unsaid(text, phrases) == []
        changed = re.sub(r"[0-9](?![0-9.])", "9X", text)  # the last digit of every number
        assert unsaid(changed, phrases) == phrases


def test_a_range_that_is_wider_than_computed_is_noticed():
    stated = runpy.run_path(str(ROOT / "docs/at_delta.py"))["stated"]()
    text = (ROOT / "docs/delta.md").read_text(encoding="utf-8")
    changed = re.sub(r"([0-9.]+)(\s+to\s+)([0-9.]+)", r"\g<1>\g<2>9\g<3>", text)  # the upper end of every range
    assert unsaid(changed, stated["delta.md"]) == stated["delta.md"]


def test_what_a_loss_means_is_what_the_readme_says():
    stated = [percent(suspicion(before, 0.25)) for before in (0.01, 0.1, 0.5)]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert unsaid(readme, [f"at most {number}" for number in stated]) == []
    assert unsaid(readme, [f"at most {percent(suspicion(0.01, 0.3))}"]) != []


def test_the_readme_uses_words_that_everyone_knows():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [word for word in ("λ", "γ", "ℓ₁", "θ", "shape blocks", "excess_risk=") if word in readme] == []


# --- references ------------------------------------------------------------------------------------------------------


@cache
def names_in(path: Path) -> frozenset[str]:
    """Return the functions and classes of a file, those inside classes too."""
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, kinds))


def missing(text: str) -> list[str]:
    """Return files named in a text that do not exist, and tests that are not in the file named before them."""
    wrong = []
    for paragraph in paragraphs(text):
        file = None
        for span in re.findall(r"`([^`]+)`", paragraph):
            if re.fullmatch(r"(src|tests|tools|benchmarks|docs|experiments|examples)/[\w./-]*", span):
                file = ROOT / span
                if not file.exists():
                    wrong.append(span)
                    file = None
            elif re.fullmatch(r"(test_|Test)\w+", span) and (
                file is None or file.suffix != ".py" or span not in names_in(file)
            ):
                wrong.append(span)
    return wrong


@each_document
def test_files_and_tests_exist(path):
    assert missing(path.read_text(encoding="utf-8")) == []


def test_missing_files_and_tests_are_noticed():
    assert missing("*Proof*: `src/expost/noise/paths.py`.") == ["src/expost/noise/paths.py"]
    here = "`tests/test_documents.py`"
    assert missing(f"{here}: `test_missing_files_and_tests_are_noticed`, `test_made_up`") == ["test_made_up"]
    assert missing("`test_missing_files_and_tests_are_noticed`") != []  # in no file


def anchors(text: str) -> set[str]:
    """Return the names that headings are linked by."""
    headings = [line.lstrip("#").strip() for line in prose(text) if line.startswith("#")]
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(path: Path, text: str) -> list[str]:
    """Return links that lead to no file, or to no heading."""
    wrong = []
    for target in re.findall(r"\]\(([^)\s]+)\)", "\n".join(prose(text))):
        if target.startswith(("http://", "https://")):
            continue
        name, _, anchor = target.partition("#")
        file = path.parent / name
        if name.startswith("reference/") and file.parent.parent == ROOT / "docs":
            continue  # made of parsers and docstrings when the site is built, which checks the link
        if name and not file.exists():
            wrong.append(target)
            continue
        there = file.read_text(encoding="utf-8") if name and anchor else text
        # the site drops letters that are not ASCII from an anchor, others keep them
        if anchor and (anchor not in anchors(there) or not anchor.isascii()):
            wrong.append(target)
    return wrong


@each_document
def test_links_lead_somewhere(path):
    assert broken_links(path, path.read_text(encoding="utf-8")) == []


def test_broken_links_are_noticed():
    text = "# A heading, here\n# At δ\n[a](b.md) [c](#a-heading-here) [d](#elsewhere) [e](README.md#what-you-get)"
    text += " [f](#at-δ)"
    assert broken_links(ROOT / "made_up.md", text) == ["b.md", "#elsewhere", "#at-δ"]


# --- proofs ----------------------------------------------------------------------------------------------------------


def written(path: Path) -> str:
    """Return the docstrings, other strings on their own, and comments of a file."""
    text = path.read_text(encoding="utf-8")
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    found = [token.string for token in tokens if token.type == tokenize.COMMENT]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            found.append(node.value.value)
    return "\n".join(found)


SOURCES = sorted((ROOT / "src").rglob("*.py"))
PROVED = [path for path in SOURCES if "∎" in written(path) or re.search(r"\bProof\b", written(path))]


@each_document
def test_no_proof_stands_in_a_document(path):
    """Its one home is beside the code."""
    assert "∎" not in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", PROVED, ids=lambda path: path.relative_to(ROOT / "src/expost").as_posix())
def test_every_proof_is_on_the_map(path):
    assert f"`{path.relative_to(ROOT).as_posix()}`" in PROOFS.read_text(encoding="utf-8")


def test_every_entry_of_the_map_says_why_and_where():
    found = re.split(r"^### (.+)$", PROOFS.read_text(encoding="utf-8"), flags=re.MULTILINE)
    entries = dict(zip(found[1::2], found[2::2], strict=True))
    assert len(entries) > 30
    assert len(PROVED) > 20
    for name, entry in entries.items():
        said = " ".join(entry.split("\n## ")[0].split())
        assert "*Why.*" in said, name
        assert "*Proof*: `src/expost/" in said, name
        assert re.search(r"`tests/\w", said) or "No test of its own yet" in said, name


# --- keys ------------------------------------------------------------------------------------------------------------


def defined() -> list[str]:
    """Return the keys that the page of symbols defines."""
    return re.findall(r"^\| ([ABC]\d+) \|", SYMBOLS.read_text(encoding="utf-8"), flags=re.MULTILINE)


def test_every_key_is_defined_once():
    assert defined() == KEYS


def test_keys_can_be_looked_up():
    unknown = {}
    for path in [*DOCUMENTS, *SOURCES]:
        text = written(path) if path.suffix == ".py" else "\n".join(prose(path.read_text(encoding="utf-8")))
        unknown[path.relative_to(ROOT).as_posix()] = sorted(set(KEY.findall(text)) - set(defined()))
    assert {name: keys for name, keys in unknown.items() if keys} == {}


def test_unknown_keys_are_noticed(tmp_path):
    source = tmp_path / "made_up.py"
    source.write_text('"""By theory A2 with B13."""\nA9 = "C8"  # and C9\n', encoding="utf-8")
    assert set(KEY.findall(written(source))) - set(defined()) == {"B13", "C9"}


# --- the picture -----------------------------------------------------------------------------------------------------


def test_pictures_are_small_and_have_their_scripts():
    pictures = list((ROOT / "docs/pictures").glob("*.png"))
    assert pictures
    for picture in pictures:
        assert picture.stat().st_size < LARGEST_PICTURE
        assert picture.with_suffix(".py").is_file()
        assert any(f"](pictures/{picture.name})" in path.read_text(encoding="utf-8") for path in DOCUMENTS)


# --- what is shown about contributing --------------------------------------------------------------------------------

ADDITIONS = {"A loss": 2, "A mechanism": 2, "A stopping rule": 2, "A goal with its flag": 2}
TRY = "# try it\n"


def patched(text: str, change: str) -> str:
    """Apply a diff: lines with a space or a minus are found in order, those with a plus go behind the last found."""
    lines, place, ahead = text.splitlines(), 0, []
    for line in change.splitlines():
        mark, content = line[:1], line[1:]
        if mark == "+":
            ahead.append(content)
            continue
        lines[place:place] = ahead
        place, ahead = place + len(ahead), []
        try:
            place = lines.index(content, place)
        except ValueError:
            raise AssertionError(f"no such line any more: {content!r}") from None
        if mark == "-":
            del lines[place]
        else:
            place += 1
    lines[place:place] = ahead
    return "\n".join(lines) + "\n"


def additions(text: str) -> tuple[dict[str, str], dict[str, str], list[tuple[str, str]]]:
    """Return the new files, the changes to old ones, and what to try, of one section."""
    new, changed, tried = {}, {}, []
    for language, code in blocks(text):
        first, _, rest = code.partition("\n")
        if code.startswith(TRY):
            tried.append((language, rest))
        elif language == "diff":
            changed[first.removeprefix("--- ")] = rest
    for example in re.findall(r"`(examples/additions/\w+\.py)`", text):
        (table,) = changed  # the new file goes beside the table that it is entered in
        new[str(Path(table).with_name(Path(example).name))] = (ROOT / example).read_text(encoding="utf-8")
    return new, changed, tried


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    """A copy of the package with everything added that the page shows."""
    folder = tmp_path_factory.mktemp("house")
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ADDITIONS:
        new, changed, _ = additions(sections(CONTRIBUTING.read_text(encoding="utf-8"))[name])
        for path, code in new.items():
            assert not (folder / path).exists()
            (folder / path).write_text(code, encoding="utf-8")
        for path, change in changed.items():
            old = (folder / path).read_text(encoding="utf-8")
            (folder / path).write_text(patched(old, change), encoding="utf-8")
    return folder


@pytest.mark.parametrize("name", ADDITIONS)
def test_additions_touch_few_files(name):
    text = CONTRIBUTING.read_text(encoding="utf-8")
    new, changed, tried = additions(sections(text)[name])
    assert len(new) == 1
    assert tried
    count = len(new) + len(changed)
    assert count <= ADDITIONS[name]
    assert f"| [{name[0].lower()}{name[1:]}](#{name.lower().replace(' ', '-')}) | {count} |" in text


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if "flag" in name else []) for name in ADDITIONS]
)
def test_additions_work(house, name):
    """Through the doors that users have: estimators, searches and the command line."""
    for language, code in additions(sections(CONTRIBUTING.read_text(encoding="utf-8"))[name])[2]:
        command = [sys.executable, "-c", code]
        if language == "sh":
            program, *given = shlex.split(code.replace("\\\n", " "))
            assert program == "expost"
            command = [sys.executable, "-m", "expost.cli", *given]
        done = subprocess.run(
            command,
            cwd=house,
            env={**os.environ, "PYTHONPATH": str(house / "src"), "PYTHONIOENCODING": "utf-8"},
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        assert done.returncode == 0, done.stderr
        for said in re.findall(r"^# prints: (.*)$", code, flags=re.MULTILINE):
            assert done.stdout.splitlines()[-1] == said
        if language == "sh":
            assert re.search(r"^label .* {2}released$", done.stdout, flags=re.MULTILINE)


ASKED_EVERYWHERE = """
import contextlib, io, json
import numpy as np
from expost import AccuracyFirstModel, Schema, plan
from expost.cli import main
from expost.goals import MissedPositives

columns = {"age": {"bounds": [0, 10]}, "dose": {"bounds": [0, 10]}}
schema = Schema.from_dict({"target": "label", "classes": ["well", "ill"], "columns": columns})
rng = np.random.default_rng(0)
X = rng.uniform(0, 10, size=(20_000, 2))
y = np.where(X @ [2.0, -1.0] + rng.logistic(size=20_000) > 5, "ill", "well")
release = AccuracyFirstModel(schema, MissedPositives(0.08), random_state=0).fit(
    {"age": X[:, 0], "dose": X[:, 1], "label": y}
).release_
with open("schema.toml", "w") as file:
    file.write(schema.to_toml())
with open("release.json", "w") as file:
    file.write(release.to_json())

def said(*arguments):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert main(list(arguments)) == 0, arguments
    return out.getvalue()

option = ["--missed-positives", "0.08"]
priced = json.loads(said("plan", "schema.toml", "--rows", "20000", *option, "--worlds", "20", "--json"))
at_delta = plan(schema, MissedPositives(0.08), rows=20_000, delta=1e-6, worlds=2).goals[0]
arrays = plan(goals=MissedPositives(0.08), rows=4000, task="classification", columns=2, worlds=2).goals[0]
MissedPositives.offered = (0.2, 0.1)
said("explore", "schema.toml", "--release", "release.json", "--worlds", "2", "--no-open", "--output", "page.html")
said("report", "release.json", "--output", "report.html")
with open("page.html") as file:
    page = json.loads(file.read().split('id="data">')[1].split("</script>")[0])
with open("report.html") as file:
    report = file.read()
print(json.dumps({
    "paid": release.epsilon, "priced": priced["goals"][0], "at_delta": at_delta.cheapest.typical,
    "arrays": arrays.cheapest.typical, "page": page, "report": report,
    "text": said("plan", "schema.toml", "--rows", "20000", *option, "--worlds", "3"),
}))
"""


@pytest.mark.slow
def test_a_goal_that_is_added_is_known_everywhere(house, tmp_path):
    """It is priced by plans of tables, at a δ and of arrays, has its place on the page, and its words in the report."""
    done = subprocess.run(
        [sys.executable, "-c", ASKED_EVERYWHERE],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(house / "src"), "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    (way,) = told["priced"]["methods"]
    assert told["priced"]["option"] == "--missed-positives 0.08"
    assert told["priced"]["unreachable"] is None
    assert way["low"] <= told["paid"] <= way["high"]
    assert 0 < told["at_delta"] < 10 * way["typical"]
    assert 0 < told["arrays"] < 2  # within the default cap
    assert "missed positives ≤ 0.08" in told["text"]
    assert "always giving the negative label misses all positive rows" in " ".join(told["text"].split())
    page = told["page"]
    (part,) = page["goal"]["parts"]
    assert (part["flag"], page["goal"]["values"]) == ("--missed-positives", [0.2, 0.1])
    assert page["release"]["value"] == 0.08
    assert all(product is not None for curve in page["curves"][0][1] for product in curve["products"])
    assert any(trace is not None and trace["steps"][-1]["at_worst"] <= 0.2 for trace in page["traces"])
    for said in ("missed positives at most 0.08", "always giving the negative label misses all positive rows"):
        assert said in told["report"]


def test_additions_are_what_runs(house):
    """Without them the package has none of it."""
    for name in ("log_cosh", "weighted_moments", "independent_tests", "missed_positives"):
        assert len(list((house / "src").rglob(f"{name}.py"))) == 1
        assert list((ROOT / "src").rglob(f"{name}.py")) == []


def test_changes_that_no_longer_fit_are_noticed():
    assert patched("a\nb\nc\n", " a\n+x\n-b\n+y") == "a\nx\ny\nc\n"
    assert patched("a\nb\n", "+x\n b\n+y") == "x\na\nb\ny\n"
    with pytest.raises(AssertionError, match="no such line"):
        patched("a\n", "-b")
