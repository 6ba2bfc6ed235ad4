"""Texts encoded by onnxruntime: row by row as torch does, apart in the cache, from graphs that survive damage."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from offmap.data import TextEncoder, text_graph, text_model, text_onnx
from offmap.onnx_graphs import session

pytest.importorskip("sentence_transformers", reason="needs the extra text")
onnx = pytest.importorskip("onnx", reason="needs the extra export")
pytest.importorskip("onnxruntime", reason="needs the extra export")

TEXTS = [" ".join(["word", "bank", "rain"][: 1 + n % 3] * (1 + n // 2)) + f" {n}" for n in range(24)]
SENTENCES = [
    "my card was stolen",
    "someone took my card, what shall I do now?",
    "will it rain today in Zürich?",
    "how do I top up my account with a cheque from another bank that has no branch here?",
    "Hi",
]


@pytest.fixture(scope="module")
def graphs(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder for the graphs, so that each network is written once."""
    return str(tmp_path_factory.mktemp("graphs"))


@pytest.fixture(scope="module")
def tiny(tiny_model: Callable[[str], str], graphs: str) -> TextEncoder:
    return TextEncoder(model=tiny_model("bert"), backend="onnx", cache=graphs)


def graph_file(folder: str) -> Path:
    (found,) = Path(folder).glob(f"*{text_onnx.GRAPH_SUFFIX}")
    return found


def product(weights: np.ndarray[Any, Any]) -> Any:
    """A graph of one product with a constant matrix."""
    make, kind = onnx.helper, onnx.TensorProto.FLOAT
    graph = make.make_graph(
        [make.make_node("MatMul", ["X", "W"], ["Y"])],
        "product",
        [make.make_tensor_value_info("X", kind, ["rows", len(weights)])],
        [make.make_tensor_value_info("Y", kind, ["rows", weights.shape[1]])],
        [onnx.numpy_helper.from_array(weights, "W")],
    )
    return make.make_model(graph, opset_imports=[make.make_opsetid("", 20)], ir_version=10)


def test_the_integer_product_is_that_of_the_formula() -> None:
    rng = np.random.default_rng(0)
    W, X = rng.normal(size=(16, 8)).astype(np.float32), rng.normal(size=(5, 16)).astype(np.float32)
    X[3] *= 100
    (found,) = session(text_graph.quantised(product(W)).SerializeToString()).run(None, {"X": X})
    columns, rows = np.abs(W).max(axis=0) / 64, np.abs(X).max(axis=1, keepdims=True) / 127
    whole_rows, whole_columns = np.rint(X / rows), np.rint(W / columns).T
    naive = np.array([[sum(x * w) for w in whole_columns] for x in whole_rows])
    np.testing.assert_allclose(found, naive * rows * columns, rtol=1e-5, atol=1e-5)
    assert np.abs(found - X @ W).max() < 0.05 * np.abs(X @ W).max()


def test_a_row_does_not_depend_on_the_rows_beside_it() -> None:
    rng = np.random.default_rng(1)
    W, X = rng.normal(size=(16, 8)).astype(np.float32), rng.normal(size=(4, 16)).astype(np.float32)
    run = session(text_graph.quantised(product(W)).SerializeToString()).run
    larger = X * np.array([[1], [1], [1], [1e4]], np.float32)
    (beside_small,), (beside_large,) = (run(None, {"X": rows}) for rows in (X, larger))
    np.testing.assert_array_equal(beside_small[:3], beside_large[:3])


def test_a_text_gets_the_same_bytes_in_any_company(tiny: TextEncoder) -> None:
    alone = TextEncoder(model=tiny.model, backend="onnx", cache=False)
    whole = tiny.transform(TEXTS)
    order = np.random.default_rng(0).permutation(len(TEXTS))[:9]
    np.testing.assert_array_equal(alone.transform([TEXTS[row] for row in order]), whole[order])
    np.testing.assert_array_equal(alone.transform(TEXTS[5]), whole[[5]])


