"""Commands are called in a folder of their own, where they may save what they make."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path_factory, monkeypatch):
    monkeypatch.chdir(tmp_path_factory.mktemp("here"))
