"""Sentence encoders from several views: the halves of a model, templates, training and the measure."""

import copy
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import rankdata

from offmap.data import DataNotFound, text_model
from offmap.dependence.contrastive import SETS, STRATEGIES, TEMPLATES, Pairs, SentenceViews, spearman, sts_pairs
from offmap.dependence.contrastive.halves import Upper, states_below

pytest.importorskip("sentence_transformers", reason="needs the extra text")

TEXTS = (
    "a cat sleeps on the sofa",
    "the kitten naps on a couch",
    "stocks fell sharply on Monday",
    "shares dropped at the start of the week",
    "it will rain tomorrow",
    "a man plays the guitar in the park while children listen to him",
)
FAST: dict[str, Any] = {"layers": 1, "batch_size": 6, "random_state": 0}


def test_two_halves_of_a_model_give_what_the_whole_gives() -> None:
    whole = text_model.load("minilm", "cpu")
    for layers in (1, 3):
        upper = Upper("minilm", "cpu", layers, reset=False).eval()
        states = states_below("minilm", "cpu", layers, TEXTS)
        expected = torch.from_numpy(whole.encode(list(TEXTS), show_progress_bar=False))
        found = torch.nn.functional.normalize(upper.vectors(states, gap=None))
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)
        with torch.no_grad():
            torch.testing.assert_close(upper(states, gap=None), upper.vectors(states, gap=None), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("number", range(4))
def test_the_gap_of_each_template_is_where_it_says(number: int) -> None:
    network, template = text_model.load("minilm", "cpu"), TEMPLATES[number]
    for text in TEXTS:
        ids = network.tokenizer(template.around(text))["input_ids"]
        assert ids.count(network.tokenizer.mask_token_id) == 1
        assert ids[template.gap] == network.tokenizer.mask_token_id


def test_the_state_at_the_gap_is_the_vector() -> None:
    texts = tuple(TEMPLATES[0].around(text) for text in TEXTS[:3])
    network = text_model.load("minilm", "cpu")
    found = Upper("minilm", "cpu", 2, reset=False).eval().vectors(states_below("minilm", "cpu", 2, texts), gap=-3)
    for text, vector in zip(texts, found, strict=True):
        with torch.no_grad():
            states = network[0].auto_model(**network.tokenizer(text, return_tensors="pt")).last_hidden_state[0]
        torch.testing.assert_close(vector, states[-3], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("views", ["dropout", "templates"])
def test_a_text_gets_the_same_bytes_whatever_comes_with_it(views: Any) -> None:
    encoder = SentenceViews(epochs=0, views=views, **FAST).fit(TEXTS)
    whole = encoder.transform(TEXTS)
    np.testing.assert_array_equal(encoder.transform(TEXTS[3:4]), whole[3:4])
    np.testing.assert_array_equal(encoder.transform(TEXTS[::-1]), whole[::-1])
    np.testing.assert_allclose(np.linalg.norm(whole, axis=1), 1, rtol=1e-5)


def test_without_training_it_is_the_model_as_it_was() -> None:
    expected = text_model.load("minilm", "cpu").encode(list(TEXTS), show_progress_bar=False)
    np.testing.assert_allclose(SentenceViews(epochs=0, **FAST).fit(TEXTS).transform(TEXTS), expected, atol=1e-5)
    assert abs(SentenceViews(epochs=0, start="reset", **FAST).fit(TEXTS).transform(TEXTS) - expected).max() > 0.01


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_training_draws_views_together_and_keeps_the_shared_model(strategy: Any) -> None:
    shared = text_model.load("minilm", "cpu")
    before, random = text_model.digest(shared.state_dict()), torch.get_rng_state()
    settings = FAST | {"epochs": 8, "lr": 1e-3, "start": "reset", "strategy": strategy, "temperature": 0.5}
    encoder = SentenceViews(**settings).fit(TEXTS)
    losses = encoder.history_[strategy]
    assert np.mean(losses[-2:]) < np.mean(losses[:2])
    assert text_model.digest(shared.state_dict()) == before
    assert torch.equal(torch.get_rng_state(), random)


def test_the_same_seed_gives_the_same_bytes() -> None:
    first, second, other = (
        SentenceViews(**FAST | {"random_state": seed, "views": "templates", "strategy": "mi-sample"}).fit(TEXTS)
        for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first.transform(TEXTS), second.transform(TEXTS))
    assert not np.array_equal(first.transform(TEXTS), other.transform(TEXTS))


def test_dropout_gives_each_view_a_pass_of_its_own() -> None:
    upper, states = Upper("minilm", "cpu", 1, reset=False).train(), states_below("minilm", "cpu", 1, TEXTS)
    first, second = upper(states, None), upper(states, None)
    assert not torch.allclose(first, second)
    settled = copy.deepcopy(upper).eval()
    assert torch.equal(settled(states, None), settled(states, None))


@pytest.mark.parametrize(
    ("settings", "texts", "message"),
    [
        ({}, ["one text"], "texts must be at least 2; got 1"),
        ({}, "one text", "texts must be a sequence of texts"),
        ({}, ["fine", " "], "texts must be a sequence of texts, each with something in it"),
        ({"layers": 7}, ["a b", "c d"], "layers must be at most 6, those of the model; got 7"),
        ({"count": 3}, ["a b", "c d"], "count must be 2, 4 or 8; got 3"),
        ({"count": 8, "views": "templates"}, ["a b", "c d"], "count must be at most 4 with templates; got 8"),
        ({"strategy": "guess"}, ["a b", "c d"], "strategy must be 'mi-fix'"),
    ],
)
def test_what_makes_no_sense_is_refused(settings: dict[str, Any], texts: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SentenceViews(**FAST | settings).fit(texts)


def test_spearman_is_the_correlation_of_ranks_of_each_set() -> None:
    rng = np.random.default_rng(0)
    vectors = {f"text {number}": rng.normal(size=4).astype(np.float32) for number in range(12)}
    left, right = tuple(vectors), tuple(vectors)[::-1]
    names = np.array(["first"] * 6 + ["second"] * 6, object)
    pairs = Pairs(left, right, rng.random(12), names)
    calls: list[int] = []

    def encode(texts: Any) -> Any:
        calls.append(len(texts))
        return np.stack([vectors[text] for text in texts])

    found = spearman(encode, pairs)
    assert calls == [12]
    for name in ("first", "second"):
        rows = [row for row in range(12) if names[row] == name]
        cosines = [_cosine(vectors[left[row]], vectors[right[row]]) for row in rows]
        differences = rankdata(cosines) - rankdata(pairs.score[rows])
        assert found[name] == pytest.approx(1 - 6 * float((differences**2).sum()) / (6 * (6**2 - 1)))


def _cosine(a: Any, b: Any) -> float:
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


@pytest.mark.data
def test_the_seven_sets_have_the_pairs_that_the_field_counts() -> None:
    try:
        pairs = sts_pairs("test")
    except DataNotFound as error:
        pytest.skip(str(error))
    counts = {name: int((pairs.dataset == name).sum()) for name in SETS}
    assert counts == dict(zip(SETS, (3108, 1500, 3750, 3000, 1186, 1379, 4927), strict=True))
    few, again = sts_pairs(limit=10), sts_pairs(limit=10)
    assert few.left == again.left
    assert len(few.left) == 70
    with pytest.raises(ValueError, match="split must be 'test'"):
        sts_pairs("dev")
