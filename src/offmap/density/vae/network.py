"""The variational autoencoder: encoder, decoder, likelihood and a standard normal prior."""

import math
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from offmap.density.vae.likelihoods import LIKELIHOODS, OF_INTENSITIES
from offmap.nets import ConvDecoder, ConvEncoder, DCGANDecoder, DCGANEncoder, Standardise, mlp

NetworkKind = Literal["mlp", "conv", "dcgan"]


class Posterior(NamedTuple):
    r"""The encoder's output for each row: $q(z \mid x) = N(\mu, \mathrm{diag}\, e^{\ell})$."""

    mean: Tensor
    log_var: Tensor

    def at(self, noise: Tensor) -> Tensor:
        r"""The latent vector $\mu + e^{\ell / 2} \varepsilon$."""
        return self.mean + (0.5 * self.log_var).exp() * noise

    def kl(self, shift: float = 0.0) -> Tensor:
        r"""$\mathrm{KL}(q \| N(s 1, I)) = \tfrac12 \sum_j ((\mu_j - s)^2 + e^{\ell_j} - 1 - \ell_j)$, in nats."""
        # With exp in place of expm1, subtracting 1 would lose all digits near the prior, and could give less than 0.
        return 0.5 * ((self.mean - shift).square() + (self.log_var.expm1() - self.log_var)).sum(1)

    def log_prob_of_draw(self, noise: Tensor) -> Tensor:
        r"""$\log q(z \mid x)$ of $z = \mu + e^{\ell / 2} \varepsilon$ as a constant: its gradient moves $q$, not $z$.

        The distance of $z$ from the mean is computed from the noise. The difference of the two vectors would round to 0
        where $q$ is narrow, and training would then narrow it without limit.
        """
        away = (0.5 * self.log_var).exp().detach() * noise + (self.mean.detach() - self.mean)
        squares = away.square() * (-self.log_var).exp()
        return -0.5 * (squares + self.log_var + math.log(2 * math.pi)).sum(-1)


class VAE(nn.Module):
    """A variational autoencoder for rows of one shape.

    Args:
        shape: Shape of a row: ``(d,)`` or ``(c, h, w)``.
        latent_dim: Latent dimensions.
        hidden: Widths of the hidden layers of the "mlp".
        likelihood: Name of the likelihood.
        network: Kind of encoder and decoder.
        conv_factor: Multiplies the channels of the convolutions.
        spectral_norm: Spectral norms in place of batch normalisation in the encoder of "dcgan".

    Reference: Kingma and Welling, Auto-Encoding Variational Bayes, arXiv:1312.6114.
    """

    draw: Tensor

    def __init__(
        self,
        shape: tuple[int, ...],
        *,
        latent_dim: int,
        hidden: tuple[int, ...],
        likelihood: str,
        network: NetworkKind = "mlp",
        conv_factor: int = 1,
        spectral_norm: bool = False,
    ) -> None:
        super().__init__()
        self.likelihood = LIKELIHOODS[likelihood](shape)
        # One latent draw for all rows and calls, so that scores never change. It compares rows; the mean of the bound
        # over rows is off by as much as this draw is.
        self.register_buffer("draw", torch.randn(latent_dim))
        if network == "mlp":
            width = math.prod(shape)
            self.encoder: nn.Module = nn.Sequential(nn.Flatten(), mlp([width, *hidden, 2 * latent_dim]))
            self.decoder: nn.Module = nn.Sequential(mlp([latent_dim, *reversed(hidden), width]), nn.Unflatten(1, shape))
        else:
            images = (shape[0], shape[1], shape[2])
            self.encoder, self.decoder = _convolutions(network, images, latent_dim, conv_factor, spectral_norm)
        # Intensities share one scale already; other features do not.
        features = len(shape) == 1 and likelihood not in OF_INTENSITIES
        self.prepare = Standardise(shape[0]) if features else nn.Identity()
        if network == "conv":
            # Its narrow layers are faster with channels last in memory; the wide ones of "dcgan" are slower.
            self.to(memory_format=torch.channels_last)  # type: ignore[call-overload] # not in the stub

    def posterior(self, X: Tensor) -> Posterior:
        """Encodes prepared rows."""
        return self.encode(self.likelihood.observed(X))

    def encode(self, X: Tensor) -> Posterior:
        """Encodes rows that have been passed through ``likelihood.observed``."""
        return Posterior(*self.encoder(X).chunk(2, dim=1))

    def bound(self, X: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        r"""Reconstruction $-\log p(x \mid z)$ and divergence $\mathrm{KL}(q \| p)$ of each prepared row, in nats.

        Their sum is $-$ELBO, estimated at the latent vector given by ``noise``.
        """
        X = self.likelihood.observed(X)
        posterior = self.encode(X)
        return self.reconstruction(X, posterior.at(noise)), posterior.kl()

    def reconstruction(self, X: Tensor, latents: Tensor) -> Tensor:
        r"""$-\log p(x \mid z)$ of observed rows at their latent vectors, in nats."""
        return -self.likelihood.log_prob(X, self.decoder(latents))

    def log_joint(self, X: Tensor, latents: Tensor) -> Tensor:
        r"""$\log p(x, z)$ of observed rows ``(n, ...)`` at ``(k, n, latent_dim)`` vectors, in nats: ``(k, n)``."""
        repeated = X.repeat(len(latents), *(1 for _ in X.shape[1:]))
        likelihood = -self.reconstruction(repeated, latents.flatten(0, 1))
        prior = -0.5 * (latents.square() + math.log(2 * math.pi)).sum(-1)
        return likelihood.unflatten(0, latents.shape[:2]) + prior

    def log_weights(self, X: Tensor, noise: Tensor) -> Tensor:
        r"""Weights $\log p(x, z_k) - \log q(z_k \mid x)$ at ``(k, n or 1, latent_dim)`` noise: ``(k, n)``."""
        X = self.likelihood.observed(X)
        posterior = self.encode(X)
        return self.log_joint(X, posterior.at(noise)) - posterior.log_prob_of_draw(noise)

    def reconstruct(self, X: Tensor) -> tuple[Tensor, Posterior]:
        """The expected row at the posterior's mean, and the posterior, of each prepared row."""
        posterior = self.posterior(X)
        return self.likelihood.mean(self.decoder(posterior.mean)), posterior

    def generate(self, count: int) -> Tensor:
        """Expected rows at latent vectors drawn from the prior."""
        latents = torch.randn(count, len(self.draw), device=self.draw.device)
        return self.likelihood.mean(self.decoder(latents))


def _convolutions(
    network: NetworkKind, shape: tuple[int, int, int], latent_dim: int, factor: int, spectral_norm: bool
) -> tuple[nn.Module, nn.Module]:
    if network == "conv":
        return ConvEncoder(shape, 2 * latent_dim, factor), ConvDecoder(latent_dim, shape, factor)
    encoder = DCGANEncoder(shape, 2 * latent_dim, factor, spectral_norm=spectral_norm)
    return encoder, DCGANDecoder(latent_dim, shape, factor)
