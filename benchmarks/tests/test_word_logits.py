"""The plain rival on embeddings and words."""

import numpy as np
import pytest

from offmap.metrics import auroc
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
    return WordLogits().fit(np.array(texts), np.repeat(KNOWN, len(PHRASES)))


def test_texts_of_other_topics_are_novel(fitted: WordLogits) -> None:
    known = np.array([f"please {topic} help me with {n} things" for topic in KNOWN for n in range(9)])
    others = np.array([f"please {topic} help me with {n} things" for topic in OPEN for n in range(9)])
    assert auroc(fitted.novelty(known), fitted.novelty(others)) > 0.95
    assert (fitted.predict_closed(known) == np.repeat(KNOWN, 9)).mean() > 0.9
