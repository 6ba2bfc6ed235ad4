"""The conditional likelihood ratio of a task to the population."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from offmap.collaborative.apart import SeparableDetector
from offmap.collaborative.exposures import Exposures
from offmap.collaborative.heads import ConcatHead, RatioNetwork, TwoTowerHead
from offmap.collaborative.joint import PACE, Schedule, fit_joint, logistic, ratio_loss
from offmap.collaborative.networks import perceptron
from offmap.collaborative.solve import EmbeddingSolver, Known, Prior, search
from offmap.parameters import NonNegative, Positive


@dataclass(kw_only=True, eq=False, repr=False)
class RatioDetector(SeparableDetector):
    r"""Learns for every task how much likelier a row is among its exposures than in the population.

    One network of row and task embedding learns the log ratios of all tasks by telling own exposures from others':

    $$f(x, e_t) \to \log \frac{q_t(x)}{p(x)}, \qquad p = \sum_t m_t q_t.$$

    The two-tower head ends with a solve: for features that stay, the embeddings of all tasks are logistic regressions
    with a normal prior of the mean and covariance that training left, which is where new tasks get theirs from.
    ``add_task`` gives a new task an embedding as the first ones were made (means over its exposures); where there is no
    such way (random and given ones, and the two-tower head), it is the one of the highest likelihood under a normal
    prior with the mean and covariance of the embeddings that were fitted.

    Args:
        head: "concat" is the paper's perceptron of row and embedding; "two_tower" is the inner product of features of
            the row with the embedding, which learns from all pairs of a batch at once.
        decay: Weight of the squared distance of embeddings from where they started.
        pace: Step size of the embeddings, as a multiple of that of the network. None: 10 where they start from nothing
            (random ones, and the two-tower head), since a batch moves only those of its own tasks; 1 for others.

    Reference: Bai et al., Collaborative Anomaly Detection, algorithm 1 and section 4.

    Example:
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> tasks = np.repeat(np.arange(20), 50)
        >>> X = rng.normal(size=(1000, 2)) + np.stack([np.cos(tasks), np.sin(tasks)], axis=1) * 3
        >>> detector = RatioDetector(head="two_tower", epochs=20, random_state=0).fit(X, tasks)
        >>> own, opposite = detector.novelty([[3.0, 0.0], [-3.0, 0.0]], [0, 0])
        >>> bool(own < opposite)
        True
    """

    head: Literal["concat", "two_tower"] = "concat"
    # Of 0, 1e-3 and 1e-2 the one with the best mean AUROC, one seed, on MNIST training images that were held out, over
    # random and learned starts of concat; two towers hardly care.
    decay: NonNegative = 1e-3
    pace: Positive | None = None

    def _build_networks(self) -> None:
        if not self.joint:
            self._build_alone()
            return
        self._build_embedder()
        self._build_ratio()

    def _build_ratio(self) -> None:
        body = self._body()
        make = ConcatHead if self.head == "concat" else TwoTowerHead
        head = make(body.outputs, self.embedding_size_, tuple(self.hidden), self.dropout)
        self.network_ = RatioNetwork(body, head).to(self.device)
        if self.head == "two_tower":
            self.solver_ = EmbeddingSolver(self.embedding_size_, _SAMPLE).to(self.device)
        else:
            self.prior_ = Prior(self.embedding_size_).to(self.device)

    def _fit(self, shown: Exposures, given: Tensor | None) -> Tensor:
        if not self.joint:
            return self._fit_alone(shown)
        vectors = self._start_vectors(shown, given)
        self.embedding_size_ = vectors.embedding_dim
        self._build_ratio()
        self.network_.body.measure(shown.X)
        schedule = Schedule.of(self)
        training, watched = schedule.split(shown)
        loss = ratio_loss(self.network_)
        self.history_ = fit_joint(loss, self.network_, vectors, training, watched, schedule, self.decay, self._pace())
        self._prepare_for_new(shown, vectors.weight.detach())
        if self.head == "two_tower" and self.tune_embeddings:
            # Steps leave embeddings short of their optimum; known tasks and new ones are to be found alike.
            with torch.no_grad():
                return self.solver_(self._all_features(shown.X), shown)
        return vectors.weight.detach()

    def _pace(self) -> float:
        if self.pace is not None:
            return self.pace
        return PACE if self.head == "two_tower" or self.embedding == "random" else 1.0

    def _prepare_for_new(self, shown: Exposures, vectors: Tensor) -> None:
        """Keeps what embeddings of new tasks are found with."""
        drawn = shown.index[torch.randint(len(shown), (_SAMPLE,), device=shown.index.device)]
        population = self._all_features(shown.X[drawn])
        if self.head == "two_tower":
            self.solver_.prepare(population, vectors)
        else:
            self.prior_.measure(vectors)
            self.population_ = population

    def _start_vectors(self, shown: Exposures, given: Tensor | None) -> nn.Embedding:
        first = self._first_embeddings(shown, given)
        if self.head == "two_tower":
            # The last feature is a constant; its weight, the level of a task, starts at 0.
            first = torch.cat([_SMALL * first, torch.zeros_like(first[:, :1])], dim=1)
        return nn.Embedding.from_pretrained(first, freeze=not self.tune_embeddings, sparse=True)

    def _features(self, X: Tensor) -> Tensor:
        return self.network_.rows(X) if self.joint else X

    def _familiarity(self, features: Tensor, embeddings: Tensor) -> Tensor:
        return self.network_.head(features, embeddings)

    def _joint_to_all(self, features: Tensor, embeddings: Tensor) -> Tensor:
        return self.network_.head.of_all(features, embeddings)

    def _draws_to_embed(self) -> bool:
        return not (self.joint and self.head == "two_tower")

    def _made_of_exposures(self) -> bool:
        return self.head == "concat" and super()._made_of_exposures()

    def _found(self, features: Tensor, shown: Exposures, known: Known | None) -> Tensor:
        if self.head == "two_tower":
            return self.solver_(features, shown, known)
        return search(self.prior_, self._loss_of_embedding, features, shown, known)

    def _loss_of_embedding(self, rows: Tensor, embeddings: Tensor) -> Tensor:
        others = self.population_[torch.randint(len(self.population_), (len(rows),), device=rows.device)]
        return logistic(self.network_.head(rows, embeddings), self.network_.head(others, embeddings))

    def _alone(self) -> nn.Module:
        body = self._body(batch_norm=False)
        widths = (body.outputs, *self.hidden)
        return nn.Sequential(body, perceptron(widths, self.dropout), nn.Linear(widths[-1], 1), nn.Flatten(0))

    def _loss_alone(self, networks: Callable[[Tensor], Tensor], own: Tensor, population: Tensor) -> Tensor:
        scores = networks(torch.cat([own, population], dim=1))
        # Summed over tasks: the gradient of each is that of its own loss.
        return logistic(scores[:, : own.shape[1]], scores[:, own.shape[1] :]) * len(own)


# Length that first embeddings are cut to before an inner product, and rows of the population to find new ones with.
_SMALL, _SAMPLE = 0.1, 512
