"""MLflow folders: loaded by MLflow itself, they answer as the library does, and hold no pickle."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal
from sklearn.datasets import load_digits, load_iris
from sklearn.ensemble import IsolationForest

from offmap import __version__
from offmap.calibration import Calibrated
from offmap.collaborative import EntityGaussianDetector
from offmap.data import TextEncoder
from offmap.density import MahalanobisDetector, TextureDetector
from offmap.export import export_mlflow
from offmap.openset import LOFClassifier, MSPClassifier

pytestmark = [
    pytest.mark.filterwarnings("ignore::offmap.calibration.CalibrationWarning"),
    # MLflow and what it imports warn of their own future.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]
X, y = load_iris(return_X_y=True)
SHORT: dict[str, Any] = {"calibration": 0.3, "random_state": 0}


@pytest.fixture(scope="module")
def mlflow() -> Any:
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
        return pytest.importorskip("mlflow", reason="needs the extra export")


def served(mlflow: Any, model: Any, folder: Path) -> Any:
    export_mlflow(model, folder)
    return mlflow.pyfunc.load_model(str(folder))


def test_rows_without_names(mlflow: Any, tmp_path: Path) -> None:
    model = LOFClassifier(**SHORT, epochs=2).fit(X[y < 2], y[y < 2])
    loaded = served(mlflow, model, tmp_path / "out")
    for rows in (X, pd.DataFrame(X)):
        assert_frame_equal(loaded.predict(rows), model.assess(X).to_frame())
    assert [each.name for each in loaded.metadata.signature.outputs] == [
        *("novelty", "p_value", "novel", "label", "closest")
    ]


def test_the_folder_has_requirements_and_no_pickle(mlflow: Any, tmp_path: Path) -> None:
    export_mlflow(MahalanobisDetector(**SHORT).fit(X), tmp_path / "out")
    files = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert not [path for path in files if path.suffix in (".pkl", ".pickle", ".joblib", ".pt", ".bin")]
    assert {"MLmodel", "model.safetensors", "requirements.txt"} <= {path.name for path in files}
    wanted = (tmp_path / "out" / "requirements.txt").read_text().split()
    assert f"offmap=={__version__}" in wanted
    assert any(each.startswith("torch==") for each in wanted)
    assert "loader_module: offmap.export.pyfunc" in (tmp_path / "out" / "MLmodel").read_text()


def test_named_columns_in_any_order(mlflow: Any, tmp_path: Path) -> None:
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    model = MahalanobisDetector(**SHORT).fit(frame)
    loaded = served(mlflow, model, tmp_path / "out")
    assert_frame_equal(loaded.predict(frame[["d", "c", "b", "a"]]), model.assess(frame).to_frame())
    with pytest.raises(mlflow.exceptions.MlflowException, match="missing inputs"):
        loaded.predict(frame[["a", "b", "c"]])


@pytest.mark.parametrize("calibration", [0.3, "cv"])
def test_tables_of_more_than_numbers(mlflow: Any, tmp_path: Path, calibration: Any) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"paid": rng.normal(size=200), "country": rng.choice(["FR", "DE"], 200)})
    model = MahalanobisDetector(calibration=calibration, random_state=0).fit(frame)
    loaded = served(mlflow, model, tmp_path / "out")
    odd = pd.DataFrame({"paid": [0.1, None], "country": ["FR", "PE"]})
    assert_frame_equal(loaded.predict(odd), model.assess(odd).to_frame())


@pytest.mark.parametrize("calibration", [0.3, "cv"])
def test_texts(mlflow: Any, tmp_path: Path, calibration: Any) -> None:
    pytest.importorskip("sentence_transformers", reason="needs the extra text")
    texts = [f"{word} {n}" for n in range(20) for word in ("my card was stolen", "will it rain")]
    classifier = MSPClassifier(encoder=TextEncoder(cache=False), epochs=2, calibration=calibration, random_state=0)
    model = classifier.fit(texts, ["card", "rain"] * 20)
    loaded = served(mlflow, model, tmp_path / "out")
    found = loaded.predict(pd.DataFrame({"text": texts[:3]}))
    assert_frame_equal(found, model.assess(texts[:3]).to_frame())
    assert "offmap[text]" in (tmp_path / "out" / "requirements.txt").read_text()


def test_entities(mlflow: Any, tmp_path: Path) -> None:
    names = np.array(["a", "b", "c"])[y]
    model = EntityGaussianDetector(**SHORT).fit(X, names)
    loaded = served(mlflow, model, tmp_path / "out")
    frame = pd.DataFrame(X, columns=[f"x{place}" for place in range(4)]).assign(entity=names)
    assert_frame_equal(loaded.predict(frame), model.assess(X, names).to_frame())


def test_images(mlflow: Any, tmp_path: Path) -> None:
    images = (load_digits().images / 16).astype(np.float32)
    model = TextureDetector(**SHORT).fit(images[:200])
    loaded = served(mlflow, model, tmp_path / "out")
    assert_frame_equal(loaded.predict(images[200:220, ..., None]), model.assess(images[200:220]).to_frame())


def test_what_cannot_be_loaded_by_itself_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"Calibrated cannot be exported for MLflow: .*give it as model="):
        export_mlflow(Calibrated(IsolationForest(), random_state=0).fit(X), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []
