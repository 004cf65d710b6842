"""Every check of an argument, once, with a message that says what to pass.

Checks look at what a caller stated, never at rows. They raise before anything is looked at or spent.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

CALIBRATIONS = ("theorem", "published", "tight")
PAPER_CALIBRATIONS = ("theorem", "published")  # these go with the paper's radius and sensitivities
#: Beyond these, constants such as 1/(nλ) leave what floating point can hold, and tails drown in its rounding.
REGULARIZATIONS, LEAST_PROBABILITY = (1e-15, 1e15), 1e-9
LEAST_DELTA, LARGEST_DELTA = 1e-300, 0.01
#: No outcome costs more unless the caller says so, and a release that does warns: odds moved by a factor above seven.
MOST = 2.0


def foreign(thing: Any) -> bool:
    """Say whether a thing's class is not the library's: what it states of itself nobody has proved.

    Examples
    --------
    >>> from expost.erm import LogisticLoss
    >>> foreign(LogisticLoss()), foreign(object())
    (False, True)
    """
    return type(thing).__module__.partition(".")[0] != "expost"


def number(name: str, value: Any) -> float:
    """Return a number as a float of full precision; booleans and NaN are none.

    Examples
    --------
    >>> number("radius", 3)
    3.0
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ValueError(f"{name} must be a number, got {value!r}")
    if math.isnan(_float(value)):
        raise ValueError(f"{name} must be a number, got NaN")
    return _float(value)


def _float(value: Any) -> float:
    """Return a real number as a float; one that is too large for it is infinite."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def positive(name: str, value: Any) -> float:
    """Return a positive finite number as a float."""
    real = isinstance(value, Real) and not isinstance(value, bool)
    if not (real and 0 < _float(value) < math.inf):
        raise ValueError(f"{name} must be a positive finite number, got {value!r}")
    return float(value)


def share(name: str, value: Any, *, end: float = 1.0) -> float:
    """Return a number strictly between 0 and ``end`` as a float.

    Examples
    --------
    >>> share("at_most", 0.25)
    0.25
    """
    real = isinstance(value, Real) and not isinstance(value, bool)
    if not real or not 0 < _float(value) < end:
        what = "a positive finite number" if math.isinf(end) else f"a number strictly between 0 and {end:g}"
        raise ValueError(f"{name} must be {what}, got {value!r}")
    return float(value)


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
    lam = positive("regularization", value)
    least, most = REGULARIZATIONS
    if not least <= lam <= most:
        raise ValueError(f"regularization must lie between {least:g} and {most:g}, got {value}")
    return lam


def budget(value: Any) -> float | None:
    """Return ``max_epsilon`` as a float, or None where there is no budget."""
    return None if value is None else positive("max_epsilon", value)


def secure(random_state: Any) -> bool:
    """Whether noise of a ``random_state`` may protect anyone: the secure source, or one that says so of itself."""
    return random_state is None or bool(getattr(random_state, "secure", False))


def delta(value: Any) -> float:
    """Return δ as a float; 0 is pure privacy.

    Examples
    --------
    >>> delta(1e-6)
    1e-06
    """
    stated = number("delta", value)
    if stated != 0.0 and not LEAST_DELTA <= stated <= LARGEST_DELTA:
        raise ValueError(
            f"delta must be 0 (pure privacy) or lie between {LEAST_DELTA:g} and {LARGEST_DELTA:g}, got {value}; 1e-6 "
            f"is usual, and it should be far below one over the number of rows"
        )
    return stated


def level_count(value: Any) -> int | None:
    """Return ``n_levels`` as an integer, or None for the default."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise ValueError(f"n_levels must be a positive integer, got {value!r}")
    return int(value)


def calibration(value: Any) -> str:
    """Return the name of a calibration."""
    if value not in CALIBRATIONS:
        raise ValueError(f"calibration must be one of {sorted(CALIBRATIONS)}, got {value!r}")
    return str(value)


def one_of(name: str, value: object, allowed: Sequence[object]) -> None:
    """Raise a helpful error unless ``value`` is one of ``allowed``."""
    if value not in allowed:
        raise ValueError(f"{name} must be one of {list(allowed)}, got {value!r}")
