"""``python -m expost.cli``."""

from expost.cli.command import run_and_exit

run_and_exit()
