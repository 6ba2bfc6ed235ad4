"""``offmap serve``: models and worlds over HTTP, with the review page."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from offmap.commands import terminal
from offmap.commands.options import Quiet, Trust

_DEMO = "digits.world"


def serve(
    given: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="WORLD_OR_MODEL...",
            help="A world's folder, a model file, or a folder of model files, one per version; NAME=PATH names it.",
        ),
    ] = None,
    host: Annotated[str, typer.Option(help="Address to listen on; one that others reach needs OFFMAP_TOKEN.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(help="Port to listen on; 0 for any that is free.", min=0, max=65535)] = 8000,
    store: Annotated[
        str | None, typer.Option(help="Database of the worlds, as postgresql://…, for several instances.")
    ] = None,
    limits: Annotated[list[str] | None, typer.Option("--limit", help="A limit, as rows=1000; repeatable.")] = None,
    demo: Annotated[
        bool, typer.Option("--demo", help=f"Serve {_DEMO}, a world of handwritten digits; it is made if absent.")
    ] = False,
    trust: Trust = None,
    quiet: Quiet = False,
) -> None:
    """Score over HTTP, and review what is new in a browser."""
    from offmap import parameters

    try:
        from offmap.service import Limits, Settings
        from offmap.service.server import serve as run
        from offmap.service.server import sort_out
    except ImportError as error:
        raise ImportError(f"serve needs {error.name}: pip install '.[service]' in Offmap's folder") from error

    with terminal.messages(quiet) as tell:
        chosen = Limits(**dict(parameters.parse(Limits, each) for each in limits or ()))
        paths = [*(given or ()), *([_demo(tell)] if demo else [])]
        if not paths:
            raise ValueError("name a world or a model to serve, or use --demo")
        worlds, models = sort_out(paths, store)
        settings = Settings(
            worlds=worlds,
            models=models,
            token=os.environ.get("OFFMAP_TOKEN") or None,
            store=store,
            trusted=tuple(trust or ()),
            limits=chosen,
        )
        run(settings, host, port, lambda address: tell(f"serving {', '.join([*worlds, *models])} on {address}"))


def _demo(tell: Callable[[str], None]) -> str:
    from offmap.service.demo_world import make_demo_world

    if not Path(_DEMO).exists():
        tell(f"making {_DEMO}: the digits 0 to 6 are known, 7 to 9 are not")
        make_demo_world(Path(_DEMO))
    return _DEMO
