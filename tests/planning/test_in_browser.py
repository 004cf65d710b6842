"""The page in a real browser; ``make test-browser``. Screenshots go to EXPOST_SCREENSHOTS, if that is set."""

from __future__ import annotations

import math
import os
from pathlib import Path

import pytest

from expost import R2, plan
from expost.planning.explorer import page
from expost.release import report
from expost.shown import up

from .explorer_helpers import NUMBERS, delta_data, joint_data, numbers_data, release, survey_data

pytestmark = pytest.mark.browser
sync_api = pytest.importorskip("playwright.sync_api") if os.environ.get("EXPOST_CHROMIUM") else None


@pytest.fixture(scope="module")
def browser():
    if sync_api is None:
        pytest.fail("EXPOST_CHROMIUM must name a browser; make test-browser finds one")
    with sync_api.sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=os.environ["EXPOST_CHROMIUM"], args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture
def visit(browser, tmp_path):
    """Open a page from a disk, without a network, and see that nothing goes wrong or out."""
    contexts, wrong = [], []

    def go(data, **options):
        file = tmp_path / "page.html"
        file.write_text(page(data), encoding="utf-8")
        context = browser.new_context(viewport={"width": 1200, "height": 900}, offline=True, **options)
        contexts.append(context)
        tab = context.new_page()
        tab.on("pageerror", lambda error: wrong.append(str(error)))
        tab.on("console", lambda message: wrong.append(message.text) if message.type in ("error", "warning") else None)
        tab.on("request", lambda request: None if request.url == file.as_uri() else wrong.append(request.url))
        tab.goto(file.as_uri())
        return tab

    yield go
    for context in contexts:
        context.close()
    assert wrong == []


def shoot(tab, name):
    folder = os.environ.get("EXPOST_SCREENSHOTS")
    if folder:
        tab.screenshot(path=Path(folder) / f"{name}.png", full_page=True)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_light_and_dark(visit, scheme):
    tab = visit(survey_data(), color_scheme=scheme)
    shoot(tab, f"survey-{scheme}")
    background = "getComputedStyle(document.body).backgroundColor"
    first = tab.evaluate(background)
    assert (first == "rgb(255, 255, 255)") == (scheme == "light")
    assert tab.get_attribute("#theme", "aria-pressed") == str(scheme == "dark").lower()
    tab.click("#theme")
    assert tab.evaluate(background) != first
    tab.click("#theme")
    assert tab.evaluate(background) == first


