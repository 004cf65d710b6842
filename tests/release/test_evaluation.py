"""What an evaluation releases, what it costs, and that what it says is true."""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import json
import math
import pickle
import re
import warnings
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from sklearn.metrics import r2_score, roc_auc_score

import expost.release.evaluation_count
from expost import R2, AccuracyFirstLogisticRegression, ErrorRate, LogLoss, Release, budget, compose
from expost.account.composition import Curve
from expost.exceptions import (
    CoarseMarginWarning,
    InvalidRows,
    LargeEpsilonWarning,
    LedgerRefused,
    SearchInterrupted,
    TargetUnreachable,
)
from expost.noise.laplace import discrete_laplace
from expost.passes.first_pass import look_at
from expost.release import Evaluation, report
from expost.release.held_out import HeldOut
from expost.release.scoring import scorer_of
from expost.table.databases_and_streams import SAME_ROWS
from expost.table.files import open_disk
from expost.table.rows import Rows
from tests.account.ledger_helpers import charged, new_ledger
from tests.estimators.model_helpers import AMOUNT, LABELS, N, model, table
from tests.helpers import at_most_by_chance

MARGIN = 0.1


@cache
def released(kind: str = "odds") -> Release:
    schema = AMOUNT if kind == "numbers" else LABELS
    goal = {"odds": LogLoss(0.5), "labels": ErrorRate(0.25), "numbers": R2(0.5)}[kind]
    return model(schema, goal).fit(table()).release_


def evaluated(kind="odds", data=None, **options) -> Evaluation:
    data = table() if data is None else data
    return released(kind).evaluate(data, **{"margin": MARGIN, "random_state": 1, **options})


def counts(data, kind="odds", **options) -> np.ndarray:
    """The exact histogram."""
    found = released(kind).evaluate(data, margin=MARGIN, public_rows=True, **options)
    return np.array(found.release.hypothesis)


