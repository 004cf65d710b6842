"""The command line: a module for each command, imported when it is called."""

from expost.cli.command import main

__all__ = ["main"]
