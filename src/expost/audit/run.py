"""All attacks, one after the other, and what they found as a table."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from dataclasses import dataclass
from itertools import starmap
from multiprocessing import get_context
from typing import Any

from expost import validation
from expost.audit import counting, exhaustive, replays, searches, sensitivities
from expost.audit.attack import Attack, Found, Setting
from expost.exceptions import UNSPENT
from expost.shown import aligned, down, up


@dataclass(frozen=True)
class Audited:
    """One attack, carried out.

    Attributes
    ----------
    attack, found
        What was attacked, and what was found where the attack came nearest to a claim.
    setting
        How it was carried out.
    seconds
        How long that took.
    """

    attack: Attack
    found: Found
    setting: Setting
    seconds: float

    @property
    def verdict(self) -> str:
        """``"holds"`` where the bound is below the claim, ``"broken"`` where it is above."""
        return "broken" if self.found.broken else "holds"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "name": self.attack.name,
            "attacked": self.attack.attacked,
            "way": self.attack.way,
            "claimed": self.found.claimed,
            "delta": self.found.delta,
            "bound": self.found.bound,
            "tightness": self.found.tightness if self.attack.tight else None,
            "runs": self.setting.runs,
            "confidence": self.setting.confidence if self.attack.way == "counted" else 1.0,
            "verdict": self.verdict,
            "differs": self.found.differs,
            "seconds": round(self.seconds, 2),
        }


def attacks(mechanism: str | None = None) -> tuple[Attack, ...]:
    """Return all attacks, or those of a name, or whose names a regular expression finds.

    Examples
    --------
    >>> [attack.name for attack in attacks("path$")]
    ['exact-path', 'path', 'spherical-path']
    >>> [attack.name for attack in attacks("path")]
    ['path']
    """
    every = (*exhaustive.ATTACKS, *counting.ATTACKS, *searches.ATTACKS, *sensitivities.ATTACKS, *replays.ATTACKS)
    if mechanism is None:
        return every
    named = tuple(attack for attack in every if attack.name == mechanism)
    try:
        found = named or tuple(attack for attack in every if re.search(mechanism, attack.name))
    except re.error as error:
        raise ValueError(f"mechanism={mechanism!r} is neither a name nor a regular expression: {error}") from None
    if not found:
        names = ", ".join(attack.name for attack in every)
        raise ValueError(f"no attack is called {mechanism!r}; there are {names}. {UNSPENT}")
    return found


def _carried_out(attack: Attack, setting: Setting) -> Audited:
    started = time.monotonic()
    setting.tell(0)
    return Audited(attack, attack.carry_out(setting), setting, time.monotonic() - started)


#: What a process that attacks for another tells it: a name, and how many of its runs are done.
_pipes: list[Any] = []


def _begin(pipe: Any) -> None:
    _pipes.append(pipe)


def _elsewhere(name: str, runs: int, seed: int | None, confidence: float) -> tuple[Found, float]:
    """Carry out an attack in a process of its own; what an attack is made of cannot be sent, so it is found anew."""
    (attack,), (pipe,) = attacks(name), _pipes
    done = _carried_out(attack, Setting(runs, seed, confidence, lambda place: pipe.put((name, place))))
    return done.found, done.seconds


def _shared(
    chosen: Sequence[tuple[Attack, Setting]], processes: int, tell: Callable[[str, int, int], None]
) -> Iterator[Audited]:
    """Carry out attacks in so many processes, and yield each as it is over."""
    context = get_context("spawn")
    pipe: Any = context.SimpleQueue()
    runs = {attack.name: setting.runs for attack, setting in chosen}
    with ProcessPoolExecutor(processes, context, _begin, (pipe,)) as pool:
        left = {
            pool.submit(_elsewhere, attack.name, setting.runs, setting.seed, setting.confidence): (attack, setting)
            for attack, setting in chosen
        }
        try:
            while left:
                over, _ = wait(left, timeout=1.0, return_when=FIRST_COMPLETED)
                while not pipe.empty():
                    name, place = pipe.get()
                    tell(name, place, runs[name])
                for each in over:
                    found, seconds = each.result()
                    attack, setting = left.pop(each)
                    yield Audited(attack, found, setting, seconds)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def run_audit(
    mechanism: str | None = None,
    *,
    runs: int | None = None,
    confidence: float = 1.0 - 1e-6,
    seed: int | None = None,
    full: bool = False,
    processes: int = 1,
    tell: Callable[[str, int, int], None] = lambda name, place, runs: None,
    end: Callable[[Audited], None] = lambda done: None,
) -> tuple[Audited, ...]:
    """Attack the mechanisms of this package, and return what was found.

    Parameters
    ----------
    mechanism : str, optional
        One of :func:`attacks`, or a regular expression; all by default.
    runs : int, optional
        How many runs, or draws, on each data set, where there are any.
    confidence : float, default=0.999999
        A bound from counts is above the truth with at most one minus that probability, for each attack.
    seed : int, optional
        For results that can be repeated, by however many processes; by default words come from the operating system, as
        for a fit.
    full : bool, default=False
        Take an hour over it.
    processes : int, default=1
        How many share the attacks.
    tell : callable, optional
        Told the name of an attack, how many of its runs are done, and of how many.
    end : callable, optional
        Told of each attack when it is over.

    Examples
    --------
    >>> (one,) = run_audit("exact-noisy-best")
    >>> one.verdict, round(one.found.claimed, 2), round(one.found.tightness, 2)
    ('holds', 2.0, 1.0)
    """
    if runs is not None:
        validation.count("runs", runs)
    validation.count("processes", processes)
    if not 0.5 <= confidence < 1.0:
        raise ValueError(f"confidence must be at least 0.5 and below 1, got {confidence}")
    chosen: list[tuple[Attack, Setting]] = []
    for attack in attacks(mechanism):
        usual = attack.full if full else attack.runs
        many = usual if runs is None or not usual else runs

        def told(place: int, name: str = attack.name, many: int = many) -> None:
            tell(name, place, many)

        chosen.append((attack, Setting(many, seed, confidence, told)))
    done = {}
    for each in _shared(chosen, processes, tell) if processes > 1 else starmap(_carried_out, chosen):
        done[each.attack.name] = each
        end(each)
    return tuple(done[attack.name] for attack, _ in chosen)


HEADINGS = ("mechanism", "attacked", "how", "claimed", "bound", "tightness", "runs", "verdict")


def table(done: tuple[Audited, ...]) -> list[tuple[str, ...]]:
    """Return the cells of a table: claims rounded up, bounds down."""
    rows: list[tuple[str, ...]] = []
    for each in done:
        found, runs, losses = each.found, each.setting.runs, each.attack.way != "replayed"
        rows.append(
            (
                each.attack.name,
                each.attack.attacked,
                each.attack.way,
                up(found.claimed) if losses else "nothing",
                down(found.bound) if losses else "",
                f"{found.tightness:.2f}" if each.attack.tight else "",
                f"{runs:,}" if runs else "all",
                each.verdict if not found.differs else f"{each.verdict}: {found.differs}",
            )
        )
    return rows


def as_text(done: tuple[Audited, ...]) -> str:
    """Return the table with a line on what it says."""
    broken = [each.attack.name for each in done if each.found.broken]
    said = (
        f"BROKEN: a claim is false in {', '.join(broken)}"
        if broken
        else f"All of {len(done)} bounds are below their claims."
    )
    return "\n".join([*aligned([HEADINGS, *table(done)], right=(3, 4, 5, 6)), "", said])
