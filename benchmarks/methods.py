"""From arrays in memory to a release: seconds for both methods of the paper, beside limits and a peer in one run.

    PYTHONPATH=. python benchmarks/methods.py [--peer PATH]

PATH is a checkout of the authors' code (steven7woo/Accuracy-First-Differential-Privacy); without it the comparison is
skipped. KDD-99 is read from $EXPOST_DATA or scikit-learn's cache; without it rows of the same shape are generated.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression, Ridge

from experiments.datasets import load_kddcup99, load_twitter_buzz
from expost import AccuracyFirstLogisticRegression, AccuracyFirstRidge, __version__

RESULT = Path(__file__).parent / "results" / "methods.md"
ALPHA, LAMBDA, GAMMA, LEVELS, N = 0.05, 0.005, 0.1, 1000, 100_000

# Runs inside the peer's own folder: its optimum and its noise-reduction search, nothing else of it.
PEER_DRIVER = """
import json, sys, time, warnings
warnings.simplefilter("ignore")
import numpy as np
import logist, output_pert, theory
data = np.load(sys.argv[1])
X, Y = data["X"], data["y"]
alpha, lamb, gamma, steps = 0.05, 0.005, 0.1, 1000
n, dim = X.shape
start = time.perf_counter()
beta, err = logist.logistic_regression(X, Y, lamb)
norm = logist.compute_max_norm(lamb)
result = output_pert.run_output_pert(
    beta, alpha, gamma, norm, steps, 1.0 / n,
    4.0 * theory.output_pert_logist_get_epsilon(alpha, n, dim, lamb),
    logist.get_sv_sensitivity(norm, n), logist.compute_opt_sensitivity(n, dim, lamb), (X, Y, err),
    lambda X, Y, b: logist.compute_err(X, Y, lamb, b))
print(json.dumps({"seconds": time.perf_counter() - start, "level": int(result[1][4])}))
"""


def best_of(times: int, work: Callable[[], object]) -> tuple[float, object]:
    seconds, result = float("inf"), None
    for _ in range(times):
        start = time.perf_counter()
        result = work()
        seconds = min(seconds, time.perf_counter() - start)
    return seconds, result


def generated(p: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.gamma(0.3, 1.0, size=(N, p))
    X /= np.abs(X).sum(axis=1).max()
    score = (X - X.mean(axis=0)) @ rng.normal(size=p)
    return X, score / np.abs(score).max()


def ridge_task() -> tuple[str, np.ndarray, np.ndarray]:
    try:
        data = load_twitter_buzz(normalisation="q95").sample(N)
        return "Twitter q95", data.X, data.y
    except FileNotFoundError:
        return ("generated", *generated(77, 1))


def logistic_task() -> tuple[str, np.ndarray, np.ndarray]:
    try:
        data = load_kddcup99().sample(N)
        return "KDD-99", data.X, data.y
    except FileNotFoundError:
        X, score = generated(38, 2)
        return "generated", X, np.where(score > 0, 1.0, -1.0)


def run_peer(path: Path, X: np.ndarray, y: np.ndarray) -> dict[str, float]:
    code = path / "code" if (path / "code").is_dir() else path
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "data.npz"
        np.savez(file, X=X, y=y)
        # its own modules import matplotlib at the top
        done = subprocess.run(
            [sys.executable, "-c", PEER_DRIVER, str(file)], cwd=code, check=True, capture_output=True, text=True
        )
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", type=Path, help="checkout of the authors' code")
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    common = {
        "excess_risk": ALPHA,
        "regularization": LAMBDA,
        "failure_probability": GAMMA,
        "feature_bound": 1.0,
        "fit_intercept": False,
        "max_epsilon": None,
    }
    lines = [
        f"expost {__version__}, n = {N:,}, T = {LEVELS}, α = {ALPHA}, λ = {LAMBDA}, γ = {GAMMA}, "
        "calibration published, secure noise; best of the repeats, arrays in memory to release.",
        "",
        "| task | seconds | first run | beside it, same run | ratio |",
        "|---|---|---|---|---|",
    ]

    name, X, y = ridge_task()
    ridge = AccuracyFirstRidge(
        target_bound=1.0, method="above_threshold", calibration="published", n_levels=LEVELS, **common
    )
    cold, _ = best_of(1, lambda: ridge.fit(X, y))
    warm, _ = best_of(options.repeat, lambda: ridge.fit(X, y))
    plain, _ = best_of(options.repeat, lambda: Ridge(alpha=LAMBDA * N, fit_intercept=False).fit(X, y))
    lines.append(
        f"| CovNR, {name}, p = {X.shape[1]} | {warm:.2f} | {cold:.2f} "
        f"| sklearn Ridge {plain:.2f} s | {warm / plain:.0f}× |"
    )

    name, X, y = logistic_task()
    logistic = AccuracyFirstLogisticRegression(
        classes=(-1.0, 1.0), method="above_threshold", calibration="published", n_levels=LEVELS, **common
    )
    cold, _ = best_of(1, lambda: logistic.fit(X, y))
    warm, _ = best_of(options.repeat, lambda: logistic.fit(X, y))
    solver = LogisticRegression(C=1 / (LAMBDA * N), fit_intercept=False, tol=1e-9, solver="newton-cholesky")
    plain, _ = best_of(options.repeat, lambda: solver.fit(X, y))
    lines.append(
        f"| OutputNR, {name}, p = {X.shape[1]} | {warm:.2f} | {cold:.2f} "
        f"| sklearn LogisticRegression {plain:.2f} s | {warm / plain:.1f}× |"
    )
    if options.peer is None:
        lines += ["", "The authors' code was not given (--peer), so the comparison with it was skipped."]
    else:
        peer = run_peer(options.peer, X, y)
        again, _ = best_of(1, lambda: logistic.fit(X, y))
        lines.append(
            f"| OutputNR, {name}, against the authors' code | {again:.2f} | | {peer['seconds']:.0f} s "
            f"(stopped at level {peer['level']} of {LEVELS}; expost at {logistic.release_.level}) "
            f"| {peer['seconds'] / again:.0f}× faster |"
        )
    text = (
        "# Speed of the methods\n\n`PYTHONPATH=. python benchmarks/methods.py --peer PATH`\n\n"
        + "\n".join(lines)
        + "\n"
    )
    print(text)
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
