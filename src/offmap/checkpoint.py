"""The state of a training run on disk, to go on from after a kill."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor

from offmap import tensorfile

# Parameters that a run may be gone on with under another value.
_MAY_CHANGE = ("checkpoint", "device", "epochs", "patience")


@dataclass(frozen=True)
class Checkpoint:
    """Where a run leaves its state after each epoch, and from where the same run goes on after a kill.

    Args:
        path: The file. It is removed when training ends.
        run: What the state belongs to (parameters, data); a file of another run is refused.
    """

    path: Path
    run: str

    @classmethod
    def of(cls, estimator: Any, *data: Tensor) -> Self | None:
        """The checkpoint that an estimator's parameter ``checkpoint`` asks for, tied to its parameters and data."""
        if estimator.checkpoint is None:
            return None
        if not isinstance(estimator.random_state, Integral):
            raise ValueError("checkpoint needs an integer random_state: without it no run can be gone on with")
        path = Path(estimator.checkpoint)
        if not path.parent.is_dir():
            raise FileNotFoundError(f"checkpoint {path}: the folder {path.parent} does not exist")
        fixed = {name: value for name, value in estimator.get_params(deep=False).items() if name not in _MAY_CHANGE}
        digests = [(tuple(rows.shape), hashlib.sha256(rows.cpu().flatten().numpy().data).hexdigest()) for rows in data]
        return cls(path, repr((type(estimator).__name__, sorted(fixed.items()), digests)))

    def leave(self, record: Mapping[str, Any], state: Mapping[str, Any]) -> None:
        """Writes what is known of the run, the state of its networks and optimisers, and torch's random state."""
        parts = {name: dict(part.state_dict()) for name, part in state.items()}
        left = {"run": self.run, "record": dict(record), "parts": parts, "random": torch.get_rng_state()}
        tensorfile.write(self.path, left)

    def resume(self, state: Mapping[str, Any]) -> Any:
        """Puts back what ``leave`` wrote and returns its record; None if it wrote nothing."""
        if not self.path.exists():
            return None
        left = tensorfile.read(self.path)
        if not isinstance(left, dict) or "run" not in left:
            raise ValueError(f"checkpoint {self.path} is a file, but not a checkpoint of training; choose another name")
        if left["run"] != self.run:
            raise ValueError(f"checkpoint {self.path} belongs to other data or parameters; remove it to start anew")
        for name, part in state.items():
            part.load_state_dict(left["parts"][name])
        torch.set_rng_state(left["random"])
        return left["record"]

    def remove(self) -> None:
        """Forgets the run, which has ended."""
        self.path.unlink(missing_ok=True)
