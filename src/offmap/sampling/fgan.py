"""Learning to draw from samples: the f-GAN family, with the entropy term that keeps it from collapsing."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_array
from torch import Tensor, nn
from torch.nn.utils.parametrizations import spectral_norm

from offmap.parameters import Count, NonNegative, Positive
from offmap.random_state import local_seed
from offmap.sampling.links import LINKS, Link
from offmap.sampling.networks import Critic, smooth_mlp
from offmap.sampling.objectives import critic_loss, cycle_error
from offmap.sampling.onepass import OnePassSampler, Terms
from offmap.train import Batch, descend


@dataclass(kw_only=True, eq=False, repr=False)
class FGAN(OnePassSampler):
    r"""Draws more samples like those it was given, by one of the f-divergences.

    The critic tells given samples from generated ones by logistic regression, $w \to \log p / q$, and the generator
    climbs $\mathbb{E}\, g(w(x)) - \lambda\, \mathbb{E} \|\varepsilon - \mu_\psi(x)\|^2$. The second term bounds the
    entropy of the samples from below: a generator that has collapsed onto a few points cannot have its noise read off.

    Args:
        divergence: "gan" climbs $\log(1 + e^w)$ as its minimax game has it, "non-saturating" $\log \sigma(w)$ as GANs
            are trained in practice; "reverse-kl", "kl", "hellinger" and "pearson" as in table 5.2.1.
        entropy: Weight λ of the entropy term, 0 for none.
        spectral: Whether the critic's layers are held to a spectral norm of 1.
        detail: How much finer than ``scale`` the critic looks.
        critic_steps: Steps of the critic for each of the generator's.
        critic_lr: Step size of the critic at the start.

    Reference: Open-World Learning (thesis), sections 5.2 and 5.4; Nowozin et al., f-GAN, arXiv:1606.00709.

    Example:
        >>> X = np.random.default_rng(0).normal(3.0, 1.0, size=(1000, 1))
        >>> gan = FGAN(dim=1, hidden=(32,), steps=200, batch_size=64, lr=1e-2, critic_lr=1e-2, random_state=0).fit(X)
        >>> round(float(gan.sample(1000, random_state=0).mean()))
        3
    """

    divergence: Link = "non-saturating"
    entropy: NonNegative = 0.0
    spectral: bool = False
    detail: Positive = 1.0
    critic_steps: Count = 1
    critic_lr: Positive = 1e-3

    def fit(self, X: ArrayLike) -> Self:
        """Learns from samples ``(n, d)``."""
        seed = self._start()
        rows = check_array(X, dtype=np.float32, ensure_min_samples=2, input_name="X", estimator=self)
        if rows.shape[1] != self.dim:
            raise ValueError(f"X must be (n, {self.dim}), as dim says; got shape {rows.shape}")
        with local_seed(seed):
            self._build()
            self._learn(torch.as_tensor(rows, device=self.device))
        return self

    def _build(self) -> None:
        self.generator_ = self._new_generator()
        self.critic_ = Critic(self.dim, self.hidden, scale=self.scale / self.detail).to(self.device)
        if self.spectral:
            for layer in self.critic_.layers:
                if isinstance(layer, nn.Linear):
                    spectral_norm(layer)

    def _learn(self, X: Tensor) -> None:
        inverse = smooth_mlp([self.dim, *self.hidden, self.generator_.noise]).to(self.device)
        mover = self._adam([self.generator_, inverse], self.lr)
        judge = self._adam([self.critic_], self.critic_lr)
        judging, moving = descend(judge, self._classify), descend(mover, self._objective(inverse))

        def judged(_: float) -> Terms:
            for _turn in range(self.critic_steps):
                with torch.no_grad():
                    generated = self.generator_.draw(self.batch_size)
                terms = judging((X[torch.randint(len(X), (self.batch_size,))], generated))
            return terms

        def moved() -> Terms:
            return moving((torch.randn(self.batch_size, self.generator_.noise, device=self.device),))

        self._duel(self.critic_, judge, mover, (judged, moved), _DECAY)

    def _classify(self, batch: Batch) -> Terms:
        w = self.critic_(torch.cat(batch))
        return {"critic": critic_loss(*w.tensor_split(2))}

    def _objective(self, inverse: nn.Module) -> Callable[[Batch], Terms]:
        link = LINKS[self.divergence]

        def terms(batch: Batch) -> Terms:
            (noise,) = batch
            x = self.generator_(noise)
            found = {"generator": -link(self.critic_(x)).mean()}
            if self.entropy > 0:
                found["entropy"] = self.entropy * cycle_error(noise, inverse(x / self.scale))
            return found

        return terms


# Share of the past in the running mean of the generator's weights.
_DECAY = 0.999
