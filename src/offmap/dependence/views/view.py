"""What a view of a sentence is."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class View:
    """One way to read a sentence: an optional rewriting of the text, and what to take as its embedding.

    Passes of the same view through a network with dropout differ, so several equal views are a valid choice.

    Args:
        rewrite: Turns a sentence into the text that the model reads; None leaves it unchanged.
        token: Position of the token whose state is the embedding, counted from the end if negative, with the start and
            end tokens included; None takes the mean over all tokens.

    Example:
        >>> View('"{}" means [MASK].'.format, token=-3).text("It rains.")
        '"It rains." means [MASK].'
    """

    rewrite: Callable[[str], str] | None = None
    token: int | None = None

    def text(self, sentence: str) -> str:
        """Returns the text that the model reads."""
        return sentence if self.rewrite is None else self.rewrite(sentence)


def as_views(views: int | Sequence[View]) -> tuple[View, ...]:
    """Returns the views; a number stands for as many passes over the unchanged sentence.

    Example:
        >>> len(as_views(4))
        4
    """
    made = (View(),) * views if isinstance(views, int) else tuple(views)
    if len(made) < 2:
        raise ValueError(f"views must be at least 2; got {len(made)}")
    return made
