"""A figure of matplotlib that a notebook shows, whether or not ``matplotlib.pyplot`` was imported before."""

from __future__ import annotations

import io

from matplotlib.figure import Figure


class ShownFigure(Figure):
    """A figure that draws itself where Jupyter asks for a picture; needs no backend, and opens no window."""

    def _repr_png_(self) -> bytes:
        file = io.BytesIO()
        self.savefig(file, format="png", dpi=100)
        return file.getvalue()
