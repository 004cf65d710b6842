"""From rows to the histogram of an evaluation: what is settled before a row is read, the count, the charge.

What is released, between which neighbours, at what loss and with what margin stands in `expost.release.evaluation`.
*In which cell a row is* depends on nothing but that row: it is encoded as for a fit, its prediction is exact whatever
stands beside it (`expost.numeric.exact_parts`), and the edges follow from the released model and public numbers. Where
a person has several rows, each person fills k slots, as in a fit. With ``on_invalid="clip"`` no cell can raise or
change another row; a row without a label counts as the negative class, one without a target as the middle of its
bounds.

*Where edges are.* Log odds are cut into equal widths between those that the model's goal allows; scores without odds
between three deviations of what rows drawn evenly from the schema would have, 0 being an edge; targets between their
bounds; residuals, more finely around 0, within about four times the root of their mean square, as the release showed
it to be at most (of R², with the spread of targets by which its predictions are bounded). All of it is public.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from expost import defaults, validation
from expost.account.account import Account, Spending, current, unspent, warn_if_large
from expost.account.composition import ROW, Curve, Unit
from expost.account.ledger import Ledger
from expost.exceptions import CoarseMarginWarning, TargetUnreachable, warn
from expost.noise.laplace import discrete_laplace
from expost.noise.source import resolve_source
from expost.numeric import FloatArray, exact_parts
from expost.passes.dask import as_engine, stream_of
from expost.passes.engine import Totals, blocks, folded, predictions
from expost.passes.first_pass import counted, look_at
from expost.release.evaluation import (
    LEAST_GAMMA,
    METHOD,
    NUMBER_BINS,
    SCORE_BINS,
    Evaluation,
    Kind,
    margin_at,
    price_of,
)
from expost.release.held_out import HeldOut
from expost.release.release import Promise, Release
from expost.release.scoring import ROOM, BoundsScorer, InTurn, SchemaScorer, Scorer, scorer_of
from expost.release.words import ALIKE
from expost.shown import down, up
from expost.table.columns import NamedColumns
from expost.table.encoding import Encoding
from expost.table.entrance import is_stream, open_column
from expost.table.files import Disk, is_on_disk, open_named, table_claims
from expost.table.misfits import CLIPPED_LABELS, CLIPPED_TARGETS
from expost.table.rows import ONE, Batch, MemorySource, Rows, RowSource
from expost.table.streamed import PersonSource

_COARSE, _TELLING = 0.25, 0.1  # margins, as parts of the rarer label's share: bands are wide, and tell something
_RARE = 0.2  # share of a label, below which it is
ODDS = 4.0  # log odds beyond which bins end, where the goal states none
_MOST_BINS = {False: 256, True: 32}  # of scores; of numbers, whose cells are as many as the square of it
_MOST_CUT_OFFS = 100
_ROOTS = 4.0  # of the mean square that was shown: where bins of residuals end
_BENT = (
    4.0  # bins of residuals are as even as sinh is: the outer ones twelve times as wide, as a model may be far better
)
NOT_CHECKED = "the rows evaluated on are what the caller says they are, and not chosen by looking at them"
SAME_PLACES = (
    "the table has the same rows in the same order as the fit had, and the set of those held out is the one that the "
    "fit drew: whoever writes a file of their own that says who was held out chooses the set, and what both cost "
    "together is about a set that was drawn"
)
PUBLIC = "the rows evaluated on are public, so nothing protects them"
BAD_ROWS = (
    "an error about cells that do not fit the schema would have depended on single rows; on_invalid='clip' removes that"
)


@dataclass(frozen=True, eq=False)
class Cells:
    """The public partition, and how many rows of a batch are in each cell of it.

    Attributes
    ----------
    kind
        Classes by bins of the score, or bins of the target by bins of the residual.
    parts
        θ, from :func:`~expost.numeric.exact_parts`.
    edges
        Between bins of the score, or of the residual; what is above an edge is in the bin beyond it.
    target_edges
        Between bins of the target, scaled to [−1, 1].
    cut_offs
        The probabilities that edges are the log odds of, where the model estimates some.
    within
        What predictions of numbers are moved into.
    reach
        Where the outer bins of residuals are taken to end.
    """

    kind: Kind
    parts: FloatArray
    edges: tuple[float, ...]
    target_edges: tuple[float, ...] = ()
    cut_offs: tuple[float, ...] = ()
    within: tuple[float, float] = (-1.0, 1.0)
    reach: float = 0.0

    @property
    def shape(self) -> tuple[int, int]:
        """How many cells there are, each way."""
        return (2 if self.kind == "classification" else len(self.target_edges) + 1), len(self.edges) + 1

    def __call__(self, batch: Batch) -> Totals:
        """Return the counts of a batch; private."""
        with np.errstate(all="ignore"):  # a warning that some rows cause would tell of them
            return folded((self._block(*block) for block in blocks(batch)), batch.shift)

    def _block(self, x: Any, y: FloatArray, counts: FloatArray | None) -> Totals:
        found = predictions(x, self.parts)
        if self.kind == "classification":
            first = (y > 0.0).astype(np.intp)
        else:
            found = y - np.clip(found, *self.within)
            first = np.searchsorted(self.target_edges, y)
        cells = first * self.shape[1] + np.searchsorted(self.edges, found)
        return (np.bincount(cells, counts, minlength=self.shape[0] * self.shape[1]).astype(np.int64),)


def cells_for(
    release: Release, scorer: Scorer, bins: int | None, cut_offs: Sequence[float], residuals_within: float | None
) -> Cells:
    """Return the partition for a released model; public."""
    parts = exact_parts(scorer.theta)
    number = scorer.classes is None
    usual = NUMBER_BINS if number else SCORE_BINS
    many = usual if bins is None else bins
    if isinstance(many, bool) or not isinstance(many, int) or not 4 <= many <= _MOST_BINS[number] or many % 2:
        raise ValueError(f"bins must be an even whole number from 4 to {_MOST_BINS[number]}, got {bins!r}")
    if cut_offs:
        scorer.require_odds()
    if residuals_within is not None and not number:
        raise ValueError("residuals_within is for models that predict numbers; leave it out")
    if number:
        reach = _reach(release, scorer, residuals_within)
        even = np.arange(1, many) * 2.0 / many - 1.0
        residuals = reach * np.sinh(_BENT * even) / math.sinh(_BENT * even[-1])
        return Cells(
            "regression", parts, tuple(residuals.tolist()), tuple(even.tolist()), within=scorer.within, reach=reach
        )
    if scorer.largest_odds is None:
        return Cells("classification", parts, _score_edges(scorer, many))
    end = scorer.largest_odds if math.isfinite(scorer.largest_odds) else ODDS
    between = (1.0 / (1.0 + math.exp(-end * (2.0 * k / many - 1.0))) for k in range(1, many))
    stated = {validation.share("cut_offs", cut_off) for cut_off in cut_offs}
    # as `Scorer.answers` has it, to the bit; of probabilities with the same log odds, which are one edge, one is kept
    chances = [*(round(chance, 4) for chance in between), *sorted(stated), 0.5]
    found = {math.log(p / (1.0 - p)): p for p in chances if 0.0 < p < 1.0}
    edges = sorted(found)
    return Cells("classification", parts, tuple(edges), cut_offs=tuple(found[edge] for edge in edges))


def _reach(release: Release, scorer: Scorer, stated: float | None) -> float:
    """Return where bins of residuals end, scaled."""
    low, high = scorer.target or (-1.0, 1.0)
    if stated is not None:
        return min(2.0, validation.positive("residuals_within", stated) / ((high - low) / 2.0))
    promise, shown = release.promise, release.parameters.get("shown")
    if promise.at_least is not None:  # an R²
        left = max(1e-6, 1.0 - (promise.at_least if shown is None else shown))
        square = left * _variance(promise.at_least, scorer.within)
    elif promise.at_most is not None:
        square = shown or promise.at_most  # that there is no error at all may have been shown, of few rows
    else:
        return 1.0
    return min(2.0, _ROOTS * math.sqrt(square))


def _variance(share: float, within: tuple[float, float]) -> float:
    """Return about how much targets vary: by how far predictions may be from their mean, or as if they lay evenly."""
    least, most = within
    if share <= 0.0 or (least <= -1.0 and most >= 1.0):
        return 1.0 / 3.0
    return ((most - least) / 2.0 / ROOM) ** 2 / share


def _score_edges(scorer: Scorer, many: int) -> tuple[float, ...]:
    """Return edges of scores that are no odds: multiples of a width, 0 among them."""
    theta, middle, square = scorer.theta, 0.0, 0.0
    if isinstance(scorer, SchemaScorer):
        said = scorer.encoding.declares
        column, value = said["constant"]
        middle, place = float(theta[column]) * value / ONE, 0
        others = np.where(np.arange(len(theta)) == column, 0.0, theta)
        for size, norm, units in said["shape"]:
            some, radius = others[place : place + size], units / ONE
            if norm == "box":  # each evenly between its ends
                square += radius**2 / 3.0 * float(np.sum(some**2))
            else:  # one of them, each as likely
                middle, square = middle + radius * float(some.mean()), square + radius**2 * float(some.var())
            place += size
    else:
        square = float(np.sum(theta**2)) / len(theta)
    reach = 3.0 * math.sqrt(square) or 1.0
    low, high = min(middle - reach, 0.0), max(middle + reach, 0.0)
    width = (high - low) / many
    first = min(0, max(2 - many, math.floor(low / width) + 1))
    return tuple(width * k for k in range(first, first + many - 1))


@unspent()
def evaluate(
    release: Release,
    table: Any,
    y: Any = None,
    *,
    margin: float | Literal["auto"] | None = None,
    failure_probability: float = defaults.FAILURE_PROBABILITY,
    max_epsilon: float = defaults.MAX_EPSILON,
    bins: int | None = None,
    cut_offs: Sequence[float] = (),
    residuals_within: float | None = None,
    new_rows: Any = None,
    public_rows: bool = False,
    on_invalid: Literal["error", "clip"] = "clip",
    engine: Any = None,
    delta: float = 0.0,
    ledger: Ledger | None = None,
    random_state: Any = None,
) -> Evaluation:
    """Carry out :meth:`expost.Release.evaluate`."""
    if margin is not None and margin != "auto":
        margin = validation.share("margin", margin)
    gamma = _failure_probability(failure_probability)
    cut_offs = _listed(cut_offs)
    most = validation.number("max_epsilon", max_epsilon)
    if most <= 0.0:
        raise ValueError(f"max_epsilon must be positive, got {max_epsilon!r}")
    if math.isfinite(most):
        validation.sized("max_epsilon", most)
    delta = validation.delta(delta)
    validation.one_of("on_invalid", on_invalid, ("error", "clip"))
    public_rows = validation.flag("public_rows", public_rows)
    if public_rows and (ledger is not None or delta or new_rows is not None):
        raise ValueError(
            "public rows are charged to nothing, and rows that a fit held out are not public: leave out ledger, delta "
            "and new_rows, or public_rows"
        )
    if release.method == METHOD:
        raise ValueError("this is an evaluation already; evaluate the model's own release")
    scorer, spending = scorer_of(release), Spending(ledger)
    held = None if new_rows is None else HeldOut.of(new_rows, release)
    if held is not None and (is_stream(table) or (isinstance(table, Disk) and (table.once or table_claims(table)))):
        raise ValueError(
            "rows that were held out are found by their places, and a query, a stream or a function may hand out "
            "rows in another order than the fit had them: pass a table in memory or a file. Nothing was spent"
        )
    cells = cells_for(release, scorer, bins, cut_offs, residuals_within)
    taken = table_claims(table)
    rows, unit = _opened(release, scorer, table, y, on_invalid, engine, held)
    if margin is None or margin == "auto":
        settled = (most, rows.n, cells, gamma, unit)
        margin = defaults.EVALUATED_WITHIN if public_rows else _usual_margin(margin, release.epsilon, *settled)
    said = {
        "of": release.id,
        "kind": cells.kind,
        "n": rows.n,
        "margin": margin,
        "edges": cells.edges,
        "target_edges": cells.target_edges,
        "cut_offs": cells.cut_offs,
        "asked": tuple(cut_offs),
        "rows": "public" if public_rows else "all" if held is None else "held out",
        "target": scorer.target or (-1.0, 1.0),
        "transform": scorer.transform,
        "reach": cells.reach,
    }
    details = _details(release, said, gamma, on_invalid, engine, random_state, scorer, unit)
    details["claims"] += (*(() if held is None else (SAME_PLACES,)), *taken)

    def described(outcome: Release, scale: float) -> Release:
        own = {**outcome.parameters, **unit.described, "n": rows.n, "evaluation": {**said, "scale": scale}}
        if scorer.classes is not None:
            own["classes"] = scorer.classes
        return outcome.with_details(**details, parameters=own)

    if public_rows:
        account = Account(METHOD, worst_case=0.0, secure=True, unit=unit)
        counts = _counts(rows, cells)
        return Evaluation(described(account.released(counts.tolist(), noise="exact"), 0.0))

    def charged(spending: Spending) -> Evaluation:
        limit = unit.share(spending.ceiling(most, delta) or most)
        epsilon = price_of(margin, rows.n, cells.shape, cells.kind, gamma, limit, unit)
        _warn_of_margin(
            release, margin, lambda finer: price_of(finer, rows.n, cells.shape, cells.kind, gamma, limit, unit), unit
        )
        account = Account(METHOD, worst_case=epsilon, secure=validation.secure(random_state), unit=unit, delta=delta)
        account.count_on(current(delta, unit, stated=delta > 0.0))
        account.one_curve = "pure" if spending.holds and delta else None
        if account.shared is not None and not account.shared.fits(Curve.pure(unit.charge(epsilon)), account):
            raise TargetUnreachable("what is left of the budget does not pay for this margin. Nothing was spent")
        source = resolve_source(random_state)
        held = described(account.interrupted(), 2.0 / epsilon)
        # what is wrong with the record would be wrong with any counts: it is found before anything is charged
        none = tuple((0,) * cells.shape[1] for _ in range(cells.shape[0]))
        Evaluation(dataclasses.replace(held, status="released", hypothesis=none))
        spending.reserve(held, worst_case=held.epsilon_worst_case)
        exact = _counts(rows, cells)
        account.begin()
        spending.release = held
        account.look_first(epsilon)
        noisy = exact + discrete_laplace(epsilon, 2, exact.size, random_state=source).reshape(exact.shape)
        made = spending.end(described(account.released(noisy.tolist()), 2.0 / epsilon))
        warn_if_large(made)  # guarded: a warning that is made an error carries what was paid for, as an interrupt does
        return Evaluation(made)

    return spending.guard(charged)


def _usual_margin(
    stated: Literal["auto"] | None, paid: float, most: float, n: int, cells: Cells, gamma: float, unit: Unit
) -> float:
    """Return the margin where no number was stated: the usual one, if that costs no more than the model did (``paid``).

    Otherwise one that costs as much, if that may be chosen and says something; or an error names it. Nothing is read.
    """
    usual, limit, about = defaults.EVALUATED_WITHIN, unit.share(most), (n, cells.shape, cells.kind, gamma)
    if stated is None and (price := unit.charge(price_of(usual, *about, limit, unit))) > paid:
        said = f"the usual margin of {usual:g} would cost epsilon = {up(price)}, and the model cost {up(paid)}"
    elif stated is None:
        return usual
    else:
        said = "no margin that says much costs as little as the model did"
    least = margin_at(min(limit, unit.share(paid)), *about, limit)
    wider = usual if least <= usual else float(up(least * (1.0 + 1e-9), 2))
    if stated == "auto" and wider <= defaults.EVALUATED_AT_WIDEST:
        return wider
    cheap = f"margin={wider:g}, which costs no more than the model, or " if wider < 1.0 else ""
    raise TargetUnreachable(f"{said}. State {cheap}margin={usual:g} to pay for that all the same. Nothing was spent")


def _warn_of_margin(release: Release, margin: float, price: Callable[[float], float], unit: Unit) -> None:
    """Warn, before anything is spent, of a margin that tells next to nothing of a rare label, by its public share.

    Where π of the rows are positive, a share r of which is found, counts within m put recall within about m(1 + r)/π.
    """
    share = release.parameters.get("base_rate")
    rare = 0.5 if not isinstance(share, float) else min(share, 1.0 - share)
    if not 0.0 < rare < _RARE or margin <= _COARSE * rare:
        return
    finer = float(down(_TELLING * rare, 1))
    try:
        costs = f"would cost epsilon = {up(unit.charge(price(finer)))}"
    except TargetUnreachable:
        costs = "would cost more than max_epsilon leaves"
    warn(
        f"a margin of {margin:g} tells little of a label that about {up(rare, 2)} of the rows have, as the model's "
        f"release says: bands of recall and precision will be wide. A margin of {finer:g} tells something, and {costs}",
        CoarseMarginWarning,
    )


def require_price(margin: float, n: int, labels: bool, failure_probability: float, max_epsilon: float) -> None:
    """Complain if no model's evaluation on n rows, with the usual bins, could have a margin for so much at most.

    It follows from public numbers alone, so it can be said before there is a model.
    """
    kind: Kind = "classification" if labels else "regression"
    shape = (2, SCORE_BINS) if labels else (NUMBER_BINS, NUMBER_BINS)
    price_of(margin, n, shape, kind, _failure_probability(failure_probability), max_epsilon)


def _failure_probability(stated: float) -> float:
    """Return γ, if tails are known well enough for it."""
    gamma = validation.failure_probability(stated)
    if gamma < LEAST_GAMMA:
        raise ValueError(f"failure_probability of an evaluation must be at least {LEAST_GAMMA:g}, got {gamma:g}")
    return gamma


def _listed(cut_offs: Any) -> tuple[float, ...]:
    """Return cut-offs, or say what they have to be."""
    try:
        stated = tuple(cut_offs)
    except TypeError:
        raise ValueError(f"cut_offs must be a list of probabilities, got {type(cut_offs).__name__}") from None
    if len(stated) > _MOST_CUT_OFFS:
        raise ValueError(f"cut_offs must be at most {_MOST_CUT_OFFS} probabilities, got {len(stated):,}")
    return stated


def _details(
    release: Release,
    said: dict[str, Any],
    gamma: float,
    on_invalid: str,
    engine: Any,
    random_state: Any,
    scorer: Scorer,
    unit: Unit,
) -> dict[str, Any]:
    """Return what an evaluation says of itself beside its loss."""
    public = said["rows"] == "public"
    right = "exact" if public else f"right within {said['margin']:g} of the rows"
    what = (
        "hit, false alarm, miss or flagged" if scorer.classes is not None else "below an edge of targets or residuals"
    )
    sure = "" if public else f", all at once with probability at least {down(1.0 - gamma)}"
    alike = f"; {ALIKE}" if unit.persons is not None else ""
    claims = [PUBLIC if public else NOT_CHECKED]
    if on_invalid == "clip":
        claims.append(CLIPPED_TARGETS if scorer.classes is None else CLIPPED_LABELS)
    claims += [*validation.engine_claims(engine), *validation.source_claims(random_state)]
    return {
        "promise": Promise(
            f"an evaluation of release {release.id}: each count of rows that are {what} is {right}{sure}{alike}",
            failure_probability=gamma,
        ),
        "claims": tuple(claims),
        "not_covered": (BAD_ROWS,) if on_invalid == "error" else (),
        "exact": ("the counts", "the noise"),
        "target": release.target,
        "columns": release.columns,
        "schema_fingerprint": release.schema_fingerprint,
    }


def _counts(rows: Rows | RowSource, cells: Cells) -> Any:
    """Return the exact histogram; private."""
    source = MemorySource(rows) if isinstance(rows, Rows) else rows
    [found] = as_engine(source.engine).total(source, cells)
    return np.asarray(found).reshape(cells.shape)


def _opened(
    release: Release,
    scorer: Scorer,
    table: Any,
    y: Any,
    on_invalid: Literal["error", "clip"],
    engine: Any,
    held: HeldOut | None,
) -> tuple[Rows | RowSource, Unit]:
    """Return rows as the model's fit had them, or those of them that were held out, and what neighbours differ in."""
    if isinstance(scorer, SchemaScorer):
        schema = scorer.encoding.schema
        rows = _encoded(scorer.encoding, table, y, on_invalid, engine, held)
        k = schema.rows_per_person
        return rows, ROW if schema.person is None or k is None else Unit(k, rows.n // k, schema.person)
    assert isinstance(scorer, BoundsScorer)
    if engine is not None:
        raise ValueError("an engine is for models of a table with a schema; leave it out")
    names = list(scorer.names)
    number = scorer.classes is None or not isinstance(scorer.classes[0], str)
    X: Any = table
    if y is None:
        if release.target is None:
            raise ValueError("this release does not name its target: pass the features and y")
        if is_on_disk(table):
            # in pieces, of which features and targets are kept: a model of columns with bounds has few
            numbers = {*names, release.target} if number else set(names)
            found = InTurn(table, [*names, release.target], numbers, len(names), on_invalid)
            parts = [(_values(columns, names), columns[release.target].cells()) for columns in found]
            if not parts:
                raise ValueError("there are no rows; pass at least one")
            X, y = np.concatenate([values for values, _ in parts]), [cell for _, cells in parts for cell in cells]
        else:
            raw = open_named(table, [*names, release.target])
            X, y = _values(raw, names), raw[release.target]
    target, _ = open_column(y, on_invalid="clip", name="y")
    recipe = scorer.preparation
    if scorer.classes is None:
        return recipe.prepare_regression(X, target, on_invalid=on_invalid), ROW
    return recipe.prepare_classification(X, target, scorer.classes, on_invalid=on_invalid), ROW


def _values(columns: NamedColumns, names: Sequence[str]) -> FloatArray:
    return np.column_stack([columns[name].floats(slice(None)) for name in names])


def _encoded(
    encoding: Encoding, table: Any, y: Any, on_invalid: Literal["error", "clip"], engine: Any, held: HeldOut | None
) -> Rows | RowSource:
    """Return rows of a table with a schema, or where to read them."""
    if y is not None:
        raw = open_named(table, [name for name in encoding.schema.needed if name != encoding.schema.target])
        target, _ = open_column(y, on_invalid="clip", name="y")
        if len(target) != len(raw):
            raise ValueError(f"there are {len(raw):,} rows and {len(target):,} targets")
        table = NamedColumns({**raw.columns, encoding.schema.target: target}, len(raw))
    who = as_engine(engine, table)
    source = stream_of(table, encoding, who) if y is None else None
    if source is None:
        rows: Rows | RowSource = encoding.encode(table, on_invalid=on_invalid)
        return rows if held is None else held.again(rows)
    if isinstance(source, PersonSource):
        if on_invalid == "error":
            encoding.require_fit(*encoding.tallied(*counted(source.every_row(), who)))
            encoding.require_persons(source.unreadable, source.undecoded)
        if held is not None:
            source, held = held.again(source), None
    rows, found = look_at(source, who)
    if on_invalid == "error":
        encoding.require_fit(*encoding.tallied(found, rows.n))
    return rows if held is None else held.again(rows)
