"""``print(release)``: what a person sees first, in every state a release can be in."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from expost import Release
from expost.release import Promise, report
from expost.release.words import WIDTH
from tests.release.model_helpers import LABELS, released

GOAL = Promise("with probability …", goal="error rate", at_most=0.2, failure_probability=0.1)


def lines(release: Release) -> list[str]:
    return str(release).splitlines()


def test_the_first_lines_of_a_release():
    shown = lines(released(LABELS).with_details(promise=GOAL))
    assert shown[0].startswith("y (no/yes) from 10 columns, 1,000 rows  ")
    assert shown[0].endswith("  released")
    assert (
        shown[1].split(maxsplit=2)[2]
        == "at most 0.2 on these rows, as asked (at most 0.1 of all runs miss, refusals counted)"
    )
    assert shown.pop(2).strip().startswith("to compare  ")
    assert shown[2].split(maxsplit=1)[1] == "ε = 0.5 paid █████░░░░░░░░░░░░░░░ of 2 at most (one row replaced)"
    assert shown[3].strip() == "0.5 the model"
    assert shown[4].strip().endswith("a suspicion of 1 % about one row can become at most 1.64 % (odds ×1.649)")
    assert max(map(len, shown)) <= WIDTH


@pytest.mark.parametrize("status", ["released", "short", "refused"])
def test_a_model_no_better_than_a_constant_is_called_that(status):
    """Within what a constant's number may be off, which is said; and not beyond it."""
    made = released(LABELS).with_details(promise=replace(GOAL, at_most=0.03805))
    kept = None if status == "refused" else made.hypothesis
    for shown, better in ((0.03802, False), (0.0361, False), (0.0359, True)):
        said = {**made.parameters, "yardstick": "always saying no has error rate 0.038 ± 0.002", "shown": shown}
        release = replace(made, status=status, hypothesis=kept, parameters=said)
        text = " ".join(str(release).split())
        assert "always saying no has error rate 0.038 ± 0.002 (about nine times in ten)" in text
        for words in (text, report(release)):
            assert ("ot shown to be better than always saying no; for a rare label ask for recall" in words) != better


def test_a_refusal_and_an_interruption():
    refused = Release(status="refused", method="auto", promise=GOAL, epsilon_test=0.5, epsilon_worst_case=2.0)
    assert lines(refused)[0].endswith("refused: no level met the target")
    assert "at most 0.2 was asked for; no model is released" in str(refused)
    interrupted = refused.with_details(parameters={"interrupted": True})
    assert lines(interrupted)[0].endswith("refused: the search was interrupted")


def test_a_simulation_and_the_optimum_promise_nothing():
    simulated = str(released(LABELS).with_details(secure=False))
    assert "this protects nobody" in simulated
    assert "a suspicion" not in simulated
    optimum = str(Release(status="released", method="auto", epsilon_generation=math.inf))
    assert "somebody may learn everything about a row" in optimum


def test_a_small_loss_is_seen_and_a_title_too_long_for_its_line_is_folded():
    tiny = Release(status="released", method="auto", epsilon_generation=1e-6, epsilon_worst_case=10.0)
    assert "█░" in str(tiny)
    assert "█" not in str(Release(status="released", method="auto", epsilon_worst_case=10.0))
    long = lines(released(LABELS).with_details(target="a name " * 15))
    assert long[1] == "  released"


def test_a_long_model_does_not_push_the_price_off_the_screen():
    many = {"columns": [f"c{j}" for j in range(100)], "coef": [0.5] * 100, "intercept": 1.0}
    shown = lines(Release(status="released", method="auto", parameters=many))
    assert len(shown) < 40
    assert shown[-1].strip() == "and 76 more, which the release and its report list"


@pytest.mark.parametrize("neighbours", ["one person replaced by any other", "the rows of one person replaced"])
def test_the_unit_is_the_one_that_was_stated(neighbours):
    release = released(LABELS).with_details(neighbours=neighbours, unit="person")
    assert "(one person replaced)" in str(release)
    assert "about one person can become" in str(release)


def test_a_notebook_gets_the_same_lines():
    release = released(LABELS).with_details(promise=GOAL)
    table = release._repr_html_()
    assert table.startswith("<div>")
    assert table.count("<tr>") == table.count("</tr>") > 8
    assert "at most 0.2 on these rows" in table
    assert repr(release).startswith("Release(status='released'")
