"""Total correlation between groups of codes, as a penalty."""

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn
from torch.optim import Adam, Optimizer

from offmap.dependence import TotalCorrelation
from offmap.dependence.disentangle.groups import Codes, detach
from offmap.nets import frozen
from offmap.train import Batch, descend


class TotalCorrelationPenalty:
    """Critics that learn to estimate the total correlation of codes, while the encoder learns to lower it.

    Args:
        widths: Width of each group.
        weight: Weight of the total correlation, in nats.
        estimator: Name of the estimator of each mutual information.
        hidden: Widths of the critics' hidden layers.
        steps: Steps of the critics per step of the encoder.
        lr: Learning rate of the critics.
        device: Torch device.
    """

    def __init__(
        self,
        widths: Sequence[int],
        *,
        weight: float,
        estimator: str,
        hidden: Sequence[int],
        steps: int,
        lr: float,
        device: str,
    ) -> None:
        settings: dict[str, Any] = {"hidden": tuple(hidden)}
        self.correlation = TotalCorrelation(widths, estimator=estimator, **settings).to(device)
        self.optimizer = Adam(self.correlation.parameters(), lr=lr)
        self.weight, self.steps = weight, steps
        self._descend = descend(self.optimizer, self._loss)

    @property
    def state(self) -> dict[str, nn.Module | Optimizer]:
        """What the training loop must know of."""
        return {"correlation": self.correlation, "critic_optimizer": self.optimizer}

    def learn(self, codes: Codes) -> dict[str, Tensor]:
        """Trains the critics on codes, through which no gradient flows."""
        terms: dict[str, Tensor] = {}
        for _ in range(self.steps):
            terms = self._descend(tuple(detach(codes).values()))
        return terms

    def value(self, codes: Codes) -> Tensor:
        """Returns the weighted total correlation; its gradient reaches the codes and not the critics."""
        with frozen(self.correlation):
            return self.weight * self.correlation.value([*codes.values()])

    def _loss(self, batch: Batch) -> dict[str, Tensor]:
        return {"critic": self.correlation.loss(batch)}
