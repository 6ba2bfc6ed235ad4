"""The rivals of the thesis's table 2.1 on coloured digits: a variational autoencoder and an invertible network."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import torch
import zuko
from numpy.typing import ArrayLike, NDArray
from torch import Tensor
from torch.optim import Adam

from offmap.dependence.disentangle import networks
from offmap.dependence.disentangle.adversary import Adversary, discriminator
from offmap.dependence.disentangle.autoencoder import join_codes
from offmap.dependence.disentangle.groups import Codes, join, split
from offmap.dependence.disentangle.targets import TargetHead
from offmap.dependence.disentangle.training import CodeNetwork, CodeTraining, add_jitter
from offmap.nets import Standardise
from offmap.random_state import draw_seed, local_seed
from offmap.train import Batch, Batches, History, descend, train
from offmap_bench.colour_digits import GROUPS, SIDE, ColourDigits, paint, to_images, to_pixels

SHAPE = (3, SIDE, SIDE)
WIDTH = sum(group.width for group in GROUPS.values())


def code_network(conv_channels: int, *, outputs: int, standardised: bool) -> CodeNetwork:
    """Makes encoder, decoder and heads; the heads know all ten digits, whichever are in the data."""
    encoder = networks.encoder(SHAPE, outputs, conv_channels, (), standardised=standardised)
    decoder = networks.decoder(WIDTH, SHAPE, conv_channels, ())
    heads = {name: TargetHead(GROUPS[name], count) for name, count in (("digit", 10), ("colour", 3))}
    return CodeNetwork(encoder, decoder, heads)


@dataclass(kw_only=True)
class Rival(ABC):
    """What the two rivals share: their parameters, and encoding and decoding in chunks.

    Args:
        conv_channels: Channels of the first convolution.
        reconstruction_weight: Weight of the squared error.
        adversary: Whether an adversary watches decoded images.
        epochs: Passes over the images.
        batch_size: Images per step.
        lr: Learning rate.
        random_state: Seed.
    """

    conv_channels: int = 16
    reconstruction_weight: float = 0.1
    adversary: bool = False
    epochs: int = 10
    batch_size: int = 128
    lr: float = 2e-3
    random_state: int = 0
    network_: CodeNetwork = field(init=False, repr=False)

    def fit(self, data: ColourDigits) -> Self:
        """Trains on images, their digits and their colours."""
        with local_seed(draw_seed(self.random_state)):
            self.history_: History = self._train(data)
        return self

    def encode(self, X: ArrayLike) -> dict[str, NDArray[np.float32]]:
        """Returns the codes of images ``(n, 32, 32, 3)``."""
        rows = networks.in_chunks(lambda some: self._codes(self.network_.encoder(some)), to_images(np.asarray(X)))
        return {name: code.numpy() for name, code in split(rows, GROUPS).items()}

    def decode(self, codes: Mapping[str, ArrayLike]) -> NDArray[np.float32]:
        """Returns the images ``(n, 32, 32, 3)`` of codes."""
        rows = torch.from_numpy(join_codes(codes, GROUPS))
        return to_pixels(networks.in_chunks(lambda some: self.network_.decoder(self._latent(some)), rows))

    def _adversary(self) -> Adversary | None:
        if not self.adversary:
            return None
        return Adversary(discriminator(SHAPE, max(self.conv_channels // 2, 1), ()), self.lr)

    def _run(self, training: CodeTraining, data: ColourDigits) -> History:
        how: dict[str, Any] = {"epochs": self.epochs, "batch_size": self.batch_size, "lr": self.lr}
        return training.run(data.images, (data.digits, data.colours), **how)

    @abstractmethod
    def _train(self, data: ColourDigits) -> History:
        """Builds and trains the networks."""

    @abstractmethod
    def _codes(self, encoded: Tensor) -> Tensor:
        """Maps the encoder's output to codes."""

    @abstractmethod
    def _latent(self, codes: Tensor) -> Tensor:
        """Maps codes to the decoder's input."""


@dataclass(kw_only=True)
class VAERival(Rival):
    r"""Draws codes from $q(z \mid x) = N(\mu, \mathrm{diag}\,\sigma^2)$ and pulls them towards $N(0, I)$.

    Args:
        beta: Weight of the divergence, in nats; with ``reconstruction_weight=0.5`` and 1 here the loss is the evidence
            lower bound with unit variance.

    Reference: Kingma and Welling, Auto-Encoding Variational Bayes, arXiv:1312.6114.
    """

    beta: float = 0.2

    def _train(self, data: ColourDigits) -> History:
        # Means and variances are the encoder's own; the divergence bounds them.
        self.network_ = code_network(self.conv_channels, outputs=2 * WIDTH, standardised=False)
        training = CodeTraining(
            network=self.network_,
            groups=GROUPS,
            draw=draw_gaussian,
            reconstruction_weight=self.reconstruction_weight,
            adversary=self._adversary(),
            extra=self._divergence,
        )
        return self._run(training, data)

    def _divergence(self, encoded: Tensor) -> dict[str, Tensor]:
        mean, log_var = encoded.chunk(2, dim=1)
        kl = 0.5 * (mean.square() + log_var.expm1() - log_var).sum(1)
        return {"kl": self.beta * kl.mean()}

    def _codes(self, encoded: Tensor) -> Tensor:
        return encoded.chunk(2, dim=1)[0]

    def _latent(self, codes: Tensor) -> Tensor:
        return codes


