"""Schedules of the entropy terms, which end before training does."""


def annealed_power(progress: float, annealing_share: float, initial_power: float) -> float:
    r"""The power $1 - \beta$ of the target density: rises geometrically from ``initial_power`` to 1, then stays at 1.

    Args:
        progress: Share of the training steps that are done.
        annealing_share: Share of the training steps after which the power is 1.
        initial_power: The power at the first step.

    Example:
        >>> [round(annealed_power(progress, 0.5, 0.01), 3) for progress in (0.0, 0.25, 0.5, 1.0)]
        [0.01, 0.1, 1.0, 1.0]
    """
    return initial_power ** max(0.0, 1 - progress / annealing_share)


def linear_decay(progress: float, annealing_share: float) -> float:
    """A weight that falls linearly from 1 to 0, then stays at 0.

    Example:
        >>> [linear_decay(progress, 0.5) for progress in (0.0, 0.25, 0.5, 1.0)]
        [1.0, 0.5, 0.0, 0.0]
    """
    return max(0.0, 1 - progress / annealing_share)
