"""An evaluation in pictures, as a piece of HTML or a page of its own; a function of its release alone.

Bands are drawn where they hold all at once; nothing is fetched, and nothing is a script.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib.resources import files

from expost.release.card import named, table, text
from expost.release.evaluation import AtCutOff, Band, Evaluation, ends
from expost.shown import down, number, percent, up

Points = Sequence[tuple[float, float]]

_WIDTH, _HEIGHT, _BELOW = 320.0, 240.0, 36.0
_TICKS = 5
_COLOURS = """
.evaluation { --paper: #fff; --ink: #1c1c1c; --faint: #595959; --line: #c8c8c8; --curve: #1f3f66; --other: #a2501a;
  --shade: #9db8d2; background: var(--paper); color: var(--ink); box-shadow: 0 0 0 2mm var(--paper); }
"""
_STYLE = """
.evaluation :is(table, tr, th, td) { color: inherit !important; background: none !important; } /* not the page's */
.evaluation :is(th, td) { padding: .3mm 2.5mm .3mm 0; text-align: left; } .evaluation .n { text-align: right; }
.evaluation .warning { font-weight: 600; } header ~ .evaluation { box-shadow: none; }
.evaluation .pictures { display: flex; flex-wrap: wrap; gap: 3mm 4mm; margin-top: 3mm; }
.evaluation figure { margin: 0; break-inside: avoid; width: 80mm; max-width: 100%; }
.evaluation td { white-space: nowrap; } .evaluation :is(td:first-child, td:last-child:not(.n)) { min-width: 0; }
.evaluation figcaption { font-size: .9em; color: var(--faint); }
.evaluation svg { width: 100%; height: auto; display: block; }
.evaluation svg text { font: 11px system-ui, sans-serif; fill: var(--faint); }
.evaluation .frame { fill: none; stroke: var(--line); }
.evaluation .guide { stroke: var(--line); stroke-dasharray: 4 4; }
.evaluation .curve { fill: none; stroke: var(--curve); stroke-width: 1.8; }
.evaluation .curve.other { stroke: var(--other); stroke-dasharray: 7 3; }
.evaluation .band { fill: var(--shade); fill-opacity: .45; stroke: none; } .evaluation .band.other { fill: var(--other);
  fill-opacity: .18; }
.evaluation .dot { fill: var(--curve); } .evaluation .bar { stroke: var(--curve); stroke-width: 1.2; }
.evaluation .cell { fill: var(--curve); } .evaluation td.n, .evaluation th.n { padding-left: 3mm; }
@media screen and (prefers-color-scheme: dark) {
  .evaluation { --paper: #16181c; --ink: #e6e6e6; --faint: #b4b8bf; --line: #4a4f57; --curve: #8fbcf0; --other: #f0a878;
    --shade: #45658a; }
}
"""


def evaluation_html(evaluation: Evaluation) -> str:
    """Return the table and the pictures as one piece of HTML, with its style, for a page or a report."""
    body = _of_classes(evaluation) if evaluation.kind == "classification" else _of_numbers(evaluation)
    loud = ""
    if evaluation.rows == "public":
        loud = '<p class="warning">Public rows, as the caller states: exact counts, which protect nobody in them.</p>\n'
    elif not evaluation.release.secure:
        loud = '<p class="warning">Simulation: the noise came from a seed. Protects nobody.</p>\n'
    return (
        f'<style>{_COLOURS}{_STYLE}</style>\n<div class="evaluation">\n{loud}<p>{text(evaluation.price())}</p>\n'
        f"{body}</div>\n"
    )


def evaluation_page(evaluation: Evaluation) -> str:
    """Return a whole page of it."""
    style = files("expost.release").joinpath("report.css").read_text(encoding="utf-8")
    name = f"{evaluation.release.target or 'the target'}: how good the model is"
    of = evaluation.release.parameters["evaluation"]["of"]
    day = evaluation.release.date or "date not recorded"
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>{text(name)}</title>\n'
        f"<style>\n{style}</style>\n</head>\n<body>\n<header><h1>{text(name)}</h1><p>"
        f"Evaluation <code>{text(evaluation.release.id)}</code> of release <code>{text(of)}</code> on "
        f"{text(evaluation.about)} · {text(day)}</p></header>\n{evaluation_html(evaluation)}</body>\n</html>\n"
    )


# --- pictures --------------------------------------------------------------------------------------------------------


class _Chart:
    """A frame with two scales, to draw in."""

    def __init__(self, x: tuple[float, float], y: tuple[float, float], across: str, up_side: str) -> None:
        self.x, self.y, self.parts = x, y, list[str]()
        ticks = [[low + k / (_TICKS - 1) * (high - low) for k in range(_TICKS)] for low, high in (x, y)]
        widths = [max(len(number(tick, 3)) for tick in some) for some in ticks]
        self.left = max(60.0, 24.0 + 7.0 * widths[1])  # a digit is at most 7 wide, and before the numbers is their name
        width, height = _WIDTH - self.left - 10, _HEIGHT - _BELOW - 8
        self.parts.append(f'<rect class="frame" x="{self.left}" y="8" width="{width}" height="{height}"/>')
        for k, (across_at, up_at) in enumerate(zip(*ticks, strict=True)):
            left, top = self.at(across_at, up_at)
            end = "middle" if 0 < k < _TICKS - 1 else "start" if k == 0 else "end"
            if k % (1 if widths[0] <= 5 else 2 if widths[0] <= 9 else 4) == 0:  # others would run into each other
                self.parts.append(
                    f'<text x="{left:.1f}" y="{_HEIGHT - 20}" text-anchor="{end}">{number(across_at, 3)}</text>'
                )
            self.parts.append(
                f'<text x="{self.left - 5}" y="{top + 4:.1f}" text-anchor="end">{number(up_at, 3)}</text>'
            )
        middle = self.left + width / 2
        self.parts.append(f'<text x="{middle:.1f}" y="{_HEIGHT - 5}" text-anchor="middle">{text(across)}</text>')
        self.parts.append(
            f'<text x="11" y="{8 + height / 2:.1f}" text-anchor="middle" '
            f'transform="rotate(-90 11 {8 + height / 2:.1f})">{text(up_side)}</text>'
        )

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Return where a point is, moved into the frame."""
        part = min(1.0, max(0.0, (x - self.x[0]) / (self.x[1] - self.x[0])))
        high = min(1.0, max(0.0, (y - self.y[0]) / (self.y[1] - self.y[0])))
        return self.left + part * (_WIDTH - self.left - 10), _HEIGHT - _BELOW - high * (_HEIGHT - _BELOW - 8)

    def _places(self, points: Points) -> str:
        return " ".join(f"{x:.1f},{y:.1f}" for x, y in (self.at(*point) for point in points))

    def line(self, points: Points, kind: str = "curve") -> None:
        """Draw a line through points."""
        self.parts.append(f'<polyline class="{kind}" points="{self._places(points)}"/>')

    def area(self, lower: Points, upper: Points, kind: str = "band") -> None:
        """Fill what is between two lines."""
        self.parts.append(f'<polygon class="{kind}" points="{self._places([*lower, *reversed(upper)])}"/>')

    def bands(self, xs: Sequence[float], bands: Sequence[Band], kind: str = "") -> None:
        """Draw estimates and their bands."""
        lower, upper = ([(x, getattr(band, end)) for x, band in zip(xs, bands, strict=True)] for end in ("low", "high"))
        self.area(lower, upper, f"band {kind}".strip())
        self.line([(x, band.value) for x, band in zip(xs, bands, strict=True)], f"curve {kind}".strip())

    def dot(self, x: float, band: Band) -> None:
        """Draw an estimate as a dot, with its band as a stroke."""
        (left, low), (_, high), (_, at) = (self.at(x, y) for y in (band.low, band.high, band.value))
        self.parts.append(f'<line class="bar" x1="{left:.1f}" x2="{left:.1f}" y1="{low:.1f}" y2="{high:.1f}"/>')
        self.parts.append(f'<circle class="dot" cx="{left:.1f}" cy="{at:.1f}" r="3"/>')

    def cell(self, x: tuple[float, float], y: tuple[float, float], shade: float) -> None:
        """Fill a cell, the stronger the more."""
        (left, low), (right, high) = self.at(x[0], y[0]), self.at(x[1], y[1])
        self.parts.append(
            f'<rect class="cell" x="{left:.1f}" y="{high:.1f}" width="{right - left:.1f}" height="{low - high:.1f}" '
            f'fill-opacity="{shade:.2f}"/>'
        )

    def figure(self, title: str, said: str) -> str:
        """Return the figure, with a caption."""
        drawn = "".join(self.parts)
        return (
            f'<figure><svg viewBox="0 0 {_WIDTH:g} {_HEIGHT:g}" role="img" aria-label="{text(title)}">{drawn}</svg>'
            f"<figcaption><b>{text(title)}.</b> {text(said)}</figcaption></figure>\n"
        )


def _of_classes(found: Evaluation) -> str:
    edge = found.auc_of_scores
    rows = [
        ("AUC, scores rounded to their bins", found.auc.text),
        ("AUC of the scores, between", f"{down(edge.low, 3)} and {up(edge.high, 3)}"),
        ("base rate", found.base_rate.text),
    ]
    heading = "cut-off" if found.probabilities else "score above"
    at = [
        (found.mark(row), *(getattr(row, name).text for name in ("recall", "precision", "flagged", "errors")))
        for row in found.chosen()
    ]
    own = found.own_cut_off
    confusion = [
        ("positive", own.hits.text, own.misses.text),
        ("negative", own.false_alarms.text, own.quiet.text),
    ]
    where = f"{heading} {found.mark(own)}"
    return (
        f"<p>Positive is {named(found.positive)}.</p>\n"
        + table(["of the model", ""], rows)
        + table([heading, "recall", "precision", "flagged", "errors"], at, numbers=(0,))
        + f"<p class=small>Of all rows, at {text(where)}:</p>\n"
        + table(["truly", "predicted positive", "predicted negative"], confusion)
        + _by_class(found)
    )


def _by_class(found: Evaluation) -> str:
    """Draw what is known: of a class that may have no rows, its shares are anything."""
    if found.base_rate.low > 0.0 and found.base_rate.high < 1.0:
        return _pictures(_roc(found), _against_cut_off(found), _calibration(found), _lift(found))
    said = "One of the classes may have no rows here, so nothing is known of recall, ROC and lift."
    return f"<p>{said}</p>\n{_pictures(_calibration(found))}"


def _pictures(*figures: str) -> str:
    return f'<div class="pictures">\n{"".join(figures)}</div>\n'


def _roc(found: Evaluation) -> str:
    """Draw the curve, and between which lines it runs: each edge's point lies in a box of both bands."""
    chart = _Chart((0.0, 1.0), (0.0, 1.0), "false alarms, of the negative rows", "recall")
    chart.line([(0.0, 0.0), (1.0, 1.0)], "guide")
    at = sorted(found.at, key=lambda row: -row.cut_off)  # from few flagged to all
    upper = [(0.0, 0.0), *((row.false_alarm_rate.low, row.recall.high) for row in at), (1.0, 1.0)]
    lower = [(0.0, 0.0), *((row.false_alarm_rate.high, row.recall.low) for row in at), (1.0, 1.0)]
    chart.area(_rising(lower), _rising(upper))
    chart.line(_rising([(0.0, 0.0), *((r.false_alarm_rate.value, r.recall.value) for r in at), (1.0, 1.0)]))
    own = found.own_cut_off
    chart.dot(own.false_alarm_rate.value, own.recall)
    return chart.figure("ROC", f"AUC {found.auc.text}. The dot is the model as it predicts; shaded is the band.")


def _rising(points: Points) -> list[tuple[float, float]]:
    """Return points of a curve that rises, which the truth does: each at least as far as those before."""
    made, x, y = [], -math.inf, -math.inf
    for px, py in points:
        x, y = max(x, px), max(y, py)
        made.append((x, y))
    return made


def _marks(found: Evaluation) -> tuple[list[AtCutOff], list[float], tuple[float, float], str]:
    at = list(found.at)
    marks = [row.cut_off for row in at]
    if found.probabilities:
        return at, marks, (0.0, 1.0), "cut-off (probability)"
    return at, marks, (marks[0], marks[-1]), "score above which the label is positive"


def _against_cut_off(found: Evaluation) -> str:
    at, marks, ends, across = _marks(found)
    chart = _Chart(ends, (0.0, 1.0), across, "recall, precision")
    chart.bands(marks, [row.recall for row in at])
    told = [place for place, row in enumerate(at) if row.flagged.low > 0.0]  # of rows that may be none, nothing is
    if told:
        chart.bands([marks[place] for place in told], [at[place].precision for place in told], "other")
    return chart.figure("Recall and precision", "Recall is the whole line, precision the broken one.")


def _calibration(found: Evaluation) -> str:
    groups = [group for group in found.calibration if group.share.low > 0.0]  # of fewer nothing can be said
    if found.probabilities:
        chart = _Chart((0.0, 1.0), (0.0, 1.0), "probability that the model states", "share that is positive")
        chart.line([(0.0, 0.0), (1.0, 1.0)], "guide")
        marks = [(group.low + group.high) / 2 for group in groups]
    else:
        ends = [end for group in found.calibration for end in (group.low, group.high) if math.isfinite(end)]
        low, high = min(ends), max(ends)
        off = (high - low) / (2 * len(found.calibration))
        chart = _Chart((low - off, high + off), (0.0, 1.0), "score", "share that is positive")
        marks = [(max(low - off, group.low) + min(high + off, group.high)) / 2 for group in groups]
    for mark, group in zip(marks, groups, strict=True):
        chart.dot(mark, group.positive)
    return chart.figure("Calibration", "Groups of rows with similar scores; strokes are bands.")


def _lift(found: Evaluation) -> str:
    at = sorted(found.at, key=lambda row: row.flagged.value)
    at = [row for row in at if row.flagged.value > found.margin and math.isfinite(row.lift.value)]
    if not at:
        return ""
    top = max(1.0, *(min(row.lift.high, 2.0 * max(r.lift.value for r in at)) for row in at))
    chart = _Chart((0.0, 1.0), (0.0, 2.0 * math.ceil(top / 2)), "share of rows flagged", "lift")
    chart.line([(0.0, 1.0), (1.0, 1.0)], "guide")
    chart.bands([row.flagged.value for row in at], [row.lift for row in at])
    return chart.figure("Lift", "How many times as many are positive among the flagged as among all.")


def _of_numbers(found: Evaluation) -> str:
    r2, square = found.r2, found.mean_squared_error
    low = "not shown" if math.isinf(r2.low) else down(r2.low, 3)
    rows = [
        ("R²", f"{r2.value:.3f} ({low} to {up(min(1.0, r2.high), 3)})"),
        (
            "mean squared error",
            f"{number(square.value, 3)} ({' to '.join(ends(square))})",
        ),
    ]
    quantiles = []
    for share in (0.05, 0.25, 0.5, 0.75, 0.95):
        q = found.residual_quantile(share)
        quantiles.append((percent(share), number(q.value, 3), " and ".join(ends(q))))
    said = f"All numbers are on the scale that the model predicts on, {found.transform} of the target."
    named = "" if found.transform is None else f"<p class=small>{text(said)}</p>\n"
    return (
        named
        + table(["of the model", ""], rows)
        + f"<p class=small>{text(found.rounded)}</p>\n"
        + table(["residuals, this share", "at most", "between"], quantiles, numbers=(0, 1))
        + _pictures(_residuals(found), _predicted(found))
    )


def _residuals(found: Evaluation) -> str:
    below = found.residuals_below()
    chart = _Chart((below[0][0], below[-1][0]), (0.0, 1.0), "residual", "share of rows at most that")
    chart.bands([edge for edge, _ in below], [band for _, band in below])
    return chart.figure("Residuals", "Targets less predictions; shaded is the band.")


def _predicted(found: Evaluation) -> str:
    """Draw where rows are: cells of target by residual, put where their prediction is; noise alone is left out."""
    low, high = found.release.parameters["evaluation"]["target"]
    middle, half = (low + high) / 2, (high - low) / 2
    said = found.release.parameters["evaluation"]
    edges = said["edges"]
    # the outer bins have no end of their own: drawn as wide as their neighbours
    residuals = [2 * edges[0] - edges[1], *edges, 2 * edges[-1] - edges[-2]]
    targets = [-1.0, *said["target_edges"], 1.0]
    counts, noise = found.counts, 5.0 * said["scale"]  # one of 256 empty cells has more
    drawn = []
    for i, j in zip(*(counts > noise).nonzero(), strict=True):
        center = (targets[i] + targets[i + 1]) / 2
        upright = sorted(middle + half * (center - end) for end in residuals[j : j + 2])
        drawn.append(((middle + half * targets[i], middle + half * targets[i + 1]), upright, float(counts[i, j])))
    places = [end for across, upright, _ in drawn for end in (*across, *upright)] or [low, high]
    least, largest = max(low, min(places)), min(high, max(places))
    chart = _Chart((least, largest), (least, largest), "actual", "predicted")
    chart.line([(least, least), (largest, largest)], "guide")
    most = max([1.0, *(count for _, _, count in drawn)])
    for across, (below, above), count in drawn:
        chart.cell(across, (max(least, below), min(largest, above)), 0.1 + 0.9 * count / most)
    return chart.figure(
        "Predicted against actual", "Stronger cells hold more rows; those with little but noise are blank."
    )
