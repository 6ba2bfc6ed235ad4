"""The variational autoencoder: an encoder, a decoder, a noise model and a standard normal prior."""

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn

from offmap.density.noise import NOISES
from offmap.nets import ConvDecoder, ConvEncoder, Standardise, mlp


class Posterior(NamedTuple):
    r"""The encoder's view of each row: $q(z \mid x) = N(\mu, \mathrm{diag}\, e^{\ell})$."""

    mean: Tensor
    log_var: Tensor

    def at(self, noise: Tensor) -> Tensor:
        r"""The latent vector $\mu + e^{\ell / 2} \varepsilon$."""
        return self.mean + (0.5 * self.log_var).exp() * noise

    def kl(self) -> Tensor:
        r"""$\mathrm{KL}(q \| N(0, I)) = \tfrac12 \sum_j (\mu_j^2 + e^{\ell_j} - 1 - \ell_j)$, in nats."""
        # Near the prior all digits of exp would go in the subtraction of 1, and the rest could be below 0.
        return 0.5 * (self.mean.square() + (self.log_var.expm1() - self.log_var)).sum(1)


class VAE(nn.Module):
    """A variational autoencoder over rows of one shape.

    Args:
        shape: Shape of a row: ``(d,)`` or ``(c, h, w)``.
        latent: Latent dimensions.
        hidden: Widths of the hidden layers of the perceptrons.
        noise: Name of the noise model.
        convolutional: Convolutions in place of perceptrons.
        capacity: Multiplies the channels of the convolutions.

    Reference: Kingma and Welling, Auto-Encoding Variational Bayes, arXiv:1312.6114.
    """

    draw: Tensor

    def __init__(
        self,
        shape: tuple[int, ...],
        *,
        latent: int,
        hidden: tuple[int, ...],
        noise: str,
        convolutional: bool = False,
        capacity: int = 1,
    ) -> None:
        super().__init__()
        self.noise = NOISES[noise]()
        # One latent draw for all rows and calls: scores estimate the bound without bias, yet never change.
        self.register_buffer("draw", torch.randn(latent))
        if convolutional:
            images = (shape[0], shape[1], shape[2])
            self.encoder: nn.Module = ConvEncoder(images, 2 * latent, capacity)
            self.decoder: nn.Module = ConvDecoder(latent, images, capacity)
        else:
            width = math.prod(shape)
            self.encoder = nn.Sequential(nn.Flatten(), mlp([width, *hidden, 2 * latent]))
            self.decoder = nn.Sequential(mlp([latent, *reversed(hidden), width]), nn.Unflatten(1, shape))
        # Intensities are on one scale already; other features are not.
        features = len(shape) == 1 and noise != "bernoulli"
        self.prepare = Standardise(shape[0]) if features else nn.Identity()

    def posterior(self, X: Tensor) -> Posterior:
        """Encodes prepared rows."""
        return Posterior(*self.encoder(X).chunk(2, dim=1))

    def bound(self, X: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        r"""Reconstruction $-\log p(x \mid z)$ and divergence $\mathrm{KL}(q \| p)$ of each prepared row, in nats.

        Their sum is $-$ELBO, estimated at the latent vector that ``noise`` leads to.
        """
        posterior = self.posterior(X)
        return -self.noise.log_prob(X, self.decoder(posterior.at(noise))), posterior.kl()
