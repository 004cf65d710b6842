"""``expost plan``: what a goal would cost, before any data are read."""

from __future__ import annotations

import argparse
import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from expost import defaults
from expost.cli.options import (
    add_class_weight,
    add_goals,
    add_person_options,
    add_promise_options,
    check_numbers,
    check_schema,
    class_weight_option,
    stated_goals,
)
from expost.cli.output import check_output, why
from expost.cli.progress import Progress
from expost.cli.terminal import NOT_WRITTEN, print_text
from expost.shown import down, exact
from expost.whole import write_whole

if TYPE_CHECKING:
    from expost.planning import GoalPrice, PricePlan

_MAX_EPSILON = re.compile(r"(?<![\w'\"./-])max_epsilon(?![\w'\"/-])")  # in notes, which are the library's

POSITIVES = "about which share of the rows you believe to have the positive label; narrows the prices"
DESCRIPTION = (
    "Say what goals would cost for a schema and a number of rows. No data are read: what depends on the rows is a "
    "range over made-up tables that follow the schema, and your rows decide."
)
EXAMPLES = ("expost plan survey.toml --rows 20000 --error-rate 0.25 0.20 --max-epsilon 1",)
EXITS = {
    0: "shown",
    1: "planned, but it could not be printed, or --plot not be written",
    2: "a mistake in the arguments or the schema",
}


def add_arguments(plan: argparse.ArgumentParser) -> None:
    """Add the options."""
    plan.add_argument("schema", type=Path, nargs="?", metavar="SCHEMA", help="a TOML file; expost init drafts one")
    plan.add_argument(
        "--rows",
        type=whole,
        required=True,
        metavar="N",
        help="how many rows there will be (or persons)",
    )
    title = "goals (any number of them; the usual ones if none is stated)"
    add_goals(plan, title, lambda flag: True, nargs="+", action="extend")
    fit = plan.add_argument_group("the fit that is planned")
    add_promise_options(fit, lifted=False)
    add_class_weight(fit)
    add_person_options(plan)
    fit.add_argument(
        "--expect",
        type=float,
        metavar="X",
        help="what you expect the best model without privacy to reach, in the goals' own number; narrows the prices",
    )
    fit.add_argument("--positives", type=float, metavar="Q", help=POSITIVES)
    array = plan.add_argument_group("plain arrays, without a schema")
    array.add_argument("--task", choices=("regression", "classification"))
    array.add_argument("--columns", type=whole, metavar="P", help="how many columns")
    array.add_argument("--regularization", type=float, metavar="L", help="λ (default: as an estimator chooses it)")
    out = plan.add_argument_group("output")
    out.add_argument("--json", action="store_true", help="print the plan as JSON")
    out.add_argument("--plot", type=Path, metavar="FILE", help="also draw it, to a .png, .svg or .pdf file")
    out.add_argument("--force", action="store_true", help="write over the file of --plot if it is there already")
    add_simulation(out)


def add_simulation(parser: argparse._ActionsContainer) -> None:
    """Add the options of the simulation that prices come from."""
    parser.add_argument(
        "--worlds",
        type=whole,
        default=defaults.WORLDS,
        metavar="K",
        help="made-up tables, fewer where they would take long (default: %(default)s)",
    )
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="of the simulation (default: 0)")


def whole(text: str) -> int:
    """Read a whole number, 20,000 and 20_000 among them."""
    try:
        return int(text.replace(",", "").replace("_", ""))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None


def run(options: argparse.Namespace) -> int:
    """Plan and show; returns the exit status."""
    check_numbers(options)
    if options.schema is not None:
        check_schema(options.schema)
    goals = stated_goals(options)
    _check_plot(options)
    from expost.planning import plan

    with Progress() as progress:
        progress.stage("searching made-up tables")
        prices = plan(
            options.schema,
            goals,
            rows=options.rows,
            max_epsilon=options.max_epsilon,
            failure_probability=options.failure_probability,
            delta=options.delta,
            on_invalid=options.on_invalid,
            person=options.person,
            rows_per_person=options.rows_per_person,
            task=options.task,
            columns=options.columns,
            regularization="auto" if options.regularization is None else options.regularization,
            expect=options.expect,
            positives=options.positives,
            class_weight=options.class_weight,
            worlds=options.worlds,
            random_state=options.seed,
        )
    shown = [_MAX_EPSILON.sub("--max-epsilon", str(prices)), *_next(prices, options)]
    print_text(prices.to_json() if options.json else "\n".join(shown))
    if options.plot is None:
        return 0
    from expost.planning.result import picture

    try:
        write_whole(options.plot, picture(prices, options.plot.suffix.lower()), force=options.force)
    except OSError as error:
        print(f"expost: {options.plot} could not be written ({why(error)})", file=sys.stderr)
        return NOT_WRITTEN
    return 0


def _check_plot(options: argparse.Namespace) -> None:
    """Complain before anything is computed about a picture that could not be drawn."""
    path = options.plot
    if path is None:
        return
    from importlib.util import find_spec

    from expost.planning.result import SUFFIXES

    if path.suffix.lower() not in SUFFIXES:
        raise ValueError(f"--plot {path}: state a {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]} file")
    check_output(path, force=options.force, option="--plot", inputs=(options.schema,))
    if find_spec("matplotlib") is None:
        raise ValueError("--plot needs matplotlib: pip install 'expost[plot]'")


def _next(prices: PricePlan, options: argparse.Namespace) -> list[str]:
    """Return the command that a reader would go on with."""
    from expost.goals.goal import is_tested

    if prices.schema is None:
        return []
    tables = [price for price in prices.goals if is_tested(price.goal) and not price.unreachable]
    fitting = [price for price in tables if price.cheapest.share_within(prices.wished) >= 0.9]
    likely = [price for price in tables if price.cheapest.share_within(price.cheapest.worst_case) >= 0.5]
    if not likely:
        return ["next: none is likely to succeed; take more rows, a looser goal or a larger --max-epsilon"]
    chosen = fitting[-1] if fitting else max(likely, key=lambda price: price.cheapest.share_within(prices.wished))
    fit = f"expost fit DATA.csv --schema {shlex.quote(str(options.schema))} {chosen.flag}"
    cap = "" if prices.max_epsilon is None else f" --max-epsilon {down(prices.max_epsilon)}"
    clip = " --on-invalid clip" if options.on_invalid == "clip" else ""
    person = ""
    if options.person is not None:
        person = f" --person {shlex.quote(options.person)} --rows-per-person {options.rows_per_person}"
    gamma = prices.failure_probability
    often = "" if gamma == defaults.FAILURE_PROBABILITY else f" --failure-probability {exact(gamma)}"
    at, said = _at(prices, chosen)
    return [*said, f"next: {fit}{cap}{often}{at}{class_weight_option(options.class_weight)}{clip}{person}"]


def _at(prices: PricePlan, price: GoalPrice) -> tuple[str, list[str]]:
    """Return the options for the way that the table calls cheapest, and why they are not those stated, if so."""
    from expost.planning.result import PURE, STATED

    way = price.cheapest
    if not prices.delta:
        return "", []
    if way.perturbation == PURE:
        return "", ["Pure noise is typically cheapest here, and promises more than a δ does: leave --delta out."]
    at = f" --delta {exact(prices.delta)}"
    if way.taken:
        return at, []
    reason = "What fit would take by itself follows a formula; the command below states what was cheapest here."
    return f"{at} --perturbation {STATED[way.perturbation]}", [reason]
