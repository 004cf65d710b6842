"""The release: frozen all the way down, complete in JSON, consistent or refused."""

from __future__ import annotations

import copy
import dataclasses
import datetime
import json
import math
import pickle
import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from expost import Release
from expost.account.account import Account
from expost.account.composition import Clock, Curve
from expost.release import NEIGHBOURS, FrozenMapping, Promise

losses = st.floats(0, 1e6)


def full_release(**changes):
    fields = {
        "status": "released",
        "method": "above_threshold",
        "epsilon_generation": 0.1,
        "epsilon_test": 0.2,
        "epsilon_probe": 0.3,
        "epsilon_worst_case": math.inf,
        "hypothesis": np.array([[1.5, -2.25], [0.1, 1e-300]]),
        "level": np.int64(3),
        "n_levels": 32,
        "promise": Promise("within 0.05", excess_risk=0.05, failure_probability=0.1, radius=7.0, regularization=0.005),
        "perturbation": "output",
        "calibration": "tight",
        "secure": False,
        "preparation": {"bounds": {"lower": [0.0, -1.0], "upper": (1, 2)}, "names": ["a", -math.inf]},
        "parameters": {"weights": np.array([1.0, 2.0]), "nested": [[1, [2, 3]], "x"], "float": {"float": 1.0}},
        "exact": ["noise"],
        "claims": ("a claim",),
        **changes,
    }
    return Release(**fields)


class TestFrozen:
    def test_fields_cannot_be_set(self):
        release = full_release()
        with pytest.raises(dataclasses.FrozenInstanceError):
            release.epsilon_test = 0.0
        with pytest.raises(dataclasses.FrozenInstanceError):
            release.promise.excess_risk = 0.0
        with pytest.raises(AttributeError):
            release.epsilon = 0.0

    def test_all_the_way_down(self):
        release = full_release()
        assert release.hypothesis == ((1.5, -2.25), (0.1, 1e-300))
        assert release.exact == ("noise",)
        assert release.parameters["nested"] == ((1, (2, 3)), "x")
        for mapping in (release.parameters, release.preparation["bounds"], release.versions):
            assert isinstance(mapping, FrozenMapping)
            with pytest.raises(TypeError):
                mapping["new"] = 1
            with pytest.raises(AttributeError, match="cannot be changed"):
                mapping.new = 1
            with pytest.raises(AttributeError):
                mapping.pop("new")

    def test_later_changes_of_what_was_passed_do_not_reach_it(self):
        theta, parameters = np.array([1.0, 2.0]), {"list": [1, 2]}
        release = full_release(hypothesis=theta, parameters=parameters)
        theta[0] = 99.0
        parameters["list"].append(3)
        parameters["more"] = 1
        assert release.hypothesis == (1.0, 2.0)
        assert dict(release.parameters) == {"list": (1, 2)}

    def test_it_can_be_hashed_and_compared(self):
        assert len({full_release(), full_release(), full_release(level=4)}) == 2

    def test_numbers_are_plain(self):
        release = full_release(epsilon_test=np.float64(0.25))
        assert type(release.level) is int
        assert type(release.epsilon_test) is float

    def test_details_may_be_added_but_not_the_settled_facts(self):
        release = full_release()
        assert release.with_details(not_covered=["x"]).not_covered == ("x",)
        for settled in ("status", "hypothesis", "epsilon_generation", "epsilon_test", "epsilon_probe"):
            with pytest.raises(ValueError, match="settled by the search"):
                release.with_details(**{settled: None})


class TestConsistency:
    def test_a_refusal_carries_no_hypothesis(self):
        assert Release(status="refused", method="m").hypothesis is None
        with pytest.raises(ValueError, match="carries no hypothesis"):
            Release(status="refused", method="m", hypothesis=(1.0,))

    @pytest.mark.parametrize("name", ["epsilon_generation", "epsilon_test", "epsilon_probe", "epsilon_worst_case"])
    @pytest.mark.parametrize("value", [-1.0, -1e-300, math.nan, -math.inf])
    def test_losses_are_not_negative(self, name, value):
        with pytest.raises(ValueError, match=f"{name} must be a non-negative number"):
            full_release(**{name: value})

    def test_no_outcome_costs_more_than_the_worst(self):
        with pytest.raises(ValueError, match="worst case"):
            full_release(epsilon_worst_case=0.5)
        with pytest.raises(ValueError, match="worst case"):
            full_release().with_details(epsilon_worst_case=0.0)

    def test_an_unknown_status(self):
        with pytest.raises(ValueError, match="status"):
            full_release(status="leaked")

    @given(losses, losses, losses)
    def test_epsilon_is_never_below_the_exact_sum_and_hardly_above(self, a, b, c):
        release = Release(status="released", method="m", epsilon_generation=a, epsilon_test=b, epsilon_probe=c)
        exact = Fraction(a) + Fraction(b) + Fraction(c)
        assert Fraction(release.epsilon) >= exact
        assert Fraction(math.nextafter(release.epsilon, 0)) < exact or release.epsilon == 0

    def test_the_exact_sum_matters(self):
        """Even the correctly rounded sum of these is below their exact one."""
        parts = [0.1, 0.1, 0.5]
        assert Fraction(math.fsum(parts)) < sum(map(Fraction, parts))
        release = full_release(epsilon_generation=0.1, epsilon_test=0.1, epsilon_probe=0.5)
        assert Fraction(release.epsilon) >= sum(map(Fraction, parts))

    def test_risk_factor(self):
        assert full_release().risk_factor == pytest.approx(math.exp(0.6))
        assert full_release(epsilon_test=800.0).risk_factor == math.inf
        assert full_release(epsilon_test=math.inf).risk_factor == math.inf

    def test_what_is_said_by_default(self):
        release = Release(status="released", method="m")
        assert release.neighbours == NEIGHBOURS
        assert math.isinf(release.epsilon_worst_case)
        assert release.promise.statement == "no accuracy is promised"
        assert set(release.versions) == {"expost", "numpy", "cryptography", "python"}