def draw_gaussian(encoded: Tensor) -> Tensor:
    """Draws codes from means and log variances."""
    mean, log_var = encoded.chunk(2, dim=1)
    return mean + (0.5 * log_var).exp() * torch.randn_like(mean)


@dataclass(kw_only=True)
class DIINRival(Rival):
    r"""Maps the latent vectors of an autoencoder by a flow $T$ to three Gaussian codes.

    Two images of one digit, or of one colour, have codes of it that are close, and other codes that are independent:

    $$L = \sum_k \tfrac12 \lVert T(a)_k \rVert^2 + \sum_{k \ne F} \tfrac12 \lVert T(b)_k \rVert^2
    + \frac{\lVert T(b)_F - \rho T(a)_F \rVert^2}{2 (1 - \rho^2)}
    - \log \lvert T'(a) \rvert - \log \lvert T'(b) \rvert$$

    for a pair $(a, b)$ that shares the factor $F$. The adversary watches reconstructions, not mixtures: the codes do
    not exist yet when the autoencoder is trained.

    Args:
        jitter: Standard deviation of the noise added to the codes of the autoencoder.
        transforms: Coupling layers of the flow.
        rho: Correlation of the shared code within a pair.
        flow_epochs: Passes over the images to train the flow.

    Reference: Esser, Rombach and Ommer, A Disentangling Invertible Interpretation Network, arXiv:2004.13166.
    """

    jitter: float = 0.7
    transforms: int = 6
    rho: float = 0.9
    flow_epochs: int = 10

    def build(self) -> None:
        """Makes the networks."""
        self.network_ = code_network(self.conv_channels, outputs=WIDTH, standardised=True)
        self.scaler_ = Standardise(WIDTH)
        self.flow_ = zuko.flows.NICE(WIDTH, transforms=self.transforms, randmask=True, hidden_features=(256,))

    def _train(self, data: ColourDigits) -> History:
        self.build()
        training = CodeTraining(
            network=self.network_,
            groups=GROUPS,
            draw=add_jitter(self.jitter),
            reconstruction_weight=self.reconstruction_weight,
            adversary=self._adversary(),
            mix=lambda codes: codes,
        )
        return self._run(training, data) | self._train_flow(data)

    def _train_flow(self, data: ColourDigits) -> History:
        with torch.no_grad():
            latent = torch.cat([self.network_.encoder(some) for some in data.images.split(1024)])
        self.scaler_.fit(latent)
        optimizer = Adam(self.flow_.parameters(), lr=self.lr)
        return train(
            descend(optimizer, self._pair_loss, clip=10.0),
            Batches((latent, data.grey, data.digits, data.colours), self.batch_size),
            epochs=self.flow_epochs,
            state={"flow": self.flow_, "optimizer": optimizer},
            label="flow",
        )

    def _codes(self, encoded: Tensor) -> Tensor:
        return self.flow_().transform(self.scaler_(encoded))

    def _latent(self, codes: Tensor) -> Tensor:
        return self.flow_().transform.inv(codes) * self.scaler_.scale + self.scaler_.mean

    def _pair_loss(self, batch: Batch) -> dict[str, Tensor]:
        latent, grey, digits, colours = batch
        with torch.no_grad():
            painted = self.network_.encoder(paint(grey.roll(1, dims=0), colours))
        # Sorted by digit, the next image shows the same digit, except after the last one of each digit.
        order = digits.argsort()
        following = order.roll(-1)
        same = digits[order] == digits[following]
        return {
            "digit_pairs": self.pair_loss(latent[order[same]], latent[following[same]], "digit"),
            "colour_pairs": self.pair_loss(latent, painted, "colour"),
        }

    def pair_loss(self, a: Tensor, b: Tensor, shared: str) -> Tensor:
        """Returns the loss of pairs that share one factor, per number of the latent vector."""
        transform: Any = self.flow_().transform
        (own, stretch), (other, other_stretch) = (transform.call_and_ladj(self.scaler_(rows)) for rows in (a, b))
        codes: Codes = split(own, GROUPS)
        others: Codes = split(other, GROUPS)
        others[shared] = (others[shared] - self.rho * codes[shared]) / (1 - self.rho**2) ** 0.5
        squares = own.square().sum(1) + join(others).square().sum(1)
        return (squares / 2 - stretch - other_stretch).mean() / own.shape[1]
