"""``offmap export`` on the command line."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

from offmap.density import MahalanobisDetector
from offmap.onnx_graphs import session
from offmap.openset import LOFClassifier
from tests.command_line import Run

pytest.importorskip("onnx", reason="needs the extra export")
pytest.importorskip("mlflow", reason="needs the extra export")
X, y = load_iris(return_X_y=True)
NAMES = ["a", "b", "c", "d"]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    pd.DataFrame(X, columns=NAMES).to_csv(tmp_path / "rows.csv", index=False)
    detector = MahalanobisDetector(calibration=0.3, random_state=0).fit(pd.DataFrame(X, columns=NAMES))
    detector.save(tmp_path / "model.safetensors")
    return tmp_path / "model.safetensors"


def test_onnx(run: Run, model: Path) -> None:
    out, rows = model.parent / "out", model.parent / "rows.csv"
    found = run("export", model, "--format", "onnx", "--out", out, "--check", rows, "--json")
    assert found.code == 0
    assert found.data["files"] == ["model.onnx"]
    assert (found.data["rows"], found.data["given"]) == (406, 150)
    assert "406 rows (150 of them given" in found.err
    novelty, *_ = session((out / "model.onnx").read_bytes()).run(None, {"X": X.astype(np.float32)})
    scores = run("score", model, rows)
    np.testing.assert_allclose(novelty, scores.frame["novelty"], rtol=1e-4)


def test_mlflow(run: Run, model: Path) -> None:
    found = run("export", model, "--format", "mlflow", "--out", model.parent / "out")
    assert found.code == 0
    assert (model.parent / "out" / "MLmodel").is_file()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--format", "onnx", "--out", "FOLDER"), "it exists and is not an empty folder; name a new one"),
        (("--format", "onnx", "--out", "FOLDER/x", "--check", "none.csv"), "'none.csv' is neither a file"),
        (("--format", "mlflow", "--out", "FOLDER/x", "--check", "FOLDER/rows.csv"), "--check must be left out"),
        (("--format", "onnx", "--out", "FOLDER/none/x"), "does not exist"),
        (("--format", "pickle", "--out", "FOLDER/x"), "'pickle' is not one of 'onnx', 'mlflow'"),
    ],
)
def test_bad_input_is_one_line(run: Run, model: Path, options: tuple[str, ...], message: str) -> None:
    found = run("export", model, *(option.replace("FOLDER", str(model.parent)) for option in options))
    assert found.code == 2
    assert message in " ".join(found.err.split())


def test_a_model_without_a_graph_says_why(run: Run, tmp_path: Path) -> None:
    model = LOFClassifier(calibration=0.3, epochs=1, random_state=0).fit(X, y)
    model.save(tmp_path / "model.safetensors")
    found = run("export", tmp_path / "model.safetensors", "--format", "onnx", "--out", tmp_path / "out")
    assert found.code == 2
    assert "LOFClassifier cannot be exported as ONNX, because the local outlier factor" in found.err
    assert not (tmp_path / "out").exists()
