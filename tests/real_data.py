"""Data sets that are not bundled: a test that needs one skips, saying why, where it is absent."""

import pytest

from offmap.data import Listing, describe


def require(name: str) -> Listing:
    """The entry of a data set that is at hand."""
    entry = next(each for each in describe() if each.name == name)
    if not entry.found:
        pytest.skip(f"{name}: {entry.where}")
    return entry
