"""The plain rival on embeddings and words."""

import numpy as np
import pytest

from offmap.metrics import auroc, open_set_summary
from offmap_bench.open_set_scoring import OpenSetTask, at_rates, best_f1
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
    labels = np.repeat(KNOWN, len(PHRASES))
    held_out = np.random.default_rng(0).random(len(texts)) < 0.3
    model = WordLogits(alpha=0.2, random_state=0).fit(np.array(texts)[~held_out], labels[~held_out])
    return model.recalibrate(np.array(texts)[held_out])


def test_texts_of_other_topics_are_rejected(fitted: WordLogits) -> None:
    known = np.array([f"please {topic} help me with {n} things" for topic in KNOWN for n in range(9)])
    others = np.array([f"please {topic} help me with {n} things" for topic in OPEN for n in range(9)])
    assert auroc(fitted.novelty(known), fitted.novelty(others)) > 0.95
    assert (fitted.predict_closed(known) == np.repeat(KNOWN, 9)).mean() > 0.9
    assert (fitted.predict(others) == fitted.unknown_label_).mean() > 0.9


def test_the_stated_share_of_fresh_known_texts_is_rejected(fitted: WordLogits) -> None:
    fresh = np.array([phrase.format(topic) + " now" for topic in KNOWN for phrase in PHRASES])
    assert 0.05 < (fitted.predict(fresh) == fitted.unknown_label_).mean() < 0.45


def test_the_best_threshold_is_at_least_as_good_as_the_chosen_ones(fitted: WordLogits) -> None:
    texts = np.array([f"{topic} question {n}" for topic in (*KNOWN, *OPEN) for n in range(9)])
    task = OpenSetTask(texts, texts, texts, texts, np.repeat((*KNOWN, *OPEN), 9), np.array(KNOWN))
    answers, closest = fitted.predict(texts), fitted.predict_closed(texts)
    chosen = open_set_summary(task.y_test, answers, task.known, fitted.unknown_label_)["f1"]
    suggested = at_rates(fitted.p_value(texts), closest, fitted.unknown_label_, task)["f1, suggested rate"]
    assert max(chosen, suggested) <= best_f1(fitted.novelty(texts), closest, fitted.unknown_label_, task) <= 1
