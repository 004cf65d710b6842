"""Who carries out a pass over the rows: threads of this process, or the workers of a Dask cluster."""

from expost.engines.engine import Engine, Totals, Work, add_totals
from expost.engines.local import LocalEngine

__all__ = ["Engine", "LocalEngine", "Totals", "Work", "add_totals"]
