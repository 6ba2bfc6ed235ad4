"""Features of the letters of texts: against a naive loop, beside embeddings, in files."""

import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.utils import murmurhash3_32

import offmap
from offmap.data import TextEncoder
from offmap.data.text_ngrams import BUCKETS, NGRAMS, NgramFeatures, check_arrays
from offmap.metrics import auroc
from offmap.openset import MSPClassifier

pytest.importorskip("sentence_transformers", reason="needs the extra text")

TOPICS = ("oracle", "haskell", "matlab", "wordpress")
PATTERNS = ("how to sort a list in {}", "{} throws an error when I call it", "best way to learn {}?", "slow loop in {}")
TEXTS = [pattern.format(topic) for topic in TOPICS for pattern in PATTERNS]
LABELS = np.repeat(TOPICS, len(PATTERNS))


def naive_counts(text: str) -> Counter[int]:
    """Counts the runs of letters of each word, spaces around it included, by bucket."""
    found: Counter[int] = Counter()
    for word in text.lower().split():
        padded = f" {word} "
        for size in range(NGRAMS[0], NGRAMS[1] + 1):
            runs = [padded[start : start + size] for start in range(len(padded) - size + 1)] or [padded]
            found.update(abs(murmurhash3_32(run)) % BUCKETS for run in runs)
            if len(padded) <= size:
                break
    return found


def naive_weights(texts: list[str]) -> np.ndarray:
    counts = [naive_counts(text) for text in texts]
    rows = np.zeros((len(texts), BUCKETS))
    for row, found in zip(rows, counts, strict=True):
        for bucket, count in found.items():
            idf = math.log((1 + len(texts)) / (1 + sum(bucket in other for other in counts))) + 1
            row[bucket] = (1 + math.log(count)) * idf
        row /= np.linalg.norm(row)
    return rows


def test_features_are_leading_singular_directions_of_weighted_counts() -> None:
    rows = naive_weights(TEXTS)
    found = NgramFeatures.fit(TEXTS, seed=0).transform(TEXTS)
    left, values, _ = np.linalg.svd(rows, full_matrices=False)
    expected = (left * values)[:, : found.shape[1]]
    expected /= np.linalg.norm(expected, axis=1).mean()
    # Singular vectors have no sign; products of rows do not depend on it.
    np.testing.assert_allclose(found @ found.T, expected @ expected.T, atol=1e-4)


def test_rows_keep_the_length_of_their_embedding() -> None:
    plain = TextEncoder().transform(TEXTS)
    for weight in (0.3, 2.0):
        both = TextEncoder(ngram_weight=weight, random_state=0).fit_transform(TEXTS)
        assert both.shape[1] > plain.shape[1]
        assert both.dtype == np.float32
        np.testing.assert_allclose(np.linalg.norm(both, axis=1), np.linalg.norm(plain, axis=1), rtol=1e-5)
        head, tail = both[:, :384], both[:, 384:]
        # As a mean over the training texts, the appended part is ``weight`` times as long as the embedding.
        ratio = np.linalg.norm(tail, axis=1) / np.linalg.norm(head, axis=1)
        assert ratio.mean() == pytest.approx(weight, rel=1e-3)
        np.testing.assert_allclose(head / np.linalg.norm(head, axis=1, keepdims=True), plain, atol=1e-5)


def test_no_weight_changes_nothing() -> None:
    encoder = TextEncoder(ngram_weight=0.0).fit(TEXTS)
    assert encoder.ngrams_ == {}
    np.testing.assert_array_equal(encoder.transform(TEXTS), TextEncoder().transform(TEXTS))


def test_a_text_gets_the_same_bytes_in_any_batch() -> None:
    encoder = TextEncoder(ngram_weight=0.8, random_state=0).fit(TEXTS)
    whole = encoder.transform([*TEXTS, "什么时候下雨", "!"])
    order = np.random.default_rng(0).permutation(len(TEXTS))[:7]
    np.testing.assert_array_equal(encoder.transform([TEXTS[row] for row in order]), whole[order])
    np.testing.assert_array_equal(encoder.transform("!"), whole[[-1]])
    assert np.isfinite(whole).all()


def test_texts_about_one_product_come_together() -> None:
    """Each row of phrases says one thing in three ways, each about another product with a name of its own."""
    phrases = [
        ("a slow mysql query", "oracle statement takes long", "postgres request needs minutes"),
        ("back up mysql", "save oracle data elsewhere", "dump a postgres copy"),
        ("mysql refuses my password", "cannot log in to oracle", "postgres login denied"),
        ("join two mysql tables", "combine rows of oracle relations", "merge sets in postgres"),
        ("install mysql on linux", "set up oracle under ubuntu", "getting postgres onto debian"),
        ("mysql date formatting", "show a day in oracle", "print time with postgres"),
        ("remove duplicates in mysql", "delete double oracle rows", "postgres drop repeated lines"),
        ("connect java to mysql", "oracle driver for a jvm", "use postgres from kotlin"),
    ]
    texts = [text for row in phrases for text in row]
    alike = (np.arange(len(texts))[:, None] - np.arange(len(texts))) % 3 == 0
    pairs = ~np.eye(len(texts), dtype=bool)

    def same_product_above_others(encoder: TextEncoder) -> float:
        cosines = (rows := encoder.fit_transform(texts)) @ rows.T
        return auroc(cosines[pairs & ~alike], cosines[pairs & alike])

    plain, both = TextEncoder(), TextEncoder(ngram_weight=0.8, random_state=0)
    assert same_product_above_others(both) > same_product_above_others(plain) + 0.05


def test_a_saved_classifier_answers_the_same(tmp_path: Path) -> None:
    encoder = TextEncoder(ngram_weight=0.8, random_state=0)
    classifier = MSPClassifier(encoder=encoder, epochs=2, calibration=0.3, alpha=0.3, random_state=0)
    classifier.fit(TEXTS * 3, np.tile(LABELS, 3))
    classifier.save(tmp_path / "topics.safetensors")
    loaded = offmap.load(tmp_path / "topics.safetensors")
    np.testing.assert_array_equal(loaded.novelty(TEXTS), classifier.novelty(TEXTS))


def test_an_encoder_must_be_fitted_to_texts() -> None:
    with pytest.raises(NotFittedError):
        TextEncoder(ngram_weight=0.8).transform(TEXTS)
    with pytest.raises(NotFittedError):
        TextEncoder().fit(TEXTS).set_params(ngram_weight=0.8).transform(TEXTS)
    with pytest.raises(ValueError, match="ngram_weight must be a number at least 0; got -1"):
        TextEncoder(ngram_weight=-1.0).fit(TEXTS)


IDF, AXES = np.ones(BUCKETS, np.float32), np.ones((2, BUCKETS), np.float32)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (None, "the arrays idf and axes"),
        ({"idf": IDF}, "the arrays idf and axes"),
        ({"idf": IDF, "axes": AXES.astype(np.float64)}, "32-bit"),
        ({"idf": IDF, "axes": "axes"}, "32-bit"),
        ({"idf": IDF[:-1], "axes": AXES}, "as many columns"),
        ({"idf": IDF, "axes": AXES[:, 1:]}, "as many columns"),
        ({"idf": IDF, "axes": AXES[0]}, "as many columns"),
        ({"idf": IDF * np.float32(np.nan), "axes": AXES}, "finite"),
    ],
)
def test_damaged_arrays_are_refused(arrays: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_arrays(arrays)
    check_arrays({"idf": IDF, "axes": AXES})
