"""Post-hoc novelty scores: from the features and logits that any trained model gives."""

from offmap.scores.score import Outputs, Score

__all__ = ["Outputs", "Score"]
