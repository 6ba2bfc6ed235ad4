"""The space that one-versus-rest heads live in: the rows themselves, or a layer that brings known classes together."""

from torch import Tensor, nn
from torch.nn.functional import cross_entropy, normalize
from torch.optim import AdamW

from offmap.nets import Standardise
from offmap.openset.negatives import class_means
from offmap.train import Batch, Batches, History, descend, train

# Relative spread of the rows' lengths below which they lie on a sphere.
_SPHERE = 1e-3
# Length of the mean row, against the rows' own, above which they all point one way.
_ONE_WAY = 0.9
# The usual temperature of a cosine classifier.
_TEMPERATURE = 0.1


class Adapter(nn.Module):
    r"""A residual layer $z = \|x\|\,(x + Ax) / \|x + Ax\|$: it turns rows and keeps their lengths.

    It starts as the identity. A full hidden layer that is trained on the known classes maps unknown rows onto them; a
    short residual step keeps what sets them apart.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.shift = nn.Linear(width, width, bias=False)
        nn.init.zeros_(self.shift.weight)

    def forward(self, X: Tensor) -> Tensor:
        """Rows of the same lengths in new directions."""
        return X.norm(dim=1, keepdim=True) * normalize(X + self.shift(X), dim=1)


def fit_scale(layer: Standardise, X: Tensor, *, one_unit: bool) -> None:
    """Brings rows to the scale that networks learn well at, without bending the space more than it must.

    Rows whose features are in one unit are all divided by one number, which keeps their angles: those that are said to
    be, such as images, and those all over a sphere, such as sentence embeddings. Features of other rows may be in any
    units; they are standardised one by one.
    """
    layer.fit(X)
    if one_unit or _over_a_sphere(X):
        layer.mean.zero_()
        layer.scale.fill_(X.double().std(dim=0, correction=0).mean().clamp_min(1e-6))


def _over_a_sphere(X: Tensor) -> bool:
    """Whether rows have one length and many directions; one large constant feature gives them a length, but one way."""
    length = X.norm(dim=1)
    one_length = length.std(correction=0) < _SPHERE * length.mean()
    return bool(one_length and X.mean(dim=0).norm() < _ONE_WAY * length.mean())


def fit_adapter(adapter: Adapter, X: Tensor, y: Tensor, *, epochs: int) -> History:
    """Trains the adapter with a cosine classifier of the known classes, whose prototypes start at the class means."""
    prototypes = nn.Parameter(class_means(X, y, int(y.max()) + 1))
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
        label="space",
    )
