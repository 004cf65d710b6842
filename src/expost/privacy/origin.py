"""Which run a release comes from: its id and day, what it was made with, and what older files do not say."""

from __future__ import annotations

import datetime
import hashlib
import json
import platform
import secrets
from functools import lru_cache
from importlib import metadata
from typing import Any

import numpy as np

from expost.privacy.frozen import FrozenMapping, plain

__all__ = ["completed", "is_day", "new_id", "today", "versions"]

_SINCE_2 = {"id", "date", "target", "columns", "schema_fingerprint", "data_fingerprint"}  # fields that format 1 lacks


@lru_cache(maxsize=1)  # reading package metadata takes milliseconds, and a search makes thousands of releases
def versions() -> FrozenMapping:
    """Return what a release was made with."""
    return FrozenMapping(
        {
            "expost": metadata.version("expost"),
            "numpy": np.__version__,
            "cryptography": metadata.version("cryptography"),
            "python": platform.python_version(),
        }
    )


def new_id() -> str:
    """Return random hexadecimal digits, from the operating system and no seed."""
    return secrets.token_hex(8)


def today() -> str:
    """Return the day in UTC. No time of day: beside the start of a search it would tell how long the search took."""
    return datetime.datetime.now(datetime.UTC).date().isoformat()


def is_day(text: Any) -> bool:
    """Whether a text is a day, as 2026-03-31."""
    try:
        datetime.date.fromisoformat(text)
    except (TypeError, ValueError):
        return False
    return True


def completed(raw: dict[str, Any]) -> dict[str, Any]:
    """Add what releases of format 1 did not say; the id is made of the text, so that reading twice gives it twice."""
    if _SINCE_2 & set(raw):
        raise ValueError(f"not a release: format 1 has no fields {sorted(_SINCE_2 & set(raw))}")
    text = json.dumps(plain(raw), sort_keys=True, separators=(",", ":"))
    added = dict.fromkeys(_SINCE_2) | {"columns": (), "id": hashlib.sha256(text.encode()).hexdigest()[:16]}
    known = raw.get("preparation")
    if isinstance(known, dict) and isinstance(known.get("schema"), dict):
        added["target"] = known["schema"].get("target")
        columns = known["schema"].get("columns")
        added["columns"] = tuple(columns) if isinstance(columns, dict) else ()
        added["schema_fingerprint"] = known.get("fingerprint")
    return {**raw, **added}
