"""A variational autoencoder of binary rows with a free-form posterior."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor

from offmap import parameters, persist
from offmap.parameters import Count, Natural, Positive, Repeats
from offmap.random_state import draw_seed, local_seed
from offmap.sampling.draws import require_count, torch_rng
from offmap.sampling.latent_model import LatentModel
from offmap.sampling.networks import smooth_mlp
from offmap.sampling.posterior import GaussianPosterior, Posterior, RASPosterior
from offmap.train import Batches, History, train

FloatArray = NDArray[np.float64]
# Rows per batch when scoring: many latent vectors per row must fit in memory.
_CHUNK = 32


@dataclass(kw_only=True, eq=False, repr=False)
class BinaryVAE(BaseEstimator):
    r"""Fits a variational autoencoder to binary rows, with a posterior of any shape.

    Args:
        posterior: "ras" draws latent vectors with a generator, so that the posterior can have any shape; "gaussian" is
            the usual Gaussian with a diagonal covariance.
        latent: Latent dimensions.
        hidden: Widths of the hidden layers of every network.
        particles: Latent vectors per row and step.
        noise_dim: Dimensions of the input noise of the "ras" posterior.
        epochs: Passes over the training rows.
        batch_size: Rows per step.
        lr: Learning rate of decoder and posterior.
        critic_lr: Learning rate of the critic of the "ras" posterior.
        critic_steps: Critic steps per step of decoder and posterior.
        random_state: Seed of the fit; the same seed and rows give the same model.

    Attributes:
        model_: The decoder and the posterior.
        n_features_in_: Features of a row.
        history_: Mean of each loss per epoch, by name.

    Reference: Open-World Learning (thesis), section 5.5; Mescheder, Nowozin and Geiger, Adversarial Variational Bayes,
    arXiv:1701.04722.

    Example:
        >>> X = np.random.default_rng(0).integers(0, 2, size=(64, 1)).repeat(8, axis=1)
        >>> model = BinaryVAE(latent=1, hidden=(16,), epochs=200, lr=1e-2, random_state=0).fit(X)
        >>> bool(model.log_likelihood(X).mean() > 8 * np.log(0.5))
        True
    """

    # A model file that lacks one of these is refused.
    always_fitted: ClassVar[frozenset[str]] = frozenset({"history_", "n_features_in_"})

    posterior: Literal["ras", "gaussian"] = "ras"
    latent: Count = 2
    hidden: tuple[Count, ...] = (128, 128)
    particles: Repeats = 16
    noise_dim: Count = 8
    epochs: Count = 300
    batch_size: Count = 64
    lr: Positive = 1e-3
    critic_lr: Positive = 3e-3
    critic_steps: Count = 2
    random_state: Natural | None = None

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Fits the model to rows of zeros and ones; ``y`` is ignored."""
        parameters.check(self)
        rows = self._checked_rows(X, reset=True)
        with local_seed(draw_seed(self.random_state)):
            self._build()
            self.history_: History = train(
                self.model_.training_step(self.lr),
                Batches((rows,), self.batch_size),
                epochs=self.epochs,
                state={"model": self.model_},
                label="VAE",
            )
        return self

    def elbo(self, X: ArrayLike, rounds: int = 8, random_state: int | None = 0) -> FloatArray:
        """Estimates the evidence lower bound of each row, in nats; with "ras" the estimate relies on the critic.

        Args:
            X: Rows of zeros and ones.
            rounds: How many times ``particles`` latent vectors are drawn per row; more gives a smoother estimate.
            random_state: Seed of the draws; None draws anew at every call.
        """
        require_count("rounds", rounds)

        def mean_elbo(rows: Tensor, rng: torch.Generator) -> Tensor:
            return torch.stack([self.model_.elbo(rows, rng).mean(1) for _ in range(rounds)]).mean(0)

        return self._in_chunks(X, mean_elbo, random_state)

    def log_likelihood(self, X: ArrayLike, draws: int = 1000, random_state: int | None = 0) -> FloatArray:
        r"""Estimates $\log p(x)$ of each row in nats, from below, by importance sampling.

        All rows of a call share one stream of random numbers. So the estimate of a row changes with the rows beside it,
        by as much as with another seed: about a nat where the model is barely trained and its posterior far from the
        true one, which more ``draws`` do not mend. To score a row by itself, pass it alone.

        Args:
            X: Rows of zeros and ones.
            draws: Latent vectors per row; more raise the estimate towards $\log p(x)$ and make it smoother.
            random_state: Seed of the draws; None draws anew at every call.
        """
        require_count("draws", draws)
        return self._in_chunks(X, lambda rows, rng: self.model_.log_evidence(rows, draws, rng=rng), random_state)

    def sample_posterior(self, X: ArrayLike, count: int = 1, random_state: int | None = 0) -> FloatArray:
        """Draws ``count`` latent vectors per row, ``(n, count, latent)``.

        Args:
            X: Rows of zeros and ones.
            count: Latent vectors per row.
            random_state: Seed of the draws; None draws anew at every call.
        """
        require_count("count", count)
        return self._in_chunks(X, lambda rows, rng: self.model_.posterior.draw(rows, count, rng), random_state)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the fitted model to one safetensors file, which ``offmap.load`` reads."""
        check_is_fitted(self, "model_")
        persist.save(self, path)

    def _in_chunks(
        self, X: ArrayLike, score: Callable[[Tensor, torch.Generator], Tensor], random_state: int | None
    ) -> FloatArray:
        check_is_fitted(self, "model_")
        parameters.require("random_state", random_state, Natural | None)
        rng = torch_rng() if random_state is None else torch.Generator().manual_seed(int(random_state))
        with torch.no_grad():
            parts = [score(rows, rng) for rows in self._checked_rows(X).split(_CHUNK)]
        return torch.cat(parts).double().numpy()

    def _checked_rows(self, X: ArrayLike, reset: bool = False) -> Tensor:
        values = validate_data(self, X, reset=reset, dtype=np.float32)
        if not np.isin(values, (0, 1)).all():
            raise ValueError("X must hold only zeros and ones; binarise it first")
        return torch.from_numpy(values)

    def _build(self) -> None:
        hidden = tuple(self.hidden)
        decoder = smooth_mlp([self.latent, *reversed(hidden), self.n_features_in_])
        self.model_ = LatentModel(decoder, self._new_posterior(hidden), self.latent, self.particles)

    def _new_posterior(self, hidden: tuple[int, ...]) -> Posterior:
        if self.posterior == "gaussian":
            return GaussianPosterior(self.n_features_in_, self.latent, hidden)
        return RASPosterior(
            self.n_features_in_,
            self.latent,
            hidden,
            particles=self.particles,
            noise_dim=self.noise_dim,
            critic_lr=self.critic_lr,
            critic_steps=self.critic_steps,
        )
