"""Token states of many texts in one tensor, and the texts that a layer is tuned on."""

import numpy as np
import torch

from offmap_bench.token_states import TokenStates
from offmap_bench.tuned_mpnet import some_of_each


def test_the_states_of_some_texts_are_their_tokens_in_order() -> None:
    lengths = [3, 1, 4, 2]
    each = [torch.full((length, 5), float(place)) for place, length in enumerate(lengths)]
    states = TokenStates(torch.cat(each).bfloat16(), torch.tensor(lengths), torch.zeros(4, 5))
    for row, found in zip((2, 0, 3), states.of(np.array([2, 0, 3])), strict=True):
        assert found.dtype == torch.float32
        assert torch.equal(found, each[row])


def test_no_class_gives_more_texts_than_asked() -> None:
    codes = np.random.default_rng(0).permutation(np.repeat([0, 1, 2], [50, 3, 20]))
    chosen = some_of_each(codes, 10, np.random.default_rng(1))
    assert np.bincount(codes[chosen]).tolist() == [10, 3, 10]
    assert len(set(chosen)) == len(chosen)
    assert not np.array_equal(chosen, some_of_each(codes, 10, np.random.default_rng(2)))
