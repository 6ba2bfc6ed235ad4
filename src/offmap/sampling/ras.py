"""Reference-based adversarial sampling: trains a generator to draw from a density known up to a constant."""

import math
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from offmap.parameters import Count, Fraction, NonNegative, Positive, Share
from offmap.random_state import local_seed
from offmap.sampling.annealing import annealed_power, linear_decay
from offmap.sampling.divergences import Divergence
from offmap.sampling.generator_sampler import GeneratorSampler
from offmap.sampling.log_density import LogDensity, evaluate, require_log_density, require_usable
from offmap.sampling.mixture_reference import MixtureReference
from offmap.sampling.networks import Critic, smooth_mlp
from offmap.sampling.noise import GaussianNoise, MixtureNoise
from offmap.sampling.objectives import log_ratio
from offmap.sampling.ras_losses import RASLosses, component_moments
from offmap.sampling.references import BetaReference, GaussianReference, fit_reference
from offmap.sampling.support import Support, checked_support, is_inside
from offmap.sampling.training import AdversarialPair, Losses, adam, train_steps
from offmap.train import descend

# Samples from which the moments of the final reference are computed.
_REFERENCE_SAMPLES = 8192
# First rate at which the weights of a mixture of noise follow the log ratios; it falls to 0.
_REWEIGHTING = 0.05


