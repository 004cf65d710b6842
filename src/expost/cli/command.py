"""The command ``expost``: which sub-commands there are, and how one is found.

A module is imported when its command is called, and what computes only once the arguments are known to be right:
``--help`` and mistakes need neither NumPy nor scikit-learn.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import sys
import threading
import traceback
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from expost.cli.options import check_counts, settled_passes
from expost.cli.terminal import (
    NOT_WRITTEN,
    REFUSED,
    WRONG,
    complain,
    paid,
    prepared_streams,
    unspent,
    unwritten,
    with_notes,
)
from expost.exceptions import UNSPENT
from expost.shown import one_line, up

__all__ = ["COMMANDS", "INTERRUPTED", "UNEXPECTED", "WRONG", "build_parser", "main", "run_and_exit"]

# Each module has DESCRIPTION, EXAMPLES, EXITS (what each exit status means), add_arguments(parser) and run(options).
COMMANDS = {
    "example": ("expost.cli.example", "write a generated table and its schema, to try things on"),
    "init": ("expost.cli.init", "draft a schema for a file, with blanks to fill in"),
    "check": ("expost.cli.check", "count how a file fits its schema (for the curator alone)"),
    "plan": ("expost.cli.plan", "say what a goal would cost, without reading data"),
    "explore": ("expost.cli.explore", "write a page to explore prices on, and open it"),
    "fit": ("expost.cli.fit", "fit a model to a file, a folder or a query"),
    "predict": ("expost.cli.predict", "predict the rows of a file with a released model"),
    "evaluate": ("expost.cli.evaluate", "say what a released model is worth on private rows, for a stated margin"),
    "export": ("expost.cli.export", "write a released model as one of scikit-learn"),
    "report": ("expost.cli.report", "write a report on a release for a privacy officer"),
    "refine": ("expost.cli.refine", "go on from a release to a more accurate one and pay the difference"),
    "refit": ("expost.cli.refit", "fit another regularization or fewer columns to released moments, for nothing"),
    "key": ("expost.cli.key", "make a key for paths that are kept"),
    "ledger": ("expost.cli.ledger", "keep the budget of a data set over many fits"),
    "demo": ("expost.cli.demo", "fit a model to a generated data set and compare it with the truth"),
    "audit": ("expost.cli.audit", "attack the mechanisms, and compare what that shows with what they claim"),
}
INTERRUPTED = 130
STOPS = (signal.SIGINT, signal.SIGTERM)
UNEXPECTED = 4  # neither the caller's mistake nor an answer; nothing was spent
_REPORT = (
    "an unexpected {}, which is a mistake of expost's: please report it (EXPOST_TRACEBACK=1 shows "
    "where, to the curator alone: it may quote rows)"
)
_NOTHING = (UNSPENT.lower(), "nothing was recorded")  # of a command whose mistakes say so
_ALL = f"; there are {', '.join(COMMANDS)}"
_NEGATIVE_NUMBER = re.compile(r"-(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?|-inf")


def run_and_exit() -> NoReturn:
    """Run the command line as a process: a signal that comes once the outcome is decided does not change its status."""
    sys.exit(_decided(sys.argv[1:]))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line in a process that goes on, with its handlers of signals; returns the exit status."""
    before = {number: signal.getsignal(number) for number in STOPS}
    try:
        return _decided(sys.argv[1:] if arguments is None else arguments)
    finally:
        for number, handler in before.items():
            _on_signals(handler, number)


@prepared_streams()
def _decided(arguments: Sequence[str]) -> int:
    """Return the exit status, and ignore `STOPS` from when it is decided; one of a result that is lost is told."""
    options = argparse.Namespace()
    try:
        status = _status(arguments, options)
    finally:
        failure = unwritten()
        lost = failure is not None and not isinstance(failure, BrokenPipeError)  # whoever reads has not seen enough
        if failure is not None and lost:
            complain(f"standard output could not be written ({failure.strerror}); what was asked was done")
    return NOT_WRITTEN if lost and status == 0 and options.shows else status


