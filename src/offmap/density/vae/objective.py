r"""The training objective: a bound on the likelihood of normal rows, and a separate prior for negatives."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from offmap.density.vae.importance import importance_weights
from offmap.density.vae.network import VAE, Posterior
from offmap.nets import frozen

Terms = dict[str, Tensor]


@dataclass(frozen=True)
class Objective:
    r"""The loss terms of one batch, each a mean over its rows, in nats.

    "elbo" minimises $-\mathbb{E}_q \log p(x \mid z) + \mathrm{KL}(q(z \mid x) \| p(z))$. "forward_kl" fits the encoder
    by the divergence in the other direction, $\mathrm{KL}(p(z \mid x) \| q(z \mid x))$, with self-normalised importance
    weights $\tilde w_k \propto (p(x, z_k) / q(z_k \mid x))^\alpha$ of draws $z_k$ from $q$, where $\alpha$ is 1 unless
    a few draws have all the weight (``importance_weights``):

    $$-\sum_k \tilde w_k \left(\log p(x, z_k) + \log q(z_k \mid x)\right),$$

    where neither weights nor draws carry a gradient: the decoder maximises the likelihood, and the encoder covers the
    posterior. Negatives $\bar x$ add $\lambda\, \mathrm{KL}(q(z \mid \bar x) \| N(s \mathbf{1}, I))$; they are not
    reconstructed.

    Args:
        kind: "elbo" or "forward_kl".
        n_samples: Draws per row for "forward_kl".
        shift: Each coordinate $s$ of the mean of the negatives' prior.
        weight: Weight $\lambda$ of the negatives.

    Reference: Jerfel et al., Variational Refinement for Importance Sampling Using the Forward Kullback-Leibler
    Divergence, arXiv:2106.15980; Bornschein and Bengio, Reweighted Wake-Sleep, arXiv:1406.2751.
    """

    kind: Literal["elbo", "forward_kl"] = "elbo"
    n_samples: int = 8
    shift: float = 8.0
    weight: float = 1.0

    def terms(self, network: VAE, X: Tensor, negatives: Tensor | None = None) -> Terms:
        """The terms of the normal rows ``X`` and, if given, of the negatives."""
        X = network.likelihood.observed(X)
        if negatives is None:
            return self._positive(network, X, network.encode(X))
        positive, negative = self._encode_together(network, X, network.likelihood.observed(negatives))
        return self._positive(network, X, positive) | {"negatives": self.weight * negative.kl(self.shift).mean()}

    def encoder_terms(self, network: VAE, X: Tensor) -> Terms:
        """The encoder's terms in adversarial training: generated rows, held constant, are the negatives."""
        with torch.no_grad():
            generated = network.generate(len(X))
        return self.terms(network, X, generated)

    def decoder_terms(self, network: VAE, X: Tensor) -> Terms:
        r"""The decoder's terms: reconstruct normal rows, and generate rows that the encoder maps to the prior."""
        X = network.likelihood.observed(X)
        with frozen(network.encoder):
            generated_rows = network.likelihood.observed(network.generate(len(X)))
            real, generated = self._encode_together(network, X, generated_rows)
        # Batch normalisation ties the codes of real rows to the generated ones: without the detach, the terms of
        # real rows would move what is generated.
        real = Posterior(real.mean.detach(), real.log_var.detach())
        return self._positive(network, X, real) | {"generated": self.weight * generated.kl().mean()}

    def _encode_together(self, network: VAE, X: Tensor, others: Tensor) -> tuple[Posterior, Posterior]:
        """Encodes two kinds of rows in one batch, so that batch normalisation averages over both, as in scoring."""
        both = network.encode(torch.cat([X, others]))
        rest = len(X)
        return Posterior(both.mean[:rest], both.log_var[:rest]), Posterior(both.mean[rest:], both.log_var[rest:])

    def _positive(self, network: VAE, X: Tensor, posterior: Posterior) -> Terms:
        if self.kind == "elbo":
            latents = posterior.at(torch.randn_like(posterior.mean))
            return {"reconstruction": network.reconstruction(X, latents).mean(), "kl": posterior.kl().mean()}
        noise = torch.randn(self.n_samples, *posterior.mean.shape, device=X.device)
        joint = network.log_joint(X, posterior.at(noise).detach())
        inference = posterior.log_prob_of_draw(noise)
        weights = importance_weights((joint - inference).detach())
        return {"joint": -(weights * joint).sum(0).mean(), "inference": -(weights * inference).sum(0).mean()}
