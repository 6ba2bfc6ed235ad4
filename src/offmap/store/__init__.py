"""Append-only journals: what happened, in order, and the rows and files that it happened to."""

from offmap.store.folder import FolderFiles
from offmap.store.journal import Entry, Files, Journal, JournalInUse, JournalMoved, JournalUnreadable
from offmap.store.sqlite import SQLiteJournal

__all__ = [
    "Entry",
    "Files",
    "FolderFiles",
    "Journal",
    "JournalInUse",
    "JournalMoved",
    "JournalUnreadable",
    "SQLiteJournal",
]
