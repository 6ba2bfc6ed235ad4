"""The network of ANS: a feature space, labels among the known classes, and one head per class."""

from typing import final

import torch
from torch import Tensor, nn

from offmap.nets import Standardise
from offmap.nets.stacked import stacked_mlp
from offmap.nets.steady import Linear
from offmap.openset.adapter import Adapter
from offmap.openset.ans_learning import AnalyticLabels


@final
class ANSNetwork(nn.Module):
    """Scales and adapts rows, labels them among the known classes, and accepts or rejects them with one head per class.

    Args:
        inputs: Number of input features.
        classes: Number of known classes.
        hidden: Widths of the hidden layers of each head.
        dropout: Share of each hidden layer dropped while training.
        adapted: Whether an adapter follows the scaling.
        width: Number of random features of the analytic closed-set part; 0 for logistic regression.
    """

    def __init__(
        self, inputs: int, classes: int, hidden: tuple[int, ...], dropout: float, adapted: bool, width: int = 0
    ) -> None:
        super().__init__()
        self.scale = Standardise(inputs)
        self.adapter = Adapter(inputs) if adapted else nn.Identity()
        self.classifier = AnalyticLabels(inputs, width, classes) if width else Linear(inputs, classes)
        self.heads = stacked_mlp([inputs] * classes, [*hidden, 1], dropout)
        self.inputs, self.classes, self.hidden, self.dropout = inputs, classes, hidden, dropout

    def space(self, X: Tensor) -> Tensor:
        """Returns rows in the feature space of the heads."""
        return self.adapter(self.scale(X))

    def own_logits(self, rows: Tensor) -> Tensor:
        """Returns logits ``(classes, n)`` of rows ``(classes, n, inputs)``: each head sees rows of its own."""
        return self.heads(rows).squeeze(-1)

    def head_logits(self, rows: Tensor) -> Tensor:
        """Returns logits ``(n, classes)`` of rows ``(n, inputs)``: every head sees the same rows."""
        return self.own_logits(rows.expand(self.classes, *rows.shape)).transpose(0, 1)

    def take_heads(self, heads: dict[str, Tensor]) -> None:
        """Takes the given heads in place of its own, and has as many classes; a linear classifier must be fitted anew.

        Args:
            heads: The state of the heads, one per class along the first axis.
        """
        self.classes, device = len(next(iter(heads.values()))), self.scale.mean.device
        # Made without memory or random numbers: the weights are given.
        with torch.device("meta"):
            self.heads = stacked_mlp([self.inputs] * self.classes, [*self.hidden, 1], self.dropout)
        self.heads.load_state_dict({name: weights.to(device) for name, weights in heads.items()}, assign=True)
        if isinstance(self.classifier, nn.Linear):
            self.classifier = Linear(self.inputs, self.classes, device=device)
        self.eval()
