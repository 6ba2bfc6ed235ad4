"""Rows that do not fit in memory, and machines that are not enough: streams of files, and Ray."""

from offmap.data.roles import Roles
from offmap.scale.ray_dataset import score_dataset
from offmap.scale.score_files import Summary, score_batches, score_files

__all__ = ["Roles", "Summary", "score_batches", "score_dataset", "score_files"]
