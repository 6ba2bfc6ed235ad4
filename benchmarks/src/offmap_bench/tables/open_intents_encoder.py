"""Open intents with an encoder of the size that the thesis uses."""

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch.nn.functional import normalize

from offmap.data import load
from offmap.data.text_ngrams import NgramFeatures
from offmap.openset import ANSClassifier, MSPClassifier
from offmap_bench.open_set_scoring import OpenSetTask, score
from offmap_bench.plain_scores import PlainScore
from offmap_bench.table import Table
from offmap_bench.tables.open_intents import (
    COMPARED,
    FORMATS,
    HIGHER,
    SCORED,
    SETS,
    SOURCE,
    own,
    texts_of,
)
from offmap_bench.tables.open_intents_ngrams import WEIGHT
from offmap_bench.token_states import token_states

Vectors = dict[str, NDArray[np.float32]]


@lru_cache(maxsize=9)
def frozen(name: str, split: str) -> NDArray[Any]:
    """The sentence embeddings of one split."""
    return normalize(token_states(name, split).vectors).numpy()


def rows_of(title: str, seed: int) -> dict[str, NDArray[np.intp]]:
    """The places of the rows of a setting: those of known classes, and all of the test split."""
    name, known = name_of(title), texts_of(title, seed).known
    labels = {split: np.asarray(load(name, split).y) for split in ("train", "dev", "test")}
    kept = {split: np.flatnonzero(np.isin(labels[split], known)) for split in ("train", "dev")}
    return kept | {"test": np.arange(len(labels["test"]))}


def name_of(title: str) -> str:
    """The name of the data set of a setting."""
    return SETS[title.rsplit(" ", 2)[0]]


def embedded_task(title: str, seed: int, vectors: Vectors) -> OpenSetTask:
    """The setting with vectors in place of its texts."""
    return texts_of(title, seed)._replace(X=vectors["train"], X_dev=vectors["dev"], X_test=vectors["test"])


def frozen_task(title: str, seed: int) -> OpenSetTask:
    """The setting on frozen embeddings and character n-grams."""
    vectors = {split: frozen(name_of(title), split)[rows] for split, rows in rows_of(title, seed).items()}
    return embedded_task(title, seed, with_letters(vectors, texts_of(title, seed), seed))


def measure_frozen(method: Any, title: str, seed: int) -> dict[str, float]:
    """Fits the method to frozen embeddings of the known classes and evaluates it on the whole test set."""
    return score(method.set_params(random_state=seed), frozen_task(title, seed))


def with_letters(vectors: Vectors, texts: OpenSetTask, seed: int) -> Vectors:
    """Appends features of letters, which are learnt from the training texts, as ``TextEncoder`` does."""
    given = {"train": list(texts.X), "dev": list(texts.X_dev), "test": list(texts.X_test)}
    letters = NgramFeatures.fit(given["train"], seed)
    return {split: letters.beside(vectors[split], given[split], WEIGHT) for split in given}


SHARED: dict[str, Any] = {
    "source": f"{SOURCE}, tables 3.1 and 3.6.3",
    "columns": COMPARED.columns,
    "metrics": SCORED,
    "profiles": {"cpu": {}},
    "printed": {key: number for key, number in COMPARED.printed.items() if key[0] in ("MSP", "ANS")},
    "needs": COMPARED.needs,
    "higher_is_better": HIGHER,
    "formats": FORMATS,
    "average": True,
}
# Half the time, and hardly another vector.
ROUNDED = "Its layers below the last one multiply in 16 bits (cosine with the full precision 1.000 on 128 utterances). "

ENCODER = Table(
    name="open-intents-encoder",
    caption="The nine settings on frozen all-mpnet-base-v2, which is as large as BERT, with character n-grams.",
    rows={
        "MSP": own(MSPClassifier),
        "ANS": own(ANSClassifier),
        "nearest neighbour": PlainScore(score="nearest"),
        "max logit": PlainScore(score="max logit"),
    },
    measure=measure_frozen,
    seeds={"cpu": range(3)},
    notes="all-mpnet-base-v2 (109 M parameters, 768 features), frozen, in place of all-MiniLM-L6-v2 (22 M), with the "
    f"features of letters of open-intents-ngrams beside it. {ROUNDED}The thesis tunes the last layers of BERT (109 M). "
    "Methods, their parameters and splits as in open-intents; nothing was chosen anew.",
    **SHARED,
)

TABLES = (ENCODER,)
