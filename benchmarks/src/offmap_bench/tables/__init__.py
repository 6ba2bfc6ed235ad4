"""All tables and figures. Each module of this package lists its own in ``TABLES``."""

from importlib import import_module
from pkgutil import walk_packages

from offmap_bench.figure import Figure
from offmap_bench.table import Table


def discover(package: str = __name__) -> dict[str, Table | Figure]:
    """Imports the modules of ``package`` and returns what they list in ``TABLES``, by name."""
    found: dict[str, Table | Figure] = {}
    home: dict[str, str] = {}
    for module in walk_packages(import_module(package).__path__, f"{package}."):
        for table in getattr(import_module(module.name), "TABLES", ()):
            if table.name in found:
                raise ValueError(f"the name {table.name!r} is used twice: in {home[table.name]} and {module.name}")
            found[table.name], home[table.name] = table, module.name
    return found
