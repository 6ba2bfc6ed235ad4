"""Sentence encoders trained on several views: the two parts of a model, views and training."""

import copy
import gc
import pickle
import weakref
from typing import Any

import numpy as np
import pytest
import torch

from offmap.data import text_model
from offmap.dependence.views import STRATEGIES, MultiViewEncoder, Strategy, TokenReader, View
from offmap.dependence.views.layers import TopLayers

pytest.importorskip("sentence_transformers", reason="needs the extra text")

TEXTS = (
    "a cat sleeps on the sofa",
    "the kitten naps on a couch",
    "stocks fell sharply on Monday",
    "shares dropped at the start of the week",
    "it will rain tomorrow",
    "a man plays the guitar in the park while children listen to him",
)
# The token before the last full stop and the end of the text.
PROMPT = View('This sentence of "{}" means [MASK].'.format, token=-3)
QUESTION = View('[MASK] is what "{}" means.'.format, token=1)
FAST: dict[str, Any] = {"tune_layers": 1, "batch_size": 6, "random_state": 0}


def test_two_halves_of_a_model_give_what_the_whole_gives() -> None:
    whole = text_model.load("minilm", "cpu")
    for layers in (1, 3):
        top = TopLayers("minilm", "cpu", layers, reset=False).eval()
        states = TokenReader("minilm", layers).states(TEXTS)
        expected = torch.from_numpy(whole.encode(list(TEXTS), show_progress_bar=False))
        found = torch.nn.functional.normalize(top.embeddings(states, token=None))
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)
        with torch.no_grad():
            torch.testing.assert_close(
                top(states, token=None), top.embeddings(states, token=None), atol=1e-5, rtol=1e-4
            )


