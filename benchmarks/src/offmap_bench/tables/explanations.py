"""Do explanations name the cause? Planted causes in tables and texts, beside plain rivals."""

import time
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer

from offmap.data import TextEncoder, known_classes, load
from offmap.density import MahalanobisDetector, NearestNeighborDetector, VAEDetector
from offmap.explain import Explanation, explain
from offmap.explain.build import Method
from offmap.explain.words import Words
from offmap.openset import ANSClassifier
from offmap_bench.planted_causes import join, plant, top_share
from offmap_bench.table import Table

SETS = {"breast-cancer": "breast-cancer", "digits": "digits", "cardiotocography": "adbench/cardiotocography"}
MOST_CAUSES, MOST_ROWS = 3, 200
CALIBRATION = 0.2
MODELS = {
    "VAE": VAEDetector(calibration=CALIBRATION),
    "k-nearest": NearestNeighborDetector(calibration=CALIBRATION),
    "Mahalanobis": MahalanobisDetector(calibration=CALIBRATION),
    "ANS": ANSClassifier(calibration=CALIBRATION),
}
# Topics of CLINC that no bank is asked about.
FOREIGN = (
    "alarm", "book_flight", "calories", "definition", "directions", "distance", "fun_fact", "play_music", "recipe",
    "tell_joke", "weather",
)  # fmt: skip


@dataclass(frozen=True)
class Explained:
    """A detector and how it is explained.

    Args:
        model: Name of the unfitted model in ``MODELS``.
        method: The method of ``explain``.
    """

    model: str
    method: Method = "occlusion"


def measure_tables(row: Explained, column: str, seed: int) -> dict[str, float]:
    """Plants causes in test rows that the model finds normal, and explains those that it flags then."""
    name, kind = column.split(", ")
    train, test, model = fitted(row.model, name, seed)
    rng = np.random.default_rng(seed)
    planted = plant(test, train, rng.integers(1, MOST_CAUSES + 1, len(test)), kind, rng)
    flagged = np.flatnonzero(model.assess(planted.rows).novel)[:MOST_ROWS]
    rows, changed = planted.rows[flagged], planted.changed[flagged]
    started = time.process_time()
    found = explain(model, rows, reference=train, method=row.method)
    seconds = time.process_time() - started
    started = time.process_time()
    z_scores = np.abs(rows - train.mean(axis=0)) / np.maximum(train.std(axis=0), 1e-12)
    z_seconds = time.process_time() - started
    return {
        "top": top_share(np.stack([each.contributions for each in found]), changed),
        "top_z": top_share(z_scores, changed),
        "passes": passing(model, found),
        "changes": float(np.mean([len(each.counterfactual.changed) for each in found if each.counterfactual])),
        "seconds": 1000 * seconds / len(rows),
        "seconds_z": 1000 * z_seconds / len(rows),
        "rows": float(len(rows)),
    }


@lru_cache(maxsize=64)
def fitted(model_name: str, name: str, seed: int) -> tuple[NDArray[np.float64], NDArray[np.float64], Any]:
    """Training rows, test rows that the model finds normal, and the model, which serves all columns of the set."""
    X, y = table(name)
    order = np.random.default_rng(seed).permutation(len(X))
    cut = round(0.7 * len(X))
    train, test = X[order[:cut]], X[order[cut:]]
    model = clone(MODELS[model_name]).set_params(random_state=seed).fit(train, y[order[:cut]])
    return train, test[~model.assess(test).novel], model


def passing(model: Any, found: list[Explanation]) -> float:
    """The share of rows that have a counterfactual which the model, asked anew, does not flag."""
    changed = [each.counterfactual.row for each in found if each.counterfactual is not None]
    if not changed:
        return 0.0
    rows = changed if isinstance(changed[0], str) else np.stack(changed)
    return float((~model.assess(rows).novel).sum()) / len(found)


