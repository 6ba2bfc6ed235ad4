"""A latent-variable model of binary rows."""

import math

import torch
from torch import Tensor, nn

from offmap.sampling.posterior import Posterior
from offmap.sampling.references import GaussianReference
from offmap.train import Step

# Draws from the posterior that the moments of the importance-sampling proposal are computed from.
_PROPOSAL_DRAWS = 256
# Multiplies the variance of the proposal, to cover tails heavier than a Gaussian's.
_WIDENING = 1.5


class LatentModel(nn.Module):
    r"""Binary rows with latent vectors, $p(x \mid z) = \prod_i \mathrm{Bernoulli}(x_i; \pi_i(z))$ and $p(z) = N(0, I)$.

    Args:
        decoder: Maps latent vectors to the logits of a row.
        posterior: Draws latent vectors for rows.
        latent: Latent dimensions.
        particles: Latent vectors per row at which the evidence lower bound is estimated.
    """

    def __init__(self, decoder: nn.Module, posterior: Posterior, latent: int, particles: int) -> None:
        super().__init__()
        self.decoder, self.posterior = decoder, posterior
        self.latent, self.particles = latent, particles

    def training_step(self, lr: float) -> Step:
        """Makes the step that trains posterior and decoder on the evidence lower bound."""
        return self.posterior.training_step(
            lambda batch: {"elbo": -self.elbo(batch[0]).mean()}, list(self.decoder.parameters()), lr
        )

    def log_joint(self, rows: Tensor, latents: Tensor) -> Tensor:
        r"""$\log p(x \mid z) + \log p(z)$ at latent vectors ``(n, k, l)``, as ``(n, k)``."""
        logits = self.decoder(latents)
        # log σ(±v) without overflow: x v − softplus(v).
        likelihood = torch.einsum("nkd,nd->nk", logits, rows) - nn.functional.softplus(logits).sum(-1)
        return likelihood - 0.5 * (latents.square().sum(-1) + self.latent * math.log(2 * math.pi))

    def elbo(self, rows: Tensor, rng: torch.Generator | None = None) -> Tensor:
        """Estimates of the evidence lower bound of each row, ``(n, particles)``."""
        latents = self.posterior.draw(rows, self.particles, rng)
        return self.posterior.log_ratio(lambda z: self.log_joint(rows, z), rows, latents)

    def log_evidence(self, rows: Tensor, draws: int, rng: torch.Generator | None = None) -> Tensor:
        r"""Estimates $\log p(x)$ of each row from below, by importance sampling.

        $$\log \tfrac1K \sum_k p(x, z_k) / r(z_k \mid x), \quad z_k \sim r(\cdot \mid x)$$

        The proposal $r$ is a Gaussian with the posterior's moments. Its density is known in closed form whatever the
        posterior, so that the estimate does not rely on a critic.

        Args:
            rows: Binary rows, ``(n, d)``.
            draws: $K$.
            rng: Generator to draw from; torch's global one if None.

        Reference: Burda, Grosse and Salakhutdinov, Importance Weighted Autoencoders, arXiv:1509.00519.
        """
        moments = GaussianReference.fit(self.posterior.draw(rows, _PROPOSAL_DRAWS, rng))
        proposal = GaussianReference(moments.mean, _WIDENING * moments.variance)
        latents = proposal.draw(draws, rng)
        weights = self.log_joint(rows, latents) - proposal.log_prob(latents)
        return weights.logsumexp(dim=1) - math.log(draws)
