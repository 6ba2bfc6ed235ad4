"""Data: named sets with checksums, readers of files and folders, open-set splits, and made-up images."""

from offmap.data.readers import open_data, read
from offmap.data.registry import Listing, describe, load, load_table, names
from offmap.data.rows import Data
from offmap.data.splits import OpenSplit, hold_out_classes, known_classes
from offmap.data.store import DataCorrupt, DataNotFound
from offmap.data.synthetic import constant_images, uniform_noise

__all__ = [
    "Data",
    "DataCorrupt",
    "DataNotFound",
    "Listing",
    "OpenSplit",
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
