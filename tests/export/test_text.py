"""A model of texts: encoder, tokenizer and model as three files that work together without the library."""

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from offmap.data import TextEncoder
from offmap.export import export_onnx
from offmap.onnx_graphs import session
from offmap.openset import MSPClassifier
from tests.data.conftest import tiny_model  # noqa: F401 # a fixture

pytest.importorskip("sentence_transformers", reason="needs the extra text")
pytest.importorskip("onnx", reason="needs the extra export")
tokenizers = pytest.importorskip("tokenizers")
pytestmark = pytest.mark.filterwarnings("ignore::offmap.calibration.CalibrationWarning")

TEXTS = [f"{word} {n}" for n in range(30) for word in ("my card was stolen", "will it rain today or tomorrow")]


@pytest.mark.parametrize("backend", ["torch", "onnx"])
def test_texts_are_scored_without_the_library(
    tiny_model: Callable[[str], str],  # noqa: F811
    tmp_path: Path,
    backend: Literal["torch", "onnx"],
) -> None:
    encoder = TextEncoder(model=tiny_model("bert"), cache=str(tmp_path / "cache"), backend=backend)
    model = MSPClassifier(encoder=encoder, epochs=3, calibration=0.3, random_state=0).fit(TEXTS, ["card", "rain"] * 30)
    found = export_onnx(model, tmp_path / "out", check_on=TEXTS[:10])
    assert found.given == 10
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"model.onnx", "encoder.onnx", "tokenizer.json"}
    read = tokenizers.Tokenizer.from_file(str(tmp_path / "out" / "tokenizer.json")).encode_batch(TEXTS[:1] + TEXTS[2:3])
    ids = {"input_ids": [each.ids for each in read], "attention_mask": [each.attention_mask for each in read]}
    (vectors,) = session((tmp_path / "out" / "encoder.onnx").read_bytes()).run(
        None, {name: np.array(values, dtype=np.int64) for name, values in ids.items()}
    )
    scores = session((tmp_path / "out" / "model.onnx").read_bytes())
    novelty, _, _, label = scores.run(None, {"X": vectors})
    verdict = model.assess([TEXTS[0], TEXTS[2]])
    np.testing.assert_allclose(novelty, verdict.novelty, atol=1e-3)
    assert label.tolist() == verdict.label.tolist()  # type: ignore[union-attr] # a classifier has labels


def test_features_of_letters_are_no_graph(
    tiny_model: Callable[[str], str],  # noqa: F811
    tmp_path: Path,
) -> None:
    encoder = TextEncoder(model=tiny_model("bert"), cache=str(tmp_path / "cache"), ngram_weight=0.8)
    model = MSPClassifier(encoder=encoder, epochs=1, calibration=0.3, random_state=0).fit(TEXTS, ["card", "rain"] * 30)
    with pytest.raises(ValueError, match=r"ngram_weight.*use mlflow"):
        export_onnx(model, tmp_path / "out")
    assert not (tmp_path / "out").exists()
