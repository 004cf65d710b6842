"""Which privacy levels a search goes through."""

from __future__ import annotations

import math

import pytest

from expost.search import doubling_rounds, geometric_levels


class TestLevels:
    def test_doubling_rounds(self):
        assert doubling_rounds(1e-5, 4 * 17.70) == 23
        assert [doubling_rounds(1.0, 2.0**k) for k in range(1, 60)] == list(range(1, 60))
        assert doubling_rounds(1.0, 2.0**29 * 1.0001) == 30
        assert doubling_rounds(1.0, 0.5) == 1

    @pytest.mark.parametrize("arguments", [(0.0, 1.0, 3), (2.0, 1.0, 3), (1.0, math.inf, 3), (1.0, 2.0, 0)])
    def test_levels_that_make_no_sense(self, arguments):
        with pytest.raises(ValueError, match="levels"):
            geometric_levels(*arguments)
