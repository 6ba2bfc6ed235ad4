"""Terms that the generator of reference-based adversarial sampling is trained with."""

from collections.abc import Callable

from torch import Tensor, nn

from offmap.sampling.references import Reference


def log_ratio(
    critic: nn.Module, reference: Reference, log_u: Callable[[Tensor], Tensor], x: Tensor, context: Tensor | None = None
) -> Tensor:
    r"""Estimates $\log u(x) / q(x) = w(x) + \log u(x) / p_r(x)$, differentiable in the samples ``x``.

    Reference: Open-World Learning (thesis), equations 5.7 and 5.9.

    Args:
        critic: Called with the samples and the context; its output $w$ estimates $\log p_r / q$.
        reference: The reference density $p_r$ that the critic was fitted with.
        log_u: Maps samples ``(..., n, d)`` to the log density up to a constant, ``(..., n)``.
        x: The samples.
        context: Their contexts, ``(..., c)``.
    """
    return critic(x, context) + log_u(x) - reference.log_prob(x)


def cycle_error(noise: Tensor, recovered: Tensor) -> Tensor:
    r"""$\mathbb{E} \|\varepsilon - \mu_\psi(h(\varepsilon))\|^2$: the smaller, the higher the bound on the entropy.

    Reference: Open-World Learning (thesis), lemma 5.4.1.
    """
    return (noise - recovered).square().sum(-1).mean()
