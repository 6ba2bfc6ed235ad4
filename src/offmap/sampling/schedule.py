"""How strong the entropy terms are, from the first step to the last: gone well before the end."""


def tempering(share: float, annealing: float, hottest: float) -> float:
    r"""The power $1 - \beta$ of the density that is aimed at: from ``hottest`` to 1 by equal factors, then 1.

    Args:
        share: Share of the steps that are over.
        annealing: Share of the steps after which the target is the density itself.
        hottest: The power at the start.

    Example:
        >>> [round(tempering(share, 0.5, 0.01), 3) for share in (0.0, 0.25, 0.5, 1.0)]
        [0.01, 0.1, 1.0, 1.0]
    """
    return hottest ** max(0.0, 1 - share / annealing)


def fading(share: float, annealing: float) -> float:
    """A weight that falls in a straight line from 1 to 0, and stays there.

    Example:
        >>> [fading(share, 0.5) for share in (0.0, 0.25, 0.5, 1.0)]
        [1.0, 0.5, 0.0, 0.0]
    """
    return max(0.0, 1 - share / annealing)
