"""``expost report``: a release on paper, for a privacy officer; or as an entry for the public registry."""

from __future__ import annotations

import argparse
import shlex
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from expost.cli.options import check_input, check_release, named_ledger
from expost.cli.output import add_output, check_output
from expost.cli.predict import read_release
from expost.cli.terminal import print_line
from expost.whole import write_whole

if TYPE_CHECKING:
    from expost.release.project import Project
    from expost.release.release import Release

DESCRIPTION = (
    "Write a report on a release: what was promised, shown and paid and what that means, what was stated and not "
    "checked, what a signature affirms, and the model. One HTML file that opens without a network and prints. With "
    "--registry, an entry for OpenDP's public registry of deployments instead. Nothing is spent; the data are not "
    "needed."
)
EXAMPLES = (
    "expost report survey-satisfied.json",
    "expost report survey-satisfied.json --ledger budget.db --dataset survey-2026",
    "expost report survey-satisfied.json --purpose 'where to visit again' --recipient 'city council'",
    "expost report survey-satisfied.json --project project.toml --registry",
)
EXITS = {0: "written", 2: "a mistake in the arguments or files; nothing was written"}

_FLAGS = {
    "data_set": "which data the release is about",
    "purpose": "what the model is for",
    "recipient": "who gets it",
    "contact": "whom to ask",
}


def add_arguments(report: argparse.ArgumentParser) -> None:
    """Add the options."""
    report.add_argument("release", type=Path, help="a release, as expost fit saves it; refusals as well")
    report.add_argument(
        "--evaluation",
        type=Path,
        metavar="FILE",
        help="an evaluation of it, from expost evaluate: a third sheet",
    )
    report.add_argument("--ledger", type=Path, metavar="FILE", help="the ledger it was charged to: shows what is left")
    report.add_argument("--dataset", metavar="NAME", help="the data set in it")
    project = report.add_argument_group("the project", "What is not stated is left blank, to be filled in by hand.")
    for name, help in _FLAGS.items():
        project.add_argument(f"--{name.replace('_', '-')}", metavar="TEXT", help=help)
    project.add_argument(
        "--project",
        type=Path,
        metavar="TOML",
        help='a file with these and more: data_set = "…", purpose, recipient, contact; and for the registry curator, '
        "region, sector, decision, security, sources, author. Flags take precedence",
    )
    report.add_argument(
        "--reference",
        action="append",
        default=[],
        metavar="COL=CATEGORY",
        help="show the categories of a column against this one (default: the first that the schema lists)",
    )
    report.add_argument(
        "--registry",
        nargs="?",
        const=True,
        metavar="YAML",
        help="write an entry for OpenDP's registry of deployments instead (default: beside the release)",
    )
    add_output(report, "where to write the report (default: beside the release, ending in .html)")


def run(options: argparse.Namespace) -> int:
    """Write the report, or the entry; returns the exit status."""
    if options.registry is not None:
        return _register(options)
    output = options.output or options.release.with_suffix(".html")
    check_release(options.release)
    read = (options.release, options.ledger, options.project, options.evaluation)
    check_output(output, force=options.force, inputs=tuple(path for path in read if path is not None))
    project, ledger = _project(options), named_ledger(options)
    release = read_release(options.release)
    if "evaluation" in release.parameters:
        raise ValueError(
            f"{options.release} is an evaluation, whose page is beside it; a report is of the model, and takes it in: "
            f"expost report MODEL.json --evaluation {options.release}"
        )
    evaluation = "" if options.evaluation is None else _evaluation(options.evaluation, release)
    from expost.release.page import BudgetLine, report

    if ledger is not None and all(release.id not in (e.id, e.release_id) for e in ledger.budget.entries):
        book = ("expost", "ledger", "book", f"{options.ledger}", f"{options.release}", "--dataset", options.dataset)
        charge = f", or charge it there first: {shlex.join(book)}" if ledger.budget.cap.takes(release.delta) else ""
        raise ValueError(
            f"release {release.id} is not booked in data set {options.dataset!r}; leave out --ledger{charge}"
        )
    budget = None if ledger is None else BudgetLine.of(ledger.budget, release)
    references = _references(options.reference, release)
    page = report(release, budget, project, reference=references, evaluation=evaluation)
    write_whole(output, page, force=options.force)
    blank = f"; blank, to fill in: {', '.join(map(_flag, project.blank))}" if project.blank else ""
    print_line(f"report in {output}; open it in a browser, and print it from there{blank}")
    return 0


def _register(options: argparse.Namespace) -> int:
    """Write the entry; options that a report alone has are refused."""
    for name in ("ledger", "output", "reference", "evaluation"):
        if getattr(options, name):
            raise ValueError(f"--{name} is for a report; with --registry leave it out")
    name = options.release.with_suffix(".yaml").name.lower().replace("-", "_")  # as the registry asks for
    output = options.release.with_name(name) if options.registry is True else Path(options.registry)
    check_release(options.release)
    read = tuple(path for path in (options.release, options.project) if path is not None)
    check_output(output, force=options.force, option="--registry", inputs=read)
    from expost.release.registry import registry_entry

    write_whole(output, registry_entry(read_release(options.release), _project(options)), force=options.force)
    print_line(f"entry in {output}, a draft: complete what is marked “to fill in” and read the rest before you send it")
    return 0


def _evaluation(path: Path, release: Release) -> str:
    """Return what an evaluation of the release shows, for its report."""
    check_release(path)
    from expost.release.evaluation import Evaluation
    from expost.release.evaluation_page import evaluation_html

    found = Evaluation(read_release(path))
    if (of := found.release.parameters["evaluation"]["of"]) != release.id:
        raise ValueError(f"--evaluation {path} is of another release, {of}")
    about = f"Evaluation <code>{escape(found.release.id)}</code> on {escape(found.about)}"
    return f"<header><h1>How good the model is</h1><p>{about}</p></header>\n{evaluation_html(found)}"


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _project(options: argparse.Namespace) -> Project:
    """Return what flags and file say of the project."""
    from expost.release.project import Project

    if options.project is not None:
        check_input(options.project)
    project = Project() if options.project is None else Project.from_toml(options.project)
    return project.stated(**{name: getattr(options, name) for name in _FLAGS})


def _references(stated: list[str], release: Release) -> dict[str, str]:
    """Read COL=CATEGORY; a name may hold an equals sign, so the longest column that fits is meant."""
    found: dict[str, str] = {}
    for text in stated:
        names = [name for name in release.columns if text.startswith(f"{name}=")]
        if not names:
            raise ValueError(f"--reference {text} must be COL=CATEGORY; columns are {', '.join(release.columns)}")
        name = max(names, key=len)
        if name in found:
            raise ValueError(f"--reference {name}=… is stated more than once")
        found[name] = text.removeprefix(f"{name}=")
    return found
