"""Tuning of the last layers: what moves, what stays, and that it helps."""

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy, normalize

from offmap import tensorfile
from offmap.data import TextEncoder, text_model
from offmap.data.text_tuning import UpperLayers, _class_means, _inputs_of, _SimilarLengths, run_below, tuned_copy

pytest.importorskip("sentence_transformers", reason="needs the extra text")

# Classes that the untuned model does not have in mind: is the verb a question, or an order?
TEXTS = [f"{start} the {thing}{end}" for thing in ("card", "account", "transfer", "cheque", "cash", "fee")
         for start, end in (("where is", "?"), ("cancel", "!"))]  # fmt: skip
LABELS = ["question", "order"] * 6


def contrast(vectors: Any) -> float:
    """How much closer texts of one class are than texts of two."""
    cosines = vectors @ vectors.T
    same = np.equal.outer(LABELS, LABELS) & ~np.eye(len(LABELS), dtype=bool)
    return float(cosines[same].mean() - cosines[np.not_equal.outer(LABELS, LABELS)].mean())


@pytest.mark.parametrize("layers", [1, 2])
def test_tuning_learns_the_classes_and_moves_the_last_layers_only(layers: int) -> None:
    base = text_model.load("minilm", "cpu")
    before = text_model.digest(base.state_dict())
    encoder = TextEncoder(tune_layers=layers, epochs=6, batch_size=6, random_state=0).fit(TEXTS, LABELS)
    assert text_model.digest(base.state_dict()) == before
    assert not any(parameter.grad is not None for parameter in base.parameters())

    losses = encoder.history_["cross_entropy"]
    assert len(losses) == 6
    assert losses[-1] < losses[0] / 2
    assert contrast(encoder.transform(TEXTS)) > contrast(TextEncoder().transform(TEXTS)) + 0.1

    original = text_model.layers_of(base).state_dict()
    assert {name.partition(".")[0] for name in encoder.tuned_} == {str(6 - n) for n in range(1, layers + 1)}
    assert all(not torch.equal(tensor, original[name]) for name, tensor in encoder.tuned_.items())
    assert all(tensor.shape == original[name].shape for name, tensor in encoder.tuned_.items())


def test_the_same_seed_gives_the_same_bytes_and_the_state_survives_every_copy(
    tiny_model: Callable[[str], str], tmp_path: Path
) -> None:
    torch.manual_seed(5)
    random = torch.get_rng_state()
    first, second = (
        TextEncoder(model=tiny_model("bert"), tune_layers=2, epochs=1, random_state=0).fit(TEXTS, LABELS) for _ in "ab"
    )
    assert torch.equal(torch.get_rng_state(), random)
    assert text_model.digest(first.tuned_) == text_model.digest(second.tuned_)

    vectors = first.transform(TEXTS)
    assert "_built" in vars(first)
    assert "_built" not in first.__getstate__()
    tensorfile.write(tmp_path / "tuned.safetensors", first.tuned_)
    restored = TextEncoder(model=first.model, tune_layers=2, cache=False)
    restored.tuned_ = tensorfile.read(tmp_path / "tuned.safetensors")
    for twin in (restored, pickle.loads(pickle.dumps(first)), copy.deepcopy(first), first.set_params(cache=False)):
        np.testing.assert_array_equal(twin.transform(TEXTS), vectors)


def test_vectors_of_another_tuning_are_not_taken_from_the_cache(
    tiny_model: Callable[[str], str], embeddings: Path
) -> None:
    encoder = TextEncoder(model=tiny_model("bert"), tune_layers=1, epochs=2, lr=1e-2, random_state=0)
    plain = TextEncoder(model=encoder.model).transform(TEXTS)
    tuned = encoder.fit(TEXTS, LABELS).transform(TEXTS)
    other = encoder.set_params(random_state=1).fit(TEXTS, LABELS).transform(TEXTS)
    assert len(list(embeddings.iterdir())) == 3
    assert min(abs(tuned - plain).max(), abs(tuned - other).max()) > 1e-4
    np.testing.assert_array_equal(encoder.set_params(cache=False).transform(TEXTS), other)


