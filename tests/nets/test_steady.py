"""Products of rows do not depend on where a row stands, and are products."""

import pytest
import torch
from torch import nn

from offmap.nets.steady import Linear, steady_map, steady_product


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("outputs", [1, 3, 7, 10, 17, 64])
@pytest.mark.parametrize("width", [1, 5, 6, 9, 17, 30, 33, 64])
def test_a_row_gets_the_same_bytes_at_every_place(width: int, outputs: int, dtype: torch.dtype) -> None:
    torch.manual_seed(width)
    row, weight = torch.randn(width, dtype=dtype), torch.randn(outputs, width, dtype=dtype)
    found = steady_product(row.repeat(512, 1), weight)
    assert (found == found[0]).all()
    torch.testing.assert_close(found[0], weight @ row)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("width", [3, 8, 17, 64, 200])
def test_a_row_gets_the_same_bytes_at_every_place_for_any_number_of_columns(width: int, dtype: torch.dtype) -> None:
    torch.manual_seed(width)
    row = torch.randn(width, dtype=dtype)
    for columns in range(1, 36):
        matrix = torch.randn(width, columns, dtype=dtype)
        found = steady_map(row.repeat(512, 1), matrix)
        assert (found == found[0]).all(), columns
        torch.testing.assert_close(found[0], row @ matrix)


def test_a_layer_is_steady_where_it_scores_and_plain_where_it_learns() -> None:
    torch.manual_seed(0)
    layer, plain = Linear(5, 4), nn.Linear(5, 4)
    plain.load_state_dict(layer.state_dict())
    rows = torch.randn(64, 5)
    assert torch.equal(layer(rows), plain(rows))
    with torch.inference_mode():
        found = layer(rows[:1].repeat(64, 1))
    assert (found == found[0]).all()
