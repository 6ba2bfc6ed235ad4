"""A policy whose actions are moved as Stein variational gradient descent would move them."""

import torch
from torch import Tensor
from torch.optim import Adam

from offmap.sampling.rl.policy import LogDensity, Policy
from offmap.sampling.svgd import svgd_direction
from offmap.train import Batch, Step, descend


class SVGDPolicy(Policy):
    r"""Follows the Stein direction $\phi$ of the actions it draws in each state, $\Delta\theta \propto \phi^\top
    \partial h_\theta / \partial\theta$.

    Half of the actions of a state give the kernel's mean, and the other half are moved, so that none pulls on itself.

    Reference: Haarnoja et al., Reinforcement Learning with Deep Energy-Based Policies, arXiv:1702.08165.
    """

    def learning(self, log_density: LogDensity, lr: float) -> Step:
        """Makes the step that moves the actions of a batch of states along their Stein directions."""

        def objective(batch: Batch) -> dict[str, Tensor]:
            states = batch[0]
            actions = self.draw(states, self.particles)
            fixed = actions[:, : self.particles // 2].detach().requires_grad_()
            (score,) = torch.autograd.grad(log_density(states, fixed).sum(), fixed)
            moved = actions[:, self.particles // 2 :]
            direction = svgd_direction(fixed.detach(), score, moved.detach())
            return {"policy": -(moved * direction).sum(dim=-1).mean()}

        return descend(Adam(self.generator.parameters(), lr=lr), objective)
