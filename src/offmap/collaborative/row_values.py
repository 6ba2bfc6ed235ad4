"""What is known of each row, whose mean over an entity's rows describes the entity."""

import torch
from sklearn.decomposition import PCA
from sklearn.mixture import GaussianMixture
from torch import Tensor, nn
from torch.nn.functional import one_hot

from offmap.collaborative.networks import RowNetwork, perceptron
from offmap.collaborative.observations import Observations
from offmap.collaborative.training import Schedule, mean_loss, optimizer_of
from offmap.nets import Standardise
from offmap.nets.steady import Linear
from offmap.random_state import torch_seed
from offmap.ratio import loss_on_p, loss_on_q
from offmap.train import Batch, Batches, descend, train

# Principal components that a mixture is fitted to, at most.
_LARGEST_MIXTURE = 32


class Labels(nn.Module):
    """The label of each row, one-hot: its mean over an entity is the share of each label."""

    def __init__(self, labels: int) -> None:
        super().__init__()
        self.size = labels

    def forward(self, observed: Observations) -> Tensor:
        """One vector per row."""
        if observed.labels is None:
            raise ValueError('labels must be given for embedding="label" and embedding="histogram"')
        return one_hot(observed.labels, self.size).float()


class Clusters(nn.Module):
    """The cluster of each row in a Gaussian mixture, one-hot.

    Features are standardised, pixels are not; then rows are projected onto their first 32 principal components.
    """

    def __init__(self, inputs: int, clusters: int) -> None:
        super().__init__()
        self.size = clusters
        kept = min(inputs, _LARGEST_MIXTURE)
        self.standardise = Standardise(inputs)
        shapes = {"mean": (inputs,), "axes": (kept, inputs), "weight": (clusters,), "centres": (clusters, kept)}
        for name, shape in (shapes | {"precision": (clusters, kept, kept)}).items():
            self.register_buffer(name, torch.zeros(shape))

    def fit(self, X: Tensor) -> "Clusters":
        """Finds the clusters of the rows ``X``, from a sample of 20,000 if there are more."""
        drawn = X[torch.randperm(len(X))[:20000]]
        if X.ndim == 2:
            self.standardise.fit(drawn)
        rows = self.standardise(drawn.flatten(1)).double().cpu().numpy()
        kept = min(self.get_buffer("axes").shape[0], *rows.shape)
        pca = PCA(kept, random_state=torch_seed()).fit(rows)
        mixture = GaussianMixture(
            self.size, reg_covar=1e-3 * float(pca.explained_variance_.mean()), random_state=0, max_iter=50, tol=1e-2
        ).fit(pca.transform(rows))
        found = {"mean": pca.mean_, "axes": pca.components_, "weight": mixture.weights_, "centres": mixture.means_}
        for name, value in (found | {"precision": mixture.precisions_cholesky_}).items():
            buffer = self.get_buffer(name)
            buffer[tuple(slice(length) for length in value.shape)] = torch.from_numpy(value).to(buffer)
        return self

    def assign(self, X: Tensor) -> Tensor:
        """The most likely cluster of each row."""
        z = (self.standardise(X.flatten(1)) - self.get_buffer("mean")) @ self.get_buffer("axes").T
        precision = self.get_buffer("precision")
        apart = torch.einsum("nd,kde->nke", z, precision) - torch.einsum(
            "kd,kde->ke", self.get_buffer("centres"), precision
        )
        scale = precision.diagonal(dim1=1, dim2=2).clamp(min=1e-30).log().sum(dim=1)
        return (self.get_buffer("weight").log() + scale - 0.5 * apart.square().sum(dim=2)).argmax(dim=1)

    def forward(self, observed: Observations) -> Tensor:
        """One vector per row."""
        clusters = torch.cat([self.assign(rows) for rows in observed.X.split(1024)])
        return one_hot(clusters, self.size).float()


class SeedRatios(nn.Module):
    r"""The log ratios of each row for $M_0$ seed entities, by a network trained on these alone.

    The embedding of an entity is their mean over its rows:

    $$\hat e^{(t)}_s = \mathbb{E}_{q^{(t)}}\, r^{(s)}(x), \qquad s = 1 \dots M_0$$

    Reference: Bai et al., Collaborative Anomaly Detection, section 4, equation 4.
    """

    def __init__(
        self, body: RowNetwork, hidden: tuple[int, ...], dropout: float | tuple[float, ...], seeds: int
    ) -> None:
        super().__init__()
        self.size = seeds
        widths = (body.outputs, *hidden)
        self.body = body
        self.layers = nn.Sequential(perceptron(widths, dropout), Linear(widths[-1], seeds))

    def fit(self, observed: Observations, seeds: Tensor, schedule: Schedule) -> "SeedRatios":
        """Learns the ratios of the entities ``seeds`` to all entities."""
        self.body.fit(observed.X)
        own, validation = schedule.split(observed.only(seeds))
        share = own.counts / len(own)

        def terms(batch: Batch) -> dict[str, Tensor]:
            index, entities = batch
            others = observed.sample(len(index))
            ratios, population = self.ratios(observed.X[torch.cat([index, others])]).chunk(2)
            # A row of the sample counts for every seed entity, as often as the entity is drawn.
            against = (loss_on_q(population) * share).sum(dim=1).mean()
            return {"seeds": loss_on_p(ratios.gather(1, entities.unsqueeze(1))).mean() + against}

        optimizer = optimizer_of(self, None, schedule)
        train(
            descend(optimizer, terms),
            Batches((own.index, own.entities), schedule.batch_size),
            epochs=schedule.epochs,
            state={"network": self, "optimizer": optimizer},
            validate=(lambda: mean_loss(terms, validation, schedule.batch_size)) if len(validation) else None,
            patience=schedule.patience,
            label="seed entities",
        )
        return self

    def ratios(self, X: Tensor) -> Tensor:
        """The log ratio of each row for each seed entity."""
        return self.layers(self.body(X))

    def forward(self, observed: Observations) -> Tensor:
        """The log ratios of each row."""
        with torch.no_grad():
            return torch.cat([self.ratios(rows) for rows in observed.X.split(1024)])
