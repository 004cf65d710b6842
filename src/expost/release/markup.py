"""HTML and SVG in small pieces. Every text that comes from a release goes through :func:`text`."""

from __future__ import annotations

import decimal
import html
import math
from collections.abc import Iterable, Sequence

from expost.shown import one_line

__all__ = ["bar", "bullets", "number", "section", "table", "text"]

_RAISED = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


def text(value: object) -> str:
    """Return a text with everything escaped that HTML could take for markup, or a browser for a direction of reading.

    Examples
    --------
    >>> text("<script>")
    '&lt;script&gt;'
    """
    return html.escape(one_line(value), quote=True)


def number(value: float, digits: int = 4) -> str:
    """Return a number for people, with a proper minus sign.

    Examples
    --------
    >>> number(-1234.5678), number(0.0012345), number(1e6), number(-1.05e-7)
    ('−1,235', '0.001234', '1,000,000', '−1.05·10⁻⁷')
    """
    if value == 0 or not math.isfinite(value):
        return f"{value:g}".replace("-", "−").replace("inf", "∞")
    size = decimal.Context(prec=digits).create_decimal(repr(abs(float(value))))
    sign = "−" if value < 0 else ""
    if -4 <= size.adjusted() < 9:
        shown = f"{size:,f}"
        return sign + (shown.rstrip("0").rstrip(".") if "." in shown else shown)
    mantissa = f"{size.scaleb(-size.adjusted()):f}"
    mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
    return f"{sign}{mantissa}·10{str(size.adjusted()).translate(_RAISED)}"


def section(label: str, *content: str) -> str:
    """Return a row of the sheet: a label and what belongs to it (already markup)."""
    return f"<section><h2>{text(label)}</h2><div>{''.join(content)}</div></section>\n"


def bullets(items: Iterable[str]) -> str:
    """Return a list of texts, escaped."""
    return "<ul>" + "".join(f"<li>{text(item)}</li>" for item in items) + "</ul>"


def table(headings: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: Sequence[int] = ()) -> str:
    """Return a table of texts, escaped; some columns are set as numbers."""

    def cells(row: Sequence[str], tag: str) -> str:
        return "".join(f"<{tag}{' class=n' if j in numbers else ''}>{text(cell)}</{tag}>" for j, cell in enumerate(row))

    head = f"<thead><tr>{cells(headings, 'th')}</tr></thead>"
    body = "".join(f"<tr>{cells(row, 'td')}</tr>" for row in rows)
    return f"<table>{head}<tbody>{body}</tbody></table>"


def bar(parts: Sequence[tuple[float, str]], whole: float, described: str) -> str:
    """Return a bar of parts, each with a class for its colour, along a whole; what is left of it stays empty."""
    width, height = 600.0, 16.0
    drawn, at = [], 0.0
    for size, kind in parts:
        wide = width * size / whole if whole > 0 else 0.0
        wide = min(max(wide, 2.0), width - at)  # a part that was paid is seen, however small
        drawn.append(f'<rect class="{kind}" x="{at:.2f}" y="0" width="{wide:.2f}" height="{height:g}"/>')
        at += wide
    return (
        f'<svg class="bar" viewBox="0 0 {width:g} {height:g}" preserveAspectRatio="none" role="img" '
        f'aria-label="{text(described)}"><rect class="rest" x="0" y="0" width="{width:g}" height="{height:g}"/>'
        f"{''.join(drawn)}</svg>"
    )
