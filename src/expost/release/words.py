"""What a release says, in words and rounded numbers: what ``print(release)`` shows, and the report shares."""

from __future__ import annotations

import html
import math
import re
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from expost.goals.flags import words_of, yardstick_of
from expost.shown import down, joined, one_line, percent, up, visible

if TYPE_CHECKING:
    from expost.release.release import Release


SIMULATION = "SEEDED SIMULATION: protects nobody"


def suspicion(before: float, epsilon: float) -> float:
    """Return what a suspicion can become at most.

    Let somebody think a statement about one row true with probability p, the other rows given. What came out has, for
    any two values of that row, probabilities whose ratio is at most e^ε; so have the averages over the values that make
    the statement true and over those that make it false. By Bayes' rule the odds p/(1 − p) move by at most that ratio,
    and p becomes at most p·e^ε/(1 − p + p·e^ε). What the other rows tell about this one is not counted. At a δ that is
    about one value against one other, but for a chance of δ: averages over values need not keep it.

    Examples
    --------
    >>> round(suspicion(0.01, 0.41), 4), suspicion(0.5, 0.0), suspicion(0.01, float("inf"))
    (0.015, 0.5, 1.0)
    """
    if math.isinf(epsilon) or epsilon > 700:
        return 1.0 if before > 0 else 0.0
    factor = math.exp(epsilon)
    return before * factor / (1 - before + before * factor)


def require_model(release: Release) -> None:
    """Raise if it is an evaluation, of which words about models would be untrue."""
    if "evaluation" in release.parameters:
        raise ValueError(
            f"release {release.id} is an evaluation and no model: it has a page of its own, and the report of its "
            f"model takes that in (evaluation=)"
        )


def at_delta(release: Release) -> str:
    """Say at which δ an ε is stated, if at one."""
    return f" at δ = {up(release.delta, 6)}" if release.delta else ""


def _count(release: Release) -> tuple[int | None, str]:
    """Return how many there are of what the guarantee is about, which is public, if the release says so.

    Where persons are the unit, how many rows they have is not.
    """
    persons, n = release.parameters.get("persons"), release.parameters.get("n")
    return (n if isinstance(n, int) else None, "row") if persons is None else (persons, "person")


def exposed(release: Release) -> str | None:
    """Say for how many a guarantee at a δ may fail by chance, if there is a δ and their number is public.

    For each of n, and each other they may be compared with, it fails with a chance of at most δ. So the expected number
    of those for whom it does, each compared with one other, is at most n·δ.

    Examples
    --------
    >>> from expost.release import Release
    >>> exposed(Release(status="refused", method="m", delta=0.01, parameters={"n": 4000}))
    'over all 4,000 rows n·δ = 40: by chance it may speak for so many by more than ε on average, each against one other'
    """
    n, noun = _count(release)
    if not release.delta or n is None:
        return None
    return (
        f"over all {n:,} {noun}s n·δ = {up(n * release.delta)}: by chance it may speak for so many by more than ε on "
        f"average, each against one other"
    )


def subject(release: Release) -> str:
    """Say what is predicted from what.

    Examples
    --------
    >>> from expost.release import Release
    >>> subject(Release(status="refused", method="m", target="kwh", columns=("a", "b"), parameters={"n": 2000}))
    'kwh from 2 columns, 2,000 rows'
    """
    schema = release.preparation.get("schema", {})
    classes = release.parameters.get("classes", schema.get("classes"))
    what = one_line(release.target or "a target")
    transform = schema.get("target_transform")
    if transform is not None:
        what = f"{transform}({what})"
    if classes is not None:
        what += f" ({'/'.join(map(one_line, classes))})"
    many = len(release.columns) or release.preparation.get("n_columns")
    of = "" if not many else f" from {many:,} column{'s' if many != 1 else ''}"
    n, noun = _count(release)
    return what + of + ("" if n is None else f", {n:,} {noun}{'s' if n != 1 else ''}")


