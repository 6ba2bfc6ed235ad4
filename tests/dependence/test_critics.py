"""Stacks and critics: each term is the network it would be alone."""

import pytest
import torch
from torch import nn

from offmap.dependence import CosineCritic, Critic, JointCritic, SeparableCritic
from offmap.nets import mlp
from offmap.nets.stacked import StackedLinear, stacked_mlp


def test_each_layer_of_a_stack_is_a_linear_layer_of_its_own_width() -> None:
    stack = StackedLinear([3, 5], 4)
    rows = torch.randn(2, 7, 5)
    rows[0, :, 3:] = 0
    for term, width in enumerate((3, 5)):
        alone = nn.Linear(width, 4)
        alone.weight.data, alone.bias.data = stack.weight.data[term, :width].T, stack.state_dict()["bias"][term, 0]
        torch.testing.assert_close(stack(rows)[term], alone(rows[term, :, :width]))


def test_padding_gets_no_gradient() -> None:
    stack = StackedLinear([3, 5], 4)
    rows = torch.randn(2, 7, 5)
    rows[0, :, 3:] = 0
    stack(rows).square().sum().backward()
    assert stack.weight.grad is not None
    assert (stack.weight.grad[0, 3:] == 0).all()
    assert (stack.weight.grad[0, :3] != 0).all()


def test_first_weights_are_scaled_by_the_width_of_each_term() -> None:
    stack = StackedLinear([4, 400], 500)
    assert stack.weight[0, :4].abs().max().item() == pytest.approx(0.5, rel=0.05)
    assert stack.weight[1].abs().max().item() == pytest.approx(0.05, rel=0.05)


def test_a_joint_critic_is_a_perceptron_on_each_pair() -> None:
    critic = JointCritic([3], [2], hidden=(8, 6))
    x, y = torch.randn(1, 5, 3), torch.randn(1, 4, 2)
    first = torch.cat([critic.left.weight[0], critic.right.weight[0]])
    bias = critic.left.state_dict()["bias"][0, 0]
    scores = critic.cross(*critic.embed(x, y))
    for i in range(5):
        for j in range(4):
            hidden = (torch.cat([x[0, i], y[0, j]]) @ first + bias).relu()
            torch.testing.assert_close(scores[0, i, j], critic.rest(hidden[None, None])[0, 0, 0])


def test_a_joint_critic_has_the_parameters_of_a_perceptron() -> None:
    critic = JointCritic([3], [2], hidden=(8, 6))
    expected = sum(parameter.numel() for parameter in mlp([5, 8, 6, 1]).parameters())
    assert sum(parameter.numel() for parameter in critic.parameters()) == expected


@pytest.mark.parametrize("make", [JointCritic, SeparableCritic, CosineCritic])
def test_crossed_scores_are_those_of_the_pairs(make: type[Critic]) -> None:
    critic = make([4, 2], [4, 2], (16,))
    a, b = critic.embed(torch.randn(2, 6, 4), torch.randn(2, 6, 4))
    crossed = critic.cross(a, b)
    for shift in range(6):
        paired = critic.score(a, b.roll(-shift, dims=1))
        torch.testing.assert_close(crossed[:, torch.arange(6), (torch.arange(6) + shift) % 6], paired)


def test_a_cosine_needs_equal_widths() -> None:
    with pytest.raises(ValueError, match="same width"):
        CosineCritic([3, 2], [3, 3])


def test_a_cosine_ignores_length() -> None:
    critic = CosineCritic([3], [3], temperature=0.5)
    x, y = torch.randn(2, 1, 5, 3)
    torch.testing.assert_close(critic.score(*critic.embed(x, y)), critic.score(*critic.embed(7 * x, 0.1 * y)))
    assert critic.score(*critic.embed(x, x))[0, 0].item() == pytest.approx(2)


def test_a_stacked_mlp_has_a_relu_between_layers_and_none_after() -> None:
    network = stacked_mlp([3], [4, 5, 2])
    assert [type(layer) for layer in network] == [StackedLinear, nn.ReLU, StackedLinear, nn.ReLU, StackedLinear]
