"""``--trust``: every command that loads a model asks for consent to what the file uses beyond itself."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from offmap.collaborative import ClosedFormDetector
from offmap.density import NearestNeighborDetector
from tests.command_line import Run

RNG = np.random.default_rng(0)


class Tripling(nn.Module):
    """A network that is made without arguments."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.full((3,), 3.0))

    def forward(self, X: Tensor) -> Tensor:
        return X * self.weight


NAME = f"{Tripling.__module__}.{Tripling.__name__}"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    rows, entities = RNG.normal(size=(200, 3)), np.arange(200) % 4
    NearestNeighborDetector(encoder=Tripling(), random_state=0).fit(rows).save(tmp_path / "rows.safetensors")
    ClosedFormDetector(encoder=Tripling(), random_state=0).fit(rows, entities).save(tmp_path / "entities.safetensors")
    np.savez(tmp_path / "rows.npz", X=RNG.normal(size=(40, 3)))
    np.savez(tmp_path / "known.npz", X=RNG.normal(size=(40, 3)), y=np.arange(40) % 4)
    np.savez(tmp_path / "new.npz", X=RNG.normal(size=(40, 3)), y=np.full(40, 9))
    monkeypatch.chdir(tmp_path)
    return tmp_path


COMMANDS = {
    "score": "rows.safetensors rows.npz",
    "explain": "rows.safetensors rows.npz --row 0 --reference rows.npz",
    "evaluate": "rows.safetensors --normal rows.npz --novel rows.npz",
    "monitor": "rows.safetensors rows.npz",
    "info": "rows.safetensors",
    "recalibrate": "rows.safetensors rows.npz --out fresh.safetensors",
    "add": "entities.safetensors new.npz --out fresh.safetensors",
    "update": "entities.safetensors known.npz --out fresh.safetensors",
    "remove": "entities.safetensors 3 --out fresh.safetensors",
}


@pytest.mark.filterwarnings("ignore:entities have a tenth more rows")
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_loads_foreign_code_with_consent_only(run: Run, home: Path, command: str) -> None:
    arguments = [command, *COMMANDS[command].split()]
    refused = run(*arguments)
    assert refused.code == 2
    assert f"is a {NAME}, which is not part of Offmap" in refused.err
    assert "--trust" in refused.err
    assert not (home / "fresh.safetensors").exists()
    allowed = run(*arguments, "--trust", NAME)
    assert allowed.code == 0, allowed.err
    assert (home / "fresh.safetensors").exists() == ("--out" in arguments)
