"""Files that commands write: whole or not at all, and never over another without being asked.

What ``expost fit`` does with a release once it is paid for: save it, show it, and say what could not be done.

Whatever goes wrong here, the release must reach the caller: in a file, or else on the screen.
"""

from __future__ import annotations

import argparse
import contextlib
import glob
import os
import re
import shlex
import stat
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from expost.cli.terminal import (
    NOT_WRITTEN,
    REFUSED,
    SHORT,
    complain,
    own_words,
    print_text,
    unread,
    unwritten,
    with_notes,
)
from expost.exceptions import (
    AccuracyNotReached,
    CoarseMarginWarning,
    LargeDeltaWarning,
    PathNotKeptWarning,
    SearchInterrupted,
    advice,
)
from expost.shown import one_line, up
from expost.whole import write_whole

if TYPE_CHECKING:
    from expost.account.events import Budget
    from expost.account.ledger import Ledger
    from expost.release.release import Release


def add_output(parser: argparse._ActionsContainer, help: str) -> None:
    """Add ``--output`` and ``--force``."""
    parser.add_argument("--output", type=Path, metavar="FILE", help=help)
    parser.add_argument("--force", action="store_true", help="write over files that are there already")


def add_verbose(parser: argparse._ActionsContainer) -> None:
    """Add ``--verbose``."""
    parser.add_argument(
        "--verbose",
        action="store_true",
        help="also show what exactly is promised, how it was made, what is not covered, and the model",
    )


def check_output(
    path: Path | None, *, force: bool = False, option: str = "--output", inputs: Sequence[Path | None] = ()
) -> None:
    """Complain, before anything is spent, about a file that could not be written afterwards.

    A file that is read (``inputs``, of which a folder or a pattern means all that it holds) is not written over,
    whatever ``force`` says: a release was paid for, and a table, a key or a ledger is worth more. Nor is what is no
    file of its own: a link, a device, a pipe.
    """
    if path is None:
        return
    folder = path.absolute().parent
    if not folder.is_dir():
        raise ValueError(f"the folder of {path} does not exist")
    if path.is_dir():
        raise ValueError(f"{path} is a folder; {option} must name a file")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ValueError(f"the folder of {path} cannot be written to")
    if any(used is not None and _holds(used, path) for used in inputs):
        raise ValueError(f"{path} is read, so it is not written over; name another file with {option}")
    there = None
    with contextlib.suppress(FileNotFoundError):  # any other error, as of a name that is too long, is told
        there = path.lstat()
    if there is not None and not stat.S_ISREG(there.st_mode):
        raise ValueError(f"{path} is a link, a device or a pipe; {option} must name a file of its own")
    if there is not None and not force:
        raise ValueError(f"{path} is there already; name another file with {option}, or pass --force to write over it")


def check_printed(path: Path | None, options: argparse.Namespace) -> None:
    """Complain, before anything is spent, about a release that is to be printed where no stream could take it."""
    if path is None and options.json and unread():
        raise ValueError(
            "standard output and standard error are closed, so the release could not be printed; say with --output "
            "where to save it"
        )


def check_named(path: Path | None, options: argparse.Namespace) -> None:
    """Complain, before anything is spent, about a name without room for the ending of one that missed the goal."""
    if path is not None:
        ending = f"-refused-99{path.suffix}"
        if getattr(options, "new_rows", 0.0):
            from expost.release.held_out import held_out_beside

            ending = held_out_beside(Path(ending)).name
        why = "-short or -refused that names end in where the goal is not met"
        check_room(path, ending, why, "name a shorter one with --output")


def check_room(path: Path, ending: str, why: str, otherwise: str) -> None:
    """Complain about a name without room for an ending in the place of its own."""
    try:
        with contextlib.suppress(FileNotFoundError):
            path.with_name(path.stem + ending).lstat()
    except OSError as error:
        raise ValueError(f"{path} leaves no room for the {why} ({error.strerror}); {otherwise}") from None