def test_the_state_of_the_token_is_the_embedding() -> None:
    texts = [PROMPT.text(text) for text in TEXTS[:3]]
    network = text_model.load("minilm", "cpu")
    found = TopLayers("minilm", "cpu", 2, reset=False).eval().embeddings(TokenReader().states(texts), token=-3)
    for text, vector in zip(texts, found, strict=True):
        with torch.no_grad():
            states = network[0].auto_model(**network.tokenizer(text, return_tensors="pt")).last_hidden_state[0]
        torch.testing.assert_close(vector, states[-3], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("views", [4, (PROMPT, QUESTION, View(), PROMPT)])
def test_a_text_gets_the_same_bytes_whatever_comes_with_it(views: Any) -> None:
    encoder = MultiViewEncoder(epochs=0, views=views, **FAST).fit(TEXTS)
    whole = encoder.transform(TEXTS)
    np.testing.assert_array_equal(encoder.transform(TEXTS[3:4]), whole[3:4])
    np.testing.assert_array_equal(encoder.transform(TEXTS[::-1]), whole[::-1])
    np.testing.assert_allclose(np.linalg.norm(whole, axis=1), 1, rtol=1e-5)


def test_without_training_it_is_the_model_as_it_was() -> None:
    expected = text_model.load("minilm", "cpu").encode(list(TEXTS), show_progress_bar=False)
    np.testing.assert_allclose(MultiViewEncoder(epochs=0, **FAST).fit(TEXTS).transform(TEXTS), expected, atol=1e-5)
    assert (
        abs(MultiViewEncoder(epochs=0, reset_layers=True, **FAST).fit(TEXTS).transform(TEXTS) - expected).max() > 0.01
    )


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_training_draws_views_together_and_keeps_the_shared_model(strategy: Any) -> None:
    shared = text_model.load("minilm", "cpu")
    before, random = text_model.digest(shared.state_dict()), torch.get_rng_state()
    settings = FAST | {"epochs": 8, "lr": 1e-3, "reset_layers": True, "strategy": strategy, "temperature": 0.5}
    encoder = MultiViewEncoder(**settings).fit(TEXTS)
    losses = encoder.history_["loss"]
    assert np.mean(losses[-2:]) < np.mean(losses[:2])
    assert text_model.digest(shared.state_dict()) == before
    assert torch.equal(torch.get_rng_state(), random)


def test_the_same_seed_gives_the_same_bytes() -> None:
    first, second, other = (
        MultiViewEncoder(
            **FAST | {"random_state": seed, "views": (PROMPT, QUESTION, View()), "strategy": "mi_sample"}
        ).fit(TEXTS)
        for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first.transform(TEXTS), second.transform(TEXTS))
    assert not np.array_equal(first.transform(TEXTS), other.transform(TEXTS))


def test_dropout_gives_each_view_a_pass_of_its_own() -> None:
    top, states = TopLayers("minilm", "cpu", 1, reset=False).train(), TokenReader("minilm", 1).states(TEXTS)
    first, second = top(states, None), top(states, None)
    assert not torch.allclose(first, second)
    settled = copy.deepcopy(top).eval()
    assert torch.equal(settled(states, None), settled(states, None))


@pytest.mark.parametrize(
    ("settings", "texts", "message"),
    [
        ({}, ["one text"], "texts must be at least 2; got 1"),
        ({}, "one text", "texts must be a sequence of strings"),
        ({}, ["fine", " "], "texts must be a sequence of strings, none of them empty"),
        ({"tune_layers": 7}, ["a b", "c d"], "tune_layers must be at most 6, the layers of the model; got 7"),
        ({"views": 3}, ["a b", "c d"], "views must be a power of 2 for a total correlation"),
        ({"views": 1}, ["a b", "c d"], "views must be at least 2; got 1"),
        ({"views": "dropout"}, ["a b", "c d"], "views must be an integer at least 1 or a tuple, each item a View"),
        ({"strategy": "guess"}, ["a b", "c d"], "strategy must be one of 'mi_fix'"),
    ],
)
def test_what_makes_no_sense_is_refused(settings: dict[str, Any], texts: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MultiViewEncoder(**FAST | settings).fit(texts)


def test_any_strategy_and_any_views_can_be_trained() -> None:
    ring = Strategy("neighbouring views", lambda n: [*range(n)], lambda n: [(a, (a + 1) % n) for a in range(n)])
    first_word = View(lambda text: text.split()[0])
    encoder = MultiViewEncoder(**FAST, strategy=ring, views=(first_word, PROMPT, View(token=0))).fit(TEXTS)
    assert encoder.transform(TEXTS).shape == (6, 384)
    # The first view is the one that transform uses.
    np.testing.assert_array_equal(encoder.transform(["rain falls"]), encoder.transform(["rain dance"]))


def test_a_reader_is_shared_on_request_and_nothing_is_kept_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[Any, int]] = []
    original = TokenReader._read

    def counted(self: TokenReader, texts: Any) -> Any:
        calls.append((weakref.ref(self), len(texts)))
        return original(self, texts)

    monkeypatch.setattr(TokenReader, "_read", counted)
    alone = MultiViewEncoder(**FAST).fit(TEXTS)
    expected = alone.transform(TEXTS)
    gc.collect()
    assert [reader() for reader, _ in calls] == [None, None]
    calls.clear()
    reader = TokenReader("minilm", 1)
    shared = MultiViewEncoder(**FAST).fit(TEXTS, reader=reader)
    found = shared.transform([*TEXTS, "one more", "one more"], reader=reader)
    assert [count for _, count in calls] == [6, 1]
    assert len(reader) == 7
    np.testing.assert_array_equal(found[:6], expected)


def test_a_reader_of_another_model_is_refused() -> None:
    with pytest.raises(ValueError, match=r"reader must have the model, tune_layers and device \('minilm', 1, 'cpu'\)"):
        MultiViewEncoder(**FAST).fit(TEXTS, reader=TokenReader("minilm", 2))


def test_long_texts_are_cut() -> None:
    encoder = MultiViewEncoder(**FAST, epochs=0, max_words=3).fit(TEXTS)
    np.testing.assert_array_equal(encoder.transform(["a b c d"]), encoder.transform(["a b c"]))


@pytest.mark.parametrize(("setting", "value"), [("batch_size", 1), ("random_state", -1)])
def test_settings_out_of_range_are_refused_by_name(setting: str, value: int) -> None:
    with pytest.raises(ValueError, match=f"{setting} must be an integer at least .* got {value}"):
        MultiViewEncoder(**FAST | {setting: value}).fit(TEXTS)


def test_a_pickled_encoder_gives_the_same_bytes() -> None:
    encoder = MultiViewEncoder(**FAST).fit(TEXTS)
    again = pickle.loads(pickle.dumps(encoder))
    np.testing.assert_array_equal(again.transform(TEXTS), encoder.transform(TEXTS))