def state(release: Release) -> str:
    """Say what became of the search.

    Examples
    --------
    >>> from expost.release import Release
    >>> state(Release(status="refused", method="m"))
    'refused: no level met the target'
    """
    if release.status == "released":
        return release.status
    if release.status == "short":
        return "short of the goal"
    if release.parameters.get("interrupted", False):
        return "refused: the search was interrupted"
    if release.parameters.get("unfit", False):
        return "refused: the table hardly fits its schema"
    if "constant" in release.parameters:
        return f"refused: a constant meets the goal{of_fitted(release)}"
    return "refused: no level met the target"


def asked(release: Release) -> tuple[str, str] | None:
    """Return the goal's name and what was asked of it, where the goal is more than an excess risk.

    Examples
    --------
    >>> from expost.release import Promise, Release
    >>> goal = Promise("...", goal="R²", at_least=0.85)
    >>> asked(Release(status="released", method="m", promise=goal))
    ('R²', 'at least 0.85')
    """
    numbers = release.promise.numbers
    return (str(release.promise.goal), _bounds(release, numbers, 6)) if numbers else None


def _bounds(release: Release, numbers: Mapping[str, float], digits: int = 4) -> str:
    """Say between which numbers and the best there is each goal is, in the order that they were asked for."""
    least, several = release.promise.at_least is not None, release.promise.goals is not None

    def bound(name: str) -> str:
        if name not in numbers:
            return "nothing"
        at_least = words_of(name).at_least if several else least
        return f"at least {down(numbers[name], digits)}" if at_least else f"at most {up(numbers[name], digits)}"

    return " and ".join(map(bound, release.promise.numbers))


def closest(release: Release) -> str:
    """Say how close a search came that did not meet its goal, where its looks show it (theory D3); else nothing.

    Examples
    --------
    >>> from expost.release import Promise, Release
    >>> goal = Promise("...", goal="error rate", at_most=0.15)
    >>> closest(Release(status="refused", method="m", promise=goal, parameters={"shown": 0.18699}))
    'closest: an error rate of at most 0.187 was shown, 0.15 was asked'
    >>> goal = Promise("...", goal="recall and precision", goals={"recall": 0.8, "precision": 0.4})
    >>> closest(Release("refused", "m", promise=goal, parameters={"shown": {"recall": 0.71, "precision": 0.355}}))
    'closest: recall of at least 0.71 and precision of at least 0.355 were shown, 0.8 and 0.4 were asked'
    """
    goal, was_shown = asked(release), shown(release)
    if release.status == "released" or goal is None or not was_shown:
        return ""
    bounds, numbers = was_shown.split(" and "), [bound.split()[-1] for bound in goal[1].split(" and ")]
    if release.promise.goals is None:
        article = "an" if goal[0][0] in "aeiouRF" else "a"
        return f"closest: {article} {goal[0]} of {was_shown} was shown, {numbers[0]} was asked"
    each = [f"{name} of {bound}" for name, bound in zip(release.promise.goals, bounds, strict=True) if " " in bound]
    return f"closest: {joined(each)} {'were' if len(each) > 1 else 'was'} shown, {joined(numbers)} were asked"


def shown(release: Release) -> str:
    """Say what tests have shown of the goal's number, if anything.

    Examples
    --------
    >>> from expost.release import Promise, Release
    >>> goal = Promise("...", goal="R²", at_least=0.8)
    >>> shown(Release(status="released", method="m", promise=goal, parameters={"shown": 0.83333}))
    'at least 0.8333'
    >>> goal = Promise("...", goal="recall and error rate", goals={"recall": 0.8, "error rate": 0.1})
    >>> shown(Release(status="refused", method="m", promise=goal, parameters={"shown": {"error rate": 0.12}}))
    'nothing and at most 0.12'
    """
    numbers = release.numbers_shown
    return _bounds(release, numbers) if numbers and asked(release) is not None else ""


