"""Passes over the rows: threads of this process or the workers of a Dask cluster carry them out, exactly."""

from __future__ import annotations

from typing import TYPE_CHECKING

from expost.lazy import public_names

if TYPE_CHECKING:
    from expost.passes.dask import DaskEngine as DaskEngine
    from expost.passes.engine import (
        Engine as Engine,
        LocalEngine as LocalEngine,
        Totals as Totals,
        Work as Work,
        add_totals as add_totals,
        constant_passes as constant_passes,
    )
    from expost.passes.sums import (
        MAX_CHUNK as MAX_CHUNK,
        ROW_UNIT as ROW_UNIT,
        SUM_UNIT as SUM_UNIT,
        Sums as Sums,
        sums_over as sums_over,
    )

__getattr__, __all__ = public_names(__name__)
