"""``offmap methods`` and ``offmap datasets``: what there is."""

from typing import Annotated

import typer

from offmap.commands import terminal
from offmap.commands.options import Json


def methods(
    name: Annotated[str | None, typer.Argument(help="Show the parameters of this method.")] = None,
    as_json: Json = False,
) -> None:
    """List the methods, or the parameters of one."""
    from offmap import catalog

    if name is not None:
        lines = [
            {**line, "meaning": terminal.plain_words(line["meaning"])} for line in catalog.method(name).parameters()
        ]
        terminal.show(f"Parameters of {name}", lines, as_json)
        return
    found = [
        {"method": each.name, "family": each.family, "summary": terminal.plain_words(each.summary)}
        for each in catalog.methods()
    ]
    terminal.show("Methods", found, as_json)


def datasets(
    name: Annotated[str | None, typer.Argument(help="Show all that is known of this data set.")] = None,
    as_json: Json = False,
) -> None:
    """List the named data sets, or say of one where it is or how to get it."""
    from dataclasses import asdict

    from offmap.data import describe
    from offmap.data.registry import hint

    known = {listing.name: asdict(listing) for listing in describe()}
    if name is not None and name not in known:
        raise ValueError(f"there is no data set {name!r}; {hint(name)}")
    if name is not None:
        terminal.show_pairs(f"Data set {name}", known[name], as_json)
        return
    shown = ("name", "kind", "rows", "about", "found")
    short = [{key: listing[key] for key in shown} for listing in known.values()]
    terminal.show("Data sets", list(known.values()) if as_json else short, as_json)
