"""Scores from the evidence lower bound."""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from offmap.density.vae.network import VAE
from offmap.density.vae.scores.score import Networks, Score
from offmap.parameters import Repeats


def bits_per_dimension(nats: Tensor, X: Tensor) -> Tensor:
    """Converts nats per row into bits per dimension."""
    return nats / (math.prod(X.shape[1:]) * math.log(2))


def negative_elbo(network: VAE, X: Tensor) -> Tensor:
    """−ELBO of each prepared row at the network's fixed draw, in nats."""
    reconstruction, kl = network.bound(X, network.draw)
    return reconstruction + kl


def negative_importance_bound(network: VAE, X: Tensor, draws: Tensor) -> Tensor:
    """Minus the importance-weighted bound of each prepared row, in nats, at the latent noise ``draws``."""
    return math.log(len(draws)) - torch.logsumexp(network.log_weights(X, draws), dim=0)


class BitsPerDimension(Score):
    r"""$-\mathrm{ELBO}(x) / (d \ln 2)$: the bits per dimension that the model would need to encode the row.

    Cost: one forward pass. Fails: simple rows need few bits whatever they show, so a model of clothes (with the
    Bernoulli likelihood) finds digits likelier than clothes, and a model of CIFAR-10 finds house numbers likelier than
    its own training images.

    The bound is estimated at one latent draw, the same for all rows, which is good for comparing rows. Its mean over
    rows may be off by half a nat; to compare models, use "importance" with many draws. Bits of features other than
    intensities are those of standardised rows.
    """

    name: ClassVar[str] = "bpd"

    def statistics(self, networks: Networks, X: Tensor) -> Tensor:
        """The bits per dimension."""
        return bits_per_dimension(negative_elbo(networks.network, X), X)[:, None]


class EvidenceBound(Score):
    r"""$-\mathrm{ELBO}(x)$ in nats: "bpd" in another unit, with the same order of rows, cost and failures."""

    name: ClassVar[str] = "elbo"

    def statistics(self, networks: Networks, X: Tensor) -> Tensor:
        """The nats."""
        return negative_elbo(networks.network, X)[:, None]


class Divergence(Score):
    r"""$\mathrm{KL}(q(z \mid x) \| N(0, I))$ in nats: how far the posterior is from the prior.

    Cost: a pass through the encoder. Fails: without negatives. Training pulls every posterior towards the prior, and
    nothing keeps those of novel rows away from it; the score is then often worse than chance.
    """

    name: ClassVar[str] = "kl"

    def statistics(self, networks: Networks, X: Tensor) -> Tensor:
        """The divergence."""
        return networks.network.posterior(X).kl()[:, None]


@dataclass(kw_only=True, eq=False, repr=False)
class ImportanceBound(Score):
    r"""The importance-weighted bound in bits per dimension, $-\log_2 \frac1K \sum_k \frac{p(x, z_k)}{q(z_k | x)} / d$.

    It is at most "bpd" in expectation and tends to the likelihood itself as $K$ grows. Cost: one pass through the
    encoder and $K$ through the decoder. Fails: where the likelihood does, which it approximates better.

    Args:
        n_samples: Latent draws $K$ per row.

    Reference: Burda, Grosse and Salakhutdinov, Importance Weighted Autoencoders, arXiv:1509.00519.
    """

    name: ClassVar[str] = "importance"

    n_samples: Repeats = 8

    def statistics(self, networks: Networks, X: Tensor) -> Tensor:
        """The bits per dimension."""
        nats = negative_importance_bound(networks.network, X, networks.draws(self.n_samples))
        return bits_per_dimension(nats, X)[:, None]
