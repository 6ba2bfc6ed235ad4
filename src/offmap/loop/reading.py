"""From entries to a history, where a disk or a hand may have changed them."""

from collections.abc import Mapping, Sequence
from typing import Any

from offmap import parameters
from offmap.errors import reason_of
from offmap.loop.history import History
from offmap.loop.promise import Calibration
from offmap.parameters import Count, Fraction, Natural, Proportion
from offmap.store import Entry, JournalUnreadable

# What entries of other names, types and numbers than a release writes end in.
_DAMAGE = (ArithmeticError, AttributeError, LookupError, StopIteration, TypeError, ValueError)


def read_history(where: str, entries: Sequence[Entry]) -> History:
    """The history of a world, or ``JournalUnreadable`` if its entries are not those of one.

    Args:
        where: The journal, for messages.
        entries: Every entry, in order.
    """
    if not entries or entries[0].kind != "created":
        raise JournalUnreadable(f"{where} holds no whole world: it was not created to the end; create it anew")
    try:
        _check_settings(entries[0].content)
        history = History.of(entries)
        for version in history.state.versions.values():
            Calibration(**version.calibration)
        return history
    except JournalUnreadable:
        raise
    except _DAMAGE as error:
        what = f"{type(error).__name__}: {reason_of(error)}"
        raise JournalUnreadable(
            f"{where} is damaged: its entries do not add up ({what}); restore it from a copy"
        ) from error


def _check_settings(settings: Mapping[str, Any]) -> None:
    parameters.require("review", settings["review"], Proportion)
    parameters.require("min_group", settings["min_group"], Count)
    parameters.require("reassign", settings["reassign"], bool)
    parameters.require("seed", settings["seed"], Natural)
    parameters.require("alpha", settings["classifier"]["parameters"]["alpha"], Fraction)
