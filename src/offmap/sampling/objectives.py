"""What the players of reference-based adversarial sampling climb and descend, as functions of what they were given."""

from collections.abc import Callable

from torch import Tensor, nn
from torch.nn.functional import softplus

from offmap.sampling.references import Reference


def critic_loss(w_reference: Tensor, w_generated: Tensor) -> Tensor:
    r"""Logistic regression of the reference against the generator, whose best critic is $w = \log p_r / q$.

    $$-\mathbb{E}_{p_r} \log \sigma(w) - \mathbb{E}_q \log (1 - \sigma(w))$$

    Reference: Open-World Learning (thesis), equation 5.8.
    """
    return softplus(-w_reference).mean() + softplus(w_generated).mean()


def log_ratio(
    critic: nn.Module, reference: Reference, log_u: Callable[[Tensor], Tensor], x: Tensor, context: Tensor | None = None
) -> Tensor:
    r"""The estimate of $\log u(x) / q(x) = w(x) + \log u(x) / p_r(x)$, differentiable in the samples ``x``.

    Reference: Open-World Learning (thesis), equations 5.7 and 5.9.

    Args:
        critic: Called with the samples and the context.
        reference: The reference the critic was fitted with.
        log_u: Maps samples ``(..., n, d)`` to ``(..., n)``.
        x: The samples.
        context: Their contexts, ``(..., c)``.
    """
    return critic(x, context) + log_u(x) - reference.log_prob(x)


def cycle_error(noise: Tensor, recovered: Tensor) -> Tensor:
    r"""$\mathbb{E} \|\varepsilon - \mu_\psi(h(\varepsilon))\|^2$: the less, the higher the bound of the entropy.

    Reference: Open-World Learning (thesis), lemma 5.4.1.
    """
    return (noise - recovered).square().sum(-1).mean()
