"""A plan as a table that a person reads."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence

from expost.goals import Goal, TestedGoal
from expost.planning.result import LIKELY, PURE, GoalPrice, MethodPrice, PricePlan, Saving, number_of
from expost.privacy.words import yardstick
from expost.rounding import down, up
from expost.visible import one_line

WIDTH = 100
_SHOWN = 5  # savings
_YES, _MOSTLY = 0.9, 0.5
_NOISE = {
    "objective": "the gradient",
    "output": "the minimiser",
    "covariance": "second moments",
    "gradient descent": "every gradient",
    PURE: "the gradient, pure",
}
STATED = {"gradient descent": "descent", "objective": "objective", "covariance": "covariance"}  # at a δ


def as_text(plan: PricePlan) -> str:
    """Return the table and what belongs to it."""
    lines = [_head(plan), ""]
    goals = [price for price in plan.goals if len(price.methods) == 1]
    if goals:
        lines += [*_goal_table(plan, goals), ""]
    for price in plan.goals:
        if len(price.methods) > 1:
            lines += [*_method_table(plan, price), ""]
    notes = [_likely(plan), *_yardsticks(plan)]
    notes += [f"{words(price.goal)}: {price.unreachable}" for price in plan.goals if price.unreachable]
    notes += [f"Beware: {text}." for text in plan.warnings]
    if plan.savings:
        lines += [f"What costs most (for {words(plan.goals[-1].goal)}), and what a change would save:"]
        lines += [*_saving_table(plan.savings), ""]
    for note in notes:
        lines += textwrap.wrap(note, WIDTH, break_long_words=False, break_on_hyphens=False)
    return "\n".join(lines)


def _yardsticks(plan: PricePlan) -> list[str]:
    """Say once what a constant reaches: a goal that it meets is not worth a search."""
    found = dict.fromkeys(yardstick(price.goal.name) for price in plan.goals)
    return [f"Ask for more than a constant reaches: {text}." for text in found if text]


def words(goal: Goal) -> str:
    """Return a goal in words.

    Examples
    --------
    >>> from expost.goals import R2, ExcessRisk
    >>> words(R2(0.8)), words(ExcessRisk(0.01))
    ('R² ≥ 0.8', 'excess risk ≤ 0.01')
    """
    return f"{goal.name or 'excess risk'} {'≥' if hasattr(goal, 'at_least') else '≤'} {number_of(goal):g}"


def amount(value: float) -> str:
    """Return an ε with two digits, rounded up: what is never exceeded is not to look smaller than it is.

    Examples
    --------
    >>> amount(0.0834), amount(12.34), amount(float("inf"))
    ('0.084', '13', 'out of reach')
    """
    return up(value, 2) if math.isfinite(value) else "out of reach"


def _head(plan: PricePlan) -> str:
    schema = plan.schema
    if schema is None:
        what = f"an array of {plan.columns:,} columns"
    else:
        kind = " or ".join(map(str, schema.classes)) if schema.classes is not None else "a number"
        many = len(schema.columns)
        what = f"{schema.target} ({kind}) from {many} column{'s' if many > 1 else ''} (encoded {plan.columns})"
    chance = f"{1 - plan.failure_probability:g}"
    at = f"; ε at δ = {plan.delta:g}" if plan.delta else ""
    return one_line(
        f"{what}, {plan.rows:,} {plan.noun}{_per_person(plan)}; promised with probability {chance}{at}; "
        f"no data were read"
    )


def _per_person(plan: PricePlan) -> str:
    """Say how many rows that many persons have, so that nobody states rows for persons."""
    most = None if plan.schema is None else plan.schema.rows_per_person
    return "" if most is None else f" (not rows: at most {most} of each)"


def _goal_table(plan: PricePlan, prices: Sequence[GoalPrice]) -> list[str]:
    stated = plan.max_epsilon is not None
    heads = ["goal", "ε likely", "typical", "close call", "never above"]
    heads += [f"within {down(plan.wished)}?"] if stated else [f"{plan.noun} for ε ≤ {down(plan.wished)}"]
    rows = []
    for price in prices:
        way = price.cheapest
        paid = (way.typical, way.close_call, way.worst_case)
        row = [words(price.goal), _range(way.low, way.high), *map(amount, paid)]
        rows.append([*row, _within(price, plan) if stated else _rows(price, plan.wished)])
    return _aligned([heads, *rows])


def _method_table(plan: PricePlan, price: GoalPrice) -> list[str]:
    rows = [[words(price.goal), "noise on", "ε likely", "typical", "never above", ""]]
    for way in price.methods:
        likely = amount(way.worst_case) if way.known else _likely_range(way)
        remarks = {
            "cheapest": way is price.cheapest and way.affordable,
            "what fit takes": way.taken,
            "known beforehand": way.known,
            "promises the mean only": way.method == "theory",
            f"refused within {down(plan.wished if plan.max_epsilon is not None else way.worst_case)}, "
            "nothing spent": not way.affordable,
        }
        remark = ", ".join(text for text, said in remarks.items() if said)
        stated = STATED.get(way.perturbation) if plan.delta and isinstance(price.goal, TestedGoal) else None
        name = f"--perturbation {stated}" if stated else "no --delta" if way.perturbation == PURE else way.method
        name = "auto" if way.perturbation == PURE and way.taken else name
        noise, typical = _NOISE.get(way.perturbation, way.perturbation), "" if way.known else amount(way.typical)
        rows.append([name, noise, likely, typical, amount(way.worst_case), remark])
    said = _within(price, plan) if plan.max_epsilon is not None else None
    tail = f"within {down(plan.wished)}: {said}" if said else _enough(price, plan)
    return [*_aligned(rows), tail]


def _enough(price: GoalPrice, plan: PricePlan) -> str:
    """Say how many rows, or persons, let nine in ten worlds pay what is wished for."""
    return f"{plan.noun} for ε ≤ {down(plan.wished)}: {_rows(price, plan.wished)}"


def _likely_range(way: MethodPrice) -> str:
    """Return what is likely; beyond the cap nothing is paid, and nothing released."""
    if math.isfinite(way.low) and way.low <= way.worst_case < way.high:
        return f"{amount(way.low)} – {amount(way.worst_case)} or refused"
    return _range(way.low, way.high)


def _range(low: float, high: float) -> str:
    if not math.isfinite(high):
        return f"{amount(low)} or more" if math.isfinite(low) else amount(low)
    return amount(low) if amount(low) == amount(high) else f"{amount(low)} – {amount(high)}"


def _within(price: GoalPrice, plan: PricePlan) -> str:
    wished, noun = plan.wished, plan.noun
    if price.unreachable:
        rows = price.rows_for(wished)
        return "no" if rows is None else f"no; {_round(rows)} {noun} would do"
    share = price.cheapest.share_within(wished)
    if share >= _YES:
        return "yes"
    rows = price.rows_for(wished)
    more = "" if rows is None else f"; {_round(rows)} {noun} would do"
    return f"in {share:.0%} of made-up tables{more}" if share >= _MOSTLY else f"hardly ({share:.0%}){more}"


def _rows(price: GoalPrice, wished: float) -> str:
    rows = price.rows_for(wished)
    return "–" if rows is None else f"about {_round(rows)}"


def _round(rows: int) -> str:
    """Return a number of rows with two digits, rounded up."""
    unit = 10 ** max(0, len(str(rows)) - 2)
    return f"{-(-rows // unit) * unit:,}"


def _saving_table(savings: Sequence[Saving]) -> list[str]:
    """Show the largest saving of each column, and what bounds cost though it be less."""
    best = {saving.column: saving for saving in reversed(savings)}
    shown = [saving for saving in savings if best[saving.column] is saving][:_SHOWN]
    shown += [saving for saving in savings if saving.estimated and saving not in shown][:2]
    rows = []
    for saving in shown:
        about = "about " if saving.estimated else ""
        rows.append([saving.column, saving.now, saving.change, f"{about}{saving.saves:.0%}", f"if {saving.provided}"])
    return [f"  {line}" for line in _aligned(rows)]


def _likely(plan: PricePlan) -> str:
    part = f"{LIKELY[1] - LIKELY[0]:.0%}"
    known = all(price.cheapest.known for price in plan.goals)
    text = "" if known else f"Likely: the middle {part} of {plan.worlds} made-up tables that follow the schema"
    if plan.schema is None and text:
        text = f"Likely: the middle {part} of made-up arrays"
    text += "" if known else ", from easy ones to close calls, in which the best model hardly reaches the goal. "
    text += "" if known else "Your rows decide. "
    if not known and plan.max_epsilon is None:
        text += f"{plan.noun.capitalize()} for ε ≤ {down(plan.wished)}: enough for nine in ten of those tables. "
    return text + "Never above is a promise, whatever the rows."


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    rows = [[one_line(text) for text in row] for row in rows]
    widths = [max(len(row[j]) for row in rows) for j in range(len(rows[0]))]
    return ["   ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]
