r"""The embedding of a task for features that stay: logistic regression with a prior, for many tasks at once.

$$e_t = \arg\min_e \; n_t \left( \operatorname{mean}_{own} \log(1 + e^{-\langle \varphi, e \rangle})
+ \operatorname{mean}_{pop} \log(1 + e^{\langle \varphi, e \rangle}) \right)
+ \tfrac12 (e - \bar e)^\top \Sigma^{-1} (e - \bar e)$$

The prior is that of the tasks already known, whose embeddings have mean $\bar e$ and covariance $\Sigma$: a task with
few exposures is like the others, one with many is like itself.
"""

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.optim import Adam

from offmap.collaborative.exposures import Exposures
from offmap.collaborative.joint import Loss
from offmap.train import Batch, Batches, descend, train

# Steps by the bound before those by Newton's method, of which one that moves no score further than so is the last.
_BOUNDED, _MOST_STEPS, _SMALL_MOVE, _SMALLEST = 1, 20, 0.3, 1e-6
# Tasks, and rows of theirs, that are solved for at once.
_TASKS, _ROWS = 512, 16384
# Passes, and exposures a step, to the embedding of a network.
_PASSES, _SEARCH_BATCH = 60, 4096


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
    r"""Finds embeddings by Newton's method, many tasks at once, in coordinates in which the prior is standard normal.

    From the prior's mean whole Newton steps diverge for clear-cut tasks. The first step therefore divides by the
    curvature of the quadratic bound that touches the logistic loss where it is, which never overshoots. Those after it,
    which would move scores by $\delta$ at the most, are cut to $\log(1 + \delta) / \delta$ of their length, under which
    the loss always falls.

    Args:
        size: Width of an embedding, and of the features of a row.
        sample: Rows of the population to compare with.

    Reference: Jaakkola and Jordan, Bayesian Parameter Estimation via Variational Methods, Statistics and Computing
    2000 (the bound); Sun and Tran-Dinh, Generalized Self-Concordant Functions, Mathematical Programming 2019 (the cut).
    """

    population: Tensor
    level: Tensor

    def __init__(self, size: int, sample: int) -> None:
        super().__init__()
        self.prior = Prior(size)
        self.register_buffer("population", torch.zeros(sample, size))
        self.register_buffer("level", torch.zeros(sample))

    def prepare(self, population: Tensor, embeddings: Tensor) -> None:
        """Remembers rows of the population, and learns the prior from embeddings that are known."""
        self.prior.measure(embeddings)
        self.population.copy_(population @ self.prior.root)
        self.level.copy_(population @ self.prior.mean)

    def forward(self, features: Tensor, shown: Exposures) -> Tensor:
        """The embedding of each task of ``shown``, from the features of its rows."""
        counts = shown.counts
        if len(counts) == 1:
            points = self._points(features[shown.index].unsqueeze(0), counts.to(features).unsqueeze(1))
        else:
            points = features.new_empty(len(counts), features.shape[1])
            for tasks, own in _padded(features, shown):
                points[tasks] = self._points(own, counts[tasks].to(features).unsqueeze(1))
        return self.prior.mean + points @ self.prior.root.T

    def _points(self, own: Tensor, counts: Tensor) -> Tensor:
        """The optimum of each task; ``own`` is tasks × exposures × features."""
        sides, share = -own @ self.prior.root, counts / len(self.population)
        own_scores, scores = (-own @ self.prior.mean).unsqueeze(2), self.level.expand(len(own), -1)
        point = own.new_zeros(len(own), own.shape[2])
        for step in range(_MOST_STEPS):
            bend = _bound if step < _BOUNDED else _curvature
            own_rate, rate = own_scores.sigmoid(), scores.sigmoid()
            gradient = torch.addmm(point, share * rate, self.population).unsqueeze(2).baddbmm(sides.mT, own_rate)
            hessian = self._population_hessian(share * bend(scores, rate))
            hessian = hessian.baddbmm(sides.mT, bend(own_scores, own_rate) * sides)
            # Rows that are not finite are not to stop the others: their tasks get an embedding of NaN.
            change = torch.cholesky_solve(gradient, torch.linalg.cholesky_ex(hessian).L)
            own_move, move = sides @ change, change.squeeze(2) @ self.population.T
            if step >= _BOUNDED:
                largest = torch.maximum(own_move.abs().amax(dim=(1, 2)), move.abs().amax(dim=1)).view(-1, 1, 1)
                if float(largest.max()) < _SMALL_MOVE:
                    return point - change.squeeze(2)
                length = largest.log1p() / largest.clamp(min=_SMALLEST)
                change, own_move, move = length * change, length * own_move, length.squeeze(2) * move
            point, own_scores, scores = point - change.squeeze(2), own_scores - own_move, scores - move
        return point

    def _population_hessian(self, weights: Tensor) -> Tensor:
        """The part of the Hessian that the population and the prior make, for weights tasks × rows."""
        size = self.population.shape[1]
        one = torch.eye(size, dtype=weights.dtype, device=weights.device)
        if len(weights) == 1:
            return torch.addmm(one, weights * self.population.T, self.population).unsqueeze(0)
        products = (self.population.unsqueeze(2) * self.population.unsqueeze(1)).flatten(1)
        return torch.addmm(one.flatten(), weights, products).view(-1, size, size)


def _curvature(scores: Tensor, rate: Tensor) -> Tensor:
    r"""The second derivative $\sigma(s) (1 - \sigma(s))$ of $\log(1 + e^s)$."""
    return torch.addcmul(rate, rate, rate, value=-1)


def _bound(scores: Tensor, rate: Tensor) -> Tensor:
    r"""The curvature $(\sigma(s) - \frac12) / s$ of the bound on $\log(1 + e^s)$ that touches it at $s$ and $-s$."""
    return torch.where(scores.abs() > 1e-3, (rate - 0.5) / scores, 0.25)


def _padded(features: Tensor, shown: Exposures) -> Iterator[tuple[Tensor, Tensor]]:
    """Tasks of like counts and what they were shown, tasks × rows × features, with rows of zeros at the end."""
    counts, rows = shown.counts, shown.index[torch.argsort(shown.tasks, stable=True)]
    first = counts.cumsum(0) - counts
    for tasks in _groups(counts):
        place = torch.arange(int(counts[tasks[-1]]), device=counts.device)
        at = (first[tasks].unsqueeze(1) + place).clamp(max=len(rows) - 1)
        real = place < counts[tasks].unsqueeze(1)
        yield tasks, features[rows[at]].masked_fill(~real.unsqueeze(2), 0.0)


def _groups(counts: Tensor) -> Iterator[Tensor]:
    """Tasks in the order of their counts, in groups of not too many rows."""
    order = torch.argsort(counts, stable=True)
    lengths, start = counts[order].tolist(), 0
    while start < len(lengths):
        end = start + 1
        while end < min(len(lengths), start + _TASKS) and (end + 1 - start) * lengths[end] <= _ROWS:
            end += 1
        yield order[start:end]
        start = end


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
