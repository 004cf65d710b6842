"""Several rows of one person: what is replaced between neighbours, what that costs, and ways to get it wrong."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from typing import Any

import numpy as np
import pytest

import expost.estimators.model as model_module
import expost.table.encoding as encode_module
from expost import AccuracyFirstModel, ErrorRate
from expost.account.composition import Unit
from expost.exceptions import AccuracyNotReached, InvalidRows, LargeEpsilonWarning, SearchInterrupted, TargetUnreachable
from expost.mechanisms.objective.chain import ChainPlan
from expost.search import request as readable
from expost.search.levels import StagedSearch
from expost.table.rows import ONE
from tests.estimators.helpers import Loose
from tests.estimators.model_helpers import LABELS, model
from tests.helpers import CountingSource
from tests.table.hostile import HOSTILE, silence

K, M = 4, 600
LAST = 10**6  # a noise that no count comes near


def visits(m: int = M, seed: int = 0) -> list[dict[str, Any]]:
    """Rows of m patients, one to seven each, in no order."""
    rng = np.random.default_rng(seed)
    rows = []
    for person in range(m):
        base = rng.uniform(0, 80)
        for _ in range(rng.integers(1, 8)):
            hours, sector = base + rng.normal(0, 5), rng.choice(["public", "private"])
            high = hours + 10 * (sector == "private") + rng.normal(0, 8) > 45
            rows.append({"id": f"p{person}", "hours": hours, "sector": sector, "income": "high" if high else "low"})
    return [rows[i] for i in rng.permutation(len(rows))]


def columns(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    return {name: [row[name] for row in rows] for name in ("id", "hours", "sector", "income")}


def replaced(rows: list[dict[str, Any]], person: str, others: list[dict[str, Any]], seed: int) -> list[dict[str, Any]]:
    """Return the table with one person's rows taken out and another's put in, anywhere."""
    rng = np.random.default_rng(seed)
    kept = [row for row in rows if row["id"] != person]
    for row in others:
        kept.insert(int(rng.integers(0, len(kept) + 1)), row)
    return kept


NEWCOMERS = [
    [{"id": "new", "hours": 80, "sector": "private", "income": "low"}],
    [{"id": "new", "hours": 80 * (i % 2), "sector": None, "income": "low"} for i in range(3 * K)],
    [{"id": "new", "hours": cell, "sector": cell, "income": cell} for cell in list(HOSTILE.values())[:30]],
    [{"id": None, "hours": None, "sector": None, "income": None}],
]


def person_model(**options: Any) -> AccuracyFirstModel:
    return model(**{"on_invalid": "clip", "person": "id", "rows_per_person": K, **options})


def searched(rows: list[dict[str, Any]], monkeypatch, **options: Any) -> tuple[Any, Any, Any]:
    """Return the release of a fit, and the private rows and the request that it was made of."""
    seen = []
    genuine = model_module.carry_out

    def watched(request, plan, prepared, *rest, **more):
        seen.append((request, prepared))
        return genuine(request, plan, prepared, *rest, **more)

    with monkeypatch.context() as patch:
        patch.setattr(model_module, "carry_out", watched)
        release = outcome(person_model(**options), columns(rows))
    request, prepared = seen[0]
    return release, request, prepared


def outcome(fitted: AccuracyFirstModel, table: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LargeEpsilonWarning)  # few persons, so that tests are quick
        try:
            return fitted.fit(table).release_
        except AccuracyNotReached as refusal:
            return refusal.release


def collection(prepared: Any) -> Counter[tuple[int, ...]]:
    return Counter(map(tuple, np.column_stack([prepared.x, prepared.y]).tolist()))


# --- what is searched -------------------------------------------------------------------------------------------------


def moved_by_one_person(monkeypatch) -> list[tuple[bool, int]]:
    """For some neighbours: whether the public size is the same, and how many rows of what is searched differ."""
    rows, found = visits(60), []
    one = searched(rows, monkeypatch, max_epsilon=300.0)[2]
    for seed, newcomer in enumerate(NEWCOMERS):
        with silence():
            two = searched(replaced(rows, f"p{7 * seed}", newcomer, seed), monkeypatch, max_epsilon=300.0)[2]
        found.append((one.n == two.n == 60 * K, (collection(one) - collection(two)).total()))
    return found


def test_one_person_replaced_changes_k_rows_of_as_many(monkeypatch):
    assert all(same and moved <= K for same, moved in moved_by_one_person(monkeypatch))


def unfilled(cells, k, marks=()):
    """As many rows as there are, at most k of a person: their number tells of single persons."""
    count: Counter[Any] = Counter()
    places = [i for i, cell in enumerate(cells) if not count.update([str(cell)]) and count[str(cell)] <= k]
    return np.array(places), len(count)


def looking_at_others(cells, k, marks=()):
    """The right number of rows, kept by their place in the table: earlier rows of others push a person's out."""
    listed = [str(cell) for cell in cells]
    m = len(set(listed))
    return np.arange(m * k) % len(listed), m


