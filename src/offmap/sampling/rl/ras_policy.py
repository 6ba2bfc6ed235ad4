"""A policy trained by reference-based adversarial sampling."""

import torch
from torch import Tensor
from torch.optim import Adam

from offmap.nets import frozen
from offmap.sampling.networks import Critic, smooth_mlp, with_context
from offmap.sampling.objectives import critic_loss, cycle_error
from offmap.sampling.references import BetaReference
from offmap.sampling.rl.policy import LogDensity, Policy
from offmap.train import Batch, Step, descend


class RASPolicy(Policy):
    r"""Learns to draw from $e^{Q(s, a) / \alpha}$ with a critic that sees a Beta reference of each state.

    The critic's $w$ tells reference actions from the policy's, so that $w \to \log p_r / q$, and the generator climbs

    $$\mathbb{E}\,[w(s, a) + Q(s, a) / \alpha - \log p_r(a \mid s)] - \lambda\, \mathbb{E} \|\varepsilon -
    \mu_\psi(s, a)\|^2, \quad a = h_\theta(\varepsilon; s).$$

    Args:
        state_width: Numbers that make up a state.
        action_width: Numbers that make up an action, each in [-1, 1].
        hidden: Widths of the hidden layers.
        particles: Actions drawn in each state, of the policy and of the reference.
        entropy: $\lambda$, the weight of the bound on the policy's entropy.
        critic_lr: Step size of the critic.
        standardise: Shows the critic each action in units of its state's reference: what the policy does in one state
            then looks alike when it moves as a whole, and the critic need not run after it.

    Reference: Open-World Learning (thesis), equations 5.8 to 5.11; Li et al., Adversarial Learning of a Sampler Based
    on an Unnormalized Distribution.
    """

    def __init__(
        self,
        state_width: int,
        action_width: int,
        hidden: tuple[int, ...],
        particles: int,
        *,
        entropy: float = 0.0,
        critic_lr: float = 1e-3,
        standardise: bool = False,
    ) -> None:
        super().__init__(state_width, action_width, hidden, particles)
        self.critic = Critic(inputs=action_width, hidden=hidden, context=state_width)
        self.inverse = smooth_mlp([action_width + state_width, *hidden, action_width])
        self.entropy, self.critic_lr, self.standardise = entropy, critic_lr, standardise

    def learning(self, log_density: LogDensity, lr: float) -> Step:
        """Makes the step of the critic, then of the generator with the bound on its entropy."""
        movers = [*self.generator.parameters(), *self.inverse.parameters()]
        critic = descend(Adam(self.critic.parameters(), lr=self.critic_lr), self._told_apart)
        generator = descend(Adam(movers, lr=lr), lambda batch: self._climb(batch[0], log_density))
        return lambda batch: critic(batch) | generator(batch)

    def _told_apart(self, batch: Batch) -> dict[str, Tensor]:
        states = batch[0]
        with torch.no_grad():
            actions = self.draw(states, self.particles)
            reference = BetaReference.of(actions, -1.0, 1.0)
            drawn = reference.draw(self.particles)
        return {"critic": critic_loss(self._grade(states, drawn, reference), self._grade(states, actions, reference))}

    def _grade(self, states: Tensor, actions: Tensor, reference: BetaReference) -> Tensor:
        """The critic's grade of actions, which it sees in units of the reference if ``standardise``."""
        if self.standardise:
            mean, scale = 2 * reference.mean - 1, 2 * reference.variance.sqrt()
            actions = (actions - mean) / scale
        return self.critic(actions, states)

    def _climb(self, states: Tensor, log_density: LogDensity) -> dict[str, Tensor]:
        noise = torch.randn(len(states), self.particles, self.generator.noise)
        actions = self.generator(noise, states)
        reference = BetaReference.of(actions, -1.0, 1.0)
        with frozen(self.critic):
            grade = self._grade(states, actions, reference)
        ratio = grade + log_density(states, actions) - reference.log_prob(actions)
        terms = {"policy": -ratio.mean()}
        if self.entropy:
            terms["cycle"] = self.entropy * cycle_error(noise, self.inverse(with_context(actions, states)))
        return terms
