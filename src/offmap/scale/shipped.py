"""A model on its way to another process, as the bytes of its file."""

import tempfile
from pathlib import Path
from typing import NamedTuple

import torch

from offmap.workflow import Estimator, load_model


class ShippedModel(NamedTuple):
    """The content of a model file.

    Args:
        content: Its bytes.
        trusted: What it may use beyond itself, as in ``offmap.load``.
    """

    content: bytes
    trusted: tuple[str, ...] = ()

    @classmethod
    def of(cls, model: Estimator, trusted: tuple[str, ...] = ()) -> "ShippedModel":
        """Packs a fitted model."""
        with tempfile.TemporaryDirectory(prefix="offmap-") as folder:
            path = Path(folder) / "model.safetensors"
            model.save(path)
            return cls(path.read_bytes(), trusted)

    def load(self) -> Estimator:
        """Unpacks the model in a process of its own, which leaves the other cores to other processes."""
        torch.set_num_threads(1)
        with tempfile.TemporaryDirectory(prefix="offmap-") as folder:
            path = Path(folder) / "model.safetensors"
            path.write_bytes(self.content)
            return load_model(path, self.trusted)
