"""Matrix products that give a row the same bytes wherever it stands in a batch.

A product rounds a row by where the row starts in memory: rows whose length is no multiple of 16 bytes start at four
different alignments. Stored column by column, all rows are treated alike.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

# Bytes at which the instructions that a product is made of may differ.
_ALIGNMENT = 16


def by_columns(rows: Tensor) -> Tensor:
    """Stores rows column by column, unless all of them start at the same alignment as they are.

    Example:
        >>> by_columns(torch.zeros(2, 3)).stride(), by_columns(torch.zeros(2, 4)).stride()
        ((1, 2), (4, 1))
    """
    aligned = rows.dim() != 2 or rows.shape[1] * rows.element_size() % _ALIGNMENT == 0
    return rows if aligned else rows.t().contiguous().t()


def steady_product(rows: Tensor, weight: Tensor) -> Tensor:
    """The product of each row with each row of ``weight``.

    Example:
        >>> steady_product(torch.ones(2, 3), torch.eye(3)[:1])
        tensor([[1.],
                [1.]])
    """
    return linear(by_columns(rows), weight.contiguous())


class Linear(nn.Linear):
    """A linear layer whose scores of a row do not depend on the place of the row in the batch.

    Training needs no such care and is left as it is.
    """

    def forward(self, rows: Tensor) -> Tensor:
        """Maps each row."""
        return super().forward(by_columns(rows) if torch.is_inference_mode_enabled() else rows)
