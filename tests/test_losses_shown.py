"""No text shows a loss smaller, or a cap larger, than it is: the source is read, and texts from every door are.

Nor does one promise at a δ what holds for pure losses only.
"""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
import warnings
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pytest

import expost
from expost import (
    R2,
    AccuracyFirstRidge,
    ErrorRate,
    ExcessRisk,
    Ledger,
    LogLoss,
    MeanCost,
    MeanSquaredError,
    Release,
    budget,
)
from expost.account.account import Account, warn_if_large
from expost.account.composition import Curve
from expost.estimators import gradient_path
from expost.exceptions import (
    AccuracyNotReached,
    LargeDeltaWarning,
    LargeEpsilonWarning,
    LedgerRefused,
    SearchInterrupted,
)
from expost.release import Promise
from expost.release.page import BudgetLine, report
from expost.search import run_search
from expost.shown import down, up
from expost.solve.losses import LogisticLoss, SquaredLoss
from expost.solve.problem import Problem
from tests.cli.helpers import REGRESSION, call, write
from tests.cli.test_interrupted import interrupt
from tests.helpers import outcome, regression_rows

SOURCE = Path(expost.__file__).parent
PAID = 3.49219  # "3.492" to the nearest, which is less
LOSS = re.compile(
    r"epsilon|budget|\bcaps?\b|spent|\bcosts?\b|charge|risk_factor|suspicion|wished|worst_case|\brho\b"
    r"|\bdelta\b|\.false_(positive|negative)\b|\.number\b"  # and what was stated, which means another thing if rounded
)
BEFORE = re.compile(r"(epsilon|ε|rho|ρ|budget|cap|odds)\s*([=≤×]|about|of|up to|at least)?\s*$")
BOUND = re.compile(r"(at most|at least|[≤≥±])\s*$")  # what is promised or proved; limits of arguments are exact
# means over simulated runs, which are measured and bound nobody's loss
MEASURED = ("experiments/",)


