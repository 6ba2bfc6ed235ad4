r"""The logistic density-ratio loss, the idea that every family builds on.

A network $f$ that is trained to tell rows of a density $p$ from rows of a density $q$ by

$$\mathbb{E}_p \log(1 + e^{-f(x)}) + \mathbb{E}_q \log(1 + e^{f(x)})$$

ends at $f = \log p / q$. What $p$ and $q$ are makes the method: rows of one entity against those of all
(collaborative), of one class against the rest and against negatives (open set), true pairs against shuffled ones
(dependence), a reference against a generator (sampling).

Reference: Sugiyama, Suzuki and Kanamori, Density Ratio Estimation in Machine Learning, 2012, section 4.
"""

from torch import Tensor
from torch.nn.functional import softplus


def loss_on_p(logits: Tensor) -> Tensor:
    r"""The loss $\log(1 + e^{-f})$ of each logit of a row of $p$."""
    return softplus(-logits)


def loss_on_q(logits: Tensor) -> Tensor:
    r"""The loss $\log(1 + e^f)$ of each logit of a row of $q$."""
    return softplus(logits)


def ratio_loss(on_p: Tensor, on_q: Tensor) -> Tensor:
    r"""The logistic loss whose minimum is at $f = \log p / q$, in the mean over the rows of each side.

    Args:
        on_p: Logits of rows of the density above the line.
        on_q: Logits of rows of the density below it.

    Example:
        >>> import torch
        >>> round(float(ratio_loss(torch.zeros(3), torch.zeros(5)).exp()), 4)
        4.0
    """
    return loss_on_p(on_p).mean() + loss_on_q(on_q).mean()
