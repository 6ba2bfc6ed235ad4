"""Soft Q-learning."""

import os
from dataclasses import dataclass
from functools import partial
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
from offmap.sampling.draws import require_count, torch_rng
from offmap.sampling.rl.checks import States, checked_states, require_environment
from offmap.sampling.rl.environment import Environment
from offmap.sampling.rl.experience import Experience
from offmap.sampling.rl.policy import Policy
from offmap.sampling.rl.proposals import Proposal, adaptive_proposal, uniform_proposal
from offmap.sampling.rl.ras_policy import RASPolicy
from offmap.sampling.rl.replay_buffer import ReplayBuffer
from offmap.sampling.rl.soft_q import QLearning, SoftQ
from offmap.sampling.rl.svgd_policy import SVGDPolicy
from offmap.train import Batch, History, Step, descend, train

# Environment steps per update of the progress bar and per entry of the history.
_STEPS_PER_EPOCH = 100


@dataclass(kw_only=True, eq=False, repr=False)
class SoftQAgent(BaseEstimator):
    r"""Learns a soft Q-function and a policy that draws from $\pi(a \mid s) \propto e^{Q(s, a) / \alpha}$ in one pass.

    The defaults are the paper's; ``SoftQAgent.modern`` has the settings that later work found to be better.

    Args:
        policy: How the policy is trained: "ras" (reference-based adversarial sampling) or "svgd" (Stein variational
            gradient descent).
        temperature: $\alpha$, the reward that one nat of entropy is worth. Lower it for a policy closer to the best
            action, raise it to keep more alternatives.
        discount: Discount factor of the next step's value.
        steps: Environment steps, over all copies.
        warmup: Environment steps with random actions before training starts.
        exploration: Share of the copies that always act at random, so that the Q-function stays accurate for actions
            that the policy no longer takes.
        updates: Training steps per step of all copies.
        hidden: Widths of the hidden layers of every network.
        particles: Actions per state that the policy is trained on.
        value_particles: Actions per state at which the value of a state is estimated.
        proposal: The distribution of these actions: "uniform" over the bounds, or "adaptive", half of them from a Beta
            fitted to the policy's actions. Use "adaptive" where the Q-function has narrow peaks.
        candidates: Actions drawn for each action taken, which is chosen in proportion to $e^{Q(s, a) / \alpha}$. More
            than one makes up for a policy that has not converged, and makes it sharper.
        policy_batch_size: States per step of the policy; it takes the first ones of the batch.
        cycle_weight: Weight of the cycle bound on the entropy of the "ras" policy.
        standardise_actions: Shows the critic each action standardised by the reference of its state.
        twin: Trains two Q-functions and uses the lower value.
        target: How the target network follows the Q-function: "hard" copies it every ``target_every`` training steps,
            "polyak" moves by the share ``polyak`` at every step.
        target_every: Training steps between hard copies.
        polyak: Share of the distance that the target network moves per step.
        lr: Learning rate of Q-function and policy.
        critic_lr: Learning rate of the policy's critic.
        batch_size: Transitions per training step.
        replay_capacity: Transitions that the replay buffer holds.
        random_state: Seed of the fit; the same seed and environment give the same agent.

    Attributes:
        q_: The soft Q-function, in units of the temperature.
        policy_: The policy network.
        state_dim_: Dimensions of a state.
        action_dim_: Dimensions of an action.
        returns_: Return of every training episode of the copies that do not explore, in the order they ended.
        history_: Mean of each loss over every 100 environment steps, by name.

    Reference: Li et al., Adversarial Learning of a Sampler Based on an Unnormalized Distribution;
    Haarnoja et al., Reinforcement Learning with Deep Energy-Based Policies, arXiv:1702.08165.

    Example:
        >>> from offmap.sampling.rl import GymEnvironment
        >>> agent = SoftQAgent(steps=340, warmup=300, random_state=0).fit(GymEnvironment("Pendulum-v1", n_envs=10))
        >>> agent.sample(torch.zeros(2, 3), count=5).shape
        torch.Size([2, 5, 1])
    """

    # A model file that lacks one of these is refused.
    always_fitted: ClassVar[frozenset[str]] = frozenset({"action_dim_", "history_", "returns_", "state_dim_"})

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
    policy_batch_size: Count = 128
    cycle_weight: NonNegative = 0.0
    standardise_actions: bool = False
    twin: bool = False
    target: Literal["hard", "polyak"] = "hard"
    target_every: Count = 1000
    polyak: Fraction = 0.005
    lr: Positive = 3e-4
    critic_lr: Positive = 1e-3
    batch_size: Count = 128
    replay_capacity: Count = 1_000_000
    random_state: Natural | None = None

    @classmethod
    def modern(cls, **changes: Any) -> Self:
        """Twin Q-functions, a Polyak target, adaptive proposals and standardised actions, at higher learning rates.

        Args:
            **changes: Parameters that differ from these settings.
        """
        values = {"twin": True, "target": "polyak", "proposal": "adaptive", "lr": 1e-3}
        return cls(**{**values, "standardise_actions": True, "critic_lr": 3e-3, **changes})

    def fit(self, environment: Environment) -> Self:
        """Acts in ``environment`` and learns from the transitions."""
        parameters.check(self)
        require_environment(environment)
        if self.particles < 2:
            raise ValueError(f"particles must be at least 2, to have a variance; got {self.particles}")
        if self.warmup >= self.steps:
            raise ValueError(f"warmup must be below steps, {self.steps}; got {self.warmup}")
        seed = draw_seed(self.random_state)
        with local_seed(seed):
            self.state_dim_, self.action_dim_ = environment.state_dim, environment.action_dim
            self._build()
            experience = self._warmed_up(environment, seed)
            epochs = self._learning_steps(environment) // experience.steps
            state = {"q": self.q_, "policy": self.policy_}
            self.history_: History = train(
                self._training_step(), experience, epochs=epochs, state=state, label="soft Q"
            )
        self.returns_ = np.array(experience.returns)
        return self

    def sample(self, states: States, count: int = 1, rng: torch.Generator | None = None) -> Tensor:
        """Draws ``count`` actions per state, ``(n, count, a)``, each coordinate in [-1, 1].

        Args:
            states: States, ``(n, s)``: a tensor or an array.
            count: Actions per state.
            rng: Generator to draw from, for actions that can be repeated; without one, every call draws anew.
        """
        check_is_fitted(self, "policy_")
        with torch.no_grad():
            return self.policy_.draw(self._checked(states), require_count("count", count), rng or torch_rng())

    def act(self, states: States, rng: torch.Generator | None = None) -> Tensor:
        """Draws one action per state, ``(n, a)``; of several ``candidates``, those of high Q are more likely.

        Args:
            states: States, ``(n, s)``: a tensor or an array.
            rng: Generator to draw from, for actions that can be repeated; without one, every call draws anew.
        """
        check_is_fitted(self, "policy_")
        rng, states = rng or torch_rng(), self._checked(states)
        actions = self.sample(states, self.candidates, rng)
        if self.candidates == 1:
            return actions[:, 0]
        with torch.no_grad():
            weights = self.q_.lowest(states, actions).softmax(dim=1)
            chosen = torch.multinomial(weights, 1, generator=rng)[:, 0]
        return actions[torch.arange(len(states)), chosen]

    def best(self, states: States) -> Tensor:
        """Returns the action with the highest Q among ``particles`` actions per state, ``(n, a)``.

        These actions come from the same noise at every call, so that the same state gives the same action.

        Args:
            states: States, ``(n, s)``: a tensor or an array.
        """
        check_is_fitted(self, "policy_")
        states = self._checked(states)
        with torch.no_grad():
            actions = self.policy_.generator(self.policy_.fixed_noise.expand(len(states), -1, -1), states)
            chosen = self.q_.lowest(states, actions).argmax(dim=1)
        return actions[torch.arange(len(states)), chosen]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the fitted agent to one safetensors file, which ``offmap.load`` reads."""
        check_is_fitted(self, "policy_")
        persist.save(self, path)

    def _checked(self, states: States) -> Tensor:
        return checked_states("states", states, self.state_dim_)

    def _build(self) -> None:
        dims, hidden = (self.state_dim_, self.action_dim_), tuple(self.hidden)
        self.q_ = SoftQ(*dims, hidden, heads=2 if self.twin else 1)
        # An SVGD policy is made in either case: the draws of its weights are part of what a seed gives.
        self.policy_: Policy = SVGDPolicy(*dims, hidden, self.particles)
        if self.policy == "ras":
            own = {name: getattr(self, name) for name in ("cycle_weight", "critic_lr", "standardise_actions")}
            self.policy_ = RASPolicy(*dims, hidden, self.particles, **own)

    def _warmed_up(self, environment: Environment, seed: int) -> Experience:
        """Resets the environment and collects the transitions of ``warmup``."""
        environment.reset(seed)
        capacity = min(self.replay_capacity, self.steps + environment.n_envs)
        experience = Experience(
            environment,
            # Training draws from torch's global generator, which ``fit`` has seeded.
            partial(self.act, rng=torch.default_generator),
            ReplayBuffer(capacity, self.state_dim_, self.action_dim_),
            steps=min(_STEPS_PER_EPOCH, self._learning_steps(environment)),
            updates=self.updates,
            batch_size=self.batch_size,
            n_exploring=int(self.exploration * environment.n_envs),
        )
        for _ in range(max(1, self.warmup // environment.n_envs)):
            experience.collect(at_random=True)
        return experience

    def _learning_steps(self, environment: Environment) -> int:
        """Steps of all copies after the warm-up, rounded down to whole epochs if there is at least one."""
        steps = max(1, (self.steps - self.warmup) // environment.n_envs)
        return steps if steps < _STEPS_PER_EPOCH else steps - steps % _STEPS_PER_EPOCH

    def _proposal(self) -> Proposal:
        if self.proposal == "uniform":
            return uniform_proposal(self.value_particles, self.action_dim_)
        return adaptive_proposal(self.policy_, self.value_particles, self.action_dim_)

    def _training_step(self) -> Step:
        """Trains the Q-function, updates its target network, and trains the policy."""
        learning = QLearning(
            self.q_,
            temperature=self.temperature,
            discount=self.discount,
            proposal=self._proposal(),
            target=self.target,
            target_every=self.target_every,
            polyak=self.polyak,
        )
        q_step = descend(Adam(self.q_.parameters(), lr=self.lr, fused=True), learning.loss)
        policy_step = self.policy_.training_step(self.q_.first, self.lr)

        def step(batch: Batch) -> dict[str, Tensor]:
            terms = q_step(batch)
            learning.update_target()
            with frozen(self.q_):
                return terms | policy_step((batch[0][: self.policy_batch_size],))

        return step