def _status(arguments: Sequence[str], options: argparse.Namespace) -> int:
    """Return the exit status of a command, whose options are put where the caller says.

    Until it is decided Ctrl-C, and what batch queues send, is an interruption, so that a search that has begun is
    charged, and the caller told.
    """
    # argparse takes -1e3 for an option unless something stands before the dash, until it has parsed
    given = [f" {text}" if _NEGATIVE_NUMBER.fullmatch(text) else text for text in arguments]
    _forget_searches()
    try:
        try:
            _on_signals(signal.default_int_handler, signal.SIGTERM)
            vars(options).update({name: _unspaced(value) for name, value in vars(_parsed(given)).items()})
            check_counts(options)
            with settled_passes(options):
                status: int = options.run(options)
            return status
        finally:  # two that come at once are both raised, the second one here
            _on_signals(signal.SIG_IGN, *STOPS)
    except (Exception, KeyboardInterrupt) as error:
        _on_signals(signal.SIG_IGN, *STOPS)
        if isinstance(error, ValueError | OSError) and paid() is None and not _interrupted(error):
            return complain(error, options)
        if "EXPOST_TRACEBACK" in os.environ:  # which may quote rows
            traceback.print_exc()
        return _ended_by(error, getattr(options, "nothing", UNSPENT.lower()))  # before it was read nothing was done


def _interrupted(error: BaseException | None) -> bool:
    """Whether it is an interruption, or what somebody made of one: an import that was interrupted fails otherwise."""
    passed: set[int] = set()
    while error is not None and id(error) not in passed:
        if isinstance(error, KeyboardInterrupt):
            return True
        passed.add(id(error))
        error = error.__cause__ or error.__context__
    return False


def go_through() -> None:
    """Let nothing interrupt a command from here on: it does now what an interruption would say it has not done."""
    _on_signals(signal.SIG_IGN, *STOPS)


def _on_signals(handler: Any, *numbers: int) -> None:
    """Let signals do something else, where this is the thread that gets them."""
    if threading.current_thread() is threading.main_thread():
        for number in numbers:
            signal.signal(number, handler)


def _unspaced(value: Any) -> Any:
    """Return what an option holds without the space that was put before names that look like negative numbers."""
    if isinstance(value, list):
        return [_unspaced(item) for item in value]
    spaced = isinstance(value, str | Path) and _NEGATIVE_NUMBER.fullmatch(str(value).removeprefix(" "))
    return type(value)(str(value).removeprefix(" ")) if spaced else value


def _forget_searches() -> None:
    """Let searches of an earlier call in the same process not count as this one's."""
    account = sys.modules.get("expost.account.account")
    if account is not None:
        account.Spending.latest = None


def _ended_by(error: BaseException, nothing: str) -> int:
    """Say what an interruption or an error that nobody expected cost: before a search had begun, or after it had ended.

    ``nothing`` is what the command says it has not done then, if it says anything. One that does not speak of spending
    has searched in rows that were made up, which costs nobody anything.
    """
    what = unexpected(error)
    release = paid() if nothing == UNSPENT.lower() else None
    if release is None:
        complain(with_notes(f"{what}; {nothing}" if nothing else what, error))
        return INTERRUPTED if _interrupted(error) else UNEXPECTED
    print(release.to_json(), file=sys.stderr)
    complain(
        f"{what}, after a search had begun: epsilon = {up(release.epsilon)} has to be counted as spent; "
        "keep the release above, it was paid for"
    )
    return REFUSED


def unexpected(error: BaseException) -> str:
    """Say what an interruption is, or an error that nobody expected, by its type alone: its text might quote a row."""
    kind = KeyboardInterrupt if _interrupted(error) else type(error)
    said = {KeyboardInterrupt: "interrupted", MemoryError: "there is too little memory for this"}
    return said.get(kind, _REPORT.format(kind.__name__))


class _Version(argparse.Action):
    """Print the version, which takes longer to look up than all else here."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from importlib import metadata

        print(f"expost {metadata.version('expost')}")
        parser.exit()


class _Formatter(argparse.HelpFormatter):
    """Fold paragraphs, and leave texts of several lines as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if "\n" in text else super()._fill_text(text, width, indent)


