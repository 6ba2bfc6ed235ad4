"""Checks of what environments return and of the states that an agent is given, with clear messages."""

from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from offmap.sampling.rl.environment import Environment, StepResult

States = Tensor | ArrayLike
# ``states`` is not among them: it need not exist before ``reset``.
_MEMBERS = ("n_envs", "state_dim", "action_dim", "reset", "step")


def require_environment(environment: Any) -> None:
    """Raises a ``ValueError`` unless the object has the members of an ``Environment``.

    Example:
        >>> require_environment(5)
        Traceback (most recent call last):
        ValueError: environment must be a GymEnvironment or have its members; got a int without n_envs
    """
    for name in _MEMBERS:
        if not hasattr(environment, name):
            found = f"a {type(environment).__name__} without {name}"
            raise ValueError(f"environment must be a GymEnvironment or have its members; got {found}")


def checked_states(name: str, states: States, state_dim: int) -> Tensor:
    """Returns states ``(n, s)``, a tensor or an array of any type, as a tensor of floats.

    Example:
        >>> checked_states("states", np.zeros((2, 3)), state_dim=4)
        Traceback (most recent call last):
        ValueError: states must be (n, 4), one row per state; got shape (2, 3)
    """
    values = _floats(name, states)
    if values.ndim != 2 or values.shape[1] != state_dim:
        raise ValueError(f"{name} must be (n, {state_dim}), one row per state; got shape {tuple(values.shape)}")
    _require_finite(name, values)
    return values


def checked_step(result: StepResult, environment: Environment) -> StepResult:
    """Returns the result of a step as tensors of the right shapes; columns ``(n, 1)`` are flattened."""
    if not all(hasattr(result, name) for name in StepResult._fields):
        raise ValueError(f"step must return StepResult({', '.join(StepResult._fields)}); got a {type(result).__name__}")
    count = environment.n_envs
    reward = _one_per_copy("reward", result.reward, count)
    _require_finite("reward", reward)
    return StepResult(
        checked_states("state of step", result.state, environment.state_dim),
        reward,
        terminated=_one_per_copy("terminated", result.terminated, count) != 0,
        ended=_one_per_copy("ended", result.ended, count) != 0,
    )


def _one_per_copy(name: str, values: Any, count: int) -> Tensor:
    found = _floats(name, values)
    if found.ndim == 0 and count == 1:
        return found.reshape(1)
    if found.shape not in ((count,), (count, 1)):
        raise ValueError(f"{name} must be ({count},), one number per copy; got shape {tuple(found.shape)}")
    return found.reshape(count)


def _floats(name: str, values: Any) -> Tensor:
    if isinstance(values, Tensor):
        return values.to(torch.float32)
    try:
        return torch.from_numpy(np.array(values, dtype=np.float32))
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a tensor or an array of numbers; got a {type(values).__name__}") from None


def _require_finite(name: str, values: Tensor) -> None:
    bad = ~values.isfinite()
    if bad.any():
        example = float(values[bad][0])
        raise ValueError(f"{name} must be finite; got {example} for {int(bad.sum())} of {bad.numel()} values")
