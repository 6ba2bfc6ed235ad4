"""``offmap info``: what a model file says of itself."""

from offmap.commands import terminal
from offmap.commands.opening import require_present
from offmap.commands.options import Json, Model, Trust


def info(model: Model, trust: Trust = None, as_json: Json = False) -> None:
    """Show what a model was fitted on, what it promises and which columns it reads."""
    require_present(model)
    from offmap.workflow import information_on

    terminal.show_pairs("Model", information_on(model, trust or ()), as_json)
