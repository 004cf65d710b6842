"""The page: one file that asks nobody for anything, a function of what it is made of."""

from __future__ import annotations

import json
import math
import re
from html.parser import HTMLParser

import pytest

from expost import F1, R2, AccuracyFirstModel, ErrorRate, LogLoss, Precision, Recall, Schema, plan
from expost.datasets import make_survey
from expost.planning.explorer import explorer_data, page
from expost.shown import up

from .explorer_helpers import DELTA, LABELS, NUMBERS, SURVEY, delta_data, joint_data, numbers_data, release, survey_data

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


@pytest.mark.parametrize("data", [survey_data, numbers_data, delta_data, joint_data])
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
    again = numbers_data.__wrapped__()
    assert again == numbers_data()
    assert page(again) == page(numbers_data())


def test_the_page_is_small():
    assert len(page(survey_data()).encode()) < 200_000


def check_prices(data, of, **stated):
    """Prices of the page, for everything that may be expected, are those of a plan of the way that a fit takes."""
    assert data["worlds"] == [2, 2]
    for expect, by_gamma in zip(data["expected"], data["curves"], strict=True):
        curves = by_gamma[data["gammas"].index(0.1) if expect is None else 0]
        for price, curve in zip(plan(*of, rows=3000, worlds=2, expect=expect, **stated).goals, curves, strict=True):
            (way,) = [way for way in price.methods if way.taken] if stated else price.methods
            paid = [epsilon * 3000 for epsilon in way.epsilons]
            found = [math.inf if product is None else product for product in curve["products"]]  # JSON has no infinity
            assert found == pytest.approx(paid, rel=1e-4)


def test_prices_are_those_of_a_plan():
    data = numbers_data()
    goals = [R2(value) for value in data["goal"]["values"]]
    assert data["expected"] == [None, 0.66, 0.92]
    assert data["delta"] == ""
    check_prices(data, (NUMBERS, goals))
    beyond = [curve["products"] for goal, curve in zip(goals, data["curves"][1][0], strict=True) if goal.number > 0.66]
    assert beyond == [[None, None]] * 2  # out of reach


def test_prices_at_a_delta_are_those_of_what_a_fit_takes():
    data = delta_data()
    assert data["delta"] == "1e-06"
    assert data["gammas"] == [0.1]
    assert set(data["ways"]) == {"gradient descent"}
    assert data["savings"] == []
    check_prices(data, (NUMBERS, [R2(value) for value in data["goal"]["values"]]), delta=DELTA)


def test_goals_that_are_moved_together():
    data = joint_data()
    goals = [
        Recall(r) & Precision(q)
        for r, q in [(0.3684, 0.1429), (0.5385, 0.25), (0.7, 0.4), (0.8235, 0.5714), (0.9032, 0.7273)]
    ]
    assert data["goal"]["values"] == [-2, -1, 0, 1, 2]
    assert data["start"]["goal"] == 0
    assert data["expected"] == [None]
    check_prices(data, (LABELS, goals))


def test_a_goal_that_is_stated_is_one_of_the_page(monkeypatch):
    monkeypatch.setattr(F1, "offered", (0.3, 0.6))
    data = explorer_data(LABELS, goal=F1(0.45), rows=1000, worlds=1)
    assert data["goal"]["values"] == [0.3, 0.45, 0.6]
    assert data["start"]["goal"] == 0.45
    assert any(data["traces"])  # of shortfalls: no test measures an F₁


def test_a_release_has_a_place_at_its_own_delta(monkeypatch):
    monkeypatch.setattr(ErrorRate, "offered", (0.4, 0.3))
    frame = make_survey(5000)
    model = AccuracyFirstModel(SURVEY, ErrorRate(0.35), delta=DELTA, random_state=1).fit(frame)
    placed = explorer_data(SURVEY, release=model.release_, worlds=1)
    assert placed["delta"] == "1e-06"
    assert placed["release"]["epsilon"] == model.release_.epsilon
    apart = explorer_data(SURVEY, release=model.release_, delta=0.0, worlds=1)
    assert apart["release"] is None
    assert "at δ = 1e-06" in apart["elsewhere"]


def test_a_release_is_placed():
    data = survey_data()
    assert data["release"]["value"] == 0.25
    assert data["release"]["epsilon"] == release().epsilon
    assert data["start"] == {"rows": 20_000, "goal": 0.25, "gamma": 0.1, "budget": 2.0, "expect": 0}
    text = json.dumps(data)
    assert "hypothesis" not in text  # of the release only what is shown
    assert len(data["traces"]) == len(data["goal"]["values"])


def test_the_budget_of_a_release_is_the_one_that_was_stated():
    """Not what rounding left of it; another one is rounded down, and what was paid up."""
    for worst, budget in ((1.9999999999999983, 2.0), (1.92537, 1.925)):
        made = release().with_details(epsilon_worst_case=worst)
        data = explorer_data(SURVEY, release=made, worlds=1)
        assert data["start"]["budget"] == budget
        assert data["release"]["paid"] == up(made.epsilon)


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
    assert [part["flag"] for part in data["goal"]["parts"]] == [LogLoss.flag.name]
    assert data["release"] is None  # an error rate has no place on that axis
    squared = explorer_data(NUMBERS, kind="mean-squared-error", rows=2000, worlds=1)
    assert squared["goal"]["values"][0] == pytest.approx(0.2 * 25)


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="error-rate or precision or f1 or log-loss"):
        explorer_data(SURVEY, kind="r2")
    with pytest.raises(ValueError, match="always giving the positive label"):
        explorer_data(LABELS, goal=Recall(0.5), worlds=1)
    with pytest.raises(ValueError, match="not both"):
        explorer_data(LABELS, goal=F1(0.5), kind="f1")
    with pytest.raises(ValueError, match="another column"):
        explorer_data(Schema.from_dict({**SURVEY.to_dict(), "target": "happy"}), release=release())
