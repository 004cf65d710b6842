"""The report: a function of the release alone, complete in itself, true, and safe to open."""

from __future__ import annotations

import hashlib
import html.parser
import math
import re
import subprocess
import sys

import pytest
from hypothesis import given, settings, strategies as st

from expost import Release
from expost.account.account import Account
from expost.account.composition import Curve
from expost.release import Promise
from expost.release.page import BudgetLine, report
from expost.release.words import suspicion
from expost.shown import percent
from expost.table.schema import Schema
from tests.release.model_helpers import AMOUNT, LABELS, released

EVIL = "<script>alert('x')</script> & \"quotes\""
EMPTY = {"meta", "br", "wbr", "rect"}


class Reader(html.parser.HTMLParser):
    """Collects elements and text, and complains about what does not close."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in EMPTY:
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def read(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert reader.open == []
    return reader


def words(page: str) -> str:
    return " ".join("".join(read(page).text).split())


def refused(**details) -> Release:
    return Release(status="refused", method="auto", epsilon_test=0.5, epsilon_worst_case=2.0, **details)


KINDS = {
    "labels": released(LABELS),
    "probabilities": released(LABELS, largest_odds=4.0),
    "amount": released(AMOUNT),
    "refused": refused(preparation={"schema": LABELS.to_dict()}, target="y", columns=tuple(LABELS.columns)),
    "interrupted": refused(parameters={"interrupted": True}),
    "bare": Release(status="released", method="fixed", hypothesis=[1.0]),
    "no privacy": Release(status="released", method="auto", epsilon_generation=math.inf, hypothesis=[1.0]),
    "simulation": released(LABELS).with_details(secure=False),
    "no date": Release.from_json(released(LABELS).to_json()),
}


@pytest.mark.parametrize("release", KINDS.values(), ids=KINDS)
def test_it_is_whole_and_refers_to_nothing_else(release):
    page = report(release)
    reader = read(page)
    assert {"script", "link", "img", "iframe", "object", "form", "a"}.isdisjoint(reader.tags)
    assert not [name for name, _ in reader.attributes if name in ("src", "href", "srcset") or name.startswith("on")]
    assert not re.search(r"https?:|url\(|@import", page)
    assert page.encode()
    for heading in ("Promised", "Paid", "In words", "Stated, not checked", "Outside the guarantee", "Signature"):
        assert heading in words(page)
    assert release.id in words(page)
    assert ("The model" in words(page)) == ("coef" in release.parameters)


ALONE = """
import hashlib, sys
from expost import Release
from expost.release import report
release = Release.from_json(sys.stdin.read())
def refuse(event, arguments):
    if event.split(".")[0] in ("open", "socket", "subprocess", "os", "import", "ctypes", "sqlite3", "glob", "shutil"):
        raise PermissionError(event)
sys.addaudithook(refuse)
try:
    open("data.csv")
except PermissionError:
    pass
else:
    raise SystemExit("files could be opened")
page = report(release)
sys.stdout.write(hashlib.sha256(page.encode()).hexdigest())
"""


def test_it_is_a_function_of_the_release_alone():
    """In a process that may open nothing once the release is read, the same bytes come out."""
    release = released(LABELS)
    page = report(release)
    assert page == report(Release.from_json(release.to_json()))
    done = subprocess.run(
        [sys.executable, "-c", ALONE], input=release.to_json(), capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == hashlib.sha256(page.encode()).hexdigest()
    assert report(release.with_details(not_covered=("more",))) != page


def evil_release() -> Release:
    """Return a release with markup wherever a caller's text can be."""
    columns = {EVIL: {"bounds": [0, 1]}, "b": {"categories": [EVIL, "plain", "x" * 300]}}
    release = released(Schema.from_dict({"target": f"t{EVIL}", "classes": [EVIL, f"other {EVIL}"], "columns": columns}))
    return release.with_details(
        claims=(EVIL,),
        not_covered=(EVIL,),
        promise=Promise(EVIL, goal=EVIL, at_most=0.1),
        method=EVIL,
        neighbours=f"one {EVIL}",
        parameters={**release.parameters, "reasons": (EVIL,)},
        exact=(EVIL,),
        charged=(EVIL,),
        versions={EVIL: EVIL},
        schema_fingerprint=EVIL,
        data_fingerprint=EVIL,
    )


def test_every_label_is_escaped():
    release = evil_release()
    page = report(release, BudgetLine(EVIL, spent=1.0, cap=2.0, entry=EVIL))
    assert "script" not in read(page).tags
    assert "<script" not in page
    assert words(page).count("<script>alert('x')</script>") > 15
    assert "<script" not in release._repr_html_()
    assert "&lt;script" in release._repr_html_()


