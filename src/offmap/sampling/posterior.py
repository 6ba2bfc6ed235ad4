r"""Variational inference: the posterior of a latent-variable model as one more density known up to a constant.

Of a model $p(x \mid z) p(z)$ the posterior of a row is $u(z; x) = p(x \mid z) p(z)$ up to a constant. A Gaussian
posterior has a density of its own; a free one is a generator $z = h_\theta(\varepsilon; x)$ whose density a critic
estimates, which is adversarial variational Bayes.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.distributions import Normal
from torch.optim import Adam

from offmap.sampling.networks import Critic, Generator, smooth_mlp
from offmap.sampling.objectives import critic_loss
from offmap.sampling.references import GaussianReference
from offmap.train import Batch, Step, descend

# Maps latent vectors (n, k, l) to log p(x, z) of each row's own x, (n, k).
LogJoint = Callable[[Tensor], Tensor]


class Posterior(nn.Module, ABC):
    """Draws latent vectors of rows and knows, or estimates, how dense it is there."""

    @abstractmethod
    def draw(self, rows: Tensor, count: int) -> Tensor:
        """So many latent vectors of each row, ``(n, count, l)``."""

    @abstractmethod
    def log_ratio(self, log_joint: LogJoint, rows: Tensor, latents: Tensor) -> Tensor:
        r"""$\log p(x, z) - \log q(z \mid x)$ at latent vectors that ``draw`` gave; its mean is the ELBO."""

    def learning(self, model: "LatentModel", lr: float) -> Step:
        """Makes the step that climbs the evidence lower bound with the posterior and the decoder."""
        movers = [*self.moving(), *model.decoder.parameters()]
        return descend(Adam(movers, lr=lr), lambda batch: {"elbo": -model.bound(batch[0]).mean()})

    def moving(self) -> list[nn.Parameter]:
        """The weights that climb the bound."""
        return list(self.parameters())


class GaussianPosterior(Posterior):
    r"""$q(z \mid x) = N(\mu(x), \mathrm{diag}\, \sigma(x)^2)$.

    Args:
        inputs: Numbers of a row.
        latent: Latent dimensions.
        hidden: Widths of the hidden layers.
    """

    def __init__(self, inputs: int, latent: int, hidden: tuple[int, ...]) -> None:
        super().__init__()
        self.encoder = smooth_mlp([inputs, *hidden, 2 * latent])

    def draw(self, rows: Tensor, count: int) -> Tensor:
        """So many latent vectors of each row."""
        return self._of(rows).rsample(torch.Size([count])).transpose(0, 1)

    def log_ratio(self, log_joint: LogJoint, rows: Tensor, latents: Tensor) -> Tensor:
        """With the density in closed form."""
        return log_joint(latents) - self._of(rows[:, None]).log_prob(latents).sum(-1)

    def _of(self, rows: Tensor) -> Normal:
        mean, log_scale = self.encoder(rows).chunk(2, dim=-1)
        return Normal(mean, log_scale.exp(), validate_args=False)


class RASPosterior(Posterior):
    r"""$z = h_\theta(\varepsilon; x)$, any shape, with $\log q(z \mid x) \approx \log p_r(z \mid x) - w(z; x)$.

    The reference $p_r$ of a row is the Gaussian with the moments of its latent vectors, and the critic sees these in
    units of it: what is left to learn is how they differ from a Gaussian. The moments are those of the very vectors
    that are judged, which keeps them from running away to where $p_r$ falls faster than a critic can.

    Args:
        inputs: Numbers of a row.
        latent: Latent dimensions.
        hidden: Widths of the hidden layers.
        particles: Latent vectors of a row that the critic sees.
        noise: Width of the noise.
        critic_lr: Step size of the critic.
        critic_steps: Steps of the critic before each of the generator.

    Reference: Mescheder, Nowozin and Geiger, Adversarial Variational Bayes, arXiv:1701.04722; Open-World Learning
    (thesis), section 5.5.
    """

    def __init__(
        self,
        inputs: int,
        latent: int,
        hidden: tuple[int, ...],
        *,
        particles: int,
        noise: int,
        critic_lr: float,
        critic_steps: int,
    ) -> None:
        super().__init__()
        self.generator = Generator(noise=noise, outputs=latent, hidden=hidden, context=inputs)
        self.critic = Critic(inputs=latent, hidden=hidden, context=inputs)
        self.particles, self.critic_lr, self.critic_steps = particles, critic_lr, critic_steps

    def draw(self, rows: Tensor, count: int) -> Tensor:
        """So many latent vectors of each row."""
        return self.generator.draw(count, rows)

    def log_ratio(self, log_joint: LogJoint, rows: Tensor, latents: Tensor) -> Tensor:
        """With the density that the critic estimates: approximate."""
        reference = GaussianReference.of(latents)
        return self._grade(rows, latents, reference) + log_joint(latents) - reference.log_prob(latents)

    def learning(self, model: "LatentModel", lr: float) -> Step:
        """Makes the steps of the critic, then the one that climbs the bound."""
        critic = descend(Adam(self.critic.parameters(), lr=self.critic_lr), self._told_apart)
        climb = super().learning(model, lr)

        def step(batch: Batch) -> dict[str, Tensor]:
            for _ in range(self.critic_steps):
                terms = critic(batch)
            return terms | climb(batch)

        return step

    def moving(self) -> list[nn.Parameter]:
        """The generator's weights: the critic has a step of its own."""
        return list(self.generator.parameters())

    def _grade(self, rows: Tensor, latents: Tensor, reference: GaussianReference) -> Tensor:
        return self.critic((latents - reference.mean) / reference.variance.sqrt(), rows)

    def _told_apart(self, batch: Batch) -> dict[str, Tensor]:
        rows = batch[0]
        with torch.no_grad():
            latents = self.draw(rows, self.particles)
        reference = GaussianReference.of(latents)
        drawn = self._grade(rows, reference.draw(self.particles), reference)
        return {"critic": critic_loss(drawn, self._grade(rows, latents, reference))}


