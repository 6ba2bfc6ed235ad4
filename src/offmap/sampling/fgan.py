"""f-GANs: generators that learn from samples, with an entropy term against mode collapse."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_array
from torch import Tensor, nn
from torch.nn.utils.parametrizations import spectral_norm

from offmap.nets import Standardise
from offmap.parameters import Count, NonNegative, Positive
from offmap.random_state import local_seed
from offmap.ratio import ratio_loss
from offmap.sampling.data_units import Unstandardise, column_units
from offmap.sampling.divergences import OBJECTIVES, Divergence
from offmap.sampling.generator_sampler import GeneratorSampler
from offmap.sampling.networks import Critic, smooth_mlp
from offmap.sampling.objectives import cycle_error
from offmap.sampling.training import AdversarialPair, Losses, adam
from offmap.train import Batch, descend

# Decay of the moving average of the generator's weights.
_AVERAGING_DECAY = 0.999


@dataclass(kw_only=True, eq=False, repr=False)
class FGAN(GeneratorSampler):
    r"""Learns from samples and draws more like them, by minimising an f-divergence.

    A critic is trained by logistic regression to tell given samples from generated ones, $w \to \log p / q$, and the
    generator maximises $\mathbb{E}\, g(w(x)) - \lambda\, \mathbb{E} \|\varepsilon - \mu_\psi(x)\|^2$. The second term
    bounds the entropy of the samples from below: the noise cannot be recovered from samples that have collapsed onto
    a few points.

    Networks learn columns that are near 0 and about as large as ``scale``. A column whose mean is more than 5 times the
    larger of its standard deviation and ``scale`` away from 0, or whose standard deviation is more than 10 times
    larger or smaller than ``scale``, is therefore learnt in units in which its mean is 0 and its standard deviation
    ``scale``. Other columns are learnt as they are, and samples are always in the units of the data.

    Args:
        divergence: The divergence that the generator minimises: "gan" maximises $\log(1 + e^w)$ as in the minimax
            objective, "non_saturating" maximises $\log \sigma(w)$ as GANs are trained in practice; "reverse_kl",
            "kl", "hellinger", "total_variation" (its sign smoothed), "pearson" and "neyman" are those of table 5.2.1.
        cycle_weight: Weight λ of the entropy term. Raise it from 0 if modes are missing or the samples too narrow.
        spectral: Normalises the critic's layers to a spectral norm of 1.
        critic_resolution: ``scale`` divided by the size of the smallest structure the critic should see.
        critic_steps: Critic steps per generator step.
        critic_lr: Initial learning rate of the critic.

    Attributes:
        critic_: The trained critic network.

    Reference: Open-World Learning (thesis), sections 5.2 and 5.4; Nowozin et al., f-GAN, arXiv:1606.00709.

    Example:
        >>> X = np.random.default_rng(0).normal(3.0, 1.0, size=(1000, 1))
        >>> gan = FGAN(dim=1, hidden=(32,), steps=200, batch_size=64, lr=1e-2, critic_lr=1e-2, random_state=0).fit(X)
        >>> round(float(gan.sample(1000, random_state=0).mean()))
        3
    """

    divergence: Divergence = "non_saturating"
    cycle_weight: NonNegative = 0.0
    spectral: bool = False
    critic_resolution: Positive = 1.0
    critic_steps: Count = 1
    critic_lr: Positive = 1e-3

    def fit(self, X: ArrayLike) -> Self:
        """Learns from samples ``(n, d)``."""
        seed = self._begin_fit()
        rows = check_array(X, dtype=np.float32, ensure_min_samples=2, input_name="X", estimator=self)
        if rows.shape[1] != self.dim:
            raise ValueError(f"X must be (n, {self.dim}), as dim says; got shape {rows.shape}")
        with local_seed(seed):
            self._build()
            given = torch.as_tensor(rows, device=self.device)
            self._set_units(Standardise(self.dim).set(*column_units(given.cpu(), self.scale)))
            self._train_generator(given)
        return self

    def _build(self) -> None:
        self.generator_ = self._new_generator()
        self.critic_ = Critic(self.dim, self.hidden, scale=self.scale / self.critic_resolution).to(self.device)
        self._set_units(Standardise(self.dim))
        if self.spectral:
            for layer in self.critic_.layers:
                if isinstance(layer, nn.Linear):
                    spectral_norm(layer)

    def _set_units(self, units: Standardise) -> None:
        """Makes the layers see the columns in ``units``; points and samples stay in those of the data."""
        self.critic_.units = units.to(self.device)
        self.generator_.squash = Unstandardise(units)

    def _train_generator(self, X: Tensor) -> None:
        inverse = smooth_mlp([self.dim, *self.hidden, self.generator_.noise_dim]).to(self.device)
        generator_optimizer = adam([self.generator_, inverse], self.lr)
        critic_optimizer = adam([self.critic_], self.critic_lr)
        critic_step = descend(critic_optimizer, self._critic_loss)
        generator_step = descend(generator_optimizer, self._generator_loss(inverse))

        def update_critic(_: float) -> Losses:
            for _turn in range(self.critic_steps):
                with torch.no_grad():
                    generated = self.generator_.draw(self.batch_size)
                terms = critic_step((X[torch.randint(len(X), (self.batch_size,))], generated))
            return terms

        def update_generator(_: float) -> Losses:
            return generator_step((torch.randn(self.batch_size, self.generator_.noise_dim, device=self.device),))

        pair = AdversarialPair(
            self.generator_, self.critic_, generator_optimizer, critic_optimizer, update_critic, update_generator
        )
        self.generator_, self.history_ = pair.train(self.steps, _AVERAGING_DECAY, "FGAN")

    def _critic_loss(self, batch: Batch) -> Losses:
        w = self.critic_(torch.cat(batch))
        return {"critic": ratio_loss(*w.tensor_split(2))}

    def _generator_loss(self, inverse: nn.Module) -> Callable[[Batch], Losses]:
        objective = OBJECTIVES[self.divergence]

        def losses(batch: Batch) -> Losses:
            (noise,) = batch
            x = self.generator_(noise)
            terms = {"generator": -objective(self.critic_(x)).mean()}
            if self.cycle_weight > 0:
                terms["cycle"] = self.cycle_weight * cycle_error(noise, inverse(self.critic_.units(x) / self.scale))
            return terms

        return losses
