"""How much a posterior of the row's own would help."""

import torch
from torch import Tensor
from torch.optim import Adam

from offmap.density.scores.score import Models, Score
from offmap.density.vae import VAE, Posterior


class LikelihoodRegret(Score):
    r"""$\max_{\mu, \ell} \mathrm{ELBO}(x; \mu, \ell) - \mathrm{ELBO}(x; \mu(x), \ell(x))$ in nats.

    The encoder serves normal rows nearly as well as a posterior fitted to the row alone; others it serves badly. Cost:
    ``steps`` passes there and back, a hundred times that of ``bpd``. Fails: where the decoder cannot make the row at
    all, whatever the posterior, and there is nothing to regret.

    Reference: Xiao, Yan and Amit, Likelihood Regret: An Out-of-Distribution Detection Score for Variational
    Auto-Encoder, arXiv:2003.02977.
    """

    def statistics(self, models: Models, X: Tensor) -> Tensor:
        """The regret."""
        network = models.network
        with torch.inference_mode(False), torch.enable_grad():
            # Made here, outside the mode of scoring: what is made inside cannot take part in a gradient.
            X, draws = network.noise.observed(X.clone()), models.draws()
            with torch.no_grad():
                own = network.encode(X)
            best = _fitted(network, X, own, draws, models.steps)
        with torch.no_grad():
            # The optimiser may overshoot; the encoder's own posterior is always a candidate.
            gain = mean_elbo(network, X, best, draws) - mean_elbo(network, X, own, draws)
        return gain.clamp(min=0)[:, None]


def mean_elbo(network: VAE, X: Tensor, posterior: Posterior, draws: Tensor) -> Tensor:
    """The bound of each observed row under any posterior, averaged over draws, in nats."""
    nats = [network.reconstruction(X, posterior.at(draw)) for draw in draws]
    return -torch.stack(nats).mean(0) - posterior.kl()


def _fitted(network: VAE, X: Tensor, start: Posterior, draws: Tensor, steps: int) -> Posterior:
    """Posteriors that climb the bound, each row by itself, one draw after another."""
    posterior = Posterior(*(part.clone().requires_grad_() for part in start))
    optimizer = Adam(posterior, lr=_STEP_SIZE)
    for step in range(steps):
        optimizer.zero_grad()
        # A sum, not a mean: no row's gradient depends on how many others there are.
        loss = -mean_elbo(network, X, posterior, draws[step % len(draws)][None]).sum()
        posterior_gradients = torch.autograd.grad(loss, list(posterior))
        for part, gradient in zip(posterior, posterior_gradients, strict=True):
            part.grad = gradient
        optimizer.step()
    return Posterior(*(part.detach() for part in posterior))


_STEP_SIZE = 0.05
