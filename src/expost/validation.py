"""Every check of an argument, once, with a message that says what to pass.

Checks look at what a caller stated, never at rows. They raise before anything is looked at or spent.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from numbers import Integral, Real
from pathlib import Path
from typing import Any

CALIBRATIONS = ("theorem", "published", "tight")
PAPER_CALIBRATIONS = ("theorem", "published")  # these go with the paper's radius and sensitivities
#: Beyond these, constants such as 1/(nλ) leave what floating point can hold, and tails drown in its rounding.
REGULARIZATIONS, LEAST_PROBABILITY = (1e-15, 1e15), 1e-9
LEAST_DELTA, LARGEST_DELTA = 1e-300, 0.01
#: Whatever has a size, bounds, goals and budgets, lies between these: fourth powers stay within floating point.
SIZES = (1e-50, 1e50)
#: The least and the most of what is counted: more would take days or all memory, and bring nothing.
COUNTS = {
    "rows": (1, 10**15),
    "columns": (1, 10_000),
    "rows_per_person": (1, 10_000),
    "n_levels": (1, 100_000),
    "worlds": (1, 10_000),
    "trials": (1, 1_000_000),
    "processes": (1, 1_000),
    "runs": (2, 10**12),
    "seed": (0, 2**128),
    "port": (0, 65_535),
    "constant_passes": (1, 1_000_000),
}
_PLAIN = {"numpy", *sys.stdlib_module_names}
_LARGEST = 16 << 20  # bytes of a file that somebody writes by hand
# a bare part is looked for where a word begins, so that a long one is read once
_DEEP = re.compile(r"""(?:(?:(?<![\w-])[\w-]+|"[^"\n]*"|'[^'\n]*')[ \t]*\.[ \t]*){32}""")


def toml_text(file: Path) -> str:
    """Return the text of a TOML file, which may be a stranger's, or complain about one that takes long to read.

    Python's reader takes time in the square of the parts of a name.
    """
    if file.stat().st_size > _LARGEST:
        raise ValueError(f"{file} has more than {_LARGEST:,} bytes; nobody writes as many by hand")
    try:
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"{file} is not in UTF-8; save it as UTF-8") from None
    if _DEEP.search(text):
        raise ValueError(f"{file} has a name of more than 32 parts with dots between them")
    return text


def foreign(thing: Any) -> bool:
    """Say whether a thing's class, or that of a part of it, is not the library's: what it states nobody has proved.

    Parts are the fields of dataclasses and what tuples hold; Python's own values and NumPy's state nothing.
    """
    return _home(thing) != "expost" or any(map(_foreign_part, _parts(thing)))


def _foreign_part(part: Any) -> bool:
    if isinstance(part, type) or _home(part) in _PLAIN:
        return any(map(_foreign_part, _parts(part)))
    return foreign(part)


def _parts(thing: Any) -> Iterable[Any]:
    if is_dataclass(thing) and not isinstance(thing, type):
        return [getattr(thing, field.name, None) for field in fields(thing)]
    return thing if type(thing) is tuple else ()


def _home(thing: Any) -> str:
    return type(thing).__module__.partition(".")[0]


def engine_claims(engine: Any) -> tuple[str, ...]:
    """Return what is taken as given of an engine that is not the library's own."""
    if engine is None or isinstance(engine, str) or not foreign(engine):
        return ()
    return ("the engine given adds up every row, and each once",)


def source_claims(random_state: Any) -> tuple[str, ...]:
    """Return what is taken as given of a random source that is not the library's own and says it protects people."""
    if random_state is None or not (secure(random_state) and foreign(random_state)):
        return ()
    return ("the random words given are uniform, independent and known to nobody",)


def number(name: str, value: Any) -> float:
    """Return a number as a float of full precision; booleans and NaN are none."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ValueError(f"{name} must be a number, got {value!r}")
    if math.isnan(as_float(value)):
        raise ValueError(f"{name} must be a number, got NaN")
    return as_float(value)


def as_float(value: Any) -> float:
    """Return a real number as a float; one that is too large for it is infinite."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def positive(name: str, value: Any, *, sizes: tuple[float, float] = SIZES) -> float:
    """Return a positive finite number as a float; see :data:`SIZES`."""
    return share(name, value, end=math.inf, sizes=sizes)


