"""The text encoder: its embeddings, its input checks, and its behaviour as a scikit-learn estimator."""

import copy
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import offmap.data
from offmap.data import TextEncoder, TextTruncated, load_table, text_model
from tests.real_data import require

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
    require("sts")
    pairs = load_table("sts", "pairs").query("dataset == 'STSB' and split == 'test'").iloc[:250]
    left, right = (TextEncoder().transform(pairs[column]) for column in ("text_a", "text_b"))
    assert spearmanr((left * right).sum(axis=1), pairs["score"]).statistic > 0.9
