"""Reference-based adversarial sampling: a generator learns to draw from a density known up to a constant."""

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
from offmap.sampling.game import Game
from offmap.sampling.links import Link
from offmap.sampling.networks import Critic, smooth_mlp
from offmap.sampling.objectives import log_ratio
from offmap.sampling.onepass import OnePassSampler, Terms
from offmap.sampling.references import BetaReference, GaussianReference, Support, reference_of
from offmap.sampling.schedule import fading, tempering
from offmap.sampling.targets import LogDensity, evaluate, require_usable
from offmap.train import descend

# Samples of the generator that the moments of a reference are taken from when training is over.
_MEASURED = 8192


@dataclass(kw_only=True, eq=False, repr=False)
class RAS(OnePassSampler):
    r"""Draws from a density known up to a constant, $p \propto u$, in one forward pass of a generator.

    A critic $w_\phi$ tells samples of the generator, $x = h_\theta(\varepsilon) \sim q_\theta$, from those of a
    reference $p_r$ with the same moments, by logistic regression, so that $w \to \log p_r / q$. The generator climbs

    $$\mathbb{E}\, g_0\!\left(w(x) + \log \frac{u(x)}{p_r(x)}\right),$$

    which for $g_0(w) = w$ is minus the divergence $\mathrm{KL}(q \| p)$ up to a constant. Left to itself it may settle
    on some of the modes. Two terms keep it broad while it learns and fade out before the end: *annealing* aims at
    $u^{1 - \beta}$ with β falling from near 1 to 0, and the *cycle* bound of the entropy,
    $-\mathbb{E} \|\varepsilon - \mu_\psi(x)\|^2$, wants the noise to be read off the samples.

    Args:
        log_density: Maps points ``(n, d)``, a torch tensor, to $\log u$, ``(n,)``; with contexts, it is called with
            points and contexts ``(n, c)``.
        support: Lower and upper edge of the box outside of which the density is zero, numbers or one a dimension; the
            reference is then a Beta, else a Gaussian.
        even: Share of the Beta that is spread evenly over the box. At 0, the paper's choice, samples may gather in
            a corner where the density is as good as zero and the Beta even more so.
        g0: What the generator climbs, by the name of its divergence. "kl" and "pearson" weigh samples by the ratio
            itself, so that the few on which the critic is most wrong may lead; "reverse-kl" is the paper's choice.
        entropy: "anneal", "cycle", "both", or None for neither.
        annealing: Share of the steps after which the entropy terms are gone.
        hottest: The first $1 - \beta$; it rises to 1 by equal factors.
        cycle: First weight of the cycle bound.
        detail: How much finer than the first spread of the samples the critic looks.
        critic_steps: Steps of the critic for each of the generator's.
        critic_lr: Step size of the critic at the start.
        average: Share of the past in the running mean of the generator's weights, which is what samples are drawn with.

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

    log_density: LogDensity | None = None
    support: tuple[Any, ...] | None = None
    even: Share = 0.1
    g0: Link = "reverse-kl"
    entropy: Literal["anneal", "cycle", "both"] | None = "anneal"
    annealing: Fraction = 0.6
    hottest: Fraction = 0.01
    cycle: NonNegative = 0.1
    detail: Positive = 4.0
    critic_steps: Count = 3
    critic_lr: Positive = 5e-3
    average: Fraction = 0.995

    def fit(self, context: ArrayLike | None = None) -> Self:
        """Learns to draw from the density, for the contexts ``(m, c)`` and those between them if there are any."""
        seed = self._start(context)
        if self.log_density is None:
            raise ValueError("log_density must be given before fit")
        contexts = self._context(context)
        if contexts is not None and contexts.ndim != 2:
            raise ValueError(f"context must be (m, c) in fit; got shape {tuple(contexts.shape)}")
        with local_seed(seed):
            self._build()
            self._require_usable(contexts)
            self._play(contexts)
            self._settle(contexts)
        return self

    def log_prob_estimate(self, X: ArrayLike, context: ArrayLike | None = None) -> NDArray[np.float64]:
        r"""The log density of the generator at points ``(n, d)``, as the critic sees it: $\log p_r(x) - w(x)$.

        It is approximate: as good as the critic, and of no worth far from where samples fall.

        Args:
            X: Points.
            context: The one context ``(c,)`` that they belong to, if the sampler has contexts.
        """
        x, given = self._points(X), self._one_context(context)
        with torch.inference_mode():
            reference = self._reference(given)
            found = reference.log_prob(x) - self.critic_(x, given)
        return found.double().cpu().numpy()

    def log_z(self, n: int = 10_000, context: ArrayLike | None = None, random_state: int | None = 0) -> float:
        r"""The logarithm of $\int u$ by importance weights of ``n`` samples; approximate, as the weights are."""
        return float(torch.logsumexp(self._log_weights(n, context, random_state), dim=0)) - math.log(n)

    def ess(self, n: int = 10_000, context: ArrayLike | None = None, random_state: int | None = 0) -> float:
        """What one sample is worth beside a true one, by the spread of ``n`` weights; approximate, as these are."""
        shares = self._log_weights(n, context, random_state).softmax(0)
        return float(1 / shares.square().sum()) / n

    def _log_weights(self, n: int, context: ArrayLike | None, random_state: int | None) -> Tensor:
        if self.log_density is None:
            raise ValueError("log_density must be given, by set_params, before samples can be weighed")
        given = self._one_context(context)
        x = torch.as_tensor(self.sample(n, context, random_state), device=self.device)
        with torch.no_grad():
            return log_ratio(self.critic_, self._reference(given), self._log_u(given), x, given).double()

    def _build(self) -> None:
        self.generator_ = self._new_generator()
        finest = self._reach() / self.detail
        self.critic_ = Critic(self.dim, self.hidden, self.context_width_, finest, self._box()).to(self.device)

    def _reach(self) -> float:
        """The spread of the samples before training."""
        if self.support is None:
            return self.scale
        low, high = (np.asarray(bound, dtype=float) for bound in self.support)
        return float((high - low).mean()) / 4

    def _box(self) -> Support | None:
        if self.support is None:
            return None
        if len(self.support) != 2:
            raise ValueError(f"support must be a lower and an upper edge; got {self.support!r}")
        low, high = (np.asarray(bound, dtype=float) for bound in self.support)
        if not (np.isfinite(low).all() and np.isfinite(high).all() and (low < high).all()):
            raise ValueError(f"support must be finite, with each lower edge below its upper one; got {self.support!r}")
        if any(bound.shape not in ((), (self.dim,)) for bound in (low, high)):
            raise ValueError(f"support must hold numbers, or {self.dim} of them a side; got {self.support!r}")
        return torch.as_tensor(low, dtype=torch.float32), torch.as_tensor(high, dtype=torch.float32)

    def _require_usable(self, contexts: Tensor | None) -> None:
        assert self.log_density is not None
        rows = None if contexts is None else contexts[:64]
        with torch.no_grad():
            x = self.generator_.draw(64) if rows is None else self.generator_.draw(1, rows).squeeze(1)
        require_usable(self.log_density, x, rows)

    def _play(self, contexts: Tensor | None) -> None:
        """Trains generator and critic against each other."""
        game = self._game(contexts)
        mover = self._adam([self.generator_, game.inverse], self.lr)
        judge = self._adam([self.critic_], self.critic_lr)
        judging, moving = descend(judge, game.judge), descend(mover, game.move)

        def judged(share: float) -> Terms:
            game.begin(*self._strengths(share))
            for turn in range(self.critic_steps):
                terms = judging(game.compared(fresh=turn > 0))
            return terms

        self._duel(self.critic_, judge, mover, (judged, lambda: moving((game.noise, game.x))), self.average)

    def _settle(self, contexts: Tensor | None) -> None:
        """Fits the critic to the averaged generator, whose samples it is asked about from now on."""
        game = self._game(contexts, None if contexts is not None else self._reference(None))
        judge = self._adam([self.critic_], self.critic_lr / 5)
        judging = descend(judge, game.judge)

        def play(share: float) -> Terms:
            with torch.no_grad():
                game.begin(power=1.0, cycle=0.0)
            return judging(game.compared())

        settled = self._run(play, max(self.steps // 5, 1), {"critic": self.critic_, "judge": judge})
        self.history_["settled critic"] = settled["critic"]

    def _strengths(self, share: float) -> tuple[float, float]:
        """The power of the density, and the weight of the cycle bound."""
        power = tempering(share, self.annealing, self.hottest) if self.entropy in ("anneal", "both") else 1.0
        return power, self.cycle * fading(share, self.annealing) if self.entropy in ("cycle", "both") else 0.0

    def _game(self, contexts: Tensor | None, reference: Any = None) -> Game:
        assert self.log_density is not None
        inverse = smooth_mlp([self.dim, *self.hidden, self.generator_.noise]).to(self.device)
        parts = (self.generator_, self.critic_, inverse, self.log_density, self._box(), contexts)
        return Game(*parts, g0=self.g0, batch_size=self.batch_size, even=self.even, reference=reference)

    def _reference(self, context: Tensor | None) -> GaussianReference | BetaReference:
        """The reference with the generator's moments, always the same."""
        with local_seed(0), torch.no_grad():
            return reference_of(self.generator_.draw(_MEASURED, context), self._box(), self.even)

    def _log_u(self, context: Tensor | None) -> Any:
        density = self.log_density
        assert density is not None
        return lambda x: evaluate(density, x, context)

    def _points(self, X: ArrayLike) -> Tensor:
        check_is_fitted(self, "generator_")
        x = torch.as_tensor(np.asarray(X, dtype=np.float32), device=self.device)
        if x.ndim != 2 or x.shape[1] != self.dim:
            raise ValueError(f"X must be (n, {self.dim}); got shape {tuple(x.shape)}")
        return x

    def _one_context(self, context: ArrayLike | None) -> Tensor | None:
        check_is_fitted(self, "generator_")
        given = self._context(context)
        if given is not None and given.ndim != 1:
            raise ValueError(f"context must be one, of shape ({self.context_width_},); got {tuple(given.shape)}")
        return given
