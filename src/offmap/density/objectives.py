r"""What the autoencoder is trained on: a bound on the likelihood of normal rows, and negatives sent elsewhere."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from offmap.density.vae import VAE, Posterior
from offmap.nets import frozen

Terms = dict[str, Tensor]


@dataclass(frozen=True)
class Objective:
    r"""The terms of one batch, each a mean over its rows, in nats.

    "elbo" descends $-\mathbb{E}_q \log p(x \mid z) + \mathrm{KL}(q(z \mid x) \| p(z))$. "forward_kl" fits the encoder
    by the divergence the other way round, $\mathrm{KL}(p(z \mid x) \| q(z \mid x))$, with self-normalised importance
    weights $\tilde w_k \propto p(x, z_k) / q(z_k \mid x)$ of draws $z_k$ from $q$:

    $$-\sum_k \tilde w_k \left(\log p(x, z_k) + \log q(z_k \mid x)\right),$$

    where neither weights nor draws carry a gradient, so that the decoder climbs the likelihood and the encoder covers
    the posterior. Negatives $\bar x$ add $\lambda\, \mathrm{KL}(q(z \mid \bar x) \| N(s \mathbf{1}, I))$; they are not
    reconstructed.

    Args:
        kind: "elbo" or "forward_kl".
        samples: Draws of each row for "forward_kl".
        shift: Each coordinate $s$ of the centre of the negatives' prior.
        weight: Weight $\lambda$ of the negatives.

    Reference: Jerfel et al., Variational Refinement for Importance Sampling Using the Forward Kullback-Leibler
    Divergence, arXiv:2106.15980; Bornschein and Bengio, Reweighted Wake-Sleep, arXiv:1406.2751.
    """

    kind: Literal["elbo", "forward_kl"] = "elbo"
    samples: int = 8
    shift: float = 8.0
    weight: float = 1.0

    def terms(self, network: VAE, X: Tensor, negatives: Tensor | None = None) -> Terms:
        """The terms of the normal rows ``X`` and, if there are any, of the negatives."""
        X = network.noise.observed(X)
        if negatives is None:
            return self._positive(network, X, network.encode(X))
        positive, negative = self._halves(network, X, network.noise.observed(negatives))
        return self._positive(network, X, positive) | {"negatives": self.weight * negative.kl(self.shift).mean()}

    def encoder_terms(self, network: VAE, X: Tensor) -> Terms:
        """The encoder's part in the adversarial scheme: generated rows, taken as given, are negatives."""
        with torch.no_grad():
            generated = network.generate(len(X))
        return self.terms(network, X, generated)

    def decoder_terms(self, network: VAE, X: Tensor) -> Terms:
        r"""The decoder's part: to explain normal rows, and to generate rows that the encoder maps into the prior."""
        X = network.noise.observed(X)
        with frozen(network.encoder):
            real, generated = self._halves(network, X, network.noise.observed(network.generate(len(X))))
        # Real rows are there to be explained, not to move what is generated in their batch.
        real = Posterior(real.mean.detach(), real.log_var.detach())
        return self._positive(network, X, real) | {"generated": self.weight * generated.kl().mean()}

    def _halves(self, network: VAE, X: Tensor, others: Tensor) -> tuple[Posterior, Posterior]:
        """Encodes two kinds of rows in one batch: batch normalisation then sees both, as its averages do in scoring."""
        both = network.encode(torch.cat([X, others]))
        rest = len(X)
        return Posterior(both.mean[:rest], both.log_var[:rest]), Posterior(both.mean[rest:], both.log_var[rest:])

    def _positive(self, network: VAE, X: Tensor, posterior: Posterior) -> Terms:
        if self.kind == "elbo":
            latents = posterior.at(torch.randn_like(posterior.mean))
            return {"reconstruction": network.reconstruction(X, latents).mean(), "kl": posterior.kl().mean()}
        noise = torch.randn(self.samples, *posterior.mean.shape, device=X.device)
        joint = network.log_joint(X, posterior.at(noise).detach())
        inference = posterior.log_prob_of_draw(noise)
        weights = (joint - inference).detach().softmax(0)
        return {"joint": -(weights * joint).sum(0).mean(), "inference": -(weights * inference).sum(0).mean()}