@pytest.mark.filterwarnings("ignore::offmap.data.TextTruncated")
def test_the_vectors_are_nearly_those_of_torch(tiny: TextEncoder) -> None:
    texts = [*TEXTS, "a long story about money " * 100]
    found, expected = tiny.transform(texts), TextEncoder(model=tiny.model, cache=False).transform(texts)
    cosine = (found * expected).sum(axis=1)
    assert cosine.min() > 0.99
    assert (found != expected).any()
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)


def test_the_vectors_of_the_default_model_have_a_mean_cosine_of_at_least_99_hundredths(graphs: str) -> None:
    found = TextEncoder(backend="onnx", cache=graphs).transform(SENTENCES)
    cosine = (found * TextEncoder(cache=False).transform(SENTENCES)).sum(axis=1)
    assert cosine.mean() > 0.99
    assert cosine.min() > 0.98


def test_the_exported_network_pads_as_torch_does(tiny: TextEncoder) -> None:
    network = text_model.load(tiny.model, "cpu")
    read = text_model.tokens(network, SENTENCES[:3], 24)
    run = session(text_graph.exported(network).SerializeToString()).run
    (found,) = run(None, {name: read[name].numpy() for name in text_graph.INPUTS})
    expected = TextEncoder(model=tiny.model, cache=False).transform(SENTENCES[:3])
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_vectors_of_the_two_backends_are_kept_apart(tiny: TextEncoder, tmp_path: Path) -> None:
    encoders = [TextEncoder(model=tiny.model, backend=backend, cache=str(tmp_path)) for backend in ("torch", "onnx")]
    tiny.transform(TEXTS[:1])  # writes the graph, unless another test did
    text_onnx._opened.cache_clear()
    (tmp_path / graph_name(tiny)).write_bytes((Path(str(tiny.cache)) / graph_name(tiny)).read_bytes())
    first = [encoder.transform(TEXTS[:4]) for encoder in encoders]
    again = [encoder.transform(TEXTS[:4]) for encoder in reversed(encoders)]
    assert len(list(tmp_path.glob("*.embeddings"))) == 2
    np.testing.assert_array_equal(first, again[::-1])
    assert (first[0] != first[1]).any()


def graph_name(encoder: TextEncoder) -> str:
    return f"{encoder._identity()[:24]}{text_onnx.GRAPH_SUFFIX}"


@pytest.mark.parametrize("damage", [b"", b"not a graph", b"0" * 200])
def test_a_damaged_graph_is_made_anew(tmp_path: Path, damage: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    made = product(np.eye(3, dtype=np.float32))
    monkeypatch.setattr(text_onnx, "exported", lambda network: made.__class__.FromString(made.SerializeToString()))
    path = tmp_path / f"{'k' * 24}{text_onnx.GRAPH_SUFFIX}"
    path.write_bytes(damage)
    graph = text_onnx.graph_of(None, "k" * 64, tmp_path)
    assert path.read_bytes()[32:] == graph
    monkeypatch.setattr(text_onnx, "exported", None)
    assert text_onnx.graph_of(None, "k" * 64, tmp_path) == graph


def test_the_oldest_graphs_make_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_onnx, "exported", lambda network: product(np.eye(3, dtype=np.float32)))
    for key in "abcdefghij":
        text_onnx.graph_of(None, key * 64, tmp_path)
    assert len(list(tmp_path.iterdir())) == 8
    assert (tmp_path / f"{'j' * 24}{text_onnx.GRAPH_SUFFIX}").exists()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"backend": "tensorrt"}, "backend must be 'torch' or 'onnx'; got 'tensorrt'"),
        ({"backend": "onnx", "device": "cuda"}, 'device must be "cpu" with backend="onnx"; got \'cuda\''),
    ],
)
def test_bad_parameters_are_named(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TextEncoder(**parameters).fit(["a text"])


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "onnxruntime", None)
    with pytest.raises(ImportError, match="needs onnxruntime: pip install"):
        session(b"")
