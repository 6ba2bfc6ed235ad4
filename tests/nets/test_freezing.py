"""What is frozen lets gradients pass, takes none, and thaws whatever happens."""

import pytest
import torch
from torch import nn

from offmap.nets import frozen


def test_frozen_modules_pass_gradients_on_and_thaw_even_after_an_error() -> None:
    layers, X = (nn.Linear(2, 2), nn.Linear(2, 1)), torch.ones(1, 2, requires_grad=True)
    with frozen(*layers):
        nn.Sequential(*layers)(X).sum().backward()
    assert X.grad is not None
    assert all(layer.weight.grad is None for layer in layers)
    with pytest.raises(RuntimeError, match="stop"), frozen(*layers):
        raise RuntimeError("stop")
    assert all(parameter.requires_grad for layer in layers for parameter in layer.parameters())
