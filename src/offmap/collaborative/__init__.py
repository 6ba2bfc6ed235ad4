"""Collaborative anomaly detection: one model for thousands of entities, each with few rows."""

__all__: list[str] = []