@pytest.mark.parametrize("kind", ["bert", "mpnet", "distilbert", "roberta"])
@pytest.mark.parametrize("layers", [1, 3])
def test_the_upper_layers_alone_have_the_vectors_and_gradients_of_the_whole(
    kind: str, layers: int, tiny_model: Callable[[str], str]
) -> None:
    whole = text_model.load(tiny_model(kind), "cpu")
    texts, codes = TEXTS[:5], torch.tensor([0, 1, 0, 1, 0])
    cut = copy.deepcopy(whole)
    moving = text_model.layers_of(cut)
    states, vectors = run_below(cut, texts, moving[3 - layers])
    np.testing.assert_allclose(vectors, whole.encode(texts, show_progress_bar=False), atol=1e-5)
    del moving[: 3 - layers]
    upper = UpperLayers(cut)

    full = whole(text_model.tokens(whole, texts, width=24))["sentence_embedding"]
    directions = _class_means(vectors, codes)
    for found in (full, upper(states)):
        cross_entropy(20 * normalize(found) @ directions.T, codes).backward()
    torch.testing.assert_close(upper(states), full, atol=1e-5, rtol=0)
    for mine, theirs in zip(moving.parameters(), text_model.layers_of(whole)[-layers:].parameters(), strict=True):
        assert mine.grad is not None
        torch.testing.assert_close(mine.grad, theirs.grad, atol=1e-4, rtol=1e-3)
    whole.zero_grad(set_to_none=True)


def test_class_means() -> None:
    vectors = torch.tensor([[2.0, 0.0], [0.0, 1.0], [0.0, 3.0], [3.0, 0.0]])
    expected = torch.tensor([[1.0, 1.0], [1.0, 1.0]]) / 2**0.5
    torch.testing.assert_close(_class_means(vectors, torch.tensor([0, 0, 1, 1])), expected)
    torch.testing.assert_close(_class_means(vectors, torch.tensor([0, 1, 1, 0])), torch.eye(2))


def test_batches_go_over_each_text_once_and_hold_texts_of_similar_length() -> None:
    torch.manual_seed(0)
    lengths, codes = torch.randint(4, 60, (500,)), torch.arange(500)
    batches = _SimilarLengths(lengths, codes, size=32)
    first, second = list(batches), list(batches)
    assert len(first) == len(batches) == 16
    for drawn in (first, second):
        assert sorted(torch.cat([rows for rows, _ in drawn]).tolist()) == list(range(500))
        assert all(torch.equal(rows, y) for rows, y in drawn)
        padded = sum(len(rows) * int(lengths[rows].max()) for rows, _ in drawn)
        assert padded < 1.4 * int(lengths.sum())
    assert {frozenset(rows.tolist()) for rows, _ in first}.isdisjoint({frozenset(rows.tolist()) for rows, _ in second})


def test_a_hook_is_taken_off_again(tiny_model: Callable[[str], str]) -> None:
    network = copy.deepcopy(text_model.load(tiny_model("bert"), "cpu"))
    layer = text_model.layers_of(network)[1]
    with _inputs_of(layer) as reached:
        network(text_model.tokens(network, ["a text"], 8))
    network(text_model.tokens(network, ["a text"], 8))
    assert [state.shape for state in reached] == [(1, 8, 16)]


@pytest.mark.parametrize(
    ("y", "layers", "message"),
    [
        (None, 1, "tune_layers above 0 requires y to be passed, but the target y is None"),
        (["one"] * 12, 1, "y holds one class only"),
        (LABELS[:-1], 1, "inconsistent numbers of samples"),
        ([0.5, float("nan")] * 6, 1, "Input y contains NaN"),
        (np.linspace(0, 1, 12), 1, "Unknown label type: continuous"),
        (LABELS, 4, "tune_layers must be at most 3, the layers of the model; got 4"),
    ],
)
def test_what_cannot_be_learnt_is_refused(y: Any, layers: int, message: str, tiny_model: Callable[[str], str]) -> None:
    encoder = TextEncoder(model=tiny_model("bert"), tune_layers=layers)
    with pytest.raises(ValueError, match=message):
        encoder.fit(TEXTS, y)
    assert not hasattr(encoder, "tuned_")


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("albert", "tune_layers must be 0: AlbertModel has no list of layers"),
        ("electra", "tune_layers must be 0: the last layers of ElectraModel cannot run alone"),
    ],
)
def test_a_model_that_cannot_be_cut_in_two_is_refused(
    kind: str, message: str, tiny_model: Callable[[str], str]
) -> None:
    with pytest.raises(ValueError, match=message):
        TextEncoder(model=tiny_model(kind), tune_layers=1).fit(TEXTS, LABELS)


def test_layers_of_another_model_are_refused(tiny_model: Callable[[str], str]) -> None:
    network = text_model.load(tiny_model("bert"), "cpu")
    with pytest.raises(ValueError, match=r"tuned_ holds '7\.weight', which the model does not have"):
        tuned_copy(network, {"7.weight": torch.zeros(1)})
