"""The table of tuned encoders: which rows are fitted and tested, and what each row of the table gets of a text."""

from types import SimpleNamespace

import numpy as np
import pytest

from offmap_bench.places import RESULTS
from offmap_bench.samples import mean_sample, read_samples
from offmap_bench.tables import open_intents_tuning
from offmap_bench.tables.open_intents_tuning import TUNED, Features, measure, sub_open_places

WORDS = ("card", "loan", "visa", "cash", "bank", "rate", "fees", "debt")
Y = np.repeat(np.arange(8), 60)
TEXTS = np.array([f"{WORDS[label]} question {place}" for place, label in enumerate(Y)], object)
TITLE = "BANKING 50 %"


@pytest.fixture(autouse=True)
def _few_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    vectors = (np.eye(8)[Y] + 0.1 * rng.normal(size=(len(Y), 8))).astype(np.float32)
    noise = rng.normal(size=vectors.shape).astype(np.float32)

    def tuned(title: str, seed: int) -> tuple[object, ...]:
        learnt, _, tested, *_ = sub_open_places(title, seed)
        return noise[learnt], noise[tested]

    monkeypatch.setattr(open_intents_tuning, "load", lambda name, split: SimpleNamespace(X=TEXTS, y=Y))
    monkeypatch.setattr(open_intents_tuning, "frozen", lambda name, split: vectors)
    monkeypatch.setattr(open_intents_tuning, "tuned_vectors", tuned)


def test_half_of_the_known_classes_are_fitted_and_no_row_is_tested_that_was_fitted() -> None:
    learnt, labels, tested, test_labels, known = sub_open_places(TITLE, seed=0)
    assert (Y[learnt] == labels).all()
    assert (Y[tested] == test_labels).all()
    assert not set(learnt) & set(tested)
    assert set(labels) == set(known)
    assert len(known) == 2
    assert len(set(test_labels)) == 4


@pytest.mark.parametrize(
    ("features", "works"),
    [(Features(tuned=False, ngrams=False), True), (Features(ngrams=False), False), (Features(), True)],
    ids=["frozen vectors", "tuned vectors, here noise", "n-grams beside noise"],
)
def test_each_row_gets_the_vectors_it_names(features: Features, works: bool) -> None:
    found = measure(features, TITLE, seed=0)
    assert set(found) == set(TUNED.metrics)
    assert (found["auroc"] > 0.75) == works


@pytest.mark.parametrize("row", [row for row in TUNED.rows if row != "frozen, n-grams"])
def test_tuning_does_not_help_in_the_stored_results(row: str) -> None:
    samples, _ = read_samples(TUNED, "cpu", RESULTS)

    def mean(name: str) -> float:
        return mean_sample([samples[name, column, "auroc"] for column in TUNED.columns], ".4f").mean

    assert mean("frozen, n-grams") > mean(row) + 0.003
