"""Templates: everything is escaped, and text that could reorder or flood a page is made harmless."""

import hashlib
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from offmap.report.markup import readable
from offmap.service.review import charts, row_map
from offmap.service.review.assets import ASSETS, asset_path
from offmap.service.review.keys import KEYS
from offmap.service.review.sentences import counted


def _harmless(value: Any) -> Any:
    return readable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def asset(name: str) -> str:
    """The address of a file, which changes with its content, so that browsers may keep it."""
    return f"{asset_path(name)}?v={hashlib.sha256(ASSETS[name][0]).hexdigest()[:12]}"


def address(world: str, *parts: object) -> str:
    """An address of the page.

    Example:
        >>> address("my world", "groups", 7)
        '/review/my%20world/groups/7'
    """
    return "/".join(["/review", quote(world, safe=""), *(quote(str(part), safe="") for part in parts)])


def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("offmap.service.review"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_harmless,
        auto_reload=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals |= {
        "asset": asset,
        "address": address,
        "keys": KEYS,
        "charts": charts,
        "row_map": row_map,
        "counted": counted,
    }
    made.filters["safe_path"] = Markup
    # Compiled now rather than by the first visitor.
    for name in made.list_templates():
        made.get_template(name)
    return made


_TEMPLATES = _environment()


def render(template: str, **content: Any) -> str:
    """A page as HTML."""
    return _TEMPLATES.get_template(template).render(**content)
