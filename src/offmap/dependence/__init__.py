"""Mutual information and total correlation, as numbers and as losses."""

__all__: list[str] = []
