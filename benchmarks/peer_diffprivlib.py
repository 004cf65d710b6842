"""diffprivlib's linear models at an oracle's ε; runs in an environment of its own, started by tables.py --peer.

python peer_diffprivlib.py rows.npz '{"task": ..., "goal": ..., "draws": ...}'
"""

from __future__ import annotations

import json
import sys
import warnings

import numpy as np
from one_shot import Oracle, meets, quality


def main() -> None:
    warnings.simplefilter("ignore")
    import diffprivlib
    from diffprivlib.models import LinearRegression, LogisticRegression

    asked = json.loads(sys.argv[2])
    data = np.load(sys.argv[1])
    x, y, task, scale = data["x"], data["y"], asked["task"], asked["scale"]
    box = asked["box"]  # columns in [−1, 1], the constant first; the others in [0, 1]
    lowest = np.where(np.arange(x.shape[1]) < box, -1.0, 0.0)[1:]

    def draw(epsilon: float, lam: float, seed: int) -> np.ndarray | None:
        if task == "classification":
            model = LogisticRegression(
                epsilon=epsilon, data_norm=1.0, C=1.0 / (lam * len(y)), fit_intercept=False, random_state=seed
            )
            return model.fit(x, y > 0).coef_.ravel()
        model = LinearRegression(
            epsilon=epsilon, bounds_X=(lowest, np.ones(len(lowest))), bounds_y=(-1.0, 1.0), random_state=seed
        ).fit(x[:, 1:] * scale, y)
        return np.concatenate([[model.intercept_], model.coef_]) * scale

    def met(epsilon: float, lam: float, seed: int) -> bool:
        theta = draw(epsilon, lam, seed)
        return meets(task, quality(task, x @ theta, y), asked["goal"])

    lams = (1e-4, 1e-3, 1e-5, 1e-2) if task == "classification" else (0.0,)
    found = Oracle(met, lams, asked["draws"]).ask()
    thetas = [] if found is None else [draw(*found, seed).tolist() for seed in range(asked["draws"])]
    print(json.dumps({"version": diffprivlib.__version__, "found": found, "thetas": thetas}))


if __name__ == "__main__":
    main()
