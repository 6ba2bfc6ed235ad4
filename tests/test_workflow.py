"""From data to a model, from a model to scores."""

import errno
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin

from offmap.base import Detector, OpenSetClassifier
from offmap.data import Data
from offmap.data.rows import as_texts
from offmap.density import MahalanobisDetector, NearestNeighborDetector
from offmap.errors import WorkFailed
from offmap.metrics import auroc, open_set_summary
from offmap.workflow import (
    compare,
    configure,
    evaluate_model,
    fit_model,
    fitting,
    load_model,
    name_of,
    promise_of,
    require_writable,
    save_model,
    score_rows,
    scoring,
    summary_of,
    write_frame,
)
from tests.estimators import CLASSES, small

KINDS: dict[str, Callable[[NDArray[np.int64]], NDArray[Any]]] = {
    "ints": lambda codes: codes + 5,
    "short strings": lambda codes: np.array(["a", "b", "c"])[codes],
}


def blobs(n: int, name: str = "blobs", kind: str = "ints", shift: float = 0.0) -> Data:
    rng = np.random.default_rng(n)
    codes = rng.integers(3, size=n)
    return Data(rng.normal(size=(n, 4)) + 6 * np.eye(4)[codes] + shift, KINDS[kind](codes), name=name)


@pytest.fixture(scope="module", params=CLASSES, ids=lambda cls: cls.__name__)
def model(request: pytest.FixtureRequest) -> Any:
    return fit_model(small(request.param), blobs(300))


def test_the_same_method_can_be_compared_with_other_parameters() -> None:
    near, far = NearestNeighborDetector(n_neighbors=1), NearestNeighborDetector(n_neighbors=50)
    lines = compare([near, far, MahalanobisDetector()], blobs(400), novel=blobs(60, shift=2.0), splits=2)
    found = {line.method: line.auroc for line in lines}
    assert sorted(found) == ["mahalanobis", "nearest-neighbor", "nearest-neighbor (2)"]
    alone = compare([far], blobs(400), novel=blobs(60, shift=2.0), splits=2)
    assert [line.auroc for line in alone] == [found["nearest-neighbor (2)"]] != [found["nearest-neighbor"]]


def test_a_method_is_known_by_its_short_name(model: Any) -> None:
    configured = configure(name_of(model), ["alpha=0.1"], seed=3)
    assert type(configured) is type(model)
    assert (configured.alpha, configured.random_state) == (0.1, 3)


def test_scores_agree_with_the_estimator(model: Any) -> None:
    data = blobs(500, shift=1.0)
    frame = score_rows(model, data)
    assert frame["row"].tolist() == list(range(500))
    assert frame["novelty"].to_numpy().tobytes() == model.novelty(data.X).tobytes()
    assert frame["p_value"].to_numpy().tobytes() == model.p_value(data.X).tobytes()
    if isinstance(model, Detector):
        assert np.array_equal(frame["novel"], model.predict(data.X) == -1)


@pytest.mark.parametrize("kind", KINDS)
def test_a_classifier_answers_as_predict_does(kind: str) -> None:
    model = fit_model(configure("msp", ["epochs=5"]), blobs(300, kind=kind))
    assert isinstance(model, OpenSetClassifier)
    data = blobs(500, shift=1.5)
    frame = score_rows(model, data)
    assert frame["label"].tolist() == model.predict(data.X).tolist()
    assert frame["closest"].tolist() == model.predict_closed(data.X).tolist()
    assert set(frame["label"]) > {model.unknown_label_}


