"""The release: the only object that carries anything about the data out of a search.

It is frozen, says what it covers, and survives a round trip through JSON. What only the curator may see (the true
excess risk, θ*) is never in it; see :mod:`expost.search.run`.
"""

from __future__ import annotations

import dataclasses
import datetime
import json
import math
import os
import platform
import secrets
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import metadata
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from expost import defaults, validation
from expost.account.composition import NEIGHBOURS, NOTHING, Clock, Curve, add_losses, exp
from expost.goals.flags import words_of
from expost.release.scoring import scorer_of
from expost.release.words import closest, going_on, summary, summary_html, to_compare

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

    from expost.account.ledger import Ledger
    from expost.release.evaluation import Evaluation
    from expost.release.held_out import HeldOut

FORMAT = 2
STATUSES = ("released", "short", "refused")
_PARTS = ("epsilon_generation", "epsilon_test", "epsilon_probe", "epsilon_conversion")
APPROXIMATE = ("delta", "epsilon_conversion", "curve")  # said only where there is a δ


class FrozenMapping(Mapping[str, Any]):
    """A read-only dictionary, so that a frozen release is frozen all the way down.

    By hand because ``types.MappingProxyType`` cannot be pickled, and estimators are.
    """

    __slots__ = ("_items",)
    _items: dict[str, Any]

    def __init__(self, items: Mapping[str, Any] | None = None) -> None:
        frozen = {str(key): freeze(value) for key, value in (items or {}).items()}
        object.__setattr__(self, "_items", frozen)

    def __getitem__(self, key: str) -> Any:
        return self._items[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("a release cannot be changed")

    def __reduce__(self) -> tuple[type[FrozenMapping], tuple[dict[str, Any]]]:
        return (FrozenMapping, (dict(self._items),))

    def __hash__(self) -> int:
        return hash(tuple(sorted(self._items.items(), key=lambda item: item[0])))

    def __repr__(self) -> str:
        return repr(dict(self._items))


_FROZEN = {FrozenMapping, str, int, float, bool, type(None)}


def freeze(value: Any) -> Any:
    """Return an immutable copy made of plain Python values."""
    if type(value) in _FROZEN:  # most values are, and a fit makes a dozen releases of one another
        return value
    if isinstance(value, Mapping):
        return FrozenMapping(value)
    if hasattr(value, "__array__"):
        return freeze(np.asarray(value).tolist())
    if isinstance(value, list | tuple):
        return tuple(freeze(item) for item in value)
    return value


def plain(value: Any) -> Any:
    """Return dictionaries, lists and numbers that JSON can hold."""
    if dataclasses.is_dataclass(value):
        return {item.name: plain(getattr(value, item.name)) for item in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}  # JSON has no infinity, and a bare string could be somebody's class label
    return value


@lru_cache(maxsize=1)  # reading package metadata takes milliseconds, and a search makes thousands of releases
def versions() -> FrozenMapping:
    """Return what a release was made with."""
    return FrozenMapping(
        {
            "expost": metadata.version("expost"),
            "numpy": np.__version__,
            "cryptography": metadata.version("cryptography"),
            "python": platform.python_version(),
        }
    )


def today() -> str:
    """Return the day in UTC. No time of day: beside the start of a search it would tell how long the search took."""
    return datetime.datetime.now(datetime.UTC).date().isoformat()


def is_day(text: Any) -> bool:
    """Whether a text is a day, as 2026-03-31."""
    try:
        datetime.date.fromisoformat(text)
    except (TypeError, ValueError):
        return False
    return True


@dataclass(frozen=True)
class Promise:
    """What the caller was promised about accuracy, and against what.

    ``excess_risk`` is in scaled units (rows in the unit ℓ₁ ball, targets in [−1, 1]);
    ``excess_risk_caller_units`` is the same number in squared target units where there are any. Where something else
    was asked for, ``goal`` names it and ``at_most`` is its number, likewise, or ``at_least`` where more is better. Of
    several at once ``goals`` has the number of each, by its name. ``costs`` are what errors cost, where that is asked
    about.
    """

    statement: str
    excess_risk: float | None = None
    excess_risk_caller_units: float | None = None
    failure_probability: float | None = None
    radius: float | None = None
    regularization: float | None = None
    goal: str | None = None
    at_most: float | None = None
    at_most_caller_units: float | None = None
    at_least: float | None = None
    goals: Mapping[str, float] | None = None
    costs: Mapping[str, float] | None = None

    def __post_init__(self) -> None:
        for name in ("goals", "costs"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, FrozenMapping(getattr(self, name)))

    @property
    def numbers(self) -> dict[str, float]:
        """What was asked, in the caller's units, by the names of the goals; empty where that is an excess risk."""
        if self.goals is not None:
            return dict(self.goals)
        most = self.at_most if self.at_most_caller_units is None else self.at_most_caller_units
        number = self.at_least if most is None else most
        return {} if self.goal is None or number is None else {self.goal: number}

    @classmethod
    def read(cls, fields: dict[str, Any]) -> Promise:
        """Return a promise as a file has it; older ones state a least R² by its distance from 1."""
        older = "at_least" not in fields and fields.get("at_most") is not None
        if older and words_of(fields.get("goal")).at_least:
            fields = {**fields, "at_most": None, "at_least": round(1.0 - fields["at_most"], 12)}
        return cls(**fields)


@dataclass(frozen=True)
class Release:
    """The outcome of one search and the privacy it cost.

    Attributes
    ----------
    status
        ``"released"``, ``"short"`` (no model met the goal; this is the best one, and :attr:`shown` says how good it was
        shown to be) or ``"refused"``. A refusal carries no hypothesis and still costs privacy.
    epsilon
        Total ex-post privacy loss of this outcome.
    epsilon_worst_case
        The ex-ante guarantee: no outcome of this search could have cost more; ``inf`` when there is no such bound.
    epsilon_generation, epsilon_test, epsilon_probe
        The parts of ``epsilon``: revealing hypotheses, testing them, measuring the data beforehand.
    delta, epsilon_conversion, curve
        Zero and empty for pure privacy. Otherwise δ, settled beforehand: for every ordered pair of neighbours, the
        chance that the outcome speaks for the rows, against the others, by more than e^ε is at most δ
        (`expost.account.composition.Curve`), and that it speaks for either by more at most 2δ. The parts are then
        those of the Rényi order that counts most, and the last is what stating them at δ adds. ``epsilon_usual`` is the
        loss in the usual sense of (ε, δ). The curve has ``orders``, ``losses`` and ``most``, and where the search kept
        to a clock (`expost.account.composition.Clock`) its ``times``, ``rho`` and ``pure``; an interruption has one
        only if a ledger held it.
    hypothesis
        θ in scaled units (nested tuples of floats), or ``None`` for a refusal.
    level, n_levels
        Which privacy level the search stopped at (from 0), of how many.
    promise
        What is promised about accuracy.
    noise
        ``"exact"`` if every random decision follows its stated distribution exactly.
    secure
        False if the noise came from a seed; such a release protects nobody.
    neighbours, unit
        What is replaced between neighbours, in a sentence and in a word.
    exact, charged
        Which parts of the computation are exact integer arithmetic, and which are floating point whose error
        was bounded and charged to the sensitivity.
    claims
        What the caller stated and the library could not check (a black box's ε, say).
    not_covered
        What the guarantee does not cover.
    id, date
        Random hexadecimal digits (from the operating system, whatever the seed) and the day in UTC, settled when the
        release is made. They tell one run from another and do not count when releases are compared; both stay through
        :meth:`with_details`. A release from before there were dates has ``None``.
    held_out
        How many rows models were tested on and not fitted to; 0 where both are all rows. What is promised is then about
        new rows, drawn as those of the table, and of what models and tests cost the larger counts, not both
        (`expost.search.new_rows`).
    target, columns
        Names of the column that is predicted and of those it is predicted from, as far as they are known.
    schema_fingerprint, data_fingerprint
        SHA-256 of the schema, and of the data only where that was asked for: the guarantee does not cover it, and
        ``not_covered`` then says so.

    Examples
    --------
    >>> r = Release(status="released", method="fixed", epsilon_generation=0.5, epsilon_worst_case=0.5)
    >>> r.epsilon
    0.5
    >>> Release.from_json(r.to_json()) == r
    True
    """

    status: Literal["released", "short", "refused"]
    method: str
    epsilon_generation: float = 0.0
    epsilon_test: float = 0.0
    epsilon_probe: float = 0.0
    epsilon_worst_case: float = math.inf
    hypothesis: Any = None
    level: int | None = None
    n_levels: int | None = None
    promise: Promise = field(default_factory=lambda: Promise("no accuracy is promised"))
    perturbation: str | None = None
    calibration: str | None = None
    noise: Literal["exact", "over the reals"] = "exact"
    secure: bool = True
    neighbours: str = NEIGHBOURS
    unit: Literal["row", "person"] = "row"
    preparation: FrozenMapping = field(default_factory=FrozenMapping)
    parameters: FrozenMapping = field(default_factory=FrozenMapping)
    exact: tuple[str, ...] = ()
    charged: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    not_covered: tuple[str, ...] = ()
    versions: FrozenMapping = field(default_factory=versions)
    id: str = field(default_factory=lambda: secrets.token_hex(8), compare=False)
    date: str | None = field(default_factory=today, compare=False)
    target: str | None = None
    columns: tuple[str, ...] = ()
    schema_fingerprint: str | None = None
    data_fingerprint: str | None = None
    delta: float = 0.0
    epsilon_conversion: float = 0.0
    curve: FrozenMapping = field(default_factory=FrozenMapping)
    held_out: int = 0

    def __post_init__(self) -> None:
        for name in (*_PARTS, "epsilon_worst_case"):
            value = getattr(self, name)
            if not value >= 0:
                raise ValueError(f"{name} must be a non-negative number, got {value}")
        validation.check_delta(self.delta)
        if self.delta == 0.0 and (self.epsilon_conversion or self.curve):
            raise ValueError("a release without delta has no curve, and nothing to convert")
        if self.curve and bool(self.held_out) != ("tested" in self.curve):
            raise ValueError("a curve says what tests cost apart where rows were held out for them, and nowhere else")
        for name, allowed in (("status", STATUSES), ("unit", ("row", "person"))):
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name} must be {' or '.join(map(repr, allowed))}, got {getattr(self, name)!r}")
        if self.epsilon_worst_case < self.epsilon:
            raise ValueError(
                f"an outcome that cost epsilon = {self.epsilon} cannot have a worst case of {self.epsilon_worst_case}"
            )
        if self.status == "refused" and self.hypothesis is not None:
            raise ValueError("a refusal carries no hypothesis")
        if self.status == "short" and (self.hypothesis is None or "shown" not in self.parameters):
            raise ValueError("a release that is short of its goal carries a hypothesis and says what was shown of it")
        if self.continues is not None and not 0 <= self.epsilon_increment <= self.epsilon:
            raise ValueError("a release that continues another adds at least nothing and at most its epsilon to it")
        if not isinstance(self.id, str) or not self.id:
            raise ValueError("id must be text")
        if self.continues == self.id:
            raise ValueError("a release cannot continue itself")
        if self.date is not None and not is_day(self.date):
            raise ValueError(f"date must be a day, as 2026-03-31, got {self.date!r}")
        for item in dataclasses.fields(self):
            value = getattr(self, item.name)
            if isinstance(value, Mapping | list | tuple) or hasattr(value, "__array__"):
                object.__setattr__(self, item.name, freeze(value))

    @property
    def epsilon(self) -> float:
        """Total ex-post privacy loss of this outcome (never below the exact sum of its parts)."""
        if self.held_out:
            models = add_losses(self.epsilon_generation, self.epsilon_conversion)
            return add_losses(self.epsilon_probe, max(models, self.epsilon_test))
        return add_losses(*(getattr(self, name) for name in _PARTS))

    @property
    def epsilon_usual(self) -> float:
        """What the same outcome cost in the usual, less strict sense of (ε, δ); ``epsilon`` if it is pure.

        For every set S of outcomes P[S] ≤ E′[e^ε; S] + δ, ε that of each outcome. Other libraries state one ε for all
        outcomes, beforehand: that is to be compared with this one as the price of what came out, and with
        ``epsilon_worst_case`` as a guarantee. After an interruption of which only ``epsilon`` is known it is that.
        """
        if not self.curve:
            return self.epsilon
        if "times" in self.curve:
            usual = self._clock().usual_epsilon(self.curve["rho"], self.curve["pure"], self.delta)
        else:
            usual = self._models_curve().usual_epsilon(self.delta)
        return min(self.epsilon, max(usual, self._tests_curve().usual_epsilon(self.delta)))

    def _clock(self) -> Clock:
        return Clock(tuple(self.curve["times"]))

    def least_epsilon(self) -> float:
        """Return what ε may not be below: where units were held out in secret, by both curves at once."""
        tests = self._tests_curve()
        if "times" in self.curve:
            least = self._clock().epsilon(self.curve["rho"], self.curve["pure"], self.delta, tests.most)
        else:
            least = self.account_curve().epsilon(self.delta)
        return max(least, tests.epsilon(self.delta))

    @property
    def continues(self) -> str | None:
        """Id of the release that this one goes on from: ``epsilon`` is then that of both together."""
        found = self.parameters.get("continues")
        return found if isinstance(found, str) else None

    @property
    def epsilon_increment(self) -> float:
        """What this release costs beside the one it continues; all of ``epsilon`` if it continues none."""
        found = self.parameters.get("epsilon_increment", self.epsilon)
        return float(found) if self.continues is not None else self.epsilon

    def epsilon_beside(self, ids: Container[str]) -> float:
        """Return what this release costs where releases of those ids are counted already."""
        return self.epsilon_increment if self.continues in ids else self.epsilon

    @property
    def risk_factor(self) -> float:
        """The factor e^ε by which any observer's odds about one row (or person) can have moved.

        At a δ, but for it, those of one value of the row against one other have grown by no more.
        """
        return exp(self.epsilon)

    @property
    def shown(self) -> float | Mapping[str, float] | None:
        """The bound that tests have shown for the model, in the units that the goal was stated in; None if none was.

        For a goal of at least so much (R²) it is a lower bound, for others an upper one; of several at once a mapping
        has the bound of each of which one was shown, by its name. What is stated is false in at most γ of all runs,
        whichever way they end, as ``promise`` says of a model that misses; not of those that end one way.
        """
        found, promise = self.parameters.get("shown"), self.promise
        if isinstance(found, Mapping):
            return found
        if not isinstance(found, int | float):
            return None
        if promise.at_most_caller_units is None or not promise.at_most:
            return float(found)
        return found * (promise.at_most_caller_units / promise.at_most) * (1.0 + 2.0**-50)  # not less by rounding

    @property
    def numbers_shown(self) -> dict[str, float]:
        """The same by the names of goals, as ``promise.numbers`` has what was asked; empty where nothing was shown."""
        found = self.shown
        if isinstance(found, Mapping):
            return dict(found)
        return {} if found is None or self.promise.goal is None else {self.promise.goal: found}

    @property
    def closest(self) -> str:
        """How close a search came that did not meet its goal, in words; empty where nothing was shown."""
        return closest(self)

    @property
    def to_compare(self) -> str:
        """What a constant reaches, in words: as it was measured, or in general."""
        return to_compare(self)

    @property
    def going_on(self) -> str:
        """What the next level of a search that did not meet its goal would have cost, in words; empty if unknown."""
        return going_on(self)

    def discarded(self) -> Release:
        """Return the refusal that a release short of its goal is without its model; it costs the same."""
        if self.status != "short":
            return self
        return dataclasses.replace(self, status="refused", hypothesis=None, level=None)

    def __str__(self) -> str:
        return summary(self)

    def _repr_html_(self) -> str:
        return summary_html(self)

    def plot_price(self) -> Any:
        """Draw what was spent on what, beside what no outcome could have exceeded.

        Returns a figure of matplotlib (``pip install 'expost[plot]'``).
        """
        from expost.release.price import plot_price

        return plot_price(self)

    def predict(
        self, rows: Any, *, on_invalid: Literal["error", "clip"] = "error", cut_off: float | None = None
    ) -> NDArray[Any]:
        """Predict from the release alone; this costs no privacy.

        Parameters
        ----------
        rows : frame of pandas, Polars or PyArrow, mapping of names to columns, array, path, or stream
            Of a file, a folder or a pattern, which is read in pieces; what hands out batches of Arrow, which is read
            once; or what :func:`~expost.table.files.open_disk` opened, with how CSV files are written. Needs no target.
            Columns of an array stand in the order of :attr:`columns`; others are found by name.
        on_invalid : {"error", "clip"}, default="error"
            Whether cells that cannot be read raise :class:`~expost.exceptions.InvalidRows`, which names the first such
            row, or count as missing. Numbers outside their bounds are moved to the nearest either way.
        cut_off : float, optional
            For models for a log loss: the probability above which the positive label is given; a half by default.

        Returns
        -------
        ndarray of shape (n_rows,)
            Labels, or targets within their bounds.

        Raises
        ------
        ValueError
            If the release holds no model, as a refusal does not.
        """
        scorer = scorer_of(self)
        return scorer.answers(scorer.margins(rows, on_invalid), cut_off)

    def predict_proba(self, rows: Any, *, on_invalid: Literal["error", "clip"] = "error") -> NDArray[np.float64]:
        """Return the probability of each class, where the model estimates probabilities.

        Parameters
        ----------
        rows, on_invalid
            As in :meth:`predict`.

        Returns
        -------
        ndarray of shape (n_rows, 2)
            Columns in the order of ``parameters["classes"]``.
        """
        scorer = scorer_of(self)
        scorer.require_odds()
        return scorer.chances(scorer.margins(rows, on_invalid))

    def evaluate(
        self,
        table: Any,
        y: Any = None,
        *,
        margin: float | Literal["auto"] | None = None,
        failure_probability: float = defaults.FAILURE_PROBABILITY,
        max_epsilon: float = defaults.MAX_EPSILON,
        bins: int | None = None,
        cut_offs: Sequence[float] = (),
        residuals_within: float | None = None,
        new_rows: HeldOut | str | os.PathLike[str] | None = None,
        public_rows: bool = False,
        on_invalid: Literal["error", "clip"] = "clip",
        engine: Any = None,
        delta: float = 0.0,
        ledger: Ledger | None = None,
        random_state: Any = None,
    ) -> Evaluation:
        """Find out what the model is worth on private rows, from one noisy histogram, and pay for it.

        It costs what the margin asks for, known before a row is read (:mod:`expost.release.evaluation`), and that adds
        up with what the model cost (:func:`expost.compose`).

        Parameters
        ----------
        table : frame of pandas, Polars or PyArrow, mapping of names to columns, path, or Dask DataFrame
            The rows, the target among the columns; as in :meth:`expost.AccuracyFirstModel.fit`.
        y : array-like of shape (n_rows,), optional
            The target, where it is not among the columns.
        margin : float or "auto", optional
            Every count that is shown, as a share of the rows, is right within it. Where persons have several rows every
            person counts alike, as in the fit. By default 0.02, which is refused if it would cost more than the model
            did; "auto" then takes the one that costs as much, if that is at most 0.2.
        failure_probability : float, default=0.1
            γ: the chance, over the noise, that any band is missed.
        max_epsilon : float, default=2.0
            A margin that would cost more is refused before a row is read.
        bins : int, optional
            Bins of scores (32 by default), or each of targets and of residuals (16). The price grows with their root.
        cut_offs : sequence of float, default=()
            Probabilities that are to be edges of bins, beside those that are and the model's own (a half); at most 100.
        residuals_within : float, optional
            Where bins of residuals end, in units of the target (of its transform); larger ones count as that. By
            default it follows from the goal.
        new_rows : HeldOut or path, optional
            Only the rows that the fit held out (``holdout``), of the same table in the same order: ``model.held_out_``,
            or the file that it was saved to.
        public_rows : bool, default=False
            The rows are public: no noise, no charge. Never for rows of anybody who is to be protected.
        on_invalid : {"error", "clip"}, default="clip"
            What cells do that cannot be read: count as missing, a label as the negative class, a target as the middle
            of its bounds; or stop, which the guarantee does not cover, because it tells of a row.
        engine : None, "local", "dask" or an engine, default=None
            As in a fit.
        delta : float, default=0.0
            What a budget (:func:`expost.budget`) or ledger at a δ counts by; the noise is the same.
        ledger : Ledger, optional
            The budget that is charged, or refuses before anything is spent.
        random_state : None, int or RandomState, default=None
            As in a fit: anything but ``None`` is simulation and protects nobody.

        Returns
        -------
        expost.release.Evaluation
            Tables, curves and bands; its ``release`` is what was paid.

        Raises
        ------
        TargetUnreachable
            The margin would cost more than ``max_epsilon``, or more than the model did although none was stated;
            nothing was spent.
        """
        from expost.release.evaluation_count import evaluate

        return evaluate(
            self,
            table,
            y,
            margin=margin,
            failure_probability=failure_probability,
            max_epsilon=max_epsilon,
            bins=bins,
            cut_offs=cut_offs,
            residuals_within=residuals_within,
            new_rows=new_rows,
            public_rows=public_rows,
            on_invalid=on_invalid,
            engine=engine,
            delta=delta,
            ledger=ledger,
            random_state=random_state,
        )

    def to_sklearn(self) -> Pipeline:
        """Return the model as a fitted pipeline of scikit-learn's own parts, which scores without this library.

        Returns
        -------
        sklearn.pipeline.Pipeline
            Predicts as :meth:`predict` with ``on_invalid="clip"`` does, from frames with the model's columns if they
            have names and from arrays otherwise. Text must have no spaces around it, columns of numbers hold
            numbers, and missing text is None or NaN (``pandas.NA`` is an error). Where a column's decimal mark is a
            comma its numbers may be text; there 1.5 is read as 1,5 is, while :meth:`predict` refuses it, so thousands
            must have no points. Times in a frame of Polars must have no zone: NumPy is handed them in UTC. Pickled or
            saved with joblib it needs scikit-learn and NumPy alone to be loaded.
        """
        from expost.release.export import to_sklearn

        return to_sklearn(self)

    def account_curve(self) -> Curve:
        """Return what the release cost as a Rényi curve; a pure one costs its ε at every order.

        Raises
        ------
        ValueError
            If only its ε at δ is known, as after an interruption.
        """
        if self.delta == 0.0:
            return Curve.ex_post(self.epsilon)
        if not self.curve:
            raise ValueError("of this release only epsilon at delta is known, not its curve")
        return self._models_curve().joined(self._tests_curve()) if self.held_out else self._models_curve()

    def _models_curve(self) -> Curve:
        """Return the curve of all, or of what was not spent on tests of rows held out."""
        return Curve.stated(self.curve["orders"], self.curve["losses"], self.curve["most"])

    def _tests_curve(self) -> Curve:
        """Return the curve of what tests of rows held out have cost, and what reads all rows."""
        said = self.curve.get("tested")
        return NOTHING if said is None else Curve.stated(said["orders"], said["losses"], said["most"])

    def with_details(self, **details: Any) -> Release:
        """Return a copy with further descriptive fields set; losses and hypothesis stay as they are."""
        fixed = {"status", "hypothesis", *_PARTS, *APPROXIMATE, "held_out", "id", "date"}
        if fixed & set(details):
            raise ValueError(f"{sorted(fixed & set(details))} are settled by the search")
        return dataclasses.replace(self, **details)

    def to_dict(self) -> dict[str, Any]:
        """Return plain dictionaries and lists, ready for JSON; ``epsilon`` and ``risk_factor`` included.

        What belongs to δ is left out where there is none.
        """
        said = {item.name: plain(getattr(self, item.name)) for item in dataclasses.fields(self)}
        if self.delta == 0.0:
            said = {name: value for name, value in said.items() if name not in APPROXIMATE}
        if self.unit == "row":  # as files from before there were others
            del said["unit"]
        if not self.held_out:  # likewise
            del said["held_out"]
        for name in ("goals", "costs"):  # likewise
            if getattr(self.promise, name) is None:
                del said["promise"][name]
        usual = {} if self.delta == 0.0 else {"epsilon_usual": plain(self.epsilon_usual)}
        return {
            "format": FORMAT,
            "epsilon": plain(self.epsilon),
            **usual,
            "risk_factor": plain(self.risk_factor),
            **said,
        }

    def to_json(self, *, indent: int | None = 2) -> str:
        """Return the release as JSON. JSON has no infinity: it is written ``{"float": "inf"}``."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Release:
        """Read what :meth:`to_json` wrote; an inconsistent or foreign text is a ``ValueError``.

        Every field is checked (:mod:`expost.release.stored`), so that whatever is done with the release afterwards is
        done with values of the types, sizes and lengths that it has to have.
        """
        from expost.release.stored import read_release

        return read_release(text)
