"""First embeddings of tasks: what is known of every row, and what is made of it over the exposures of a task."""

from typing import Literal

import torch
from sklearn.decomposition import PCA
from sklearn.mixture import GaussianMixture
from torch import Tensor, nn
from torch.nn.functional import one_hot

from offmap.collaborative.exposures import Exposures
from offmap.collaborative.joint import Schedule, mean_loss, optimizer_of
from offmap.collaborative.networks import RowNetwork, perceptron
from offmap.collaborative.solve import Known
from offmap.nets import Standardise
from offmap.train import Batch, Batches, descend, train

Embedding = Literal["random", "learned", "pseudo", "label", "histogram", "given"]


class Labels(nn.Module):
    """The label of each row, as zeros and a one: their mean over a task is the share of each label."""

    def __init__(self, labels: int) -> None:
        super().__init__()
        self.size = labels

    def forward(self, shown: Exposures) -> Tensor:
        """One vector a row."""
        if shown.labels is None:
            raise ValueError('labels must be given for embedding="label" and embedding="histogram"')
        return one_hot(shown.labels, self.size).float()


class Clusters(nn.Module):
    """The cluster of each row in a Gaussian mixture, as zeros and a one.

    Columns are standardised, pixels are not; then rows are rotated to their principal components, at most 32 of them.
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
        """Finds the clusters of the rows ``X``, from 20,000 of them if there are more."""
        drawn = X[torch.randperm(len(X))[:20000]]
        if X.ndim == 2:
            self.standardise.fit(drawn)
        rows = self.standardise(drawn.flatten(1)).double().cpu().numpy()
        kept = min(self.get_buffer("axes").shape[0], *rows.shape)
        pca = PCA(kept, random_state=int(torch.randint(2**31 - 1, ()))).fit(rows)
        mixture = GaussianMixture(
            self.size, reg_covar=1e-3 * float(pca.explained_variance_.mean()), random_state=0, max_iter=50, tol=1e-2
        ).fit(pca.transform(rows))
        found = {"mean": pca.mean_, "axes": pca.components_, "weight": mixture.weights_, "centres": mixture.means_}
        for name, value in (found | {"precision": mixture.precisions_cholesky_}).items():
            buffer = self.get_buffer(name)
            buffer[tuple(slice(length) for length in value.shape)] = torch.from_numpy(value).to(buffer)
        return self

    def assign(self, X: Tensor) -> Tensor:
        """The likeliest cluster of each row."""
        z = (self.standardise(X.flatten(1)) - self.get_buffer("mean")) @ self.get_buffer("axes").T
        precision = self.get_buffer("precision")
        apart = torch.einsum("nd,kde->nke", z, precision) - torch.einsum(
            "kd,kde->ke", self.get_buffer("centres"), precision
        )
        scale = precision.diagonal(dim1=1, dim2=2).clamp(min=1e-30).log().sum(dim=1)
        return (self.get_buffer("weight").log() + scale - 0.5 * apart.square().sum(dim=2)).argmax(dim=1)

    def forward(self, shown: Exposures) -> Tensor:
        """One vector a row."""
        clusters = torch.cat([self.assign(rows) for rows in shown.X.split(1024)])
        return one_hot(clusters, self.size).float()


class SeedRatios(nn.Module):
    r"""The pre-embedding model: log ratios of $M_0$ seed tasks, of which a task's embedding is the mean.

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
        self.layers = nn.Sequential(perceptron(widths, dropout), nn.Linear(widths[-1], seeds))

    def fit(self, shown: Exposures, seeds: Tensor, schedule: Schedule) -> "SeedRatios":
        """Learns the ratios of the tasks ``seeds`` against the population of all tasks."""
        self.body.measure(shown.X)
        own, watched = schedule.split(shown.only(seeds))
        share = own.counts / len(own)

        def terms(batch: Batch) -> dict[str, Tensor]:
            index, tasks = batch
            others = shown.index[torch.randint(len(shown), (len(index),), device=index.device)]
            ratios, population = self.ratios(shown.X[torch.cat([index, others])]).chunk(2)
            # A population row counts for every seed task, as often as the task is drawn.
            against = (nn.functional.softplus(population) * share).sum(dim=1).mean()
            return {"seeds": nn.functional.softplus(-ratios.gather(1, tasks.unsqueeze(1))).mean() + against}

        optimizer = optimizer_of(self, None, schedule)
        train(
            descend(optimizer, terms),
            Batches((own.index, own.tasks), schedule.batch_size),
            epochs=schedule.epochs,
            state={"network": self, "optimizer": optimizer},
            validate=(lambda: mean_loss(terms, watched, schedule.batch_size)) if len(watched) else None,
            patience=schedule.patience,
            label="seed tasks",
        )
        return self

    def ratios(self, X: Tensor) -> Tensor:
        """The log ratio of each row for each seed task."""
        return self.layers(self.body(X))

    def forward(self, shown: Exposures) -> Tensor:
        """The log ratios of each row."""
        with torch.no_grad():
            return torch.cat([self.ratios(rows) for rows in shown.X.split(1024)])


class TaskMeans(nn.Module):
    r"""The mean over each task of something known of every row, standardised over the tasks that were fitted.

    Shares differ little from task to task: a network that starts from them as they are takes all tasks for one.

    The mean of few exposures is farther out than any task. With variances $v$ within tasks and $b$ between them, the
    best guess of a new task is $n / (n + v / b)$ of its mean: what is known of all tasks is worth $v / b$ exposures.
    """

    worth: Tensor

    def __init__(self, values: Labels | Clusters | SeedRatios) -> None:
        super().__init__()
        self.values, self.standardise = values, Standardise(values.size)
        self.register_buffer("worth", torch.zeros(values.size))

    def measure(self, shown: Exposures) -> None:
        """Takes means and variances of the tasks of ``shown``."""
        values, counts = self.values(shown), shown.counts.unsqueeze(1)
        means = shown.task_means(values)
        self.standardise.fit(means)
        squares = counts * (shown.task_means(values.square()) - means.square()).clamp(min=0)
        within = squares.sum(dim=0) / (counts - 1).sum().clamp(min=1)
        spread = means.var(dim=0, correction=0)
        # Means differ by chance, too.
        between = (spread - within * (1 / counts).mean()).clamp(min=_LEAST_BETWEEN * spread + 1e-12)
        self.worth.copy_(within / between)

    def forward(self, shown: Exposures) -> Tensor:
        """The vector that each task starts from."""
        return self.standardise(shown.task_means(self.values(shown)))

    def update(self, known: Known, shown: Exposures) -> Tensor:
        """The vectors of tasks that are shown more than before."""
        counts = shown.counts.unsqueeze(1)
        share = counts / (known.counts.unsqueeze(1) + self.worth + counts)
        return torch.lerp(known.embeddings, self(shown), share)


class LabelsThatOccur(nn.Module):
    """Ones at the labels that occur among the exposures of a task."""

    def __init__(self, labels: int) -> None:
        super().__init__()
        self.values = Labels(labels)

    def forward(self, shown: Exposures) -> Tensor:
        """The vector that each task starts from."""
        return (shown.task_means(self.values(shown)) > 0).float()

    def update(self, known: Known, shown: Exposures) -> Tensor:
        """The vectors of tasks that are shown more than before: what occurred stays, and so does what was trained."""
        occur = self(shown)
        return torch.where(occur > 0, torch.maximum(occur, known.embeddings), known.embeddings)


# Principal components that a mixture looks at, and the least share of the variance of means that is not chance.
_LARGEST_MIXTURE, _LEAST_BETWEEN = 32, 1e-3
