"""``expost explore``: a local page on which prices can be moved about."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from expost import validation
from expost.cli.options import (
    add_class_weight,
    add_goals,
    check_goals,
    check_release,
    check_schema,
    class_weight_option,
    stated_goal,
)
from expost.cli.output import add_output, check_output
from expost.cli.plan import add_simulation, whole
from expost.cli.predict import read_release
from expost.cli.progress import Progress
from expost.cli.terminal import print_line, print_text
from expost.goals.flags import FLAGS
from expost.whole import write_whole

if TYPE_CHECKING:
    from expost.release.release import Release
    from expost.table.schema import Schema

DESCRIPTION = (
    "Write a page that shows what goals would cost, with sliders for rows, goal, γ, budget and what you expect a model "
    "to reach, and open it. It is one file, works without a network and sends nothing; no data are read. Without a "
    "schema it is that of the release, or a generated survey's. Prices are those of pure fits, or, at --delta, of the "
    "way that a fit takes if none is stated."
)
EXAMPLES = (
    "expost explore survey.toml --rows 20000",
    "expost explore survey.toml --delta 1e-6 --recall 0.7 --precision 0.15",
)
EXITS = {0: "written or served", 2: "a mistake in the arguments or files; nothing was written"}
_TABLES = 20  # fewer than a plan searches: a page has seven goals at three γ
DEFAULT = Path("explore.html")


def add_arguments(explore: argparse.ArgumentParser) -> None:
    """Add the options."""
    explore.add_argument("schema", type=Path, nargs="?", metavar="SCHEMA", help="a TOML file; expost init drafts one")
    explore.add_argument("--release", type=Path, metavar="FILE", help="a release (JSON) to place among the prices")
    explore.add_argument(
        "--rows",
        type=whole,
        metavar="N",
        help="where the page starts (default: 20,000)",
    )
    kinds = [flag.kind for flag in FLAGS.values() if flag.explored]
    explore.add_argument("--goal", choices=kinds, help="which goal (default: the release's, or error-rate or r2)")
    explore.add_argument(
        "--delta",
        type=float,
        metavar="D",
        help="prices of fits at this delta, say 1e-6 (default: the release's, or 0, pure)",
    )
    add_class_weight(explore)
    explore.add_argument("--max-epsilon", type=float, default=1.0, metavar="E", help="where the budget starts")
    title = "goals about labels: where the page starts (several are moved together)"
    add_goals(explore, title, lambda flag: flag.joins)
    add_simulation(explore)
    explore.set_defaults(worlds=_TABLES)
    out = explore.add_argument_group("output")
    add_output(out, f"where to write the page (default: {DEFAULT})")
    out.add_argument("--no-open", action="store_true", help="do not open a browser")
    out.add_argument("--serve", action="store_true", help="serve the page on this machine only, instead of a file")
    out.add_argument("--port", type=int, default=0, metavar="P", help="of --serve (default: any that is free)")


def run(options: argparse.Namespace) -> int:
    """Compute the page and write or serve it; returns the exit status."""
    validation.budget(options.max_epsilon)
    if options.delta is not None:
        validation.delta(options.delta)
    check_goals(options)
    goal = stated_goal(options)
    if goal is not None and options.goal is not None:
        raise ValueError(f"--goal names a kind and {goal.option} a goal: state one of them")
    if options.schema is not None:
        check_schema(options.schema)
    if options.release is not None:
        check_release(options.release)
    place: Path = options.output or DEFAULT
    if not options.serve:
        check_output(place, force=options.force, inputs=(options.schema, options.release))
    release, schema = _read(options)
    from expost.goals.goal import as_tested
    from expost.planning.explorer import explorer_data, page

    with Progress() as progress:
        progress.stage("searching made-up tables")
        data = explorer_data(
            schema,
            kind=options.goal,
            goal=None if goal is None else as_tested(goal),
            delta=options.delta,
            class_weight=options.class_weight,
            option=class_weight_option(options.class_weight),
            rows=options.rows,
            release=release,
            max_epsilon=options.max_epsilon,
            schema_file=str(options.schema or "schema.toml"),
            worlds=options.worlds,
            random_state=options.seed,
        )
    text = page(data)
    if options.serve:
        return _serve(text, options)
    write_whole(place, text, force=options.force)
    print_line(f"{place} is written: one page, for any browser, that needs no network")
    if not options.no_open:
        import webbrowser

        webbrowser.open(place.absolute().as_uri())
    return 0


def _read(options: argparse.Namespace) -> tuple[Release | None, Schema]:
    from expost.datasets.survey import SURVEY_SCHEMA
    from expost.table.schema import Schema

    release = None
    if options.release is not None:
        release = read_release(options.release)
    if options.schema is not None:
        return release, Schema.from_toml(options.schema)
    if release is None:
        return None, Schema.from_dict(SURVEY_SCHEMA)
    if "schema" not in release.preparation:
        raise ValueError("the release is not of a table with a schema: it has no place on this page")
    return release, Schema.from_dict(release.preparation["schema"])


def _serve(text: str, options: argparse.Namespace) -> int:
    """Serve the page to this machine until interrupted."""
    from expost.planning.explorer import server_of

    with server_of(text, options.port) as server:
        address = f"http://127.0.0.1:{server.server_address[1]}/"
        print_text(f"serving {address} to this machine only; Ctrl+C ends it")
        sys.stdout.flush()
        if not options.no_open:
            import webbrowser

            webbrowser.open(address)
        try:
            server.serve_forever(poll_interval=0.2)
        except KeyboardInterrupt:
            print("expost: ended", file=sys.stderr)
    return 0