class TestSensitivity:
    ROWS = (("hours", (0.0, 41.0, 80.0, -5.0, 1e300, float("nan"), None, "x", [1])), ("sector", ("public", "?", 3)))

    @pytest.mark.parametrize("kind", ["odds", "labels", "numbers"])
    def test_a_replaced_row_moves_two_counts_by_one_whatever_it_holds(self, kind):
        target, values = ("amount", (0.0, 55.5, 1e9, None)) if kind == "numbers" else ("income", ("high", "low", "", 7))
        data = {name: cells[:8] for name, cells in table().items()}
        before, moved = counts(data, kind), set()
        for hours in self.ROWS[0][1]:
            for sector in self.ROWS[1][1]:
                for value in values:
                    other = {name: list(cells) for name, cells in data.items()}
                    other["hours"][3], other["sector"][3], other[target][3] = hours, sector, value
                    after = counts(other, kind)
                    assert after.sum() == before.sum() == 8
                    moved.add(int(np.abs(after - before).sum()))
        assert moved <= {0, 2}
        assert 2 in moved

    def test_a_replaced_person_moves_twice_as_many_as_they_have_slots(self):
        """With fewer rows or more of them, anywhere in the table; and the loss is that many times as large."""
        k, n = 3, 3000
        schema = {**LABELS, "person": "id", "rows_per_person": k}
        data = {**table(n), "id": [i // 3 for i in range(n)]}
        release = model(schema, ErrorRate(0.25)).fit(data).release_

        def exact(rows):
            return np.array(release.evaluate(rows, margin=MARGIN, public_rows=True).release.hypothesis)

        before, moved = exact(data), []
        for extra in (["low"], ["high"] * 2, ["high", "low"] * 4):
            keep = [i for i in range(n) if data["id"][i] != 5]
            other = {name: [cells[i] for i in keep] for name, cells in data.items()}
            for i, label in enumerate(extra):
                for name, value in (("hours", 80.0 * i), ("sector", "public"), ("income", label), ("id", 5)):
                    other[name].insert(17 * i, value)
            moved.append(int(np.abs(exact(other) - before).sum()))
        assert max(moved) == 2 * k
        found = release.evaluate(data, margin=MARGIN, random_state=0)
        assert found.release.unit == "person"
        scale = found.release.parameters["evaluation"]["scale"]
        assert found.epsilon >= 2 * k / scale

    def test_the_noise_is_that_of_the_loss(self, monkeypatch):
        """Its mean size over 60 runs of 64 counts lies within a tenth of the law's, six deviations of that mean; noise
        at half the scale does not.
        """

        def size() -> float:
            exact = counts(table())
            runs = [np.array(evaluated(random_state=seed).release.hypothesis) - exact for seed in range(60)]
            return float(np.abs(runs).mean())

        r = evaluated().epsilon / 2
        law = 1 / np.sinh(r)
        assert size() == pytest.approx(law, rel=0.1)
        broken = expost.release.evaluation_count
        monkeypatch.setattr(
            broken, "discrete_laplace", lambda e, *rest, **named: discrete_laplace(2 * e, *rest, **named)
        )
        assert size() != pytest.approx(law, rel=0.3)


class TestWhatIsPublic:
    def test_rows_change_counts_and_nothing_else(self):
        """Neither what it costs nor where edges are."""
        other = table(income=["low"] * N, hours=[80.0] * N, sector=["?"] * N)
        one, two = evaluated().release, evaluated(data=other).release
        assert one.parameters == two.parameters
        assert (one.epsilon, one.promise, one.claims) == (two.epsilon, two.promise, two.claims)

    def test_edges_hold_the_models_own_cut_off_and_those_stated(self):
        assert evaluated("odds").own_cut_off.cut_off == 0.5
        assert evaluated("labels").own_cut_off.cut_off == 0.0
        found = evaluated(cut_offs=[0.123])
        exact = evaluated(cut_offs=[0.123], public_rows=True, random_state=None)
        assert "0.123" in str(found)
        for at in exact.at:
            positive = released().predict(table(), cut_off=at.cut_off) == "high"
            assert at.flagged.value == positive.mean()
            assert at.hits.value == (positive & (np.array(table()["income"]) == "high")).mean()

    def test_a_margin_that_costs_too_much_is_refused_before_anything_is_spent(self, tmp_path):
        ledger = new_ledger(tmp_path)
        with pytest.raises(TargetUnreachable, match="Nothing was spent"):
            evaluated(margin=0.001, ledger=ledger, random_state=None)
        assert charged(ledger) == []
        with pytest.warns(LargeEpsilonWarning):
            large = evaluated(margin=0.016, max_epsilon=20.0)
        assert large.epsilon > 2.0
        warnings.simplefilter("error")
        with pytest.raises(SearchInterrupted) as carried:  # what was paid for is not lost over a warning
            evaluated(margin=0.016, max_epsilon=20.0)
        assert Evaluation(carried.value.release).counts.tolist() == large.counts.tolist()


class TestRefused:
    """Before anything is spent."""

    def test_a_failure_probability_that_tails_are_not_known_for(self):
        with pytest.raises(ValueError, match="at least 1e-06"):
            evaluated(failure_probability=1e-9)
        assert evaluated(failure_probability=1e-6).epsilon > evaluated().epsilon
        foreign = json.loads(evaluated().to_json())
        foreign["promise"]["failure_probability"] = 1e-300
        with pytest.raises(ValueError, match="not an evaluation"):
            Evaluation.from_json(json.dumps(foreign))

    @pytest.mark.parametrize(
        ("changed", "message"),
        [
            ({"scale": 0.0}, "have noise otherwise"),
            ({"rows": "public"}, "exact if rows are public"),
            ({"margin": 0.01}, "too large for its margin"),
            ({"scale": 0.01}, "smaller than its loss pays for"),
            ({"target": [0.0, 1e-320]}, "too close"),
        ],
    )
    def test_a_file_of_another_whose_numbers_do_not_belong_together(self, changed, message):
        foreign = json.loads(evaluated("numbers").to_json())
        assert Evaluation.from_json(json.dumps(foreign))
        foreign["parameters"]["evaluation"].update(changed)
        with pytest.raises(ValueError, match=message):
            Evaluation.from_json(json.dumps(foreign))

    @pytest.mark.parametrize("odds", [5e-5, 700.0, 1e300])
    def test_a_model_of_another_with_odds_that_no_model_has(self, odds):
        foreign = json.loads(released().to_json())
        assert foreign["parameters"]["largest_odds"] == 4.0
        foreign["parameters"]["largest_odds"] = odds
        with pytest.raises(ValueError, match="largest_odds"):
            Release.from_json(json.dumps(foreign))

    def test_cut_offs_with_the_same_odds_are_one_edge(self):
        found = evaluated(cut_offs=[1e-10, np.nextafter(1e-10, 1), 0.5])
        assert found.at[0].cut_off == pytest.approx(1e-10)
        assert found.own_cut_off.cut_off == 0.5
        assert len(found.at) == len(evaluated().at) + 1

    def test_a_record_that_does_not_hold_together(self, tmp_path, monkeypatch):
        ledger, usual = new_ledger(tmp_path), expost.release.evaluation_count.cells_for

        def falling(*args):
            cells = usual(*args)
            return dataclasses.replace(cells, edges=cells.edges[::-1])

        monkeypatch.setattr(expost.release.evaluation_count, "cells_for", falling)
        with pytest.raises(ValueError, match="not an evaluation"):
            evaluated(ledger=ledger, random_state=None)
        assert charged(ledger) == []

    def test_rows_held_out_of_what_may_come_in_another_order(self):
        fitted = model(LABELS, ErrorRate(0.3), holdout=0.2).fit(table())
        release, held = fitted.release_, fitted.held_out_

        def handed_out():
            return pa.table(table())

        for once in (handed_out, open_disk(handed_out), pa.table(table()).to_reader()):
            with pytest.raises(ValueError, match="another order"):
                release.evaluate(once, margin=0.2, new_rows=held, random_state=0)
        found = release.evaluate(table(), margin=0.2, new_rows=held, random_state=0)
        assert any("same order as the fit" in claim for claim in found.release.claims)
        found = release.evaluate(handed_out, margin=0.2, random_state=0)
        assert SAME_ROWS in found.release.claims


class TestBands:
    @pytest.mark.parametrize("kind", ["odds", "labels"])
    def test_all_hold_at_once(self, kind, monkeypatch):
        """In at least 1 − γ of 60 runs, the AUC of the scores included; with noise three times as large they do not.

        Chance of a false alarm: RARE.
        """
        exact = evaluated(kind, public_rows=True, random_state=None)
        truth = np.array(table()["income"]) == "high"
        scores = released(kind).predict_proba(table())[:, 1] if kind == "odds" else None
        area = None if scores is None else roc_auc_score(truth, scores)

        def missed(seed: int) -> bool:
            found = evaluated(kind, random_state=seed)
            true = [value for at in exact.at for value in at[1:]] + [exact.base_rate]
            bands = [value for at in found.at for value in at[1:]] + [found.base_rate]
            true += [group.positive for group in exact.calibration]
            bands += [group.positive for group in found.calibration]
            right = all(b.low - 1e-12 <= t.value <= b.high + 1e-12 for b, t in zip(bands, true, strict=True))
            within = found.auc.low <= exact.auc.value <= found.auc.high
            return not (
                right and within and (area is None or found.auc_of_scores.low <= area <= found.auc_of_scores.high)
            )

        assert sum(map(missed, range(60))) <= at_most_by_chance(60, 0.1)
        broken = expost.release.evaluation_count
        monkeypatch.setattr(
            broken, "discrete_laplace", lambda e, *rest, **named: discrete_laplace(e / 3, *rest, **named)
        )
        assert sum(map(missed, range(40))) > at_most_by_chance(40, 0.1)

    def test_of_numbers(self, monkeypatch):
        """As above."""
        exact = evaluated("numbers", public_rows=True, random_state=None)
        residuals = np.array(table()["amount"]) - released("numbers").predict(table())

        def missed(seed: int) -> bool:
            found = evaluated("numbers", random_state=seed)
            pairs = [(found.r2, exact.r2.value), (found.mean_squared_error, exact.mean_squared_error.value)]
            pairs += [
                (b, t.value) for (_, b), (_, t) in zip(found.residuals_below(), exact.residuals_below(), strict=True)
            ]
            pairs += [(found.residual_quantile(q), np.quantile(residuals, q)) for q in (0.1, 0.5, 0.9)]
            return not all(band.low - 1e-9 <= true <= band.high + 1e-9 for band, true in pairs)

        assert sum(map(missed, range(60))) <= at_most_by_chance(60, 0.1)
        broken = expost.release.evaluation_count
        monkeypatch.setattr(
            broken, "discrete_laplace", lambda e, *rest, **named: discrete_laplace(e / 3, *rest, **named)
        )
        assert sum(map(missed, range(40))) > at_most_by_chance(40, 0.1)

    def test_r2_of_bins_is_near_that_of_rows(self):
        exact = evaluated("numbers", public_rows=True, random_state=None)
        truth = r2_score(table()["amount"], released("numbers").predict(table()))
        assert exact.r2.value == pytest.approx(truth, abs=0.02)

    def test_residuals_are_cut_where_what_the_release_showed_puts_them(self):
        """Targets fill a tenth of their bounds, as prices may: bins for all of the bounds resolve nothing."""
        rng = np.random.default_rng(3)
        hours = rng.uniform(0, 80, 20_000)
        data = {"hours": hours, "amount": 45.0 + hours / 8.0 + rng.normal(0.0, 1.5, len(hours))}
        schema = {**AMOUNT, "columns": {"hours": {"bounds": [0, 80]}}}
        release = model(schema, R2(0.6)).fit(data).release_
        error = np.asarray(data["amount"]) - release.predict(data)
        found = release.evaluate(data, margin=0.02, random_state=2)
        assert 4.0 * np.std(error) < found.reach < 8.0 * np.std(error)
        assert found.mean_squared_error.value == pytest.approx(np.mean(error**2), rel=0.25)
        assert found.mean_squared_error.low > 0.5 * np.mean(error**2)
        assert found.r2.value == pytest.approx(r2_score(data["amount"], release.predict(data)), abs=0.1)

    @pytest.mark.parametrize("public", [True, False])
    def test_residuals_beyond_count_as_said_and_the_band_has_them_as_they_are(self, public):
        """On rows of which the model knows nothing, with bins of residuals that end at a tenth of what is possible."""
        amount = np.where(released("numbers").predict(table()) > 50.0, 0.0, 100.0)
        data = {**table(), "amount": amount.tolist()}
        seed = None if public else 1
        found = evaluated("numbers", data, residuals_within=10.0, public_rows=public, random_state=seed)
        residuals = amount - released("numbers").predict(table())
        if public:
            assert found.mean_squared_error.value == pytest.approx(np.mean(np.clip(residuals, -10, 10) ** 2), rel=0.02)
        assert found.mean_squared_error.low <= np.mean(residuals**2) <= found.mean_squared_error.high
        assert found.r2.low <= 1 - np.mean(residuals**2) / np.var(amount) <= found.r2.high
        assert "residuals beyond 10 count as that" in str(found)
        assert "residuals beyond 10 count as that" in found.to_html()

    def test_what_is_shown_is_no_narrower_and_says_where_it_was_cut(self):
        """Ends of bands are written outwards, and a cut-off that is read off is the one that was counted at."""
        found = evaluated("numbers")
        between = [re.findall(r"\S+ and \S+$", line) for line in str(found).splitlines()]
        shown = [tuple(map(float, one[0].replace("−", "-").split(" and "))) for one in between if one]
        bands = [found.residual_quantile(share) for share in (0.05, 0.25, 0.5, 0.75, 0.95)]
        assert len(shown) == len(bands)
        for (low, high), band in zip(shown, bands, strict=True):
            assert low <= band.low
            assert high >= band.high
            assert f"<td>{low:g} and {high:g}</td>".replace("-", "−") in found.to_html()

        found = evaluated(cut_offs=(0.123456, 0.99951))
        rows = [line.split()[0] for line in str(found).splitlines()[5:]]
        known = [at.cut_off for at in found.at]
        assert "0.123456" in rows
        assert all(float(row) in known for row in rows)
        assert all(f">{row}</td>" in found.to_html() for row in rows)

    def test_of_a_transformed_target_it_is_said_that_all_is_about_the_transform(self):
        made = model({**AMOUNT, "target_transform": "log1p"}, R2(0.3)).fit(table()).release_
        found = made.evaluate(table(), margin=MARGIN, random_state=0)
        assert "  R² of log1p(amount) 0." in str(found)
        assert "mean squared error of log1p(amount) " in str(found)
        assert "the model predicts on, log1p of the target" in found.to_html()

    def test_of_persons_it_is_said_whose_rows_count_how_often(self):
        """Positive persons have one row and others have four: a share of rows is another than one of persons."""
        schema, n = {**LABELS, "person": "id", "rows_per_person": 4}, 3000
        data = table(n)
        ids = np.cumsum([0, *(y == "high" or i % 4 == 3 for i, y in enumerate(data["income"][:-1]))])
        data["id"] = ids.tolist()
        persons, positive = len(np.unique(ids)), np.array(data["income"]) == "high"
        release = model(schema, ErrorRate(0.25)).fit(data).release_
        found = release.evaluate(data, margin=MARGIN, random_state=0)
        alike = "every person counting alike, by their first 4 rows"
        assert f"evaluated on rows of {persons:,} persons\n" in str(found)
        assert f"Every share of rows, {alike}, is right within" in str(found)
        assert f"Every share of rows, {alike}, is right within" in found.to_html()
        assert f"on rows of {persons:,} persons" in found.to_page()
        assert alike in str(release.evaluate(data, margin=MARGIN, public_rows=True))
        assert "every person counts alike" in found.release.promise.statement
        with pytest.raises(TargetUnreachable, match=f"on {persons:,} persons would .* leaves 2: .* persons"):
            release.evaluate(data, margin=0.01, random_state=0)
        assert not found.base_rate.low <= positive.mean() <= found.base_rate.high  # which is why
        asked = f"error rate at most 0.25 on these rows, {alike}"
        assert asked in report(release)
        assert asked in " ".join(str(release).split())

    def test_a_cut_off_may_be_chosen_by_them(self):
        found = evaluated(margin=0.04)
        cut_off = found.cut_off_for(recall=0.8)
        positive = released().predict(table(), cut_off=cut_off) == "high"
        truth = np.array(table()["income"]) == "high"
        assert (positive & truth).sum() >= 0.8 * truth.sum()
        assert found.cut_off_for(recall=0.8, surely=False) >= cut_off
        assert found.cut_off_for(precision=0.7) < 0.9
        with pytest.raises(ValueError, match="is reached"):
            found.cut_off_for(precision=0.9999)
        with pytest.raises(ValueError, match="one of recall and precision"):
            found.cut_off_for()
        with pytest.raises(ValueError, match="labels alone"):
            evaluated("labels").cut_off_for(recall=0.8)


class TestCharged:
    def test_by_a_ledger(self, tmp_path):
        ledger = new_ledger(tmp_path, cap=0.5)
        found = evaluated(ledger=ledger, random_state=None)
        assert charged(ledger) == [found.epsilon]
        assert compose([released(), found.release]).epsilon == pytest.approx(released().epsilon + found.epsilon)
        with pytest.raises(LedgerRefused):
            evaluated(margin=0.025, ledger=ledger, random_state=None)
        assert charged(ledger) == [found.epsilon]

    def test_an_interruption_is_charged_once_noise_is_drawn_and_not_before(self, tmp_path, monkeypatch):
        ledger = new_ledger(tmp_path)

        def stopped(*_, **__):
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(expost.release.evaluation_count, "_counts", stopped)
            with pytest.raises(KeyboardInterrupt):
                evaluated(ledger=ledger, random_state=None)
        assert sum(charged(ledger)) == 0.0
        monkeypatch.setattr(expost.release.evaluation_count, "discrete_laplace", stopped)
        with pytest.raises(SearchInterrupted) as caught:
            evaluated(ledger=ledger, random_state=None)
        assert sum(charged(ledger)) == caught.value.release.epsilon > 0.0
        with pytest.raises(ValueError, match="did not come to its end"):
            Evaluation(caught.value.release)

    def test_an_interruption_while_the_record_is_checked_hands_it_over(self, monkeypatch):
        honest, checked = Evaluation._require_price, []

        def stopped(self, *given):
            checked.append(self.release.hypothesis)
            if len(checked) == 2:  # the first is before anything is spent
                raise KeyboardInterrupt
            honest(self, *given)

        with monkeypatch.context() as patch:
            patch.setattr(Evaluation, "_require_price", stopped)
            with pytest.raises(SearchInterrupted) as caught:
                evaluated()
        assert Evaluation(caught.value.release).counts.tolist() == evaluated().counts.tolist()

    def test_by_a_shared_budget(self):
        with budget(0.3, 1e-6) as shared:
            found = evaluated(delta=1e-6)
            assert shared.epsilon_spent == pytest.approx(found.epsilon, rel=1e-3)
            with pytest.raises(ValueError, match="need its delta"):
                evaluated()
            with pytest.raises(TargetUnreachable, match="budget"):
                evaluated(margin=0.025, delta=1e-6)
            assert not shared.closed
        assert Evaluation.from_json(found.to_json()).release == found.release

    def test_public_rows_are_not(self, tmp_path):
        found = evaluated(public_rows=True, random_state=None)
        assert (found.epsilon, found.margin, found.rows) == (0.0, 0.0, "public")
        assert "PUBLIC ROWS" in str(found)
        assert "Public rows" in found.to_html()
        few = {name: cells[:400] for name, cells in table().items()}  # shares that are rounded half way
        exact = evaluated(data=few, public_rows=True, random_state=None)
        assert " ± " not in str(exact) + exact.to_html()
        with pytest.raises(ValueError, match="leave out ledger"):
            evaluated(public_rows=True, ledger=new_ledger(tmp_path))


PERSONS = {**LABELS, "person": "whose", "rows_per_person": 2}


def whose_rows():
    """The rows, sorted by the hours, of persons with one row, two or three."""
    order = np.argsort(table()["hours"])
    whose = np.repeat(np.arange(N), np.arange(N) % 3 + 1)[:N]
    cells = {**table(), "whose": np.random.default_rng(3).permutation(whose).tolist()}
    return {name: [column[place] for place in order] for name, column in cells.items()}


def held_out_of(schema, given, on_disk=None):
    """A fit with a part held out, the rows that its models were fitted to, and those they were tested on."""
    fitted, parts = model(schema, ErrorRate(0.35), holdout=0.4, max_epsilon=9.0), []
    with pytest.MonkeyPatch.context() as patch:
        honest = HeldOut.parted
        patch.setattr(HeldOut, "parted", lambda self, rows: (parts.extend(honest(self, rows)), parts)[1][-2:])
        fitted.fit(given if on_disk is None else on_disk)
    return fitted, parts


def counted(rows, release):
    """How many rows there are of each kind, in memory or on disk."""
    cells = expost.release.evaluation_count.cells_for(release, scorer_of(release), None, (), None)
    return expost.release.evaluation_count._counts(rows, cells).tolist()


@pytest.mark.parametrize("on_disk", [False, True])
@pytest.mark.parametrize("schema", [LABELS, PERSONS], ids=["rows", "persons"])
def test_new_rows_are_those_that_the_fit_held_out(monkeypatch, tmp_path, schema, on_disk):
    """Of a sorted table, by the attribute or by a file, whether fit and evaluation read a file or columns."""
    data = whose_rows()
    pa.csv.write_csv(pa.table(data), tmp_path / "t.csv")
    given = tmp_path / "t.csv" if on_disk else data
    fitted, (_, apart) = held_out_of(schema, given)
    release = fitted.release_
    apart = apart if isinstance(apart, Rows) else look_at(apart)[0]
    monkeypatch.setattr(
        expost.release.evaluation_count, "discrete_laplace", lambda e, s, size, **_: np.zeros(size, int)
    )
    fitted.held_out_.save(tmp_path / "kept.held-out")
    assert (tmp_path / "kept.held-out").stat().st_mode & 0o077 == 0
    for held in (fitted.held_out_, tmp_path / "kept.held-out", str(tmp_path / "kept.held-out")):
        for again in (data, tmp_path / "t.csv"):
            found = release.evaluate(again, margin=0.3, new_rows=held, random_state=0)
            assert found.n == release.held_out == apart.n
            assert np.array(found.release.hypothesis).ravel().tolist() == np.ravel(counted(apart, release)).tolist()
            assert found.rows == "held out"
            [claim] = [claim for claim in found.release.claims if "same order as the fit" in claim]
            assert "the set of those held out is the one that the fit drew" in claim
            assert not any("sorted by" in claim for claim in found.release.claims)


def test_nobody_is_told_who_was_held_out():
    fitted, _ = held_out_of(LABELS, table())
    held = fitted.held_out_
    assert repr(held) == f"HeldOut(units={N}, held_out={round(0.4 * N)})"
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(held)
    again = pickle.loads(pickle.dumps(fitted))
    assert again.release_ == fitted.release_
    assert not hasattr(again, "held_out_")
    assert not hasattr(copy.deepcopy(fitted), "held_out_")
    assert not hasattr(model(LABELS, ErrorRate(0.35)).fit(table()), "held_out_")


def test_what_does_not_tell_who_was_held_out_is_refused_before_anything_is_spent(tmp_path):
    fitted, _ = held_out_of(LABELS, table())
    other, _ = held_out_of(LABELS, table())
    release, kept = fitted.release_, tmp_path / "kept.held-out"
    fitted.held_out_.save(kept)
    with pytest.raises(FileExistsError):
        fitted.held_out_.save(kept)
    whole = kept.read_bytes()

    def refused(given, match, which=release, data=None):
        with pytest.raises(ValueError, match=rf"{match}(.|\n)*Nothing was spent") as error:
            which.evaluate(table() if data is None else data, margin=0.2, new_rows=given, random_state=0)
        assert len(str(error.value)) < 500

    refused(True, "model.held_out_")
    refused(other.held_out_, "another release")
    refused(tmp_path / "none", "there is no")
    refused(tmp_path, "there is no")
    refused(fitted.held_out_, "only a fit with holdout", released())
    less = {name: cells[1:] for name, cells in table().items()}
    refused(fitted.held_out_, "pass the same table, in the same order", data=less)
    other.held_out_.save(tmp_path / "other")
    refused(tmp_path / "other", "another release")
    for cut in (whole[:-1], whole + b"x", b"", b"expost held out 2" + whole[17:], whole.replace(b"held", b"hold")):
        kept.write_bytes(cut)
        refused(kept, "does not say who was held out")
    for place in range(len(whole)):  # whatever byte is another
        kept.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(ValueError, match="does not say who"):
            HeldOut.of(kept, release)
    body = bytearray(whole[:-32])
    body[-1] ^= 2  # one more or less, with a sum that is right
    kept.write_bytes(bytes(body) + hashlib.sha256(body).digest())
    refused(kept, "numbers are not those of the release")
    kept.write_bytes(whole)
    assert release.evaluate(table(), margin=0.2, new_rows=kept, random_state=0).epsilon > 0


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_a_fit_and_the_evaluation_of_those_held_out_add_up(delta):
    fitted = model(LABELS, ErrorRate(0.35), holdout=0.4, delta=delta, max_epsilon=9.0).fit(table())
    found = fitted.release_.evaluate(table(), margin=0.2, new_rows=fitted.held_out_, random_state=0)
    both = compose([fitted.release_, found.release])
    assert both.epsilon == pytest.approx(fitted.release_.epsilon + found.epsilon)
    if delta:  # as the joined curve does, with the evaluation among the tests
        curve = fitted.release_.account_curve() + Curve.ex_post(found.epsilon)
        assert curve.epsilon(delta) <= both.epsilon * (1.0 + 1e-9) or "times" in fitted.release_.curve
        at_delta = fitted.release_.evaluate(table(), margin=0.2, new_rows=fitted.held_out_, random_state=0, delta=0.01)
        assert at_delta.epsilon >= found.epsilon * (1.0 - 1e-9)


@pytest.mark.parametrize("kind", ["csv", "parquet", "folder"])
def test_a_table_on_disk_is_read_in_pieces_to_the_same_counts(tmp_path, kind):
    data = pa.table(table())
    path = tmp_path / f"t.{kind}"
    if kind == "folder":
        path = tmp_path
        for i in range(3):
            pa.parquet.write_table(data.slice(1000 * i, 1000), tmp_path / f"{i}.parquet")
    elif kind == "csv":
        pa.csv.write_csv(data, path)
    else:
        pa.parquet.write_table(data, path)
    assert (counts(path) == counts(table())).all()
    data = {name: cells for name, cells in table().items() if name != "income"}
    assert (counts(data, y=table()["income"]) == counts(table())).all()


@pytest.mark.parametrize("labels", [("low", "high"), (0, 1), (-1.0, 1.0)])
def test_a_model_of_columns_with_bounds(tmp_path, labels):
    """In memory, and in two files of a folder."""
    features = pa.table({"a": table()["hours"], "b": table()["amount"]})
    y = np.array(labels)[(np.array(table()["income"]) == "high").astype(int)]
    fitted = AccuracyFirstLogisticRegression(
        goal=ErrorRate(0.3), bounds={"a": (0, 80), "b": (0, 100)}, classes=labels, random_state=0
    ).fit(features, y)
    exact = fitted.release_.evaluate(features, y, margin=MARGIN, public_rows=True)
    assert exact.own_cut_off.errors.value == pytest.approx(1 - (fitted.predict(features) == y).mean())
    whole = features.append_column("y", pa.array(y))
    for i in range(2):
        pa.csv.write_csv(whole.slice(1500 * i, 1500), tmp_path / f"{i}.csv")
    again = fitted.release_.with_details(target="y").evaluate(tmp_path, margin=MARGIN, public_rows=True)
    assert again.release.hypothesis == exact.release.hypothesis
    with pytest.raises(ValueError, match="pass the features and y"):
        fitted.release_.evaluate(whole, margin=MARGIN)


def test_persons_on_disk_fill_slots_as_in_memory(tmp_path):
    data = {**table(), "id": [i // 4 for i in range(N)]}
    release = model({**LABELS, "person": "id", "rows_per_person": 3}, ErrorRate(0.25)).fit(data).release_
    pa.csv.write_csv(pa.table(data), tmp_path / "t.csv")
    one, two = (
        release.evaluate(rows, margin=MARGIN, max_epsilon=9.0, random_state=1) for rows in (data, tmp_path / "t.csv")
    )
    assert (one.n, one.release.hypothesis) == (3 * N // 4, two.release.hypothesis)
    assert one.release.parameters["persons"] == N // 4


def test_which_label_is_positive_is_said():
    assert re.search(r"base rate .*, of high$", str(evaluated()), re.MULTILINE)
    assert "<p>Positive is <bdi>high</bdi>.</p>" in evaluated().to_html()


def test_numbers_on_an_axis_do_not_reach_its_name():
    """Digits are at most 7 wide, and end 5 before the frame; the name of the axis ends at 15."""
    huge = {**AMOUNT, "target_bounds": [0.0, 1e9]}
    data = table(amount=[1e7 * amount for amount in table()["amount"]])
    found = model(huge, R2(0.5)).fit(data).release_.evaluate(data, margin=MARGIN, random_state=1)
    numbers = re.findall(r'<text x="([\d.]+)" y="[\d.]+" text-anchor="end">([\d,]{9,})</text>', found.to_html())
    assert numbers
    assert all(float(x) - 7 * len(number) > 15 for x, number in numbers)


class TestStrangeRows:
    @pytest.mark.parametrize("label", ["high", "low", "", None])
    def test_one_class_or_none(self, label):
        found = evaluated(data=table(income=[label] * N))
        assert found.base_rate.high >= (1.0 if label == "high" else 0.0)
        assert 0.0 <= found.auc.low <= found.auc.value <= found.auc.high <= 1.0
        assert "<svg" in found.to_page()
        assert str(found)
        exact = evaluated(data=table(income=[label] * N), public_rows=True, random_state=None)
        assert exact.base_rate.value == (label == "high")
        for shown in (found, exact):  # of a class without rows a curve would be of noise alone
            assert shown.to_page().count("<svg") == 1
            assert "One of the classes may have no rows here" in shown.to_page()

    @pytest.mark.parametrize("amount", [50.0, None, 1e9])
    def test_constant_targets(self, amount):
        for public in (False, True):
            found = evaluated("numbers", data=table(amount=[amount] * N), public_rows=public)
            assert found.r2.low <= found.r2.value <= found.r2.high or found.r2.value == -np.inf
            assert str(found)
            assert "<svg" in found.to_page()

    def test_cells_that_do_not_fit_stop_it_only_if_asked(self):
        data = table(hours=["x", *table()["hours"][1:]])
        assert evaluated(data=data).n == N
        with pytest.raises(InvalidRows, match="hours"):
            evaluated(data=data, on_invalid="error")

    def test_no_rows_or_columns(self):
        with pytest.raises(ValueError, match="no rows"):
            evaluated(data={name: [] for name in table()})
        with pytest.raises(ValueError, match="income"):
            evaluated(data={name: cells for name, cells in table().items() if name != "income"})


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"margin": 0.0}, "margin must be"),
        ({"margin": 1.5}, "margin must be"),
        ({"max_epsilon": -1}, "max_epsilon must be positive"),
        ({"max_epsilon": 5e-324}, "max_epsilon must lie between"),
        ({"bins": 3}, "bins must be an even"),
        ({"bins": True}, "bins must be an even"),
        ({"cut_offs": [1.0]}, "cut_offs must be"),
        ({"cut_offs": 0.5}, "cut_offs must be a list"),
        ({"cut_offs": [k / 200 for k in range(1, 200)]}, "cut_offs must be at most 100"),
        ({"residuals_within": 3.0}, "for models that predict numbers"),
        ({"failure_probability": 0}, "failure_probability must"),
        ({"on_invalid": "drop"}, "on_invalid must be"),
        ({"public_rows": "yes"}, "public_rows must be True or False"),
    ],
)
def test_arguments(options, said):
    with pytest.raises(ValueError, match=said):
        evaluated(**options)


class TestRecord:
    @pytest.mark.parametrize("kind", ["odds", "labels", "numbers"])
    def test_it_survives_json_and_is_no_model(self, kind):
        found = evaluated(kind)
        again = Evaluation.from_json(found.to_json())
        assert again.release == found.release
        assert str(again) == str(found)
        assert again.to_page() == found.to_page()
        with pytest.raises(ValueError, match="is an evaluation and no model"):
            report(again.release)
        assert "<script" not in again.to_page()
        with pytest.raises(ValueError, match="name the release of the model"):
            again.release.predict(table())
        with pytest.raises(ValueError, match="evaluation already"):
            again.release.evaluate(table(), margin=MARGIN)

    @pytest.mark.parametrize(
        "change",
        [
            {"edges": [0.0]},
            {"edges": [3.0, 0.0]},
            {"cut_offs": [0.5]},
            {"kind": "regression"},
            {"kind": "ranking"},
            {"scale": -1.0},
            {"n": 0},
            {"margin": 2.0},
            {"more": 1},
        ],
    )
    def test_a_changed_file_is_noticed(self, change):
        said = json.loads(evaluated().to_json())
        said["parameters"]["evaluation"].update(change)
        with pytest.raises(ValueError, match=r"not an evaluation|not a release"):
            Evaluation.from_json(json.dumps(said))

    def test_more_cells_than_any_evaluation_has(self):
        """Their page would not come to its end."""
        said = json.loads(evaluated().to_json())
        odds = [k / 1000 for k in range(-2000, 2000)]
        chances = [1 / (1 + math.exp(-each)) for each in odds]
        said["parameters"]["evaluation"] |= {"edges": odds, "cut_offs": chances, "n": 10**10}
        said["hypothesis"] = [[0] * 4001] * 2
        with pytest.raises(ValueError, match="do not belong together"):
            Evaluation.from_json(json.dumps(said))

    def test_as_many_cells_as_there_may_be(self):
        assert counts(table(), bins=256, cut_offs=np.arange(1, 101) / 103).size > 600
        assert counts(table(), "numbers", bins=32).size == 1024

    def test_counts_of_another_shape(self):
        said = json.loads(evaluated().to_json())
        for counts in ([1.0], [[1], [2]], None, [["a"] * 32] * 2):
            with pytest.raises(ValueError, match=r"not an evaluation|not a release|did not come"):
                Evaluation.from_json(json.dumps({**said, "hypothesis": counts}))
        with pytest.raises(ValueError, match="no evaluation"):
            Evaluation(released())


@cache
def rare() -> tuple[dict, Release]:
    """A table with one row in 25 positive, and a model of it that was told so."""
    rng = np.random.default_rng(5)
    hours = rng.uniform(0, 80, 30_000)
    income = np.where(hours + rng.normal(0, 8, 30_000) > 80, "high", "low")
    data = {"hours": hours, "sector": ["public"] * 30_000, "income": income}
    return data, model(LABELS, LogLoss(0.12), when_short="keep").fit(data).release_


def test_recall_falls_as_the_cut_off_rises_and_bands_stay():
    """Sums of noisy counts do not; what is shown instead stays within their bands, and nearer to the truth."""
    data, release = rare()
    with pytest.warns(CoarseMarginWarning):
        found = release.evaluate(data, margin=0.02, random_state=0)  # a half of the label
    exact = release.evaluate(data, margin=0.02, public_rows=True)
    noisy = found.counts[1][::-1].cumsum()[::-1][1:] / found.n
    assert (np.diff(noisy) > 0).any()
    for name in ("hits", "false_alarms", "flagged", "recall", "false_alarm_rate"):
        bands = [getattr(at, name) for at in found.at]
        assert (np.diff([band.value for band in bands]) <= 1e-12).all(), name
        assert all(band.low <= band.value <= band.high for band in bands)
    for at, count in zip(found.at, noisy, strict=True):
        assert at.hits[1:] == (max(0.0, count - 0.02), count + 0.02)
    hits, truth = ([at.hits.value for at in some.at] for some in (found, exact))
    assert np.square(np.subtract(hits, truth)).sum() < np.square(noisy - truth).sum()


def test_a_margin_that_tells_nothing_of_a_rare_label_is_warned_of_before_anything_is_spent(tmp_path):
    """With one that tells something, and what that costs; an ε of a made-up price would be another."""
    data, release = rare()
    ledger = new_ledger(tmp_path, 1.0)
    with pytest.raises(CoarseMarginWarning, match=r"a label that about 0\.0[345]") as said:
        release.evaluate(data, margin=0.02, random_state=0, ledger=ledger)
    assert charged(ledger) == []
    finer, costs = re.search(
        r"A margin of (\S+) tells something, and would cost epsilon = (\S+)", str(said.value)
    ).groups()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LargeEpsilonWarning)
        paid = release.evaluate(data, margin=float(finer), random_state=0).epsilon
    assert float(costs) == pytest.approx(paid, rel=1e-3)
