"""Densities conditioned on the embedding of a task: what the Gaussian and the flow have in common."""

from abc import abstractmethod
from dataclasses import dataclass
from math import prod

from torch import Tensor, nn

from offmap.collaborative.embedded import EmbeddedDetector
from offmap.collaborative.exposures import Exposures
from offmap.collaborative.joint import Schedule, fit_joint
from offmap.collaborative.solve import Known, Prior, search
from offmap.nets import Standardise


@dataclass(kw_only=True, eq=False, repr=False)
class ConditionalDensity(EmbeddedDetector):
    """Learns the density of a task's exposures, given its embedding; rows of low density are novel."""

    @abstractmethod
    def _build_density(self) -> nn.Module:
        """The network that maps standardised rows and embeddings to log densities."""

    @abstractmethod
    def _build_alone(self) -> None:
        """Makes what tasks that learn alone share."""

    @abstractmethod
    def _fit_alone(self, shown: Exposures) -> Tensor:
        """Learns every task alone; returns what describes each."""

    def _build_networks(self) -> None:
        self.standardise_ = Standardise(prod(self.input_shape_)).to(self.device)
        if not self.joint:
            self._build_alone()
            return
        self._build_embedder()
        self._build_joint()

    def _build_joint(self) -> None:
        self.density_ = self._build_density().to(self.device)
        self.prior_ = Prior(self.embedding_size_).to(self.device)

    def _fit(self, shown: Exposures, given: Tensor | None) -> Tensor:
        self.standardise_ = Standardise(shown.X[0].numel()).to(self.device).fit(shown.X.flatten(1))
        if not self.joint:
            return self._fit_alone(shown)
        first = self._first_embeddings(shown, given)
        self.embedding_size_ = first.shape[1]
        self._build_joint()
        vectors = nn.Embedding.from_pretrained(first, freeze=not self.tune_embeddings, sparse=True)
        schedule = Schedule.of(self)
        training, watched = schedule.split(shown)
        self.history_ = fit_joint(
            lambda X, embeddings: self._loss(self._features(X), embeddings),
            self.density_,
            vectors,
            training,
            watched,
            schedule,
        )
        self.prior_.measure(vectors.weight.detach())
        return vectors.weight.detach()

    def _loss(self, features: Tensor, embeddings: Tensor) -> Tensor:
        return -self.density_(features, embeddings).mean() / features.shape[1]

    def _features(self, X: Tensor) -> Tensor:
        return self.standardise_(X.flatten(1))

    def _familiarity(self, features: Tensor, embeddings: Tensor) -> Tensor:
        return self.density_(features, embeddings)

    def _found(self, features: Tensor, shown: Exposures, known: Known | None) -> Tensor:
        return search(self.prior_, self._loss_of_embedding, features, shown, known)

    def _loss_of_embedding(self, features: Tensor, embeddings: Tensor) -> Tensor:
        return -self.density_(features, embeddings).mean()
