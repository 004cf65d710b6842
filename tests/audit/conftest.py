"""The same draws whenever tests of the audit are run; and nothing that was settled for what is broken is kept."""

from __future__ import annotations

import itertools

import pytest

from expost.audit import searches
from expost.mechanisms import output

from .helpers import Seeded


@pytest.fixture
def repeated(monkeypatch):
    """Begin with the first seed."""
    monkeypatch.setattr(Seeded, "places", itertools.count())
    monkeypatch.setattr(searches, "SecureSource", Seeded)
    yield
    output._grid.cache_clear()
