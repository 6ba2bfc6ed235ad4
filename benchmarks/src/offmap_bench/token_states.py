"""The token states that enter the last layer of all-mpnet-base-v2, kept on disk: only that layer has to run again."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file
from torch import Tensor

from offmap.data import load
from offmap.data.store import user_cache
from offmap.data.text_model import layers_of
from offmap.data.text_model import load as load_model
from offmap.data.text_tuning import run_below
from offmap.files import replacing
from offmap_bench import mpnet
from offmap_bench.half_precision import half_precision


@dataclass(frozen=True)
class TokenStates:
    """Token states of many texts, one after another, in 16 bits.

    Args:
        tokens: The states of all tokens of all texts.
        lengths: Number of tokens of each text.
        vectors: The embeddings of the texts by the whole frozen model.
    """

    tokens: Tensor
    lengths: Tensor
    vectors: Tensor

    def of(self, rows: NDArray[np.intp]) -> list[Tensor]:
        """Returns the states of some texts in single precision."""
        ends = self.lengths.cumsum(0)
        starts = (ends - self.lengths).tolist()
        return [self.tokens[starts[row] : int(ends[row])].float() for row in rows.tolist()]


def token_states(name: str, split: str) -> TokenStates:
    """Returns the states of one split of a data set, computed when it is first asked for."""
    place = user_cache() / "token-states" / f"{mpnet.NAME}-{name}-{split}.safetensors"
    if not place.exists():
        _write(place, list(load(name, split).X))
    return TokenStates(**load_file(place))


def _write(place: Path, texts: list[str]) -> None:
    network = load_model(str(mpnet.folder()), "cpu")
    # The embeddings have a cosine of 1.000 with those of full precision.
    with half_precision():
        states, vectors = run_below(network, texts, layers_of(network)[-1])
    found = {
        "tokens": torch.cat(states).bfloat16(),
        "lengths": torch.tensor([len(state) for state in states]),
        "vectors": vectors.float(),
    }
    place.parent.mkdir(parents=True, exist_ok=True)
    with replacing(place) as fresh:
        save_file(found, fresh)