@dataclass(kw_only=True, eq=False, repr=False)
class RAS(GeneratorSampler):
    r"""Draws from a density known up to a constant, $p \propto u$, in one forward pass of a generator.

    A critic $w_\phi$ is trained by logistic regression to tell samples of the generator,
    $x = h_\theta(\varepsilon) \sim q_\theta$, from those of a reference $p_r$ with the same moments, so that
    $w \to \log p_r / q$. The generator maximises

    $$\mathbb{E}\, g_0\!\left(w(x) + \log \frac{u(x)}{p_r(x)}\right),$$

    which for $g_0(w) = w$ is $-\mathrm{KL}(q \| p)$ up to a constant. The noise is a mixture, and so is the reference:
    each of its parts has the moments of the samples of one component. On its own this objective may settle on some of
    the modes. Two terms keep the samples spread out early in training and end before it does: *annealing* replaces $u$
    by $u^{1 - \beta}$ with β falling from near 1 to 0, and the *cycle* bound on the entropy,
    $-\mathbb{E} \|\varepsilon - \mu_\psi(x)\|^2$, rewards samples from which the noise can be recovered.

    The generator follows the gradient of $\log u$, which does not show a jump: with a density that is 3 on the right
    half of the unit interval and 1 on the left, 0.54 of the samples fell on the right instead of 0.75. Where $u$ jumps,
    check ``ess``, and resample by the weights $u(x) / q(x)$, with $\log q$ from ``log_prob_estimate``.

    Args:
        log_density: Maps points ``(n, d)``, a torch tensor, to $\log u$, ``(n,)``. With contexts it is called with
            points and contexts ``(n, c)``.
        support: Lower and upper bound outside of which the density is zero, each one number or one per dimension: a
            tuple, a list or an array. The reference is then a Beta, else a Gaussian.
        uniform_share: Share of the reference that is broad: uniform over the support, or without a support, where the
            noise is a mixture, one Gaussian with the moments of all samples. At 0, the paper's choice, samples may pile
            up in a corner where the target density is almost zero and that of the reference even smaller.
        components: Gaussians in the mixture that the generator's noise is drawn from; their weights are learnt, and
            the reference has a part for each of them. Raise it if there may be more modes than that. At 1, the
            paper's choice, distant modes may be missed and their weights be wrong. With contexts the noise is always
            one Gaussian.
        divergence: The divergence that the generator minimises, which sets $g_0$: "reverse_kl" (the paper's choice),
            "kl", "hellinger", "total_variation", "pearson", "neyman", "gan" or "non_saturating". "kl" and "pearson"
            weight samples by the ratio itself, "neyman" by its inverse, so errors of the critic can dominate.
        entropy: The terms that keep the samples spread out: "anneal", "cycle", "both" or None.
        annealing_share: Share of the steps after which these terms are zero.
        initial_power: The first $1 - \beta$; it rises geometrically to 1.
        cycle_weight: Initial weight of the cycle bound.
        critic_resolution: Size of the initial samples divided by that of the smallest structure the critic should
            see. Raise it for modes that are narrow compared with ``scale``.
        critic_steps: Critic steps per generator step. If None, 1 where the noise is a mixture, else 3: one reference
            for all samples leaves the critic more to learn.
        critic_lr: Initial learning rate of the critic.
        averaging_decay: Decay of the moving average of the generator's weights, which samples are drawn with.

    Attributes:
        critic_: The trained critic network.

    Reference: Open-World Learning (thesis), chapter 5.

    Example:
        >>> def log_density(x):
        ...     return -((x - 3.0) ** 2).sum(1) / 2
        >>> settings = {"hidden": (32,), "steps": 150, "batch_size": 64, "lr": 1e-2, "random_state": 0}
        >>> sampler = RAS(log_density=log_density, dim=1, **settings).fit()
        >>> samples = sampler.sample(1000, random_state=0)
        >>> samples.shape, round(float(samples.mean()))
        ((1000, 1), 3)
    """

    hidden: tuple[Count, ...] = (64, 64)
    steps: Count = 1500
    batch_size: Count = 512
    lr: Positive = 2e-3
    log_density: LogDensity | None = None
    support: Any = None
    uniform_share: Share = 0.1
    components: Count = 64
    divergence: Divergence = "reverse_kl"
    entropy: Literal["anneal", "cycle", "both"] | None = "anneal"
    annealing_share: Fraction = 0.6
    initial_power: Fraction = 0.01
    cycle_weight: NonNegative = 0.1
    critic_resolution: Positive = 4.0
    critic_steps: Count | None = None
    critic_lr: Positive = 5e-3
    averaging_decay: Fraction = 0.995

    def fit(self, context: ArrayLike | None = None) -> Self:
        """Trains the sampler; ``context`` ``(m, c)`` holds examples of the contexts that it will be given, if any."""
        seed = self._begin_fit(context)
        require_log_density(self.log_density)
        contexts = self._checked_context(context)
        if contexts is not None and contexts.ndim != 2:
            raise ValueError(f"context must be (m, c) in fit; got shape {tuple(contexts.shape)}")
        with local_seed(seed):
            self._build()
            self._try_log_density(contexts)
            self._train_generator(contexts)
            self._refit_critic(contexts)
        return self

    def log_prob_estimate(self, X: ArrayLike, context: ArrayLike | None = None) -> NDArray[np.float64]:
        r"""Estimates the log density of the generator at points ``(n, d)`` by the critic, $\log p_r(x) - w(x)$.

        The estimate is only as good as the critic, and meaningless far from where samples fall. Outside of
        ``support`` it is minus infinity.

        Args:
            X: Points, finite numbers.
            context: The context ``(c,)`` of all points, if the sampler has contexts.
        """
        x, one = self._checked_points(X), self._one_context(context)
        with torch.inference_mode():
            log_prob = self._reference(one).log_prob(x) - self.critic_(x, one)
            if (support := self._support()) is not None:
                log_prob = log_prob.where(is_inside(x, support), -math.inf)
        return log_prob.double().cpu().numpy()

    def log_z(self, n: int = 10_000, context: ArrayLike | None = None, random_state: int | None = 0) -> float:
        r"""Estimates $\log \int u$ by importance weights of ``n`` samples; the weights rely on the critic."""
        return float(torch.logsumexp(self._log_weights(n, context, random_state), dim=0)) - math.log(n)

    def ess(self, n: int = 10_000, context: ArrayLike | None = None, random_state: int | None = 0) -> float:
        """Effective sample size per sample, from ``n`` importance weights; the weights rely on the critic."""
        shares = self._log_weights(n, context, random_state).softmax(0)
        return float(1 / shares.square().sum()) / n

    def _log_weights(self, n: int, context: ArrayLike | None, random_state: int | None) -> Tensor:
        density, one = require_log_density(self.log_density), self._one_context(context)
        x = torch.as_tensor(self.sample(n, context, random_state), device=self.device)
        with torch.no_grad():
            return log_ratio(
                self.critic_, self._reference(one), lambda points: evaluate(density, points, one), x, one
            ).double()

    def _build(self) -> None:
        support = self._support()
        self.generator_ = self._new_generator(support, 1 if self.context_dim_ else self.components)
        finest = (self.scale if support is None else 1.0) / self.critic_resolution
        self.critic_ = Critic(self.dim, self.hidden, self.context_dim_, finest, support).to(self.device)

    def _support(self) -> Support | None:
        return checked_support(self.support, self.dim)

    def _try_log_density(self, contexts: Tensor | None) -> None:
        rows = None if contexts is None else contexts[:64]
        with torch.no_grad():
            x = self.generator_.draw(64) if rows is None else self.generator_.draw(1, rows).squeeze(1)
        require_usable(require_log_density(self.log_density), x, rows)

    def _train_generator(self, contexts: Tensor | None) -> None:
        losses = self._losses(contexts)
        generator_optimizer = adam([self.generator_, losses.inverse], self.lr)
        critic_optimizer = adam([self.critic_], self.critic_lr)
        critic_steps = self.critic_steps or (1 if isinstance(self.generator_.noise, MixtureNoise) else 3)
        critic_step = descend(critic_optimizer, losses.critic_loss)
        generator_step = descend(generator_optimizer, losses.generator_loss)

        def update_critic(progress: float) -> Losses:
            losses.begin_step(*self._entropy_strengths(progress))
            for turn in range(critic_steps):
                terms = critic_step(losses.critic_batch(fresh=turn > 0))
            return terms

        def update_generator(progress: float) -> Losses:
            terms = generator_step((losses.noise, losses.x))
            losses.reweight_noise(_REWEIGHTING * linear_decay(progress, 1.0))
            return terms

        pair = AdversarialPair(
            self.generator_, self.critic_, generator_optimizer, critic_optimizer, update_critic, update_generator
        )
        self.generator_, self.history_ = pair.train(self.steps, self.averaging_decay, "RAS")
        if isinstance(self.generator_.noise, MixtureNoise):
            self.generator_.noise.drop_unused()

    def _refit_critic(self, contexts: Tensor | None) -> None:
        """Fits the critic to the generator with averaged weights, for the estimates made after training."""
        losses = self._losses(contexts, None if contexts is not None else self._reference(None))
        optimizer = adam([self.critic_], self.critic_lr / 5)
        critic_step = descend(optimizer, losses.critic_loss)

        def step(progress: float) -> Losses:
            with torch.no_grad():
                losses.begin_step()
            return critic_step(losses.critic_batch())

        state = {"critic": self.critic_, "optimizer": optimizer}
        self.history_["final critic"] = train_steps(step, max(self.steps // 5, 1), state, "RAS")["critic"]

    def _entropy_strengths(self, progress: float) -> tuple[float, float]:
        """The power of the density and the weight of the cycle bound."""
        anneal, cycle = (self.entropy in (term, "both") for term in ("anneal", "cycle"))
        power = annealed_power(progress, self.annealing_share, self.initial_power) if anneal else 1.0
        return power, self.cycle_weight * linear_decay(progress, self.annealing_share) if cycle else 0.0

    def _losses(self, contexts: Tensor | None, reference: Any = None) -> RASLosses:
        return RASLosses(
            generator=self.generator_,
            critic=self.critic_,
            inverse=smooth_mlp([self.dim, *self.hidden, self.generator_.noise_dim]).to(self.device),
            log_density=require_log_density(self.log_density),
            support=self._support(),
            contexts=contexts,
            divergence=self.divergence,
            batch_size=self.batch_size,
            uniform_share=self.uniform_share,
            reference=reference,
        )

    def _reference(self, context: Tensor | None) -> GaussianReference | BetaReference | MixtureReference:
        """The reference with the moments of the trained generator; the same at every call."""
        rng, support = torch.Generator(self.device).manual_seed(0), self._support()
        noise = self.generator_.noise
        with torch.no_grad():
            if isinstance(noise, GaussianNoise):
                x = self.generator_.draw(_REFERENCE_SAMPLES, context, rng)
                return fit_reference(x, support, self.uniform_share)
            drawn, component = noise.draw_evenly(_REFERENCE_SAMPLES, self.generator_.device, rng)
            moments = component_moments(self.generator_(drawn), component, noise, support)
            return MixtureReference.of(moments, noise.log_weights.softmax(0), support, self.uniform_share)

    def _checked_points(self, X: ArrayLike) -> Tensor:
        check_is_fitted(self, "generator_")
        x = torch.as_tensor(np.asarray(X, dtype=np.float32), device=self.device)
        if x.ndim != 2 or x.shape[1] != self.dim:
            raise ValueError(f"X must be (n, {self.dim}); got shape {tuple(x.shape)}")
        if not x.isfinite().all():
            raise ValueError("X must hold finite numbers; drop the rows with nan or infinity")
        return x

    def _one_context(self, context: ArrayLike | None) -> Tensor | None:
        check_is_fitted(self, "generator_")
        one = self._checked_context(context)
        if one is not None and one.ndim != 1:
            raise ValueError(f"context must be one, of shape ({self.context_dim_},); got shape {tuple(one.shape)}")
        return one
