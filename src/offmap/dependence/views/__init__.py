"""Sentence encoders trained on several views of each sentence, without labels."""

from offmap.dependence.views.encoder import MultiViewEncoder
from offmap.dependence.views.layers import TokenReader
from offmap.dependence.views.strategies import STRATEGIES, Strategy
from offmap.dependence.views.view import View

__all__ = ["STRATEGIES", "MultiViewEncoder", "Strategy", "TokenReader", "View"]
