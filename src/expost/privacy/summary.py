"""A release in the few lines a person wants to read: what ``print(release)`` and the command line show."""

from __future__ import annotations

import html
import math
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from expost.privacy.words import (
    SIMULATION,
    asked,
    exposed,
    on_rows,
    parts,
    state,
    subject,
    suspicion,
    unit_of,
    usual,
    worst_case_line,
    yardstick,
)
from expost.rounding import percent, up
from expost.visible import one_line, visible

if TYPE_CHECKING:
    from expost.privacy.release import Release

__all__ = ["WIDTH", "summary", "summary_html"]

WIDTH = 100
_BLOCKS = 20
_COEFFICIENTS = 24  # more would push the price off the screen

Lines = Sequence[tuple[str, str]]


def summary(release: Release, more: Lines = ()) -> str:
    """Return the few lines a person wants to read, and more of them (labels and texts) if there is more to say.

    Examples
    --------
    >>> from expost import Release
    >>> print(summary(Release(status="released", method="fixed", epsilon_generation=0.5, epsilon_worst_case=0.5)))
    a target                                                                                    released
      privacy       ε = 0.5 paid ████████████████████ of 0.5 at most (one row replaced)
                    0.5 the model
      in words      a suspicion of 1 % about one row can become at most 1.64 % (odds ×1.649)
      promise       no accuracy is promised
      method        fixed
      noise         exact, cryptographic source
    """
    title, outcome = subject(release), state(release)
    gap = WIDTH - len(title) - len(outcome)
    first = f"{title}{' ' * gap}{outcome}" if gap >= 2 else f"{title}\n  {outcome}"
    return visible(f"{first}\n{_aligned([*_lines(release), *more])}")


def summary_html(release: Release) -> str:
    """Return the same lines as a table for notebooks."""
    rows = "".join(
        f"<tr><th style='text-align:left;vertical-align:top'>{html.escape(label)}</th>"
        f"<td style='text-align:left;white-space:pre-wrap'>{html.escape(one_line(text))}</td></tr>"
        for label, text in _lines(release)
    )
    caption = f"{html.escape(subject(release))} <b>{html.escape(state(release))}</b>"
    return f"<div><div>{caption}</div><table>{rows}</table></div>"


def _lines(release: Release) -> list[tuple[str, str]]:
    """Return labels and texts."""
    spent = " · ".join(f"{up(loss)} {what}" for loss, what in parts(release)) or "nothing"
    rows = [] if release.secure else [("SIMULATION", "the noise came from a seed: this protects nobody")]
    goal, before = asked(release), release.continues
    if goal is not None:
        chance = release.promise.failure_probability
        sure = "" if chance is None else f" (at most {chance:g} of all runs miss, refusals counted)"
        if release.status == "released":
            rows.append((goal[0], f"{goal[1]} {on_rows(goal[0])}, as asked{sure}"))
            beside = yardstick(goal[0])
            rows += [("to compare", beside)] if beside else []
        else:
            rows.append((goal[0], f"{goal[1]} was asked for; no model is released"))
            rows += [("", text) for text in (release.closest,) if text]
    rows += [
        ("privacy", _paid(release)),
        ("", spent),
        *[("", text) for text in (usual(release),) if text],
        *([("", f"{up(release.epsilon_increment)} of it is new, beside release {before}")] if before else []),
        ("in words", _in_words(release)),
        *[("", text) for text in (exposed(release),) if text],
        ("promise", release.promise.statement),
    ]
    if release.promise.excess_risk_caller_units is not None and release.preparation.get("target") is not None:
        squared = f"{release.promise.excess_risk_caller_units:.4g}"
        rows.append(
            (
                "in your units",
                f"excess risk at most {squared} in squared target units (risk: half the mean square, plus penalty)",
            )
        )
    rows.append(("method", _method_line(release)))
    reasons = release.parameters.get("reasons", ())
    rows += [("because" if i == 0 else "", text) for i, text in enumerate(reasons)]
    rows.append(("noise", _noise_line(release)))
    rows += [("taken as given", text) for text in release.claims]
    rows += [("not covered", text) for text in release.not_covered]
    if "coef" in release.parameters:
        rows.append(("model", "coefficients in your units:"))
        rows += _model_lines(release)
    return rows


def _paid(release: Release) -> str:
    unit = f"(one {unit_of(release)} replaced)"
    most = release.epsilon_worst_case
    at = f" at δ = {release.delta:g}" if release.delta else ""
    paid = f"ε = {up(release.epsilon)}{at} paid"
    if math.isinf(most):
        return f"{paid}; {worst_case_line(release)} {unit}".rstrip()
    filled = math.ceil(_BLOCKS * release.epsilon / most) if most else 0
    return f"{paid} {'█' * filled}{'░' * (_BLOCKS - filled)} of {up(most)} at most {unit}".rstrip()


def _in_words(release: Release) -> str:
    if not release.secure:
        return "nothing: the noise came from a seed, which whoever knows it can take off"
    if math.isinf(release.epsilon):
        return f"nothing is promised: somebody may learn everything about a {unit_of(release)}"
    before, unit = 0.01, unit_of(release)
    about, chance = f"about one {unit}", ""
    if release.delta:  # which is about one value against one other, and one direction
        about = f"that one {unit} is a certain one, and not a certain other,"
        chance = f", but for a chance of {release.delta:g} that it becomes more"
    return (
        f"a suspicion of {percent(before)} {about} can become at most "
        f"{percent(suspicion(before, release.epsilon))} (odds ×{up(release.risk_factor)}){chance}"
    )


def _aligned(rows: Lines) -> str:
    """Put labels in one column and texts, folded, in another."""
    indent = 2
    width = max([12, *(len(label) for label, _ in rows)]) + 2 + indent
    lines = []
    for label, text in rows:
        folded = textwrap.wrap(text, WIDTH - width, break_long_words=False, break_on_hyphens=False) or [""]
        start = f"{'':<{indent}}{label}"
        lines += [f"{start:<{width}}{folded[0]}", *(f"{'':<{width}}{more}" for more in folded[1:])]
    return "\n".join(line.rstrip() for line in lines)


def _model_lines(release: Release) -> list[tuple[str, str]]:
    listed = list(zip(release.parameters["columns"], release.parameters["coef"], strict=True))
    more = max(0, len(listed) - _COEFFICIENTS)
    shown = [("(constant)", release.parameters["intercept"]), *listed[: len(listed) - more]]
    numbers = [f"{value:+.5g}" for _, value in shown]
    width = max(map(len, numbers))
    lines = [("", f"{number:<{width}}  {name}") for number, (name, _) in zip(numbers, shown, strict=True)]
    return [*lines, *([("", f"and {more} more, which the release and its report list")] if more else [])]


def _method_line(release: Release) -> str:
    named = [release.method, release.perturbation, release.calibration]
    line = ", ".join(part for part in named if part)
    if release.level is None or release.n_levels == 1:
        return line
    # counted as in the JSON
    of = " (the first is 0)" if release.n_levels is None else f" of 0 to {release.n_levels - 1}"
    return f"{line}; stopped at level {release.level}{of}"


def _noise_line(release: Release) -> str:
    kind = "exact" if release.noise == "exact" else "analysed over the reals"
    return f"{kind}, " + ("cryptographic source" if release.secure else SIMULATION)
