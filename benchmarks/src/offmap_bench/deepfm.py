"""Factorisation machine and perceptron over the same embeddings of categorical fields."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from offmap.nets import mlp


class DeepFM(nn.Module):
    r"""Logit of an interaction between the categories of some fields, such as a user's and a film's.

    With a weight $w_f$ and a vector $v_f$ for the category that a row has in field $f$,

    $$y = w_0 + \sum_f w_f + \sum_{f<g} \langle v_f, v_g \rangle + \mathrm{MLP}([v_1, \dots, v_F]).$$

    All fields live in one table, so a batch is one lookup.

    Args:
        sizes: The number of categories of each field, by the field's name.
        dim: Length of a category's vector.
        hidden: Widths of the hidden layers of the perceptron.
        dropout: Share of the perceptron's hidden units that is dropped in training.

    Example:
        >>> network = DeepFM({"user": 5, "age": 3, "film": 7}, dim=4)
        >>> network(torch.tensor([[0, 2, 6], [4, 1, 0]])).shape
        torch.Size([2])
        >>> network.vectors({"age": torch.tensor([2, 1])}).shape
        torch.Size([2, 4])

    Reference: Guo et al., DeepFM: A Factorization-Machine based Neural Network for CTR Prediction, arXiv:1703.04247.
    """

    offsets: Tensor

    def __init__(
        self, sizes: Mapping[str, int], dim: int = 20, hidden: Sequence[int] = (64, 32), dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.sizes = dict(sizes)
        counts = torch.tensor([*self.sizes.values()])
        self.register_buffer("offsets", counts.cumsum(0) - counts)
        # The first column holds the weights: one lookup gives both parts of the machine.
        self.table = nn.Embedding(int(counts.sum()), 1 + dim)
        nn.init.normal_(self.table.weight, std=0.05)
        self.bias = nn.Parameter(torch.zeros(()))
        self.deep = mlp([len(self.sizes) * dim, *hidden, 1], dropout)

    def forward(self, rows: Tensor) -> Tensor:
        """The logit of each row of codes; its columns are the fields in the order of ``sizes``."""
        found = self.table(rows + self.offsets)
        weights, vectors = found[..., 0], found[..., 1:]
        total = vectors.sum(1)
        pairs = (total.square() - vectors.square().sum(1)).sum(1) / 2
        return self.bias + weights.sum(1) + pairs + self.deep(vectors.flatten(1)).squeeze(1)

    def vectors(self, codes: Mapping[str, Tensor]) -> Tensor:
        """What is known of each row from the given fields alone: their vectors, side by side.

        Args:
            codes: The code of each row in each field that is to be part of the result.
        """
        if not codes or not set(codes) <= set(self.sizes):
            raise ValueError(f"codes must name some of the fields {', '.join(self.sizes)}; got {[*codes]}")
        places = dict(zip(self.sizes, self.offsets, strict=True))
        return torch.cat([self.table(column + places[name])[:, 1:] for name, column in codes.items()], dim=1)
