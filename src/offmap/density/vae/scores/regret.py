"""How much the bound of a row improves with a posterior fitted to that row alone."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.optim import Adam

from offmap.density.vae.network import VAE, Posterior
from offmap.density.vae.scores.score import Networks, Score
from offmap.parameters import Repeats


@dataclass(kw_only=True, eq=False, repr=False)
class LikelihoodRegret(Score):
    r"""$\max_{\mu, \ell} \mathrm{ELBO}(x; \mu, \ell) - \mathrm{ELBO}(x; \mu(x), \ell(x))$ in nats.

    For normal rows the encoder's posterior is nearly as good as one fitted to the row alone; for others it is not. Both
    bounds are averages over the same draws, so that their difference is not the noise of the draws. Cost: ``steps``
    forward and backward passes, a hundred times "bpd". Fails: where the decoder cannot produce the row with any
    posterior.

    Args:
        steps: Gradient steps per row.
        n_samples: Latent draws that the bounds are averaged over.

    Reference: Xiao, Yan and Amit, Likelihood Regret: An Out-of-Distribution Detection Score for Variational
    Auto-Encoder, arXiv:2003.02977.
    """

    name: ClassVar[str] = "regret"

    steps: Repeats = 50
    n_samples: Repeats = 8

    def statistics(self, networks: Networks, X: Tensor) -> Tensor:
        """The regret."""
        network = networks.network
        with torch.inference_mode(False), torch.enable_grad():
            # Copied outside inference mode: tensors made inside it cannot take part in a gradient.
            X, draws = network.likelihood.observed(X.clone()), networks.draws(self.n_samples)
            with torch.no_grad():
                own = network.encode(X)
            best = _fitted(network, X, own, draws, self.steps)
        with torch.no_grad():
            gain = mean_elbo(network, X, best, draws) - mean_elbo(network, X, own, draws)
        # The optimiser may overshoot; the encoder's own posterior is always a candidate.
        return gain.clamp(min=0)[:, None]


def mean_elbo(network: VAE, X: Tensor, posterior: Posterior, draws: Tensor) -> Tensor:
    """The bound of each observed row under any posterior, averaged over draws, in nats."""
    nats = [network.reconstruction(X, posterior.at(draw)) for draw in draws]
    return -torch.stack(nats).mean(0) - posterior.kl()


def _fitted(network: VAE, X: Tensor, start: Posterior, draws: Tensor, steps: int) -> Posterior:
    """Posteriors that maximise the bound of each row separately, one draw per step."""
    posterior = Posterior(*(part.clone().requires_grad_() for part in start))
    optimizer = Adam(posterior, lr=_LEARNING_RATE)
    for step in range(steps):
        optimizer.zero_grad()
        # A sum, not a mean: the gradient of a row must not depend on the size of the batch.
        loss = -mean_elbo(network, X, posterior, draws[step % len(draws)][None]).sum()
        gradients = torch.autograd.grad(loss, list(posterior))
        for part, gradient in zip(posterior, gradients, strict=True):
            part.grad = gradient
        optimizer.step()
    return Posterior(*(part.detach() for part in posterior))


_LEARNING_RATE = 0.05