def share(name: str, value: Any, *, end: float = 1.0, sizes: tuple[float, float] = SIZES) -> float:
    """Return a number strictly between 0 and ``end`` as a float."""
    real = isinstance(value, Real) and not isinstance(value, bool)
    if not real or not 0 < as_float(value) < end:
        what = "a positive finite number" if math.isinf(end) else f"a number strictly between 0 and {end:g}"
        raise ValueError(f"{name} must be {what}, got {value!r}")
    return sized(name, float(value), sizes)


#: Why weights are numbers that the caller states.
BALANCED = (
    "'balanced' would be read off the rows: how often a label occurs is a statistic of them, and nobody would have "
    "paid for it. State weights from public knowledge"
)


def class_weights(stated: Any, classes: Sequence[Any] | None) -> tuple[float, float]:
    """Return what a row of the negative and of the positive label counts for, the larger number being 1.

    A label that is not named counts 1 beside the others, as scikit-learn has it. Text names a label that is a number
    as well, which is how the command line states it.

    Examples
    --------
    >>> class_weights({"yes": 5}, ("no", "yes")), class_weights({"0": 2, "1": 1}, (0, 1)), class_weights(None, None)
    ((0.2, 1.0), (1.0, 0.5), (1.0, 1.0))
    >>> class_weights({"true": 4}, (False, True)), class_weights({1: 4}, (0, 1))
    ((0.25, 1.0), (0.25, 1.0))
    """
    if stated is None:
        return 1.0, 1.0
    if isinstance(stated, str) and stated == "balanced":
        raise ValueError(f"class_weight={BALANCED}, {{'no': 1, 'yes': 5}} say")
    if not isinstance(stated, Mapping):
        raise ValueError(f"class_weight must be weights by label, such as {{'no': 1, 'yes': 5}}, got {stated!r}")
    if classes is None:
        raise ValueError("class_weight is for classification, with classes that are stated; leave it out")
    found: list[float | None] = [None, None]
    for label, weight in stated.items():
        texts = [str(known).lower() if isinstance(known, bool) else str(known) for known in classes]
        places = [k for k, known in enumerate(classes) if label in (known, texts[k])]
        if len(places) != 1:
            raise ValueError(f"class_weight names {label!r}; the labels are {' and '.join(map(repr, classes))}")
        if found[places[0]] is not None:
            raise ValueError(f"class_weight names {classes[places[0]]!r} twice: {', '.join(map(repr, stated))}")
        found[places[0]] = positive(f"class_weight of {label!r}", weight)
    negative, positive_one = (1.0 if weight is None else weight for weight in found)
    least, most = sorted((negative, positive_one))
    sized("class_weight, the smaller number beside the larger one,", least / most)
    return negative / most, positive_one / most


def sized(name: str, value: float, sizes: tuple[float, float] = SIZES) -> float:
    """Return a number of a size that can be computed with.

    Examples
    --------
    >>> sized("target_bound", 1e300)
    Traceback (most recent call last):
    ...
    ValueError: target_bound must lie between 1e-50 and 1e+50, got 1e+300; state other units
    """
    least, most = sizes
    if not least <= value <= most:
        raise ValueError(f"{name} must lie between {least:g} and {most:g}, got {value:g}; state other units")
    return value


def pair(name: str, low: float, high: float) -> None:
    """Raise unless a pair of finite bounds and the width between them have a size; see :data:`SIZES`."""
    most = SIZES[1]
    if not max(abs(low), abs(high)) <= most:
        raise ValueError(f"{name} must lie between {-most:g} and {most:g}, got {low:g} and {high:g}; state other units")
    sized(f"half the width of {name}", high / 2 - low / 2)


