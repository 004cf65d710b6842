"""What a release in a file must be like, field by field: it comes from a stranger, and is data until it was checked.

:func:`read_release` is the one door. A text is at most :data:`LARGEST` characters long and nested :data:`DEEPEST` deep,
names no key twice, and no text in it is longer than :data:`LONGEST`. :data:`FIELDS` says what each field must be, and
what those in it must be that anything here reads. Other entries of ``parameters`` and ``preparation`` may be any plain
values: mechanisms describe themselves there, and nothing looks at them. What the fields say of each other is checked by
``Release`` (what was paid) and by :func:`expost.release.scoring.check_model` (the model).
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import sys
from collections.abc import Callable, Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import Any

from expost.account.composition import NEIGHBOURS, NOTHING, Curve, room
from expost.release.release import APPROXIMATE, FORMAT, STATUSES, Promise, Release, is_day, plain
from expost.release.scoring import check_model
from expost.shown import one_line


def restored(value: Any) -> Any:
    """Undo :func:`plain`, as far as tuples and infinities go."""
    if isinstance(value, dict):
        if set(value) == {"float"} and value["float"] in ("inf", "-inf", "nan"):
            return float(value["float"])
        return {key: restored(item) for key, item in value.items()}
    if isinstance(value, list):
        return tuple(restored(item) for item in value)
    return value


_SINCE_2 = {"id", "date", "target", "columns", "schema_fingerprint", "data_fingerprint"}  # fields that format 1 lacks


def completed(raw: dict[str, Any]) -> dict[str, Any]:
    """Add what releases of format 1 did not say; the id is made of the text, so that reading twice gives it twice."""
    if _SINCE_2 & set(raw):
        raise ValueError(f"not a release: format 1 has no fields {sorted(_SINCE_2 & set(raw))}")
    text = json.dumps(plain(raw), sort_keys=True, separators=(",", ":"))
    added = dict.fromkeys(_SINCE_2) | {"columns": (), "id": hashlib.sha256(text.encode()).hexdigest()[:16]}
    known = raw.get("preparation")
    if isinstance(known, dict) and isinstance(known.get("schema"), dict):
        added["target"] = known["schema"].get("target")
        columns = known["schema"].get("columns")
        added["columns"] = tuple(columns) if isinstance(columns, dict) else ()
        added["schema_fingerprint"] = known.get("fingerprint")
    return {**raw, **added}


#: Limits of a file: characters in all, lists and objects, those within each other, characters of one text, numbers.
LARGEST, MOST_PARTS, DEEPEST, LONGEST, HUGE = 1 << 26, 100_000, 32, 100_000, 1e100
_LARGEST_COUNT = 2**63 - 1  # rows, levels and the like
_ID = 100

Check = Callable[[str, Any], None]


def read_fields(text: str) -> dict[str, Any]:
    """Return the object that a text holds, tuples for lists, within the limits; a ``ValueError`` otherwise."""
    if len(text) > LARGEST:
        raise ValueError(f"not a release: it has more than {LARGEST:,} characters")
    if text.count("{") + text.count("[") > MOST_PARTS:
        raise ValueError(f"not a release: it has more than {MOST_PARTS:,} lists and objects")
    try:
        raw = json.loads(text, object_pairs_hook=_object, parse_constant=_no_number)
    except RecursionError:
        raise ValueError(f"not a release: it is nested more than {DEEPEST} deep") from None
    except ValueError as error:
        raise ValueError(f"not a release: {error}") from None
    if not isinstance(raw, dict):
        raise ValueError("not a release: it is not an object")
    _check_size(raw, 1)
    return {name: restored(value) for name, value in raw.items()}


def read_release(text: str) -> Release:
    """Read what :meth:`~expost.Release.to_json` wrote; an inconsistent or foreign text is a ``ValueError``."""
    raw = read_fields(text)
    if raw.get("format") not in (1, FORMAT) or isinstance(raw["format"], bool):
        raise ValueError(f"not a release of format {FORMAT}; was it written by another version?")
    if raw["format"] == 1:
        raw = completed(raw)
    beside = ("format", "epsilon", "risk_factor", "epsilon_usual")
    _, stated, factor, usual = (raw.pop(name, None) for name in beside)
    persons = isinstance(raw.get("parameters"), dict) and "person" in raw["parameters"]
    raw.setdefault("unit", "person" if persons else "row")  # which older files say there alone
    raw.setdefault("held_out", 0)  # which only those say that have some
    known = {item.name for item in dataclasses.fields(Release)}
    if "delta" not in raw:
        known -= set(APPROXIMATE)
    if set(raw) != known:
        unlike = ", ".join(sorted(one_line(name[:40]) for name in set(raw) ^ known)[:10])
        raise ValueError(f"not a release: fields {unlike} are missing or unknown")
    for name, check in FIELDS.items():
        if name in raw:
            check(name, raw[name])
    if (raw["unit"] == "person") < persons or (raw["unit"] != "row" and raw["neighbours"] == NEIGHBOURS):
        raise ValueError("not a release: its unit is not what its neighbours differ in")
    raw["promise"] = Promise.read(raw["promise"])
    release = Release(**raw)
    if stated != release.epsilon:
        raise ValueError("not a release: the stated epsilon is not the sum of its parts")
    if release.curve:
        _check_curve(release)
    if usual is not None and not _same(usual, release.epsilon_usual):
        raise ValueError("not a release: the stated epsilon_usual is not what its curve comes to at its delta")
    if not _same(factor, release.risk_factor):
        raise ValueError("not a release: the stated risk factor is not e to the epsilon")
    check_model(release)
    return release


def _check_curve(release: Release) -> None:
    """Refuse an ε below what the curve comes to, and a curve below what ε says: ledgers charge the curve.

    On a clock ε says nothing of the curve, as the times are rounded up; ρ and the pure losses do. Of these, one look at
    most was settled beforehand, the others count at every order (`Account`): half of them bound a curve of all.
    """
    curve, said = release.account_curve(), release.curve
    if release.epsilon < release.least_epsilon() * (1 - 1e-9):
        raise ValueError("not a release: the stated epsilon is below what its curve comes to at its delta")
    if "times" not in said:
        epsilon, delta = release.epsilon, release.delta
        if release.parameters.get("interrupted", False):  # what was held: no more than some Gaussian noise comes to
            epsilon = min(epsilon, Curve.gaussian(room(NOTHING, epsilon, delta)).epsilon(delta))
        short = curve.epsilon(delta) < epsilon * (1 - 1e-6)
    else:
        least = Curve.gaussian(said["rho"]) + Curve.pure(said["pure"] / 2)
        most = math.inf if said["rho"] else said["pure"]
        pairs = zip((*curve.losses, curve.most), (*least.losses, most), strict=True)
        short = any(loss < bound * (1 - 1e-9) for loss, bound in pairs)
    if short:
        raise ValueError("not a release: its curve comes to less than its epsilon says")


def _same(stated: Any, value: float) -> bool:
    """Whether a number is as stated, not to the last bit: another machine's exp may differ there."""
    return isinstance(stated, int | float) and math.isclose(stated, value, rel_tol=1e-9)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is there twice")
    return found


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _check_size(value: Any, depth: int) -> None:
    if isinstance(value, str):
        if len(value) > LONGEST or any("\ud800" <= letter <= "\udfff" for letter in value):
            raise ValueError(f"not a release: a text has more than {LONGEST:,} characters, or half a character")
    elif isinstance(value, int | float):
        if not abs(value) <= sys.float_info.max:  # an int may be larger than any float
            raise ValueError("not a release: a number is too large")
    elif isinstance(value, dict | list):
        if depth > DEEPEST:
            raise ValueError(f"not a release: it is nested more than {DEEPEST} deep")
        for item in (*value, *value.values()) if isinstance(value, dict) else value:
            _check_size(item, depth + 1)


