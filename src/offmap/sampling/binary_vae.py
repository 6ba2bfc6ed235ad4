"""A variational autoencoder of binary rows whose posterior may be of any shape."""

from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor

from offmap import parameters
from offmap.parameters import Count, Positive
from offmap.random_state import draw_seed, local_seed
from offmap.sampling.networks import smooth_mlp
from offmap.sampling.posterior import GaussianPosterior, LatentModel, Posterior, RASPosterior
from offmap.train import Batches, History, train

FloatArray = NDArray[np.float64]
# Rows at a time: with many draws a row, more would not fit in memory.
_CHUNK = 32


@dataclass(kw_only=True, eq=False, repr=False)
class BinaryVAE(BaseEstimator):
    r"""Learns a latent-variable model of binary rows together with its posterior.

    Args:
        posterior: "ras" draws from a posterior of any shape; "gaussian" is the usual one with a diagonal covariance.
        latent: Latent dimensions.
        hidden: Widths of the hidden layers of every network.
        particles: Latent vectors drawn of each row at each step.
        noise: Width of the noise of the "ras" posterior.
        epochs: Passes over the training rows.
        batch_size: Rows a step.
        lr: Step size of decoder and posterior.
        critic_lr: Step size of the critic.
        critic_steps: Steps of the critic before each of the others.
        random_state: Seed; with one, the same rows give the same model.

    Reference: Open-World Learning (thesis), section 5.5; Mescheder, Nowozin and Geiger, Adversarial Variational Bayes,
    arXiv:1701.04722.

    Example:
        >>> X = np.random.default_rng(0).integers(0, 2, size=(64, 1)).repeat(8, axis=1)
        >>> model = BinaryVAE(latent=1, hidden=(16,), epochs=200, lr=1e-2, random_state=0).fit(X)
        >>> bool(model.log_likelihood(X).mean() > 8 * np.log(0.5))
        True
    """

    posterior: Literal["ras", "gaussian"] = "ras"
    latent: Count = 2
    hidden: tuple[Count, ...] = (128, 128)
    particles: Count = 16
    noise: Count = 8
    epochs: Count = 300
    batch_size: Count = 64
    lr: Positive = 1e-3
    critic_lr: Positive = 3e-3
    critic_steps: Count = 2
    random_state: int | None = None

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Learns from rows of zeros and ones; ``y`` is ignored."""
        parameters.check(self)
        rows = self._rows(X, reset=True)
        with local_seed(draw_seed(self.random_state)):
            self._build()
            self.history_: History = train(
                self.model_.posterior.learning(self.model_, self.lr),
                Batches((rows,), self.batch_size),
                epochs=self.epochs,
                state={"model": self.model_},
                label="VAE",
            )
        return self

    def elbo(self, X: ArrayLike, rounds: int = 8, seed: int = 0) -> FloatArray:
        """The evidence lower bound of each row in nats; approximate for "ras", whose density a critic estimates.

        Args:
            X: Rows of zeros and ones.
            rounds: How often ``particles`` latent vectors are drawn of each row.
            seed: Seed of the draws.
        """

        def bound(rows: Tensor) -> Tensor:
            return torch.stack([self.model_.bound(rows).mean(1) for _ in range(rounds)]).mean(0)

        return self._each(X, bound, seed)

    def log_likelihood(self, X: ArrayLike, draws: int = 1000, seed: int = 0) -> FloatArray:
        r"""$\log p(x)$ of each row in nats, by importance sampling; from below, and closer with more ``draws``."""
        return self._each(X, lambda rows: self.model_.log_evidence(rows, draws), seed)

    def sample_posterior(self, X: ArrayLike, count: int = 1, seed: int = 0) -> FloatArray:
        """So many latent vectors of each row, ``(n, count, latent)``."""
        return self._each(X, lambda rows: self.model_.posterior.draw(rows, count), seed)

    def _each(self, X: ArrayLike, of: Any, seed: int) -> FloatArray:
        check_is_fitted(self, "model_")
        with torch.no_grad(), local_seed(seed):
            parts = [of(rows) for rows in self._rows(X).split(_CHUNK)]
        return torch.cat(parts).double().numpy()

    def _rows(self, X: ArrayLike, reset: bool = False) -> Tensor:
        values = validate_data(self, X, reset=reset, dtype=np.float32)
        if not np.isin(values, (0, 1)).all():
            raise ValueError("X must hold zeros and ones only; threshold it before")
        return torch.from_numpy(values)

    def _build(self) -> None:
        hidden = tuple(self.hidden)
        decoder = smooth_mlp([self.latent, *reversed(hidden), self.n_features_in_])
        self.model_ = LatentModel(decoder, self._posterior(hidden), self.latent, self.particles)

    def _posterior(self, hidden: tuple[int, ...]) -> Posterior:
        if self.posterior == "gaussian":
            return GaussianPosterior(self.n_features_in_, self.latent, hidden)
        return RASPosterior(
            self.n_features_in_,
            self.latent,
            hidden,
            particles=self.particles,
            noise=self.noise,
            critic_lr=self.critic_lr,
            critic_steps=self.critic_steps,
        )