def going_on(release: Release) -> str:
    """Say what the next level of a search that did not meet its goal would have cost, and what no level narrows.

    Examples
    --------
    >>> from expost.release import Release
    >>> going_on(Release(status="refused", method="m", parameters={"next_level": 1.375}))
    'the next level and its test would have cost about 1.375 more'
    >>> going_on(Release(status="refused", method="m", held_out=900, parameters={"left_to_chance": 0.118}))
    'chance leaves 12% of what is allowed open with 900 rows held out: more of them narrow that, and no ε does'
    """
    if release.status == "released":
        return ""
    more, left, said = release.parameters.get("next_level"), release.parameters.get("left_to_chance"), []
    if isinstance(more, int | float) and not math.isinf(more):
        said.append(f"the next level and its test would have cost about {up(more)} more{at_delta(release)}")
    if isinstance(left, int | float):
        many = f"{held_out(release)} held out"
        said.append(
            f"chance leaves {left:.0%} of what is allowed open with {many}: more of them narrow that, and no ε does"
        )
    return "; ".join(said)


def to_compare(release: Release) -> str:
    """Say what a constant reaches: as it was measured, or in general.

    Examples
    --------
    >>> from expost.release import Release
    >>> said = {"yardstick": "always saying no has error rate 0.046 ± 0.002", "classes": ("alive", "dead")}
    >>> to_compare(Release(status="released", method="m", parameters=said))
    'always saying alive has error rate 0.046 ± 0.002 (about nine times in ten)'
    >>> to_compare(Release(status="released", method="m", parameters=said, held_out=900))
    'always saying alive has error rate 0.046 ± 0.002 on the rows fitted (about nine times in ten)'
    """
    measured = release.parameters.get("yardstick")
    if not isinstance(measured, str):
        return yardstick_of(release.promise.goal)
    sure = f"{of_fitted(release)}{' (about nine times in ten)' if '±' in measured else ''}"
    for said, label in zip(("no", "yes"), _classes(release) or (), strict=False):
        if measured.startswith(f"always saying {said} "):
            return f"always saying {one_line(label)} {measured.removeprefix(f'always saying {said} ')}{sure}"
    return measured + sure


def weighed(release: Release) -> str:
    """Say which loss was minimised, where labels have weights in it; else nothing.

    Examples
    --------
    >>> from expost.release import Release
    >>> from expost.release import Promise
    >>> goal, said = Promise("...", goal="F₁"), {"class_weights": (0.2, 1.0), "classes": ("alive", "dead")}
    >>> weighed(Release(status="released", method="m", promise=goal, parameters=said))
    'a row of dead counts 5 times one of alive in the loss that was minimised; the goal is about rows that count alike'
    """
    weights = release.parameters.get("class_weights")
    if weights is None:
        return ""
    labels = _classes(release) or ("no", "yes")
    (least, light), (most, heavy) = sorted(zip(weights, labels, strict=True), key=lambda each: each[0])
    times = f"a row of {one_line(heavy)} counts {most / least:.6g} times one of {one_line(light)}"
    goal = release.promise.goal
    of_loss = goal is None or not words_of(goal).of_tables  # an excess risk, or one as a fraction
    about = "an excess risk is that of this loss" if of_loss else "the goal is about rows that count alike"
    return f"{times} in the loss that was minimised; {about}"


def _classes(release: Release) -> Sequence[Any] | None:
    """Return the labels, the negative one first, if the release says them."""
    found: Sequence[Any] | None = release.parameters.get(
        "classes", release.preparation.get("schema", {}).get("classes")
    )
    return found


def no_better(release: Release) -> str:
    """Say that a model was not shown to be better than a constant, if the constant's number was measured.

    Examples
    --------
    >>> from expost.release import Promise, Release
    >>> said = {"yardstick": "always saying no has error rate 0.038 ± 0.002", "shown": 0.03802}
    >>> goal = Promise("...", goal="error rate", at_most=0.037)
    >>> no_better(Release(status="refused", method="m", promise=goal, parameters=said))
    'not shown to be better than always saying no; for a rare label ask for recall and precision, or a cost'
    """
    goal, number = release.promise, release.shown
    if number is None and release.status == "released":
        number = goal.at_most if goal.at_least is None else goal.at_least
    constant = re.fullmatch(
        rf"(always .*) has {re.escape(goal.goal or '')} ([\d.e+-]+)(?: ± ([\d.e+-]+))?",
        f"{release.parameters.get('yardstick')}",
    )
    if not isinstance(number, int | float) or constant is None or "constant" in release.parameters:
        return ""
    about, off = float(constant[2]), float(constant[3] or 0.0)
    if number > about + off if goal.at_least is not None else number < about - off:
        return ""
    rather = words_of(goal.goal).rather
    said = to_compare(release).partition(" has ")[0].partition(",")[0]
    return f"not shown to be better than {said}" + (f"; {rather}" if rather else "")