def test_every_row_is_scored_once(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    enter = type(model)._checked

    def counting(self: Any, X: Any, **options: Any) -> Any:
        seen.append(len(X))
        return enter(self, X, **options)

    monkeypatch.setattr(type(model), "_checked", counting)
    score_rows(model, blobs(200))
    assert seen == [200]
    evaluate_model(model, blobs(120), blobs(80, shift=1.5))
    assert seen == [200, 120, 80]


def test_without_held_out_rows_there_are_no_p_values_and_no_promise() -> None:
    model = fit_model(configure("msp", ["epochs=2", "rule=own", "calibration=0"]), blobs(300))
    assert list(score_rows(model, blobs(9))) == ["row", "novelty", "novel", "label", "closest"]
    summary = summary_of(model)
    assert (summary["promised_rate"], summary["calibration_rows"], summary["threshold"]) == (None, 0, 0.5)
    assert summary["false_alarm_rate"] is summary["false_alarm_interval"] is None
    assert promise_of(model).startswith("no false-alarm rate is promised or known")


@pytest.mark.parametrize("closely", ["calibration=cv", "by_class=actual"])
def test_a_rate_that_is_kept_closely_is_not_called_the_most(closely: str) -> None:
    model = fit_model(configure("msp", ["epochs=2", "calibration=0.4", closely]), blobs(300))
    assert promise_of(model).startswith("false-alarm rate of about 5.0% promised; this model: ")
    exact = fit_model(configure("msp", ["epochs=2", "by_class=predicted", "calibration=0.4"]), blobs(300))
    assert promise_of(exact).startswith("false-alarm rate of at most 5.0% promised; ")


def test_a_summary_says_what_is_promised(model: Any) -> None:
    summary = summary_of(model)
    low, high = summary["false_alarm_interval"]
    assert summary["promised_rate"] == 0.05
    assert low < summary["false_alarm_rate"] < high
    assert summary["calibration_rows"] == 30
    assert promise_of(model).startswith("false-alarm rate of at most 5.0% promised; this model: 3.2% [")
    assert summary.get("classes") == (3 if isinstance(model, OpenSetClassifier) else None)


def test_an_evaluation_names_known_rows_by_class_and_novel_rows_as_unknown() -> None:
    model = fit_model(configure("msp", ["epochs=10"]), blobs(300))
    assert isinstance(model, OpenSetClassifier)
    normal, novel = blobs(400), blobs(100, shift=1.5)
    found = evaluate_model(model, normal, novel).metrics
    truth = [*np.asarray(normal.y).tolist(), *[-1] * 100]
    answers = [*model.predict(normal.X).tolist(), *model.predict(novel.X).tolist()]
    expected = open_set_summary(truth, answers, model.classes_, -1)
    assert found["open_accuracy"] == expected["accuracy"]
    assert found["open_f1"] == expected["f1"]
    assert found["known_accuracy"] == np.mean(model.predict_closed(normal.X) == normal.y)


def test_rows_without_labels_are_told_apart_only(model: Any) -> None:
    normal, novel = Data(blobs(50).X), Data(blobs(60).X + 30)
    found = evaluate_model(model, normal, novel).metrics
    assert found["auroc"] == auroc(model.novelty(normal.X), model.novelty(novel.X))
    assert not {"known_accuracy", "open_accuracy"} & set(found)


class Lengths(TransformerMixin, BaseEstimator):
    """Encodes a text as its length and its number of words."""

    def __init__(self, device: str = "cpu") -> None:
        self.device = device

    def fit(self, X: Any, y: Any = None) -> Self:
        self.fitted_ = True
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:
        return np.array([[len(text), len(text.split())] for text in X], dtype=np.float64)


def words(n: int, seed: int) -> Data:
    lengths = np.random.default_rng(seed).integers(1, 9, size=n)
    return Data(
        as_texts(["word " * length for length in lengths]), np.where(lengths > 4, "long", "short"), name="words"
    )


def test_texts_go_through_an_encoder(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (fitting, scoring):
        monkeypatch.setattr(module, "TextEncoder", Lengths)
    model = fit_model(configure("msp"), words(300, seed=0))
    assert isinstance(model.encoder, Lengths)
    found = evaluate_model(model, words(100, seed=1), Data(as_texts(["word " * 50]), name="novel")).metrics
    assert found["known_accuracy"] > 0.95
    with pytest.raises(ValueError, match="blobs holds features, but the model was fitted on texts"):
        score_rows(model, blobs(9))


def test_a_model_of_numbers_refuses_texts(model: Any) -> None:
    for use in (lambda: score_rows(model, words(9, seed=0)), lambda: evaluate_model(model, blobs(9), words(9, seed=0))):
        with pytest.raises(ValueError, match="words holds texts, but the model was fitted on numbers"):
            use()


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_table_is_written_whole(tmp_path: Path, suffix: str) -> None:
    frame = pd.DataFrame({"novelty": [0.1 + 0.2, np.inf], "label": ["a", "unknown"]})
    write_frame(frame, tmp_path / f"scores{suffix}")
    (path,) = tmp_path.iterdir()
    read = pd.read_csv(path) if suffix == ".csv" else pd.read_parquet(path)
    pd.testing.assert_frame_equal(read, frame, check_exact=True)


def test_a_table_of_another_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"must end in \.parquet or \.csv or \.jsonl; got .*scores\.xlsx"):
        write_frame(pd.DataFrame({"row": [0]}), tmp_path / "scores.xlsx")
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_closed_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(PermissionError, match="not yours to write to"):
        require_writable(tmp_path / "model")


def readings(n: int, shift: float = 0.0) -> Data:
    rng = np.random.default_rng(n)
    devices = rng.integers(8, size=n)
    around = 4 * np.stack([np.cos(devices), np.sin(devices)], axis=1)
    return Data(around + rng.normal(size=(n, 2)) + shift, devices, name="readings")


@pytest.fixture(scope="module")
def of_entities() -> Any:
    return fit_model(configure("ratio", ["epochs=5", "calibration=0.3"]), readings(600))


def test_scores_of_an_entity_model_agree_with_it(of_entities: Any) -> None:
    data = readings(200, shift=0.5)
    frame = score_rows(of_entities, data)
    assert list(frame) == ["row", "entity", "novelty", "p_value", "novel"]
    assert frame["novelty"].to_numpy().tobytes() == of_entities.novelty(data.X, data.y).tobytes()
    assert frame["p_value"].to_numpy().tobytes() == of_entities.p_value(data.X, data.y).tobytes()
    assert frame["novel"].tolist() == (of_entities.predict(data.X, data.y) == -1).tolist()
    assert summary_of(of_entities)["entities"] == 8


def test_an_evaluation_asks_about_each_row_and_its_entity(of_entities: Any) -> None:
    normal, novel = readings(300), readings(200, shift=20.0)
    found = evaluate_model(of_entities, normal, novel)
    levels = [of_entities.p_value(data.X, data.y) for data in (normal, novel)]
    assert found.metrics["auroc"] == pytest.approx(auroc(-levels[0], -levels[1]), abs=0.02)
    assert found.name == "ratio"


def test_an_entity_model_needs_entities() -> None:
    data = Data(np.zeros((4, 2)), name="rows")
    with pytest.raises(ValueError, match="RatioDetector asks what is unusual for an entity, but rows names none"):
        fit_model(configure("ratio"), data)


def test_an_own_rule_says_what_was_measured() -> None:
    model = fit_model(configure("msp", ["epochs=2", "rule=own"]), blobs(300))
    assert summary_of(model)["promised_rate"] is None
    assert promise_of(model).startswith("no false-alarm rate is promised by the method's own rule; measured ")
    assert summary_of(model)["false_alarm_rate"] == np.mean(model.calibration_novelty_ > 0.5)


def test_an_entity_model_scores_every_row_once(of_entities: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    checked = type(of_entities)._checked

    def counting(self: Any, X: Any) -> Any:
        seen.append(len(X))
        return checked(self, X)

    monkeypatch.setattr(type(of_entities), "_checked", counting)
    score_rows(of_entities, readings(200))
    evaluate_model(of_entities, readings(120), readings(80, shift=9.0))
    assert seen == [200, 120, 80]


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
def test_unsigned_labels_are_scored_and_evaluated(dtype: Any) -> None:
    data, novel = blobs(300), blobs(100, shift=1.5)
    unsigned = Data(data.X, np.asarray(data.y).astype(dtype), name="unsigned")
    model = fit_model(configure("msp", ["epochs=10"]), unsigned)
    assert set(score_rows(model, novel)["label"]) <= {-1, 5, 6, 7}
    assert evaluate_model(model, unsigned, novel).metrics["known_accuracy"] > 0.9


@pytest.mark.parametrize("name", ["a/0.png", "a/new.png", "a/notes.txt"])
def test_an_output_never_replaces_a_file_in_a_folder_that_is_read(tmp_path: Path, name: str) -> None:
    (tmp_path / "a").mkdir()
    for taken in ("0.png", "notes.txt"):
        (tmp_path / "a" / taken).write_text("input")
    with pytest.raises(ValueError, match="it is read as well; name another file"):
        require_writable(tmp_path / name, inputs=[str(tmp_path)])
    require_writable(tmp_path / "a" / "model.safetensors", inputs=[str(tmp_path)])


def test_class_names_do_not_become_formulas_in_csv(tmp_path: Path) -> None:
    labels = ["=HYPERLINK(1)", "+1+1", "@x", "-2%", "\t=1", "cat", "\x1b[31mred"]
    write_frame(pd.DataFrame({"label": labels, "novelty": [-1.5] * 7}), tmp_path / "a.csv")
    found = pd.read_csv(tmp_path / "a.csv", dtype={"label": str})
    assert found["label"].tolist() == ["'=HYPERLINK(1)", "'+1+1", "'@x", "'-2%", "\\t=1", "cat", "\\x1b[31mred"]
    assert found["novelty"].tolist() == [-1.5] * 7
    write_frame(pd.DataFrame({"label": labels}), tmp_path / "a.parquet")
    assert pd.read_parquet(tmp_path / "a.parquet")["label"].tolist() == labels


def test_a_full_disk_keeps_the_model_and_says_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "free").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "free"))
    write = Path.write_bytes

    def fill(path: Path, content: Any) -> int:
        if "full" in path.parts:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(path, content)

    monkeypatch.setattr(Path, "write_bytes", fill)
    fitted: Any = fit_model(configure("nearest-neighbor"), blobs(300))
    with pytest.raises(
        WorkFailed, match=r"No space left on device; the fitted model was kept as .*safetensors"
    ) as told:
        save_model(fitted, tmp_path / "full" / "model")
    kept: Any = load_model(str(told.value).rpartition(" ")[2])
    assert kept.novelty(blobs(20).X).tobytes() == fitted.novelty(blobs(20).X).tobytes()
    assert list((tmp_path / "full").iterdir()) == []
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "full"))
    with pytest.raises(WorkFailed, match="nor could the model be kept in"):
        save_model(fitted, tmp_path / "full" / "model")
