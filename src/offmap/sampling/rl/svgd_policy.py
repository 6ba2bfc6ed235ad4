"""A policy trained by Stein variational gradient descent."""

import torch
from torch import Tensor
from torch.optim import Adam

from offmap.sampling.rl.policy import ActionLogDensity, Policy
from offmap.sampling.stein import svgd_direction
from offmap.train import Batch, Step, descend


class SVGDPolicy(Policy):
    r"""Learns to draw from $e^{Q(s, a) / \alpha}$ along the SVGD direction $\phi$ of its actions.

    The generator's weights follow $\Delta\theta \propto \phi^\top \partial h_\theta / \partial\theta$. Half of the
    actions of a state are the particles of the direction and the other half are moved, so that no action attracts
    itself.

    Reference: Haarnoja et al., Reinforcement Learning with Deep Energy-Based Policies, arXiv:1702.08165.
    """

    def training_step(self, log_density: ActionLogDensity, lr: float) -> Step:
        """Makes the step that moves the actions of a batch of states along their SVGD directions."""

        def objective(batch: Batch) -> dict[str, Tensor]:
            states = batch[0]
            actions = self.draw(states, self.particles)
            fixed = actions[:, : self.particles // 2].detach().requires_grad_()
            (scores,) = torch.autograd.grad(log_density(states, fixed).sum(), fixed)
            moved = actions[:, self.particles // 2 :]
            direction = svgd_direction(fixed.detach(), scores, moved.detach())
            return {"policy": -(moved * direction).sum(dim=-1).mean()}

        return descend(Adam(self.generator.parameters(), lr=lr, fused=True), objective)
