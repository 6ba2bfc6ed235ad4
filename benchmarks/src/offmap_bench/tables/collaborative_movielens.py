"""Which users are familiar with which film: MovieLens-1M with 1,630 tasks."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from offmap.collaborative import ClosedFormDetector, EntityFlowDetector, EntityGaussianDetector, RatioDetector
from offmap.collaborative.embeddings import Embedding
from offmap_bench.film_graph import film_vectors
from offmap_bench.movielens import METRICS, Ints, MovieLens, setting
from offmap_bench.table import Table
from offmap_bench.user_features import BEHAVIOUR, DEMOGRAPHIC, PROFILE, user_features

SOURCE = "Collaborative Anomaly Detection"
FIELDS = {
    "with demographic fields": DEMOGRAPHIC,
    "demographic fields alone": PROFILE,
    "behaviour only": BEHAVIOUR,
}
CATEGORIES = {"categories themselves": ("gender", "age", "occupation"), "age alone": ("age",)}
FEATURE_SEED = 0
NOTES = (
    "A film is a task, its exposures are the users who rated it; 8 of 10 users are learnt from, the others judged. The "
    "films have at least 100 exposures, and audiences of low entropy (the lower half) in age, occupation or gender: "
    "1,630 films, where the paper has 1,629. The lower half by one label alone has 1,009; half of the 3,260 films with "
    "ten exposures is 1,630 too, and by count a closed form is within three points of the same there. Ages are in five "
    "bins: below 25, to 34, to 49, to 55, above. The paper does not say which; of the fifteen ways to join seven ages "
    "to five it is the one with nearly its number of films on which its best number is below that of the true lift. "
    "`age` and `occupation` follow the paper's words: test users of the most frequent category of a film's exposures "
    "against those of the least frequent one. What is most frequent in a film may yet be rarer than elsewhere, so that "
    "the true lift of a user's category gives 83.7 and 83.4, not 100. `lift` compares the most over- with the most "
    "under-represented category instead, where it does give 100. `viewers` is `age` and `occupation` with those "
    "nominal users alone who did rate the film. It was found by comparing six ways to judge with the paper's numbers, "
    "on test users of one split: with it 80 by age is within reach of vectors that know no label. The paper's text "
    "does not say that it was done so, and its 66 by occupation is not met. `exposed` needs no label: test users who "
    "rated a film against those who did not. User vectors "
    "come from a DeepFM trained once on the exposures of all users, those of test users included, as in the paper; the "
    "seeds vary the split and the detector. "
)
HOW = (
    "`behaviour only` knows a user by films alone, with 100 numbers for the id. That is nearest to the paper, which "
    "has labels for testing only, and whose vectors of 100 numbers come from code (of Cao et al.) that has a "
    "factorization machine of user and film ids. "
    "`with demographic fields` has 20 numbers each for id, gender, age, occupation and zip, so that what is asked for "
    "is in the vector. A density, which knows what is frequent rather than more frequent than elsewhere, may then be "
    "better by count than the true lift is. Random embeddings have the step size of the network, as all have in the "
    "paper; the tenfold one is ours. The graph is that of films, genres and decades, embedded by its spectrum, in "
    "place of KTUP on a knowledge base; histograms are of the training exposures. These, shares of clusters and "
    "learned embeddings start with mean 0 and variance 1 over the films. * marks extra knowledge. Training moves all "
    "embeddings, as in the paper, but those `kept`, which are ours: what a label tells of a film is then not learnt "
    "away. It stops when the loss on a tenth of the training exposures does not fall any more, or after 20 passes; "
    "that of two towers and the closed form, which learn from all pairs of a batch, after 10, and that of densities, "
    "with larger batches and steps, after 6. The closed form on principal components was added after the first results "
    "of the others had been seen."
)


@dataclass(frozen=True)
class Contender:
    """A detector, and what it is told of films beside the exposures.

    Args:
        detector: Unfitted.
        knowledge: What embeddings start from: "graph", that of films, genres and decades; or a label of users.
    """

    detector: Any
    knowledge: str | None = None

    def told(self, data: MovieLens, films: Ints) -> dict[str, Any]:
        """What ``fit`` takes beside rows and tasks."""
        if self.knowledge is None:
            return {}
        if self.knowledge == "graph":
            return {"embeddings": (films, film_vectors(films))}
        return {"labels": data.labels(self.knowledge)}


def user_rows(data: MovieLens, column: str) -> NDArray[np.float32]:
    """One vector a user, made as the column says."""
    if column in FIELDS:
        return user_features(FIELDS[column], FEATURE_SEED).vectors
    codes = [data.labels(label) for label in CATEGORIES[column]]
    return np.column_stack([np.eye(code.max() + 1, dtype=np.float32)[code] for code in codes])


def measure(contender: Contender, column: str, seed: int) -> dict[str, float]:
    """Fits the detector to the exposures of training users and judges the test users."""
    split = setting(seed)
    learnt, users = split.training(), user_rows(split.data, column)
    detector = contender.detector.set_params(random_state=seed)
    detector.fit(users, learnt.films, rows=learnt.rows, **contender.told(learnt, split.films))
    return dict(split.aurocs(detector.familiarity(users[split.test_users], split.films)))


# Half a million exposures a pass; a batch of two towers holds all pairs of its rows and tasks.
PASSES: dict[str, Any] = {"calibration": 0.0, "batch_size": 512, "epochs": 20, "patience": 4}
PAIRS: dict[str, Any] = {"calibration": 0.0, "batch_size": 512, "epochs": 10, "patience": 2}
DENSITY: dict[str, Any] = {"calibration": 0.0, "batch_size": 2048, "lr": 2e-3, "epochs": 6, "patience": 2}


def concat(embedding: Embedding, lr_factor: float = 1.0, tune: bool = True) -> RatioDetector:
    """The paper's network for MovieLens; embeddings are free, since it starts from a long plateau."""
    return RatioDetector(
        head="concat", embedding=embedding, hidden=(32, 32, 16), dropout=(0.5, 0.5, 0.3), seed_entities=100,
        embedding_size=16, embedding_decay=0.0, embedding_lr_factor=lr_factor,
        tune_embeddings=tune, **PASSES,
    )  # fmt: skip