class TestJson:
    def test_round_trip(self):
        release = full_release()
        again = Release.from_json(release.to_json())
        assert again == release
        assert hash(again) == hash(release)
        assert again.to_json() == release.to_json()
        assert Release.from_json(release.to_json(indent=None)) == release

    def test_it_is_json_proper(self):
        """No Infinity, which other readers reject; the sum and the factor are spelled out for people."""

        def refuse(name):
            raise AssertionError(name)

        raw = json.loads(full_release().to_json(), parse_constant=refuse)
        assert raw["epsilon"] == full_release().epsilon
        assert raw["risk_factor"] == full_release().risk_factor
        assert raw["epsilon_worst_case"] == {"float": "inf"}

    @pytest.mark.parametrize("name", ["epsilon_generation", "epsilon_test", "epsilon_worst_case"])
    def test_infinite_losses(self, name):
        release = full_release(**{"epsilon_worst_case": math.inf, name: math.inf})
        assert Release.from_json(release.to_json()) == release

    def test_a_refusal(self):
        release = full_release(status="refused", hypothesis=None, level=None)
        assert Release.from_json(release.to_json()) == release

    @settings(max_examples=50, deadline=None)
    @given(
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(st.text().filter(lambda key: key != "float"), inner, max_size=3)
            ),
            max_leaves=8,
        )
    )
    def test_whatever_is_in_the_details(self, value):
        release = full_release(parameters={"value": value}, preparation={"value": [value]})
        assert Release.from_json(release.to_json()) == release

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("epsilon", 0.5),
            ("epsilon", None),
            ("epsilon_test", 0.1),
            ("epsilon_test", 0.2000001),
            ("epsilon_test", "0.2"),
            ("epsilon_test", None),
            ("epsilon_generation", -0.1),
            ("epsilon_generation", {"float": "nan"}),
            ("epsilon_worst_case", 0.3),
            ("risk_factor", 1.0),
            ("risk_factor", None),
            ("risk_factor", "2"),
            ("status", "refused"),
            ("status", "fine"),
            ("promise", None),
            ("promise", {"statement": "x", "accuracy": 1.0}),
            ("format", 1),
            ("format", 3),
            ("id", None),
            ("date", "yesterday"),
            ("date", 3),
            ("format", None),
        ],
    )
    def test_tampered_texts_are_refused(self, field, value):
        raw = json.loads(full_release().to_json())
        assert Release.from_json(json.dumps(raw)) == full_release()
        raw[field] = value
        with pytest.raises(ValueError, match=r"not a release|must be|carries no|worst case"):
            Release.from_json(json.dumps(raw))

    @pytest.mark.parametrize("field", ["epsilon", "epsilon_probe", "hypothesis", "promise", "secure", "format", "id"])
    def test_missing_fields_are_refused(self, field):
        raw = json.loads(full_release().to_json())
        del raw[field]
        with pytest.raises(ValueError, match="not a release"):
            Release.from_json(json.dumps(raw))

    def test_unknown_fields_are_refused(self):
        raw = json.loads(full_release().to_json())
        with pytest.raises(ValueError, match="excess"):
            Release.from_json(json.dumps({**raw, "excess": 0.0}))

    @pytest.mark.parametrize("clock", [None, Clock.of([1e-4, 1e-3])], ids=["on orders", "on a clock"])
    @pytest.mark.parametrize("steps", [(9e-5, 0.05, 0.0), (9e-5, 0.0, 0.01), (0.0, 0.05, 0.01), (3e-6, 0.0, 0.0)])
    def test_a_curve_fits_its_epsilon(self, clock, steps):
        """A ledger charges the curve: one that says less than the release does is no release's."""
        account = Account("by hand", 0.5, False, delta=1e-6, clock=clock)
        rho, tested, looked = steps
        account.book("generation", Curve.gaussian(rho))
        account.book("test", Curve.ex_post(tested))
        account.look_first(looked)
        raw = json.loads(account.released([1.0]).to_json())
        assert Release.from_json(json.dumps(raw)).epsilon == raw["epsilon"]
        lower = [0.3 * loss for loss in raw["curve"]["losses"]]
        for change in ({"losses": [0.0] * len(lower)}, {"losses": lower}, {"most": 0.0}):
            for usual in (raw["epsilon_usual"], change.get("most", 0.0)):
                edited = {**raw, "epsilon_usual": usual, "curve": {**raw["curve"], **change}}
                with pytest.raises(ValueError, match=r"curve"):
                    Release.from_json(json.dumps(edited))

    def test_what_an_interruption_is_charged_is_read(self):
        for held in ("gaussian", "pure"):
            for most in (1e-3, 0.3, 50.0):
                release = Account("by hand", most, False, delta=1e-6, one_curve=held).interrupted()
                assert Release.from_json(release.to_json()) == release

    def test_none_continues_itself(self):
        parameters = {"continues": "a1f", "epsilon_increment": 0.0}
        with pytest.raises(ValueError, match="itself"):
            Release.from_json(full_release(id="b2e", parameters=parameters).to_json().replace("b2e", "a1f"))

    @pytest.mark.parametrize("text", ["", "{", "[]", "3", "null", "{}", '{"format": 1}'])
    def test_other_texts_are_refused(self, text):
        with pytest.raises(ValueError, match="not a release"):
            Release.from_json(text)


