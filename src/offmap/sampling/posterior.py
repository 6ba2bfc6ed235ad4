r"""Approximate posteriors of latent-variable models.

In a model $p(x \mid z) p(z)$ the posterior of a row is $u(z; x) = p(x \mid z) p(z)$ up to a constant: one more density
to sample from. A Gaussian posterior has a density in closed form. A free-form posterior is a generator
$z = h_\theta(\varepsilon; x)$ whose density a critic estimates, which is adversarial variational Bayes.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.distributions import Normal
from torch.optim import Adam

from offmap.ratio import ratio_loss
from offmap.sampling.networks import Critic, Generator, smooth_mlp
from offmap.sampling.references import GaussianReference
from offmap.train import Batch, Step, descend

# Maps latent vectors (n, k, l) to log p(x, z), with the x of each row, (n, k).
LogJoint = Callable[[Tensor], Tensor]


class Posterior(nn.Module, ABC):
    """Draws latent vectors for rows, and computes or estimates their density."""

    @abstractmethod
    def draw(self, rows: Tensor, count: int, rng: torch.Generator | None = None) -> Tensor:
        """Draws ``count`` latent vectors per row, ``(n, count, l)``, from ``rng`` or torch's global generator."""

    @abstractmethod
    def log_ratio(self, log_joint: LogJoint, rows: Tensor, latents: Tensor) -> Tensor:
        r"""$\log p(x, z) - \log q(z \mid x)$ at latent vectors from ``draw``; its mean is the ELBO."""

    @abstractmethod
    def training_step(self, loss: Callable[[Batch], dict[str, Tensor]], others: list[nn.Parameter], lr: float) -> Step:
        """Makes the step that trains the posterior.

        Args:
            loss: Maps a batch to minus the evidence lower bound.
            others: Parameters that are trained with the same loss, such as those of a decoder.
            lr: Learning rate.
        """


class GaussianPosterior(Posterior):
    r"""$q(z \mid x) = N(\mu(x), \mathrm{diag}\, \sigma(x)^2)$.

    Args:
        inputs: Features of a row.
        latent: Latent dimensions.
        hidden: Widths of the hidden layers.
    """

    def __init__(self, inputs: int, latent: int, hidden: tuple[int, ...]) -> None:
        super().__init__()
        self.encoder = smooth_mlp([inputs, *hidden, 2 * latent])

    def draw(self, rows: Tensor, count: int, rng: torch.Generator | None = None) -> Tensor:
        """Draws ``count`` latent vectors per row."""
        mean, scale = self._moments(rows)
        noise = torch.randn(count, *mean.shape, device=mean.device, generator=rng)
        return (mean + scale * noise).transpose(0, 1)

    def log_ratio(self, log_joint: LogJoint, rows: Tensor, latents: Tensor) -> Tensor:
        """Uses the density in closed form."""
        q = Normal(*self._moments(rows[:, None]), validate_args=False)
        return log_joint(latents) - q.log_prob(latents).sum(-1)

    def training_step(self, loss: Callable[[Batch], dict[str, Tensor]], others: list[nn.Parameter], lr: float) -> Step:
        """Trains the encoder."""
        return descend(Adam([*self.parameters(), *others], lr=lr), loss)

    def _moments(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        mean, log_scale = self.encoder(rows).chunk(2, dim=-1)
        return mean, log_scale.exp()


class RASPosterior(Posterior):
    r"""A posterior of any shape, $z = h_\theta(\varepsilon; x)$, whose density a critic estimates.

    $$\log q(z \mid x) \approx \log p_r(z \mid x) - w(z; x)$$

    The reference $p_r$ of a row is the Gaussian with the moments of its latent vectors, and the critic sees the latent
    vectors standardised by it, so it only learns how they differ from a Gaussian. The moments are always those of the
    vectors that are compared, which keeps the vectors from moving to where $p_r$ falls faster than a critic can learn.

    Args:
        inputs: Features of a row.
        latent: Latent dimensions.
        hidden: Widths of the hidden layers.
        particles: Latent vectors per row that the critic is trained on.
        noise_dim: Dimensions of the generator's input noise.
        critic_lr: Learning rate of the critic.
        critic_steps: Critic steps per generator step.

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
        noise_dim: int,
        critic_lr: float,
        critic_steps: int,
    ) -> None:
        super().__init__()
        self.generator = Generator(noise_dim=noise_dim, dim=latent, hidden=hidden, context_dim=inputs)
        self.critic = Critic(dim=latent, hidden=hidden, context_dim=inputs)
        self.particles, self.critic_lr, self.critic_steps = particles, critic_lr, critic_steps

    def draw(self, rows: Tensor, count: int, rng: torch.Generator | None = None) -> Tensor:
        """Draws ``count`` latent vectors per row."""
        return self.generator.draw(count, rows, rng)

    def log_ratio(self, log_joint: LogJoint, rows: Tensor, latents: Tensor) -> Tensor:
        """Uses the critic's estimate of the density."""
        reference = GaussianReference.fit(latents)
        return self._log_critic(rows, latents, reference) + log_joint(latents) - reference.log_prob(latents)

    def training_step(self, loss: Callable[[Batch], dict[str, Tensor]], others: list[nn.Parameter], lr: float) -> Step:
        """Trains the critic, then the generator."""
        critic_step = descend(Adam(self.critic.parameters(), lr=self.critic_lr), self._critic_loss)
        generator_step = descend(Adam([*self.generator.parameters(), *others], lr=lr), loss)

        def step(batch: Batch) -> dict[str, Tensor]:
            for _ in range(self.critic_steps):
                terms = critic_step(batch)
            return terms | generator_step(batch)

        return step

    def _log_critic(self, rows: Tensor, latents: Tensor, reference: GaussianReference) -> Tensor:
        return self.critic((latents - reference.mean) / reference.variance.sqrt(), rows)

    def _critic_loss(self, batch: Batch) -> dict[str, Tensor]:
        rows = batch[0]
        with torch.no_grad():
            latents = self.draw(rows, self.particles)
        reference = GaussianReference.fit(latents)
        on_reference = self._log_critic(rows, reference.draw(self.particles), reference)
        return {"critic": ratio_loss(on_reference, self._log_critic(rows, latents, reference))}
