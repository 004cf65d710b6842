"""Rows in the Euclidean ball, in integers: the bound holds exactly."""

from __future__ import annotations

import numpy as np
import pytest

from expost.table.rows import ONE, Rows


class TestRows:
    def test_the_euclidean_ball_is_larger(self):
        x = np.full((1, 4), ONE // 2, dtype=np.int32)
        y = np.zeros(1, dtype=np.int32)
        assert Rows(x, y, "l2").norm == "l2"
        with pytest.raises(ValueError, match="ℓ₁ norm above 1"):
            Rows(x, y)

    @pytest.mark.parametrize("wide", [ONE // 2 + 1, -(2**31)])
    def test_longer_rows_are_refused(self, wide):
        x = np.full((1, 4), ONE // 2, dtype=np.int32)
        x[0, 0] = wide
        with pytest.raises(ValueError, match="ℓ₂ norm above 1; shorten them"):
            Rows(x, np.zeros(1, dtype=np.int32), "l2")
