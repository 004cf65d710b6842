"""What a release is for: facts about people and papers that nothing computes, stated by whoever writes the report.

They come from flags or from a TOML file, are checked field by field, and stay blank where nobody has stated them: a
report shows the blank, to be filled in by hand.
"""

from __future__ import annotations

import dataclasses
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from expost import validation
from expost.shown import one_line

#: No field is longer, so that a sheet stays a sheet.
LONGEST = 600
SECTORS = ("Technology", "Healthcare", "Education", "Government", "Energy", "Finance")


@dataclass(frozen=True)
class Project:
    """What a report and a registry entry say besides what the release says.

    Attributes
    ----------
    data_set, purpose, recipient, contact
        Which data, what the model is for, who gets it, and whom to ask: the report shows these four.
    curator, region, sector, decision, security, sources, author
        For the registry: who publishes, whose data or whose law it is, one of :data:`SECTORS`, how goal and budget were
        chosen, how the rows are kept safe, what to read, and who wrote the entry.

    Examples
    --------
    >>> Project(data_set="household survey 2026").blank
    ('purpose', 'recipient', 'contact')
    """

    data_set: str = ""
    purpose: str = ""
    recipient: str = ""
    contact: str = ""
    curator: str = ""
    region: str = ""
    sector: str = ""
    decision: str = ""
    security: str = ""
    sources: str = ""
    author: str = ""

    def __post_init__(self) -> None:
        for name, value in dataclasses.asdict(self).items():
            if not isinstance(value, str) or len(value) > LONGEST:
                raise ValueError(f"{name} must be a text of at most {LONGEST} characters")
            object.__setattr__(self, name, value.strip())
        if self.sector and self.sector not in SECTORS:
            raise ValueError(f"sector must be one of {', '.join(SECTORS)}; got {one_line(self.sector)}")

    @property
    def blank(self) -> tuple[str, ...]:
        """Which of the four that a report shows are not stated."""
        return tuple(name for name in ("data_set", "purpose", "recipient", "contact") if not getattr(self, name))

    @classmethod
    def from_toml(cls, path: Path) -> Project:
        """Read a project file: one line for each field, ``purpose = "…"``; every field may be left out."""
        known = [item.name for item in dataclasses.fields(cls)]
        try:
            read: dict[str, Any] = tomllib.loads(validation.toml_text(path))
        except RecursionError:
            raise ValueError(f"{path} is nested too deep for a project file") from None
        except ValueError as error:
            raise ValueError(f"{path}: not TOML: {error}") from None
        unknown = [name for name in read if name not in known]
        if unknown:
            raise ValueError(f"{path}: {one_line(unknown[0])} is no field of a project; these are {', '.join(known)}")
        try:
            return cls(**read)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None

    def stated(self, **fields: str | None) -> Project:
        """Return a copy in which fields that are not None take the place of the present ones."""
        return dataclasses.replace(self, **{name: value for name, value in fields.items() if value is not None})