def _holds(used: Path, path: Path) -> bool:
    """Return whether a path that is read is that file, means it among others, or is a ledger that may write it."""
    if path.resolve() in [Path(f"{used.resolve()}{ending}") for ending in ("-journal", "-wal", "-shm")]:
        return True
    if not path.exists():
        return False
    if used.is_dir() and path.resolve().is_relative_to(used.resolve()):
        return True
    if used.is_file():
        return used.samefile(path)
    names = used.rglob("*") if used.is_dir() else glob.iglob(str(used), recursive=True)
    return any(os.path.exists(name) and path.samefile(name) for name in names)


def why(error: BaseException) -> str:
    """Return why a file that is named beside it could not be written."""
    return getattr(error, "strerror", None) or str(error) or "interrupted"


def write_new(stem: Path, suffix: str, content: str, but: Path | None = None, held_out: bool = False) -> Path:
    """Write a file under the first free name of ``stem.json``, ``stem-2.json`` and so on; returns the name.

    ``but`` is not free: something else is to be written there. ``held_out``: what says who was has a free name, too.
    """
    from expost.release.held_out import held_out_beside

    number = 1
    while True:
        path = stem.with_name(stem.name + ("" if number == 1 else f"-{number}") + suffix)
        number += 1
        taken = held_out and os.path.lexists(held_out_beside(path))
        if not taken and (but is None or path.resolve() != but.resolve()):
            with contextlib.suppress(FileExistsError):
                write_whole(path, content)
                return path


def default_stem(data: Path, target: str | None) -> Path:
    """Return what a release is called if nobody says, in the current folder; short enough for any disk.

    Examples
    --------
    >>> default_stem(Path("/data/survey.csv.gz"), "kWh / year").name
    'survey-kWh-year'
    """
    plain = re.sub(r"[^\w.-]+", "-", target or "model").strip("-.") or "model"
    return Path(f"{_short(data.name.split('.')[0], 120) or 'release'}-{_short(plain, 60)}")


def _short(name: str, most: int) -> str:
    """Return the beginning of a name, of so many bytes, without those that are no letters."""
    return os.fsencode(name)[:most].decode(errors="ignore")


def asked(ledger: Ledger) -> Budget | str:
    """Return what the ledger says now, or why it says nothing; asked once, for a report and the summary."""
    try:
        return ledger.budget
    except (Exception, KeyboardInterrupt) as error:  # whatever it is, the release is not to be lost over it
        return str(error) or "interrupted"


def charged_by(budget: Budget, release: Release) -> str:
    """Say what the ledger charged for a release, and what is left."""
    try:
        entry = budget.entry(release.id)
    except ValueError as error:
        return f"{error}"
    held = ", its worst case, until it is settled" if entry.held else ""
    left = f"{budget.remaining.text(rounding='down')} of {budget.cap.text(rounding='down')} left"
    return f"{budget.dataset}: {entry.loss.text()} charged{held}; {left} (entry {entry.id})"


Failures = list[tuple[str, str]]
Noted = list[tuple[str, type[Warning]]]

UNFIT = "The table hardly fits its schema; expost check tells the curator where."


@contextlib.contextmanager
def noting(options: argparse.Namespace) -> Iterator[Noted]:
    """Give a list that warnings go to, to be told after the outcome, but for those that are to be read before it."""
    noted: Noted = []

    def note(message: Warning | str, category: type[Warning], *_: Any) -> None:
        line = f"expost: warning: {own_words(str(message), options)}"
        if issubclass(category, (LargeDeltaWarning, CoarseMarginWarning)):
            print(line, file=sys.stderr, flush=True)
        else:
            noted.append((line, category))

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = note  # type: ignore[assignment]  # until catch_warnings puts the usual one back
        yield noted


