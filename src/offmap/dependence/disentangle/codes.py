"""The three codes of an image, and how they are mixed."""

from typing import NamedTuple

import torch
from torch import Tensor


class Codes(NamedTuple):
    """What is said of each image: its digit, its colour and all the rest, the style; ``(n, width)`` each.

    Example:
        >>> codes = Codes(torch.zeros(5, 2), torch.zeros(5, 2), torch.zeros(5, 4))
        >>> codes.joined().shape
        torch.Size([5, 8])
    """

    digit: Tensor
    colour: Tensor
    style: Tensor

    def joined(self) -> Tensor:
        """All three side by side."""
        return torch.cat(tuple(self), dim=1)

    def detached(self) -> "Codes":
        """The same numbers, through which no gradient flows."""
        return Codes(*(code.detach() for code in self))

    def moving_style(self) -> "Codes":
        """The same numbers; gradients flow through the style alone."""
        return self.detached()._replace(style=self.style)

    def shuffled(self) -> "Codes":
        """Each code from another image: mixtures that no image had, with the digit of one in the colour of another."""
        return Codes(*(code[torch.randperm(len(code))] for code in self))

    def with_digit_of(self, rows: Tensor) -> "Codes":
        """The digit code of the images ``rows``, with the colour and the style of these."""
        return self._replace(digit=self.digit[rows])

    def with_colour_of(self, rows: Tensor) -> "Codes":
        """The colour code of the images ``rows``, with the digit and the style of these."""
        return self._replace(colour=self.colour[rows])


def split(rows: Tensor, widths: tuple[int, int, int]) -> Codes:
    """Cuts rows into the three codes."""
    return Codes(*rows.split(widths, dim=1))
