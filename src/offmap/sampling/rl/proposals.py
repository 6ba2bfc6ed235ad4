"""Where the value of a state is estimated: actions to look at, and the density they were drawn with."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from offmap.sampling.references import BetaReference
from offmap.sampling.rl.policy import Policy

# Maps states (n, s) to actions (n, k, a) and the log density of each, (n, k).
Propose = Callable[[Tensor], tuple[Tensor, Tensor]]


def uniform(particles: int, action_width: int) -> Propose:
    """Actions from all over $[-1, 1]^{|A|}$, as the paper has it."""

    def propose(states: Tensor) -> tuple[Tensor, Tensor]:
        actions = 2 * torch.rand(len(states), particles, action_width) - 1
        return actions, torch.full(actions.shape[:2], -action_width * math.log(2))

    return propose


def adaptive(policy: Policy, particles: int, action_width: int) -> Propose:
    r"""Half of the actions from all over, half from the Beta reference of the policy's own actions.

    Where the policy has made up its mind, few of the uniform actions are near those that count. The density of the
    mixture is $\tfrac12 2^{-|A|} + \tfrac12 p_r(a \mid s)$, which bounds the weight of every action.

    Args:
        policy: What the references are taken from.
        particles: Actions a state, and draws of the policy that give the moments of its reference.
        action_width: Numbers that make up an action.
    """
    everywhere = uniform(particles - particles // 2, action_width)

    def propose(states: Tensor) -> tuple[Tensor, Tensor]:
        reference = BetaReference.of(policy.draw(states, particles), -1.0, 1.0)
        actions = torch.cat([reference.draw(particles // 2), everywhere(states)[0]], dim=1)
        flat = torch.tensor(-action_width * math.log(2))
        return actions, torch.logaddexp(reference.log_prob(actions), flat) - math.log(2)

    return propose