#: What is promised and counted where a person may have several rows.
ALIKE = "every person counts alike in it, however many rows they have"


def on_new(unit: str) -> str:
    """Say what is promised where models were tested on rows that they were not fitted to."""
    return f"on new {unit}s drawn like these"


def of_fitted(release: Release) -> str:
    """Say of which rows what a constant reaches was measured, where a goal is about new ones, which nobody has seen."""
    return f" on the {release.unit}s fitted" if release.held_out else ""


def held_out(release: Release) -> str:
    """Say how many rows, or persons with theirs, were held out."""
    many = release.held_out // release.parameters.get("rows_per_person", 1)
    return f"{many:,} {release.unit}{'' if many == 1 else 's'}"


def counted(release: Release) -> str:
    """Say whose rows count how often, where the guarantee is about persons; else nothing.

    Examples
    --------
    >>> from expost.release import Release
    >>> made = Release(status="refused", method="m", unit="person", parameters={"rows_per_person": 5})
    >>> counted(made)
    ', every person counting alike, by their first 5 rows'
    """
    if release.unit != "person":
        return ""
    most = release.parameters.get("rows_per_person")
    by = "" if not isinstance(most, int) else f", by their first {f'{most} rows' if most > 1 else 'row'}"
    return f", every person counting alike{by}"


def on_rows(release: Release, goal: str) -> str:
    """Say what a goal is promised on, and how predictions are judged there.

    Examples
    --------
    >>> from expost.release import Release
    >>> made = Release(status="released", method="m")
    >>> on_rows(made, "error rate"), on_rows(made, "R²")
    ('on these rows', "on these rows, targets and predictions moved into the target's bounds")
    >>> on_rows(Release(status="released", method="m", held_out=1000), "error rate")
    'on new rows drawn like these'
    """
    judged = words_of(goal).judged
    where = f"{on_new(release.unit) if release.held_out else 'on these rows'}{counted(release)}"
    return f"{where}, {judged}" if judged else where


def parts(release: Release) -> list[tuple[float, str]]:
    """Return what was paid and what for, without what cost nothing.

    Examples
    --------
    >>> from expost.release import Release
    >>> parts(Release(status="released", method="m", epsilon_probe=0.1, epsilon_generation=0.5))
    [(0.1, 'to look at the table'), (0.5, 'the model')]
    """
    model = "models that are not shown" if release.status == "refused" else "the model"
    if release.parameters.get("interrupted", False):
        model = "whatever the search may have shown"
    said = [
        (release.epsilon_probe, "to look at the table"),
        (release.epsilon_test, "tests"),
        (release.epsilon_generation, model),
        (release.epsilon_conversion, "to state it at δ"),
    ]
    return [(loss, what) for loss, what in said if loss]


def spent_on(release: Release) -> str:
    """Say what was paid for what, in one line.

    Examples
    --------
    >>> from expost.release import Release
    >>> spent_on(Release(status="released", method="m", epsilon_test=0.1, epsilon_generation=0.5))
    '0.1 tests · 0.5 the model'
    >>> spent_on(Release(status="released", method="m", epsilon_test=0.1, epsilon_generation=0.5, held_out=200))
    '0.1 tests · 0.5 the model; they read different rows, so the larger counts (200 rows were held out)'
    """
    said = " · ".join(f"{up(loss)} {what}" for loss, what in parts(release)) or "nothing"
    if not release.held_out:
        return said
    were = "was" if held_out(release).startswith("1 ") else "were"
    return f"{said}; they read different {release.unit}s, so the larger counts ({held_out(release)} {were} held out)"


