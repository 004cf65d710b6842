"""Commands are called in a folder of their own, where they may save what they make; what several tests begin with."""

from __future__ import annotations

import pytest

from expost.noise.source import SecureSource
from tests.release.model_helpers import LABELS, released


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path_factory, monkeypatch):
    monkeypatch.chdir(tmp_path_factory.mktemp("here"))


@pytest.fixture
def no_noise(monkeypatch):
    """Whatever draws noise from the secure source fails."""

    def draw(*_):
        raise AssertionError("noise was drawn")

    monkeypatch.setattr(SecureSource, "words", draw)


@pytest.fixture
def model(tmp_path):
    """Return the file of a release with a model that estimates probabilities."""
    path = tmp_path / "model.json"
    path.write_text(released(LABELS, largest_odds=4.0).to_json(), encoding="utf-8")
    return path
