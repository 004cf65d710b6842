"""``expost explore``: a page in a file, or served."""

from __future__ import annotations

import threading
import urllib.request
from http.server import ThreadingHTTPServer

import pytest

from expost import ErrorRate, Schema
from expost.datasets import SURVEY_SCHEMA

from .helpers import call

QUICK = ["--worlds", "2", "--rows", "900", "--no-open"]


@pytest.fixture(autouse=True)
def few_goals(monkeypatch):
    """Compute two goals, not seven: what is in the page is looked at elsewhere."""
    monkeypatch.setattr(ErrorRate, "offered", (0.4, 0.3))


@pytest.fixture
def schema(tmp_path):
    path = tmp_path / "survey.toml"
    path.write_text(Schema.from_dict(SURVEY_SCHEMA).to_toml(), encoding="utf-8")
    return path


def test_writes_a_page_and_overwrites_nothing(schema, tmp_path, capsys):
    out = tmp_path / "page.html"
    said = call(capsys, "explore", schema, "--output", out, *QUICK)
    assert said.status == 0
    assert "is written" in said.out
    text = out.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>")
    assert str(schema) in text  # in the command to copy
    refused = call(capsys, "explore", schema, "--output", out, *QUICK)
    assert refused.status == 2
    assert "--force" in refused.err
    assert call(capsys, "explore", schema, "--output", out, "--force", *QUICK).status == 0
    assert out.read_text(encoding="utf-8") == text


def test_goals_together_at_a_delta(schema, tmp_path, capsys):
    out = tmp_path / "page.html"
    stated = ["--delta", "1e-6", "--recall", "0.5", "--precision", "0.3"]
    assert call(capsys, "explore", schema, "--output", out, *stated, "--worlds", "1", "--no-open").status == 0
    assert '"delta":"1e-06"' in out.read_text(encoding="utf-8")


def test_opens_the_page(schema, tmp_path, capsys, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    monkeypatch.chdir(tmp_path)
    assert call(capsys, "explore", schema, *QUICK[:-1]).status == 0
    assert opened == [(tmp_path / "explore.html").as_uri()]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--goal", "r2"], "error-rate or precision or f1 or log-loss"),
        (["--delta", "2"], "delta must be 0"),
        (["--recall", "0.5"], "state --precision, --specificity or --error-rate beside it"),
        (["--cost-at-most", "0.3"], "--cost go together"),
        (["--f1", "0.5", "--goal", "f1"], "state one of them"),
        (["--output", "nowhere/x.html"], "does not exist"),
        (["--output", "."], "is a folder"),
        (["--release", "none.json"], "none.json"),
        (["--rows", "some"], "not a whole number"),
    ],
)
def test_mistakes_get_one_line(schema, tmp_path, capsys, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    said = call(capsys, "explore", schema, *arguments)
    assert said.status == 2
    assert said.out == ""
    assert message in said.err
    assert said.err.count("\n") == 1
    assert not list(tmp_path.glob("*.html"))


def test_what_is_no_release(schema, tmp_path, capsys):
    (tmp_path / "r.json").write_text("{}")
    said = call(capsys, "explore", schema, "--release", tmp_path / "r.json", "--output", tmp_path / "x.html")
    assert said.status == 2
    assert "not a release" in said.err


def test_serves(schema, capsys, monkeypatch):
    """The browser that it opens gets the page; then somebody presses Ctrl+C."""
    pages, threads = [], []

    def visit(address):
        def read():
            with urllib.request.urlopen(address, timeout=60) as answer:
                pages.append(answer.read())

        threads.append(threading.Thread(target=read))
        threads[0].start()

    def once(server, poll_interval):
        server.handle_request()
        threads[0].join()
        raise KeyboardInterrupt

    monkeypatch.setattr("webbrowser.open", visit)
    monkeypatch.setattr(ThreadingHTTPServer, "serve_forever", once)
    said = call(capsys, "explore", schema, "--serve", *QUICK[:-1])
    assert said.status == 0
    assert "http://127.0.0.1:" in said.out
    assert [text[:15] for text in pages] == [b"<!doctype html>"]


def test_help_has_an_example_and_exit_codes(capsys):
    said = call(capsys, "explore", "--help")
    text = " ".join(said.out.split())
    assert "examples: expost explore survey.toml" in text
    assert "exit status: 0 written or served" in text
