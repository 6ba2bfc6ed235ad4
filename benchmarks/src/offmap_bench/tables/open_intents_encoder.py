"""Open intents with an encoder of the size that the thesis uses, frozen, and with its last layer tuned."""

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file
from torch.nn.functional import normalize

from offmap.data import known_classes, load
from offmap.data.store import user_cache
from offmap.files import replacing
from offmap.openset import ANSClassifier, MSPClassifier
from offmap_bench.plain_scores import PlainScore
from offmap_bench.table import Table
from offmap_bench.tables.open_intents import (
    ALPHA,
    COMPARED,
    FORMATS,
    HIGHER,
    SCORED,
    SETS,
    SOURCE,
    TABLE_1,
    TABLE_6_3,
    own,
    printed,
    score,
)
from offmap_bench.token_states import token_states
from offmap_bench.tuned_mpnet import Tuning, embed, tuned_layer

TUNING = Tuning(epochs=1, batch_size=32, lr=1e-4, per_class=150)


def known_rows(title: str, seed: int) -> tuple[str, NDArray[np.intp], NDArray[Any], NDArray[Any]]:
    """Returns the name of the set, the training rows of known classes, their labels, and the known classes."""
    name, ratio = SETS[title.rsplit(" ", 2)[0]], int(title.split()[-2])
    y = load(name, "train").y
    assert y is not None
    known = known_classes(y, ratio / 100, seed)
    rows = np.flatnonzero(np.isin(y, known))
    return name, rows, y[rows], known


@lru_cache(maxsize=6)
def frozen(name: str, split: str) -> NDArray[Any]:
    """The sentence embeddings of one split."""
    return normalize(token_states(name, split).vectors).numpy()


def measure_frozen(method: Any, title: str, seed: int) -> dict[str, float]:
    """Fits the method to frozen embeddings of the known classes and evaluates it on the whole test set."""
    name, rows, y, known = known_rows(title, seed)
    truth = np.asarray(load(name, "test").y)
    X, X_test = frozen(name, "train")[rows], frozen(name, "test")
    return score(method.set_params(random_state=seed), X, y, X_test, truth, known)


@lru_cache(maxsize=1)
def tuned(title: str, seed: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Embeddings of the training rows of known classes and of the test rows, after tuning; kept on disk."""
    how = f"{TUNING.epochs}-{TUNING.batch_size}-{TUNING.lr:g}"
    place = user_cache() / "tuned-mpnet" / f"{title.removesuffix(' %')}-{seed}-{how}.safetensors"
    if not place.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        with replacing(place) as fresh:
            save_file(_tune(title, seed), fresh)
    vectors = load_file(place)
    return vectors["train"], vectors["test"]


def _tune(title: str, seed: int) -> dict[str, NDArray[Any]]:
    name, rows, y, _ = known_rows(title, seed)
    states, test = token_states(name, "train"), token_states(name, "test")
    upper = tuned_layer(states, rows, np.unique(y, return_inverse=True)[1], TUNING, seed)
    return {"train": embed(upper, states.of(rows)), "test": embed(upper, test.of(np.arange(len(test.lengths))))}


def measure_tuned(method: Any, title: str, seed: int) -> dict[str, float]:
    """Fits the method to embeddings of the tuned encoder and evaluates it on the whole test set."""
    name, _, y, known = known_rows(title, seed)
    X, X_test = tuned(title, seed)
    return score(method.set_params(random_state=seed), X, y, X_test, np.asarray(load(name, "test").y), known)


def _numbers(table: Any) -> dict[str, Any]:
    return {row: table[row] for row in ("MSP", "ANS")}


SHARED: dict[str, Any] = {
    "source": f"{SOURCE}, tables 3.1 and 3.6.3",
    "columns": COMPARED.columns,
    "metrics": SCORED,
    "profiles": {"cpu": {}},
    "printed": printed(_numbers(TABLE_1), ("accuracy", "f1")) | printed(_numbers(TABLE_6_3), ("f1_open", "f1_known")),
    "needs": COMPARED.needs,
    "higher_is_better": HIGHER,
    "formats": FORMATS,
    "average": True,
}
# Half the time, and hardly another vector.
ROUNDED = "Its layers below the last one multiply in 16 bits (cosine with the full precision 1.000 on 128 utterances). "

ENCODER = Table(
    name="open-intents-encoder",
    caption="Open intents on frozen embeddings of all-mpnet-base-v2, which is of the size of BERT.",
    rows={
        "MSP": own(MSPClassifier),
        "ANS": ANSClassifier(alpha=ALPHA),
        "nearest neighbour": PlainScore(score="nearest", alpha=ALPHA),
        "max logit": PlainScore(score="max logit", alpha=ALPHA),
    },
    measure=measure_frozen,
    seeds={"cpu": range(3)},
    notes="all-mpnet-base-v2 (109 M parameters, 768 features), frozen, in place of all-MiniLM-L6-v2 (22 M). "
    f"{ROUNDED}The thesis tunes the last layers of BERT (109 M). Methods, their parameters and splits as in "
    "open-intents; nothing was chosen anew.",
    **SHARED,
)

TUNED_ENCODER = Table(
    name="open-intents-tuned-encoder",
    caption="Open intents as the thesis has them: an encoder of the size of BERT, its last layer tuned to the known "
    "classes.",
    rows={
        "MSP": own(MSPClassifier),
        "ANS": ANSClassifier(alpha=ALPHA, space="raw"),
        "nearest neighbour": PlainScore(score="nearest", alpha=ALPHA, adapter_epochs=0),
        "max logit": PlainScore(score="max logit", alpha=ALPHA, adapter_epochs=0),
    },
    measure=measure_tuned,
    seeds={"cpu": range(3)},
    notes=f"The last of the twelve layers of all-mpnet-base-v2 (109 M parameters) learns the known classes of each "
    f"setting and seed in one epoch, in batches of {TUNING.batch_size} at a learning rate of {TUNING.lr:g}, from at "
    f"most {TUNING.per_class} texts per class. Then every method gets the same embeddings. {ROUNDED}The schedule is "
    "that of open-intents-tuned but for the smaller batches. All else is as in the table open-intents. Seconds are "
    "without the tuning.",
    **SHARED,
)

TABLES = (ENCODER, TUNED_ENCODER)
