"""More rows than memory or one machine can hold: streams of files, Ray, and merged shards."""

from offmap.data.roles import Roles
from offmap.scale.merging import merge
from offmap.scale.ray_dataset import score_dataset
from offmap.scale.streams import Summary, score_batches, score_files

__all__ = ["Roles", "Summary", "merge", "score_batches", "score_dataset", "score_files"]