def outcome(search: Callable[[], Release], stated: bool | None = None) -> tuple[Release, str]:
    """Return what a search ends in and, if there is no model, why; ``stated``: the caller stated a regularization."""
    try:
        return search(), ""
    except AccuracyNotReached as refusal:
        unfit = refusal.release.parameters.get("unfit", False)
        return refusal.release, with_notes(f"refused. {UNFIT if unfit else advice(refusal.release, stated)}", refusal)
    except SearchInterrupted as stop:
        by = "" if stop.by == KeyboardInterrupt.__name__ else f" ({stop.by})"
        spent = f"epsilon = {up(stop.release.epsilon)} has to be counted as spent, and the release says so"
        return stop.release, with_notes(f"the search was stopped{by} after it had begun: {spent}", stop)


def deliver(
    release: Release,
    options: argparse.Namespace,
    ledger: Ledger | None = None,
    complaint: str = "",
    noted: Sequence[tuple[str, type[Warning]]] = (),
) -> int:
    """Save and show a release, and what a ledger has to say of it; returns the exit status.

    ``complaint`` says why there is no model, if there is none; ``noted`` are warnings. An interruption ends what it
    interrupts and is noted in ``options.stopped``: what is on its way is handed over, and nothing more may be spent.
    """
    failures: Failures = []
    options.stopped = False
    saved = options.saved = _save(release, options, failures)
    whose = _save_held_out(saved, options, failures)
    unasked = _uncharged() or (options.json and getattr(options, "report", None) is None)
    budget = None if ledger is None or unasked else asked(ledger)
    _save_report(release, options, budget, failures)
    return hand_over(
        release,
        saved,
        lambda: release.to_json() if options.json else _shown(release, saved, options, failures, budget, whose),
        failures,
        options,
        complaint,
        noted,
    )


def hand_over(
    release: Release,
    saved: Path | None,
    shown: Callable[[], str],
    failures: Failures,
    options: argparse.Namespace,
    complaint: str = "",
    noted: Sequence[tuple[str, type[Warning]]] = (),
) -> int:
    """Print what is shown of a release that was paid for, and say what went wrong; returns the exit status.

    ``shown`` makes the text, which holds the whole release if it was not ``saved``. If that cannot be printed either,
    it goes to standard error.
    """
    what = "evaluation" if "evaluation" in release.parameters else "release"
    keep = f"keep the {what} above, it was paid for" if saved is None else f"the {what} is in {saved}"
    failure: BaseException | None
    try:
        print_text(shown())
        failure = unwritten()
    except KeyboardInterrupt as error:
        failure, options.stopped = error, True
    if failure is not None:
        if saved is None:
            print(release.to_json(), file=sys.stderr)
        failed = "standard output failed" if isinstance(failure, OSError) else f"interrupted while the {what} was shown"
        print(f"expost: {failed}; {keep}", file=sys.stderr)
    printed = failure is None or (isinstance(failure, BrokenPipeError) and saved is not None)  # the reader saw enough
    for path, why in failures:
        print(f"expost: {path} could not be written ({why}); {keep}", file=sys.stderr)
    if complaint:
        complain(complaint, options)
    for line, _ in noted:
        print(line, file=sys.stderr)
    unkept = any(issubclass(kind, PathNotKeptWarning) for _, kind in noted)
    if failures or not printed or unkept or _uncharged():
        return NOT_WRITTEN
    return REFUSED if complaint else SHORT if release.status == "short" else 0


def _uncharged() -> bool:
    """Whether a ledger was not charged for the search that this call has made: a warning says why."""
    from expost.account.account import Spending

    return Spending.latest is not None and Spending.latest.uncharged


def _save(release: Release, options: argparse.Namespace, failures: Failures) -> Path | None:
    """Return where the release was saved: under a name of its own if it is short of its goal, or refused."""
    try:
        text, output, but = release.to_json() + "\n", options.output, getattr(options, "report", None)
        if output is None and options.json:
            return None
        if output is not None and release.status == "released":
            write_whole(output, text, force=options.force)
            return Path(output)
        stem = default_stem(options.data, release.target) if output is None else output.with_suffix("")
        if release.status != "released":
            stem = stem.with_name(f"{stem.name}-{release.status}")
        held_out = getattr(options, "held_out", None) is not None
        return write_new(stem, ".json" if output is None else output.suffix, text, but=but, held_out=held_out)
    except (Exception, KeyboardInterrupt) as error:  # whatever it is, the release is not to be lost over it
        failures.append((str(options.output or "a file for the release"), why(error)))
        options.stopped |= isinstance(error, KeyboardInterrupt)
        return None


