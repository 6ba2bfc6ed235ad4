"""The plain rival on embeddings and words."""

import numpy as np
import pytest

from offmap.metrics import auroc, open_set_summary
from offmap_bench.tables.open_intents_ngrams import best_f1
from offmap_bench.word_logits import WordLogits

pytest.importorskip("sentence_transformers", reason="needs the extra text")

KNOWN, OPEN = ("oracle", "haskell", "matlab"), ("scala", "drupal")
PHRASES = [
    f"{start} {what} in {{}}{end}"
    for start in ("how to", "cannot", "why does it")
    for what in ("sort a list", "read a file", "draw a plot", "call a function")
    for end in ("", " quickly", "?")
]


@pytest.fixture(scope="module")
def fitted() -> WordLogits:
    texts = [phrase.format(topic) for topic in KNOWN for phrase in PHRASES]
    return WordLogits(alpha=0.2, held_out=0.3, random_state=0).fit(np.array(texts), np.repeat(KNOWN, len(PHRASES)))


def test_texts_of_other_topics_are_rejected(fitted: WordLogits) -> None:
    known = np.array([f"please {topic} help me with {n} things" for topic in KNOWN for n in range(9)])
    others = np.array([f"please {topic} help me with {n} things" for topic in OPEN for n in range(9)])
    assert auroc(fitted.novelty(known), fitted.novelty(others)) > 0.95
    assert (fitted.predict_closed(known) == np.repeat(KNOWN, 9)).mean() > 0.9
    assert (fitted.predict(others) == fitted.unknown_label_).mean() > 0.9


def test_the_stated_share_of_fresh_known_texts_is_rejected(fitted: WordLogits) -> None:
    fresh = np.array([phrase.format(topic) + " now" for topic in KNOWN for phrase in PHRASES])
    assert 0.05 < (fitted.predict(fresh) == fitted.unknown_label_).mean() < 0.45


def test_the_best_threshold_is_at_least_as_good_as_the_chosen_one(fitted: WordLogits) -> None:
    texts = np.array([f"{topic} question {n}" for topic in (*KNOWN, *OPEN) for n in range(9)])
    truth = np.repeat((*KNOWN, *OPEN), 9)
    chosen = open_set_summary(truth, fitted.predict(texts), np.array(KNOWN), fitted.unknown_label_)["f1"]
    assert chosen <= best_f1(fitted, texts, truth, np.array(KNOWN)) <= 1
