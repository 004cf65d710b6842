"""A path that is kept: the same values come back, and its text tells nothing by its length."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from expost.noise import NoisePath, SphericalPath
from expost.noise.laplace import KeptLevels

LEVELS = [0.01, 0.02, 0.5, 3.0]
VALUES = np.array([2**61, -5, 0, 17])


def paths(seed: int) -> list[NoisePath | SphericalPath]:
    wide = np.array([2**90, -(2**70), 3, 0], dtype=object)
    return [
        NoisePath(VALUES, 2**42, LEVELS, random_state=seed),
        NoisePath(wide, 2**42, LEVELS, random_state=seed),
        SphericalPath(VALUES / 2**61, 0.1, LEVELS, random_state=seed),
    ]


@pytest.mark.parametrize("which", range(3), ids=["integers", "wide integers", "floats"])
def test_what_is_kept_is_the_path_itself(which):
    path = paths(0)[which]
    kept = KeptLevels.of(path)
    for later in (kept, kept.after(2)):
        read = KeptLevels.from_bytes(later.to_bytes(), later.first, 4, later.kind)
        for step in path:
            if step.index >= later.first:
                assert read[step.index].tolist() == step.values.tolist()
                assert read[step.index].dtype == step.values.dtype
            else:
                with pytest.raises(IndexError):
                    read[step.index]
    with pytest.raises(IndexError):
        kept[4]


def test_the_length_is_public():
    """Neither how often a path jumps nor how large its noise is shows: all seeds and values give the same length."""
    lengths = {len(KeptLevels.of(path).to_bytes()) for seed in range(20) for path in paths(seed)[:2]}
    assert lengths == {4 * 4 * 16}
    jumps = {paths(seed)[0]._jumps.size for seed in range(20)}
    assert len(jumps) > 1  # as a text that stores jumps would


def test_it_refuses_to_leave_otherwise():
    kept = KeptLevels.of(paths(0)[0])
    assert repr(kept) == "KeptLevels(levels 0 to 3)"
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(kept)
    for text in (b"", kept.to_bytes()[:-1]):
        with pytest.raises(ValueError, match="not the values"):
            KeptLevels.from_bytes(text, 0, 4, "integers")


def test_values_beyond_the_width_do_not_raise():
    kept = KeptLevels(0, (np.array([2**200, -(2**200)], dtype=object),))
    assert len(kept.to_bytes()) == 32