def usual(release: Release) -> str | None:
    """Say what the loss at a δ is in the sense in which other libraries state theirs, beforehand.

    Examples
    --------
    >>> from expost.release import Release
    >>> from expost.account.composition import Curve
    >>> curve = Curve.gaussian(0.001)
    >>> usual(Release("released", "m", curve.epsilon(1e-6), delta=1e-6, curve=curve.to_dict()))
    'ε = 0.2001 in the usual, less strict sense of (ε, δ), which other libraries state beforehand'
    """
    if not release.curve or up(release.epsilon_usual) == up(release.epsilon):  # as it is for pure noise
        return None
    sense = "in the usual, less strict sense of (ε, δ), which other libraries state beforehand"
    return f"ε = {up(release.epsilon_usual)} {sense}"


WIDTH = 100
_BLOCKS = 20
_COEFFICIENTS = 24  # more would push the price off the screen

Lines = Sequence[tuple[str, str]]


def summary(release: Release, more: Lines = (), *, brief: bool = False) -> str:
    """Return the lines a person wants to read, and more of them (labels and texts) if there is more to say.

    ``brief`` leaves out how it was made, what is not covered, and the model.

    Examples
    --------
    >>> from expost import Release
    >>> print(summary(Release(status="released", method="fixed", epsilon_generation=0.5, epsilon_worst_case=0.5)))
    a target                                                                                    released
      privacy       ε = 0.5 paid ████████████████████ of 0.5 at most (one row replaced)
                    0.5 the model
      in words      a suspicion of 1 % about one row can become at most 1.64 % (odds ×1.649)
      promise       no accuracy is promised
      method        fixed
      noise         exact, cryptographic source
    """
    title, outcome = subject(release), state(release)
    gap = WIDTH - len(title) - len(outcome)
    first = f"{title}{' ' * gap}{outcome}" if gap >= 2 else f"{title}\n  {outcome}"
    return visible(f"{first}\n{_aligned([*_lines(release, brief), *more])}")


def summary_html(release: Release) -> str:
    """Return the same lines as a table for notebooks."""
    rows = "".join(
        f"<tr><th style='text-align:left;vertical-align:top'>{html.escape(label)}</th>"
        f"<td style='text-align:left;white-space:pre-wrap'>{html.escape(one_line(text))}</td></tr>"
        for label, text in _lines(release)
    )
    caption = f"{html.escape(subject(release))} <b>{html.escape(state(release))}</b>"
    return f"<div><div>{caption}</div><table>{rows}</table></div>"


def _lines(release: Release, brief: bool = False) -> list[tuple[str, str]]:
    """Return labels and texts."""
    spent = spent_on(release)
    rows = [] if release.secure else [("SIMULATION", "the noise came from a seed: this protects nobody")]
    goal, before = asked(release), release.continues
    if goal is not None:
        chance = release.promise.failure_probability
        sure = "" if chance is None else f" (at most {up(chance, 6)} of all runs miss, refusals counted)"
        compared = [("to compare", text) for text in (to_compare(release),) if text]
        compared += [("", text) for text in (no_better(release),) if text]
        if release.status == "released":
            rows.append((goal[0], f"{goal[1]} {on_rows(release, goal[0])}, as asked{sure}"))
            rows += [("", f"{text} was shown, as surely") for text in (shown(release),) if text]
            rows += compared
        elif release.status == "short":
            sure = "" if chance is None else f" (at most {up(chance, 6)} of all runs show what is false)"
            where = on_rows(release, goal[0])
            rows.append((goal[0], f"asked {goal[1]}; shown {shown(release)} {where}{sure}"))
            rows += compared
        else:
            where = f" {on_new(release.unit)}" if release.held_out else ""
            rows.append((goal[0], f"{goal[1]}{where} was asked for; no model is released"))
            rows += [("", text) for text in (release.closest,) if text]
            rows += compared if "yardstick" in release.parameters else []
        rows += [("going on", text) for text in (release.going_on,) if text]
    rows += [
        ("privacy", _paid(release)),
        ("", spent),
        *[("", text) for text in (usual(release),) if text],
        *([("", f"{up(release.epsilon_increment)} of it is new, beside release {before}")] if before else []),
        ("in words", _in_words(release)),
        *[("", text) for text in (exposed(release),) if text],
    ]
    rows += [("class weights", text) for text in (weighed(release),) if text]
    reasons = release.parameters.get("reasons", ())
    if brief and release.status == "refused":
        rows += [("because", text) for text in reasons[-1:]]  # why it ended comes last
    if brief:
        rows += [("taken as given", text) for text in release.claims]
    if brief and goal is not None:
        return rows
    rows.append(("promise", release.promise.statement))
    if release.promise.excess_risk_caller_units is not None and release.preparation.get("target") is not None:
        squared = f"at most {up(release.promise.excess_risk_caller_units)} in squared target units"
        rows.append(("in your units", f"excess risk {squared} (risk: half the mean square, plus penalty)"))
    if brief:
        return rows
    rows.append(("method", _method_line(release)))
    rows += [("because" if i == 0 else "", text) for i, text in enumerate(reasons)]
    rows.append(("noise", _noise_line(release)))
    rows += [("taken as given", text) for text in release.claims]
    rows += [("not covered", text) for text in release.not_covered]
    if "coef" in release.parameters:
        rows.append(("model", "coefficients in your units:"))
        rows += _model_lines(release)
    return rows


