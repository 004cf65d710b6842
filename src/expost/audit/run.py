"""All attacks, one after the other, and what they found as a table."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
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


def run_audit(
    mechanism: str | None = None,
    *,
    runs: int | None = None,
    confidence: float = 1.0 - 1e-6,
    seed: int | None = None,
    full: bool = False,
    begin: Callable[[str], None] = lambda name: None,
    tell: Callable[[str], None] = lambda done: None,
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
        For results that can be repeated; by default words come from the operating system, as for a fit.
    full : bool, default=False
        Take hours over it.
    begin : callable, optional
        Told the name of each attack before it begins.
    tell : callable, optional
        Told how many of its runs are done while it is carried out.
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
    if not 0.5 <= confidence < 1.0:
        raise ValueError(f"confidence must be at least 0.5 and below 1, got {confidence}")
    done = []
    for attack in attacks(mechanism):
        begin(attack.name)
        usual = attack.full if full else attack.runs
        many = usual if runs is None or not usual else runs

        def told(place: int, name: str = attack.name, many: int = many) -> None:
            tell(f"{name}, run {place:,} of {many:,}")

        setting = Setting(many, seed, confidence, told)
        started = time.monotonic()
        found = attack.carry_out(setting)
        done.append(Audited(attack, found, setting, time.monotonic() - started))
        end(done[-1])
    return tuple(done)


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
