r"""Embeddings for inner-product heads: logistic regression with a normal prior, for many entities at once.

$$e_t = \arg\min_e \; n_t \left( \operatorname{mean}_{own} \log(1 + e^{-\langle \varphi, e \rangle})
+ \operatorname{mean}_{all} \log(1 + e^{\langle \varphi, e \rangle}) \right)
+ \tfrac12 (e - \bar e)^\top \Sigma^{-1} (e - \bar e)$$

The prior has the mean $\bar e$ and covariance $\Sigma$ of the embeddings that were fitted: an entity with few rows is
like the others, one with many is like itself. When a known entity gets more rows, its embedding becomes the prior mean,
and the prior's precision has grown with the rows that the embedding was found from.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from offmap.collaborative.entities import Columns, EntityTable
from offmap.collaborative.observations import Observations
from offmap.collaborative.parts import Head, Known, StreamSolver
from offmap.collaborative.prior import Prior

# Steps by the bound before those by Newton's method, of which one that moves no score further than so is the last.
_BOUNDED, _MOST_STEPS, _SMALL_MOVE, _SMALLEST = 1, 20, 0.3, 1e-6
# Entities, and rows of theirs, that are solved for at once.
_ENTITIES, _ROWS = 512, 16384


class NewtonSolver(StreamSolver):
    r"""Finds embeddings by Newton's method, many entities at once, in coordinates where the prior is standard normal.

    From the prior's mean, whole Newton steps diverge for entities that differ much from the others. The first step
    therefore divides by the curvature of the quadratic bound that touches the logistic loss at the current point, which
    never overshoots. The steps after it, if they would move a score by up to $\delta$, are cut to
    $\log(1 + \delta) / \delta$ of their length, under which the loss always falls.

    Args:
        size: Width of an embedding, and of the features of a row.
        sample: Number of rows of all entities to compare with.

    Reference: Jaakkola and Jordan, Bayesian Parameter Estimation via Variational Methods, Statistics and Computing
    2000 (the bound); Sun and Tran-Dinh, Generalized Self-Concordant Functions, Mathematical Programming 2019 (the cut).
    """

    draws = False
    population: Tensor
    level: Tensor

    def __init__(self, size: int, sample: int) -> None:
        super().__init__()
        self.prior = Prior(size)
        self.register_buffer("population", torch.zeros(sample, size))
        self.register_buffer("level", torch.zeros(sample))

    def prepare(self, population: Tensor, embeddings: Tensor) -> None:
        """Keeps the features of a sample of all rows, and fits the prior to embeddings that are known."""
        self.prior.fit(embeddings)
        self.population.copy_(population @ self.prior.root)
        self.level.copy_(population @ self.prior.mean)

    def embed(self, head: Head, features: Tensor, observed: Observations, table: EntityTable) -> Columns:
        """The embedding of new entities."""
        return {"embedding": self(features, observed)}

    def update(
        self, head: Head, features: Tensor, observed: Observations, table: EntityTable, places: Tensor
    ) -> Columns:
        """The embedding of known entities after more rows."""
        return {"embedding": self(features, observed, Known.at(table, places))}

    def forward(self, features: Tensor, observed: Observations, known: Known | None = None) -> Tensor:
        """The embedding of each entity of ``observed``, from the features of its rows and what is known of it."""
        counts = observed.counts
        if len(counts) == 1:
            points = self._points(features[observed.index].unsqueeze(0), counts.to(features).unsqueeze(1), known)
        else:
            points = features.new_empty(len(counts), features.shape[1])
            for entities, own in _padded(features, observed):
                before = None if known is None else Known(known.embeddings[entities], known.counts[entities])
                points[entities] = self._points(own, counts[entities].to(features).unsqueeze(1), before)
        return self.prior.mean + points @ self.prior.root.T

    def _points(self, own: Tensor, counts: Tensor, known: Known | None) -> Tensor:
        """The optimum of each entity; ``own`` is entities × rows × features."""
        sides, share = -own @ self.prior.root, counts / len(self.population)
        own_scores, scores = (-own @ self.prior.mean).unsqueeze(2), self.level.expand(len(own), -1)
        start = point = own.new_zeros(len(own), own.shape[2])
        precision = torch.eye(own.shape[2], device=own.device).expand(len(own), -1, -1)
        if known is not None:
            start = point = self.prior.points(known.embeddings)
            own_scores, scores = own_scores + sides @ start.unsqueeze(2), scores + start @ self.population.T
            precision = self._weighted(known.counts.unsqueeze(1) * _past_curvature(scores), precision)
        for step in range(_MOST_STEPS):
            bend = _bound if step < _BOUNDED else _curvature
            own_rate, rate = own_scores.sigmoid(), scores.sigmoid()
            pull = point if known is None else (precision @ (point - start).unsqueeze(2)).squeeze(2)
            gradient = torch.addmm(pull, share * rate, self.population).unsqueeze(2).baddbmm(sides.mT, own_rate)
            hessian = self._weighted(share * bend(scores, rate), precision)
            hessian = hessian.baddbmm(sides.mT, bend(own_scores, own_rate) * sides)
            # Rows that are not finite must not stop the others: their entities get an embedding of NaN.
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
        """The outer products of the sample, summed with weights entities × rows, on top of the matrices ``first``."""
        if len(weights) == 1:
            return torch.addmm(first[0], weights * self.population.T, self.population).unsqueeze(0)
        products = (self.population.unsqueeze(2) * self.population.unsqueeze(1)).flatten(1)
        return torch.addmm(first.flatten(1), weights, products).view(first.shape)


def _past_curvature(scores: Tensor) -> Tensor:
    r"""What one past row of an entity adds to the curvature, as weights of the sample, entities × rows.

    Past rows are gone. The mean of their curvature is that over the sample, weighted by the ratio $e^f$ of the two.
    """
    return _curvature(scores, scores.sigmoid()) * (1 / scores.shape[1] + scores.softmax(dim=1))


def _curvature(scores: Tensor, rate: Tensor) -> Tensor:
    r"""The second derivative $\sigma(s) (1 - \sigma(s))$ of $\log(1 + e^s)$."""
    return torch.addcmul(rate, rate, rate, value=-1)


def _bound(scores: Tensor, rate: Tensor) -> Tensor:
    r"""The curvature $(\sigma(s) - \frac12) / s$ of the bound on $\log(1 + e^s)$ that touches it at $s$ and $-s$."""
    return torch.where(scores.abs() > 1e-3, (rate - 0.5) / scores, 0.25)


def _padded(features: Tensor, observed: Observations) -> Iterator[tuple[Tensor, Tensor]]:
    """Entities of similar counts and their rows, entities × rows × features, with rows of zeros at the end."""
    counts, rows = observed.counts, observed.index[torch.argsort(observed.entities, stable=True)]
    first = counts.cumsum(0) - counts
    for entities in _groups(counts):
        place = torch.arange(int(counts[entities[-1]]), device=counts.device)
        at = (first[entities].unsqueeze(1) + place).clamp(max=len(rows) - 1)
        real = place < counts[entities].unsqueeze(1)
        yield entities, features[rows[at]].masked_fill(~real.unsqueeze(2), 0.0)


def _groups(counts: Tensor) -> Iterator[Tensor]:
    """Entities in the order of their counts, in groups of not too many rows."""
    order = torch.argsort(counts, stable=True)
    lengths, start = counts[order].tolist(), 0
    while start < len(lengths):
        end = start + 1
        while end < min(len(lengths), start + _ENTITIES) and (end + 1 - start) * lengths[end] <= _ROWS:
            end += 1
        yield order[start:end]
        start = end