def _save_held_out(saved: Path | None, options: argparse.Namespace, failures: Failures) -> Path | None:
    """Return where it is kept who was held out, beside the release, if anybody was and there is a model."""
    held = getattr(options, "held_out", None)
    if held is None or saved is None:
        return None
    from expost.release.held_out import held_out_beside

    path = held_out_beside(saved)
    try:
        held.save(path, force=options.force)
        return path
    except (Exception, KeyboardInterrupt) as error:  # as above
        failures.append((str(path), why(error)))
        options.stopped |= isinstance(error, KeyboardInterrupt)
        return None


def _save_report(
    release: Release, options: argparse.Namespace, budget: Budget | str | None, failures: Failures
) -> None:
    if getattr(options, "report", None) is None:
        return
    from expost.release.page import BudgetLine, report

    try:
        if isinstance(budget, str):
            failures.append((f"the budget in {options.report}", budget))
        line = None if budget is None or isinstance(budget, str) else BudgetLine.of(budget, release)
        write_whole(options.report, report(release, line), force=options.force)
    except (Exception, KeyboardInterrupt) as error:  # as above
        failures.append((str(options.report), why(error)))
        options.stopped |= isinstance(error, KeyboardInterrupt)


def _shown(
    release: Release,
    saved: Path | None,
    options: argparse.Namespace,
    failures: Failures,
    budget: Budget | str | None,
    whose: Path | None = None,
) -> str:
    """Return the summary and, of a fit, what can be done next; or the whole release if it is nowhere else."""
    from expost.release.words import summary

    charge = budget if budget is None or isinstance(budget, str) else charged_by(budget, release)
    brief = not getattr(options, "verbose", True)
    shown = summary(release, [] if charge is None else [("ledger", charge)], brief=brief)
    fitted = hasattr(options, "report")
    if saved is None:
        return "\n".join([*([shown, ""] if fitted else []), release.to_json()])
    lines = [shown, f"saved to {one_line(saved)}"]
    if release.status == "short" and hasattr(options, "when_short"):
        lines[-1] += "; --when-short discard would keep no model"
    if whose is not None:
        lines.append(f"who was held out is in {one_line(whose)}: keep it as the table is kept, or delete it")
    if not fitted:
        return "\n".join(lines)
    if options.report is not None and not failures:
        lines.append(f"report in {one_line(options.report)}")
    return "\n".join([*lines, *_next(release, saved, options)])


def _next(release: Release, saved: Path, options: argparse.Namespace) -> list[str]:
    """Return what can be done now, a command a line."""
    name = shlex.quote(str(saved))
    charged = "" if options.ledger is None else _charged(options)
    then = [] if options.report is not None else [f"expost report {name}{charged}"]
    if release.status != "refused":
        then.insert(0, f"expost predict {name} DATA")
        if options.keep_statistics:
            then.append(f"expost refit {name} --regularization L    another λ, or fewer columns: costs nothing more")
        if options.keep_path is not None and options.keep_path.exists():
            opened = f"--path {shlex.quote(str(options.keep_path))} --key {shlex.quote(str(options.key))}"
            then.append(f"expost refine {name} {opened} --excess-risk A    for the difference")
    return [f"{'next:' if i == 0 else '     '} {command}" for i, command in enumerate(then)]


def _charged(options: argparse.Namespace) -> str:
    """Return the options that name the ledger, without which a report says nothing of the budget."""
    return f" --ledger {shlex.quote(str(options.ledger))} --dataset {shlex.quote(options.dataset)}"
