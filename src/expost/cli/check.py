"""``expost check``: how a table fits its schema, for those who may see the table."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from expost.cli.options import (
    DATA,
    add_file_options,
    add_person_options,
    check_schema,
    check_tables,
    file_options,
    stated_schema,
)
from expost.cli.terminal import own_words, print_text
from expost.shown import aligned, one_line

if TYPE_CHECKING:
    from expost.passes.first_pass import Survey
    from expost.table.findings import Finding
    from expost.table.misfits import Tally
    from expost.table.persons import PersonTally

DESCRIPTION = (
    "Count the cells of a file that do not fit its schema, show how they are spelt and what to type next. All of that "
    "comes from single rows and is not private: it is for the curator alone."
)
EXAMPLES = ("expost check survey.csv --schema survey.toml",)
EXITS = {
    0: "the table fits the schema, and expost fit takes it",
    1: "the table fits, but that could not be printed",
    2: "a mistake in the arguments or files",
    3: "the table does not fit, and expost fit refuses it, or it fits badly; the last line says which",
}
UNFIT = 3  # what was asked was done, and the answer is no
FITS = "The table fits the schema."
LOOK = "The table fits the schema, and expost fit takes it; what is said above is worth a look first."
CURATOR = "For the curator alone: what follows was counted from single rows and is not private. Do not publish it."
WHY = (
    "A schema that follows the rows is not private: change what a code book, or whoever knows the table, says as well."
)
_HEADINGS = ("column", "kind", "readable", "missing", "unreadable", "outside", "other")


def add_arguments(check: argparse.ArgumentParser) -> None:
    """Add the options."""
    check.add_argument("data", type=Path, help=DATA)
    check.add_argument("--schema", type=Path, required=True, metavar="FILE", help="the schema, in TOML")
    add_file_options(check)
    add_person_options(check)
    check.add_argument("--json", action="store_true", help="print it as JSON")


def run(options: argparse.Namespace) -> int:
    """Count and show; returns the exit status."""
    check_tables(options.data)
    check_schema(options.schema)
    from expost.passes.first_pass import survey
    from expost.passes.kept import kept
    from expost.table.encoding import Encoding
    from expost.table.files import open_disk
    from expost.table.misfits import clipped_away, complaints, misfits, remedies, uneven_lines

    encoding = Encoding(stated_schema(options))
    schema = encoding.schema
    disk = kept(open_disk(options.data, **file_options(options)), schema.needed)
    found = survey(disk, encoding)
    if found is None:
        raise ValueError(f"{options.data} has no rows")
    tallies, target, persons = found.columns, found.target, found.persons
    wrong, refused = misfits(tallies, target), complaints(tallies, target)
    away = [] if wrong else clipped_away(tallies, target)
    uneven, many = uneven_lines(found.uneven, found.rows)
    said = argparse.Namespace(**vars(options), on_invalid=None)  # an option of expost fit, which is spoken of
    notes = [] if persons is None else _persons(persons, one_line(schema.person), schema.rows_per_person or 1)
    notes += [f"Check: {uneven}"] if found.uneven else []
    notes += [f"Refused by expost fit without --on-invalid clip: {reason}" for reason in refused]
    notes += [f"Check: {own_words(reason, said)}" for reason in [*wrong, *away]]
    notes += [f"What to do: {own_words(remedies(tallies, target), said)}"] if refused else []
    strangers = persons is not None and (persons.unreadable > 0 or persons.undecoded > 0)
    noted = bool(found.uneven or found.findings) or (persons is not None and persons.missing > 0)
    verdict = _verdict(bool(wrong or refused or strangers), bool(away), many, noted)
    fits = verdict in (FITS, LOOK)
    if options.json:
        print_text(_as_json(found, schema.classes, notes, verdict, fits))
        return 0 if fits else UNFIT
    lines = [CURATOR, "", *_table([*tallies, target]), ""]
    if target.classes is not None and schema.classes is not None:
        named = zip(schema.classes, target.classes, strict=True)
        labels = ", ".join(f"{label} {count:,}" for label, count in named)
        negative, positive = map(str, schema.classes)
        seldom = target.classes[0] < target.classes[1]
        swap = f", though {negative} is rarer: to look for that, list it last in classes" if seldom else ""
        lines += [one_line(f"classes of {target.name}: {labels}; recall and precision are of {positive}{swap}")]
    lines += [f"{found.rows:,} rows; {len(schema.columns)} columns become {len(encoding.names)}"]
    lines += [*notes, *_findings(found.findings), verdict]
    print_text("\n".join(lines))
    return 0 if fits else UNFIT


def _as_json(found: Survey, classes: Any, notes: list[str], verdict: str, fits: bool) -> str:
    """Return all of it as JSON."""
    target = found.target
    labels = None if target.classes is None else {str(c): n for c, n in zip(classes, target.classes, strict=True)}
    said = {
        "for": CURATOR,
        "rows": found.rows,
        "columns": [_counts(tally) for tally in found.columns],
        "target": _counts(target) | ({} if labels is None else {"classes": labels}),
        "persons": None if found.persons is None else asdict(found.persons),
        "uneven_lines": found.uneven,
        "notes": notes,
        "findings": [asdict(finding) for finding in found.findings],
        "fits": fits,
        "verdict": verdict,
    }
    return json.dumps(said, indent=2, ensure_ascii=False)


def _counts(tally: Tally) -> dict[str, Any]:
    return {name: getattr(tally, name) for name in ("name", *_HEADINGS[1:])}


def _findings(found: list[Finding]) -> list[str]:
    """Return what to look at, a line for each thing and one below it that says what to type."""
    if not found:
        return []
    lines = ["", "What to look at, and what to type:"]
    for finding in found:
        lines += [f"  {one_line(finding.column)}: {one_line(finding.said)}", f"      {one_line(finding.type)}"]
    return [*lines, WHY, ""]


def _verdict(refused: bool, away: bool, uneven: bool, noted: bool) -> str:
    if refused:
        return "The table does not fit the schema: expost fit refuses it."
    if away:
        return "The table fits the schema badly: expost fit takes it, but much of a column is moved to its bounds."
    if uneven:
        return "The table fits the schema badly: expost fit takes it, but many lines have too few cells or too many."
    return LOOK if noted else FITS


def _table(tallies: list[Tally]) -> list[str]:
    rows: list[tuple[str, ...]] = [_HEADINGS]
    for tally in tallies:
        counts = (tally.readable, tally.missing, tally.unreadable, tally.outside, tally.other)
        rows.append((tally.name, tally.kind, *(f"{count:,}" for count in counts)))
    return aligned(rows, right=range(2, len(_HEADINGS)))


def _persons(persons: PersonTally, column: str, kept: int) -> list[str]:
    lines = [
        f"{persons.persons:,} persons by {column}; {persons.longer:,} have more than {kept:,} rows, of which "
        f"{persons.left_out:,} rows are left out"
    ]
    if persons.missing:
        lines.append(f"Check: {persons.missing:,} rows have no {column}; each is taken to be a person of its own")
    if persons.unreadable:
        lines.append(
            f"Check: {persons.unreadable:,} cells of {column} are neither text nor numbers; they are taken to be one "
            f"person"
        )
    if persons.undecoded:
        lines.append(
            f"Check: {persons.undecoded:,} cells of {column} hold bytes that are not in the encoding, so persons may "
            f"be taken for one another; read the file with --encoding latin-1, or whichever it is in"
        )
    return lines
