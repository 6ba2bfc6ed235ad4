"""A policy trained by reference-based adversarial sampling."""

import torch
from torch import Tensor
from torch.optim import Adam

from offmap.nets import frozen
from offmap.ratio import ratio_loss
from offmap.sampling.networks import Critic, smooth_mlp, with_context
from offmap.sampling.objectives import cycle_error
from offmap.sampling.references import BetaReference
from offmap.sampling.rl.policy import ActionLogDensity, Policy
from offmap.train import Batch, Step, descend


class RASPolicy(Policy):
    r"""Learns to draw from $e^{Q(s, a) / \alpha}$ with a critic and a Beta reference per state.

    The critic's $w$ tells reference actions from the policy's, so that $w \to \log p_r / q$, and the generator
    maximises

    $$\mathbb{E}\,[w(s, a) + Q(s, a) / \alpha - \log p_r(a \mid s)] - \lambda\, \mathbb{E} \|\varepsilon -
    \mu_\psi(s, a)\|^2, \quad a = h_\theta(\varepsilon; s).$$

    Args:
        state_dim: Dimensions of a state.
        action_dim: Dimensions of an action; each is in [-1, 1].
        hidden: Widths of the hidden layers.
        particles: Actions drawn per state, from the policy and from the reference.
        cycle_weight: $\lambda$, the weight of the bound on the policy's entropy.
        critic_lr: Learning rate of the critic.
        standardise_actions: Shows the critic each action standardised by the reference of its state. A shift of all
            actions of a state then looks the same to the critic, which need not learn it again.

    Reference: Open-World Learning (thesis), equations 5.8 to 5.11; Li et al., Adversarial Learning of a Sampler Based
    on an Unnormalized Distribution.
    """

    def __init__(
        self,
        state_dim: int,
        action_dim: int,
        hidden: tuple[int, ...],
        particles: int,
        *,
        cycle_weight: float = 0.0,
        critic_lr: float = 1e-3,
        standardise_actions: bool = False,
    ) -> None:
        super().__init__(state_dim, action_dim, hidden, particles)
        self.critic = Critic(dim=action_dim, hidden=hidden, context_dim=state_dim)
        self.inverse = smooth_mlp([action_dim + state_dim, *hidden, action_dim])
        self.cycle_weight, self.critic_lr, self.standardise_actions = cycle_weight, critic_lr, standardise_actions

    def training_step(self, log_density: ActionLogDensity, lr: float) -> Step:
        """Makes the step that trains the critic, then the generator and its inverse."""
        weights = [*self.generator.parameters(), *self.inverse.parameters()]
        critic = descend(Adam(self.critic.parameters(), lr=self.critic_lr, fused=True), self._critic_loss)
        generator = descend(Adam(weights, lr=lr, fused=True), lambda batch: self._generator_loss(batch[0], log_density))
        return lambda batch: critic(batch) | generator(batch)

    def _critic_loss(self, batch: Batch) -> dict[str, Tensor]:
        states = batch[0]
        with torch.no_grad():
            actions = self.draw(states, self.particles)
            reference = BetaReference.fit(actions, -1.0, 1.0)
            drawn = reference.draw(self.particles)
        on_reference, on_policy = (self._log_critic(states, points, reference) for points in (drawn, actions))
        return {"critic": ratio_loss(on_reference, on_policy)}

    def _log_critic(self, states: Tensor, actions: Tensor, reference: BetaReference) -> Tensor:
        """The critic's output at actions, which are standardised first if so asked."""
        if self.standardise_actions:
            mean, scale = 2 * reference.mean - 1, 2 * reference.variance.sqrt()
            actions = (actions - mean) / scale
        return self.critic(actions, states)

    def _generator_loss(self, states: Tensor, log_density: ActionLogDensity) -> dict[str, Tensor]:
        noise = torch.randn(len(states), self.particles, self.generator.noise_dim)
        actions = self.generator(noise, states)
        reference = BetaReference.fit(actions, -1.0, 1.0)
        with frozen(self.critic):
            w = self._log_critic(states, actions, reference)
        ratio = w + log_density(states, actions) - reference.log_prob(actions)
        terms = {"policy": -ratio.mean()}
        if self.cycle_weight:
            terms["cycle"] = self.cycle_weight * cycle_error(noise, self.inverse(with_context(actions, states)))
        return terms
