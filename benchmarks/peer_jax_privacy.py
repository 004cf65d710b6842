"""jax-privacy's clipped, noisy gradients at an oracle's ε; in an environment of its own, started by tables_delta.py.

python peer_jax_privacy.py rows.npz '{"task": ..., "goal": ..., "draws": ..., "delta": ...}'

Full batches with momentum and the mean of the later iterates, as the peer in plain NumPy has them; gradients are
clipped, noised and accounted for by the library. One row replaced moves a sum of clipped gradients by twice the clip.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np
from one_shot import Oracle, meets, quality


def main() -> None:
    import jax
    import jax.numpy as jnp
    import jax_privacy
    from dp_accounting.pld.common import DifferentialPrivacyParameters
    from dp_accounting.pld.privacy_loss_mechanism import GaussianPrivacyLoss
    from jax_privacy.noise_addition import gaussian_privatizer

    asked = json.loads(sys.argv[2])
    data = np.load(sys.argv[1])
    task, delta = asked["task"], asked["delta"]
    x, y = jnp.asarray(data["x"], dtype=jnp.float32), jnp.asarray(data["y"], dtype=jnp.float32)
    labels = task == "classification"
    clip, size = (0.5, 2.0) if labels else (0.25, 2.0)

    def loss(theta: Any, row: Any, target: Any) -> Any:
        u = row @ theta
        if labels:
            return jax.nn.softplus(-target * u)
        return jnp.where(jnp.abs(u - target) <= clip, 0.5 * (u - target) ** 2, clip * jnp.abs(u - target))

    gradient = jax_privacy.clipped_grad(loss, l2_clip_norm=clip, batch_argnums=(1, 2), keep_batch_dim=False)

    def draw(epsilon: float, steps: float, seed: int) -> np.ndarray:
        guarantee = DifferentialPrivacyParameters(epsilon, delta)
        whole = GaussianPrivacyLoss.from_privacy_guarantee(guarantee, sensitivity=2.0 * clip * steps**0.5)
        privatizer = gaussian_privatizer(stddev=whole.standard_deviation, prng_key=jax.random.key(seed))

        @jax.jit
        def step(carried: Any, later: Any) -> Any:
            theta, velocity, state, total = carried
            noisy, state = privatizer.update(gradient(theta, x, y), state)
            velocity = 0.9 * velocity - size * noisy / len(y)
            theta = theta + velocity
            return (theta, velocity, state, total + later * theta), None

        zero = jnp.zeros(x.shape[1])
        start = (zero, zero, privatizer.init(zero), zero)
        end, _ = jax.lax.scan(step, start, jnp.arange(int(steps)) * 2 >= steps)
        return np.asarray(end[3] / (int(steps) // 2), dtype=np.float64)

    def met(epsilon: float, steps: float, seed: int) -> bool:
        return meets(task, quality(task, data["x"] @ draw(epsilon, steps, seed), data["y"]), asked["goal"])

    found = Oracle(met, (64, 160), asked["draws"]).ask()
    print(json.dumps({"version": jax_privacy.__version__, "found": found}))


if __name__ == "__main__":
    main()
