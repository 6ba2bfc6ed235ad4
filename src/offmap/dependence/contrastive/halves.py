"""A sentence encoder in two halves: the lower one is run once a text, the upper one learns."""

import copy
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from offmap.data import text_model
from offmap.data.text_tuning import UpperLayers
from offmap.progress import bar

# The texts were cut to what the model reads when the lower half read them.
_NO_LIMIT = 1 << 20


@lru_cache(maxsize=16)
def states_below(model: str, device: str, layers: int, texts: tuple[str, ...]) -> list[Tensor]:
    """What reaches the last ``layers`` of a model from each token of each text; without dropout, so always the same.

    Args:
        model: Name of the model.
        device: Where torch works.
        layers: How many of the last layers are left out.
        texts: The texts.
    """
    network = copy.deepcopy(text_model.load(model, device))
    del text_model.layers_of(network)[-layers:]
    counts = text_model.count_tokens(network, texts)
    found: dict[int, Tensor] = {}
    with torch.no_grad(), bar("reading", total=len(texts)) as shown:
        for width, members, size in text_model.parts(counts, text_model.token_limit(network)):
            # Copies fill the batch up: with its shape fixed, a text gets the same bytes whatever comes with it.
            read = text_model.tokens(network, [texts[row] for row in (members * size)[:size]], width)
            states = network[0].auto_model(**read).last_hidden_state
            for row, state, mask in zip(members, states, read["attention_mask"].bool(), strict=False):
                found[row] = state[mask]
            shown.advance(len(members))
    return [found[row] for row in range(len(texts))]


class Upper(nn.Module):
    """The last layers of a model, from the states of tokens below them to one vector a text.

    Args:
        model: Name of the model.
        device: Where torch works.
        layers: How many of its last layers.
        reset: Whether they start anew, from small random weights.
    """

    def __init__(self, model: str, device: str, layers: int, reset: bool) -> None:
        super().__init__()
        network = copy.deepcopy(text_model.load(model, device))
        held = text_model.layers_of(network)
        if layers > len(held):
            raise ValueError(f"layers must be at most {len(held)}, those of the model; got {layers}")
        del held[: len(held) - layers]
        if reset:
            held.apply(_reset)
        self.moving = held
        self.upper = UpperLayers(network)

    def forward(self, states: Sequence[Tensor], gap: int | None) -> Tensor:
        """One vector a text: the state of the token at ``gap``, or the mean over all tokens."""
        lengths = torch.tensor([len(state) for state in states], device=states[0].device)
        padded = pad_sequence(list(states), batch_first=True)
        return self._pooled(padded, lengths, gap)

    @torch.inference_mode()
    def vectors(self, states: Sequence[Tensor], gap: int | None) -> Tensor:
        """The vectors of many texts, each the same bytes whatever texts come with it."""
        found: dict[int, Tensor] = {}
        counts = np.array([len(state) for state in states])
        for width, members, size in text_model.parts(counts, _NO_LIMIT):
            some = [states[row] for row in (members * size)[:size]]
            padded = pad_sequence([*some, some[0].new_zeros(width, some[0].shape[1])], batch_first=True)[:-1]
            lengths = torch.tensor([len(state) for state in some], device=padded.device)
            pooled = self._pooled(padded, lengths, gap)
            found.update(zip(members, pooled, strict=False))
        return torch.stack([found[row] for row in range(len(states))])

    def _pooled(self, padded: Tensor, lengths: Tensor, gap: int | None) -> Tensor:
        mask = (torch.arange(padded.shape[1], device=padded.device) < lengths[:, None]).long()
        self.upper.given.states = padded
        states = self.upper.network[0].auto_model(input_ids=torch.zeros_like(mask), attention_mask=mask)[0]
        if gap is None:
            return (states * mask[..., None]).sum(1) / lengths[:, None]
        return states[torch.arange(len(states)), gap % lengths]


def _reset(module: nn.Module) -> None:
    """Starts a part of a layer anew, as a model of this kind starts before it is trained."""
    if isinstance(module, nn.Linear):
        nn.init.normal_(module.weight, std=0.02)
        nn.init.zeros_(module.bias)
    elif isinstance(module, nn.LayerNorm):
        nn.init.ones_(module.weight)
        nn.init.zeros_(module.bias)
