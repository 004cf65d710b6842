"""The command line: a module for each command, imported when it is called."""

from expost.cli.command import main, run_and_exit

__all__ = ["main", "run_and_exit"]
