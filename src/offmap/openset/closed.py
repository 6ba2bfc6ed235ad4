"""The closed-set classifier that open-set methods start from."""

from typing import Any

from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.optim import AdamW

from offmap.nets import Standardise, mlp
from offmap.train import Batch, Batches, History, descend, train


class ClosedSetNetwork(nn.Module):
    """Standardises rows, maps them to a feature layer, and that to one logit a class.

    Args:
        inputs: Width of a row.
        hidden: Widths of the hidden layers; the last is the feature layer. With none the classifier is linear.
        classes: Number of known classes.
        dropout: Share of the features dropped while training.
    """

    def __init__(self, inputs: int, hidden: tuple[int, ...], classes: int, dropout: float) -> None:
        super().__init__()
        self.standardise = Standardise(inputs)
        self.body = nn.Sequential(mlp([inputs, *hidden]), nn.ReLU()) if hidden else nn.Identity()
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear((inputs, *hidden)[-1], classes)

    def features(self, X: Tensor) -> Tensor:
        """The last hidden layer; the standardised rows if there is none."""
        return self.body(self.standardise(X))

    def forward(self, X: Tensor) -> Tensor:
        """One logit a known class."""
        return self.head(self.dropout(self.features(X)))


def fit_closed_set(network: ClosedSetNetwork, X: Tensor, y: Tensor, estimator: Any) -> History:
    """Trains the network on the known classes with cross-entropy."""
    network.standardise.fit(X)
    optimizer = AdamW(network.parameters(), lr=estimator.lr, weight_decay=estimator.weight_decay)

    def terms(batch: Batch) -> dict[str, Tensor]:
        rows, labels = batch
        return {"cross_entropy": cross_entropy(network(rows), labels)}

    return train(
        descend(optimizer, terms),
        Batches((X, y), estimator.batch_size),
        epochs=estimator.epochs,
        state={"network": network, "optimizer": optimizer},
        label="closed-set classifier",
    )
