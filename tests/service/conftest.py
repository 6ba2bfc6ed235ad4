"""Small models and worlds, and a client that speaks with them."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from fastapi.testclient import TestClient
from sklearn.feature_extraction.text import TfidfVectorizer

from offmap.collaborative import SeparateGaussianDetector
from offmap.density import MahalanobisDetector, NearestNeighborDetector
from offmap.openset import AnalyticClassifier
from offmap.service import Settings, create_app
from tests.loop.worlds import blobs, taught

WIDTH = 3
TEXTS = ["pay the bill", "pay this invoice", "book a flight", "book the train"] * 15


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one model of each kind."""
    folder = tmp_path_factory.mktemp("models")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, WIDTH))
    MahalanobisDetector(random_state=0).fit(X).save(folder / "numbers.safetensors")
    NearestNeighborDetector(random_state=0).fit(X).save(folder / "neighbors.safetensors")
    named = pd.DataFrame(X, columns=["height", "weight", "age"])
    MahalanobisDetector(random_state=0).fit(named).save(folder / "named.safetensors")
    table = named.assign(city=rng.choice(["Bern", "Basel"], 300))
    MahalanobisDetector(random_state=0).fit(table).save(folder / "table.safetensors")
    texts = AnalyticClassifier(width=40, calibration=0.5, encoder=TfidfVectorizer(), random_state=0)
    texts.fit(TEXTS, ["pay" if "pay" in text else "book" for text in TEXTS]).save(folder / "texts.safetensors")
    entities = SeparateGaussianDetector(calibration=0.2, random_state=0)
    entities.fit(X, np.repeat(["ann", "bob", "eve"], 100)).save(folder / "entities.safetensors")
    versions = folder / "versions"
    versions.mkdir()
    for version in (1, 2, 10):
        MahalanobisDetector(random_state=0).fit(version * X).save(versions / f"{version}.safetensors")
    return folder


@pytest.fixture
def world(tmp_path: Path) -> Path:
    """A world with two groups that wait."""
    with taught(tmp_path / "blobs.world") as opened:
        opened.observe(blobs([0, 1, 2, 3, 4], 12, seed=1)[0])
        assert len(opened.groups()) >= 2
    return tmp_path / "blobs.world"


@contextmanager
def serving(**settings: Any) -> Iterator[TestClient]:
    """A client of a service in this process."""
    with TestClient(create_app(Settings(**settings)), base_url="http://localhost") as client:
        yield client


@pytest.fixture
def client(files: Path) -> Iterator[TestClient]:
    """A client of a service with every model."""
    models = {path.stem: path for path in files.iterdir()}
    with serving(models=models) as made:
        yield made


def tensor(rows: Any, datatype: str = "FP64", **more: Any) -> dict[str, Any]:
    """A request of the Open Inference Protocol."""
    X = np.asarray(rows)
    return {"inputs": [{"name": "rows", "shape": list(X.shape), "datatype": datatype, "data": X.tolist()}], **more}


def binary(rows: Any, **more: Any) -> dict[str, Any]:
    """The arguments of a request whose tensor follows the JSON as bytes."""
    X = np.asarray(rows, dtype="<f4")
    about = {"name": "rows", "shape": list(X.shape), "datatype": "FP32", "parameters": {"binary_data_size": X.nbytes}}
    header = json.dumps({"inputs": [about], **more}).encode()
    return {"content": header + X.tobytes(), "headers": {"Inference-Header-Content-Length": str(len(header))}}
