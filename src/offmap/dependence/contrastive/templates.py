"""Sentences in a frame with a gap, which the model fills with what they mean.

Reference: Jiang et al., PromptBERT: Improving BERT Sentence Embeddings with Prompts, arXiv:2201.04337.
"""

from typing import NamedTuple


class Template(NamedTuple):
    """A frame for a sentence.

    Args:
        before: What comes before the sentence.
        after: What comes after it.
        gap: Where among the tokens the gap is, the first and the last one, which mark the ends, counted.
    """

    before: str
    after: str
    gap: int

    def around(self, text: str) -> str:
        """The sentence in its frame.

        Example:
            >>> TEMPLATES[0].around("It rains.")
            'This sentence of "It rains." means [MASK].'
        """
        return f"{self.before}{text}{self.after}"


TEMPLATES = (
    Template('This sentence of "', '" means [MASK].', -3),
    Template('The sentence : "', '" means [MASK].', -3),
    Template("The sentence ' ", " ' has the same meaning with [MASK].", -3),
    Template("[MASK] has similar meaning with sentence : '", "'.", 1),
)