def count(name: str, value: Any) -> int:
    """Return a whole number of something in :data:`COUNTS`, by the name of its argument or option.

    Examples
    --------
    >>> count("--rows-per-person", 0)
    Traceback (most recent call last):
    ...
    ValueError: --rows-per-person must be a whole number, at least 1, got 0
    """
    least, most = COUNTS[name.removeprefix("--").replace("-", "_")]
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not whole or not least <= value <= most:
        limit = f"at most {most:,}" if whole and value > most else f"at least {least}"
        raise ValueError(f"{name} must be a whole number, {limit}, got {value!r}")
    return int(value)


def columns(many: int, why: str = "") -> None:
    """Raise if a model would have too many columns; ``why`` says where they come from."""
    most = COUNTS["columns"][1]
    if many > most:
        raise ValueError(
            f"{many:,} columns{why} are too many: a model has {most:,} at most; leave columns out, or join rare "
            f"categories under other = true"
        )


def failure_probability(value: Any) -> float:
    """Return γ as a float."""
    gamma = number("failure_probability", value)
    if not 0 < gamma < 1:
        raise ValueError(f"failure_probability must lie strictly between 0 and 1, got {value}")
    if gamma < LEAST_PROBABILITY:
        raise ValueError(f"failure_probability must be at least {LEAST_PROBABILITY:g}, got {value}")
    return gamma


def regularization(value: Any) -> float:
    """Return λ as a float."""
    return positive("regularization", value, sizes=REGULARIZATIONS)


def budget(value: Any) -> float | None:
    """Return ``max_epsilon`` as a float, or None where there is no budget."""
    return None if value is None else positive("max_epsilon", value)


def secure(random_state: Any) -> bool:
    """Whether noise of a ``random_state`` may protect anyone: the secure source, or one that says so of itself."""
    return random_state is None or bool(getattr(random_state, "secure", False))


def delta(value: Any) -> float:
    """Return δ as a float; 0 is pure privacy."""
    stated = number("delta", value)
    if stated != 0.0 and not LEAST_DELTA <= stated <= LARGEST_DELTA:
        raise ValueError(
            f"delta must be 0 (pure privacy) or lie between {LEAST_DELTA:g} and {LARGEST_DELTA:g}, got {value}; 1e-6 "
            f"is usual, and it should be far below one over the number of rows"
        )
    return stated


def check_delta(delta: float, *, positive: bool = False) -> None:
    """Raise unless δ is a probability below one."""
    if not (delta > 0.0 if positive else delta >= 0.0) or not delta < 1.0:
        raise ValueError(f"delta must be a number between 0 and 1, got {delta!r}")


def level_count(value: Any) -> int | None:
    """Return ``n_levels`` as an integer, or None for the default."""
    return None if value is None else count("n_levels", value)


def calibration(value: Any) -> str:
    """Return the name of a calibration."""
    one_of("calibration", value, sorted(CALIBRATIONS))
    return str(value)


def instance(name: str, value: object, kind: type, said: str) -> None:
    """Raise unless a value is of a kind; its type is named and nothing of it quoted, for it might be rows."""
    if not isinstance(value, kind):
        raise ValueError(f"{name} must be {said}, got a value of type {type(value).__name__}")


def one_of(name: str, value: object, allowed: Sequence[object]) -> None:
    """Raise a helpful error unless ``value`` is one of ``allowed``, which are texts or None."""
    if not isinstance(value, str | None) or value not in allowed:
        raise ValueError(f"{name} must be one of {list(allowed)}, got {value!r}")


def flag(name: str, value: Any) -> bool:
    """Return a truth value, Python's or NumPy's: what is merely true or false in a test is none.

    Examples
    --------
    >>> flag("fit_intercept", "no")
    Traceback (most recent call last):
    ...
    ValueError: fit_intercept must be True or False, got 'no'
    """
    if not isinstance(value, bool) and type(value).__name__ not in ("bool_", "bool"):
        raise ValueError(f"{name} must be True or False, got {value!r}")
    return bool(value)
