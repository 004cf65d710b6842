"""``python -m experiments reproduce|compare``: the paper's experiments, on its data or on anyone's."""

from __future__ import annotations

import argparse
import sys

from experiments import compare, reproduce
from experiments.command import EXITS
from expost.cli.terminal import complain, prepared_streams

COMMANDS = {"reproduce": reproduce, "compare": compare}


@prepared_streams()
def main(arguments: list[str] | None = None) -> int:
    """Run one of the two commands; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m experiments", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, module in COMMANDS.items():
        exits = "; ".join(f"{status} {meaning}" for status, meaning in EXITS.items())
        command = commands.add_parser(name, description=module.DESCRIPTION, epilog=f"exit status: {exits}")
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    options = parser.parse_args(arguments)
    try:
        status: int = options.run(options)
    except (ValueError, OSError) as error:
        return complain(error, options)
    return status


if __name__ == "__main__":
    sys.exit(main())
