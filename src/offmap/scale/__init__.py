"""Data and models too large for one process: shards that are fitted apart and merged."""

from offmap.scale.merging import merge

__all__ = ["merge"]
