"""The filter theorem, by enumeration: searches side by side, each chosen by what was seen, and every view they end in.

A search at worst case w answers one bit: with chance ½ it says nothing, which costs nothing, else it tells the bit by
randomised response at w. Neighbours are the bits 0 and 1. Nothing here is left to chance: analysts are functions of
what they have seen, and probabilities are added up over all outcomes.
"""

from __future__ import annotations

import math
import random
from collections import defaultdict

import pytest

from expost.account.events import Budget, Event
from expost.account.loss import PureLoss

CAP, STEPS, ANALYSTS = 1.0, 7, 150
SILENT = None


def chances(bit: int, w: float) -> dict:
    right = math.exp(w) / (1 + math.exp(w))
    return {SILENT: 0.5, bit: 0.5 * right, 1 - bit: 0.5 * (1 - right)}


def state(view: tuple) -> Budget:
    """Return what the ledger knows: it is a function of the view."""
    events = []
    for step in view:
        if step[0] == "begun":
            events.append(Event(step[1], "reserved", PureLoss(step[2]), "2026-01-01", "ada"))
        elif step[0] == "ended":
            worst = next(event.loss.epsilon for event in events if event.entry == step[1])
            loss = 0.0 if step[2] is SILENT else worst
            events.append(Event(step[1], "settled", PureLoss(loss), "2026-01-01", "ada"))
    return Budget("survey", "one bit", PureLoss(CAP), "2026-01-01", "ada", tuple(events))


def held(budget: Budget, w: float) -> bool:
    return budget.admits(PureLoss(w))


def not_held(budget: Budget, w: float) -> bool:
    """The broken variant: only what has ended is counted."""
    spent = [entry.loss for entry in budget.entries if not entry.held]
    return PureLoss.total([*spent, PureLoss(w)]).within(budget.cap)


def never_charged_in_full(budget: Budget, w: float) -> bool:
    """Another: what a search costs on average is counted, instead of what it cost."""
    return PureLoss.total(
        [PureLoss(entry.events[0].loss.epsilon / 2) for entry in budget.entries] + [PureLoss(w)]
    ).within(budget.cap)


def analyst(number: int):
    """Return one who begins searches, of some size, and looks at their ends, as all that was seen suggests."""

    def choose(view: tuple) -> tuple:
        luck = random.Random(f"{number} {view}")
        running = {step[1] for step in view if step[0] == "begun"} - {step[1] for step in view if step[0] == "ended"}
        if running and luck.random() < 0.4:
            return ("end", luck.choice(sorted(running)))
        left = state(view).remaining.epsilon
        return ("begin", f"search {len(view)}", luck.choice([CAP, left, left / 2, CAP / 2]))

    return choose


def distribution(bit: int, choose, admits, view: tuple = (), chance: float = 1.0, found=None) -> dict[tuple, float]:
    """Return the probability of every view."""
    found = defaultdict(float) if found is None else found
    if len(view) == STEPS:
        found[view] += chance
        return found
    act, name, *sizes = choose(view)
    if act == "begin" and sizes[0] > 0 and admits(state(view), sizes[0]):
        return distribution(bit, choose, admits, (*view, ("begun", name, sizes[0])), chance, found)
    if act == "begin":
        return distribution(bit, choose, admits, (*view, ("refused", name)), chance, found)
    worst = next(step[2] for step in view if step[:2] == ("begun", name))
    for outcome, part in chances(bit, worst).items():
        distribution(bit, choose, admits, (*view, ("ended", name, outcome)), chance * part, found)
    return found


def furthest(admits) -> float:
    """Return the largest log ratio of any view, for any of the analysts."""
    largest = 0.0
    for number in range(ANALYSTS):
        choose = analyst(number)
        zero, one = (distribution(bit, choose, admits) for bit in (0, 1))
        assert set(zero) == set(one)
        assert math.isclose(sum(zero.values()), 1.0, rel_tol=1e-12)
        largest = max(largest, *(abs(math.log(zero[view] / one[view])) for view in zero))
    return largest


def test_everything_together_is_private_at_the_cap():
    largest = furthest(held)
    assert largest <= CAP + 1e-12
    assert largest >= CAP - 1e-12  # and it is used up


@pytest.mark.parametrize("broken", [not_held, never_charged_in_full])
def test_other_rules_are_caught(broken):
    assert furthest(broken) > 1.4 * CAP


def test_analysts_run_searches_side_by_side():
    views = [view for number in range(20) for view in distribution(0, analyst(number), held)]
    begun_before_an_end = [
        view
        for view in views
        if [step[0] for step in view[:3]].count("begun") == 2 and any(s[0] == "ended" for s in view)
    ]
    assert len(begun_before_an_end) > 10