def test_names_that_are_read_from_right_to_left_leave_the_formula_as_it_is():
    """Each is in a direction of its own: without it a browser puts numbers before other names."""
    columns = {"גיל": {"bounds": [0, 100]}, "עיר": {"categories": ["חיפה", "יפו"]}}
    said = report(released(Schema.from_dict({"target": "חולה", "classes": ["לא", "כן"], "columns": columns})))
    formula = said[said.index("<p class=formula>") : said.index("How not to read it")]
    assert "[<bdi>עיר</bdi> = <bdi>יפו</bdi>]" in formula
    assert not re.search("[א-ת]", re.sub("<bdi>[^<]*</bdi>", "", formula))


def test_what_is_said_about_the_price():
    release = released(LABELS)  # ε = 0.5 of 2
    said = words(report(release))
    assert "ε = 0.5 of 2 at most" in said
    assert "odds by a factor of at most 1.649" in said
    assert percent(suspicion(0.01, 0.5)) == "1.64 %"
    assert "1 %10 %50 %can become at most1.64 %15.5 %62.3 %" in said
    assert "No ledger of the data set was given" in said
    budget = BudgetLine("survey-2026", spent=1.2, cap=2.0, entry="c55", held=0.6)
    said = words(report(release, budget))
    assert "survey-2026: ε = 1.2 of 2 spent, this release included. 0.6 of it is held" in said
    assert "Entry c55" in said
    assert "exceeded" not in said
    assert "The cap is exceeded" in words(report(release, BudgetLine("d", spent=2.1, cap=2.0)))
    assert "no cap" in words(report(release, BudgetLine("d", spent=2.1)))
    with pytest.raises(ValueError, match="spent"):
        BudgetLine("d", spent=-1.0)


def test_empty_states_say_so():
    assert "Simulation: the noise came from a seed" in words(report(KINDS["simulation"]))
    assert "may learn everything" in words(report(KINDS["simulation"]))
    assert "No privacy" in words(report(KINDS["no privacy"]))
    assert "The search was interrupted" in words(report(KINDS["interrupted"]))
    said = words(report(refused(promise=Promise("…", goal="error rate", at_most=0.1))))
    assert "No model was released. Asked for: error rate at most 0.1" in said
    assert "Nothing was spent" in words(report(Release(status="refused", method="auto", epsilon_worst_case=1.0)))


def test_a_release_that_continues_another_adds_the_difference():
    release = released(LABELS, continues="a1f", epsilon_increment=0.125)
    assert "with this one, 0.125 more than before, beside release a1f" in words(report(release))


def test_the_formula_is_the_model():
    schema = {"target": "kwh", "target_bounds": [0, 100], "columns": {"area": {"bounds": [0, 50]}}}
    release = released(Schema.from_dict(schema))
    said = words(report(release))
    found = re.search(r"kwh = (−?[\d.,]+) ([+−]) ([\d.,]+)·area", said)
    constant, sign, slope = found.groups()
    by_hand = float(constant.replace("−", "-")) + (1 if sign == "+" else -1) * float(slope) * 20
    assert min(100, max(0, by_hand)) == pytest.approx(release.predict([[20.0]])[0], abs=0.05)
    assert "kept within 0 and 100" in said
    assert "0 to 50" in said


def test_a_long_formula_is_a_sentence():
    said = words(report(released(LABELS)))
    assert re.search(r"y = yes when −?[\d.,]+ \+ what the columns below add > 0,otherwise no", said)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.floats(1e-9, 1 - 1e-9), st.floats(0, 20))
def test_no_observer_ends_up_with_more_than_is_said(before, epsilon):
    """Bayes' rule with the largest likelihood ratio there can be; what is shown is not below it."""
    posterior = 1 / (1 + (1 - before) / before * math.exp(-epsilon))
    assert suspicion(before, epsilon) == pytest.approx(posterior, rel=1e-9)
    shown = float(percent(suspicion(before, epsilon)).removesuffix(" %"))
    assert shown >= 100 * posterior * (1 - 1e-12)
    assert shown <= 100 * posterior * 1.02 + 1e-9
    assert shown <= 100


def test_a_delta_is_said_wherever_the_loss_is():
    account = Account("auto", worst_case=2.0, secure=True, delta=1e-6)
    account.book("generation", Curve.gaussian(0.001))
    said = words(report(account.released([1.0])))
    assert "at δ = 1e-06" in said
    assert "but for a chance of δ = 1e-06" in said
    assert "k times this ε" not in said
    assert "δ" not in words(report(Release(status="refused", method="auto", epsilon_test=0.1, epsilon_worst_case=2.0)))
