"""The two data sets of the paper's experiments, prepared as the paper prepared them (theory A8).

Rows and targets are divided by their largest norm *in the data*. That is not a private step; it is fine for a
simulation on data one may look at, and nothing that fits a model calls it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from expost.table.bounds_encoding import Preparation
from expost.table.rows import Rows

KDD_FILES = ("kddcup.data_10_percent.gz", "kddcup.data_10_percent", "kddcup.data.gz", "kddcup.data")
TWITTER_FILES = ("Twitter.data", "Twitter.data.gz", "twitter_buzz_sample.csv.gz", "twitter_buzz_sample.csv")
TWITTER_FEATURES = 77
_KDD_SOURCE = "KDD Cup 1999, kddcup.data_10_percent.gz (UCI repository, https://kdd.ics.uci.edu/databases/kddcup99)"
_TWITTER_SOURCE = "Buzz in social media, regression/Twitter (UCI repository, https://archive.ics.uci.edu/dataset/248)"
_KDD_COLUMNS = 42
_KDD_TEXT = (1, 2, 3)
_KDD_LOGARITHM = (0, 1, 2)  # duration, src_bytes, dst_bytes, once the text columns are gone

Normalisation = Literal["maximum", "q95"]


@dataclass(frozen=True, repr=False)
class Dataset:
    """Prepared rows with ‖x‖₁ ≤ 1 and |y| ≤ 1, and where they came from.

    Attributes
    ----------
    X, y
        Features, and targets in [−1, 1] (±1 for classification).
    task
        ``"regression"`` or ``"classification"``.
    notes
        What a reader of results on it has to know.
    """

    name: str
    task: Literal["regression", "classification"]
    X: NDArray[np.float64]
    y: NDArray[np.float64]
    notes: tuple[str, ...]

    def sample(self, n: int, *, seed: int = 0) -> Dataset:
        """Draw n rows: without replacement if there are enough, with replacement (and a note) otherwise."""
        rng = np.random.default_rng(seed)
        have = len(self.y)
        chosen = rng.choice(have, size=n, replace=n > have)
        how = "with" if n > have else "without"
        note = f"{n:,} rows drawn {how} replacement from {have:,} (seed {seed})"
        return Dataset(self.name, self.task, self.X[chosen], self.y[chosen], (*self.notes, note))

    def rows(self) -> Rows:
        """Return the rows in fixed point, ready for a search."""
        target = (-1.0, 1.0) if self.task == "regression" else None
        recipe = Preparation(
            bounds=None, feature_bound=1.0, target=target, intercept_weight=0.0, n_columns=self.X.shape[1]
        )
        if self.task == "regression":
            return recipe.prepare_regression(self.X, self.y)
        return recipe.prepare_classification(self.X, self.y, (-1.0, 1.0))

    def __repr__(self) -> str:
        return f"Dataset({self.name!r}, n={len(self.y)}, p={self.X.shape[1]})"


def load_kddcup99(path: str | Path | None = None) -> Dataset:
    """Load KDD Cup 1999 (the 10 % subset) as the paper's logistic task, p = 38.

    Parameters
    ----------
    path
        The file or its folder. Otherwise ``$EXPOST_DATA`` is searched, then scikit-learn's own fetcher is asked.

    Notes
    -----
    The three text columns are dropped, duration, src_bytes and dst_bytes become log(1 + x), the label is −1 for
    ``normal.`` and +1 for any attack, rows are divided by the largest ℓ₁ norm.
    """
    found = _find(path, KDD_FILES, _KDD_SOURCE)
    if found is not None:
        features, attack = _read_kdd(found)
        origin = found.name
    else:
        features, attack = _fetch_kdd()
        origin = "scikit-learn's fetcher"
    for column in _KDD_LOGARITHM:
        features[:, column] = np.log1p(features[:, column])
    y = np.where(attack, 1.0, -1.0)
    features /= _largest(sum(np.abs(column) for column in features.T))
    X = np.ascontiguousarray(features)
    return Dataset("kdd99", "classification", X, y, (f"from {origin}", "rows divided by their largest ℓ₁ norm"))


def load_twitter_buzz(path: str | Path | None = None, *, normalisation: Normalisation = "maximum") -> Dataset:
    """Load "Buzz in social media" (Twitter) as the paper's ridge task, p = 77.

    Parameters
    ----------
    path
        The file or its folder; otherwise ``$EXPOST_DATA`` is searched. ``Twitter.data`` (77 features, then the
        target) gives the paper's own setting. ``twitter_buzz_sample.csv.gz`` has a 0/1 label instead of the target:
        there log(1 + NAD_6), the last feature, is predicted.
    normalisation
        ``"maximum"`` divides rows by the largest ℓ₁ norm, as the paper does; ``"q95"`` clips them at its 95th
        percentile instead, which leaves something to learn.
    """
    if normalisation not in ("maximum", "q95"):
        raise ValueError(f"normalisation must be 'maximum' or 'q95', got {normalisation!r}")
    found = _find(path, TWITTER_FILES, _TWITTER_SOURCE)
    if found is None:
        raise FileNotFoundError(_missing("Twitter buzz", TWITTER_FILES, _TWITTER_SOURCE))
    table = _read_csv(found)
    if table.num_columns != TWITTER_FEATURES + 1:
        raise ValueError(f"{found.name} has {table.num_columns} columns where {TWITTER_FEATURES + 1} were expected")
    values = _floats(table, range(table.num_columns), found)
    features = values[:, :TWITTER_FEATURES]
    notes: tuple[str, ...] = (f"from {found.name}",)
    if found.name.startswith("twitter_buzz_sample"):
        target = features[:, -1]
        notes += ("target log(1 + NAD_6), the last feature: this sample has no mean-NAD target",)
        notes += ("buzz rows over-represented",)
    else:
        target = values[:, -1]
    y = np.log1p(target)
    norms = np.abs(features).sum(axis=1)
    if normalisation == "maximum":
        X = features / _largest(norms)
        notes += ("rows divided by their largest ℓ₁ norm",)
    else:
        limit = _largest(np.quantile(norms, 0.95))
        X = features / np.maximum(norms, limit)[:, None]
        notes += ("rows clipped at the 95th percentile of their ℓ₁ norm",)
    name = "twitter" if normalisation == "maximum" else "twitter-q95"
    return Dataset(name, "regression", np.ascontiguousarray(X), y / _largest(np.abs(y)), notes)


def _largest(norms: NDArray[np.float64]) -> float:
    """Return the largest norm; a file of zeros has none to divide by."""
    largest = float(np.max(norms))
    if not 0 < largest < np.inf:
        raise ValueError("the file holds no non-zero row, or cells that are missing or infinite")
    return largest


def _find(path: str | Path | None, names: Sequence[str], source: str) -> Path | None:
    if path is not None:
        given = Path(path)
        if given.is_file():
            return given
        for name in names:
            if (given / name).is_file():
                return given / name
        raise FileNotFoundError(
            f"{given} is neither a file nor a folder with one of {', '.join(names)}. The original is {source}."
        )
    folder = os.environ.get("EXPOST_DATA")
    if folder:
        for name in names:
            if (Path(folder) / name).is_file():
                return Path(folder) / name
    return None


def _missing(what: str, names: Sequence[str], source: str) -> str:
    return (
        f"the {what} data are not here: pass path=, or set EXPOST_DATA to a folder that holds one of "
        f"{', '.join(names)}. The original is {source}."
    )


def _read_csv(path: Path, types: dict[str, Any] | None = None, columns: Sequence[str] | None = None) -> Any:
    """Read a file without a header; its columns are named f0, f1, … ."""
    import pyarrow as pa
    from pyarrow import csv

    try:
        return csv.read_csv(
            path,
            read_options=csv.ReadOptions(autogenerate_column_names=True),
            convert_options=csv.ConvertOptions(column_types=types, include_columns=columns),
        )
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"{path.name} could not be read as a CSV file without a header: {error}") from None


def _floats(table: Any, columns: Sequence[int], path: Path) -> NDArray[np.float64]:
    # column by column is how the table lies in memory: six times faster than filling rows
    values = np.empty((table.num_rows, len(columns)), order="F")
    for k, j in enumerate(columns):
        try:
            values[:, k] = table.column(j).to_numpy()
        except ValueError:
            raise ValueError(f"column {j + 1} of {path.name} is not numeric") from None
    return values


def _read_kdd(path: Path) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    import pyarrow as pa
    import pyarrow.compute as pc

    names = [f"f{j}" for j in range(_KDD_COLUMNS)]
    label = names[-1]
    used = [name for j, name in enumerate(names) if j not in _KDD_TEXT]
    # stating the types spares the reader two thirds of its time
    types = {name: pa.float64() for name in used[:-1]} | {label: pa.dictionary(pa.int32(), pa.string())}
    table = _read_csv(path, types, used)
    normal = pc.is_in(table.column(label).cast(pa.string()), value_set=pa.array(["normal.", "normal"]))
    return _floats(table, range(len(used) - 1), path), ~normal.to_numpy()


def _fetch_kdd() -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    from sklearn.datasets import fetch_kddcup99

    try:
        data, target = fetch_kddcup99(return_X_y=True, percent10=True, n_retries=0)
    except OSError as error:
        raise FileNotFoundError(
            f"{_missing('KDD Cup 1999', KDD_FILES, _KDD_SOURCE)} scikit-learn could not download them either ({error})."
        ) from None
    numeric = np.delete(np.asarray(data, dtype=object), _KDD_TEXT, axis=1).astype(np.float64)
    return numeric, np.asarray(target) != b"normal."
