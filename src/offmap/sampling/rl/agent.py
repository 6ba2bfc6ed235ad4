"""Soft Q-learning: an agent that keeps every good option open."""

import os
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted
from torch import Tensor
from torch.optim import Adam

from offmap import parameters, persist
from offmap.nets import frozen
from offmap.parameters import Count, Fraction, Natural, NonNegative, Positive, Share
from offmap.random_state import draw_seed, local_seed
from offmap.sampling.rl.experience import Experience
from offmap.sampling.rl.policy import Policy
from offmap.sampling.rl.proposals import Propose, adaptive, uniform
from offmap.sampling.rl.ras_policy import RASPolicy
from offmap.sampling.rl.replay import Replay
from offmap.sampling.rl.soft_q import QLearning, SoftQ
from offmap.sampling.rl.svgd_policy import SVGDPolicy
from offmap.sampling.rl.world import World
from offmap.train import Batch, History, Step, descend, train

# World steps between two moves of the progress bar, and two entries of the history.
_STEPS_AN_EPOCH = 100


@dataclass(kw_only=True, eq=False, repr=False)
class SoftQAgent(BaseEstimator):
    r"""Learns a soft Q-function, and a policy that draws from $\pi(a \mid s) \propto e^{Q(s, a) / \alpha}$ in one pass.

    The defaults are the paper's; ``SoftQAgent.modern`` has what has proved itself since.

    Args:
        policy: "ras" (reference-based adversarial sampling) or "svgd" (Stein variational gradient descent).
        temperature: $\alpha$: how much reward one nat of entropy is worth.
        discount: How much the next step's reward is worth today.
        steps: Steps in the environment, over all copies.
        warmup: How many of them are taken at random before learning starts.
        exploration: Share of the copies that act at random throughout, so that the Q-function stays right about what
            the policy has turned from.
        updates: Steps of learning after each step of the world (that is, of all its copies together).
        hidden: Widths of the hidden layers of every network.
        particles: Actions that the policy's training looks at in each state.
        value_particles: Actions at which the value of a state is estimated.
        proposal: Where these come from: "uniform", all over the bounds, or "adaptive", half of them from a reference of
            the policy's own actions, which a sharp Q-function needs.
        candidates: Actions drawn for each one taken, which is chosen in proportion to $e^{Q(s, a) / \alpha}$: more than
            one makes the agent keener than its policy, the more so where that has learnt least.
        policy_batch: Transitions of a batch whose states the policy learns from.
        entropy: Weight of the cycle bound on the entropy of the "ras" policy.
        standardise: Shows the critic each action in units of the reference of its state.
        twin: Learns two Q-functions and believes the lower.
        target: The slower copy of the Q-function: "hard" copies every ``target_every`` steps, "polyak" follows at
            ``polyak`` a step.
        target_every: Steps of learning between hard copies.
        polyak: Share of the way that the copy goes at each step.
        lr: Step size of Q-function and policy.
        critic_lr: Step size of the policy's critic.
        batch_size: Transitions a step.
        capacity: Transitions that are remembered.
        random_state: Seed; with one, the same world gives the same agent.

    Reference: Li et al., Adversarial Learning of a Sampler Based on an Unnormalized Distribution;
    Haarnoja et al., Reinforcement Learning with Deep Energy-Based Policies, arXiv:1702.08165.

    Example:
        >>> from offmap.sampling.rl import MultiGoalWorld
        >>> agent = SoftQAgent(steps=600, warmup=300, random_state=0).fit(MultiGoalWorld(copies=10))
        >>> agent.sample(torch.zeros(1, 2), count=5).shape
        torch.Size([1, 5, 2])
    """

    # What every fitted one knows: a file without it is refused.
    always_fitted: ClassVar[frozenset[str]] = frozenset({"history_", "returns_", "widths_"})

    policy: Literal["ras", "svgd"] = "ras"
    temperature: Positive = 1.0
    discount: Fraction = 0.99
    steps: Count = 20_000
    warmup: Natural = 1000
    exploration: Share = 0.0
    updates: Count = 1
    hidden: tuple[Count, ...] = (128, 128)
    particles: Count = 16
    value_particles: Count = 16
    proposal: Literal["uniform", "adaptive"] = "uniform"
    candidates: Count = 1
    policy_batch: Count = 128
    entropy: NonNegative = 0.0
    standardise: bool = False
    twin: bool = False
    target: Literal["hard", "polyak"] = "hard"
    target_every: Count = 1000
    polyak: Fraction = 0.005
    lr: Positive = 3e-4
    critic_lr: Positive = 1e-3
    batch_size: Count = 128
    capacity: Count = 1_000_000
    random_state: int | None = None

    @classmethod
    def modern(cls, **changes: Any) -> Self:
        """The preset: twin Q-functions, a slow target, values from near the policy's actions, a critic that keeps up.

        Args:
            **changes: Parameters that differ from it.
        """
        values = {"twin": True, "target": "polyak", "proposal": "adaptive", "lr": 1e-3}
        return cls(**{**values, "standardise": True, "critic_lr": 3e-3, **changes})

    def fit(self, world: World) -> Self:
        """Acts in ``world`` and learns from it.

        ``returns_`` then holds the return of every episode of training, and ``history_`` the mean of each term.
        """
        parameters.check(self)
        if self.particles < 2:
            raise ValueError(f"particles must be at least 2, for one has no spread; got {self.particles}")
        if self.warmup >= self.steps:
            raise ValueError(f"warmup must be below steps; got {self.warmup} of {self.steps}")
        seed = draw_seed(self.random_state)
        with local_seed(seed):
            self.widths_ = (world.state_width, world.action_width)
            self._build()
            experience = self._begin(world, seed)
            epochs = self._rounds(world) // experience.steps
            state = {"q": self.q_, "policy": self.policy_}
            self.history_: History = train(self._step(), experience, epochs=epochs, state=state, label="soft Q")
        self.returns_ = np.array(experience.returns)
        return self

    def sample(self, states: Tensor, count: int = 1) -> Tensor:
        """Draws ``count`` actions of each state, ``(n, count, a)``, each number in [-1, 1]."""
        check_is_fitted(self, "policy_")
        with torch.no_grad():
            return self.policy_.draw(states, count)

    def act(self, states: Tensor) -> Tensor:
        """Draws one action of each state, ``(n, a)``; of several ``candidates``, those of high Q more often."""
        actions = self.sample(states, self.candidates)
        if self.candidates == 1:
            return actions[:, 0]
        with torch.no_grad():
            chosen = torch.multinomial(self.q_.lowest(states, actions).softmax(dim=1), 1)[:, 0]
        return actions[torch.arange(len(states)), chosen]

    def best(self, states: Tensor) -> Tensor:
        """The one of ``particles`` actions, from noise that is always the same, with the highest Q: no chance in it."""
        check_is_fitted(self, "policy_")
        with torch.no_grad():
            actions = self.policy_.generator(self.policy_.fixed_noise.expand(len(states), -1, -1), states)
            chosen = self.q_.lowest(states, actions).argmax(dim=1)
        return actions[torch.arange(len(states)), chosen]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the agent to one safetensors file; ``offmap.load`` reads it."""
        check_is_fitted(self, "policy_")
        persist.save(self, path)

    def _build(self) -> None:
        widths, hidden = self.widths_, tuple(self.hidden)
        self.q_ = SoftQ(*widths, hidden, heads=2 if self.twin else 1)
        self.policy_: Policy = SVGDPolicy(*widths, hidden, self.particles)
        if self.policy == "ras":
            own = {name: getattr(self, name) for name in ("entropy", "critic_lr", "standardise")}
            self.policy_ = RASPolicy(*widths, hidden, self.particles, **own)

    def _begin(self, world: World, seed: int) -> Experience:
        """The experience of a world that has seen nothing but random actions."""
        world.reset(seed)
        replay = Replay(min(self.capacity, self.steps + world.copies), *self.widths_)
        steps = min(_STEPS_AN_EPOCH, self._rounds(world))
        experience = Experience(
            world,
            self.act,
            replay,
            steps=steps,
            updates=self.updates,
            batch_size=self.batch_size,
            exploring=int(self.exploration * world.copies),
        )
        for _ in range(max(1, self.warmup // world.copies)):
            experience.live(at_random=True)
        return experience

    def _rounds(self, world: World) -> int:
        """Steps of the whole world that are left to learning, in whole epochs if they fill one."""
        rounds = max(1, (self.steps - self.warmup) // world.copies)
        return rounds if rounds < _STEPS_AN_EPOCH else rounds - rounds % _STEPS_AN_EPOCH

    def _propose(self) -> Propose:
        if self.proposal == "uniform":
            return uniform(self.value_particles, self.widths_[1])
        return adaptive(self.policy_, self.value_particles, self.widths_[1])

    def _step(self) -> Step:
        """One step of the Q-function, then one of the policy, then the slower copy follows."""
        learning = QLearning(
            self.q_,
            temperature=self.temperature,
            discount=self.discount,
            propose=self._propose(),
            target=self.target,
            every=self.target_every,
            rate=self.polyak,
        )
        value = descend(Adam(self.q_.parameters(), lr=self.lr), learning.objective)
        policy = self.policy_.learning(self.q_.first, self.lr)

        def step(batch: Batch) -> dict[str, Tensor]:
            terms = value(batch)
            learning.follow()
            with frozen(self.q_):
                return terms | policy((batch[0][: self.policy_batch],))

        return step