def contrast(tab, selector):
    """Return the contrast of an element's text with what is behind it."""
    script = """(node) => { let behind = node;
      while (getComputedStyle(behind).backgroundColor === 'rgba(0, 0, 0, 0)') behind = behind.parentElement;
      const style = getComputedStyle(node);
      return [node.closest('svg') ? style.fill : style.color, getComputedStyle(behind).backgroundColor]; }"""

    def light(colour):
        parts = [int(part) / 255 for part in colour.removeprefix("rgb(").removesuffix(")").split(",")]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted(map(light, tab.locator(selector).first.evaluate(script)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read(visit, scheme):
    tab = visit(survey_data(), color_scheme=scheme)
    for selector in ("#answer", "#answer strong", ".words", "#chart text", "text.cap-text", "#bars small", "button"):
        assert contrast(tab, selector) >= 4.5, selector


def test_sliders_change_what_is_said(visit):
    tab = visit(survey_data())
    before = tab.inner_text("#answer")
    assert "error rate ≤ 0.25 for 20,000 rows" in before
    tab.focus("#rows")
    for _ in range(3):
        tab.keyboard.press("PageUp")
    assert tab.inner_text("#answer") != before
    assert tab.get_attribute("#rows", "aria-valuetext") == tab.inner_text("#rows-value")
    tab.focus("#goal")
    tab.keyboard.press("Home")
    assert "error rate ≤ 0.05" in tab.inner_text("#answer")
    assert tab.get_attribute("#goal", "aria-valuetext") == "error rate ≤ 0.05"
    tab.focus("#budget")
    tab.keyboard.press("Home")
    assert "--max-epsilon 0.01" in tab.input_value("#command")
    assert "0 % of made-up tables" in tab.inner_text("#answer")
    tab.focus("#gamma")
    tab.keyboard.press("End")
    assert "--failure-probability 0.3" in tab.input_value("#command")


def test_prices_are_those_of_a_plan(visit):
    """At goals that were computed the page says what a plan says; twice the rows cost half as much."""
    tab = visit(numbers_data())
    goals = numbers_data()["goal"]["values"]
    for price in plan(NUMBERS, [R2(value) for value in goals], rows=3000, worlds=2).goals:
        way = price.cheapest
        said = tab.evaluate(f"Model.price({price.goal.at_least}, 3000, 0.1)")
        half = tab.evaluate(f"Model.price({price.goal.at_least}, 6000, 0.1)")
        paid = {"low": way.low, "typical": way.typical, "high": way.high, "close": way.close_call}
        for name, epsilon in paid.items():
            found = math.inf if said[name] is None else said[name]
            assert found == pytest.approx(epsilon, rel=1e-3)
            assert math.isinf(epsilon) or half[name] == pytest.approx(epsilon / 2, rel=1e-3)
        share = tab.evaluate(f"Model.share({price.goal.at_least}, 3000, 0.1, 1.0)")
        assert share == pytest.approx(way.share_within(1.0))
    between = tab.evaluate(f"Model.price({(goals[0] + goals[1]) / 2}, 3000, 0.1).typical")
    ends = [tab.evaluate(f"Model.price({goal}, 3000, 0.1).typical") for goal in goals[:2]]
    assert min(ends) * 0.999 <= between <= max(ends) * 1.001


def move(tab, name, value):
    tab.eval_on_selector(f"#{name}", "(n, v) => { n.value = v; n.dispatchEvent(new Event('input')); }", value)


def test_what_is_expected_is_a_slider(visit):
    """Prices are those of a plan that expects it, and goals beyond it are said to be out of reach."""
    tab = visit(numbers_data())
    goals = numbers_data()["goal"]["values"]
    assert tab.inner_text("#expect-value") == "not stated"
    assert tab.is_visible("#close-key")
    tab.focus("#expect")
    tab.keyboard.press("ArrowRight")
    assert tab.inner_text("#expect-value") == tab.get_attribute("#expect", "aria-valuetext") == "0.66"
    assert tab.is_hidden("#close-key")
    for price in plan(NUMBERS, [R2(value) for value in goals], rows=3000, worlds=2, expect=0.66).goals:
        way, said = price.cheapest, tab.evaluate(f"Model.price({price.goal.at_least}, 3000, 0.1)")
        for name, epsilon in {"low": way.low, "typical": way.typical, "high": way.high}.items():
            assert (math.inf if said[name] is None else said[name]) == pytest.approx(epsilon, rel=1e-3)
    move(tab, "goal", 0.9)
    assert "out of reach, if the best model has R² 0.66" in tab.inner_text("#answer")
    move(tab, "goal", 0.64)
    assert "expost plan --expect 0.66" in tab.inner_text("#answer")
    assert tab.locator("#chart rect.beyond").count() == 1
    assert tab.is_disabled("#gamma")
    shoot(tab, "numbers-expected")
    tab.focus("#expect")
    tab.keyboard.press("Home")
    assert tab.locator("#chart rect.beyond").count() == 0


def test_at_a_delta(visit):
    tab = visit(delta_data(), color_scheme="dark")
    shoot(tab, "numbers-delta")
    assert "ε at δ = 1e-06" in tab.inner_text("#way")
    assert "gradient descent" in tab.inner_text("#way")
    assert tab.is_disabled("#gamma")
    assert tab.input_value("#command").endswith("--delta 1e-06")
    assert tab.evaluate("Number.isFinite(Model.price(0.4, 3000, 0.1).typical)")


def test_goals_move_together(visit):
    tab = visit(joint_data())
    assert tab.is_hidden("#expect")
    assert tab.is_visible("#unexpected")
    assert "recall ≥ 0.7 and precision ≥ 0.4 for" in tab.inner_text("#answer")
    move(tab, "goal", 1)
    assert "--recall 0.8235 --precision 0.5714" in tab.input_value("#command")
    tab.set_viewport_size({"width": 360, "height": 800})
    shoot(tab, "joint-360")
    assert tab.evaluate("document.documentElement.scrollWidth") <= 360


def test_the_release_is_a_dot(visit):
    tab = visit(survey_data())
    assert tab.locator("#paid").count() == 1
    assert up(release().epsilon) in tab.inner_text("#release-words")
    assert visit(numbers_data()).locator("#paid").count() == 0


def test_a_search_is_watched_to_its_end(visit):
    tab = visit(survey_data())
    steps = 1
    while tab.is_enabled("#next"):
        tab.click("#next")
        steps += 1
    tab.wait_for_timeout(900)
    shoot(tab, "survey-watched")
    assert "released" in tab.inner_text("#level")
    assert f"Test {steps} of {steps}" in tab.inner_text("#level")
    assert tab.locator("#coefficients circle.noisy").count() > 3
    tab.click("#play")  # from the beginning
    assert tab.inner_text("#play") == "Pause"
    assert "Test 1 of" in tab.inner_text("#level")
    tab.click("#play")
    assert tab.inner_text("#play") == "Play"


def test_without_motion_nothing_moves_by_itself(visit):
    tab = visit(survey_data(), reduced_motion="reduce")
    assert tab.is_hidden("#play")
    tab.click("#next")
    place = "document.querySelector('#coefficients circle.noisy').getAttribute('cx')"
    at_once = tab.evaluate(place)
    tab.wait_for_timeout(300)
    assert tab.evaluate(place) == at_once


def test_everything_is_reached_by_keyboard(visit):
    tab = visit(survey_data())
    seen = []
    for _ in range(20):
        tab.keyboard.press("Tab")
        seen.append(tab.evaluate("document.activeElement.id || document.activeElement.className"))
        if seen[-1] == "copy":
            break
        width = tab.evaluate("parseFloat(getComputedStyle(document.activeElement).outlineWidth)")
        assert width >= 2, seen[-1]
    assert {"skip", "theme", "goal", "expect", "rows", "budget", "gamma", "play", "next", "command", "copy"} <= set(
        seen
    )
    tab.keyboard.press("Enter")
    tab.wait_for_function("document.getElementById('copied').textContent !== ''")


def test_names_for_screen_readers(visit):
    """As assistive technology gets them: by role and name."""
    tab = visit(survey_data())
    for name in (
        "Goal: error rate at most",
        "Best error rate you expect",
        "Rows",
        "Budget: no outcome above ε",
        "γ: chance that a promise is",
    ):
        assert tab.get_by_role("slider", name=name).count() == 1
    for name in ("Play", "Next level", "Back", "Copy", "Dark"):
        assert tab.get_by_role("button", name=name).count() == 1
    assert tab.get_by_role("textbox", name="The command").count() == 1
    assert tab.get_by_role("img", name="Price against accuracy").count() >= 1
    tab.click("summary")
    assert tab.get_by_role("row").count() == len(survey_data()["goal"]["values"]) + 1
    assert tab.get_by_role("columnheader", name="ε likely").count() == 1


@pytest.mark.parametrize("width", [360, 800])
def test_narrow_screens_do_not_scroll_sideways(visit, width):
    tab = visit(numbers_data())
    tab.set_viewport_size({"width": width, "height": 800})
    shoot(tab, f"numbers-{width}")
    assert tab.evaluate("document.documentElement.scrollWidth") <= width


def test_where_no_search_ends_it_is_said(visit):
    tab = visit({**numbers_data(), "traces": [None] * len(numbers_data()["traces"])})
    assert "No made-up table released a model" in tab.inner_text("#level")
    assert tab.is_disabled("#play")
    assert tab.is_hidden("#track")
    assert tab.is_hidden("#rows-caption")


@pytest.mark.parametrize("width", [689, 1000])  # of A4 in print, and of a screen
def test_a_report_uses_all_columns_for_what_columns_add(browser, width):
    tab = browser.new_page(viewport={"width": width, "height": 900})
    tab.emulate_media(media="print" if width == 689 else "screen")
    tab.set_content(report(release()))
    lefts = tab.eval_on_selector_all(".effect", "found => found.map((n) => Math.round(n.getBoundingClientRect().left))")
    assert len(set(lefts)) == 3
    tab.close()
