"""``expost audit``: what it prints, and its exit status where a claim is false."""

from __future__ import annotations

import dataclasses
import json
import re

import pytest

from expost import audit
from expost.audit import counting
from expost.audit.attack import Found, Setting
from expost.cli.audit import BROKEN
from expost.cli.progress import Progress
from tests.cli.helpers import call

QUICK = "^(exact-noisy-best|geometric|output)$"


def test_every_bound_is_below_its_claim(capsys):
    said = call(capsys, "audit", "--mechanism", QUICK, "--runs", 20, "--seed", 1, "--json")
    assert said.status == 0
    told = json.loads(said.out)
    assert told["verdict"] == "holds"
    rows = {row["name"]: row for row in told["attacks"]}
    assert list(rows) == ["exact-noisy-best", "geometric", "output"]
    assert rows["geometric"]["runs"] == 20
    assert rows["exact-noisy-best"]["runs"] == 0
    assert all(row["bound"] <= row["claimed"] for row in rows.values())
    again = call(capsys, "audit", "--mechanism", QUICK, "--runs", 20, "--seed", 1)
    assert again.out.endswith("All of 3 bounds are below their claims.\n")


def test_words_of_the_operating_system_do_as_well(capsys):
    """No false alarm is possible: transcripts hold for any words."""
    said = call(capsys, "audit", "--mechanism", "^(moments|fit-error-rate|descent)$", "--runs", 2)
    assert said.status == 0, said.out


def test_a_false_claim_has_an_exit_status_of_its_own(capsys, monkeypatch):
    honest = counting.geometric

    def half(epsilon, sensitivity, size, *, random_state):
        return honest(2 * epsilon, sensitivity, size, random_state=random_state)

    monkeypatch.setattr(counting, "geometric", half)
    said = call(capsys, "audit", "--mechanism", "geometric", "--runs", 20_000, "--seed", 1)
    assert said.status == BROKEN
    assert "BROKEN: a claim is false in geometric" in said.out


def test_hours_of_work_are_said_as_they_end(capsys, monkeypatch):
    """Whoever stops an audit of hours knows what it has found until then, and what is left to be done."""

    def stopped(_: Setting):
        raise KeyboardInterrupt

    last = dataclasses.replace(audit.attacks("exact-filter")[0], carry_out=stopped)
    monkeypatch.setattr(audit.run, "attacks", lambda _: (*audit.attacks("^(exact-noisy-best|mean-square)$"), last))
    said = call(capsys, "audit", "--full", "--runs", 40, "--seed", 1)
    assert said.status == 130
    assert "exact-noisy-best, the choice among three scores, exact, 2, " in said.err
    assert ", 1.00, 40, holds, " in said.err


def test_processes_find_what_one_finds(capsys, monkeypatch):
    """And a bar says how far they have come; whether it is printed hangs on how long they take."""
    stages: list[str] = []
    monkeypatch.setattr(Progress, "stage", lambda self, name: stages.append(name))
    asked = ("audit", "--mechanism", QUICK, "--runs", 20, "--seed", 1, "--json")
    alone, shared = call(capsys, *asked), call(capsys, *asked, "--processes", 2, "--full")
    one, two = (json.loads(said.out)["attacks"] for said in (alone, shared))
    assert [{**each, "seconds": 0} for each in one] == [{**each, "seconds": 0} for each in two]
    assert any(re.match(r"\[#*\.*\] \d+%, \d of 3 attacks over, at work: ", stage) for stage in stages)
    assert call(capsys, "audit", "--processes", 0).status == 2


@pytest.mark.parametrize("error", [KeyError("x"), ValueError("x"), KeyboardInterrupt()])
def test_what_ends_an_audit_has_cost_nobody_anything(capsys, monkeypatch, error):
    """Attacks fit tables that were made up: nothing of that has to be counted as spent."""

    def ended(*_, **__):
        raise error

    monkeypatch.setattr(audit.run, "as_text", ended)  # fits have come to their end by then
    said = call(capsys, "audit", "--mechanism", "^fit-error-rate$", "--runs", 2, "--seed", 1)
    assert (said.status, said.out) == (130 if isinstance(error, KeyboardInterrupt) else 4, "")
    assert "spent" not in said.err


def test_mistakes_are_told_before_anything_is_run(capsys):
    said = call(capsys, "audit", "--mechanism", "nothing-like-it")
    assert said.status == 2
    assert "no attack is called 'nothing-like-it'; there are exact-path," in said.err
    assert call(capsys, "audit", "--mechanism", "(").status == 2
    assert call(capsys, "audit", "--runs", 1).status == 2
    assert call(capsys, "audit", "--confidence", "1", "--mechanism", "geometric").status == 2


def test_names_are_told_apart_and_every_attack_says_what_it_is():
    every = audit.attacks()
    assert len({attack.name for attack in every}) == len(every) > 30
    assert all(attack.runs <= attack.full for attack in every)
    assert all(bool(attack.runs) == (attack.way != "exact") for attack in every)


def test_a_finding_counts_though_its_bound_is_small():
    assert Found(1.0, 0.0, "a further look").broken
    assert not Found(1.0, 1.0).broken
    assert Found(1.0, 1.001).broken
    assert Setting(10).seed is None


#: Samplers, paths and above threshold, whose worst neighbours and outcomes are known: little is lost in finding them.
NEAR = "^(discrete-laplace|geometric|discrete-gaussian|gaussian-curve|spherical-noise|block-noise|.*path|.*-test|"
NEAR += "above-threshold|above-threshold-laplace|.*-question|exact-.*)$"


@pytest.mark.slow
def test_bounds_come_near_to_claims():
    done = audit.run_audit(NEAR, seed=2)
    assert len(done) > 20
    assert {
        each.attack.name: each.found.tightness for each in done if not 0.8 <= each.found.tightness <= 1 + 1e-9
    } == {}
