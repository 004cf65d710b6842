"""Second moments in stages for goals that are tested: goals met, the budget kept, what is read, and the doors."""

from __future__ import annotations

import json
import math

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from expost import R2, AccuracyFirstModel, AccuracyFirstRidge, ErrorRate, LogLoss, MeanSquaredError
from expost.account.account import Account
from expost.account.composition import Curve
from expost.cli import main
from expost.goals import labels_and_base_rate as counts
from expost.mechanisms.moments import gaussian_moments as moments
from expost.mechanisms.moments.gaussian_moments import MomentNoise, MomentsPlan
from expost.noise import SeededSource
from expost.search import noisy_test
from expost.search.levels import StagedSearch
from expost.search.request import staged_request
from expost.search.run import settle
from tests.estimators.model_helpers import AMOUNT, LABELS, table
from tests.helpers import watch_paths
from tests.mechanisms.test_descent_search import SHAPE, N, generator, rows

DELTA = 1e-6


def run(goal, seed=0, budget=6.0):
    request = staged_request("covariance", goal, SHAPE, N, 0.1, budget, DELTA)
    plan = settle(request)
    assert isinstance(plan, MomentsPlan)
    made = request.mechanism.on(rows(goal), request.problem)
    account = Account("auto", plan.worst_case, secure=False, delta=DELTA)
    return plan.search(made, account, SeededSource(seed)), generator(goal).judge


@pytest.mark.parametrize("goal", [ErrorRate(0.2), R2(0.6), MeanSquaredError(0.12)], ids=lambda g: g.name)
def test_goals_are_met(goal):
    release, objective = run(goal)
    assert release.status == "released"
    assert goal.shortfall(objective, np.array(release.hypothesis)) <= 0
    assert (release.delta, release.noise) == (DELTA, "exact")


def test_a_search_that_is_not_given_up_stays_within_the_budget_and_uses_it(monkeypatch):
    monkeypatch.setattr(StagedSearch, "_futile", lambda self: False)
    release, _ = run(ErrorRate(0.05), budget=1.0)
    assert release.status == "short"
    assert 0.5 < release.epsilon <= 1.0


def test_what_is_charged_is_what_was_drawn(monkeypatch):
    spent, draw = [], MomentNoise.draw
    monkeypatch.setattr(MomentNoise, "draw", lambda self, rho, source: (spent.append(rho), draw(self, rho, source))[1])
    looked = watch_paths(monkeypatch, noisy_test, counts)
    release, _ = run(ErrorRate(0.14))
    pure = math.fsum(path[-1] for path in looked if path)
    booked = Curve.gaussian(math.fsum(spent)) + Curve.ex_post(pure)
    np.testing.assert_allclose(release.account_curve().losses, booked.losses, rtol=1e-8)
    assert pure > 0


def test_lambda_is_a_public_number(monkeypatch):
    """Worked out from the moments and the model of a first stage, it is the same whatever the noise was.

    What moves with the noise, as the smallest eigenvalue does, is not.
    """
    genuine, seen = moments.MomentWalk.stage, []

    def watched(self, rho, source):
        model = genuine(self, rho, source)
        second, first = (part / N for part in self._averaged.moments)
        values, vectors = np.linalg.eigh(second)
        along, least = (
            vectors.T @ (model * self._noise.divisors),
            np.argmax(np.abs(vectors.T @ first) * (values < 0.01)),
        )
        seen.append(((vectors.T @ first)[least] / along[least] - max(values[least], 0.0), values[0]))
        return model

    monkeypatch.setattr(moments.MomentWalk, "stage", watched)
    firsts = []
    for seed in range(3):
        seen.clear()
        run(ErrorRate(0.2), seed)
        firsts.append(seen[0])
    lams, smallest = (np.array(part) for part in zip(*firsts, strict=True))
    np.testing.assert_allclose(lams, lams[0], rtol=1e-3)
    assert np.ptp(smallest) > 1e-3 * np.abs(smallest).max()


def test_predictions_of_cost_are_public():
    """What auto may compare: more columns cost more, more rows less."""
    few = moments.moments_rho(SHAPE, N)
    assert moments.moments_rho(SHAPE, 2 * N) == pytest.approx(few / 4)


