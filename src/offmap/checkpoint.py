"""Saving the state of a training run, so that it can be resumed after the process was stopped."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor

from offmap import tensorfile
from offmap.errors import reason_of

# Parameters that may differ when a run is resumed.
_MAY_CHANGE = ("checkpoint", "device", "epochs", "patience")


@dataclass(frozen=True)
class Checkpoint:
    """The file that holds the state of a training run after its latest epoch.

    Args:
        path: The file. It is removed when training ends.
        run: Identifies the run by its parameters and data; the file of another run is refused.
    """

    path: Path
    run: str

    @classmethod
    def of(cls, estimator: Any, *data: Tensor) -> Self | None:
        """Returns the checkpoint of an estimator on ``data``, or None if its parameter ``checkpoint`` is None.

        Raises:
            ValueError: ``random_state`` is not an integer.
            FileNotFoundError: The folder of the file does not exist.
        """
        if estimator.checkpoint is None:
            return None
        if not isinstance(estimator.random_state, Integral):
            raise ValueError(
                "checkpoint needs an integer random_state, without which a run cannot be repeated or resumed"
            )
        path = Path(estimator.checkpoint)
        if not path.parent.is_dir():
            raise FileNotFoundError(f"checkpoint {path}: the folder {path.parent} does not exist; create it first")
        fixed = {name: value for name, value in estimator.get_params(deep=False).items() if name not in _MAY_CHANGE}
        digests = [(tuple(rows.shape), hashlib.sha256(rows.cpu().flatten().numpy().data).hexdigest()) for rows in data]
        return cls(path, repr((type(estimator).__name__, sorted(fixed.items()), digests)))

    def save(self, record: Mapping[str, Any], state: Mapping[str, Any]) -> None:
        """Writes ``record``, the state of the networks and optimisers in ``state``, and torch's random state."""
        parts = {name: dict(part.state_dict()) for name, part in state.items()}
        saved = {"run": self.run, "record": dict(record), "parts": parts, "random": torch.get_rng_state()}
        tensorfile.write(self.path, saved)

    def resume(self, state: Mapping[str, Any]) -> Any:
        """Restores what ``save`` wrote and returns its record; None if there is no file.

        Raises:
            ValueError: The file is not a checkpoint, or belongs to another run.
        """
        if not self.path.exists():
            return None
        saved = tensorfile.read(self.path)
        if not isinstance(saved, dict) or "run" not in saved:
            raise ValueError(f"{self.path} exists and is not a checkpoint of a training run; choose another name")
        if saved["run"] != self.run:
            raise ValueError(f"checkpoint {self.path} belongs to other data or parameters; remove it to start again")
        try:
            for name, part in state.items():
                part.load_state_dict(saved["parts"][name])
            torch.set_rng_state(saved["random"])
            return saved["record"]
        except Exception as error:  # whoever may write the file may write anything into it
            raise ValueError(f"checkpoint {self.path} does not fit the run: {reason_of(error)}; remove it") from None

    def remove(self) -> None:
        """Deletes the file, if there is one."""
        self.path.unlink(missing_ok=True)
