"""Scores of the logits alone: how sure the classifier is of its best class, or of all classes together."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from offmap.parameters import Count, Fraction
from offmap.scores.score import Outputs, Score, logits_of


@dataclass(kw_only=True, eq=False, repr=False)
class LogitScore(Score):
    """Base of the scores that read logits and learn nothing from known rows."""

    reads: ClassVar[frozenset[str]] = frozenset({"logits"})
    needs_rows: ClassVar[bool] = False

    def _fit(self, known: Outputs, codes: Tensor | None) -> None:
        pass


@dataclass(kw_only=True, eq=False, repr=False)
class MaxSoftmax(LogitScore):
    r"""Scores each row by how improbable its likeliest class is: $1 - \max_c p_c$.

    Reference: Hendrycks and Gimpel, A Baseline for Detecting Misclassified and Out-of-Distribution Examples, 2017.

    Example:
        >>> import torch
        >>> MaxSoftmax().novelty(Outputs(logits=torch.tensor([[0.0, 0.0]])))
        tensor([0.5000], dtype=torch.float64)
    """

    def _novelty(self, outputs: Outputs) -> Tensor:
        # The probability of the other classes, since 1 minus a probability near 1 has no digits left.
        proba = logits_of(outputs).softmax(dim=1).sort(dim=1).values
        return proba[:, :-1].sum(dim=1)


@dataclass(kw_only=True, eq=False, repr=False)
class MaxLogit(LogitScore):
    r"""Scores each row by how low its largest logit is: $-\max_c l_c$.

    Reference: Hendrycks et al., Scaling Out-of-Distribution Detection for Real-World Settings, 2022.

    Example:
        >>> import torch
        >>> MaxLogit().novelty(Outputs(logits=torch.tensor([[1.0, 3.0]])))
        tensor([-3.], dtype=torch.float64)
    """

    def _novelty(self, outputs: Outputs) -> Tensor:
        return -logits_of(outputs).amax(dim=1)


@dataclass(kw_only=True, eq=False, repr=False)
class Energy(LogitScore):
    r"""Scores each row by how low all its logits are together: $-\log \sum_c e^{l_c}$.

    Reference: Liu et al., Energy-based Out-of-Distribution Detection, 2020, equation 4.

    Example:
        >>> import torch
        >>> Energy().novelty(Outputs(logits=torch.tensor([[0.0, 0.0]]))).exp()
        tensor([0.5000], dtype=torch.float64)
    """

    def _novelty(self, outputs: Outputs) -> Tensor:
        return -logits_of(outputs).logsumexp(dim=1)


@dataclass(kw_only=True, eq=False, repr=False)
class GEN(LogitScore):
    r"""Scores each row by a generalised entropy of its $M$ likeliest classes: $\sum p^\gamma (1 - p)^\gamma$.

    Args:
        gamma: The exponent $\gamma$: the smaller, the more the small probabilities count.
        top: How many classes $M$ count.

    Reference: Liu, Lochman and Zach, GEN: Pushing the Limits of Softmax-Based Out-of-Distribution Detection, 2023.

    Example:
        >>> import torch
        >>> GEN(gamma=0.5).novelty(Outputs(logits=torch.tensor([[0.0, 0.0]])))
        tensor([1.], dtype=torch.float64)
    """

    gamma: Fraction = 0.1
    top: Count = 100

    def _novelty(self, outputs: Outputs) -> Tensor:
        proba = logits_of(outputs).softmax(dim=1)
        likeliest = proba.topk(min(self.top, proba.shape[1]), dim=1).values
        return (likeliest * (1 - likeliest)).clamp(min=0).pow(self.gamma).sum(dim=1)
