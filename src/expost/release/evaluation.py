"""What a model is worth, from one noisy histogram that is charged: what is released, the record, the words.

*Released*: counts of rows in K cells of a public partition, each with discrete Laplace noise of scale 2/ε. For classes
the cells are score bins by class; for numbers they are bins of the target by bins of the residual. The bins follow from
the released model and public numbers alone. *Neighbours*: one row replaced, as everywhere; n is public.

*Theorem (privacy).* The histogram is ε-private. *Proof.* A row is in exactly one cell, and in which depends on nothing
but that row. So a replaced row takes one from a count and adds one to a count: the vector of counts moves by at most 2
in ℓ₁, whatever K is. Discrete Laplace noise P(k) ∝ e^(−|k|ε/2) on each coordinate makes it ε-private. ∎ A person who
fills k slots moves 2k, and pays k times as much (:class:`~expost.account.composition.Unit`). All that is shown is made
of the noisy counts and public numbers, and costs nothing more.

*What the margin is about* (`expost.noise.histogram`). For classes: at each edge true and false positives, true and
false negatives, all that are flagged, all errors; and the positives. For numbers: residuals below each edge, targets
below each edge. All of these, as shares of the rows, are right within the margin at once with probability 1 − 0.8γ.
What is shown of them is moved into what is possible (0 to 1), which takes no truth out of its band. Ratios (recall,
precision) have the worst case over the bands of both parts. So all bands hold at once, and a cut-off may be chosen by
them. What is shown of hits and false alarms by cut-off is the nearest sequence, in squares, that falls as theirs does
(adjacent ones that rise are pooled), within bands that fall too because the truth does; bands stay as they are. That is
made of what is released, and costs nothing. Of γ, 0.1 each is for what does not follow from these counts well enough:
the AUC and squares, and calibration.

*AUC.* A = Σ_i Σ_j h_ij a_i b_j/(ΣaΣb), a and b the counts of positives and negatives in bins i and j, h_ij 1 above, 0
below, and within a bin 0, ½ or 1. G(θ) = Σ(h_ij − θ)a_i b_j is 0 at θ = A. With noisy counts a + X and b + Y it is off
by ΣX_iβ_i + ΣY_jα_j, where β_i = Σ_j(h_ij − θ)b_j, and α_j = Σ_i(h_ij − θ)(a_i + X_i). Given X the α are fixed, so
E exp(s(ΣXβ + ΣYα) − Σψ(sβ) − Σψ(sα)) ≤ 1 for each s settled beforehand, with that file's ψ. So the noisy G exceeds
(ln(k/γ) + Σψ(sβ) + Σψ(sα))/s for one of k values of s with probability at most γ. |β_i| is at most its estimate's size
plus (1 + θ)·m·n where the margin holds. The θ that are not refuted make the band: with h = ½ in bins that of the AUC of
scores rounded to their bins, with 0 and 1 that of the AUC of the scores themselves.

*Calibration* is about groups of cells, sums over which are sets of their own. *Squares* are sums Σw·c over cells.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from expost.account.composition import ROW, Unit
from expost.noise.histogram import chernoff, epsilon_for, is_kept, quantile, slack
from expost.release.release import Release
from expost.release.words import counted
from expost.shown import aligned, down, exact, number, one_line, percent, up

Floats = npt.NDArray[np.float64]

METHOD = "evaluation"
#: Bins of scores, and of targets and of residuals: more resolve more finely, and cost ε in proportion to their root.
SCORE_BINS, NUMBER_BINS = 32, 16
#: Failure probabilities from which on tails are known well enough (`expost.noise.histogram.tail`).
LEAST_GAMMA = 1e-6
_MOST_CELLS = 1024  # which no partition that is made here exceeds
_GROUPS = 8  # of score bins, for calibration
_COUNTS, _REST = 0.8, 0.1  # parts of γ: for the margin, and for each of the two kinds of statement beside it
_STEPS = 8.0 * 1.5 ** -np.arange(12.0)  # the values of s for the AUC, in units of ε/(2n)
_FINE = 400  # values of the AUC that are tried
_CENTERS = np.linspace(-1.0, 1.0, 17)  # about which a variance is bounded; linear in between

Kind = Literal["classification", "regression"]


def sets_of(shape: tuple[int, int], kind: Kind) -> tuple[tuple[int, int], ...]:
    """Return how many cells the sets have that the margin is about, and how many sets have as many.

    Examples
    --------
    >>> sets_of((2, 2), "classification")  # TP, FP, TN, FN; the positives and the errors; all that are flagged
    ((1, 4), (2, 3))
    """
    first, second = shape
    if kind == "regression":
        found = Counter({second * k: 1 for k in range(1, first)})
        found.update({first * k: 1 for k in range(1, second)})
    else:
        found = Counter(dict.fromkeys(range(1, second), 4))
        found.update({second: second})  # the positives, and the errors at each edge
        found.update({2 * k: 1 for k in range(1, second)})  # all that are flagged
    return tuple(sorted(found.items()))


def price_of(
    margin: float, n: int, shape: tuple[int, int], kind: Kind, gamma: float, most: float, unit: Unit = ROW
) -> float:
    """Return ε of one row for a margin on n rows, or say that it would exceed ``most``; nothing is read.

    Examples
    --------
    >>> round(price_of(0.02, 32_561, (2, 32), "classification", 0.1, 2.0), 3)
    0.06
    """
    sets = sets_of(shape, kind)
    return epsilon_for(margin, n, shape[0] * shape[1], sets, _COUNTS * gamma, most, noun=unit.noun, rows=unit.rows)


def margin_at(epsilon: float, n: int, shape: tuple[int, int], kind: Kind, gamma: float, most: float) -> float:
    """Return the margin that `price_of` has that price for."""
    cells, sets = shape[0] * shape[1], sets_of(shape, kind)
    return (2.0 * quantile(cells, sets, _COUNTS * gamma) / epsilon + slack(cells, most)) / n if epsilon else math.inf


# --- the record ------------------------------------------------------------------------------------------------------


class Band(NamedTuple):
    """An estimate, and between which numbers the truth lies."""

    value: float
    low: float
    high: float

    @property
    def text(self) -> str:
        """Say it in few digits, the band outwards."""
        shown = round(self.value, 3)
        above, below = self.high - shown, shown - self.low  # of what is shown, which is rounded
        if self.low == self.high or max(above, below) <= 5e-4:
            return f"{shown:.3f}"
        if abs(above - below) <= 2e-3:
            return f"{shown:.3f} ± {up(max(above, below), 2)}"
        return f"{shown:.3f} ({down(self.low, 2)} to {up(self.high, 2)})"


class AtCutOff(NamedTuple):
    """What the model does at one edge; counts are shares of all rows.

    ``cut_off`` is the probability above which the positive label is given, or the score if the model estimates none.
    """

    cut_off: float
    hits: Band
    false_alarms: Band
    misses: Band
    quiet: Band
    flagged: Band
    errors: Band
    recall: Band
    precision: Band
    false_alarm_rate: Band
    lift: Band


class Calibration(NamedTuple):
    """A group of rows with similar scores: what the model says of them, and how many of them are positive."""

    low: float
    high: float
    share: Band
    positive: Band


@dataclass(frozen=True)
class Evaluation:
    """What a released model is worth on some rows: one noisy histogram, and what follows from it.

    Parameters
    ----------
    release : Release
        What was paid and what is promised: a release of method ``"evaluation"``, whose ``hypothesis`` holds the noisy
        counts. It adds up with the model's release (:func:`expost.compose`), is booked by ledgers and saved as JSON.

    Examples
    --------
    >>> import numpy as np
    >>> from expost import AccuracyFirstModel, LogLoss
    >>> hours = np.random.default_rng(0).uniform(0, 80, 20_000)
    >>> table = {"hours": hours, "late": np.where(hours > 40, "yes", "no")}
    >>> schema = {"target": "late", "classes": ["no", "yes"], "columns": {"hours": {"bounds": [0, 80]}}}
    >>> release = AccuracyFirstModel(schema, LogLoss(0.3), random_state=0).fit(table).release_
    >>> found = release.evaluate(table, margin=0.02, random_state=1)
    >>> found.epsilon < 0.15, found.base_rate.low < 0.5 < found.base_rate.high, found.auc.high > 0.97
    (True, True, True)
    >>> release.predict(table, cut_off=found.cut_off_for(recall=0.9)).shape
    (20000,)
    """

    release: Release

    def __post_init__(self) -> None:
        said = self.release.parameters.get("evaluation")
        if self.release.method != METHOD or said is None:
            raise ValueError("this release is no evaluation; release.evaluate(...) makes one")
        if self.release.hypothesis is None:
            raise ValueError("this evaluation did not come to its end: it holds no counts, only what it cost")
        edges, others = said["edges"], said["target_edges"]
        shape = (2, len(edges) + 1) if self.kind == "classification" else (len(others) + 1, len(edges) + 1)
        counts = self.release.hypothesis
        good = isinstance(counts, tuple) and len(counts) == shape[0] and shape[0] * shape[1] <= _MOST_CELLS
        good = good and all(isinstance(row, tuple) and len(row) == shape[1] for row in counts)
        good = good and all(isinstance(count, int | float) for row in counts for count in row)
        rising = all(a < b for some in (edges, others) for a, b in pairwise(some))
        odds = len(said["cut_offs"]) in (0, len(edges)) and all(0.0 < p < 1.0 for p in said["cut_offs"])
        bounds = said["target"] if self.kind == "regression" else None
        sound = bounds is None or (len(bounds) == 2 and bounds[0] < bounds[1] and len(others) > 0 and said["reach"] > 0)
        gamma = self.release.promise.failure_probability
        if not (
            good and rising and odds and sound and len(edges) > 0 and gamma is not None and LEAST_GAMMA <= gamma < 1.0
        ):
            raise ValueError("not an evaluation: its counts and edges do not belong together")
        self._require_price(shape, gamma)

    def _require_price(self, shape: tuple[int, int], gamma: float) -> None:
        """Complain if the noise is not what was paid for, or the margin not what follows from the noise."""
        made, said = self.release, self._said
        if (said["scale"] == 0.0) != (said["rows"] == "public"):
            raise ValueError("not an evaluation: counts are exact if rows are public, and have noise otherwise")
        if self.kind == "regression":
            width = said["target"][1] - said["target"][0]
            if not (math.isfinite(width**2) and width**2 / 4.0 >= sys.float_info.min):
                raise ValueError("not an evaluation: the bounds of its target are too close or too far apart")
        if not said["scale"]:
            return
        epsilon = 2.0 / said["scale"]
        # at a δ the loss may be stated as less than the pure one, which its curve has
        paid = made.epsilon if not made.delta else float(made.curve.get("most", math.inf))
        if not epsilon * int(made.parameters.get("rows_per_person", 1)) <= paid * (1.0 + 1e-9):
            raise ValueError("not an evaluation: its noise is smaller than its loss pays for")
        sets, enough = sets_of(shape, self.kind), epsilon * (1.0 + 1e-9)
        if not is_kept(said["margin"], said["n"], shape[0] * shape[1], sets, _COUNTS * gamma, enough):
            raise ValueError("not an evaluation: its noise is too large for its margin")

    @classmethod
    def from_json(cls, text: str) -> Evaluation:
        """Read what :meth:`to_json` wrote; an inconsistent or foreign text is a ``ValueError``."""
        return cls(Release.from_json(text))

    def to_json(self) -> str:
        """Return the release of the histogram as JSON."""
        return self.release.to_json()

    # what it says of itself

    @property
    def _said(self) -> Any:
        return self.release.parameters["evaluation"]

    @property
    def kind(self) -> Kind:
        """Whether it is about classes or numbers."""
        return "classification" if self._said["kind"] == "classification" else "regression"

    @property
    def epsilon(self) -> float:
        """What it cost, beside the model."""
        return self.release.epsilon

    @property
    def n(self) -> int:
        """How many rows; where persons have several, how many of them count: as many of every person."""
        return int(self._said["n"])

    @property
    def about(self) -> str:
        """Say how many rows it is about, or persons, of whom every one fills as many."""
        which = {"all": "rows", "held out": "rows that no model was fitted to", "public": "public rows"}[self.rows]
        persons = self.release.parameters.get("persons")
        said = f"{self.n:,} {which}" if persons is None else f"{which} of {persons:,} persons"
        return f"{said}, if the table is in the order that the fit had it in" if self.rows == "held out" else said

    @property
    def margin(self) -> float:
        """What every count that is shown is right within, as a share of the rows; 0 for public rows."""
        return float(self._said["margin"]) if self._scale else 0.0

    @property
    def rows(self) -> str:
        """Which rows it is about: ``"all"``, ``"held out"`` or ``"public"``."""
        return str(self._said["rows"])

    @property
    def _scale(self) -> float:
        return float(self._said["scale"])

    @property
    def _gamma(self) -> float:
        return float(self.release.promise.failure_probability or 0.0)

    @cached_property
    def counts(self) -> Floats:
        """Estimated counts of all cells, which add up to n."""
        noisy = np.array(self.release.hypothesis, dtype=np.float64)
        return np.asarray(noisy - (noisy.sum() - self.n) / noisy.size)

    def _band(self, count: float, off: float | None = None, shown: float | None = None) -> Band:
        """Return a count as a share of the rows, with its band; another count within it may be ``shown``."""
        reach = self.margin if off is None else off / self.n
        share = float(count) / self.n
        value = share if shown is None else min(max(float(shown) / self.n, share - reach), share + reach)
        return Band(*(min(1.0, max(0.0, at)) for at in (value, share - reach, share + reach)))

    # of classes

    def _require(self, kind: Kind) -> None:
        if self.kind != kind:
            raise ValueError(f"this is about {'classes' if self.kind == 'classification' else 'numbers'}")

    @property
    def probabilities(self) -> bool:
        """Whether the model estimates probabilities, so that cut-offs are such."""
        return bool(self._said["cut_offs"])

    @property
    def positive(self) -> str:
        """The label that recall and precision are about, as it is shown."""
        return one_line(self.release.parameters.get("classes", ("", "the second class"))[1])

    @property
    def base_rate(self) -> Band:
        """Share of rows of the positive class."""
        self._require("classification")
        return self._band(float(self.counts[1].sum()))

    @cached_property
    def at(self) -> tuple[AtCutOff, ...]:
        """What the model does at each edge of the bins, from the lowest."""
        self._require("classification")
        noisy = self.counts[:, ::-1].cumsum(axis=1)[:, ::-1]  # of rows in a bin or above, by class
        off = self.margin * self.n
        fallen = np.array([_falling(some, off) for some in noisy])
        all_flagged = _within_falling(fallen.sum(axis=0), noisy.sum(axis=0), off)
        totals = noisy[:, 0]
        marks = self._said["cut_offs"] or self._said["edges"]
        found = []
        for k, mark in enumerate(marks, start=1):
            (fp, tp), (false, true) = noisy[:, k], fallen[:, k]
            negatives, positives = totals
            hits, alarms = self._band(tp, shown=true), self._band(fp, shown=false)
            misses = self._band(positives - tp, shown=positives - true)
            quiet = self._band(negatives - fp, shown=negatives - false)
            flagged = self._band(tp + fp, shown=all_flagged[k])
            errors = self._band(fp + positives - tp, shown=false + positives - true)
            recall, precision = _ratio(hits, misses, self.base_rate), _ratio(hits, alarms, flagged)
            rate = _ratio(alarms, quiet, None)
            lift = Band(*(_over(p, b) for p, b in zip(precision, _turned(self.base_rate), strict=True)))
            found.append(AtCutOff(mark, hits, alarms, misses, quiet, flagged, errors, recall, precision, rate, lift))
        return tuple(found)

    @property
    def own_cut_off(self) -> AtCutOff:
        """What the model does as it predicts: at a probability of a half, or a score of 0."""
        own: AtCutOff = self.at[self._said["edges"].index(0.0)]
        return own

    def cut_off_for(self, *, recall: float | None = None, precision: float | None = None, surely: bool = True) -> float:
        """Return the cut-off that reaches a recall with the fewest flagged, or a precision with the most.

        Parameters
        ----------
        recall, precision : float
            Exactly one of them.
        surely : bool, default=True
            Whether the end of the band has to reach it, or the estimate. All bands hold at once, so it may be chosen
            by them: the recall there is as stated but for the failure probability.

        Raises
        ------
        ValueError
            No edge of the bins reaches it; or the model estimates no probabilities, so that it has no cut-offs.
        """
        self._require("classification")
        if (recall is None) == (precision is None):
            raise ValueError("state one of recall and precision")
        if not self.probabilities:
            raise ValueError("this model predicts labels alone; models for a log loss have cut-offs")
        name, least = ("recall", recall) if recall is not None else ("precision", precision)
        assert least is not None
        bands = [(at.cut_off, getattr(at, name)) for at in self.at]
        reached = [mark for mark, band in bands if (band.low if surely else band.value) >= least]
        if not reached:
            best = max((band.low if surely else band.value) for _, band in bands)
            raise ValueError(
                f"no cut-off among the edges of the bins {'surely ' if surely else ''}has a {name} of {least:g}; "
                f"{down(max(best, 0.0))} is reached. A smaller margin shows more"
            )
        return max(reached) if recall is not None else min(reached)

    @cached_property
    def auc(self) -> Band:
        """Area under the ROC curve of scores rounded to their bins, pairs within a bin counted as half."""
        low, high = self._auc(0.5, 0.5)
        negative, positive = np.maximum(self.counts, 0.0)
        pairs = positive.sum() * negative.sum()
        below = np.cumsum(negative) - 0.5 * negative
        value = float(positive @ below / pairs) if pairs > 0.0 else 0.5
        return Band(min(max(value, low), high), low, high)

    @cached_property
    def auc_of_scores(self) -> Band:
        """The same of the scores as they are, which may order pairs within a bin either way."""
        low, high = self._auc(0.0, 1.0)
        return Band(self.auc.value, min(low, self.auc.low), max(high, self.auc.high))

    def _auc(self, least: float, most: float) -> tuple[float, float]:
        """Return between what it lies, where pairs within a bin count at least and at most so much."""
        self._require("classification")
        b, a = np.array(self.release.hypothesis, dtype=np.float64)
        theta = np.linspace(0.0, 1.0, _FINE + 1)
        ends = []
        for within, sign in ((least, 1.0), (most, -1.0)):
            h = np.tri(len(a), k=-1) + within * np.eye(len(a))
            form = a @ h @ b - theta * a.sum() * b.sum()
            if not self._scale:
                pairs = float(a.sum() * b.sum())
                ends.append(float(a @ h @ b) / pairs if pairs else 0.5 - 0.5 * sign)
                continue
            estimated = self.counts[0]
            beta = np.abs(h @ estimated - theta[:, None] * estimated.sum())
            beta += (1.0 + theta[:, None]) * self.margin * self.n
            alpha = np.abs(a @ h - theta[:, None] * a.sum())
            weights = np.concatenate([beta, alpha], axis=1) / self.n
            gamma = _REST * self._gamma / 4.0
            reach = np.full(len(theta), np.inf)
            for s in _STEPS:
                u = (s * weights) ** 2
                used = (u < 1.0).all(axis=1)
                spread = -np.log1p(-u[used]).sum(axis=1)
                bound = (math.log(len(_STEPS) / gamma) + spread) / s * self._scale * self.n
                reach[used] = np.minimum(reach[used], bound)
            accepted = sign * form <= reach
            # one side refutes θ that are too small, the other those that are too large
            places = np.flatnonzero(accepted)
            if len(places) == 0:
                ends.append(0.5 - 0.5 * sign)
            else:
                ends.append(float(theta[places[0]] - 1 / _FINE if sign > 0 else theta[places[-1]] + 1 / _FINE))
        return max(0.0, ends[0]), min(1.0, ends[1])

    @cached_property
    def calibration(self) -> tuple[Calibration, ...]:
        """Groups of rows with similar scores, from the lowest: how many of them are positive."""
        self._require("classification")
        edges, bins = list(self._said["cut_offs"] or self._said["edges"]), self.counts.shape[1]
        starts = np.unique(np.linspace(0, bins, min(_GROUPS, bins) + 1).round().astype(int)).tolist()
        ends = [0.0 if self.probabilities else -math.inf, *edges, 1.0 if self.probabilities else math.inf]
        groups = list(pairwise(starts))
        sets = Counter[int]()
        for i, j in groups:
            sets.update({j - i: 2})
        off = 0.0
        if self._scale:
            off = quantile(2 * bins, tuple(sorted(sets.items())), _REST * self._gamma) * self._scale
            off += slack(2 * bins, 2.0 / self._scale)
        found = []
        for i, j in groups:
            fewer, more = (self._band(float(counts[i:j].sum()), off) for counts in self.counts)
            share = Band(*(min(1.0, one + other) for one, other in zip(fewer, more, strict=True)))
            found.append(Calibration(ends[i], ends[j], share, _ratio(more, fewer, None)))
        return tuple(found)

    # of numbers

    @property
    def transform(self) -> str | None:
        """How the target was transformed, if it was: all numbers here are then of the transform."""
        found = self._said["transform"]
        return None if found is None else str(found)

    @property
    def _half(self) -> float:
        low, high = self._said["target"]
        return float(high - low) / 2.0

    @property
    def reach(self) -> float:
        """Residuals beyond this count as it, in units of the target."""
        return float(self._said["reach"]) * self._half

    @property
    def rounded(self) -> str:
        """Say what is not known of the numbers in a bin, of the largest residuals above all, and what is made of it."""
        targets, residuals = self.middles
        return (
            f"R² and the mean squared error are of values rounded to {len(targets)} by {len(residuals)} bins; "
            f"residuals beyond {number(self.reach, 3)} count as that, and in the bands as all that they may be."
        )

    @cached_property
    def middles(self) -> tuple[Floats, Floats]:
        """Middles of the bins of targets and of residuals, scaled: targets lie between −1 and 1.

        The outer bins of residuals count as ±reach, beyond which residuals may lie.
        """
        self._require("regression")
        reach = float(self._said["reach"])
        made = []
        for edges, end in ((self._said["target_edges"], 1.0), (self._said["edges"], reach)):
            ends = np.array([-end, *edges, end])
            made.append((ends[:-1] + ends[1:]) / 2.0)
        made[1][0], made[1][-1] = -reach, reach  # which is what is said of those beyond
        return made[0], made[1]

    def residuals_below(self) -> tuple[tuple[float, Band], ...]:
        """Return the share of rows whose residual (target less prediction) is at most each edge, in its units."""
        self._require("regression")
        below = np.cumsum(self.counts.sum(axis=0))[:-1]
        edges = self._said["edges"]
        return tuple((e * self._half, self._band(float(count))) for e, count in zip(edges, below, strict=True))

    def residual_quantile(self, share: float) -> Band:
        """Return what that share of residuals is at most: the edges between which it lies, and the middle of them."""
        found = self.residuals_below()
        edges = [edge for edge, _ in found]
        most = 2.0 * self._half  # no residual is larger
        low = max([edge for edge, band in found if band.high < share], default=-most)
        high = min([edge for edge, band in found if band.low >= share], default=most)
        value = float(np.interp(share, np.maximum.accumulate([band.value for _, band in found]), edges))
        return Band(min(max(value, low), high), low, high)

    @cached_property
    def mean_squared_error(self) -> Band:
        """Mean square of residuals, rounded to the middles of their bins, in squared units of the target.

        Those in the outer bins count as `reach`; the band has them as small and as large as they can be.
        """
        error, _ = self._squares
        return Band(*(self._half**2 * end for end in error))

    @cached_property
    def r2(self) -> Band:
        """R² of targets and residuals rounded to the middles of their bins; no lower end is −∞.

        Residuals in the outer bins are taken as in the mean squared error, in the band too.
        """
        error, around = self._squares
        if around.value <= 0.0:
            return Band(-math.inf, -math.inf, 1.0)
        low = 1.0 - error.high / around.low if around.low > 0.0 else -math.inf
        return Band(1.0 - error.value / around.value, low, 1.0 - error.low / around.high)

    @cached_property
    def _squares(self) -> tuple[Band, Band]:
        """Mean squares of residuals, and of targets around their mean; scaled."""
        targets, residuals = self.middles
        n, gamma = self.n, _REST * self._gamma

        def mean(weights: Floats) -> float:
            return float((self.counts * weights).sum() / n)

        def off(weights: Floats, part: float) -> float:
            return chernoff(weights.ravel(), self._scale, part) / n if self._scale else 0.0

        every = np.ones(self.counts.shape)
        square, by_target = every * residuals**2, every * targets[:, None]
        # each bound is about one side; those of the variance are linear in the center between two of them
        error, reach = mean(square), off(square, gamma / 8.0)
        # residuals of the outer bins are at least the edge, and at most what the bin of the target allows, since
        # predictions lie between −1 and 1 as targets do
        least, most = square.copy(), square.copy()
        ends = np.array([-1.0, *self._said["target_edges"], 1.0])
        least[:, 0], least[:, -1] = np.square([min(0.0, self._said["edges"][0]), max(0.0, self._said["edges"][-1])])
        most[:, 0], most[:, -1] = (1.0 - ends[:-1]) ** 2, (1.0 + ends[1:]) ** 2
        low = min(error - reach, mean(least) - off(least, gamma / 8.0))
        high = max(error + reach, mean(most) + off(most, gamma / 8.0))
        middle, apart = min(1.0, max(-1.0, mean(by_target))), off(by_target, gamma / 8.0)
        around = mean((by_target - middle) ** 2)
        at = int(np.clip(np.searchsorted(_CENTERS, middle), 1, len(_CENTERS) - 1))
        part = gamma / 4.0 / len(_CENTERS)
        wide = max(off((by_target - center) ** 2, part) for center in _CENTERS[at - 1 : at + 1])
        return (
            Band(max(0.0, error), max(0.0, low), max(0.0, high)),
            Band(around, around - wide - apart**2, around + wide),
        )

    # in words

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def _repr_html_(self) -> str:
        return self.to_html()

    def to_html(self) -> str:
        """Return the pictures and the table as a piece of HTML that needs nothing else, for a page or a report."""
        from expost.release.evaluation_page import evaluation_html

        return evaluation_html(self)

    def to_page(self) -> str:
        """Return a whole page of it, which refers to nothing outside itself."""
        from expost.release.evaluation_page import evaluation_page

        return evaluation_page(self)

    def price(self) -> str:
        """Say what it cost and what the margin means."""
        if self.rows == "public":
            counts = f"PUBLIC ROWS, as the caller states: exact counts{counted(self.release)}"
            return f"{counts}, no noise, nothing charged. Never for private rows"
        told = "" if self.release.secure else " SEEDED SIMULATION: protects nobody."
        whose = counted(self.release)
        return (
            f"ε = {up(self.epsilon)}, known before a row was read; it adds to what the model cost. Every share of rows"
            f"{whose}{',' if whose else ''} is right within {up(self.margin)}, all at once with probability "
            f"{down(1.0 - self._gamma)}.{told}"
        )

    def lines(self, most: int = 9) -> list[str]:
        """Return the few lines a person wants to read."""
        title = f"{one_line(self.release.target or 'a target')}, evaluated on {self.about}"
        if self.kind == "regression":
            return [title, f"  {self.price()}", *self._numbers()]
        edge = self.auc_of_scores
        first = (
            f"  AUC {self.auc.text} of scores in {self.counts.shape[1]} bins; of the scores between "
            f"{down(edge.low, 3)} and {up(edge.high, 3)}"
        )
        return [
            title,
            f"  {self.price()}",
            first,
            f"  base rate {self.base_rate.text}, of {self.positive}",
            *self._cut_off_table(most),
        ]

    def _cut_off_table(self, most: int) -> list[str]:
        shown = self.chosen(most)
        heading = "cut-off" if self.probabilities else "score above"
        rows: list[Sequence[str]] = [(heading, "recall", "precision", "flagged", "errors")]
        for at in shown:
            rows.append((self.mark(at), at.recall.text, at.precision.text, at.flagged.text, at.errors.text))
        return [f"  {line}" for line in aligned(rows)]

    def mark(self, at: AtCutOff) -> str:
        """Write where rows are cut: a probability as it is, for others would flag other rows than those told of."""
        return exact(at.cut_off) if self.probabilities else number(at.cut_off, 3)

    def chosen(self, most: int = 9) -> list[AtCutOff]:
        """Return some of the cut-offs, spread over those that flag some rows and not all; the model's own is in,
        and those that were asked for."""
        own = self.own_cut_off
        useful = [at for at in self.at if 0.005 < at.flagged.value < 0.995 or at is own]
        places = sorted({round(i * (len(useful) - 1) / max(1, most - 2)) for i in range(most - 1)})
        kept = [useful[i] for i in places if i < len(useful)]
        return [at for at in self.at if at in kept or at is own or at.cut_off in self._said["asked"]]

    def _numbers(self) -> list[str]:
        named = one_line(self.release.target or "the target")
        unit = named if self.transform is None else f"{self.transform}({named})"
        of, r2 = "" if self.transform is None else f" of {unit}", self.r2
        end = "no lower bound is shown" if math.isinf(r2.low) else f"at least {down(r2.low, 3)}"
        square = self.mean_squared_error
        lines = [
            f"  R²{of} {r2.value:.3f}, {end}, at most {up(min(1.0, r2.high), 3)}",
            f"  mean squared error of {unit} {number(square.value, 3)} ({' to '.join(ends(square))})",
            f"  {self.rounded}",
        ]
        rows: list[Sequence[str]] = [("share of residuals", "at most", "between")]
        for share in (0.05, 0.25, 0.5, 0.75, 0.95):
            q = self.residual_quantile(share)
            rows.append((percent(share), number(q.value, 3), " and ".join(ends(q))))
        return [*lines, *(f"  {line}" for line in aligned(rows, right=(0, 1)))]


def ends(band: Band) -> tuple[str, str]:
    """Write the ends of a band in three digits, outwards.

    Examples
    --------
    >>> ends(Band(0.0, -1.2341, 1062.4))
    ('−1.24', '1,070')
    """
    return number(float(down(band.low, 3)), 3), number(float(up(band.high, 3)), 3)


def _ratio(part: Band, rest: Band, whole: Band | None) -> Band:
    """Return part/(part + rest), worst case over the bands; the sum may have a band of its own."""
    value = _over(part.value, part.value + rest.value)
    low, high = _over(part.low, part.low + rest.high), _over(part.high, part.high + rest.low, 1.0)
    if whole is not None:
        low, high = max(low, _over(part.low, whole.high)), min(high, _over(part.high, whole.low, 1.0))
    return Band(min(max(value, low), high), low, min(1.0, high))


def _falling(noisy: Floats, off: float) -> Floats:
    """Return the nearest numbers, in squares, that fall from each to the next, within what bands allow.

    Examples
    --------
    >>> _falling(np.array([9.0, 4.0, 6.0, 1.0]), 3.0).tolist()
    [9.0, 5.0, 5.0, 1.0]
    """
    from sklearn.isotonic import isotonic_regression  # which takes a while to import

    fallen = np.asarray(isotonic_regression(noisy, increasing=False), dtype=np.float64)
    return _within_falling(np.clip(fallen, 0.0, max(0.0, float(noisy[0]))), noisy, off)


def _within_falling(falling: Floats, noisy: Floats, off: float) -> Floats:
    """Return numbers that fall, moved between the ends of bands around noisy ones where truths fall as well."""
    low = np.maximum.accumulate((noisy - off)[::-1])[::-1]
    high = np.minimum.accumulate(noisy + off)
    return np.asarray(np.minimum(np.maximum(falling, low), high))


def _over(part: float, whole: float, nothing: float = 0.0) -> float:
    return part / whole if whole > 0.0 else nothing if part <= 0.0 else math.inf


def _turned(band: Band) -> tuple[float, float, float]:
    """Return what to divide an estimate, a lower and an upper end by."""
    return band.value, band.high, band.low
