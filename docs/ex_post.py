"""Compute the numbers that `docs/ex_post.md` states, exactly; ``tests/test_documents.py`` compares.

python docs/ex_post.py
"""

from __future__ import annotations

import math
from fractions import Fraction

from expost.shown import up

#: Two outcomes that look the same once their ε is left out: probabilities on a table and on a neighbour.
CHEAP = Fraction(11, 20), Fraction(10, 20)
DEAR = Fraction(4, 20), Fraction(2, 20)
#: δ, and the probability of outcomes whose loss is what is stated.
DELTA, WITHIN = Fraction(1, 100), Fraction(1, 2)
#: Two steps that come to one e^ε = 400 at that δ, one of which a public coin chooses; a telling outcome of each.
STATED = Fraction(400)
STEEP = Fraction(1, 10) * Fraction(1, 2), Fraction(1, 10) * Fraction(1, 2) / 396
FLAT = Fraction(9, 10) * Fraction(1, 800), Fraction(9, 10) * Fraction(1, 800) / 800


def loss(*outcomes: tuple[Fraction, Fraction]) -> float:
    """Return the loss of outcomes that look the same."""
    p, q = (sum(each, Fraction(0)) for each in zip(*outcomes, strict=True))
    return math.log(p / q)


def part(share: Fraction) -> str:
    """Return a share in per cent."""
    return f"{100 * float(share):.3g} %"


def stated() -> dict[str, list[str]]:
    """Return what the page has to say, word for word."""
    assert STEEP[0] / STEEP[1] < STATED < FLAT[0] / FLAT[1]
    assert loss(STEEP, FLAT) > math.log(STATED)
    beyond = [f"{up(1.0 / -math.expm1(-t), 3)}·δ beyond ε + {t:g}" for t in (0.1, 0.7)]
    return {
        "ex_post.md": [
            f"one costs {up(loss(CHEAP))} and the other {up(loss(DEAR))}",
            f"it has told {up(loss(CHEAP, DEAR))}",
            f"with probability {part(DELTA + WITHIN)} instead of {part(DELTA)}",
            f"with probability {part(STEEP[0] + FLAT[0])} instead of {part(DELTA)}",
            f"at most {beyond[0]}, and {beyond[1]}",
        ]
    }


if __name__ == "__main__":
    for document, texts in stated().items():
        for text in texts:
            print(f"{document}: {text}")
