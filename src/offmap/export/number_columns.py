"""The columns of numbers of a table, as tensors: what a ``TableEncoder`` makes of them."""

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from offmap.data import TableEncoder
from offmap.data.table.columns import NumberCodec

# Of the random rows on which a graph is checked: the share of cells that are gaps.
_GAPS = 0.05


class NumberColumns(nn.Module):
    """Turns numbers, with NaN for gaps, into the features that a fitted ``TableEncoder`` makes of the same cells.

    Args:
        encoder: An encoder whose columns are numbers and truth values.

    Example:
        >>> frame = pd.DataFrame({"paid": [3.0, 5.0, None, 4.0], "lent": [1.0, 2.0, 4.0, 8.0]})
        >>> encoder = TableEncoder().fit(frame)
        >>> found = NumberColumns(encoder)(torch.tensor(frame.to_numpy()))
        >>> bool(np.allclose(found, encoder.transform(frame)))
        True
    """

    def __init__(self, encoder: TableEncoder) -> None:
        super().__init__()
        self._columns = [_Column(codec) for codec in encoder._codecs.values()]  # type: ignore[arg-type] # numbers

    def forward(self, X: Tensor) -> Tensor:
        """The features of rows of doubles."""
        made = [column(X[:, place : place + 1].double()) for place, column in enumerate(self._columns)]
        features = torch.cat([features for features, _ in made], dim=1)
        unexpected = torch.cat([gaps for _, gaps in made], dim=1).sum(dim=1, keepdim=True)
        return torch.cat([features, 2 * features.shape[1] ** 0.5 * unexpected], dim=1)


class _Column:
    """One column: its features, and where a gap was never seen before."""

    def __init__(self, codec: NumberCodec) -> None:
        self.tails, self.gaps = codec.tails, codec.standard.gaps
        self.mean, self.scale = (torch.tensor([values], dtype=torch.float64)
                                 for values in (codec.standard.mean, codec.standard.scale))  # fmt: skip

    def __call__(self, values: Tensor) -> tuple[Tensor, Tensor]:
        gap = values.isnan().double()
        whole = values if not self.tails else torch.cat([values, _asinh((values - self.tails[0]) / self.tails[1])], 1)
        scaled = (whole - self.mean) / self.scale
        features = torch.where(scaled.isnan(), 0.0, scaled)
        return (torch.cat([features, gap], dim=1), 0 * gap) if self.gaps else (features, gap)


def _asinh(values: Tensor) -> Tensor:
    """The inverse hyperbolic sine by its formula: runtimes have the operator for single precision only."""
    size = values.abs()
    return values.sign() * (size + (size.square() + 1).sqrt()).log()


def other_columns(encoder: TableEncoder) -> list[str]:
    """The columns that are not of numbers, each with its kind."""
    return [
        f"{name!r}, a {codec.kind}" for name, codec in encoder._codecs.items() if not isinstance(codec, NumberCodec)
    ]


def numbers_in(encoder: TableEncoder, frame: pd.DataFrame) -> NDArray[np.float64]:
    """The cells of the columns that an encoder uses, in its order; NaN for gaps."""
    read = [codec.read(frame[name]) for name, codec in encoder._codecs.items()]
    return np.column_stack([cells.values for cells in read if cells is not None])


def random_numbers(encoder: TableEncoder, spread: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    """Rows around the means of the columns, some cells of which are gaps.

    Args:
        encoder: A fitted encoder of numbers.
        spread: Of each row, in standard deviations, as a column.
        rng: Draws them.
    """
    codecs = [codec for codec in encoder._codecs.values() if isinstance(codec, NumberCodec)]
    mean, scale = (np.array([part[0] for part in parts]) for parts in
                   ([codec.standard.mean for codec in codecs], [codec.standard.scale for codec in codecs]))  # fmt: skip
    rows = mean + spread * scale * rng.normal(size=(len(spread), len(codecs)))
    rows = np.where([codec.truth for codec in codecs], (rows > mean).astype(float), rows)
    return np.where(rng.random(rows.shape) < _GAPS, np.nan, rows)
