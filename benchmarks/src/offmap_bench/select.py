"""Which tables and figures a name means, and what is stored of them."""

from collections.abc import Collection, Iterable
from dataclasses import asdict
from difflib import get_close_matches
from typing import Any

from offmap_bench.figure import Figure
from offmap_bench.run import empty_cells
from offmap_bench.table import Table


def select(names: Iterable[str], known: Collection[str]) -> list[str]:
    """The tables and figures that are meant: by their names, or by the first words that several share.

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
    """What to say of a name that nothing has."""
    guess = get_close_matches(name, [*known, *(each.partition("-")[0] for each in known)], n=1)
    hint = f"did you mean {guess[0]!r}?" if guess else f"known: {', '.join(known)} ('offmap bench' lists them)"
    return f"there is no table or figure {name!r}; {hint}"


def stored_cells(
    item: Table | Figure, profile: str, rows: Collection[str] | None = None, columns: Collection[str] | None = None
) -> list[dict[str, Any]]:
    """The stored results of a table as plain values; a figure has none."""
    places = empty_cells(item, profile, rows or None, columns or None) if isinstance(item, Table) else []
    return [asdict(cell) for place in places if (cell := place.stored()) is not None]
