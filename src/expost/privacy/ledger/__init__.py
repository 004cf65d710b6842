"""The budget of a data set, kept as a filter: reserved before a search, settled after it, never understated."""

from expost.privacy.ledger.budget import Budget, Entry, Event
from expost.privacy.ledger.ledger import Ledger, Reservation

__all__ = ["Budget", "Entry", "Event", "Ledger", "Reservation"]
