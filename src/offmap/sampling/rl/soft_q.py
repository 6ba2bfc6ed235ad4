"""The soft Q-function: what an action is worth, for a policy that is paid for its entropy too."""

import copy
import math
from typing import Literal

import torch
from torch import Tensor, nn

from offmap.nets import mlp
from offmap.sampling.networks import with_context
from offmap.sampling.rl.proposals import Propose
from offmap.train import Batch


class SoftQ(nn.Module):
    r"""Maps states and actions to $Q(s, a) / \alpha$: all values here are in units of the temperature.

    Args:
        state_width: Numbers that make up a state.
        action_width: Numbers that make up an action, each in [-1, 1].
        hidden: Widths of the hidden layers.
        heads: Networks trained side by side, of which the lowest value counts: two keep errors from adding up.
    """

    def __init__(self, state_width: int, action_width: int, hidden: tuple[int, ...], heads: int = 1) -> None:
        super().__init__()
        self.heads = nn.ModuleList(mlp([state_width + action_width, *hidden, 1]) for _ in range(heads))

    def forward(self, states: Tensor, actions: Tensor) -> Tensor:
        """The value of each of ``k`` actions in each of ``n`` states, by each head: ``(heads, n, k)``.

        Args:
            states: One row a state, ``(n, s)``.
            actions: Those to judge in each state, ``(n, k, a)``.
        """
        pairs = with_context(actions, states)
        return torch.stack([head(pairs)[..., 0] for head in self.heads])

    def lowest(self, states: Tensor, actions: Tensor) -> Tensor:
        """The value that the most sceptical head gives each action, ``(n, k)``."""
        return self(states, actions).amin(dim=0)

    def first(self, states: Tensor, actions: Tensor) -> Tensor:
        """The value that the first head gives each action, ``(n, k)``: what a policy climbs needs no second opinion."""
        return self.heads[0](with_context(actions, states))[..., 0]

    def value(self, states: Tensor, actions: Tensor, log_density: Tensor) -> Tensor:
        r"""$V(s) / \alpha = \log \int e^{Q(s, a) / \alpha} da$ by importance sampling.

        Args:
            states: One row a state, ``(n, s)``.
            actions: Drawn in each state, ``(n, k, a)``.
            log_density: With which density, ``(n, k)``.

        Reference: Haarnoja et al., arXiv:1702.08165, equation 10.
        """
        weights = self.lowest(states, actions) - log_density
        return weights.logsumexp(dim=1) - math.log(weights.shape[1])


class QLearning:
    r"""Regresses a soft Q-function on what its slower copy says of the next state.

    $$\tfrac12 \big(Q(s, a) - r / \alpha - \gamma (1 - \text{end}) \bar V(s')\big)^2$$

    Args:
        q: What learns; the copy is made here.
        temperature: $\alpha$, by which rewards are divided.
        discount: $\gamma$.
        propose: Gives the actions at which the value of a state is estimated.
        target: "hard" copies the weights every ``every`` steps, "polyak" moves the copy by ``rate`` at each step.
        every: Steps between hard copies.
        rate: Share of the way that the copy goes at each step.
    """

    def __init__(
        self,
        q: SoftQ,
        *,
        temperature: float,
        discount: float,
        propose: Propose,
        target: Literal["hard", "polyak"] = "hard",
        every: int = 1000,
        rate: float = 0.005,
    ) -> None:
        self.q = q
        self.copy = copy.deepcopy(q).requires_grad_(False)
        self.temperature, self.discount, self.propose = temperature, discount, propose
        self.target, self.every, self.rate = target, every, rate
        self._steps = 0

    def objective(self, batch: Batch) -> dict[str, Tensor]:
        """Half the squared error of every head."""
        states, actions, rewards, following, terminated = batch
        with torch.no_grad():
            future = (1 - terminated) * self.copy.value(following, *self.propose(following))
            aim = rewards / self.temperature + self.discount * future
        error = self.q(states, actions[:, None])[..., 0] - aim
        return {"q": 0.5 * error.square().mean(dim=1).sum()}

    @torch.no_grad()
    def follow(self) -> None:
        """Lets the copy follow, after a step of what learns."""
        self._steps += 1
        if self.target == "hard" and self._steps % self.every == 0:
            self.copy.load_state_dict(self.q.state_dict())
        if self.target == "polyak":
            for slow, fast in zip(self.copy.parameters(), self.q.parameters(), strict=True):
                slow.lerp_(fast, self.rate)