@pytest.mark.parametrize("broken", [unfilled, looking_at_others])
def test_slots_that_tell_of_others_are_caught(broken, monkeypatch):
    monkeypatch.setattr(encode_module, "slots", broken)
    assert not all(same and moved <= K for same, moved in moved_by_one_person(monkeypatch))


def test_the_order_of_persons_is_of_no_consequence(monkeypatch):
    rows = visits(200)
    order = np.random.default_rng(5).permutation(200)
    rank = {f"p{person}": i for i, person in enumerate(order.tolist())}
    releases = [
        searched(given, monkeypatch, max_epsilon=300.0)
        for given in (rows, sorted(rows, key=lambda row: rank[row["id"]]))
    ]
    assert collection(releases[0][2]) == collection(releases[1][2])
    np.testing.assert_allclose(releases[0][0].hypothesis, releases[1][0].hypothesis, rtol=1e-9)
    assert releases[0][0].epsilon == releases[1][0].epsilon


# --- what is charged --------------------------------------------------------------------------------------------------


def law(epsilon: float, below: int) -> float:
    """P[DLap < below] at a rate: P[DLap = k] is proportional to e^(−rate·|k|)."""
    rest = 1 + math.exp(-epsilon)
    return 1 - math.exp(-epsilon * below) / rest if below > 0 else math.exp(-epsilon * (1 - below)) / rest


class Passed(Exception):
    """The look at the table was passed."""


def refusal(rows, monkeypatch) -> tuple[float, float]:
    """Return how likely the look at the table refuses it, read off the fit, and what that refusal says it cost."""
    asked: list[float] = []

    def onward(*_):
        raise Passed

    def refused(noise: int) -> Any:
        def fixed(epsilon, sensitivity, size, *, random_state):
            asked.append(epsilon / sensitivity)
            return np.array([noise, LAST])

        with monkeypatch.context() as patch:
            patch.setattr(readable, "discrete_laplace", fixed)
            patch.setattr(ChainPlan, "search", onward)
            try:
                return outcome(person_model(max_epsilon=300.0), columns(rows))
            except SearchInterrupted:
                return None

    low, high = -LAST, LAST
    while high - low > 1:  # the least noise that passes is in (low, high]
        middle = (low + high) // 2
        low, high = (low, middle) if refused(middle) is None else (middle, high)
    return law(asked[0], high), refused(low).epsilon


def looks(monkeypatch) -> tuple[float, float]:
    """Return the log ratio of refusing between neighbours, and what the refusal charges for it."""
    m = 40
    rows = [{"id": i, "hours": 40, "sector": "public", "income": "low"} for i in range(m) for _ in range(3)]
    other = [{"id": "new", "hours": 40, "sector": "public", "income": "?"}]
    (one, cost), (two, _) = refusal(rows, monkeypatch), refusal(replaced(rows, 3, other, 0), monkeypatch)
    return math.log(two / one), cost


def test_the_look_at_the_table_is_charged_for_a_person(monkeypatch):
    """Exactly: k of N = mk labels become unreadable, each of two counts has noise of scale N/40."""
    ratio, cost = looks(monkeypatch)
    assert ratio == pytest.approx(40 / 40, rel=1e-9)
    assert cost == pytest.approx(80 / 40, rel=1e-9)
    assert ratio <= cost


