"""The prompts of the thesis's table 2.8: sentences in a frame whose mask token stands for their meaning.

Reference: Jiang et al., PromptBERT: Improving BERT Sentence Embeddings with Prompts, arXiv:2201.04337.
"""

from offmap.dependence.views import View

TEMPLATES = (
    View('This sentence of "{}" means [MASK].'.format, token=-3),
    View('The sentence : "{}" means [MASK].'.format, token=-3),
    View("The sentence ' {} ' has the same meaning with [MASK].".format, token=-3),
    View("[MASK] has similar meaning with sentence : '{}'.".format, token=1),
)