@lru_cache(maxsize=3)
def table(name: str) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Features and labels of a set; images are flat rows."""
    data = load(SETS[name])
    assert data.y is not None
    return np.asarray(data.X, dtype=np.float64).reshape(len(data.X), -1), data.y


def measure_texts(row: Explained, column: str, seed: int) -> dict[str, float]:
    """Joins a foreign clause to texts of known intents and looks which clause is blamed."""
    # Other clauses for every model: texts of another row would be in the cache of the encoder.
    rng = np.random.default_rng([seed, list(MODELS).index(row.model)])
    train, test, foreign = load("banking", "train"), load("banking", "test"), load("clinc", "test")
    assert train.y is not None
    assert test.y is not None
    known = known_classes(train.y, 0.25, seed)
    taught = rng.permutation(np.flatnonzero(np.isin(train.y, known)))[:1500]
    asked = rng.permutation(np.flatnonzero(np.isin(test.y, known)))[:100]
    others = foreign.X[np.isin(np.asarray(foreign.y), FOREIGN)]
    model = clone(MODELS[row.model]).set_params(encoder=TextEncoder(), random_state=seed)
    model.fit(train.X[taught], train.y[taught])
    usual = test.X[asked][~model.assess(test.X[asked]).novel]
    added = [str(clause) for clause in rng.choice(others, len(usual))]
    joined = np.array([join(str(text), clause, rng) for text, clause in zip(usual, added, strict=True)], dtype=object)
    flagged = np.flatnonzero(model.assess(joined).novel)
    started = time.process_time()
    found = explain(model, joined[flagged], reference=train.X[taught])
    seconds = time.process_time() - started
    unlike = rival(joined[flagged], train.X[taught])
    clauses = [added[place] for place in flagged]
    first = [each.parts[int(each.contributions.argmax())] for each in found]
    return {
        "first": float(np.mean([within(part, clause) for part, clause in zip(first, clauses, strict=True)])),
        "first_tfidf": float(np.mean([within(part, clause) for part, clause in zip(unlike, clauses, strict=True)])),
        "passes": passing(model, found),
        "seconds": 1000 * seconds / len(found),
        "rows": float(len(found)),
    }


def rival(texts: Any, known: Any) -> list[str]:
    """The part of each text that is least like any known text by TF-IDF of words."""
    vectorizer = TfidfVectorizer(sublinear_tf=True).fit(known)
    taught = vectorizer.transform(known)
    parts = Words(texts, known)
    found = []
    for row in range(len(texts)):
        likeness = (vectorizer.transform(parts.names(row)) @ taught.T).max(axis=1).toarray()[:, 0]
        found.append(parts.names(row)[int(likeness.argmin())])
    return found


def within(part: str, clause: str) -> bool:
    """Whether at least half of the words of a part stand in the foreign clause."""
    words, foreign = ({word.strip(".,?!").lower() for word in text.split()} for text in (part, clause))
    return 2 * len(words & foreign) >= len(words)


TABLES = (
    Table(
        name="explanations",
        source="No paper: a benchmark of this toolkit",
        caption="One to three features of a normal row are changed: how often do these get the largest contributions?",
        rows={
            "VAE, occlusion": Explained("VAE"),
            "k-nearest, exact": Explained("k-nearest", "exact"),
            "k-nearest, occlusion": Explained("k-nearest", "occlusion"),
            "Mahalanobis, exact": Explained("Mahalanobis", "exact"),
            "Mahalanobis, occlusion": Explained("Mahalanobis", "occlusion"),
            "ANS, occlusion": Explained("ANS"),
        },
        columns=tuple(f"{name}, {kind}" for kind in ("shifted", "swapped") for name in SETS),
        metrics=("top", "top_z", "passes", "changes", "seconds", "seconds_z", "rows"),
        measure=measure_tables,
        seeds={"cpu": range(1, 3)},
        profiles={"cpu": {}},
        needs=("adbench/cardiotocography",),
        notes="70 % of the rows train; one, two or three features of each of the others are changed. Rows that were "
        "normal before and are flagged after it are explained. Shifted: by 5 standard deviations. Swapped: to the "
        "value of another row that differs by at least 2, so that each value is normal on its own. top: the changed "
        "features are exactly those of the largest contributions. top_z: the same of the |z-score| of each feature, on "
        "the same rows. passes: the counterfactual, scored anew, is not flagged; changes: features that it changes. "
        "At most 200 rows per seed. seconds: CPU time per 1,000 rows, with counterfactuals, on one thread. The "
        "direction of the exchange was chosen on other seeds of the same sets.",
        higher_is_better={"top": True, "top_z": True, "passes": True, "changes": False, "seconds": False},
        formats={"top": ".1%", "top_z": ".1%", "passes": ".1%", "seconds_z": ".4f", "rows": ".0f"},
        average=True,
    ),
    Table(
        name="explanations-text",
        source="No paper: a benchmark of this toolkit",
        caption="A foreign clause is joined to a known utterance: how often is it blamed first?",
        rows={
            "ANS": Explained("ANS"),
            "k-nearest": Explained("k-nearest"),
            "Mahalanobis": Explained("Mahalanobis"),
        },
        columns=("BANKING with clauses of CLINC",),
        metrics=("first", "first_tfidf", "passes", "seconds", "rows"),
        measure=measure_texts,
        seeds={"cpu": range(1, 3)},
        profiles={"cpu": {}},
        needs=("banking", "clinc"),
        notes="A quarter of the intents of BANKING, at most 1,500 texts, frozen all-MiniLM-L6-v2. To each of 100 test "
        "texts that the model finds normal a text of CLINC on another subject is joined, before or behind it, by a "
        "conjunction, a full stop, a comma or nothing; those that are flagged then are explained. first: the part with "
        "the largest contribution lies in the foreign clause. first_tfidf: the same of the part that is least like any "
        "known text by TF-IDF of words. Parts are clauses, or phrases where no joint is found. seconds: CPU "
        "time per 1,000 texts, with counterfactuals, on one thread; a text that was encoded before costs nothing.",
        higher_is_better={"first": True, "first_tfidf": True, "passes": True, "seconds": False},
        formats={"first": ".1%", "first_tfidf": ".1%", "passes": ".1%", "seconds": ".1f", "rows": ".0f"},
    ),
)
