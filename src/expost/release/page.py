"""One HTML file that opens without a network and prints: the officer's sheet, then the model on the next.

The officer's sheet: what was promised, what was paid and for what, what that means, and what it does not cover.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from expost import defaults
from expost.account.loss import ApproximateCap
from expost.release.card import bar, bullets, card, section, table, text
from expost.release.project import Project
from expost.release.words import (
    asked,
    at_delta,
    exposed,
    held_out,
    no_better,
    on_rows,
    parts,
    require_model,
    shown,
    state,
    subject,
    suspicion,
    to_compare,
    usual,
    weighed,
)
from expost.shown import down, joined, percent, up

if TYPE_CHECKING:
    from expost.account.events import Budget
    from expost.release.release import Release


@dataclass(frozen=True)
class BudgetLine:
    """What has been spent on a data set, this release included.

    Attributes
    ----------
    dataset
        Its name.
    spent
        Sum of the losses of all releases about it.
    cap
        What they may come to, if somebody has settled that.
    entry
        What the book calls this release.
    held
        Part of ``spent`` that is held for searches whose outcome is not known; with a δ, what that part is by itself.
    delta
        δ of the budget: ``spent`` and ``cap`` are at it, and losses do not simply add up.
    left
        What one more fit may cost, where that is not the difference.

    Examples
    --------
    >>> BudgetLine("survey-2026", spent=0.41, cap=2.0).remaining
    1.59
    """

    dataset: str
    spent: float
    cap: float | None = None
    entry: str | None = None
    held: float = 0.0
    delta: float = 0.0
    left: float | None = None

    def __post_init__(self) -> None:
        for name in ("spent", "held", "cap"):
            value = getattr(self, name)
            if value is not None and not value >= 0:
                raise ValueError(f"{name} must be a non-negative number")

    @classmethod
    def of(cls, budget: Budget, release: Release) -> BudgetLine:
        """Return what a ledger says (`Ledger.budget`) about the data set of a release, which must be booked there."""
        total, cap, entry = budget.total.epsilon, budget.cap, budget.entry(release.id).id
        made = cls(budget.dataset, total, cap.epsilon, entry, budget.held.epsilon)
        if isinstance(cap, ApproximateCap):
            return replace(made, delta=cap.delta, left=budget.ceiling(cap.delta))
        return made

    @property
    def remaining(self) -> float:
        """What is left; infinite without a cap."""
        if self.left is not None:
            return self.left
        return math.inf if self.cap is None else max(0.0, self.cap - self.spent)


_STYLE = files("expost.release").joinpath("report.css").read_text(encoding="utf-8")  # once: a report reads nothing
_SUSPICIONS = (0.01, 0.1, 0.5)
_COLOURS = {
    "to look at the table": "look",
    "tests": "tests",
    "to state it at δ": "stated",
}  # whatever else is the model


def _header(release: Release) -> str:
    verb = "Meant to predict" if release.status == "refused" else "Predicts"
    kind = "ok" if release.status == "released" and release.secure else "no"
    outcome = state(release) if release.secure else f"{state(release)} (simulation)"
    day = "date not recorded" if release.date is None else release.date
    return (
        f'<header><h1>{verb} {text(subject(release))}</h1><p><span class="{kind}">{text(outcome)}</span> '
        f"Release <code>{text(release.id)}</code> · {text(day)}</p></header>\n"
    )


def _warnings(release: Release) -> str:
    said = []
    if not release.secure:
        said.append("Simulation: the noise came from a seed. Whoever knows it can take the noise off. Protects nobody.")
    if math.isinf(release.epsilon):
        said.append("No privacy: what was released comes from the rows without any noise. Do not publish it.")
    if release.status == "short":
        said.append("Short of the goal: no model was shown to be as good as was asked. This is the best one found.")
    if release.parameters.get("interrupted", False):
        said.append(
            "The search was interrupted. How far it had come may depend on the rows, so what the dearest outcome could "
            "have cost is charged."
        )
    return "".join(f'<p class="warning">{text(line)}</p>\n' for line in said)


def _promised(release: Release) -> list[str]:
    goal, chance = asked(release), release.promise.failure_probability
    if release.status == "refused":
        wanted = "" if goal is None else f" Asked for: {goal[0]} {goal[1]}."
        said = ["<p class=big>nothing</p>", f"<p>No model was released.{text(wanted)}</p>"]
        if "constant" in release.parameters:
            new = f", which is not shown of new {release.unit}s" if release.held_out else ""
            said.append(f"<p>{text(_sentence(to_compare(release)))} That is as good as was asked for{text(new)}.</p>")
        if release.closest:
            said += [f"<p>{text(_sentence(line))}</p>" for line in (release.closest, no_better(release)) if line]
            said += _all_runs(chance)
        return [*said, *[f"<p>{text(_sentence(line))}</p>" for line in (release.going_on,) if line]]
    said = [] if goal is None else [f"<p class=big>{text(goal[0])} {text(goal[1])} {_where(release)}</p>"]
    if release.status == "short":
        said = [f"<p class=big>nothing</p><p>Asked for: {text(goal[0])} {text(goal[1])}.</p>"] if goal else []
    said.append(f"<p>{text(_sentence(release.promise.statement))}</p>")
    if release.status == "released" and chance is not None:
        said.append(
            f"<p>Of all runs like this one at most {up(chance, 6)} release a model that misses, refusals counted. "
            "Where most runs are refused, a single release may be a miss more often than that.</p>"
        )
    if release.promise.excess_risk_caller_units is not None and release.preparation.get("target") is not None:
        squared = up(release.promise.excess_risk_caller_units)
        said.append(f"<p>In squared units of the target the excess risk is at most {text(squared)}.</p>")
    return said


def _where(release: Release) -> str:
    goal = asked(release)
    return "" if goal is None else text(on_rows(release, goal[0]))


def _shown(release: Release) -> list[str]:
    """Return what tests have shown of the model, and what a constant reaches; nothing for a refusal, which says it."""
    goal, found, said = asked(release), shown(release), []
    if release.status == "refused" or goal is None:
        return []
    if found:
        short = release.status == "short"
        by = "" if short else ": its tests have shown it, with the same probability."
        said.append(f"<p{' class=big' if short else ''}>{text(goal[0])} {text(found)} {_where(release)}{by}</p>")
    if release.status == "short":
        said += [f"<p>{text(_sentence(line))}</p>" for line in (release.closest, release.going_on) if line]
        said += _all_runs(release.promise.failure_probability)
    return said


def _yardstick(release: Release) -> list[str]:
    beside = "" if release.status == "refused" else to_compare(release)
    if not beside:
        return []
    beside = _sentence(beside)[:1].lower() + _sentence(beside)[1:]
    told = f" This one is {no_better(release)}." if no_better(release) else ""
    return [f"<p>To compare: {text(beside)} A model that does no better has learned nothing.{text(told)}</p>"]


def _all_runs(chance: float | None) -> list[str]:
    """Say over what a bound that was shown is as rarely false as stated."""
    if chance is None:
        return []
    return [f"<p>Of all runs like this one, refused or not, at most {up(chance, 6)} show what is false.</p>"]


def _paid(release: Release) -> list[str]:
    total, most, spent = release.epsilon, release.epsilon_worst_case, parts(release)
    if math.isinf(total):
        return ["<p class=big>ε = ∞</p>"]
    of = "" if math.isinf(most) else f" of {up(most)} at most"
    said = [f"<p class=big>ε = {up(total)}{of}{at_delta(release)}</p>"]
    if not spent:
        return [*said, "<p>Nothing was spent.</p>"]
    shares = [(loss, _COLOURS.get(what, "model")) for loss, what in spent]
    keys = " ".join(
        f'<span class=key><svg viewBox="0 0 10 10"><rect class="{kind}" width="10" height="10"/></svg>'
        f"{text(up(loss))} {text(what)}</span>"
        for (loss, what), (_, kind) in zip(spent, shares, strict=True)
    )
    if not math.isinf(most) and most > 0:
        said.append(bar([(total, "model")] if release.held_out else shares, most, f"{up(total)} of {up(most)}"))
    said.append(f"<p>{keys}</p>")
    if release.held_out:
        apart = f"Tests read {held_out(release)} that no model was fitted to"
        said.append(
            f"<p>{apart}, so of what both cost the larger counts, not the sum. Which these are was drawn at random and "
            f"is in no release; the file that says it ({defaults.HELD_OUT}) is kept as the data are, or deleted.</p>"
        )
    compared = usual(release)
    said += [] if compared is None else [f"<p>{text(compared)}.</p>"]
    if math.isinf(most):
        said.append("<p>Before the run there was no bound on what it could cost.</p>")
    elif up(total) != up(most):
        said.append(
            f"<p>ε = {up(total)} is the loss of what in fact came out. Before the run it was settled that no outcome "
            f"could cost more than {up(most)}.</p>"
        )
    return said


def _in_words(release: Release) -> list[str]:
    unit = release.unit
    if not release.secure or math.isinf(release.epsilon):
        return [f"<p>Nothing is promised: whoever sees this may learn everything about a {unit}.</p>"]
    if release.epsilon == 0:
        return [f"<p>Nobody can learn anything about a {unit} from this.</p>"]
    most = ["can become at most", *(percent(suspicion(before, release.epsilon)) for before in _SUSPICIONS)]
    whose, way = f"Whatever somebody suspected about one {unit}", ", up or down"
    if release.delta:  # which is about one value against one other, and one direction
        whose, way = f"Where somebody weighs whether one {unit} is a certain one or a certain other", ""
    return [
        f"<p>{whose}, what this {unit} adds to the release {'raises' if release.delta else 'changes'} the odds by a "
        f"factor of at most <b>{up(release.risk_factor)}</b>{way}, whatever else they know and whatever is done with "
        f"it later.{_chance(release)}</p>",
        table(["a suspicion of", *map(percent, _SUSPICIONS)], [most], numbers=(1, 2, 3)),
        "<p class=small>A suspicion p becomes at most p·e<sup>ε</sup>/(1 − p + p·e<sup>ε</sup>), rounded up here. "
        f"Compared: the rows as they are, and the same rows with one {unit} replaced by any other.</p>",
    ]


def _chance(release: Release) -> str:
    """Say what a δ leaves out: the bound is for each ordered pair of neighbours, and fails with a small chance."""
    if not release.delta:
        return ""
    found = exposed(release)
    return (
        f" That holds but for a chance of δ = {up(release.delta, 6)}, over the noise, for each {release.unit} and each "
        f"other it may be compared with, the odds of one of the two; that they move by more either way has a chance of "
        f"at most 2δ. δ was settled before the run.{'' if found is None else f' {text(_sentence(found))}'}"
    )


def _stated(release: Release) -> list[str]:
    said = [f"the guarantee is about: {release.neighbours}"]
    if release.unit == "row" and release.delta:
        said.append("one row is all there is about one person; whoever has several is not protected as a person")
    elif release.unit == "row":
        said.append("one row is all there is about one person; whoever has k rows is protected by k times this ε only")
    most = release.parameters.get("rows_per_person")
    if most is not None:
        which = "row" if most == 1 else f"{most} rows"
        said.append(
            f"of each person, told apart by {release.parameters.get('person')}, the first {which} of the table count "
            f"and no more; whoever has fewer counts as much, with rows repeated"
        )
    schema = release.preparation.get("schema")
    where = "the file of this release" if release.status == "refused" else "the next sheet"
    if schema is not None:
        said.append(f"{_counted(schema)} come from public knowledge, not from the rows; {where} lists them")
    elif release.preparation.get("bounds") is not None:
        many = len(release.preparation["bounds"]["lower"])
        said.append(
            f"the bounds of {many} column{'s' if many != 1 else ''} come from public knowledge, not from the rows"
        )
    else:
        said.append("bounds, names of columns and classes come from public knowledge, not from the rows")
    if found := weighed(release):
        said.append(f"{found}; the weights come from public knowledge, not from the rows")
    return [bullets([*said, *release.claims])]


def _counted(schema: Any) -> str:
    columns = schema["columns"].values()
    bounds = sum("bounds" in column for column in columns)
    labels = sum(len(column.get("categories", ())) for column in columns)
    said = [f"{bounds} pair{'s' if bounds != 1 else ''} of bounds"] if bounds else []
    said += [f"{labels} categories"] if labels else []
    said += ["the two classes" if "classes" in schema else "the bounds of the target"]
    return joined(said)


def _outside(release: Release) -> list[str]:
    said = [_sentence(line) for line in release.not_covered]
    if release.noise != "exact":
        said.append(
            "The noise is continuous and its proof is about real numbers; a computer's rounding of it is not covered."
        )
    unit = release.unit
    said.append(
        f"What other rows tell about a {unit} that resembles them: what is true of many is true of this one too."
    )
    said.append("How long the computation took, how much memory it used, and that it was done at all.")
    said.append(
        "What was told about the rows in other ways, also by choosing goal, columns and bounds after seeing them."
    )
    return said


def _data_set(release: Release, budget: BudgetLine | None) -> list[str]:
    if budget is None:
        new = f"{text(up(release.epsilon_increment))} more than before"
        if release.continues is not None:
            new += f", beside release {text(release.continues)}, which it continues"
        return [
            "<p>No ledger of the data set was given. What several releases about the same rows cost adds up: with this "
            f"one, {new}.</p>"
        ]
    entry = "" if budget.entry is None else f" Entry {text(budget.entry)}."
    alone = ", by itself," if budget.delta else ""
    held = "" if not budget.held else f" {text(up(budget.held))} of it{alone} is held for searches that have not ended."
    if budget.cap is None:
        return [f"<p>{text(budget.dataset)}: ε = {text(up(budget.spent))} spent so far, no cap.{held}{entry}</p>"]
    at = f" at δ = {up(budget.delta, 6)}" if budget.delta else ""
    more = "" if budget.left is None else f" One more fit may cost up to {text(down(budget.left))}."
    over = ' <b class="no">The cap is exceeded.</b>' if budget.spent > budget.cap else ""
    return [
        f"<p>{text(budget.dataset)}: ε = {text(up(budget.spent))} of {down(budget.cap)}{at} spent, this release "
        f"included.{held}{more}{entry}{over}</p>",
        bar([(min(budget.spent, budget.cap), "model")] if budget.spent else [], budget.cap, "spent of the cap"),
    ]


def _made(release: Release) -> list[str]:
    named = ", ".join(part for part in (release.method, release.perturbation, release.calibration) if part)
    noise = "exact" if release.noise == "exact" else "over the reals"
    source = "a cryptographic source" if release.secure else "a SEED"
    lines = [f"method {named}; noise {noise}, from {source}", *release.parameters.get("reasons", ())]
    lines += [f"exact: {', '.join(release.exact)}"] if release.exact else []
    lines += [f"floating point, bounded and charged: {'; '.join(release.charged)}"] if release.charged else []
    lines.append(", ".join(f"{name} {version}" for name, version in release.versions.items()))
    if release.schema_fingerprint is not None:
        lines.append(f"schema SHA-256 {release.schema_fingerprint}")
    if release.data_fingerprint is not None:
        lines.append(f"data SHA-256 {release.data_fingerprint}")
    return [f'<div class="small made">{bullets(lines)}</div>']


def _sentence(line: str) -> str:
    """Return a text with a capital and a full stop."""
    line = line.strip()
    return line[:1].upper() + line[1:] + ("" if line.endswith((".", "!", "?")) else ".")


def _protects(release: Release) -> list[str]:
    """Say in two sentences what differential privacy is, and whether this is it."""
    whose = "a person" if release.unit == "person" else "one row"
    but = f", but for a chance of δ = {up(release.delta, 6)}" if release.delta else ""
    said = (
        f"Differential privacy limits how much of what is released can hang on {whose}: with {whose} replaced by any "
        f"other, the same could have come out, with a chance that differs by no more than the factor under “In words”"
        f"{but}. It does not hide what is true of many: what the rows show together is what the model is for."
    )
    if not release.secure or math.isinf(release.epsilon):
        said = f"This release has no differential privacy. With it, {said[0].lower()}{said[1:]}"
    return [f"<p>{text(said)}</p>"]


_FIELDS = {"data_set": "data set", "purpose": "purpose", "recipient": "recipient", "contact": "contact"}


def _project(project: Project) -> list[str]:
    """Return the fields of a project; blanks are lines to write on."""
    cells = []
    for name, label in _FIELDS.items():
        value = getattr(project, name)
        filled = text(value) if value else '<span class="blank">to fill in</span>'
        cells.append(f"<div><dt>{text(label)}</dt><dd>{filled}</dd></div>")
    return [f"<dl>{''.join(cells)}</dl>"]


def _affirmed(release: Release, project: Project) -> list[str]:
    """Say what somebody who signs the sheet says by it, and what not."""
    what = "the purpose and the recipient above" if not project.blank else "the fields above, once filled in,"
    booked = "everything released about these rows is counted under “This data set”"
    return [
        f"<p>Whoever signs affirms that what is “stated, not checked” is so; that {what} are right; and that {booked}. "
        "It is no statement about the arithmetic, which the library answers for, or about other rows.</p>"
    ]


def report(
    release: Release,
    budget: BudgetLine | None = None,
    project: Project | None = None,
    *,
    reference: Mapping[str, str] | None = None,
    evaluation: str = "",
) -> str:
    """Return a report on a release as one HTML page.

    Parameters
    ----------
    release : Release
        Released, short of its goal, refused or interrupted.
    budget : BudgetLine, optional
        What has been spent on the data set, this release included.
    project : Project, optional
        Data set, purpose, recipient and contact; what is not stated is shown as blank.
    reference : mapping of str to str, optional
        The category that others of its column are shown against, by column; by default the first that is listed.
    evaluation : str, optional
        Markup of an evaluation, which becomes a sheet of its own. It is put in as it is.

    Returns
    -------
    str
        HTML that refers to nothing outside itself; the same for the same arguments.

    Examples
    --------
    >>> from expost import Release
    >>> page = report(Release(status="refused", method="auto", epsilon_test=0.1, epsilon_worst_case=2.0))
    >>> "refused" in page, "<script" in page
    (True, False)
    """
    require_model(release)
    model, project = card(release, reference), project or Project()
    found = [*_shown(release), *_yardstick(release)]
    officers = [
        _header(release),
        _warnings(release),
        section("What this is", *_protects(release)),
        section("Project", *_project(project)),
        section("Promised", *_promised(release)),
        *([section("Shown", *found)] if found else []),
        section("Paid", *_paid(release)),
        section("In words", *_in_words(release)),
        section("Stated, not checked", *_stated(release)),
        section("Outside the guarantee", bullets(_outside(release))),
        section("This data set", *_data_set(release, budget)),
        section("How it was made", *_made(release)),
        section("The signature", *_affirmed(release, project)),
        '<div class="sign"><span>Name</span><span>Date</span><span>Signature</span></div>\n',
    ]
    sheets = ["".join(officers), *([model] if model else []), *([evaluation] if evaluation else [])]
    body = "".join(f'<main class="sheet">\n{part}</main>\n' for part in sheets)
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>Release {text(release.id)}: {text(subject(release))}</title>\n<style>\n{_STYLE}</style>\n</head>\n"
        f"<body>\n{body}</body>\n</html>\n"
    )