def rounded(text: str) -> list[str]:
    """Return the expressions that a source writes in a few digits to the nearest, and that are losses, caps, bounds."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.JoinedStr):
            before = ""
            for part in node.values:
                if isinstance(part, ast.Constant):
                    before += part.value
                    continue
                spec = "" if part.format_spec is None else ast.unparse(part.format_spec)
                what = ast.unparse(part.value)
                if what.endswith("loss.delta"):  # where Huber's loss bends
                    continue
                bound = BOUND.search(before) and "must be" not in before and not what.isupper()
                if re.search(r"[gfe%]['\"]?$", spec) and (LOSS.search(what) or BEFORE.search(before) or bound):
                    found.append(what)
                before += "#"
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("round", "format"):
            written = len(node.args) == 2  # round(x) makes an integer of a number, which nobody reads
            found += [ast.unparse(node)] if written and LOSS.search(ast.unparse(node.args[0])) else []
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and isinstance(node.left, ast.Constant):
            found += [ast.unparse(node)] if isinstance(node.left.value, str) else []
    return found


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_one_function_writes_losses(path):
    if not str(path.relative_to(SOURCE)).startswith(MEASURED):
        assert rounded(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "line",
    [
        'f"epsilon = {release.epsilon:.4g} has to be counted"',
        'f"{a} costs epsilon = {each:.3g}"',
        'f"more than {max_epsilon:g}"',
        'f"odds ×{factor:.2f}"',
        'f"the gap is at least {found.lower:.3g}"',
        'f"{goal} ≤ {most:.4g}"',
        'f"{unit.charge(x):.4g}"',
        'f"at δ = {self.delta:g}"',
        'f"a false positive costing {self.false_positive:g}"',
        'f"{self.name} {self.sign} {self.number:g}"',
        "round(release.epsilon, 3)",
        "format(budget, '.3g')",
        '"%.4g" % anything',
    ],
)
def test_rounding_to_the_nearest_is_noticed(line):
    assert len(rounded(line)) == 1
    assert (
        rounded('f"{up(release.epsilon)} at delta = {up(delta, 6)}, {release.epsilon}, excess risk {alpha:.3g}"') == []
    )


def shown(text: str, loss: float = PAID) -> None:
    """Check that a text states a loss, rounded up, and nowhere to the nearest."""
    assert up(loss) in text
    assert not re.search(rf"(?<![\d.]){re.escape(f'{loss:.4g}')}(?!\d)", text)
    assert not re.search(rf"(?<![\d.]){re.escape(f'{loss:.3g}')}(?!\d)", text)


def made(status: str = "released") -> Release:
    return Release(status, "m", epsilon_generation=PAID, epsilon_worst_case=PAID, parameters={"n": 100})


def test_exceptions_summaries_and_reports():
    shown(str(AccuracyNotReached(made("refused"))))
    shown(str(SearchInterrupted(made("refused"), "KeyError")))
    for text in (str(made()), report(made(), BudgetLine("survey", PAID, 4.00009))):
        shown(text)
        assert "32.86" in text  # odds: 32.8578
        assert "25 %" in text  # what a suspicion of 1 % becomes: 24.92 %
    assert "of 4 spent" in report(made(), BudgetLine("survey", PAID, 4.00009))


def test_bounds_in_a_report_are_rounded_up():
    """θ is 2.0001 away at most: "± 2" would be too little."""
    promise = Promise(
        "… against the unconstrained optimum", excess_risk=0.020002, regularization=0.01, failure_probability=0.1
    )
    bounds = {"lower": [-1.0], "upper": [1.0]}
    prepared = {"n_columns": 1, "feature_bound": 1.0, "bounds": bounds, "target": [-1.0, 1.0], "intercept_weight": 0.0}
    known = {"columns": ["x0"], "coef": [0.5], "intercept": 0.0, "n": 100, "loss": "squared"}
    said = {"promise": promise, "parameters": known, "preparation": prepared}
    assert "± 2.1" in report(Release("released", "auto", 1.0, 0.0, 0.0, 1.0, [0.5], **said))


def test_a_large_loss_at_a_delta_is_about_one_direction_and_but_for_it():
    account = Account("by hand", 50.0, False, delta=1e-6)
    account.book("generation", Curve.gaussian(0.5))
    with pytest.warns(LargeEpsilonWarning, match="not a certain other.* grown .* but for a chance of 1e-06"):
        warn_if_large(account.released([1.0]))
    with pytest.warns(LargeEpsilonWarning, match="odds about any row may have moved"):
        warn_if_large(made())


def test_what_a_ledger_does_not_take_was_spent_all_the_same(tmp_path):
    ledger = Ledger.create(tmp_path / "budget.db", "d", cap=4.0, unit="one household replaced")
    for door in (ledger.book, ledger.reserve(0.1, unit="one household replaced").settle):
        with pytest.raises(LedgerRefused, match=r"Nothing was charged here$"):
            door(made())
    with pytest.raises(LedgerRefused, match=r"Nothing was spent$"):
        ledger.reserve(0.1)


def test_an_expected_risk_is_rounded_up():
    problem = Problem.of(SquaredLoss(), n=20_000, p=4, regularization=0.05)
    asked = {"method": "theory", "random_state": 0}
    release = run_search(regression_rows(20_000), problem, ExcessRisk(0.02000041), **asked)
    assert "at most 0.0200005" in release.promise.statement


def test_a_large_delta_is_warned_of_by_every_fit(rows):
    """Before anything is spent: warnings are errors here."""
    stated = {"delta": 0.01, "bounds": 1.0, "excess_risk": 0.05, "regularization": 0.1, "perturbation": "covariance"}
    with pytest.raises(LargeDeltaWarning, match="large for 400 rows") as ridge:
        AccuracyFirstRidge(**stated, target_bound=2.0).fit(*rows)
    hours = np.linspace(0, 80, 400)
    table = {"hours": hours, "late": np.where(hours > 40, "yes", "no")}
    schema = {"target": "late", "classes": ["no", "yes"], "columns": {"hours": {"bounds": [0, 80]}}}
    with pytest.raises(LargeDeltaWarning, match="large for 400 rows") as path:
        next(gradient_path(table, schema, delta=0.01))
    for raised in (ridge, path):
        assert "Nothing was spent" in raised.value.__notes__


@pytest.fixture(scope="module")
def rows():
    X = np.random.default_rng(0).uniform(-1, 1, size=(400, 2))
    return X, X @ [1.0, -0.5]


def test_warnings_of_fit(rows):
    lower = 0
    for excess_risk in np.linspace(0.0005, 0.0012, 8):
        model = AccuracyFirstRidge(
            bounds=1.0,
            target_bound=2.0,
            excess_risk=float(excess_risk),
            regularization=0.1,
            max_epsilon=50,
            random_state=1,
        )
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            release = model.fit(*rows).release_
        (said,) = [str(each.message) for each in caught if each.category is LargeEpsilonWarning]
        epsilon, factor = re.search(r"epsilon = (\S+) is large: .* factor of (\S+)\. Ask", said).groups()
        assert release.epsilon <= float(epsilon) < release.epsilon * 1.001
        assert release.risk_factor <= float(factor) < release.risk_factor * 1.001
        assert up(release.epsilon_generation) in " ".join(release.parameters["reasons"])
        lower += float(f"{release.epsilon:.4g}") < release.epsilon
    assert lower  # so that writing it to the nearest would have been seen


def test_interrupted_on_the_command_line(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = write(tmp_path)
    fixed = [*REGRESSION, "--method", "fixed", "--regularization", "1", "--max-epsilon", PAID]
    ledger = tmp_path / "budget.db"
    assert call(capsys, "ledger", "create", ledger, "--dataset", "d", "--cap", "4.00009").status == 0
    charged = [*fixed, "--ledger", ledger, "--dataset", "d"]
    with monkeypatch.context() as patch:
        interrupt(patch, KeyboardInterrupt(), after=0)
        said = call(capsys, "fit", path, *charged)
    assert said.status == 3
    shown(said.err)
    shown(said.out)
    told = call(capsys, "ledger", "show", ledger).out
    shown(told)
    assert "cap 4\n" in told
    again = call(capsys, "fit", path, *charged).err
    assert "has 0.5079 of 4 left" in again
    shown(again)
    monkeypatch.setattr("expost.cli.fit.deliver", _stop)  # after the search, where no search catches it
    said = call(capsys, "fit", path, *fixed)
    assert said.status == 3
    shown(said.err.splitlines()[-1])


def _stop(*_):
    raise KeyboardInterrupt


def test_budgets_and_ledgers(tmp_path):
    assert repr(budget(1.00009, 1e-6)).startswith("Budget(epsilon=1, ")
    ledger = Ledger.create(tmp_path / "budget.db", "d", cap=1.00009)
    with pytest.raises(
        expost.exceptions.BudgetExceeded, match=r"has 1 of 1 left, and this search may cost up to 3\.493"
    ):
        ledger.reserve(PAID)


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_the_page_rounds_alike():
    script = (SOURCE / "planning/assets/model.js").read_text(encoding="utf-8")
    values = [*np.exp(np.random.default_rng(0).uniform(-12, 6, 500)).tolist(), 0.1, 1.0, 9.96, 0.0996, 10.0, 99.5]
    asked = (
        'const document = {getElementById: () => ({textContent: \'{"goal": {"values": [], "parts": []}}\'})};\n'
        f"{script}\n"
        f"console.log(JSON.stringify({json.dumps(values)}.map((v) => [Words.number(v), Words.cap(v)])))"
    )
    told = json.loads(subprocess.run(["node", "-e", asked], capture_output=True, text=True, check=True).stdout)
    for value, (loss, cap) in zip(values, told, strict=True):
        assert float(loss) == float(up(value, 2))
        assert value / 1.1 - 1e-15 <= float(cap) <= value
    assert float(down(0.99999)) < 1 < float(up(1.00001))


def at_a_delta() -> Release:
    account = Account("m", worst_case=1.0, secure=True, delta=1e-6)
    account.book("generation", Curve.gaussian(0.001))
    return account.released([1.0], parameters={"n": 4000})


def test_at_a_delta_one_direction_is_stated():
    """A bound for each ordered pair is about one value against one other, one way; pure losses are about all."""
    pure, said = " ".join(str(made()).split()), " ".join(str(at_a_delta()).split())
    assert "a suspicion of 1 % about one row can become at most" in pure
    assert "a suspicion of 1 % that one row is a certain one, and not a certain other, can become at most" in said
    assert "n·δ = 0.004: by chance it may speak for so many by more than ε on average, each against one other" in said
    pure, said = report(made(), None), report(at_a_delta(), None)
    assert ", up or down, " in pure
    assert "2δ" not in pure
    assert "up or down" not in said
    assert "is a certain one or a certain other, what this row adds to the release raises the odds by" in said
    assert "that they move by more either way has a chance of at most 2δ" in said


@pytest.mark.parametrize(
    "path", [*SOURCE.rglob("*.py"), *(SOURCE.parents[1] / "docs").glob("*.md")], ids=lambda path: path.name
)
def test_nothing_is_told_apart_both_ways(path):
    words = " ".join(path.read_text(encoding="utf-8").split())
    assert not re.search(r"(tells?|told) (the two |them )?apart (better )?by more", words)


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 2.0])
def test_both_directions_have_more_than_delta(epsilon):
    """Gaussian noise whose loss exceeds ε with a chance of exactly δ: that it does so either way is likelier."""
    delta, normal = 1e-3, NormalDist()
    low, high = 1e-6, 10.0  # m, the shift in deviations of the noise: the loss is N(m²/2, m²) under D
    for _ in range(200):
        m = (low + high) / 2
        low, high = (m, high) if normal.cdf((m * m / 2 - epsilon) / m) < delta else (low, m)
    both = normal.cdf((m * m / 2 - epsilon) / m) + normal.cdf((-epsilon - m * m / 2) / m)
    assert 1.01 * delta < both <= (1 + np.exp(-epsilon)) * delta * (1 + 1e-9) < 2 * delta


def test_a_delta_and_costs_are_never_less_than_what_holds():
    """To the nearest they were 1.23456e-06 and 1.23457."""
    account = Account("m", worst_case=20.0, secure=True, delta=1.2345649e-6)
    account.book("generation", Curve.gaussian(1.0))
    release = account.released([1.0], parameters={"n": 4000})
    for text in (str(release), report(release, None), repr(budget(1.0, 1.2345649e-6))):
        assert "1.23457e-06" in text
        assert "1.23456e-06" not in text
    goal = MeanCost(0.25, false_positive=1, false_negative=1.2345651)
    assert "a false positive costing 1 and a false negative 1.2345651" in goal.statement()
    assert (goal.words, ErrorRate(0.12345649).words) == ("mean cost ≤ 0.25", "error rate ≤ 0.12345649")


@pytest.mark.parametrize(
    ("goal", "said"),
    [
        (ErrorRate(0.12345649), "at most 0.123457"),
        (R2(0.8999996), "at least 0.899999"),
        (MeanSquaredError(123456.49), "at most 123457"),
        (LogLoss(0.54321001), "at most 0.543211"),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_promises_are_never_better_than_what_was_tested(goal, said):
    loss = LogisticLoss() if goal.name in ("error rate", "log loss") else SquaredLoss()
    problem = Problem.of(loss, n=100, p=2, regularization=0.1)
    assert said in goal.promise(problem).statement


def test_a_probability_is_never_rounded_up_to_certainty():
    release = outcome(
        run_search,
        regression_rows(5_000),
        Problem.of(SquaredLoss(), n=5_000, p=4, regularization=0.05),
        ExcessRisk(0.1),
        failure_probability=1e-7,
        random_state=0,
    )
    assert "with probability at least 0.999999 over the noise" in release.promise.statement
