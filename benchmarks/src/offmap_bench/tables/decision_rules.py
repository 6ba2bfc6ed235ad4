"""The calibrated decision rule beside the papers' own rules, measured on known classes only."""

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from offmap.data import hold_out_classes, known_classes, load
from offmap.metrics import open_set_summary
from offmap.openset import (
    ADBClassifier,
    ANSClassifier,
    DeepUnkClassifier,
    DOCClassifier,
    LOFClassifier,
    MSPClassifier,
    OpenMaxClassifier,
    SelfSupClassifier,
)
from offmap_bench.table import Table
from offmap_bench.tables.open_intents import SETS, column

RATIOS = (25, 50)
TEST_SIZE = 0.3
# StackOverflow has 600 rows per class, the other two sets about 100: more rows would only take longer.
ROWS_PER_CLASS = 150
METHODS = {
    "MSP": MSPClassifier,
    "DOC": DOCClassifier,
    "OpenMax": OpenMaxClassifier,
    "LOF": LOFClassifier,
    "DeepUnk": DeepUnkClassifier,
    "ADB": ADBClassifier,
    "SelfSup": SelfSupClassifier,
    "ANS": ANSClassifier,
}
METRICS = tuple(f"{metric} {rule}" for metric in ("f1", "accuracy", "false alarms") for rule in ("own", "calibrated"))


def sub_open_texts(X: NDArray[Any], y: NDArray[Any], seed: int) -> tuple[NDArray[Any], ...]:
    """Lets a random half of the classes play the open ones.

    Args:
        X: Rows of the known classes.
        y: Their labels.
        seed: Seed of the split.

    Returns:
        Training rows and labels of the sub-known classes, test rows and labels of all classes, as many per class, and
        the sub-known classes.
    """
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(y))
    chosen = np.sort(np.concatenate([order[y[order] == label][:ROWS_PER_CLASS] for label in np.unique(y)]))
    X, y = X[chosen], y[chosen]
    known = np.sort(rng.permutation(np.unique(y))[: len(np.unique(y)) // 2])
    split = hold_out_classes(X, y, known, test_size=TEST_SIZE, seed=seed)
    tested = ~split.unknown | (rng.random(len(split.unknown)) < TEST_SIZE)
    return split.X_train, split.y_train, split.X_test[tested], split.y_test[tested], known


@lru_cache(maxsize=1)
def sub_open_setting(title: str, seed: int, ngram_weight: float = 0.0) -> tuple[NDArray[Any], ...]:
    """Splits the training rows of the known classes of a setting, and encodes them."""
    from offmap.data import TextEncoder

    name, ratio = title.rsplit(" ", 2)[0], int(title.split()[-2])
    data = load(SETS[name], "train")
    assert data.y is not None
    kept = np.isin(data.y, known_classes(data.y, ratio / 100, seed))
    texts, labels, test_texts, test_labels, known = sub_open_texts(data.X[kept], data.y[kept], seed)
    encoder = TextEncoder(ngram_weight=ngram_weight, random_state=seed)
    return encoder.fit_transform(texts), labels, encoder.transform(test_texts), test_labels, known


def compare_rules(method: Any, X: NDArray[Any], y: NDArray[Any], known: NDArray[Any]) -> dict[str, float]:
    """Scores the answers of one fitted method under both rules; false alarms are known rows that are rejected."""
    closest = method.predict_closed(X)
    answers = {
        "own": method.predict(X),
        "calibrated": np.where(method.p_value(X) <= method.alpha, method.unknown_label_, closest),
    }
    found: dict[str, float] = {}
    for rule, labels in answers.items():
        summary = open_set_summary(y, labels, known, method.unknown_label_)
        found |= {f"{name} {rule}": summary[name] for name in ("f1", "accuracy")}
        found[f"false alarms {rule}"] = float(np.mean(labels[np.isin(y, known)] == method.unknown_label_))
    return found


def measure(method: Any, title: str, seed: int) -> dict[str, float]:
    """Fits the method once to the sub-known classes and compares the two rules on the test rows."""
    X, y, X_test, y_test, known = sub_open_setting(title, seed)
    return compare_rules(method.set_params(random_state=seed).fit(X, y), X_test, y_test, known)


TABLES = (
    Table(
        name="decision-rules",
        source="No paper: the two decision rules of this toolkit",
        caption="What the calibrated rule costs or gains against the rule of each method's paper.",
        rows={name: cls(rule="own", alpha=0.05, calibration=0.1) for name, cls in METHODS.items()},
        columns=tuple(column(name, ratio) for name in SETS for ratio in RATIOS),
        metrics=METRICS,
        measure=measure,
        seeds={"cpu": range(2)},
        profiles={"cpu": {}},
        needs=tuple(SETS.values()),
        notes="Only training rows of the known classes of each setting are used: a random half of these classes plays "
        f"the open ones. {TEST_SIZE:.0%} of the rows are tested, at most {ROWS_PER_CLASS} rows per class are used. "
        "Each method is fitted once, with its default parameters and a tenth of the training rows held out. Its own "
        "rule and the calibrated rule at alpha = 0.05 then answer the same rows. False alarms are test rows of "
        "sub-known classes that are rejected. Frozen all-MiniLM-L6-v2 embeddings.",
        higher_is_better={metric: not metric.startswith("false") for metric in METRICS},
        formats=dict.fromkeys(METRICS, ".2%"),
        average=True,
    ),
)
