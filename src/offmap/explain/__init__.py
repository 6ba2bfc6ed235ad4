"""Why a row is novel: contributions of its parts, the nearest normal rows, and what would make it normal."""

from offmap.explain.build import explain, top_reasons
from offmap.explain.counterfactual import Counterfactual
from offmap.explain.explanation import ClosestClass, EntityProfile, Explanation, Reason

__all__ = ["ClosestClass", "Counterfactual", "EntityProfile", "Explanation", "Reason", "explain", "top_reasons"]
