"""diffprivlib's linear models at an oracle's ε; runs in an environment of its own, started by tables.py --peer.

python peer_diffprivlib.py rows.npz '{"task": ..., "goal": ..., "draws": ...}'
"""

from __future__ import annotations

import json
import sys
import warnings

import numpy as np
from one_shot import Oracle, meets, quality


def independent(x: np.ndarray, blocks: list[int]) -> np.ndarray:
    """Return columns that are not redundant beside a constant: without each category's commonest and unused levels.

    Without a λ redundant columns would leave the noise nothing to be small against.
    """
    used, place = list(range(1, blocks[0])), blocks[0]
    for size in blocks[1:]:
        counts = np.count_nonzero(x[:, place : place + size], axis=0)
        used += [place + i for i in range(size) if counts[i] > 0 and i != counts.argmax()]
        place += size
    return np.array(used)


def main() -> None:
    warnings.simplefilter("ignore")
    import diffprivlib
    from diffprivlib.models import LinearRegression, LogisticRegression

    asked = json.loads(sys.argv[2])
    data = np.load(sys.argv[1])
    x, y, task, scale = data["x"], data["y"], asked["task"], asked["scale"]
    lowest = np.repeat([-1.0] + [0.0] * (len(asked["blocks"]) - 1), asked["blocks"])  # indicators are not negative
    used = independent(x, asked["blocks"])

    def draw(epsilon: float, lam: float, seed: int) -> np.ndarray | None:
        if task == "classification":
            model = LogisticRegression(
                epsilon=epsilon, data_norm=1.0, C=1.0 / (lam * len(y)), fit_intercept=False, random_state=seed
            )
            return model.fit(x, y > 0).coef_.ravel()
        bounds = (lowest[used], np.ones(len(used)))
        model = LinearRegression(epsilon=epsilon, bounds_X=bounds, bounds_y=(-1.0, 1.0), random_state=seed)
        model.fit(x[:, used] * scale, y)
        theta = np.zeros(x.shape[1])
        theta[0], theta[used] = model.intercept_, model.coef_
        return theta * scale

    def met(epsilon: float, lam: float, seed: int) -> bool:
        theta = draw(epsilon, lam, seed)
        return meets(task, quality(task, x @ theta, y), asked["goal"])

    lams = [10 ** (step / 2) for step in (-7, -6, -8, -5, -9, -4, -10)] if task == "classification" else [0.0]
    found = Oracle(met, lams, asked["draws"]).ask()
    thetas = [] if found is None else [draw(*found, seed).tolist() for seed in range(asked["draws"])]
    print(json.dumps({"version": diffprivlib.__version__, "found": found, "thetas": thetas}))


if __name__ == "__main__":
    main()
