"""Named data sets, readers of files and folders, open-set splits, synthetic images, encoders of texts and tables."""

import importlib
from typing import TYPE_CHECKING, Any

from offmap.data.readers import open_data, read
from offmap.data.registry import Listing, describe, load, load_table, names
from offmap.data.rows import Data
from offmap.data.splits import OpenSplit, hold_out_classes, known_classes
from offmap.data.store import DataCorrupt, DataNotFound
from offmap.data.synthetic import constant_images, uniform_noise
from offmap.data.table import ColumnsLeftOut, TableEncoder

if TYPE_CHECKING:
    from offmap.data.module_encoder import ModuleEncoder
    from offmap.data.text import TextEncoder, TextTruncated

__all__ = [
    "ColumnsLeftOut",
    "Data",
    "DataCorrupt",
    "DataNotFound",
    "Listing",
    "ModuleEncoder",
    "OpenSplit",
    "TableEncoder",
    "TextEncoder",
    "TextTruncated",
    "constant_images",
    "describe",
    "hold_out_classes",
    "known_classes",
    "load",
    "load_table",
    "names",
    "open_data",
    "read",
    "uniform_noise",
]


def __getattr__(name: str) -> Any:
    """Imports the encoders that need torch on first use."""
    if name == "ModuleEncoder":
        return importlib.import_module("offmap.data.module_encoder").ModuleEncoder
    if name in ("TextEncoder", "TextTruncated"):
        return getattr(importlib.import_module("offmap.data.text"), name)
    raise AttributeError(f"module 'offmap.data' has no attribute {name!r}")
