"""Finding tables and figures by name, and their stored results."""

from collections.abc import Collection, Iterable
from dataclasses import asdict
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from offmap_bench.figure import Figure
from offmap_bench.places import RESULTS
from offmap_bench.run import empty_cells
from offmap_bench.table import Table


def select(names: Iterable[str], known: Collection[str]) -> list[str]:
    """Returns the tables and figures that have one of ``names``, or whose names start with it and a hyphen.

    Example:
        >>> select(["speed", "dots"], known=["dots", "speed-start", "speed-training"])
        ['speed-start', 'speed-training', 'dots']
    """
    chosen: list[str] = []
    for name in names:
        found = [name] if name in known else [each for each in known if each.startswith(f"{name}-")]
        if not found:
            raise ValueError(unknown(name, known))
        chosen += found
    return list(dict.fromkeys(chosen))


def unknown(name: str, known: Collection[str]) -> str:
    """Returns the error message for a name that no table or figure has."""
    guess = get_close_matches(name, [*known, *(each.partition("-")[0] for each in known)], n=1)
    listed = f"choose one of {', '.join(known)} ('python -m offmap_bench' describes them)"
    return f"there is no table or figure {name!r}; {f'did you mean {guess[0]!r}?' if guess else listed}"


def stored_cells(
    item: Table | Figure,
    profile: str,
    rows: Collection[str] | None = None,
    columns: Collection[str] | None = None,
    results: Path = RESULTS,
) -> list[dict[str, Any]]:
    """Returns the stored cells of a table as plain dictionaries; a figure has none."""
    places = empty_cells(item, profile, rows or None, columns or None) if isinstance(item, Table) else []
    return [asdict(cell) for place in places if (cell := place.stored(results)) is not None]
