"""The closed-set classifier of the known classes that most open-set methods train first."""

import math
from abc import ABC
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.optim import AdamW

from offmap.base import OpenSetClassifier
from offmap.nets import Standardise, mlp
from offmap.nets.steady import Linear
from offmap.openset.negatives import Shell
from offmap.parameters import Count, NonNegative, Positive, Share
from offmap.train import Batch, Batches, descend, train

Loss = Callable[[Tensor, Tensor], Tensor]
Objective = Callable[[Batch], dict[str, Tensor]]


class ClosedSetNetwork(nn.Module):
    """A perceptron that standardises rows and returns one logit per class.

    Args:
        inputs: Number of input features.
        hidden: Widths of the hidden layers; the last one is the feature layer. With none the classifier is linear.
        outputs: Number of logits.
        dropout: Share of the features dropped while training.
    """

    def __init__(self, inputs: int, hidden: tuple[int, ...], outputs: int, dropout: float) -> None:
        super().__init__()
        self.standardise = Standardise(inputs)
        self.body = nn.Sequential(mlp([inputs, *hidden]), nn.ReLU()) if hidden else nn.Identity()
        self.dropout = nn.Dropout(dropout)
        self.head: nn.Linear = Linear((inputs, *hidden)[-1], outputs)

    def features(self, X: Tensor) -> Tensor:
        """Returns the last hidden layer, or the standardised rows if there is none."""
        return self.body(self.standardise(X))

    def classify(self, Z: Tensor) -> Tensor:
        """Returns the logits of standardised rows."""
        return self.head(self.dropout(self.body(Z)))

    def forward(self, X: Tensor) -> Tensor:
        """Returns the logits of rows."""
        return self.classify(self.standardise(X))


@dataclass(kw_only=True, eq=False, repr=False)
class ClosedSetClassifier(OpenSetClassifier, ABC):
    """Base of the methods that train a perceptron on the known classes and derive the novelty from it.

    Args:
        hidden: Widths of the hidden layers. An empty tuple (``--set hidden=``) makes the classifier linear.
        dropout: Share of the features dropped while training. Raise it if the classifier overfits.
        epochs: Passes over the training rows.
        batch_size: Rows per training step.
        lr: Learning rate of AdamW.
        weight_decay: Weight decay of AdamW.
    """

    hidden: tuple[Count, ...] = (128,)
    dropout: Share = 0.1
    epochs: Count = 30
    batch_size: Count = 128
    lr: Positive = 3e-3
    weight_decay: NonNegative = 1e-2

    def _new_network(self, extra_classes: int = 0) -> ClosedSetNetwork:
        """Makes the untrained network, with ``extra_classes`` logits after those of the known classes."""
        width, outputs = math.prod(self.input_shape_), len(self.classes_) + extra_classes
        return ClosedSetNetwork(width, tuple(self.hidden), outputs, self.dropout).to(self.device)

    def _fit_closed(self, X: Tensor, y: Tensor, loss: Loss = cross_entropy, negative_weight: float = 0.0) -> None:
        """Trains the network on the known classes.

        Args:
            X: Training rows.
            y: Codes of their classes.
            loss: Maps logits and codes to a scalar.
            negative_weight: Weight of synthetic negatives, one per row, that the last logit stands for.
        """
        shell = Shell.around(Standardise(X.shape[1]).fit(X)(X), y, len(self.classes_)) if negative_weight else None

        def terms(batch: Batch) -> dict[str, Tensor]:
            rows, codes = batch
            rows = self.network_.standardise(rows)
            found = {"classification": loss(self.network_.classify(rows), codes)}
            if shell is not None:
                logits = self.network_.classify(rows + shell.offsets(codes))
                found["negatives"] = negative_weight * loss(logits, torch.full_like(codes, len(self.classes_)))
            return found

        self._fit_network(X, y, terms)

    def _fit_network(self, X: Tensor, y: Tensor, terms: Objective) -> None:
        """Builds the network and trains it on ``terms``, which maps a batch of rows and codes to named scalars."""
        self._build()
        self.network_.standardise.fit(X)
        optimizer = AdamW(self.network_.parameters(), lr=self.lr, weight_decay=self.weight_decay)
        self.history_ = train(
            descend(optimizer, terms),
            Batches((X, y), self.batch_size),
            epochs=self.epochs,
            state={"network": self.network_, "optimizer": optimizer},
            label="closed-set classifier",
        )
