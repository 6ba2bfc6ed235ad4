"""Parts of small training runs."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn

from offmap.train import Batch, Step

ROWS = torch.linspace(-1, 1, 28).reshape(14, 2)


def flat(module: nn.Module) -> Tensor:
    return torch.cat([tensor.detach().flatten().clone() for tensor in module.state_dict().values()])


def squares(network: nn.Module) -> Callable[[Batch], dict[str, Tensor]]:
    """Two terms, so that a sum and a mean of them differ."""

    def terms(batch: Batch) -> dict[str, Tensor]:
        output = network(batch[0])
        return {"fit": (output - 3).square().mean(), "size": 0.1 * output.square().mean()}

    return terms


def stopping(step: Step, at: int) -> Step:
    """The step, interrupted at its call number ``at``."""
    calls: Iterator[int] = iter(range(1, 10_000))

    def interrupted(batch: Batch) -> dict[str, Tensor]:
        if next(calls) == at:
            raise KeyboardInterrupt
        return step(batch)

    return interrupted
