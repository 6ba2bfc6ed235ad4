"""A sentence encoder cut in two: frozen lower layers that read each text once, and top layers that are trained."""

import copy
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from offmap.data import text_model
from offmap.data.text_tuning import UpperLayers
from offmap.progress import bar

# Texts were truncated to the model's limit when the lower layers read them.
_NO_LIMIT = 1 << 20


class TokenReader:
    """Runs the frozen lower layers of a sentence encoder and keeps the token states of each text it has read.

    An encoder makes a reader of its own and drops it after use. Share one between encoders that read the same texts;
    the states are held as long as the reader lives, about 30 kB per sentence for the default model.

    Args:
        model: "minilm", or the name or folder of a sentence-transformers model.
        tune_layers: Number of top layers that are left out because they are trained.
        device: Torch device, such as "cpu" or "cuda".
    """

    def __init__(self, model: str = "minilm", tune_layers: int = 2, device: str = "cpu") -> None:
        self.model, self.tune_layers, self.device = model, tune_layers, device
        self._states: dict[str, Tensor] = {}

    def __len__(self) -> int:
        return len(self._states)

    def states(self, texts: Sequence[str]) -> list[Tensor]:
        """Returns the states ``(tokens, width)`` of each text; a text gets the same bytes whatever comes with it."""
        new = [text for text in dict.fromkeys(texts) if text not in self._states]
        if new:
            self._states |= zip(new, self._read(new), strict=True)
        return [self._states[text] for text in texts]

    def _read(self, texts: Sequence[str]) -> list[Tensor]:
        network = copy.deepcopy(text_model.load(self.model, self.device))
        del text_model.layers_of(network)[-self.tune_layers :]
        counts = text_model.count_tokens(network, texts)
        found: dict[int, Tensor] = {}
        with torch.no_grad(), bar("reading", total=len(texts)) as shown:
            for part in text_model.parts(counts, text_model.token_limit(network)):
                # Copies fill the batch up: its shape must not depend on which texts come together.
                read = text_model.tokens(network, part.filled(texts), part.width)
                states = network[0].auto_model(**read).last_hidden_state
                for row, state, mask in zip(part.members, states, read["attention_mask"].bool(), strict=False):
                    found[row] = state[mask]
                shown.advance(len(part.members))
        return [found[row] for row in range(len(texts))]


class TopLayers(nn.Module):
    """The last layers of a sentence encoder: from token states to one embedding per text.

    Args:
        model: Name of the model.
        device: Torch device.
        layers: Number of layers, counted from the top.
        reset: Whether the layers start from small random weights instead of the model's own.
    """

    def __init__(self, model: str, device: str, layers: int, reset: bool) -> None:
        super().__init__()
        network = copy.deepcopy(text_model.load(model, device))
        held = text_model.layers_of(network)
        if layers > len(held):
            raise ValueError(f"tune_layers must be at most {len(held)}, the layers of the model; got {layers}")
        del held[: len(held) - layers]
        if reset:
            held.apply(_reset)
        self.trainable = held
        self.upper = UpperLayers(network)

    def forward(self, states: Sequence[Tensor], token: int | None) -> Tensor:
        """Returns one embedding per text: the state of the given token, or the mean over all tokens."""
        lengths = torch.tensor([len(state) for state in states], device=states[0].device)
        padded = pad_sequence(list(states), batch_first=True)
        return self._pooled(padded, lengths, token)

    @torch.inference_mode()
    def embeddings(self, states: Sequence[Tensor], token: int | None) -> Tensor:
        """Returns the embeddings of many texts; a text gets the same bytes whatever comes with it."""
        found: dict[int, Tensor] = {}
        counts = np.array([len(state) for state in states])
        for part in text_model.parts(counts, _NO_LIMIT):
            some = part.filled(states)
            padded = pad_sequence([*some, some[0].new_zeros(part.width, some[0].shape[1])], batch_first=True)[:-1]
            lengths = torch.tensor([len(state) for state in some], device=padded.device)
            pooled = self._pooled(padded, lengths, token)
            found.update(zip(part.members, pooled, strict=False))
        return torch.stack([found[row] for row in range(len(states))])

    def _pooled(self, padded: Tensor, lengths: Tensor, token: int | None) -> Tensor:
        mask = (torch.arange(padded.shape[1], device=padded.device) < lengths[:, None]).long()
        self.upper.given.states = padded
        states = self.upper.network[0].auto_model(input_ids=torch.zeros_like(mask), attention_mask=mask)[0]
        if token is None:
            return (states * mask[..., None]).sum(1) / lengths[:, None]
        return states[torch.arange(len(states)), token % lengths]


def _reset(module: nn.Module) -> None:
    """Initialises a part of a layer as transformers are before training."""
    if isinstance(module, nn.Linear):
        nn.init.normal_(module.weight, std=0.02)
        nn.init.zeros_(module.bias)
    elif isinstance(module, nn.LayerNorm):
        nn.init.ones_(module.weight)
        nn.init.zeros_(module.bias)
