r"""The embedding of a task for features that stay: logistic regression with a prior, for many tasks at once.

$$e_t = \arg\min_e \; n_t \left( \operatorname{mean}_{own} \log(1 + e^{-\langle \varphi, e \rangle})
+ \operatorname{mean}_{pop} \log(1 + e^{\langle \varphi, e \rangle}) \right)
+ \tfrac12 (e - \bar e)^\top \Sigma^{-1} (e - \bar e)$$

The prior is that of the tasks already known, whose embeddings have mean $\bar e$ and covariance $\Sigma$: a task with
few exposures is like the others, one with many is like itself. A known task that gets more exposures has its own
embedding for a prior mean, and a precision that grew with those that it was found from.
"""

from collections.abc import Iterator
from typing import NamedTuple

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


class Known(NamedTuple):
    """What is known of tasks before more exposures come: embeddings, and how many exposures they were found from."""

    embeddings: Tensor
    counts: Tensor


class Prior(nn.Module):
    """The normal distribution of embeddings that are known: a mean, and a root of the covariance."""

    mean: Tensor
    root: Tensor

    def __init__(self, size: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(size))
        self.register_buffer("root", torch.eye(size))

    def points(self, embeddings: Tensor) -> Tensor:
        """Embeddings in coordinates in which the prior is standard normal."""
        return torch.linalg.solve_triangular(self.root.T, embeddings - self.mean, upper=True, left=False)

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

    def forward(self, features: Tensor, shown: Exposures, known: Known | None = None) -> Tensor:
        """The embedding of each task of ``shown``, from the features of its rows, and from what was known of it."""
        counts = shown.counts
        if len(counts) == 1:
            points = self._points(features[shown.index].unsqueeze(0), counts.to(features).unsqueeze(1), known)
        else:
            points = features.new_empty(len(counts), features.shape[1])
            for tasks, own in _padded(features, shown):
                before = None if known is None else Known(known.embeddings[tasks], known.counts[tasks])
                points[tasks] = self._points(own, counts[tasks].to(features).unsqueeze(1), before)
        return self.prior.mean + points @ self.prior.root.T

    def _points(self, own: Tensor, counts: Tensor, known: Known | None) -> Tensor:
        """The optimum of each task; ``own`` is tasks × exposures × features."""
        sides, share = -own @ self.prior.root, counts / len(self.population)
        own_scores, scores = (-own @ self.prior.mean).unsqueeze(2), self.level.expand(len(own), -1)
        start = point = own.new_zeros(len(own), own.shape[2])
        precision = torch.eye(own.shape[2], device=own.device).expand(len(own), -1, -1)
        if known is not None:
            start = point = self.prior.points(known.embeddings)
            own_scores, scores = own_scores + sides @ start.unsqueeze(2), scores + start @ self.population.T
            precision = self._weighted(known.counts.unsqueeze(1) * _told(scores), precision)
        for step in range(_MOST_STEPS):
            bend = _bound if step < _BOUNDED else _curvature
            own_rate, rate = own_scores.sigmoid(), scores.sigmoid()
            pull = point if known is None else (precision @ (point - start).unsqueeze(2)).squeeze(2)
            gradient = torch.addmm(pull, share * rate, self.population).unsqueeze(2).baddbmm(sides.mT, own_rate)
            hessian = self._weighted(share * bend(scores, rate), precision)
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

    def _weighted(self, weights: Tensor, first: Tensor) -> Tensor:
        """The squares of the population, added up with weights tasks × rows, on top of the matrices ``first``."""
        if len(weights) == 1:
            return torch.addmm(first[0], weights * self.population.T, self.population).unsqueeze(0)
        products = (self.population.unsqueeze(2) * self.population.unsqueeze(1)).flatten(1)
        return torch.addmm(first.flatten(1), weights, products).view(first.shape)


def _told(scores: Tensor) -> Tensor:
    r"""How much each row of the population tells of a task for one of its exposures that are gone, tasks × rows.

    What they told is the curvature of their loss. Its mean over exposures is that over the population by the ratio
    $e^f$ of the two.
    """
    return _curvature(scores, scores.sigmoid()) * (1 / scores.shape[1] + scores.softmax(dim=1))


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


def search(prior: Prior, loss: Loss, features: Tensor, shown: Exposures, known: Known | None = None) -> Tensor:
    """The embeddings of lowest loss under a prior, for networks that stay, searched for by Adam.

    The curvature of a network is not to be had at little cost: here what is known of a task counts as if the prior were
    worth one exposure.

    Args:
        prior: What embeddings are like.
        loss: Maps features of rows and embeddings of their tasks to a number.
        features: Features of the rows of ``shown``.
        shown: Exposures of the tasks.
        known: What is known of them already.
    """
    start = (
        prior.mean.new_zeros(len(shown.counts), len(prior.mean)) if known is None else prior.points(known.embeddings)
    )
    worth = torch.ones_like(start[:, 0]) if known is None else 1 + known.counts
    points = nn.Embedding.from_pretrained(start.clone(), freeze=False)
    optimizer = Adam(points.parameters(), lr=0.1)
    counts = shown.counts.to(features.dtype)

    def terms(batch: Batch) -> dict[str, Tensor]:
        index, tasks = batch
        found = points(tasks)
        away = 0.5 * ((found - start[tasks]).square().sum(dim=1) * worth[tasks] / counts[tasks]).mean()
        return {"loss": loss(features[index], prior.mean + found @ prior.root.T), "prior": away}

    batches = Batches((shown.index, shown.tasks), _SEARCH_BATCH)
    with torch.enable_grad():
        train(descend(optimizer, terms), batches, epochs=_PASSES, state={"points": points}, label="new tasks")
    return prior.mean + points.weight.detach() @ prior.root.T
