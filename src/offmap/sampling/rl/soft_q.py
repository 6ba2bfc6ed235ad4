"""The soft Q-function: the value of an action under a policy that is also rewarded for its entropy."""

import copy
import math
from typing import Literal

import torch
from torch import Tensor, nn

from offmap.nets import mlp
from offmap.sampling.networks import with_context
from offmap.sampling.rl.proposals import Proposal
from offmap.train import Batch


class SoftQ(nn.Module):
    r"""Maps states and actions to $Q(s, a) / \alpha$; all values are in units of the temperature.

    Args:
        state_dim: Dimensions of a state.
        action_dim: Dimensions of an action; each is in [-1, 1].
        hidden: Widths of the hidden layers.
        heads: Number of networks, of which the lowest value counts; two keep errors from accumulating.
    """

    def __init__(self, state_dim: int, action_dim: int, hidden: tuple[int, ...], heads: int = 1) -> None:
        super().__init__()
        self.heads = nn.ModuleList(mlp([state_dim + action_dim, *hidden, 1]) for _ in range(heads))

    def forward(self, states: Tensor, actions: Tensor) -> Tensor:
        """The value of each of ``k`` actions in each of ``n`` states, by every network: ``(heads, n, k)``.

        Args:
            states: States, ``(n, s)``.
            actions: Actions per state, ``(n, k, a)``.
        """
        pairs = with_context(actions, states)
        return torch.stack([head(pairs)[..., 0] for head in self.heads])

    def lowest(self, states: Tensor, actions: Tensor) -> Tensor:
        """The lowest value over the networks, ``(n, k)``."""
        return self(states, actions).amin(dim=0)

    def first(self, states: Tensor, actions: Tensor) -> Tensor:
        """The value by the first network, ``(n, k)``, which is enough to train a policy."""
        return self.heads[0](with_context(actions, states))[..., 0]

    def value(self, states: Tensor, actions: Tensor, log_density: Tensor) -> Tensor:
        r"""Estimates $V(s) / \alpha = \log \int e^{Q(s, a) / \alpha} da$ by importance sampling.

        Args:
            states: States, ``(n, s)``.
            actions: Actions drawn in each state, ``(n, k, a)``.
            log_density: Log density that the actions were drawn with, ``(n, k)``.

        Reference: Haarnoja et al., arXiv:1702.08165, equation 10.
        """
        weights = self.lowest(states, actions) - log_density
        return weights.logsumexp(dim=1) - math.log(weights.shape[1])


class QLearning:
    r"""Regresses a soft Q-function on the value of the next state by a target network.

    $$\tfrac12 \big(Q(s, a) - r / \alpha - \gamma (1 - \text{terminal}) \bar V(s')\big)^2$$

    Args:
        q: The Q-function that is trained; its target network is a copy made here.
        temperature: $\alpha$, by which rewards are divided.
        discount: $\gamma$.
        proposal: Gives the actions at which the value of a state is estimated.
        target: "hard" copies the weights every ``target_every`` steps, "polyak" moves the copy by ``polyak`` per step.
        target_every: Steps between hard copies.
        polyak: Share of the distance that the copy moves per step.
    """

    def __init__(
        self,
        q: SoftQ,
        *,
        temperature: float,
        discount: float,
        proposal: Proposal,
        target: Literal["hard", "polyak"] = "hard",
        target_every: int = 1000,
        polyak: float = 0.005,
    ) -> None:
        self.q = q
        self.target_q = copy.deepcopy(q).requires_grad_(False)
        self.temperature, self.discount, self.proposal = temperature, discount, proposal
        self.target, self.target_every, self.polyak = target, target_every, polyak
        self._steps = 0

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        """Half the squared error, summed over the networks."""
        states, actions, rewards, next_states, terminated = batch
        with torch.no_grad():
            future = (1 - terminated) * self.target_q.value(next_states, *self.proposal(next_states))
            aim = rewards / self.temperature + self.discount * future
        error = self.q(states, actions[:, None])[..., 0] - aim
        return {"q": 0.5 * error.square().mean(dim=1).sum()}

    @torch.no_grad()
    def update_target(self) -> None:
        """Updates the target network after a training step."""
        self._steps += 1
        if self.target == "hard" and self._steps % self.target_every == 0:
            self.target_q.load_state_dict(self.q.state_dict())
        if self.target == "polyak":
            for slow, fast in zip(self.target_q.parameters(), self.q.parameters(), strict=True):
                slow.lerp_(fast, self.polyak)