class _OneLineParser(argparse.ArgumentParser):
    """Mistakes get one line, not a page of usage."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._stated: list[argparse.Action] = []

    def error(self, message: str) -> NoReturn:
        text = one_line(f"{self.prog}: {message} (see {self.prog} --help)")
        self.exit(WRONG, f"{unspent(text) if self.get_default('spends') else text}\n")

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        """Say how a number is written that has a decimal comma, or is in per cent."""
        try:
            return super()._get_value(action, arg_string)
        except argparse.ArgumentError as error:
            found = re.fullmatch(r"\s*([+-]?\d*)[.,]?(\d*)\s*(%?)\s*", arg_string)
            if action.type is float and found and found[1] + found[2]:
                meant = float(f"{found[1]}.{found[2]}") / (100.0 if found[3] else 1.0)
                raise argparse.ArgumentError(action, f"{error.message}; write {meant:g}") from None
            raise

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> Any:
        """Refuse an option that is stated twice, of which the last would win; some may be, and flags say it again."""
        once = action.nargs != 0 or isinstance(action, argparse.BooleanOptionalAction)
        if action.option_strings and once and not isinstance(action, argparse._AppendAction):
            if action in self._stated:
                self.error(f"{' or '.join(action.option_strings)} is stated more than once")
            self._stated.append(action)
        return super()._get_values(action, arg_strings)


def _parsed(given: Sequence[str]) -> argparse.Namespace:
    """Return the options of the command that is called, or end with a line about what is wrong with them."""
    called = next((text for text in given if not text.startswith("-")), None)
    parser, command = build_parser(called)
    if called is not None and called not in COMMANDS and called == given[0]:
        parser.error(f"there is no command {called!r}{_near(called, list(COMMANDS)) or _ALL}")
    options, unknown = parser.parse_known_args(given)
    if unknown:
        command.error(f"unrecognized arguments: {' '.join(unknown)}{_nearest(unknown[0], command)}")
    return options


def _nearest(unknown: str, parser: argparse.ArgumentParser) -> str:
    known = [name for name in parser._option_string_actions if name.startswith("--")]
    return _near(unknown.split("=")[0], known)


def _near(unknown: str, known: Sequence[str]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(unknown, known, n=1)
    return f"; did you mean {near[0]}?" if near else ""


def build_parser(called: str | None) -> tuple[argparse.ArgumentParser, argparse.ArgumentParser]:
    """Return the parser with the options of the one command that is called, and that command's own."""
    parser = _OneLineParser(
        prog="expost",
        description="Accuracy-first privacy: state the accuracy, get the most private model that meets it.",
        epilog="Try it: expost example survey\n"
        "        expost fit survey.csv --schema survey.toml --error-rate 0.20\n\n"
        "Each command says more: expost fit --help",
        allow_abbrev=False,
        formatter_class=_Formatter,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    chosen: argparse.ArgumentParser = parser
    for name, (module, summary) in COMMANDS.items():
        command = commands.add_parser(name, allow_abbrev=False, help=summary, formatter_class=_Formatter)
        if name == called:
            home = import_module(module)
            command.description = home.DESCRIPTION
            command.epilog = _epilog(home)
            home.add_arguments(command)
            # what the help says of the status of a mistake, every mistake says; of a result that is lost likewise
            exits: dict[int, str] = getattr(home, "EXITS", {})
            nothing = _nothing(exits)
            spends, shows = nothing == UNSPENT.lower(), NOT_WRITTEN in exits
            command.set_defaults(run=home.run, spends=spends, shows=shows, nothing=nothing)
            chosen = command
    return parser, chosen


def _epilog(home: Any) -> str | None:
    lines = [f"  {example}" for example in getattr(home, "EXAMPLES", ())]
    parts = ["\n".join(["examples:", *lines])] if lines else []
    exits = dict(getattr(home, "EXITS", {}))
    if exits:
        nothing = _nothing(exits)
        then = f"; {nothing}" if nothing else ""
        exits[UNEXPECTED] = f"too little memory, or a mistake of expost's{then}"
        exits[INTERRUPTED] = f"interrupted{' before a search had begun' if nothing == UNSPENT.lower() else ''}{then}"
        parts.append("\n".join(["exit status:", *(f"  {status}  {what}" for status, what in exits.items())]))
    return "\n\n".join(parts) or None


def _nothing(exits: Mapping[int, str]) -> str:
    """Return what has not been done when the command is told of a mistake, as its help says it."""
    return next((said for said in _NOTHING if said in exits.get(WRONG, "")), "")
