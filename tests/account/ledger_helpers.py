"""Releases and ledgers to try things on."""

from __future__ import annotations

from pathlib import Path

from expost import Ledger, Release
from expost.account.account import Account


def released(epsilon: float, worst_case: float | None = None, *, secure: bool = True) -> Release:
    worst = epsilon if worst_case is None else worst_case
    return Account("by hand", worst_case=worst, secure=secure, generation=epsilon).released([1.0])


def new_ledger(folder: Path, cap: float = 2.0, **options) -> Ledger:
    return Ledger.create(folder / "ledger.db", "survey", cap=cap, **options)


def charged(ledger: Ledger) -> list[float]:
    return [entry.loss.epsilon for entry in ledger.budget.entries]
