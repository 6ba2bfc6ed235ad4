r"""The embedding of a task for features that stay: logistic regression with a prior, for many tasks at once.

$$e_t = \arg\min_e \; n_t \left( \operatorname{mean}_{own} \log(1 + e^{-\langle \varphi, e \rangle})
+ \operatorname{mean}_{pop} \log(1 + e^{\langle \varphi, e \rangle}) \right)
+ \tfrac12 (e - \bar e)^\top \Sigma^{-1} (e - \bar e)$$

The prior is that of the tasks already known, whose embeddings have mean $\bar e$ and covariance $\Sigma$: a task with
few exposures is like the others, one with many is like itself.
"""

import torch
from torch import Tensor, nn
from torch.optim import Adam

from offmap.collaborative.exposures import Exposures
from offmap.collaborative.joint import Loss
from offmap.train import Batch, Batches, descend, train

# Gradient steps to the embedding of an inner product; passes, and exposures a step, to that of a network.
_STEPS, _PASSES, _SEARCH_BATCH = 30, 60, 4096


class Prior(nn.Module):
    """The normal distribution of embeddings that are known: a mean, and a root of the covariance."""

    mean: Tensor
    root: Tensor

    def __init__(self, size: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(size))
        self.register_buffer("root", torch.eye(size))

    def measure(self, embeddings: Tensor) -> None:
        """Takes mean and covariance of embeddings; no direction is quite certain."""
        self.mean.copy_(embeddings.mean(dim=0))
        spread = torch.atleast_2d(torch.cov(embeddings.T.double()))
        floor = 1e-3 * spread.diagonal().mean().clamp(min=1e-6)
        self.root.copy_(torch.linalg.cholesky(spread + floor * torch.eye(len(spread), device=spread.device)))


class EmbeddingSolver(nn.Module):
    """Finds embeddings by accelerated gradient steps in coordinates in which prior and population are diagonal.

    Args:
        size: Width of an embedding, and of the features of a row.
        sample: Rows of the population to compare with.
    """

    population: Tensor
    to_embedding: Tensor
    curvature: Tensor

    def __init__(self, size: int, sample: int) -> None:
        super().__init__()
        self.prior = Prior(size)
        self.register_buffer("population", torch.zeros(sample, size))
        self.register_buffer("to_embedding", torch.eye(size))
        self.register_buffer("curvature", torch.ones(size))

    def prepare(self, population: Tensor, embeddings: Tensor) -> None:
        """Remembers rows of the population, and learns the prior from embeddings that are known."""
        self.prior.measure(embeddings)
        self.population.copy_(population)
        seen = population.double() @ self.prior.root.double()
        curvature, axes = torch.linalg.eigh(seen.T @ seen / len(seen))
        self.to_embedding.copy_(self.prior.root.double() @ axes)
        self.curvature.copy_(curvature.clamp(min=0))

    def forward(self, features: Tensor, shown: Exposures) -> Tensor:
        """The embedding of each task of ``shown``, from the features of its rows."""
        own = features[shown.index]
        rotated, population = own @ self.to_embedding, self.population @ self.to_embedding
        base_own, base_population = own @ self.prior.mean, (self.population @ self.prior.mean).unsqueeze(1)
        counts = shown.counts.to(features.dtype).unsqueeze(1)
        # The logistic loss bends by a quarter at most, on each of the two sides; own rows may spread as far again.
        step = 1 / (counts * self.curvature + 1)
        point = ahead = features.new_zeros(len(counts), features.shape[1])
        for k in range(_STEPS):
            pull = torch.sigmoid(-(base_own + (rotated * ahead[shown.tasks]).sum(dim=1)))
            gradient = ahead - torch.zeros_like(ahead).index_add_(0, shown.tasks, pull.unsqueeze(1) * rotated)
            push = torch.sigmoid(base_population + population @ ahead.T)
            gradient = gradient + counts * (push.T @ population) / len(population)
            before, point = point, ahead - step * gradient
            ahead = point + k / (k + 3) * (point - before)
        return self.prior.mean + point @ self.to_embedding.T


def search(prior: Prior, loss: Loss, features: Tensor, shown: Exposures) -> Tensor:
    """The embeddings of lowest loss under a prior, for networks that stay, searched for by Adam.

    Args:
        prior: What embeddings are like.
        loss: Maps features of rows and embeddings of their tasks to a number.
        features: Features of the rows of ``shown``.
        shown: Exposures of the tasks.
    """
    points = nn.Embedding(len(shown.counts), prior.mean.numel(), device=features.device)
    nn.init.zeros_(points.weight)
    optimizer = Adam(points.parameters(), lr=0.1)
    counts = shown.counts.to(features.dtype)

    def terms(batch: Batch) -> dict[str, Tensor]:
        index, tasks = batch
        found = points(tasks)
        away = 0.5 * (found.square().sum(dim=1) / counts[tasks]).mean()
        return {"loss": loss(features[index], prior.mean + found @ prior.root.T), "prior": away}

    batches = Batches((shown.index, shown.tasks), _SEARCH_BATCH)
    with torch.enable_grad():
        train(descend(optimizer, terms), batches, epochs=_PASSES, state={"points": points}, label="new tasks")
    return prior.mean + points.weight.detach() @ prior.root.T
