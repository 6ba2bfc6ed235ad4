"""A variational autoencoder as a detector."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor
from torch.optim import Adam, Optimizer, RMSprop

from offmap.base import Detector
from offmap.checkpoint import Checkpoint
from offmap.density.vae import VAE
from offmap.nets import Standardise
from offmap.parameters import Count, Fraction, Positive
from offmap.train import Batch, Batches, descend, train


@dataclass(kw_only=True, eq=False, repr=False)
class VAEDetector(Detector):
    r"""Flags rows that a variational autoencoder finds unlikely.

    It is trained on the evidence lower bound of normal rows,

    $$\log p(x) \ge \mathbb{E}_{q(z \mid x)} \log p(x \mid z) - \mathrm{KL}(q(z \mid x) \| N(0, I)).$$

    The likelihood alone has a known blind spot: with Bernoulli noise a model of Fashion-MNIST finds the digits of
    MNIST likelier than clothes.

    Args:
        noise: "gaussian" for any rows; "bernoulli" for values in [0, 1].
        score: "bpd" is −ELBO in bits per dimension; "kl" is the divergence of the posterior from the prior.
        latent: Latent dimensions.
        network: "conv" for images, "mlp" for any rows; "auto" takes convolutions for images of 16 pixels and more.
        hidden: Widths of the hidden layers of the "mlp".
        capacity: Multiplies the channels of the "conv".
        image_shape: Height and width (and channels) of the image in each row of a flat ``X``.
        epochs: Passes over the training rows.
        batch_size: Rows a step.
        lr: Step size.
        optimizer: "adam" or "rmsprop".
        patience: Epochs without a better bound on the validation rows after which training stops.
        validation: Share of the training rows that ``patience`` looks at.
        checkpoint: File to leave the state of training in after each epoch, and to go on from after a kill.

    Reference: Kingma and Welling, Auto-Encoding Variational Bayes, arXiv:1312.6114.

    Example:
        >>> import numpy as np
        >>> X = np.random.default_rng(0).normal(size=(500, 3))
        >>> detector = VAEDetector(epochs=5, random_state=0).fit(X)
        >>> detector.predict([[0.0, 0.1, -0.2], [30.0, 30.0, 30.0]])
        array([ 1, -1])
    """

    spatial: ClassVar[bool] = True

    noise: Literal["gaussian", "bernoulli"] = "gaussian"
    score: Literal["bpd", "kl"] = "bpd"
    latent: Count = 10
    network: Literal["auto", "conv", "mlp"] = "auto"
    hidden: tuple[Count, ...] = (256, 128)
    capacity: Count = 1
    image_shape: tuple[Count, ...] | None = None
    epochs: Count = 50
    batch_size: Count = 128
    lr: Positive = 1e-3
    optimizer: Literal["adam", "rmsprop"] = "adam"
    patience: Count | None = None
    validation: Fraction = 0.1
    checkpoint: str | None = None

    def _build(self) -> None:
        images = len(self.input_shape_) == 3
        network = VAE(
            self.input_shape_[-1:] + self.input_shape_[:-1] if images else self.input_shape_,
            latent=self.latent,
            hidden=tuple(self.hidden),
            noise=self.noise,
            convolutional=self._convolutional(images),
            capacity=self.capacity,
        ).to(self.device)
        self.network_ = network.to(memory_format=torch.channels_last)  # type: ignore[call-overload] # not in the stub

    def _convolutional(self, images: bool) -> bool:
        if self.network == "conv" and not images:
            raise ValueError('network="conv" needs images; give image_shape, or X as (n, h, w) or (n, h, w, c)')
        if self.network == "auto":
            return images and min(self.input_shape_[:2]) >= _SMALLEST_FOR_CONVOLUTIONS
        return self.network == "conv"

    def _fit(self, X: Tensor) -> None:
        self._require_intensities(X)
        self._build()
        training, watched = self._split(X)
        checkpoint = Checkpoint.of(self, training, watched)
        if isinstance(self.network_.prepare, Standardise):
            self.network_.prepare.fit(training)
        training, watched = self.network_.prepare(training), self.network_.prepare(watched)
        optimizer = _OPTIMIZERS[self.optimizer](self.network_.parameters(), lr=self.lr)
        self.history_ = train(
            descend(optimizer, self._terms),
            Batches((training,), self.batch_size),
            epochs=self.epochs,
            state={"network": self.network_, "optimizer": optimizer},
            validate=(lambda: self._mean_bound(watched)) if len(watched) else None,
            patience=self.patience,
            checkpoint=checkpoint,
            label="VAE",
        )

    def _novelty(self, X: Tensor) -> Tensor:
        X = self.network_.prepare(X)
        if self.score == "kl":
            return self.network_.posterior(X).kl()
        return self._bits(*self.network_.bound(X, self.network_.draw))

    def _bits(self, reconstruction: Tensor, kl: Tensor) -> Tensor:
        """−ELBO in bits per dimension."""
        return (reconstruction + kl) / (math.prod(self.input_shape_) * math.log(2))

    def _terms(self, batch: Batch) -> dict[str, Tensor]:
        (X,) = batch
        noise = torch.randn(len(X), self.latent, device=X.device)
        reconstruction, kl = self.network_.bound(X, noise)
        return {"reconstruction": reconstruction.mean(), "kl": kl.mean()}

    def _mean_bound(self, X: Tensor) -> float:
        parts = [torch.stack(self.network_.bound(rows, self.network_.draw)).sum(0) for rows in X.split(1024)]
        return float(torch.cat(parts).mean())

    def _split(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Rows to train on, and rows that ``patience`` looks at: drawn at random, for ``X`` may come sorted."""
        if self.patience is None:
            return X, X[:0]
        count = min(max(1, round(self.validation * len(X))), len(X) - 1)
        order = torch.randperm(len(X))
        return X[order[count:]], X[order[:count]]

    def _require_intensities(self, X: Tensor) -> None:
        if self.noise == "bernoulli" and not (X.min() >= 0 and X.max() <= 1):
            raise ValueError('noise="bernoulli" needs values of X in [0, 1]; use noise="gaussian" or rescale X')


# Smaller images have no parts to share weights over: there a perceptron learns more from fewer rows.
_SMALLEST_FOR_CONVOLUTIONS = 16
_OPTIMIZERS: dict[str, Callable[..., Optimizer]] = {"adam": Adam, "rmsprop": RMSprop}
