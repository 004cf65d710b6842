"""The loaders on small generated files; no real row is needed, and none is in here."""

import gzip

import numpy as np
import pytest

from experiments.datasets import load_kddcup99, load_twitter_buzz


def kdd_lines(n=20, seed=0):
    rng = np.random.default_rng(seed)
    lines = []
    for i in range(n):
        numbers = [str(v) for v in rng.integers(0, 500, 3)] + [f"{v:.2f}" for v in rng.random(35)]
        label = ("normal.", "smurf.", "neptune.")[i % 3]
        lines.append(",".join([numbers[0], "tcp", "http", "SF", *numbers[1:], label]))
    return lines


@pytest.fixture(autouse=True)
def _no_data_folder(monkeypatch):
    monkeypatch.delenv("EXPOST_DATA", raising=False)


def check_rows(data, p):
    assert data.X.shape[1] == p
    assert data.X.flags.c_contiguous
    norms = np.abs(data.X).sum(axis=1)
    assert norms.max() <= 1 + 1e-12
    assert np.abs(data.y).max() == 1
    rows = data.rows()
    assert (rows.n, rows.p) == data.X.shape
    return norms


@pytest.mark.parametrize("name", ["kddcup.data_10_percent.gz", "kddcup.data"])
def test_kdd_from_a_file_its_folder_or_the_environment(tmp_path, monkeypatch, name):
    lines = kdd_lines()
    text = "\n".join(lines).encode() + b"\n"
    file = tmp_path / name
    file.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    data = load_kddcup99(file)
    norms = check_rows(data, 38)
    assert norms.max() == pytest.approx(1)
    assert data.y.tolist() == [-1.0 if line.endswith("normal.") else 1.0 for line in lines]
    cells = [line.split(",") for line in lines]
    raw = np.array([[float(v) for v in (row[0], *row[4:-1])] for row in cells])
    raw[:, :3] = np.log1p(raw[:, :3])
    assert pytest.approx(raw / raw.sum(axis=1).max()) == data.X
    assert f"from {name}" in data.notes
    again = load_kddcup99(tmp_path)
    monkeypatch.setenv("EXPOST_DATA", str(tmp_path))
    for other in (again, load_kddcup99()):
        assert (other.X == data.X).all()
    assert str(tmp_path) not in " ".join(data.notes)


def test_kdd_with_another_shape_is_refused(tmp_path):
    file = tmp_path / "kddcup.data"
    file.write_text("1,tcp,http,SF,2,normal.\n")
    with pytest.raises(ValueError, match=r"kddcup\.data could not be read"):
        load_kddcup99(file)


def test_kdd_asks_scikit_learn_last(monkeypatch):
    cells = [line.split(",") for line in kdd_lines(9)]
    X = np.array([[v.encode() if j in (1, 2, 3) else float(v) for j, v in enumerate(r[:-1])] for r in cells], object)
    y = np.array([row[-1].encode() for row in cells], object)
    monkeypatch.setattr("sklearn.datasets.fetch_kddcup99", lambda **_: (X, y))
    data = load_kddcup99()
    check_rows(data, 38)
    assert data.y.tolist() == [-1.0, 1.0, 1.0] * 3
    assert "from scikit-learn's fetcher" in data.notes


def test_kdd_nowhere(monkeypatch):
    def offline(**_):
        raise OSError("no network")

    monkeypatch.setattr("sklearn.datasets.fetch_kddcup99", offline)
    with pytest.raises(FileNotFoundError, match=r"kddcup\.data_10_percent\.gz.*kdd\.ics\.uci\.edu.*no network"):
        load_kddcup99()


def twitter_values(n=40, seed=1):
    rng = np.random.default_rng(seed)
    return np.round(rng.gamma(0.3, 50.0, size=(n, 78)), 3)


def test_twitter_in_its_original_format(tmp_path):
    values = twitter_values()
    np.savetxt(tmp_path / "Twitter.data", values, delimiter=",", fmt="%.3f")
    data = load_twitter_buzz(tmp_path)
    norms = check_rows(data, 77)
    assert norms.max() == pytest.approx(1)
    target = np.log1p(values[:, -1])
    assert data.y == pytest.approx(target / target.max())
    assert not any("NAD_6" in note for note in data.notes)


def test_twitter_sample_predicts_its_last_feature(tmp_path):
    values = twitter_values()
    values[:, -1] = np.arange(40) % 2
    with gzip.open(tmp_path / "twitter_buzz_sample.csv.gz", "wt") as stream:
        np.savetxt(stream, values, delimiter=",", fmt="%.3f")
    data = load_twitter_buzz(tmp_path)
    target = np.log1p(values[:, 76])
    assert data.y == pytest.approx(target / target.max())
    assert any("NAD_6" in note for note in data.notes)


def test_twitter_clipped_at_a_quantile_leaves_short_rows_their_length(tmp_path):
    values = twitter_values()
    np.savetxt(tmp_path / "Twitter.data", values, delimiter=",", fmt="%.3f")
    data = load_twitter_buzz(tmp_path, normalisation="q95")
    norms = check_rows(data, 77)
    assert (norms > 1 - 1e-12).sum() == 2  # one in twenty of forty
    assert data.name == "twitter-q95"
    with pytest.raises(ValueError, match="normalisation"):
        load_twitter_buzz(tmp_path, normalisation="median")


@pytest.mark.parametrize("path", [None, "elsewhere"])
def test_twitter_nowhere(path):
    with pytest.raises(FileNotFoundError, match=r"Twitter\.data.*archive\.ics\.uci\.edu"):
        load_twitter_buzz(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1,2,3\n", "3 columns where 78"),
        (",".join(["0"] * 78) + "\n", "no non-zero row"),
        (",".join(["a"] * 78) + "\n", "column 1 of Twitter.data is not numeric"),
        (",".join(["1"] * 78) + "\n1,2\n", "could not be read"),
    ],
)
def test_twitter_files_that_are_not(tmp_path, text, message):
    (tmp_path / "Twitter.data").write_text(text)
    with pytest.raises(ValueError, match=message):
        load_twitter_buzz(tmp_path)


def test_samples(tmp_path):
    np.savetxt(tmp_path / "Twitter.data", twitter_values(), delimiter=",", fmt="%.3f")
    data = load_twitter_buzz(tmp_path)
    few, many = data.sample(10, seed=3), data.sample(100, seed=3)
    assert len(np.unique(few.X, axis=0)) == 10
    assert "drawn without replacement" in few.notes[-1]
    assert "drawn with replacement" in many.notes[-1]
    assert (data.sample(10, seed=3).X == few.X).all()
    assert (data.sample(10, seed=4).X != few.X).any()
