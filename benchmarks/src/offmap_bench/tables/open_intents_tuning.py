"""Does ANS gain from tuning its encoder? Measured on known classes only."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from offmap.data import known_classes, load
from offmap.data.text_ngrams import NgramFeatures
from offmap.openset import ANSClassifier
from offmap_bench.table import Table
from offmap_bench.tables.decision_rules import sub_open_texts
from offmap_bench.tables.open_intents import COMPARED, own
from offmap_bench.tables.open_intents_encoder import ROUNDED, frozen, name_of
from offmap_bench.tables.open_intents_ngrams import WEIGHT
from offmap_bench.tables.open_intents_shell import SHELL, score_sub_open
from offmap_bench.token_states import token_states
from offmap_bench.tuned_mpnet import Tuning, embed, tuned_layer

TUNING = Tuning(epochs=1, batch_size=32, lr=1e-4, per_class=150)


@dataclass(frozen=True)
class Features:
    """What ANS gets of a text.

    Args:
        tuned: Whether the last layer of the encoder learns the sub-known classes.
        ngrams: Whether features of character n-grams are appended.
        space: The space of the heads.
    """

    tuned: bool = True
    ngrams: bool = True
    space: Literal["raw", "adapted"] = "adapted"


def sub_open_places(title: str, seed: int) -> tuple[NDArray[Any], ...]:
    """Splits the training rows of the known classes of a setting; rows are given by their places."""
    y = np.asarray(load(name_of(title), "train").y)
    kept = np.flatnonzero(np.isin(y, known_classes(y, int(title.split()[-2]) / 100, seed)))
    return sub_open_texts(kept, y[kept], seed)


@lru_cache(maxsize=1)
def tuned_vectors(title: str, seed: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Embeddings of the training and test rows by an encoder that learns the sub-known classes."""
    learnt, labels, tested, *_ = sub_open_places(title, seed)
    states = token_states(name_of(title), "train")
    upper = tuned_layer(states, learnt, np.unique(labels, return_inverse=True)[1], TUNING, seed)
    return embed(upper, states.of(learnt)), embed(upper, states.of(tested))


def measure(method: Features, title: str, seed: int) -> dict[str, float]:
    """Fits ANS to the sub-known classes, and scores how well sub-open rows are told from theirs."""
    learnt, labels, tested, test_labels, known = sub_open_places(title, seed)
    vectors = frozen(name_of(title), "train")
    X, X_test = tuned_vectors(title, seed) if method.tuned else (vectors[learnt], vectors[tested])
    if method.ngrams:
        texts = np.asarray(load(name_of(title), "train").X)
        letters = NgramFeatures.fit(list(texts[learnt]), seed)
        X, X_test = (letters.beside(rows, list(texts[at]), WEIGHT) for rows, at in ((X, learnt), (X_test, tested)))
    ans = own(ANSClassifier, space=method.space, random_state=seed)
    return score_sub_open(ans, X, labels, X_test, test_labels, known)


TUNED = Table(
    name="open-intents-tuning",
    source="Open-World Learning (thesis), chapter 3: the tuned encoder, on known classes",
    caption="ANS on all-mpnet-base-v2, frozen and tuned; half of the known classes are treated as unknown.",
    rows={
        "frozen, n-grams": Features(tuned=False),
        "tuned": Features(ngrams=False),
        "tuned, raw space": Features(ngrams=False, space="raw"),
        "tuned, n-grams": Features(),
        "tuned, n-grams, raw space": Features(space="raw"),
    },
    columns=SHELL.columns,
    metrics=SHELL.metrics,
    measure=measure,
    seeds={"cpu": range(2)},
    profiles={"cpu": {}},
    needs=COMPARED.needs,
    notes="The thesis tunes the last layers of BERT to the known classes before ANS. Here the last of the twelve "
    "layers of all-mpnet-base-v2 (109 M parameters, as BERT) learns the sub-known classes in one epoch, in batches of "
    f"{TUNING.batch_size} at a learning rate of {TUNING.lr:g}, from at most {TUNING.per_class} texts per class; it is "
    f"frozen in the first row. {ROUNDED}Only training rows of the known classes are used, as in decision-rules; the "
    "metrics are those of open-intents-ngram-weight.",
    higher_is_better=SHELL.higher_is_better,
    formats=SHELL.formats,
    average=True,
)

TABLES = (TUNED,)
