"""One HTML file that opens without a network and prints: the officer's sheet, then the model on the next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from expost.privacy.words import subject
from expost.report.budget import BudgetLine
from expost.report.card import card
from expost.report.markup import text
from expost.report.sheet import sheet

if TYPE_CHECKING:
    from expost.privacy.release import Release

__all__ = ["report"]

_STYLE = """
@page { size: A4; margin: 12mm 15mm; }
* { box-sizing: border-box; }
body { font: 10pt/1.4 system-ui, "Segoe UI", "Helvetica Neue", Arial, sans-serif; color: #1c1c1c; background: #fff;
  max-width: 190mm; margin: 8mm auto; padding: 0 5mm; print-color-adjust: exact; -webkit-print-color-adjust: exact; }
h1 { font-size: 15pt; line-height: 1.25; margin: 0 0 1mm; overflow-wrap: anywhere; }
header { border-bottom: 1.5pt solid #1c1c1c; margin-bottom: 2mm; }
header p { margin: 0 0 2mm; }
section { display: grid; grid-template-columns: 32mm minmax(0, 1fr); gap: 0 5mm; padding: 2mm 0;
  border-bottom: .5pt solid #ccc; }
h2 { font-size: 10pt; font-weight: 600; margin: 0; color: #444; }
p { margin: 0 0 1.2mm; overflow-wrap: anywhere; }
ul { margin: 0; padding-left: 4.5mm; } li { overflow-wrap: anywhere; }
.big { font-size: 13pt; font-weight: 600; } .small { font-size: 8.5pt; color: #444; }
.formula { font: 10.5pt/1.5 Georgia, "Times New Roman", serif; }
.ok, .no { padding: .3mm 2mm; border-radius: 1mm; font-weight: 600; margin-right: 2mm; }
.ok { background: #e2efe6; color: #14532d; } .no { background: #fbe3e0; color: #8a1c10; }
.warning { border: 1.2pt solid #8a1c10; color: #8a1c10; font-weight: 600; padding: 1.5mm 3mm; margin: 0 0 2mm; }
.bar { display: block; width: 100%; height: 4mm; margin: .8mm 0 1.5mm; }
.rest { fill: #f2f2f2; stroke: #999; } .look { fill: #9db8d2; } .tests { fill: #4f81b0; } .model { fill: #1f3f66; }
.stated { fill: #c9b27c; }
.key { margin-right: 5mm; white-space: nowrap; } .key svg { width: 3mm; height: 3mm; margin-right: 1.2mm; }
table { border-collapse: collapse; margin: .5mm 0 1.5mm; }
th { text-align: left; font-weight: 600; color: #444; border-bottom: .7pt solid #999; vertical-align: bottom; }
th, td { padding: .3mm 5mm .3mm 0; overflow-wrap: anywhere; } td { vertical-align: top; }
td:first-child { min-width: 38mm; } td:last-child:not(.n) { min-width: 44mm; } p:has(+ table) { break-after: avoid; }
.n { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
tr { break-inside: avoid; } thead { display: table-header-group; }
.sign { display: flex; gap: 8mm; margin-top: 11mm; break-inside: avoid; }
.sign span { flex: 1; border-top: .7pt solid #1c1c1c; font-size: 8.5pt; color: #444; padding-top: .5mm; }
.sheet + .sheet { break-before: page; margin-top: 12mm; }
@media screen and (max-width: 600px) { section { grid-template-columns: minmax(0, 1fr); }
  table { display: block; overflow-x: auto; } .sign { flex-direction: column; gap: 11mm; } }
@media print { body { font-size: 9pt; line-height: 1.32; margin: 0; padding: 0; max-width: none; }
  h1 { font-size: 13pt; } h2 { font-size: 9pt; } .big { font-size: 11pt; } .small { font-size: 7.5pt; }
  section { padding: 1.3mm 0; } .bar { height: 3mm; } .sign { margin-top: 9mm; } .sheet + .sheet { margin-top: 0; } }
"""


def report(release: Release, budget: BudgetLine | None = None) -> str:
    """Return a report on a release as one HTML page.

    Parameters
    ----------
    release : Release
        Released, refused or interrupted.
    budget : BudgetLine, optional
        What has been spent on the data set, this release included.

    Returns
    -------
    str
        HTML that refers to nothing outside itself; the same for the same release.

    Examples
    --------
    >>> from expost import Release
    >>> page = report(Release(status="refused", method="auto", epsilon_test=0.1, epsilon_worst_case=2.0))
    >>> "refused" in page, "<script" in page
    (True, False)
    """
    model = card(release)
    sheets = [sheet(release, budget), *([model] if model else [])]
    body = "".join(f'<main class="sheet">\n{part}</main>\n' for part in sheets)
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>Release {text(release.id)}: {text(subject(release))}</title>\n<style>{_STYLE}</style>\n</head>\n"
        f"<body>\n{body}</body>\n</html>\n"
    )
