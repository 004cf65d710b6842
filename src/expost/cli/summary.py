"""A release in the few lines a person wants to read."""

from __future__ import annotations

import decimal
import math
import textwrap
from collections.abc import Sequence

from expost.privacy.release import Release

WIDTH = 100


def summary(release: Release) -> str:
    """Return the few lines a person wants to read.

    Examples
    --------
    >>> print(summary(Release(status="released", method="fixed", epsilon_generation=0.5, epsilon_worst_case=0.5)))
    status             released
    privacy loss paid  ε = 0.5 ex-post (odds about any row move by at most ×1.649)
      of which         0.5 generating
    before the run     no outcome could cost more than ε = 0.5
    neighbours         one row replaced by any other row; the number of rows is public
    promise            no accuracy is promised
    method             fixed
    noise              exact, cryptographic source
    """
    paid, factor = up(release.epsilon), up(release.risk_factor)
    rows = [
        ("status", _status(release)),
        ("privacy loss paid", f"ε = {paid} ex-post (odds about any row move by at most ×{factor})"),
        ("  of which", _parts_line(release)),
        ("before the run", _worst_case_line(release)),
        ("neighbours", release.neighbours),
        ("promise", release.promise.statement),
    ]
    if release.promise.excess_risk_caller_units is not None and release.preparation.get("target") is not None:
        squared = f"{release.promise.excess_risk_caller_units:.4g}"
        rows.append(
            (
                "  in your units",
                f"excess risk at most {squared} in squared target units (risk: half the mean square, plus penalty)",
            )
        )
    rows.append(("method", _method_line(release)))
    reasons = release.parameters.get("reasons", ())
    rows += [("  because" if i == 0 else "", text) for i, text in enumerate(reasons)]
    rows.append(("noise", _noise_line(release)))
    rows += [("not covered", text) for text in release.not_covered]
    if "coef" in release.parameters:
        rows.append(("model", "coefficients in your units:"))
        rows += _model_lines(release)
    return _aligned(rows)


def _status(release: Release) -> str:
    if release.status == "released":
        return release.status
    if release.parameters.get("interrupted", False):
        return "refused: the search was interrupted"
    if release.parameters.get("unfit", False):
        return "refused: the table hardly fits its schema"
    return "refused: no level met the target"


def up(value: float) -> str:
    """Write a number with four digits, rounded up: a privacy loss is not to look smaller than it is.

    Examples
    --------
    >>> up(0.123412), up(0.1), up(1234567.0), up(float("inf"))
    ('0.1235', '0.1', '1.235e+06', 'inf')
    """
    if not math.isfinite(value):
        return f"{value:g}"
    exact = decimal.Context(prec=4, rounding=decimal.ROUND_CEILING).create_decimal(repr(float(value)))
    return f"{float(exact):.4g}"


def _aligned(rows: Sequence[tuple[str, str]]) -> str:
    """Put labels in one column and texts, folded, in another."""
    width = max(len(label) for label, _ in rows) + 2
    lines = []
    for label, text in rows:
        folded = textwrap.wrap(text, WIDTH - width, break_long_words=False, break_on_hyphens=False)
        lines += [f"{label:<{width}}{folded[0]}", *(f"{'':<{width}}{more}" for more in folded[1:])]
    return "\n".join(lines)


def _model_lines(release: Release) -> list[tuple[str, str]]:
    values = [*release.parameters["coef"], release.parameters["intercept"]]
    numbers = [f"{value:+.5g}" for value in values]
    width = max(map(len, numbers))
    names = [*release.parameters["columns"], "(constant)"]
    return [("", f"{number:<{width}}  {name}") for number, name in zip(numbers, names, strict=True)]


def _worst_case_line(release: Release) -> str:
    if math.isinf(release.epsilon_worst_case):
        return "the cost of other outcomes had no bound"
    return f"no outcome could cost more than ε = {up(release.epsilon_worst_case)}"


def _parts_line(release: Release) -> str:
    parts = (
        (release.epsilon_probe, "measuring"),
        (release.epsilon_generation, "generating"),
        (release.epsilon_test, "testing"),
    )
    return ", ".join(f"{up(loss)} {what}" for loss, what in parts if loss) or "nothing"


def _method_line(release: Release) -> str:
    parts = [release.method, release.perturbation, release.calibration]
    line = ", ".join(part for part in parts if part)
    if release.level is None or release.n_levels == 1:
        return line
    of = "" if release.n_levels is None else f" of {release.n_levels}"
    return f"{line}; stopped at level {release.level + 1}{of}"


def _noise_line(release: Release) -> str:
    kind = "exact" if release.noise == "exact" else "analysed over the reals"
    return f"{kind}, " + ("cryptographic source" if release.secure else "SEEDED SIMULATION: protects nobody")