def test_a_look_charged_for_one_row_is_caught(monkeypatch):
    monkeypatch.setattr(Unit, "charge", lambda self, loss: loss)
    ratio, cost = looks(monkeypatch)
    assert ratio > cost


def density_moves(rows, neighbour, monkeypatch) -> tuple[float, float]:
    """Return the largest log ratio of the densities of a model, over models tried, and what its release charges.

    The first level is released. θ̂ comes of b = −G(θ̂), so its density is b's times the Jacobian.
    """
    release, request, one = searched(rows, monkeypatch, goal=Loose(0.45))
    two = searched(neighbour, monkeypatch, goal=Loose(0.45))[2]
    assert release.status == "released"
    assert release.level == 0
    plan = request.tested(request.goal)
    shot = plan.shot(plan.start)
    weights = shot.geometry.weights(shot.epsilon_noise, shot.slope)

    def log_density(prepared: Any, theta: np.ndarray) -> float:
        x, y = prepared.x / ONE, prepared.y / ONE
        u = x @ theta
        b = x.T @ shot.loss.derivative(u, y) + shot.n * shot.lam * theta
        hessian = (x * shot.loss.second_derivative(u, y)[:, None]).T @ x + shot.n * shot.lam * np.eye(len(theta))
        place, total = 0, 0.0
        for block, weight in zip(shot.geometry.blocks, weights, strict=True):
            part = b[place : place + block.size]
            total -= weight * float(np.linalg.norm(part, {"box": np.inf, "l1": 1, "l2": 2}[block.norm]))
            place += block.size
        return total + float(np.linalg.slogdet(hessian)[1])

    tried = [np.asarray(release.hypothesis)]
    rng = np.random.default_rng(0)
    tried += [scale * rng.normal(size=one.p) for scale in (0.1, 1.0, 10.0, 100.0) for _ in range(50)]
    largest = max(abs(log_density(one, theta) - log_density(two, theta)) for theta in tried)
    return largest, release.epsilon_generation


def extremes() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    rows = [
        {"id": i, "hours": 40, "sector": ["public", "private"][i % 2], "income": "high"}
        for i in range(M)
        for _ in range(1 + i % 3)
    ]
    one = [{"id": "new", "hours": 80, "sector": "private", "income": "high"}]
    two = [{"id": "new", "hours": 0, "sector": "public", "income": "low"} for _ in range(9)]
    return replaced(rows, 0, one, 0), replaced(rows, 0, two, 1)


def test_a_model_is_charged_for_a_person(monkeypatch):
    """Exactly, over the reals: no density moves by more, and some move by more than one row could."""
    largest, charged = density_moves(*extremes(), monkeypatch)
    assert 1.5 * charged / K < largest <= charged


def test_a_model_charged_for_one_row_is_caught(monkeypatch):
    monkeypatch.setattr(Unit, "charge", lambda self, loss: loss)
    largest, charged = density_moves(*extremes(), monkeypatch)
    assert largest > charged


def test_what_it_costs_hardly_depends_on_k():
    table = columns(visits())
    losses = [
        np.mean(
            [
                outcome(person_model(rows_per_person=k, goal=ErrorRate(0.3), random_state=s), table).epsilon
                for s in range(8)
            ]
        )
        for k in (1, 2, 8, 40)
    ]
    assert max(losses) < 1.5 * min(losses)
    lone = {name: cells for name, cells in table.items() if name != "id"}
    assert model(on_invalid="clip", goal=ErrorRate(0.3)).fit(lone).release_.epsilon < min(
        losses
    )  # rows are less than persons


def test_no_outcome_exceeds_the_budget(monkeypatch):
    monkeypatch.setattr(StagedSearch, "_futile", lambda self, *more: False)  # it is not given up before
    for budget in (2.0, 3.3, 7.0):
        release = outcome(person_model(goal=ErrorRate(0.05), max_epsilon=budget), columns(visits()))
        assert release.status == "short"
        assert 0.3 * budget < release.epsilon <= release.epsilon_worst_case <= budget
        assert release.epsilon_worst_case == pytest.approx(budget)


