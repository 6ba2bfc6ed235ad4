"""``offmap add``, ``offmap update`` and ``offmap remove``: the entities of a fitted model."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from offmap.commands import terminal
from offmap.commands.opening import open_rows, require_present, roles_of
from offmap.commands.options import DataSpec, Entity, Json, Model, ModelOut, Quiet, Trust
from offmap.outputs import require_writable


def add(
    model: Model,
    data: DataSpec,
    out: ModelOut,
    entity: Entity = None,
    trust: Trust = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Add entities that a model does not know, each from its rows, and save the model."""

    def change(loaded: Any, rows: Any, entities: Any) -> Any:
        from offmap.workflow import add_entities

        return add_entities(loaded, rows, entities)

    _changed("Added", change, model, data, out, entity, trust or (), as_json, quiet)


def update(
    model: Model,
    data: DataSpec,
    out: ModelOut,
    entity: Entity = None,
    trust: Trust = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Take in more rows of entities that a model knows, and save the model."""

    def change(loaded: Any, rows: Any, entities: Any) -> Any:
        from offmap.workflow import update_entities

        return update_entities(loaded, rows, entities)

    _changed("Updated", change, model, data, out, entity, trust or (), as_json, quiet)


def remove(
    model: Model,
    entities: Annotated[list[str], typer.Argument(help="Ids of the entities to forget.")],
    out: ModelOut,
    trust: Trust = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Forget entities of a model, and save the model."""
    require_writable(out, inputs=[str(model)])
    require_present(model)
    from offmap.workflow import load_entity_model, remove_entities

    with terminal.messages(quiet) as tell:
        loaded = load_entity_model(model, trust or ())
        _saved("Removed", remove_entities(loaded, entities), out, tell, as_json)


def _changed(
    title: str,
    change: Callable[[Any, Any, Any], Any],
    model: Path,
    data: str,
    out: Path,
    entity: str | None,
    trust: Sequence[str],
    as_json: bool,
    quiet: bool,
) -> None:
    require_writable(out, inputs=[str(model), data])
    require_present(model, data)
    from offmap.workflow import entity_rows, load_entity_model

    with terminal.messages(quiet) as tell:
        loaded = load_entity_model(model, trust)
        opened = open_rows(loaded, data, roles_of(entity=entity), scoring=True)
        _saved(title, change(loaded, *entity_rows(loaded, opened)), out, tell, as_json)


def _saved(title: str, model: Any, out: Path, tell: Callable[[str], None], as_json: bool) -> None:
    model.save(out)
    tell(f"wrote {out}; it knows {len(model.entity_ids_):,} entities")
    terminal.show_pairs(title, {"model": str(out), "entities": len(model.entity_ids_)}, as_json)