class LatentModel(nn.Module):
    r"""Binary rows with latent vectors, $p(x \mid z) = \prod_i \mathrm{Bernoulli}(x_i; \pi_i(z))$ and $p(z) = N(0, I)$.

    Args:
        decoder: Maps latent vectors to the logits of a row.
        posterior: Infers latent vectors.
        latent: Latent dimensions.
        particles: Latent vectors of a row at which the bound is taken.
    """

    def __init__(self, decoder: nn.Module, posterior: Posterior, latent: int, particles: int) -> None:
        super().__init__()
        self.decoder, self.posterior = decoder, posterior
        self.latent, self.particles = latent, particles

    def log_joint(self, rows: Tensor, latents: Tensor) -> Tensor:
        r"""$\log p(x \mid z) + \log p(z)$ of latent vectors ``(n, k, l)`` of each row, ``(n, k)``."""
        logits = self.decoder(latents)
        # log σ(±v) without the overflow of either: x v − softplus(v).
        likelihood = torch.einsum("nkd,nd->nk", logits, rows) - nn.functional.softplus(logits).sum(-1)
        return likelihood - 0.5 * (latents.square().sum(-1) + self.latent * math.log(2 * math.pi))

    def bound(self, rows: Tensor) -> Tensor:
        """Estimates of the evidence lower bound of each row, ``(n, particles)``."""
        latents = self.posterior.draw(rows, self.particles)
        return self.posterior.log_ratio(lambda z: self.log_joint(rows, z), rows, latents)

    def log_evidence(self, rows: Tensor, draws: int, widen: float = 1.5) -> Tensor:
        r"""$\log p(x)$ of each row from below, by importance sampling with a Gaussian of the posterior's moments.

        $$\log \tfrac1K \sum_k p(x, z_k) / r(z_k \mid x), \quad z_k \sim r(\cdot \mid x)$$

        The proposal has a density in closed form whatever the posterior, so that the number holds without the critic.

        Args:
            rows: Binary rows, ``(n, d)``.
            draws: $K$.
            widen: Multiplies the variance of the proposal, for tails that a Gaussian lacks.

        Reference: Burda, Grosse and Salakhutdinov, Importance Weighted Autoencoders, arXiv:1509.00519.
        """
        moments = GaussianReference.of(self.posterior.draw(rows, 256))
        proposal = GaussianReference(moments.mean, widen * moments.variance)
        latents = proposal.draw(draws)
        weights = self.log_joint(rows, latents) - proposal.log_prob(latents)
        return weights.logsumexp(dim=1) - math.log(draws)
