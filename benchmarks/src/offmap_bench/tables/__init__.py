"""Every table and figure of the papers: each module below names its own in ``TABLES``."""

from importlib import import_module
from pkgutil import walk_packages

from offmap_bench.figure import Figure
from offmap_bench.table import Table


def discover(package: str = __name__) -> dict[str, Table | Figure]:
    """Finds by name what the modules of ``package`` list in ``TABLES``."""
    found: dict[str, Table | Figure] = {}
    home: dict[str, str] = {}
    for module in walk_packages(import_module(package).__path__, f"{package}."):
        for table in getattr(import_module(module.name), "TABLES", ()):
            if table.name in found:
                raise ValueError(f"two are named {table.name!r}: in {home[table.name]} and {module.name}")
            found[table.name], home[table.name] = table, module.name
    return found
