"""Open intents whose rows are judged together: what their neighbours in the batch add to each score."""

from dataclasses import replace
from functools import lru_cache
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from offmap.calibration import p_values, pooled_novelty
from offmap.data import TextEncoder
from offmap.metrics import auroc
from offmap.openset import ANSClassifier
from offmap_bench.open_set_scoring import RATE, SUGGESTED, OpenSetTask, answered, at_rates, best_f1
from offmap_bench.plain_scores import PlainScore
from offmap_bench.table import Table
from offmap_bench.tables.open_intents import COMPARED, own, texts_of
from offmap_bench.tables.open_intents_encoder import ROUNDED, frozen_task
from offmap_bench.tables.open_intents_ngrams import WEIGHT

TOGETHER = ", together"
# Of known test rows, at a promised rate of 5 %.
PROMISED, ALARMS = 0.05, "false alarms at 5 %"
ONE_BY_ONE = (*SUGGESTED, "best f1", "auroc", ALARMS, RATE)
METRICS = (*(metric + TOGETHER for metric in ONE_BY_ONE), *ONE_BY_ONE, "seconds", "seconds to pool")


@lru_cache(maxsize=1)
def encoded(title: str, seed: int) -> OpenSetTask:
    """The rows of a setting: embeddings and character n-grams, learnt from the training texts."""
    texts = texts_of(title, seed)
    encoder = TextEncoder(ngram_weight=WEIGHT, random_state=seed).fit(texts.X)
    rows = (encoder.transform(part) for part in (texts.X, texts.X_dev, texts.X_test))
    return texts._replace(**dict(zip(("X", "X_dev", "X_test"), rows, strict=True)))


def measure(method: Any, title: str, seed: int) -> dict[str, float]:
    """Fits the method to embeddings of all-MiniLM-L6-v2 and judges the test rows one by one, then together."""
    return both_ways(method.set_params(random_state=seed), encoded(title, seed))


def measure_larger(method: Any, title: str, seed: int) -> dict[str, float]:
    """Does the same with embeddings of all-mpnet-base-v2."""
    return both_ways(method.set_params(random_state=seed), frozen_task(title, seed))


def both_ways(method: Any, task: OpenSetTask) -> dict[str, float]:
    """Fits the method to the known classes and judges the test rows one by one, then together."""
    start = perf_counter()
    model = method.fit(task.X, task.y)
    novelty, closest = answered(model, task.X_test)
    fitted, dev = perf_counter(), model.novelty(task.X_dev)
    pooled = pooled_novelty(np.concatenate([dev, novelty]), np.concatenate([task.X_dev, task.X_test]))
    together = perf_counter() - fitted
    found = judged(dev, novelty, closest, task)
    for metric, value in judged(pooled[: len(dev)], pooled[len(dev) :], closest, task).items():
        found[metric + TOGETHER] = value
    return found | {"seconds": fitted - start, "seconds to pool": together}


def judged(
    dev: NDArray[np.float64], novelty: NDArray[np.float64], closest: NDArray[Any], task: OpenSetTask
) -> dict[str, float]:
    """Answers to the test rows at the suggested rate, and how well their novelty orders them."""
    is_known = np.isin(task.y_test, task.known)
    p_value = p_values(np.sort(dev), novelty)
    # No class is called so.
    unknown = "no known class"
    rated = at_rates(p_value, closest.astype(object), unknown, task)
    return {metric: rated[metric] for metric in (*SUGGESTED, RATE)} | {
        "best f1": best_f1(novelty, closest.astype(object), unknown, task),
        "auroc": auroc(novelty[is_known], novelty[~is_known]),
        ALARMS: float(np.mean(p_value[is_known] <= PROMISED)),
    }


JUDGED = Table(
    name="open-intents-together",
    source=COMPARED.source,
    caption="The nine settings with rows judged one by one and together, by the same fitted models.",
    rows={
        "ANS": own(ANSClassifier),
        "nearest neighbour": PlainScore(score="nearest"),
        "max logit": PlainScore(score="max logit"),
    },
    columns=COMPARED.columns,
    metrics=METRICS,
    measure=measure,
    seeds={"cpu": range(10)},
    profiles={"cpu": {}},
    printed={
        ("ANS", column, f"{metric}, suggested rate{end}"): value
        for (row, column, metric), value in COMPARED.printed.items()
        if row == "ANS" and metric in ("accuracy", "f1")
        for end in ("", TOGETHER)
    },
    needs=COMPARED.needs,
    notes="Embeddings and features as in open-intents-ngrams. Together: development rows of the known classes and all "
    "test rows form one pool, and each row gets half its own rank and half the mean rank of its ten nearest rows "
    "(`pooled_novelty` with its defaults). This uses the test rows without their labels; the thesis judges each "
    "row by itself. The number of neighbours and the share of a row's own rank were chosen on training rows of "
    "known classes, half of which played the open ones, with draws that no table uses. The development rows set "
    "the thresholds. False alarms are known test rows with a p-value of at most 5 %; the test split of CLINC "
    "differs from the others. Seconds are to fit and to answer one by one, then to find the neighbours and judge "
    "together.",
    higher_is_better=dict.fromkeys(
        [metric for metric in METRICS if metric.startswith(("acc", "f1", "best", "auroc"))], True
    ),
    formats=dict.fromkeys(METRICS, ".2%") | {"seconds": ".1f", "seconds to pool": ".1f"},
    average=True,
)
LARGER = replace(
    JUDGED,
    name="open-intents-together-encoder",
    caption="The same on frozen all-mpnet-base-v2, which is as large as BERT.",
    measure=measure_larger,
    seeds={"cpu": range(3)},
    notes=f"As open-intents-together, with the embeddings and character n-grams of open-intents-encoder. {ROUNDED}"
    "Nothing was chosen anew.",
)
TABLES = (JUDGED, LARGER)
