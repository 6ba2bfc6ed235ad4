"""The perceptron against its formula."""

import pytest
import torch
from torch import nn

from offmap.nets import mlp
from offmap.nets.steady import Linear


def test_layers_are_linear_with_a_relu_between() -> None:
    network = mlp([3, 5, 4, 2])
    first, second, third = (layer for layer in network if isinstance(layer, nn.Linear))
    X = torch.randn(6, 3)
    hidden = torch.clamp(X @ first.weight.T + first.bias, min=0)
    hidden = torch.clamp(hidden @ second.weight.T + second.bias, min=0)
    torch.testing.assert_close(network(X), hidden @ third.weight.T + third.bias)


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_the_last_layer_is_neither_cut_nor_dropped(dropout: float) -> None:
    assert isinstance(mlp([3, 5, 2], dropout)[-1], nn.Linear)
    assert [type(layer) for layer in mlp([3, 2], dropout)] == [Linear]


def test_dropout_follows_each_hidden_layer() -> None:
    kinds = [type(layer) for layer in mlp([3, 5, 4, 2], dropout=0.25)]
    assert kinds == [Linear, nn.ReLU, nn.Dropout, Linear, nn.ReLU, nn.Dropout, Linear]
    assert all(layer.p == 0.25 for layer in mlp([3, 5, 4, 2], dropout=0.25) if isinstance(layer, nn.Dropout))
