"""What a plan says: prices of goals, what would make them smaller, what to beware of, as a table to read or a picture.

Public numbers only.
"""

from __future__ import annotations

import io
import json
import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from expost.goals import Goal
from expost.goals.flags import yardstick_of
from expost.goals.goal import is_tested
from expost.shown import aligned, down, exact, one_line, up
from expost.table.schema import Schema

LIKELY = (0.0, 0.9)  # of the synthetic tables cost less: from the cheapest of them, as real ones are often easier
TYPICAL, CLOSE_CALL = (
    0.5,
    7 / 8,
)  # where in their order tables stand that cost so: the middle of all, of the last quarter
PURE = "objective, pure noise"  # beside ways at a δ: what a fit without one would do
_MORE_ROWS = 1.05  # rows asked for beyond what scaling says: the Jacobian's part shrinks a little slower than 1/n


@dataclass(frozen=True)
class MethodPrice:
    """What one way to a goal costs.

    Attributes
    ----------
    method, perturbation
        How the level is found and where the noise goes, as a release calls them.
    epsilons
        What it cost in each synthetic table, in order; infinite where it did not reach the goal at any price.
    worst_case
        No outcome costs more; a promise, unlike the rest.
    close_call
        The median over the quarter of the tables in which the best model comes closest to missing the goal.
    known
        Whether it costs ``worst_case`` whatever the rows.
    affordable
        Whether it can be tried at all within ``max_epsilon``; if not, ``worst_case`` is meant without it.
    taken
        Whether a fit goes this way if no other is stated, where several are priced.

    Examples
    --------
    >>> price = MethodPrice("auto", "objective", (0.1, 0.1, 0.2, 0.3, 0.9), 2.0, 0.3)
    >>> price.low, price.typical, price.high, price.share_within(0.25)
    (0.1, 0.2, 0.9, 0.6)
    """

    method: str
    perturbation: str
    epsilons: tuple[float, ...]
    worst_case: float
    close_call: float
    known: bool = False
    affordable: bool = True
    taken: bool = False

    def quantile(self, share: float) -> float:
        """Return the smallest ε that this share of the tables does not exceed."""
        place = math.ceil(share * len(self.epsilons) - 1e-9)
        return self.epsilons[max(place, 1) - 1]

    @property
    def low(self) -> float:
        """Lower end of what is likely."""
        return self.quantile(LIKELY[0])

    @property
    def typical(self) -> float:
        """The median over tables."""
        return self.quantile(0.5)

    @property
    def high(self) -> float:
        """Upper end of what is likely."""
        return self.quantile(LIKELY[1])

    def share_within(self, epsilon: float) -> float:
        """Return the share of tables in which no more than that was paid."""
        return sum(paid <= epsilon for paid in self.epsilons) / len(self.epsilons)

    @classmethod
    def over(
        cls, method: str, perturbation: str, paid: Sequence[float], worst_case: float, **told: bool
    ) -> MethodPrice:
        """Return the price, given what was paid in each table; in the last of them goals are hardest to reach."""
        hardest = sorted(paid[-max(1, len(paid) // 4) :])
        return cls(method, perturbation, tuple(sorted(paid)), worst_case, hardest[len(hardest) // 2], **told)

    def at_least(self, other: MethodPrice | None) -> MethodPrice:
        """Return the price, but no lower than another's in any place."""
        if other is None or self.known or len(other.epsilons) != len(self.epsilons):
            return self
        paid = tuple(map(max, self.epsilons, other.epsilons))
        return replace(self, epsilons=paid, close_call=max(self.close_call, other.close_call))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values; ``None`` stands for what is infinite."""
        ends = {name: getattr(self, name) for name in ("low", "typical", "high", "close_call", "worst_case")}
        return {
            "method": self.method,
            "perturbation": self.perturbation,
            **{name: _finite(value) for name, value in ends.items()},
            "known": self.known,
            "affordable": self.affordable,
            "taken": self.taken,
            "epsilons": [_finite(paid) for paid in self.epsilons],
        }


@dataclass(frozen=True)
class GoalPrice:
    """What a goal costs.

    Attributes
    ----------
    goal
        As stated.
    rows
        For how many rows, or persons where the schema names them.
    methods
        The ways to it, the cheapest first.
    unreachable
        Why no data set of this size can meet it within ``max_epsilon``; empty if one can.
    believed
        What the best model reaches where it costs ``typical`` and where it is a close call, if one number says so.
    """

    goal: Goal
    rows: int
    methods: tuple[MethodPrice, ...]
    unreachable: str = ""
    believed: tuple[float, float] | None = None

    @property
    def cheapest(self) -> MethodPrice:
        """The way that typically costs least."""
        return self.methods[0]

    @property
    def flag(self) -> str:
        """The goal as an option of the command line."""
        return self.goal.option

    def rows_for(self, epsilon: float) -> int | None:
        """Return about how many rows let nine in ten tables pay at most ε; None if no number is seen to do.

        ε·n hardly depends on n.
        """
        high = self.cheapest.high
        return math.ceil(self.rows * high / epsilon * _MORE_ROWS) if math.isfinite(high) else None

    def to_dict(self, wished: float) -> dict[str, Any]:
        """Return plain values."""
        return {
            "goal": type(self.goal).__name__,
            "value": self.goal.value,
            "option": self.flag,
            "methods": [price.to_dict() for price in self.methods],
            "wished_epsilon": wished,
            "share_within": self.cheapest.share_within(wished),
            "rows_needed": self.rows_for(wished),
            "unreachable": self.unreachable or None,
            "believed": None if self.believed is None else list(self.believed),
        }


@dataclass(frozen=True)
class Saving:
    """A change of the schema and what it would save.

    Attributes
    ----------
    column, now
        Which column, and what the schema says of it.
    change
        What to write instead, or that it be left out.
    saves
        The part of ε that is saved for the same accuracy.
    provided
        What has to be true of the rows for it to make sense.
    estimated
        Whether ``saves`` was estimated on simulated rows; otherwise it follows from the schema alone.
    """

    column: str
    now: str
    change: str
    saves: float
    provided: str
    estimated: bool

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return dict(self.__dict__)


@dataclass(frozen=True)
class PricePlan:
    """What goals cost for a schema and a number of rows, said without reading any data.

    Attributes
    ----------
    schema
        None for plain arrays.
    columns, rows
        Columns after encoding, the constant included, and rows, or persons where the schema names them.
    failure_probability, max_epsilon
        γ, and the cap stated (None: none).
    goals
        What each goal costs, in the order stated.
    savings
        What costs most, the largest saving first; for the last of the goals.
    warnings
        What to beware of.
    worlds
        How many synthetic tables were searched.
    delta
        δ that prices are at; 0 is pure.
    expect
        What the best model was expected to reach; None if nothing was.
    positives
        The share of rows that was believed to be positive; None if nothing was.
    rarer
        Between which the share of the rarer label lies in the tables searched; None for numbers and arrays.
    untold
        In how many of the tables the columns do not tell labels as well as was meant, for some goal.
    """

    schema: Schema | None
    columns: int
    rows: int
    failure_probability: float
    max_epsilon: float | None
    goals: tuple[GoalPrice, ...]
    savings: tuple[Saving, ...]
    warnings: tuple[str, ...]
    worlds: int
    delta: float = 0.0
    expect: float | None = None
    positives: float | None = None
    rarer: tuple[float, float] | None = None
    untold: int = 0

    @property
    def noun(self) -> str:
        """What is counted and protected: rows or persons."""
        return "rows" if self.schema is None or self.schema.person is None else "persons"

    @property
    def wished(self) -> float:
        """The ε that rows are counted for: the cap, or 1."""
        return 1.0 if self.max_epsilon is None else self.max_epsilon

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "schema": None if self.schema is None else self.schema.to_dict(),
            "columns": self.columns,
            "rows": self.rows,
            "counted": self.noun,
            "failure_probability": self.failure_probability,
            "max_epsilon": self.max_epsilon,
            **({"delta": self.delta} if self.delta else {}),
            **({} if self.expect is None else {"expect": self.expect}),
            **({} if self.positives is None else {"positives": self.positives}),
            **({} if self.rarer is None else {"rarer_label": list(self.rarer)}),
            **({} if not self.untold else {"untold": self.untold}),
            "goals": [price.to_dict(self.wished) for price in self.goals],
            "savings": [saving.to_dict() for saving in self.savings],
            "warnings": list(self.warnings),
            "worlds": self.worlds,
            "data_read": False,
        }

    def to_json(self) -> str:
        """Return the plan as JSON."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)

    def __str__(self) -> str:
        return as_text(self)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


WIDTH = 100
_SHOWN = 5  # savings
_GAP = "   "  # between columns
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
    notes += [f"{price.goal.words}: {price.unreachable}" for price in plan.goals if price.unreachable]
    notes += [f"Beware: {text}." for text in plan.warnings]
    if plan.savings:
        lines += [f"What costs most (for {plan.goals[-1].goal.words}), and what a change would save:"]
        lines += [*_saving_table(plan.savings), ""]
    for note in notes:
        lines += textwrap.wrap(note, WIDTH, break_long_words=False, break_on_hyphens=False)
    return "\n".join(lines)


def _yardsticks(plan: PricePlan) -> list[str]:
    """Say once what a constant reaches: a goal that it meets is not worth a search."""
    found = dict.fromkeys(yardstick_of(price.goal.name) for price in plan.goals)
    return [f"Ask for more than a constant reaches: {text}." for text in found if text]


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
    chance = down(1 - plan.failure_probability, 6)
    at = f"; ε at δ = {up(plan.delta, 6)}" if plan.delta else ""
    most = None if schema is None else schema.rows_per_person
    each = "" if most is None else f" (not rows: at most {most} of each)"  # so that nobody states rows for persons
    return one_line(
        f"{what}, {plan.rows:,} {plan.noun}{each}; promised with probability {chance}{at}; no data were read"
    )


def _goal_table(plan: PricePlan, prices: Sequence[GoalPrice]) -> list[str]:
    stated = plan.max_epsilon is not None
    hardest = [] if plan.expect is not None else ["close call"]
    heads = ["goal", "ε likely", "typical", *hardest, "never above"]
    heads += [f"within {down(plan.wished)}?"] if stated else [f"{plan.noun} for ε ≤ {down(plan.wished)}"]
    rows = []
    for price in prices:
        way = price.cheapest
        paid = [_if(epsilon, price, k) for k, epsilon in enumerate((way.typical, way.close_call)[: 1 + len(hardest)])]
        row = [price.goal.words, _range(way.low, way.high), *paid, amount(way.worst_case)]
        rows.append([*row, _within(price, plan) if stated else _rows(price, plan.wished)])
    return aligned([heads, *rows], gap=_GAP)


def _if(epsilon: float, price: GoalPrice, which: int) -> str:
    """Return a price and what a model without privacy reaches where it is that."""
    return amount(epsilon) + ("" if price.believed is None else f" if {price.believed[which]:.2g}")


def _method_table(plan: PricePlan, price: GoalPrice) -> list[str]:
    typical = "typical" if price.believed is None else f"typical, if {price.believed[0]:.2g}"
    rows = [[price.goal.words, "noise on", "ε likely", typical, "never above", ""]]
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
        stated = STATED.get(way.perturbation) if plan.delta and is_tested(price.goal) else None
        name = f"--perturbation {stated}" if stated else "no --delta" if way.perturbation == PURE else way.method
        name = "auto" if way.perturbation == PURE and way.taken else name
        noise, typical = _NOISE.get(way.perturbation, way.perturbation), "" if way.known else amount(way.typical)
        rows.append([name, noise, likely, typical, amount(way.worst_case), remark])
    if plan.max_epsilon is not None:
        tail = f"within {down(plan.wished)}: {_within(price, plan)}"
    else:
        tail = f"{plan.noun} for ε ≤ {down(plan.wished)}: {_rows(price, plan.wished)}"
    return [*aligned(rows, gap=_GAP), tail]


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
    return [f"  {line}" for line in aligned(rows, gap=_GAP)]


def _likely(plan: PricePlan) -> str:
    never = "Never above is a promise, whatever the rows."
    if all(price.cheapest.known for price in plan.goals):
        return never
    tables = "made-up arrays" if plan.schema is None else f"{plan.worlds} made-up tables that follow the schema"
    best = "the best model without privacy"
    if plan.expect is None:
        tables += f", from easy ones to close calls, in which {best} hardly reaches the goal,"
    else:
        which = f"{plan.worlds - plan.untold}" if plan.untold else "all"
        tables += f", in {which} of which {best} has {plan.goals[0].goal.name} {exact(plan.expect)}, as you expect,"
    text = f"Likely: from the cheapest of {tables} to what nine in ten of them cost at most. Your rows decide. "
    if plan.positives is not None:
        text += f"In those tables {100 * plan.positives:.3g}% of the rows are positive, as you believe. "
    elif plan.rarer is not None:
        few, many = (f"{share:.2g}" for share in plan.rarer)
        between = few if few == many else f"{few} to {many}"
        text += (
            f"In those tables the rarer label has a share of {between}, as goes with what is asked for: state which "
        )
        text += "share you believe to be positive, and the range narrows. "
    if any(price.believed for price in plan.goals):
        text += f"If: what {best} reaches where it costs that. State what you expect of yours, and the range narrows. "
    if plan.max_epsilon is None:
        text += f"{plan.noun.capitalize()} for ε ≤ {down(plan.wished)}: enough for nine in ten of those tables. "
    return text + never


# The same as a picture: each goal, or each method, with what it cost in synthetic tables. Needs matplotlib.
SUFFIXES = (".png", ".svg", ".pdf")
_BAND, _DOT, _CAP = "#9ecae1", "#08519c", "#a63603"


def picture(plan: PricePlan, suffix: str) -> bytes:
    """Return a plan as a .png, .svg or .pdf file.

    Raises
    ------
    ValueError
        The suffix is another.
    ImportError
        matplotlib is not installed.
    """
    if suffix not in SUFFIXES:
        raise ValueError(f"a plot is a {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]} file, not {suffix}")
    from matplotlib.figure import Figure

    entries = _entries(plan)
    figure: Any = Figure(figsize=(8.0, 1.7 + 0.42 * len(entries)), layout="constrained")
    axes = figure.subplots()
    for place, (_, price) in enumerate(entries):
        _row(axes, place, price)
    axes.set_yticks(range(len(entries)), [label for label, _ in entries])
    axes.set_ylim(len(entries) - 0.5, -0.5)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.xaxis.set_minor_formatter(lambda value, _: f"{value:g}" if f"{value:e}"[0] in "25" else "")
    axes.set_xlabel("ε (log scale): band = likely, line = typical, dots = made-up tables, your rows decide")
    if plan.max_epsilon is not None:
        axes.axvline(plan.max_epsilon, color=_CAP, linestyle="--", linewidth=1.2)
        at = (plan.max_epsilon, 1.0)
        axes.annotate(
            f" cap {down(plan.max_epsilon)}",
            at,
            xycoords=("data", "axes fraction"),
            color=_CAP,
            va="bottom",
            ha="center",
        )
    what = f"a model of {plan.columns} columns" if plan.schema is None else f"to predict {plan.schema.target}"
    axes.set_title(f"What it would cost: {what}, {plan.rows:,} rows", loc="left", pad=18)
    axes.grid(axis="x", which="major", alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    content = io.BytesIO()
    figure.savefig(content, format=suffix[1:], dpi=150, metadata={"Date": None} if suffix == ".svg" else None)
    return content.getvalue()


def _entries(plan: PricePlan) -> list[tuple[str, MethodPrice]]:
    found = []
    for price in plan.goals:
        alone = len(price.methods) == 1
        for way in price.methods:
            name = price.goal.words if alone else f"{price.goal.words}\n{way.method}, {way.perturbation}"
            found.append((name, way))
    return found


def _row(axes: Any, place: int, price: MethodPrice) -> None:
    paid = [epsilon for epsilon in price.epsilons if math.isfinite(epsilon)]
    if not paid:
        axes.annotate("out of reach", (0.5, place), xycoords=("axes fraction", "data"), ha="center", va="center")
        return
    high = price.high if math.isfinite(price.high) else paid[-1]
    low = min(price.low, high)
    axes.plot([low, high], [place, place], color=_BAND, linewidth=11, solid_capstyle="butt", zorder=1)
    # equal prices are put above one another
    seen: dict[float, int] = {}
    for epsilon in paid:
        seen[epsilon] = seen.get(epsilon, -1) + 1
        shift = 0.08 * ((seen[epsilon] % 7 + 1) // 2) * (-1) ** seen[epsilon]
        axes.plot(epsilon, place + shift, "o", color=_DOT, markersize=2.6, alpha=0.55, zorder=2)
    typical = min(price.typical, high)
    axes.plot([typical, typical], [place - 0.32, place + 0.32], color=_DOT, linewidth=2.0, zorder=3)
