"""Encoders of scikit-learn and torch in model files: the same bytes again, no code, and consent where it is due."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, QuantileTransformer, StandardScaler
from torch import Tensor, nn

import offmap
from offmap import foreign_parts
from offmap.density import NearestNeighborDetector

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame({"a": RNG.normal(size=200), "c": RNG.choice(["x", "y"], 200)})
TEXTS = [f"{word} {RNG.integers(9)}" for word in ("pay a bill", "book a flight") for _ in range(60)]
ENCODERS: dict[str, tuple[Any, Any]] = {
    "columns": (
        make_column_transformer(
            (make_pipeline(SimpleImputer(), StandardScaler()), ["a"]), (OneHotEncoder(handle_unknown="ignore"), ["c"])
        ),
        FRAME,
    ),
    "components": (make_pipeline(QuantileTransformer(n_quantiles=20), PCA(2)), RNG.normal(size=(200, 4))),
    "words": (TfidfVectorizer(), TEXTS),
}


@pytest.mark.parametrize("name", ENCODERS)
def test_transformers_of_scikit_learn_are_saved(tmp_path: Path, name: str) -> None:
    encoder, rows = ENCODERS[name]
    model = NearestNeighborDetector(encoder=encoder, alpha=0.2, random_state=0).fit(rows)
    model.save(tmp_path / "model.safetensors")
    loaded = offmap.load(tmp_path / "model.safetensors")
    assert loaded.novelty(rows).tobytes() == model.novelty(rows).tobytes()
    assert repr(loaded) == repr(model)


def test_other_transformers_are_refused_by_name(tmp_path: Path) -> None:
    model = NearestNeighborDetector(encoder=FunctionTransformer(), random_state=0, alpha=0.2).fit(
        RNG.normal(size=(99, 2))
    )
    with pytest.raises(TypeError, match="FunctionTransformer cannot be saved"):
        model.save(tmp_path / "model.safetensors")
    assert not list(tmp_path.iterdir())


class Doubling(nn.Module):
    """A network that is made without arguments."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.full((3,), 2.0))

    def forward(self, X: Tensor) -> Tensor:
        return X * self.weight


def test_a_network_is_loaded_with_consent_only(tmp_path: Path) -> None:
    network = Doubling()
    with torch.no_grad():
        network.weight[0] = 5.0
    rows = RNG.normal(size=(99, 3))
    model = NearestNeighborDetector(encoder=network, alpha=0.2, random_state=0).fit(rows)
    model.save(tmp_path / "model.safetensors")
    path = f"{Doubling.__module__}.Doubling"
    with pytest.raises(ValueError, match=f"is a {path}, which is not part of Offmap; if you trust this class"):
        offmap.load(tmp_path / "model.safetensors")
    loaded = offmap.load(tmp_path / "model.safetensors", trusted=[path])
    assert loaded.novelty(rows).tobytes() == model.novelty(rows).tobytes()
    assert loaded.encoder_.module.weight[0] == 5.0


def test_nothing_else_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr("importlib.import_module", asked.append)
    assert foreign_parts.foreign_class("os.system", []) is None
    assert foreign_parts.foreign_class("sklearn.utils.Bunch", ["my.Network"]) is None
    assert asked == []


@pytest.mark.parametrize(("name", "value"), [("input", "filename"), ("input", "file")])
def test_a_transformer_that_would_read_files_is_refused(name: str, value: str) -> None:
    content: Any = foreign_parts.packed(TfidfVectorizer(**{name: value}), {})
    with pytest.raises(ValueError, match="with which it would use files"):
        foreign_parts.unpacked(content, lambda path: foreign_parts.foreign_class(path, []))


def test_a_class_that_is_not_declared_is_no_transformer() -> None:
    content = {"$foreign": "sklearn", "class": "os.system", "state": {}}
    with pytest.raises(ValueError, match=r"os\.system, which is not among the classes"):
        foreign_parts.unpacked(content, lambda path: pytest.fail("looked up"))