def _paid(release: Release) -> str:
    paid, most = f"ε = {up(release.epsilon)}{at_delta(release)} paid", release.epsilon_worst_case
    if math.isinf(most):
        return f"{paid}; the cost of other outcomes had no bound (one {release.unit} replaced)"
    filled = math.ceil(_BLOCKS * release.epsilon / most) if most else 0
    blocks = f"{'█' * filled}{'░' * (_BLOCKS - filled)}"
    return f"{paid} {blocks} of {up(most)} at most (one {release.unit} replaced)"


def _in_words(release: Release) -> str:
    if not release.secure:
        return "nothing: the noise came from a seed, which whoever knows it can take off"
    if math.isinf(release.epsilon):
        return f"nothing is promised: somebody may learn everything about a {release.unit}"
    if release.parameters.get("evaluation", {}).get("rows") == "public":
        return "nothing: exact counts of rows that the caller states are public; nobody in them is protected"
    before, unit = 0.01, release.unit
    about, chance = f"about one {unit}", ""
    if release.delta:  # which is about one value against one other, and one direction
        about = f"that one {unit} is a certain one, and not a certain other,"
        chance = f", but for a chance of {up(release.delta, 6)} that it becomes more"
    return (
        f"a suspicion of {percent(before)} {about} can become at most "
        f"{percent(suspicion(before, release.epsilon))} (odds ×{up(release.risk_factor)}){chance}"
    )


def _aligned(rows: Lines) -> str:
    """Put labels in one column and texts, folded, in another."""
    indent = 2
    width = max([12, *(len(label) for label, _ in rows)]) + 2 + indent
    lines = []
    for label, text in rows:
        folded = textwrap.wrap(text, WIDTH - width, break_long_words=False, break_on_hyphens=False) or [""]
        start = f"{'':<{indent}}{label}"
        lines += [f"{start:<{width}}{folded[0]}", *(f"{'':<{width}}{more}" for more in folded[1:])]
    return "\n".join(line.rstrip() for line in lines)


def _model_lines(release: Release) -> list[tuple[str, str]]:
    listed = list(zip(release.parameters["columns"], release.parameters["coef"], strict=True))
    more = max(0, len(listed) - _COEFFICIENTS)
    shown = [("(constant)", release.parameters["intercept"]), *listed[: len(listed) - more]]
    numbers = [f"{value:+.5g}" for _, value in shown]
    width = max(map(len, numbers))
    lines = [("", f"{number:<{width}}  {name}") for number, (name, _) in zip(numbers, shown, strict=True)]
    return [*lines, *([("", f"and {more} more, which the release and its report list")] if more else [])]


def _method_line(release: Release) -> str:
    named = [release.method, release.perturbation, release.calibration]
    line = ", ".join(part for part in named if part)
    if release.level is None or release.n_levels == 1:
        return line
    # counted as in the JSON
    of = " (the first is 0)" if release.n_levels is None else f" of 0 to {release.n_levels - 1}"
    return f"{line}; stopped at level {release.level}{of}"


def _noise_line(release: Release) -> str:
    kind = "exact" if release.noise == "exact" else "analysed over the reals"
    return f"{kind}, " + ("cryptographic source" if release.secure else SIMULATION)
