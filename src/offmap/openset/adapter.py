"""The feature space of the ANS heads: scaled rows, optionally adapted to the known classes by one residual layer."""

from torch import Tensor, nn
from torch.nn.functional import cross_entropy, normalize
from torch.optim import AdamW

from offmap.class_statistics import class_means
from offmap.nets import Standardise
from offmap.nets.steady import Linear
from offmap.train import Batch, Batches, History, descend, train

# Rows lie on a sphere if the standard deviation of their lengths is below this share of the mean length.
_SPHERE = 1e-3
# Rows all point one way if their mean is longer than this share of the mean length.
_ONE_WAY = 0.9
# Temperature of the cosine classifier that trains the adapter.
_TEMPERATURE = 0.1


class Adapter(nn.Module):
    r"""Rotates rows by one residual layer and keeps their lengths: $z = \|x\|\,(x + Ax) / \|x + Ax\|$.

    It starts as the identity. A full hidden layer trained on the known classes maps unknown rows onto them; a short
    residual step keeps what sets them apart.

    Args:
        width: Number of features.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.shift = Linear(width, width, bias=False)
        nn.init.zeros_(self.shift.weight)

    def forward(self, X: Tensor) -> Tensor:
        """Returns rows of the same lengths in new directions."""
        return X.norm(dim=1, keepdim=True) * normalize(X + self.shift(X), dim=1)


def fit_scale(layer: Standardise, X: Tensor, *, one_unit: bool) -> None:
    """Fits ``layer`` to scale rows for training while preserving their geometry where possible.

    If all features share one unit, all are divided by the same number, which keeps the angles between rows. That holds
    for images and for rows on a sphere, such as sentence embeddings. Other features are standardised one by one.

    Args:
        layer: The layer to fit.
        X: Training rows.
        one_unit: Whether the features are known to share one unit.
    """
    layer.fit(X)
    if one_unit or _on_a_sphere(X):
        layer.mean.zero_()
        layer.scale.fill_(X.double().std(dim=0, correction=0).mean().clamp_min(1e-6))


def _on_a_sphere(X: Tensor) -> bool:
    """Whether rows have the same length but many directions; a large constant feature alone does not count."""
    length = X.norm(dim=1)
    one_length = length.std(correction=0) < _SPHERE * length.mean()
    return bool(one_length and X.mean(dim=0).norm() < _ONE_WAY * length.mean())


def fit_adapter(adapter: Adapter, X: Tensor, y: Tensor, *, epochs: int) -> History:
    """Trains the adapter under a cosine classifier of the known classes, whose prototypes start at the class means."""
    prototypes = nn.Parameter(class_means(X, y))
    optimizer = AdamW([*adapter.parameters(), prototypes], lr=1e-3, weight_decay=0.1)

    def terms(batch: Batch) -> dict[str, Tensor]:
        rows, codes = batch
        cosines = normalize(adapter(rows), dim=1) @ normalize(prototypes, dim=1).T
        return {"adapter": cross_entropy(cosines / _TEMPERATURE, codes)}

    return train(
        descend(optimizer, terms),
        Batches((X, y), size=128),
        epochs=epochs,
        state={"adapter": adapter, "optimizer": optimizer},
        label="adapter",
    )
