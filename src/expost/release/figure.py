"""A figure of matplotlib that a notebook shows, whether or not ``matplotlib.pyplot`` was imported before."""

from __future__ import annotations

import io

from matplotlib.colors import to_rgb
from matplotlib.figure import Figure


class ShownFigure(Figure):
    """A figure that draws itself where Jupyter asks for a picture; needs no backend, and opens no window."""

    @property
    def bright(self) -> bool:
        """Whether the ground is bright that the caller's style has."""
        red, green, blue = to_rgb(self.get_facecolor())
        return 0.3 * red + 0.6 * green + 0.1 * blue > 0.5

    def _repr_png_(self) -> bytes:
        file = io.BytesIO()
        self.savefig(file, format="png", dpi=100)
        return file.getvalue()