class TestWhichRun:
    def test_every_run_has_an_id_and_a_day(self):
        before = datetime.datetime.now(datetime.UTC).date()
        one, two = full_release(), full_release()
        assert one.id != two.id
        assert one == two  # what was released and paid is the same
        assert set(one.id) <= set("0123456789abcdef")
        assert len(one.id) == 16
        after = datetime.datetime.now(datetime.UTC).date()
        assert before <= datetime.date.fromisoformat(one.date) <= after

    def test_they_stay(self):
        release = full_release()
        for again in (release.with_details(level=1), Release.from_json(release.to_json()), copy.deepcopy(release)):
            assert (again.id, again.date) == (release.id, release.date)
        for name in ("id", "date"):
            with pytest.raises(ValueError, match="settled"):
                release.with_details(**{name: "x"})

    def test_a_seed_does_not_settle_them(self):
        random.seed(0)
        first = full_release().id
        random.seed(0)
        assert full_release().id != first


class TestFormat1:
    """Releases from before there were ids and dates."""

    def old(self, **changes):
        raw = json.loads(full_release().to_json())
        for name in ("id", "date", "target", "columns", "schema_fingerprint", "data_fingerprint"):
            del raw[name]
        return json.dumps({**raw, "format": 1, **changes})

    def test_they_are_read(self):
        one, two = Release.from_json(self.old()), Release.from_json(self.old())
        assert one == full_release()
        assert one.id == two.id != Release.from_json(self.old(level=7)).id
        assert one.date is None
        assert Release.from_json(one.to_json()).id == one.id

    def test_a_least_r2_was_stated_by_its_distance_from_1(self):
        raw = json.loads(full_release().to_json())
        raw["promise"] = {"statement": "…", "goal": "R²", "at_most": 1.0 - 0.85}
        promise = Release.from_json(json.dumps(raw)).promise
        assert (promise.at_least, promise.at_most) == (0.85, None)

    def test_what_the_schema_said_is_kept(self):
        schema = {"target": "y", "target_bounds": [0, 1], "columns": {"a": {"boolean": True}}}
        said = {"schema": schema, "fingerprint": "f00"}
        release = Release.from_json(self.old(preparation=said, hypothesis=[0.5, 0.25]))
        assert (release.target, release.columns, release.schema_fingerprint) == ("y", ("a",), "f00")


class TestCopies:
    def test_pickle_and_copy(self):
        release = full_release()
        assert pickle.loads(pickle.dumps(release)) == release
        assert copy.deepcopy(release) == release
        assert copy.copy(release) == release

    def test_frozen_mappings_stay_frozen(self):
        again = pickle.loads(pickle.dumps(full_release())).preparation
        assert isinstance(again["bounds"], FrozenMapping)
        with pytest.raises(TypeError):
            again["bounds"]["lower"] = 0


def test_what_a_release_adds_is_part_of_what_it_costs():
    def made(increment):
        parameters = {"continues": "a1f", "epsilon_increment": increment}
        return Release(status="released", method="fixed", epsilon_generation=0.5, parameters=FrozenMapping(parameters))

    for increment in (-0.1, 0.6, math.nan):
        with pytest.raises(ValueError, match="adds at least nothing"):
            made(increment)
    release = made(0.125)
    assert (release.epsilon, release.epsilon_increment, release.continues) == (0.5, 0.125, "a1f")
    assert release.epsilon_beside({"a1f"}) == 0.125
    assert release.epsilon_beside({"b2e"}) == release.epsilon_beside(()) == 0.5
    assert Release.from_json(release.to_json()).epsilon_increment == 0.125
