"""Matrix products that give a row the same bytes wherever it stands in a batch.

A product rounds a row by where the row starts in memory. Rows whose length is no multiple of 16 bytes start at
different alignments, so they are padded with zeros. A product with a matrix of few columns, or of an odd number of
them, also rounds a row by its place in the batch, so the columns are padded as well.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, pad

# Bytes at which the instructions that a product is made of may differ.
_ALIGNMENT = 16
# Columns that a product computes at once. For a rest of them, rows near the end of a block are computed otherwise.
_COLUMNS = 16


def steady_product(rows: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """The product of each row with each row of ``weight``, plus ``bias``.

    Example:
        >>> steady_product(torch.ones(2, 3), torch.eye(3)[:1])
        tensor([[1.],
                [1.]])
    """
    lacking = -rows.shape[-1] % (_ALIGNMENT // rows.element_size())
    if lacking:
        rows, weight = pad(rows, (0, lacking)), pad(weight, (0, lacking))
    return linear(rows.contiguous(), weight.contiguous(), bias)


def steady_map(rows: Tensor, matrix: Tensor) -> Tensor:
    """The product of each row with each column of ``matrix``, which is not copied if it has a multiple of 16 columns.

    Example:
        >>> steady_map(torch.ones(2, 3), torch.eye(3)[:, :1])
        tensor([[1.],
                [1.]])
    """
    columns = matrix.shape[-1]
    lacking = -columns % _COLUMNS
    return (rows @ pad(matrix, (0, lacking)))[..., :columns] if lacking else rows @ matrix


def linear_layer(rows: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """What a linear layer gives for each row: a steady product in scoring; training needs no such care."""
    return (steady_product if torch.is_inference_mode_enabled() else linear)(rows, weight, bias)


class Linear(nn.Linear):
    """A linear layer whose scores of a row do not depend on the place of the row in the batch."""

    def forward(self, rows: Tensor) -> Tensor:
        """Maps each row."""
        return linear_layer(rows, self.weight, self.bias)