# --- what a value may be ---------------------------------------------------------------------------------------------


def _is(said: str, holds: Callable[[Any], bool]) -> Check:
    def check(where: str, value: Any) -> None:
        if not holds(value):
            raise ValueError(f"not a release: {where} must be {said}")

    return check


def _real(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= math.inf


def _number(low: float = -math.inf, high: float = math.inf, *, infinite: bool = False) -> Check:
    """A number within bounds; infinite only where a loss may be."""
    within = "" if low == -math.inf else " that is not negative" if high == math.inf else f" from {low:g} to {high:g}"
    said = f"a {'' if infinite else 'finite '}number{within}"
    largest = math.inf if infinite else HUGE
    return _is(said, lambda value: _real(value) and low <= value <= high and abs(value) <= largest)


def _whole(low: int, high: int = _LARGEST_COUNT) -> Check:
    return _is(
        f"a whole number from {low} to {high}",
        lambda value: isinstance(value, int) and not isinstance(value, bool) and low <= value <= high,
    )


def _one_of(*allowed: str) -> Check:
    return _is(" or ".join(map(repr, allowed)), lambda value: isinstance(value, str) and value in allowed)


def _or_none(check: Check) -> Check:
    return lambda where, value: None if value is None else check(where, value)


def _list_of(check: Check, many: int | None = None) -> Check:
    """A list, of so many if that is stated."""

    def of(where: str, value: Any) -> None:
        if not isinstance(value, tuple) or (many is not None and len(value) != many):
            raise ValueError(f"not a release: {where} must be a list{'' if many is None else f' of {many}'}")
        for place, item in enumerate(value):
            check(f"{where}[{place}]", item)

    return of


def _object_of(
    needed: Mapping[str, Check], others: Mapping[str, Check] = MappingProxyType({}), rest: Check | None = None
) -> Check:
    """An object that has some keys and may have others; unknown ones only if it is said what ``rest`` of them hold."""
    known = {**needed, **others}

    def of(where: str, value: Any) -> None:
        if not isinstance(value, dict):
            raise ValueError(f"not a release: {where} must be an object")
        for name in needed.keys() - value.keys():
            raise ValueError(f"not a release: {where} has no {name}")
        for name, item in value.items():
            check, shown = known.get(name, rest), one_line(name[:40])
            if check is None:
                raise ValueError(f"not a release: {where} has an unknown key {shown!r}")
            check(f"{where}.{shown}", item)

    return of


def _anything(where: str, value: Any) -> None:
    return


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _ID and value == one_line(value)


_NUMBER, _POSITIVE_OR_ZERO, _LOSS = _number(), _number(0.0), _number(0.0, infinite=True)
_NUMBERS, _LOSSES = _list_of(_NUMBER), _list_of(_LOSS)
_TEXT = _is("text", lambda value: isinstance(value, str))
_TEXTS = _list_of(_TEXT)
_NAME = _is(f"text of at most {_ID} characters in one line", _is_name)
_TRUTH = _is("true or false", lambda value: isinstance(value, bool))
_DAY = _is("a day, as 2026-03-31", is_day)
_LABEL = _is("text, a finite number, true or false", lambda value: isinstance(value, str | bool) or _finite(value))
#: θ is used in sums and products: what comes of it has to stay a number.
_PARAMETER = _number(-1e100, 1e100)


def _finite(value: Any) -> bool:
    return _real(value) and math.isfinite(value)


def _rising(where: str, value: Any) -> None:
    _list_of(_LOSS)(where, value)
    if any(low >= high for low, high in pairwise(value)):
        raise ValueError(f"not a release: {where} must be in increasing order")


def _curve(where: str, value: Any) -> None:
    """Nothing, or losses at orders, and on a clock if there is one."""
    if value != {}:
        clock = _ON_A_CLOCK if isinstance(value, dict) and "times" in value else {}
        _object_of({**_ON_ORDERS, **clock}, {"tested": _object_of(_ON_ORDERS)})(where, value)


def _hypothesis(where: str, value: Any) -> None:
    """Numbers, or lists of them within each other."""
    if isinstance(value, tuple):
        for place, item in enumerate(value):
            _hypothesis(f"{where}[{place}]", item)
    else:
        _PARAMETER(where, value)


def _shown(where: str, value: Any) -> None:
    """A number, or one for each goal."""
    (_object_of({}, rest=_NUMBER) if isinstance(value, dict) else _NUMBER)(where, value)


_PROMISE = _object_of(
    {"statement": _TEXT},
    {
        "excess_risk": _or_none(_POSITIVE_OR_ZERO),
        "excess_risk_caller_units": _or_none(_LOSS),
        "failure_probability": _or_none(_number(0.0, 1.0)),
        "radius": _or_none(_LOSS),
        "regularization": _or_none(_POSITIVE_OR_ZERO),
        "goal": _or_none(_NAME),
        "at_most": _or_none(_NUMBER),
        "at_most_caller_units": _or_none(_LOSS),
        "at_least": _or_none(_NUMBER),
        "goals": _or_none(_object_of({}, rest=_NUMBER)),
        "costs": _or_none(_object_of({}, rest=_NUMBER)),
    },
)
_ON_ORDERS = {"orders": _NUMBERS, "losses": _LOSSES, "most": _LOSS}
_ON_A_CLOCK = {"times": _rising, "rho": _LOSS, "pure": _LOSS}
_PREPARATION = _object_of(
    {},
    {
        "schema": _object_of({}, rest=_anything),  # `expost.table.schema` checks it
        "bounds": _or_none(_object_of({"lower": _NUMBERS, "upper": _NUMBERS})),
        "feature_bound": _POSITIVE_OR_ZERO,
        "target": _or_none(_list_of(_NUMBER, 2)),
        "intercept_weight": _number(0.0, 1.0),
        "n_columns": _whole(1),
        "shape": _one_of("box", "l1"),
        "regularization_per_column": _list_of(_LOSS),
        "regularization_constant": _LOSS,
    },
    _anything,
)
_STATISTICS = {"second": _NUMBERS, "first": _NUMBERS}
_STATISTICS |= {"noise": _number(0.0, 1e50), "split": _number(1e-9, 1.0 - 1e-9), "shrunk": _POSITIVE_OR_ZERO}
_EVALUATION = _object_of(
    {
        "of": _NAME,
        "kind": _one_of("classification", "regression"),
        "rows": _one_of("all", "held out", "public"),
        "n": _whole(1),
        "margin": _number(0.0, 1.0),
        "scale": _number(0.0),
        "edges": _NUMBERS,
        "target_edges": _NUMBERS,
        "cut_offs": _list_of(_number(0.0, 1.0)),
        "asked": _list_of(_number(0.0, 1.0)),
        "target": _list_of(_NUMBER, 2),
        "transform": _or_none(_NAME),
        "reach": _number(0.0, 2.0),
    }
)
_NOISE_LEVEL = _object_of({"sizes": _list_of(_whole(0)), "deviations": _list_of(_number(0.0)), "intervals": _whole(0)})
_PARAMETERS = _object_of(
    {},
    {
        "evaluation": _EVALUATION,
        "n": _whole(1),
        "p": _whole(1),
        "loss": _TEXT,
        "class_weights": _list_of(_number(1e-110, 1.0), 2),
        "columns": _TEXTS,
        "coef": _list_of(_number(infinite=True)),
        "intercept": _number(infinite=True),
        "classes": _list_of(_LABEL, 2),
        "largest_odds": _number(1.0, 20.0),  # 4 is what is written; beyond 37 probabilities are 1
        "predicted_within": _list_of(_number(-1.0, 1.0), 2),
        "person": _TEXT,
        "persons": _whole(1),
        "rows_per_person": _whole(1),
        "reasons": _TEXTS,
        "interrupted": _TRUTH,
        "shown": _shown,
        "next_level": _LOSS,
        "left_to_chance": _number(0.0, 1.0),
        "unfit": _TRUTH,
        "base_rate": _number(0.0, 1.0),
        "base_rate_off": _POSITIVE_OR_ZERO,
        "yardstick": _TEXT,
        "constant": _NAME,
        "path": _NAME,
        "continues": _NAME,
        "epsilon_increment": _LOSS,
        "regularization": _POSITIVE_OR_ZERO,
        "radius": _LOSS,
        "noise_sensitivity": _POSITIVE_OR_ZERO,
        "typical_noise": _number(1e-100),
        "noise_reach": _LOSS,
        "noise_spread": _number(1e-100),
        "noise_levels": _list_of(_NOISE_LEVEL),
        "noise_reach_coverage": _number(0.0, 1.0),
        "statistics": _object_of(_STATISTICS),
    },
    _anything,
)

#: What each field of a release must be.
FIELDS: dict[str, Check] = {
    "status": _one_of(*STATUSES),
    "method": _NAME,
    "epsilon_generation": _LOSS,
    "epsilon_test": _LOSS,
    "epsilon_probe": _LOSS,
    "epsilon_worst_case": _LOSS,
    "hypothesis": _or_none(_hypothesis),
    "level": _or_none(_whole(0)),
    "n_levels": _or_none(_whole(1)),
    "promise": _PROMISE,
    "perturbation": _or_none(_NAME),
    "calibration": _or_none(_NAME),
    "noise": _one_of("exact", "over the reals"),
    "secure": _TRUTH,
    "neighbours": _TEXT,
    "unit": _one_of("row", "person"),
    "preparation": _PREPARATION,
    "parameters": _PARAMETERS,
    "exact": _TEXTS,
    "charged": _TEXTS,
    "claims": _TEXTS,
    "not_covered": _TEXTS,
    "versions": _object_of({}, rest=_TEXT),
    "id": _NAME,
    "date": _or_none(_DAY),
    "target": _or_none(_TEXT),
    "columns": _TEXTS,
    "schema_fingerprint": _or_none(_NAME),
    "data_fingerprint": _or_none(_NAME),
    "delta": _number(0.0, 1.0),
    "epsilon_conversion": _LOSS,
    "curve": _curve,
    "held_out": _whole(0),
}
