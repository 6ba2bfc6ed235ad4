"""Total correlation as a penalty: the three codes are to share nothing."""

import warnings
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn
from torch.optim import Adam, Optimizer

from offmap.dependence import SaturationWarning, TotalCorrelation
from offmap.dependence.disentangle.base import Disentangler
from offmap.dependence.disentangle.codes import Codes
from offmap.dependence.disentangle.colour import ColourDigits
from offmap.parameters import Count, NonNegative, Positive
from offmap.train import Batch, Step, descend


@dataclass(kw_only=True, eq=False, repr=False)
class TCDisentangler(Disentangler):
    r"""Adds $\gamma\,TC(z_d, z_c, z_s) = \gamma\,(I(z_d, z_c; z_s) + I(z_d; z_c))$ to the loss, as critics see it.

    The critics learn to estimate it while the encoder learns to lower it. They see the codes with their noise, without
    which they would share without bound whatever any two of them repeat. The gradient moves the style code alone, which
    lowers the first term: pressed too, the digit code gives way instead of the style. The second term is watched, not
    lowered.

    Args:
        gamma: Weight of the total correlation, in nats.
        estimator: Of each mutual information, such as "infonce" or "js".
        hidden: Widths of the hidden layers of the critics.
        critic_steps: Steps of the critics a step of the model.
        critic_lr: Learning rate of the critics.

    Reference: Bai et al., Estimating Total Correlation with Mutual Information Estimators, arXiv:2011.04794.

    Example:
        >>> from offmap.dependence.disentangle import bundled_digits
        >>> digits = bundled_digits(count=64)
        >>> model = TCDisentangler(epochs=1, channels=4, random_state=0).fit(digits)
        >>> sorted(model.history_)
        ['colour', 'critic', 'digit', 'reconstruction', 'total_correlation']
    """

    gamma: NonNegative = 1.0
    estimator: str = "infonce"
    hidden: tuple[Count, ...] = (90, 90)
    critic_steps: Count = 1
    critic_lr: Positive = 1e-3

    def _build(self) -> None:
        super()._build()
        settings: dict[str, Any] = {"hidden": tuple(self.hidden)}
        self.correlation_ = TotalCorrelation(self._widths, estimator=self.estimator, **settings).to(self.device)

    def _train(self, data: ColourDigits) -> None:
        with warnings.catch_warnings():
            # Near its ceiling a penalty pulls all the same.
            warnings.simplefilter("ignore", SaturationWarning)
            super()._train(data)

    def _players(self) -> list[Step]:
        self._critic_optimizer = Adam(self.correlation_.parameters(), lr=self.critic_lr)
        step = descend(self._critic_optimizer, self._critic_loss)
        return [step] * self.critic_steps

    def _companions(self) -> dict[str, nn.Module | Optimizer]:
        return {"correlation": self.correlation_, "critic_optimizer": self._critic_optimizer}

    def _critic_loss(self, batch: Batch) -> dict[str, Tensor]:
        return {"critic": self.correlation_.loss(list(batch[1:]))}

    def _penalties(self, encoded: Tensor, codes: Codes) -> dict[str, Tensor]:
        # Under the same pressure a taught code is emptied sooner than the style, which then speaks for it.
        return {"total_correlation": self.gamma * self.correlation_.value(codes.moving_style())}
