"""The report and the registry's entry, through the command line: what they say, and what they leave blank."""

from __future__ import annotations

import json

import pytest

from expost.account.account import Account
from expost.account.composition import Curve
from tests.cli.helpers import call
from tests.release.model_helpers import LABELS, released


@pytest.fixture
def made(tmp_path):
    path = tmp_path / "visits-y.json"
    path.write_text(released(LABELS, noise_spread=0.5).to_json())
    return path


def words(path) -> str:
    return " ".join(path.read_text(encoding="utf-8").split())


def test_what_is_not_stated_is_blank(made, tmp_path, capsys):
    said = call(capsys, "report", made)
    assert said.status == 0, said.err
    assert "blank, to fill in: --data-set, --purpose, --recipient, --contact" in said.out
    page = words(made.with_suffix(".html"))
    assert page.count("to fill in") == 4
    for line in ("Differential privacy limits", "Whoever signs affirms", "Stated, not checked"):
        assert line in page
    project = tmp_path / "project.toml"
    project.write_text('data_set = "visits 2026"\npurpose = "staff <plans>"\nrecipient = "the city"\n')
    said = call(capsys, "report", made, "--project", project, "--recipient", "the board", "--force")
    page = words(made.with_suffix(".html"))
    assert "blank, to fill in: --contact" in said.out
    assert page.count("to fill in") == 1
    assert "visits 2026" in page
    assert "staff &lt;plans&gt;" in page
    assert "the board" in page  # a flag takes precedence
    assert "the city" not in page


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('purpos = "x"', "purpos is no field of a project"),
        ("purpose = 3", "purpose must be a text"),
        (f'purpose = "{"x" * 700}"', "purpose must be a text of at most 600"),
        ('sector = "Fun"', "sector must be one of Technology"),
        ("purpose = ", "not TOML: "),
    ],
)
def test_a_project_file_is_checked_field_by_field(made, tmp_path, capsys, text, why):
    project = tmp_path / "project.toml"
    project.write_text(text)
    said = call(capsys, "report", made, "--project", project)
    assert said.status == 2
    assert why in said.err
    assert not made.with_suffix(".html").exists()
    assert "there is no file" in call(capsys, "report", made, "--project", tmp_path / "none.toml").err


def test_categories_are_shown_against_one_of_them(made, capsys):
    release = released(LABELS, noise_spread=0.5)
    coef = dict(zip(release.parameters["columns"], release.parameters["coef"], strict=True))
    assert call(capsys, "report", made, "--reference", "town=Oslo").status == 0
    page = words(made.with_suffix(".html"))
    block = page[page.index("<h3><bdi>town") : page.index("<h3><bdi>heating")]
    assert "<td><bdi>Oslo</bdi></td>" in block
    difference = coef["town=Bern"] - coef["town=Oslo"]
    assert f"{difference:.3g}".replace("-", "−") in block
    for wrong, why in (
        ("town=Paris", "no category of"),
        ("town", "COL=CATEGORY"),
        ("age=3", "no column of categories"),
    ):
        said = call(capsys, "report", made, "--reference", wrong, "--force")
        assert said.status == 2
        assert why in said.err
    assert "more than once" in call(capsys, "report", made, *["--reference", "town=Oslo"] * 2, "--force").err


def read(path) -> dict[str, object]:
    """Read the subset of YAML that is written: nested names, texts and numbers as JSON, lists of texts, remarks."""
    root: dict[str, object] = {}
    levels: list[tuple[int, object]] = [(-1, root)]
    for line in path.read_text(encoding="utf-8").splitlines():
        bare = line.strip().removesuffix("  # to fill in")
        if bare.startswith("#"):
            continue
        depth = len(line) - len(line.lstrip())
        while levels[-1][0] >= depth:
            levels.pop()
        inside = levels[-1][1]
        if bare.startswith("- "):
            inside.setdefault("", []).append(json.loads(bare[2:]))
            continue
        name, _, value = bare.partition(":")
        inside[name] = json.loads(value) if value.strip() else {}
        if not value.strip():
            levels.append((depth, inside[name]))
    return root


def test_an_entry_for_the_registry(made, tmp_path, capsys):
    project = tmp_path / "project.toml"
    project.write_text('curator = "City: \\"north\\"\\n# x"\npurpose = "plans"\nsector = "Government"\n')
    said = call(capsys, "report", made, "--project", project, "--registry")
    assert said.status == 0, said.err
    found = read(tmp_path / "visits_y.yaml")
    assert (found["tier"], found["status"]) == (3, "Draft")
    deployment = found["deployment"]
    assert deployment["basic"]["data_curators"][""] == ['City: "north"\n# x']  # nothing in a text ends it
    assert deployment["basic"]["intended_use"] == "plans"
    assert deployment["basic"]["data_product_sector"] == "Government"
    assert deployment["dp_variant"]["variant_name"] == "Custom"
    assert deployment["privacy_loss"]["privacy_parameters"] == {"epsilon": 0.5}
    assert "epsilon = 2" in deployment["privacy_loss"]["privacy_parameters_details"]
    assert deployment["basic"]["data_product_region"] == ""
    assert 'data_product_region: ""  # to fill in' in (tmp_path / "visits_y.yaml").read_text()
    elsewhere = tmp_path / "entry.yaml"
    assert call(capsys, "report", made, "--registry", elsewhere).status == 0
    assert "# data_product_sector: one of" in elsewhere.read_text()
    assert "for a report" in call(capsys, "report", made, "--registry", "--output", "x.html").err


def test_an_entry_at_a_delta_says_which_sense(tmp_path, capsys):
    account = Account("auto", worst_case=2.0, secure=True, delta=1e-6)
    account.book("generation", Curve.gaussian(0.001))
    path = tmp_path / "a.json"
    path.write_text(account.released([1.0]).to_json())
    assert call(capsys, "report", path, "--registry").status == 0
    loss = read(tmp_path / "a.yaml")["deployment"]["privacy_loss"]
    assert loss["privacy_parameters"]["delta"] == 1e-6
    assert "every ordered pair" in loss["privacy_parameters_details"]


@pytest.mark.parametrize(
    ("details", "why"), [({"secure": False}, "simulation"), ({"status": "refused", "hypothesis": None}, "was refused")]
)
def test_nothing_is_registered_that_is_no_private_model(tmp_path, capsys, details, why):
    raw = json.loads(released(LABELS).to_json()) | details
    path = tmp_path / "a.json"
    path.write_text(json.dumps(raw))
    said = call(capsys, "report", path, "--registry")
    assert said.status == 2
    assert why in said.err
    assert not (tmp_path / "a.yaml").exists()
