"""The factorisation machine against its pairs one by one, and what it learns that its parts cannot."""

from itertools import combinations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import binary_cross_entropy_with_logits
from torch.optim import Adam

from offmap.metrics import auroc
from offmap.random_state import local_seed
from offmap.train import Batches, descend, train
from offmap_bench.deepfm import DeepFM

SIZES = {"user": 5, "age": 3, "film": 7}


def codes(rows: int, seed: int = 0, sizes: dict[str, int] = SIZES) -> torch.Tensor:
    rng = np.random.default_rng(seed)
    return torch.from_numpy(np.column_stack([rng.integers(size, size=rows) for size in sizes.values()]))


@given(dim=st.integers(1, 6), seed=st.integers(0, 99))
def test_logit_is_the_sum_over_weights_pairs_and_the_perceptron(dim: int, seed: int) -> None:
    with local_seed(seed):
        network = DeepFM(SIZES, dim=dim).double()
        torch.nn.init.normal_(network.table.weight)
        torch.nn.init.normal_(network.bias)
    rows = codes(4, seed)
    tables = torch.split(network.table.weight, list(SIZES.values()))
    for row, logit in zip(rows, network(rows), strict=True):
        found = [table[code] for table, code in zip(tables, row, strict=True)]
        pairs = sum(one[1:] @ other[1:] for one, other in combinations(found, 2))
        deep = network.deep(torch.cat([one[1:] for one in found]))[0]
        torch.testing.assert_close(logit, network.bias + sum(one[0] for one in found) + pairs + deep)


def test_a_field_has_categories_of_its_own() -> None:
    """With wrong offsets the first film would move when a user does."""
    network = DeepFM(SIZES, dim=2, hidden=())
    network(torch.tensor([[4, 2, 6]])).sum().backward()
    assert network.table.weight.grad is not None
    assert network.table.weight.grad[:, 0].nonzero().flatten().tolist() == [4, 5 + 2, 5 + 3 + 6]


def test_vectors_are_those_of_the_named_fields_in_the_order_given() -> None:
    network = DeepFM(SIZES, dim=3)
    rows = codes(6)
    by_name = dict(zip(SIZES, rows.T, strict=True))
    user, age, film = (network.vectors({name: by_name[name]}) for name in SIZES)
    two = network.vectors({"film": by_name["film"], "user": by_name["user"]})
    torch.testing.assert_close(two, torch.cat([film, user], 1))
    assert age.shape == (6, 3)
    torch.testing.assert_close(network.vectors(by_name), torch.cat([user, age, film], 1))


def test_an_unknown_field_and_no_field_are_errors() -> None:
    network = DeepFM(SIZES)
    with pytest.raises(ValueError, match=r"codes must name some of the fields user, age, film; got \['zip'\]"):
        network.vectors({"zip": torch.zeros(1, dtype=torch.long)})
    with pytest.raises(ValueError, match="codes must name some of the fields"):
        network.vectors({})


def learnt_auroc(network: DeepFM, rows: torch.Tensor, y: torch.Tensor, seen: int) -> float:
    """How well rows after the first ``seen`` are told apart by what was learnt from those."""
    optimizer = Adam(network.parameters(), lr=0.02)
    step = descend(optimizer, lambda batch: {"loss": binary_cross_entropy_with_logits(network(batch[0]), batch[1])})
    train(step, Batches((rows[:seen], y[:seen]), 256), epochs=12, state={"network": network})
    with torch.no_grad():
        logits = network(rows[seen:]).numpy()
    unseen = y[seen:].numpy()
    return auroc(logits[unseen == 0], logits[unseen == 1])


def without_perceptron(network: DeepFM) -> DeepFM:
    for parameter in network.deep.parameters():
        torch.nn.init.zeros_(parameter)
        parameter.requires_grad_(False)
    return network


def test_pairs_of_categories_are_learnt_where_no_category_tells_anything_alone() -> None:
    sizes = {"user": 30, "film": 30}
    rows = codes(6000, sizes=sizes)
    y = ((rows[:, 0] % 3) == (rows[:, 1] % 3)).float()
    with local_seed(0):
        assert learnt_auroc(DeepFM(sizes, dim=6, hidden=(16,)), rows, y, seen=4000) > 0.97
        machine = without_perceptron(DeepFM(sizes, dim=6, hidden=()))
        assert learnt_auroc(machine, rows, y, seen=4000) > 0.97
        weights_only = without_perceptron(DeepFM(sizes, dim=1, hidden=()))
        torch.nn.init.zeros_(weights_only.table.weight)
        assert learnt_auroc(weights_only, rows, y, seen=4000) < 0.6
