"""The page: one file that asks nobody for anything, a function of what it is made of."""

from __future__ import annotations

import json
import math
import re
from html.parser import HTMLParser

import pytest

from expost import R2, LogLoss, Schema, plan
from expost.planning.explorer import explorer_data, page

from .explorer_helpers import NUMBERS, SURVEY, numbers_data, release, survey_data

VOID = {"meta", "input", "br", "link", "img"}
ASKING = re.compile(
    r"fetch\(|XMLHttpRequest|WebSocket|EventSource|sendBeacon|import\(|importScripts|@import|url\(|\beval\("
)
NAMESPACE = "http://www.w3.org/2000/svg"  # the name of a vocabulary, which nobody looks up


class Outline(HTMLParser):
    """Elements with their attributes, and what is not closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements, self.open, self.wrong = [], [], []
        self.feed(text)
        self.wrong += self.open

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)


def faults(text: str) -> list[str]:
    """Return what makes a page depend on anything but itself, or leaves it unreadable."""
    outline = Outline(text)
    found = [f"not closed: {tag}" for tag in outline.wrong]
    for tag, attributes in outline.elements:
        for name in ("src", "href", "action", "srcset", "data", "poster", "formaction"):
            value = attributes.get(name)
            if value is not None and not value.startswith("#"):
                found.append(f"{tag} {name}={value}")
        if tag in ("link", "iframe", "object", "embed", "base", "img"):
            found.append(f"a {tag}")
    found += [f"asks: {match}" for match in ASKING.findall(text)]
    found += [address for address in re.findall(r"(?:https?:)?//[\w.-]+\.\w+[^\s\"'`]*", text) if address != NAMESPACE]
    ids = [attributes["id"] for _, attributes in outline.elements if "id" in attributes]
    found += [f"twice: {name}" for name in set(ids) if ids.count(name) > 1]
    for tag, attributes in outline.elements:
        for name in ("for", "aria-labelledby"):
            found += [
                f"{tag} {name} of nothing: {part}" for part in attributes.get(name, "").split() if part not in ids
            ]
    labelled = {attributes.get("for") for tag, attributes in outline.elements if tag == "label"}
    inputs = [attributes["id"] for tag, attributes in outline.elements if tag == "input"]
    found += [f"without a label: {name}" for name in inputs if name not in labelled]
    if "default-src 'none'" not in text:
        found.append("may ask")
    return found


@pytest.mark.parametrize("data", [survey_data, numbers_data], ids=["labels", "numbers"])
def test_the_page_needs_nothing_but_itself(data):
    assert faults(page(data())) == []


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ('<script src="https://example.org/x.js"></script>', "script src"),
        ('<img alt="" src="x.png">', "a img"),
        ("<style>@import 'x.css'</style>", "asks: @import"),
        ("<script>fetch('x')</script>", "asks: fetch("),
        ("<script>const a = 'https://example.org/'</script>", "https://example.org/"),
        ('<input id="other">', "without a label: other"),
        ('<p id="answer"></p>', "twice: answer"),
        ("<div>", "not closed"),
        ('<label for="nobody">x</label>', "of nothing: nobody"),
    ],
)
def test_a_page_that_does_is_noticed(change, complaint):
    broken = page({}).replace("<footer>", f"{change}<footer>")
    assert any(complaint in fault for fault in faults(broken))


def test_what_is_in_a_schema_cannot_leave_its_place():
    nasty = {"target": "</script><script>alert(1)</script>", "classes": ["<!--", "]]>&amp;"]}
    text = page(nasty)
    assert "alert(1)</script>" not in text
    held = text.split('id="data">')[1].split("</script>")[0]
    assert json.loads(held) == nasty
    assert faults(text) == []


def test_the_page_is_a_function_of_its_input():
    again = explorer_data(NUMBERS, rows=3000, worlds=2)
    assert again == numbers_data()
    assert page(again) == page(numbers_data())


def test_the_page_is_small():
    assert len(page(survey_data()).encode()) < 200_000


def test_prices_are_those_of_a_plan():
    data = numbers_data()
    prices = plan(NUMBERS, [R2(value) for value in data["goal"]["values"]], rows=3000, worlds=2).goals
    for price, curve in zip(prices, data["curves"][data["gammas"].index(0.1)], strict=True):
        expected = [epsilon * 3000 for epsilon in price.cheapest.epsilons]
        found = [math.inf if product is None else product for product in curve["products"]]  # JSON has no infinity
        assert found == pytest.approx(expected, rel=1e-4)


def test_a_release_is_placed():
    data = survey_data()
    assert data["release"]["value"] == 0.25
    assert data["release"]["epsilon"] == release().epsilon
    assert data["start"] == {"rows": 20_000, "goal": 0.25, "gamma": 0.1, "budget": 2.0}
    text = json.dumps(data)
    assert "hypothesis" not in text  # of the release only what is shown
    assert len(data["traces"]) == len(data["goal"]["values"])


def test_searches_to_watch_end_with_a_model():
    found = [trace for trace in survey_data()["traces"] if trace is not None]
    assert found
    for trace in found:
        passed = [step["passed"] for step in trace["steps"]]
        assert passed == [False] * (len(passed) - 1) + [True]
        spent = [step["spent"] for step in trace["steps"]]
        assert spent == sorted(spent)
        assert trace["steps"][-1]["at_worst"] <= max(survey_data()["goal"]["values"])


@pytest.mark.slow
def test_another_kind_of_goal():
    data = explorer_data(SURVEY, kind="log-loss", rows=2000, worlds=1, release=release())
    assert data["goal"]["flag"] == LogLoss.flag.name
    assert data["release"] is None  # an error rate has no place on that axis
    squared = explorer_data(NUMBERS, kind="mean-squared-error", rows=2000, worlds=1)
    assert squared["goal"]["values"][0] == pytest.approx(0.2 * 25)


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="error-rate or precision or f1 or log-loss"):
        explorer_data(SURVEY, kind="r2")
    with pytest.raises(ValueError, match="another column"):
        explorer_data(Schema.from_dict({**SURVEY.to_dict(), "target": "happy"}), release=release())
