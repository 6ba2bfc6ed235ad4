"""Files that the page needs, read once: an address names an entry here and never a path."""

from importlib import resources

from offmap.report.style import DARK, LIGHT

_TYPES = {"js": "text/javascript", "css": "text/css", "txt": "text/plain", "svg": "image/svg+xml"}
_COLOURS = f"""
:root {{ color-scheme: light; {LIGHT} }}
:root[data-theme="dark"] {{ color-scheme: dark; {DARK} }}
@media (prefers-color-scheme: dark) {{ :root:not([data-theme="light"]) {{ color-scheme: dark; {DARK} }} }}
"""


def _read() -> dict[str, tuple[bytes, str]]:
    folder = resources.files("offmap.service.review") / "static"
    found = {file.name: (file.read_bytes(), _TYPES[file.name.rsplit(".", 1)[1]]) for file in folder.iterdir()}
    sheet, kind = found["review.css"]
    # The colours are those of the report, so that both look alike.
    return found | {"review.css": (_COLOURS.encode() + sheet, kind)}


ASSETS = _read()
"""Content and media type of each file by name."""


def asset_path(name: str) -> str:
    """The path of a file, which no world shares, whatever its name.

    Example:
        >>> asset_path("review.css")
        '/assets/review.css'
    """
    return f"/assets/{name}"
