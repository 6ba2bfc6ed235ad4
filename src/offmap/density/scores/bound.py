"""Scores read from the evidence lower bound."""

import math

import torch
from torch import Tensor

from offmap.density.scores.score import Models, Score
from offmap.density.vae import VAE


def bits(nats: Tensor, X: Tensor) -> Tensor:
    """Nats a row as bits per dimension."""
    return nats / (math.prod(X.shape[1:]) * math.log(2))


def negative_elbo(network: VAE, X: Tensor) -> Tensor:
    """−ELBO of each prepared row at the network's fixed draw, in nats."""
    reconstruction, kl = network.bound(X, network.draw)
    return reconstruction + kl


def negative_importance_bound(network: VAE, X: Tensor, draws: Tensor) -> Tensor:
    """Minus the importance-weighted bound of each prepared row, in nats, at the latent noise ``draws``."""
    return math.log(len(draws)) - torch.logsumexp(network.log_weights(X, draws), dim=0)


class BitsPerDimension(Score):
    r"""$-\mathrm{ELBO}(x) / (d \ln 2)$: how many bits a dimension the model would need to code the row.

    Cost: one pass. Fails: simple rows are cheap to code whatever they show, so a model of clothes (Bernoulli noise)
    finds digits likelier than clothes, and a model of CIFAR-10 finds house numbers likelier than its own pictures.
    """

    def statistics(self, models: Models, X: Tensor) -> Tensor:
        """The bits."""
        return bits(negative_elbo(models.network, X), X)[:, None]


class EvidenceBound(Score):
    r"""$-\mathrm{ELBO}(x)$ in nats: ``bpd`` in another unit, with the same order of rows and the same failures."""

    def statistics(self, models: Models, X: Tensor) -> Tensor:
        """The nats."""
        return negative_elbo(models.network, X)[:, None]


class Divergence(Score):
    r"""$\mathrm{KL}(q(z \mid x) \| N(0, I))$ in nats: how much the encoder has to say about the row.

    Cost: the encoder alone, half a pass. Fails: training pulls every posterior to the prior, and rows that the encoder
    was never taught have no reason to land elsewhere; without negatives it is often worse than chance.
    """

    def statistics(self, models: Models, X: Tensor) -> Tensor:
        """The divergence."""
        return models.network.posterior(X).kl()[:, None]


class ImportanceBound(Score):
    r"""The importance-weighted bound in bits per dimension, $-\log_2 \frac1K \sum_k \frac{p(x, z_k)}{q(z_k | x)} / d$.

    It is at most ``bpd`` in expectation and tends to the likelihood itself as $K$ grows. Cost: one pass of the encoder
    and ``samples`` of the decoder. Fails: where the likelihood does, since it is nearer to it.

    Reference: Burda, Grosse and Salakhutdinov, Importance Weighted Autoencoders, arXiv:1509.00519.
    """

    def statistics(self, models: Models, X: Tensor) -> Tensor:
        """The bits."""
        return bits(negative_importance_bound(models.network, X, models.draws()), X)[:, None]