# --- what is said -----------------------------------------------------------------------------------------------------


def test_the_release_names_the_unit_and_no_number_of_rows():
    release = person_model().fit(columns(visits())).release_
    assert release.neighbours.startswith("one person, as column 'id' tells them apart")
    assert "counts alike" in release.promise.statement
    assert "repeated in turn" in release.preparation["scope"]
    said = {name: release.parameters[name] for name in ("n", "person", "persons", "rows_per_person")}
    assert said == {"n": M * K, "person": "id", "persons": M, "rows_per_person": K}
    assert "id" not in release.parameters["columns"]
    assert str(len(visits())) not in release.to_json()
    assert release.preparation["schema"]["person"] == "id"


def test_the_goal_is_met_where_every_person_counts_alike():
    rows = visits()
    fitted = person_model().fit(columns(rows))
    wrong: dict[str, list[bool]] = {}
    for row, label in zip(rows, fitted.predict(columns(rows)), strict=True):
        wrong.setdefault(row["id"], []).append(label != row["income"])
    shares = [np.mean([misses[j % len(misses[:K])] for j in range(K)]) for misses in wrong.values()]
    assert np.mean(shares) <= 0.25
    assert fitted.predict({"hours": [1, 79], "sector": ["public", "private"]}).tolist() == ["low", "high"]


def test_the_schema_may_say_so():
    table = columns(visits())
    stated = {**LABELS, "person": "id", "rows_per_person": K}
    one, two = (
        model(schema, on_invalid="clip", **options).fit(table).release_
        for schema, options in ((stated, {}), (LABELS, {"person": "id", "rows_per_person": K}))
    )
    assert one.epsilon == two.epsilon
    assert one.hypothesis == two.hypothesis
    assert one.preparation == two.preparation


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"rows_per_person": None}, "rows_per_person is missing"),
        ({"person": None}, "says nothing without person"),
        ({"person": "hours"}, "take it out of columns"),
        ({"person": "nobody"}, "no column 'nobody'"),
        ({"rows_per_person": 1.5}, "at least 1"),
        ({"max_epsilon": 0.1}, "looking whether|no model could be shown"),
    ],
)
def test_mistakes_are_named_before_anything_is_drawn(options, said):
    source = CountingSource()
    with pytest.raises(ValueError, match=said):
        person_model(random_state=source, **options).fit(columns(visits()))
    assert source.drawn == 0


def test_refusals_speak_of_persons():
    with pytest.raises(AccuracyNotReached, match="one person replaced"):
        person_model(goal=ErrorRate(0.05), max_epsilon=2.0).fit(columns(visits()))


def test_few_persons_are_few_however_many_rows_they_have():
    rows = [{**row, "id": i % 5} for i, row in enumerate(visits())]
    with pytest.raises(TargetUnreachable, match=r"at 5 persons .* about [\d,]+ persons"):
        person_model(rows_per_person=400).fit(columns(rows))
    with pytest.raises(TargetUnreachable, match="at 1 person "):
        person_model().fit(columns([{**row, "id": {}} for row in rows]))
    with pytest.raises(InvalidRows, match="neither text nor numbers in id"):
        person_model(on_invalid="error").fit(columns([{**row, "id": {}} for row in rows]))


def test_errors_about_cells_count_rows_not_slots():
    rows = visits()
    rows[0] = {**rows[0], "hours": "many"}
    with pytest.raises(InvalidRows, match=r"hours \(1\)"):
        person_model(on_invalid="error").fit(columns(rows))


def test_scores_count_every_row_once_and_need_no_ids():
    rows = visits()
    fitted = person_model(goal=ErrorRate(0.4), max_epsilon=50.0).fit(columns(rows))
    table = {name: cells for name, cells in columns(rows).items() if name != "id"}
    assert fitted.score(table) == np.mean(fitted.predict(table) == np.array(table["income"]))
    twice = {name: cells + cells[:50] for name, cells in table.items()}
    assert fitted.score(twice) != fitted.score(table)
