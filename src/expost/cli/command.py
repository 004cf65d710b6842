"""The command ``expost``: which sub-commands there are, and how one is found.

A module is imported when its command is called: ``expost --version`` needs neither NumPy nor scikit-learn.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from importlib import import_module, metadata
from typing import NoReturn

WRONG = 2  # exit status of a mistake in the arguments or the data; nothing was spent

# Each module has add_arguments(parser) and run(options).
COMMANDS = {
    "init": ("expost.cli.init", "draft a schema for a file, with blanks to fill in"),
    "check": ("expost.cli.check", "count how a file fits its schema (for the curator alone)"),
    "plan": ("expost.cli.plan", "say what a goal would cost, without reading data"),
    "explore": ("expost.cli.explore", "write a page to explore prices on, and open it"),
    "fit": ("expost.cli.fit", "fit a model to a CSV or Parquet file"),
    "predict": ("expost.cli.predict", "predict the rows of a file with a released model"),
    "export": ("expost.cli.export", "write a released model as one of scikit-learn"),
    "report": ("expost.cli.report", "write a report on a release for a privacy officer"),
    "refine": ("expost.cli.refine", "go on from a release to a more accurate one and pay the difference"),
    "refit": ("expost.cli.refit", "fit another regularization or fewer columns to released moments, for nothing"),
    "key": ("expost.cli.key", "make a key for paths that are kept"),
    "demo": ("expost.cli.demo", "fit a model to a generated data set and compare it with the truth"),
    "reproduce": ("expost.cli.reproduce", "run the paper's experiments and draw its figures (a simulation)"),
    "compare": ("expost.cli.compare", "run the same experiments on your own data (a simulation)"),
}
_NEGATIVE_NUMBER = re.compile(r"-(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?|-inf")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    # argparse takes -1e3 for an option unless something stands before the dash
    given = [f" {text}" if _NEGATIVE_NUMBER.fullmatch(text) else text for text in given]
    options = _parser(given).parse_args(given)
    try:
        status: int = options.run(options)
    except KeyboardInterrupt:
        print("expost: interrupted; nothing was spent", file=sys.stderr)
        return 130
    return status


class _OneLineParser(argparse.ArgumentParser):
    """Mistakes get one line, not a page of usage."""

    def error(self, message: str) -> NoReturn:
        self.exit(WRONG, f"{self.prog}: {message} (see {self.prog} --help)\n")


def _parser(given: Sequence[str]) -> argparse.ArgumentParser:
    """Return the parser, with the options of the one command that is called."""
    parser = _OneLineParser(
        prog="expost",
        description="Accuracy-first privacy: state the accuracy, get the most private model that meets it.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"expost {metadata.version('expost')}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    called = next((text for text in given if not text.startswith("-")), None)
    for name, (module, summary) in COMMANDS.items():
        command = commands.add_parser(name, allow_abbrev=False, help=summary)
        if name == called:
            home = import_module(module)
            command.description = home.DESCRIPTION
            home.add_arguments(command)
            command.set_defaults(run=home.run)
    return parser


if __name__ == "__main__":
    sys.exit(main())
