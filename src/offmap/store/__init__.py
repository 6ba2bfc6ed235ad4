"""Append-only journals: what happened, in order, and the rows that it happened to."""

from offmap.store.journal import Entry, Journal, JournalInUse, JournalUnreadable
from offmap.store.sqlite import SQLiteJournal

__all__ = ["Entry", "Journal", "JournalInUse", "JournalUnreadable", "SQLiteJournal"]
