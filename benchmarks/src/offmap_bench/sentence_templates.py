"""The prompts of the thesis's table 2.8: sentences in a frame whose mask token stands for their meaning.

Reference: Jiang et al., PromptBERT: Improving BERT Sentence Embeddings with Prompts, arXiv:2201.04337.
"""

from offmap.dependence.views import View

# The frame, and where the mask is among its tokens, counted from the end if negative.
_FRAMES = (
    ('This sentence of "{}" means MASK.', -3),
    ('The sentence : "{}" means MASK.', -3),
    ("The sentence ' {} ' has the same meaning with MASK.", -3),
    ("MASK has similar meaning with sentence : '{}'.", 1),
)


def templates(mask: str = "[MASK]") -> tuple[View, ...]:
    """Returns the four views, with the mask token as a model's tokenizer writes it.

    Example:
        >>> templates("<mask>")[1].text("It rains.")
        'The sentence : "It rains." means <mask>.'
    """
    return tuple(View(frame.replace("MASK", mask).format, token=token) for frame, token in _FRAMES)
