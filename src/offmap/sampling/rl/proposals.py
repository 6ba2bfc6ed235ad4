"""Proposals: the actions at which the value of a state is estimated, with their density."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from offmap.sampling.references import BetaReference
from offmap.sampling.rl.policy import Policy

# Maps states (n, s) to actions (n, k, a) and the log density of each, (n, k).
Proposal = Callable[[Tensor], tuple[Tensor, Tensor]]


def uniform_proposal(particles: int, action_dim: int) -> Proposal:
    """Draws actions uniformly from $[-1, 1]^{|A|}$, as in the paper."""

    def propose(states: Tensor) -> tuple[Tensor, Tensor]:
        actions = 2 * torch.rand(len(states), particles, action_dim) - 1
        return actions, torch.full(actions.shape[:2], -action_dim * math.log(2))

    return propose


def adaptive_proposal(policy: Policy, particles: int, action_dim: int) -> Proposal:
    r"""Draws half of the actions uniformly and half from a Beta fitted to the policy's own actions.

    Where the policy has become narrow, few uniform actions are near those that matter. The density of the mixture is
    $\tfrac12 2^{-|A|} + \tfrac12 p_r(a \mid s)$, which bounds the importance weights.

    Args:
        policy: The policy whose actions the Beta is fitted to.
        particles: Actions per state; as many draws of the policy give the moments of the Beta.
        action_dim: Dimensions of an action.
    """
    uniform = uniform_proposal(particles - particles // 2, action_dim)

    def propose(states: Tensor) -> tuple[Tensor, Tensor]:
        reference = BetaReference.fit(policy.draw(states, particles), -1.0, 1.0)
        actions = torch.cat([reference.draw(particles // 2), uniform(states)[0]], dim=1)
        log_uniform = torch.tensor(-action_dim * math.log(2))
        return actions, torch.logaddexp(reference.log_prob(actions), log_uniform) - math.log(2)

    return propose