class TestDoors:
    @pytest.mark.parametrize(("schema", "goal"), [(LABELS, ErrorRate(0.25)), (LABELS, LogLoss(0.6)), (AMOUNT, R2(0.5))])
    def test_model(self, schema, goal):
        model = AccuracyFirstModel(schema, goal, delta=DELTA, perturbation="covariance", random_state=1).fit(table())
        release = model.release_
        assert (release.delta, release.perturbation, release.noise) == (DELTA, "covariance", "exact")
        assert release.parameters["loss"] == "squared"
        assert len(model.predict(table())) == len(table()["hours"])

    def test_a_person_with_several_rows(self):
        known = {name: cells[:1500] for name, cells in table().items()}
        twice = {name: [cell for cell in cells for _ in range(2)] for name, cells in known.items()}
        twice["who"] = [i // 2 for i in range(3000)]
        options = {"delta": DELTA, "perturbation": "covariance", "random_state": 1}
        model = AccuracyFirstModel(LABELS, ErrorRate(0.3), person="who", rows_per_person=2, **options).fit(twice)
        alone = AccuracyFirstModel(LABELS, ErrorRate(0.3), **options).fit(known)
        assert model.release_.unit == "person"
        assert 0.5 < model.release_.epsilon / alone.release_.epsilon < 2.0

    def test_mistakes(self):
        with pytest.raises(ValueError, match="pass a delta"):
            AccuracyFirstModel(LABELS, ErrorRate(0.25), perturbation="covariance", random_state=1).fit(table())
        with pytest.raises(ValueError, match="'covariance'"):
            AccuracyFirstModel(LABELS, ErrorRate(0.25), delta=DELTA, perturbation="output", random_state=1).fit(table())

    @pytest.mark.parametrize("perturbation", [None, "covariance"])
    def test_ridge(self, perturbation):
        rng = np.random.default_rng(0)
        X = rng.uniform(0, 10, size=(4000, 2))
        y = X @ [2.0, -1.0] + rng.normal(size=4000)
        model = AccuracyFirstRidge(
            goal=R2(0.7),
            bounds=(0, 10),
            target_bounds=(-15, 25),
            delta=DELTA,
            perturbation=perturbation,
            random_state=0,
        ).fit(X, y)
        assert model.release_.perturbation == (perturbation or "gradient descent")
        assert model.score(X, y) > 0.7

    def test_command_line(self, tmp_path, capsys, monkeypatch):
        monkeypatch.chdir(tmp_path)
        pa.csv.write_csv(pa.table(table()), "table.csv")
        text = 'target = "income"\nclasses = ["low", "high"]\n[columns.hours]\nbounds = [0, 80]\n'
        (tmp_path / "schema.toml").write_text(text + '[columns.sector]\ncategories = ["public", "private"]\n')
        flags = ["fit", "table.csv", "--schema", "schema.toml", "--error-rate", "0.25", "--seed", "1", "--json"]
        assert main([*flags, "--delta", "1e-6", "--perturbation", "covariance"]) == 0
        said = json.loads(capsys.readouterr().out)
        assert (said["perturbation"], said["delta"]) == ("covariance", DELTA)
        assert main([*flags, "--perturbation", "covariance"]) == 2
        assert "--delta" in capsys.readouterr().err

    def test_command_line_without_a_schema(self, tmp_path, capsys, monkeypatch):
        monkeypatch.chdir(tmp_path)
        pa.csv.write_csv(pa.table({"hours": table()["hours"], "amount": table()["amount"]}), "table.csv")
        flags = ["fit", "table.csv", "--target", "amount", "--bounds", "0", "80", "--delta", "1e-6", "--seed", "1"]
        flags += ["--perturbation", "covariance"]
        regression = [*flags, "--task", "regression", "--target-bounds", "0", "100", "--excess-risk", "0.05", "--json"]
        assert main(regression) == 0
        said = json.loads(capsys.readouterr().out)
        assert (said["perturbation"], said["delta"]) == ("covariance", DELTA)
