"""Sentence encoders that learn from several views of each sentence, and how they are judged."""

from offmap.dependence.contrastive.encoder import SentenceViews
from offmap.dependence.contrastive.strategies import STRATEGIES, Strategy
from offmap.dependence.contrastive.sts import SETS, Pairs, spearman, sts_pairs
from offmap.dependence.contrastive.templates import TEMPLATES, Template

__all__ = ["SETS", "STRATEGIES", "TEMPLATES", "Pairs", "SentenceViews", "Strategy", "Template", "spearman", "sts_pairs"]
