"""ONNX graphs say what the library says, for any number of rows; what has no graph is refused with the reason."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.datasets import load_digits, load_iris
from sklearn.ensemble import IsolationForest
from sklearn.linear_model import LogisticRegression
from torch import nn

from offmap.calibration import Calibrated, Guarded
from offmap.collaborative import EntityGaussianDetector
from offmap.density import (
    ECODDetector,
    GaussianMixtureDetector,
    MahalanobisDetector,
    NearestNeighborDetector,
    TextureDetector,
    VAEDetector,
)
from offmap.errors import WorkFailed
from offmap.export import CannotExport, export_onnx
from offmap.export.check_rows import random_rows
from offmap.export.checking import check
from offmap.export.graph import graph_of
from offmap.onnx_graphs import OPSET, session
from offmap.openset import ADBClassifier, ANSClassifier, DOCClassifier, LOFClassifier, MSPClassifier, OpenMaxClassifier
from offmap.scores import Outputs

onnx = pytest.importorskip("onnx", reason="needs the extra export")
pytest.importorskip("onnxruntime", reason="needs the extra export")
pytestmark = pytest.mark.filterwarnings("ignore::offmap.calibration.CalibrationWarning")

X, y = load_iris(return_X_y=True)
KNOWN = y < 2
SHORT: dict[str, Any] = {"calibration": 0.3, "random_state": 0}
DIGITS = load_digits().images / 16


def run(path: Path, **inputs: Any) -> dict[str, Any]:
    runtime = session(path.read_bytes())
    return dict(zip([output.name for output in runtime.get_outputs()], runtime.run(None, inputs), strict=True))


@pytest.mark.parametrize(
    "detector",
    [
        MahalanobisDetector(**SHORT, confidence=0.9, alpha=0.2),
        NearestNeighborDetector(**SHORT),
        GaussianMixtureDetector(**SHORT),
        ECODDetector(**SHORT),
    ],
    ids=lambda each: type(each).__name__,
)
def test_detectors_score_as_in_the_library(detector: Any, tmp_path: Path) -> None:
    detector.fit(X[KNOWN])
    found = export_onnx(detector, tmp_path / "out", check_on=X)
    assert (found.rows, found.given) == (406, 150)
    assert 20 < found.novel < 400
    assert found.difference < 1e-4
    # Not calibration rows: those tie with themselves, and rounding decides.
    rows = (X[45:] + np.random.default_rng(0).normal(0, 0.05, size=X[45:].shape)).astype(np.float32)
    verdict = detector.assess(rows)
    for count in (1, 7, 105):
        graph = run(tmp_path / "out" / "model.onnx", X=rows[:count])
        np.testing.assert_allclose(graph["novelty"], verdict.novelty[:count], rtol=1e-4)
        clear = np.abs(verdict.novelty[:count] / detector.threshold_ - 1) > 1e-4
        np.testing.assert_array_equal(graph["novel"][clear], verdict.novel[:count][clear])
        assert np.mean(np.isclose(graph["p_value"], verdict.p_value[:count])) > 0.9


@pytest.mark.parametrize(
    "classifier",
    [
        MSPClassifier(**SHORT, epochs=3),
        ANSClassifier(**SHORT, radius_factor=1.0, steps=20),
        ADBClassifier(**SHORT, epochs=3),
        OpenMaxClassifier(**SHORT, epochs=3),
    ],
    ids=lambda each: type(each).__name__,
)
def test_classifiers_label_as_in_the_library(classifier: Any, tmp_path: Path) -> None:
    names = np.array(["sétosa", "versicolor"])[y[KNOWN]]
    classifier.fit(X[KNOWN], names)
    found = export_onnx(classifier, tmp_path / "out", check_on=X)
    assert found.difference < 1e-4
    rows = random_rows(classifier)
    graph = run(tmp_path / "out" / "model.onnx", X=rows)
    assert np.mean(graph["label"] == classifier.predict(rows)) > 0.98
    assert {"sétosa", "versicolor"} <= set(graph["label"])


def test_a_model_without_held_out_rows_has_no_p_values(tmp_path: Path) -> None:
    model = DOCClassifier(rule="own", calibration=0.0, epochs=3, random_state=0).fit(X[KNOWN], y[KNOWN])
    export_onnx(model, tmp_path / "out")
    graph = run(tmp_path / "out" / "model.onnx", X=X.astype(np.float32))
    assert list(graph) == ["novelty", "novel", "label"]
    np.testing.assert_array_equal(graph["label"], model.predict(X))
    assert graph["label"].dtype == np.int64


@pytest.mark.parametrize("score", ["lpath", "importance"])
def test_image_scores(score: str, tmp_path: Path) -> None:
    model = VAEDetector(novelty_score=score, network="mlp", epochs=2, random_state=0).fit(DIGITS[:800])
    export_onnx(model, tmp_path / "out", check_on=DIGITS[900:1100])
    images = DIGITS[1100:1200, ..., None].astype(np.float32)
    graph = run(tmp_path / "out" / "model.onnx", X=images)
    np.testing.assert_allclose(graph["novelty"], model.novelty(images), rtol=1e-2)


def test_columns_beyond_single_precision_are_taken_as_doubles(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).normal(size=(300, 2)) * [1000, 1] + [1e12, 0]
    model = MahalanobisDetector(random_state=0).fit(rows)
    export_onnx(model, tmp_path / "out", check_on=rows)
    graph = run(tmp_path / "out" / "model.onnx", X=rows)
    np.testing.assert_allclose(graph["novelty"], model.novelty(rows), rtol=1e-4)


def guarded_module() -> tuple[Any, Any]:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Dropout(), nn.Linear(16, 3))
    rows = X.astype(np.float32)
    model = Guarded(network, novelty_score="auto", features="1", classes=["a", "b", "c"])
    odd = np.arange(len(rows)) % 2 == 1
    names = np.array(["a", "b", "c"])[y]
    return model.calibrate(rows[odd], names[odd], reference=rows[~odd], y_reference=names[~odd]), rows


def test_a_guarded_module(tmp_path: Path) -> None:
    model, rows = guarded_module()
    found = export_onnx(model, tmp_path / "out", check_on=rows)
    assert (found.rows, found.given) == (166, 150)
    graph = run(tmp_path / "out" / "model.onnx", X=rows)
    assert np.mean(graph["label"] == model.predict(rows)) > 0.98


def test_guarded_outputs(tmp_path: Path) -> None:
    logits = np.random.default_rng(0).normal(size=(200, 3))
    model = Guarded(novelty_score="energy").calibrate(Outputs(logits=logits))
    found = export_onnx(model, tmp_path / "out")
    assert found.rows == 16
    graph = run(tmp_path / "out" / "model.onnx", logits=logits)
    np.testing.assert_allclose(graph["novelty"], model.novelty(Outputs(logits=logits)))


def test_the_graph_says_what_it_is(tmp_path: Path) -> None:
    graph = graph_of(MahalanobisDetector(**SHORT).fit(X))
    about = {each.key: each.value for each in graph.metadata_props}
    assert about["method"] == "MahalanobisDetector"
    assert about["promise"].startswith("A normal row is flagged with a probability of at most 0.05")
    assert {each.domain: each.version for each in graph.opset_import}[""] == OPSET == int(about["opset"])
    assert graph.graph.input[0].type.tensor_type.shape.dim[0].dim_param


def test_a_wrong_graph_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = MahalanobisDetector(**SHORT).fit(X)
    graph, other = graph_of(model), MahalanobisDetector(**SHORT).fit(1.1 * X)
    check(graph, model)
    with pytest.raises(WorkFailed, match=r"differs from the library in novelty of \d+ of 256 rows"):
        check(graph, other)
    monkeypatch.setattr("offmap.export.onnx_folder.graph_of", lambda _: graph)
    with pytest.raises(WorkFailed):
        export_onnx(other, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def numbers(rows: int, seed: int) -> pd.DataFrame:
    """Columns with gaps, heavy tails and truth values, and one that is constant."""
    rng = np.random.default_rng(seed)
    some = np.where(rng.random(rows) < 0.1, np.nan, rng.normal(5, 2, size=rows))
    amounts = np.exp(rng.normal(3, 2, size=rows))
    return pd.DataFrame(
        {"some": some, "till": 1, "paid": amounts, "member": rng.random(rows) < 0.3, "at": 1e9 + rng.normal(size=rows)}
    )


@pytest.mark.parametrize("model", [MahalanobisDetector(**SHORT), NearestNeighborDetector(**SHORT)], ids=str)
@pytest.mark.filterwarnings("ignore::offmap.data.table.encoder.ColumnsLeftOut")
def test_tables_of_numbers_go_in_as_they_are(model: Any, tmp_path: Path) -> None:
    fresh = numbers(200, 1).assign(paid=lambda each: each["paid"].where(each.index % 9 > 0))
    model.fit(numbers(600, 0))
    export_onnx(model, tmp_path / "out", check_on=fresh)
    told = {each.key: each.value for each in onnx.load(tmp_path / "out" / "model.onnx").metadata_props}
    columns = json.loads(told["columns"])
    assert columns == ["some", "paid", "member", "at"]
    graph = run(tmp_path / "out" / "model.onnx", X=fresh[columns].to_numpy(dtype=np.float64))
    verdict = model.assess(fresh)
    np.testing.assert_allclose(graph["novelty"], verdict.novelty, rtol=1e-4)
    # Gaps in a column that had none are unexpected.
    assert verdict.novel[::9].mean() > 0.9 > 0.3 > verdict.novel.mean()
    np.testing.assert_array_equal(graph["novel"], verdict.novel)


def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame({"paid": rng.normal(size=200), "country": rng.choice(["FR", "DE"], 200)})


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (lambda: LOFClassifier(**SHORT, epochs=1).fit(X, y), "the local outlier factor is a search by scikit-learn"),
        (lambda: MSPClassifier(**SHORT, epochs=1, by_class="predicted").fit(X, y), "one table of p-values per class"),
        (lambda: MahalanobisDetector(calibration="cv", random_state=0).fit(X), "one model per fold"),
        (lambda: MahalanobisDetector(**SHORT).fit(frame()), r"not numbers \('country', a category\)"),
        (lambda: EntityGaussianDetector(**SHORT).fit(X, y), "it scores pairs of a row and an entity"),
        (lambda: Calibrated(IsolationForest(), random_state=0).fit(X), "belongs to another library"),
        (lambda: TextureDetector(**SHORT).fit(DIGITS[:200]), "histograms of pixels are counts"),
        (lambda: Guarded(LogisticRegression(max_iter=999), random_state=0).fit(X, y), "LogisticRegression of another"),
    ],
)
def test_models_without_a_graph_are_refused_with_the_reason(model: Any, reason: str, tmp_path: Path) -> None:
    with pytest.raises(CannotExport, match=f"cannot be exported as ONNX, because .*{reason}"):
        export_onnx(model(), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    with pytest.raises(FileExistsError, match="it exists and is not an empty folder"):
        export_onnx(MahalanobisDetector(**SHORT).fit(X), tmp_path)
    with pytest.raises(FileNotFoundError, match=r"the folder .* does not exist"):
        export_onnx(MahalanobisDetector(**SHORT).fit(X), tmp_path / "a" / "b")