def two_towers(embedding: Embedding, tune: bool = True) -> RatioDetector:
    """Inner products of users and films."""
    return RatioDetector(
        head="two_tower", embedding=embedding, embedding_size=16, seed_entities=100, tune_embeddings=tune, **PAIRS
    )


ROWS = {
    "Gaussian": Contender(EntityGaussianDetector(**DENSITY)),
    "flow": Contender(EntityFlowDetector(condition="affine", **DENSITY)),
    "flow, own vectors": Contender(EntityFlowDetector(condition="own", **DENSITY)),
    "ratio, random": Contender(concat("random")),
    "ratio, random, tenfold pace": Contender(concat("random", lr_factor=10.0)),
    "ratio, pseudo-label": Contender(concat("pseudo")),
    "ratio, learned": Contender(concat("learned")),
    "ratio, graph*": Contender(concat("given"), "graph"),
    "ratio, histogram of age*": Contender(concat("histogram"), "age"),
    "ratio, histogram of occupation*": Contender(concat("histogram"), "occupation"),
    "ratio, histogram of age*, kept": Contender(concat("histogram", tune=False), "age"),
    "ratio, histogram of occupation*, kept": Contender(concat("histogram", tune=False), "occupation"),
    "two towers, learned": Contender(two_towers("learned")),
    "two towers, histogram of age*, kept": Contender(two_towers("histogram", tune=False), "age"),
    "two towers, histogram of occupation*, kept": Contender(two_towers("histogram", tune=False), "occupation"),
    "closed form": Contender(ClosedFormDetector(**PAIRS)),
    "closed form, principal components": Contender(
        ClosedFormDetector(calibration=0.0, features="pca", embedding_size=100)
    ),
}
PRINTED = {
    "Gaussian": {"age": 59.5, "occupation": 61.5},
    "flow": {"age": 60.9, "occupation": 58.3},
    "ratio, random": {"age": 78.2, "occupation": 64.2},
    "ratio, learned": {"age": 80.6, "occupation": 66.1},
    "ratio, graph*": {"age": 80.3, "occupation": 68.0},
    "ratio, histogram of age*": {"age": 82.6},
    "ratio, histogram of occupation*": {"occupation": 73.4},
}

MAIN = Table(
    name="collaborative-movielens",
    source=f"{SOURCE}, table 1",
    caption="AUROC between users of a film's nominal and anomalous category: methods, and how embeddings start.",
    rows=ROWS,
    columns=("behaviour only", "with demographic fields"),
    metrics=METRICS,
    measure=measure,
    seeds={"cpu": range(3), "paper": range(5)},
    profiles={"cpu": {}, "paper": {}},
    printed={
        (row, "behaviour only", metric): value for row, numbers in PRINTED.items() for metric, value in numbers.items()
    },
    needs=("ml1m",),
    notes=NOTES + HOW,
    higher_is_better=dict.fromkeys(METRICS, True),
    formats=dict.fromkeys(METRICS, ".2%"),
)
VECTORS = Table(
    name="collaborative-movielens-vectors",
    source=f"{SOURCE}, table 1",
    caption="What the vector of a user holds decides: a density and a ratio, both quick, with five vectors.",
    rows={name: ROWS[name] for name in ("Gaussian", "closed form, principal components")},
    columns=(*FIELDS, *CATEGORIES),
    metrics=METRICS,
    measure=measure,
    seeds={"cpu": range(3), "paper": range(5)},
    profiles={"cpu": {}, "paper": {}},
    needs=("ml1m",),
    notes=NOTES + "Vectors with demographic fields have 100 numbers, 20 or 25 a field, with and without the id. "
    "`categories themselves` are gender, age and occupation as zeros and ones. Of all that were tried, `age alone` "
    "comes nearest to the paper's two numbers by count for random embeddings, 78.2 and 64.2.",
    higher_is_better=dict.fromkeys(METRICS, True),
    formats=dict.fromkeys(METRICS, ".2%"),
)
TABLES = (MAIN, VECTORS)
