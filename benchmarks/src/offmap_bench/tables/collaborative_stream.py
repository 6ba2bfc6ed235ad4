"""New tasks and new exposures: how good a detector is at the start, and as a stream goes on."""

from dataclasses import dataclass
from time import perf_counter
from typing import Any

from sklearn.base import clone

from offmap.collaborative import ClosedFormDetector, RatioDetector
from offmap_bench.cold_start import EXPOSURES, Cold, cold_digits, cold_films
from offmap_bench.film_stream import ENDS, ENOUGH, replay
from offmap_bench.movielens import Setting, setting
from offmap_bench.table import Table
from offmap_bench.user_features import DEMOGRAPHIC, user_features

SOURCE = "No paper: a benchmark of this toolkit"
SEEDS = {"cpu": range(3), "paper": range(5)}
TRAINING: dict[str, Any] = {"calibration": 0.0, "batch_size": 512, "epochs": 10, "patience": 2}
ROWS = {
    "concat, learned": RatioDetector(
        head="concat", embedding="learned", embedding_size=16, embedding_decay=0.0, **TRAINING
    ),
    "two towers, learned": RatioDetector(head="two_tower", embedding="learned", embedding_size=16, **TRAINING),
    "closed form": ClosedFormDetector(**TRAINING),
    "closed form, principal components": ClosedFormDetector(calibration=0.0, features="pca", embedding_size=100),
}


def problem(column: str, seed: int) -> Cold:
    """The cold tasks of a column."""
    return cold_digits(seed) if column == "MNIST" else cold_films(seed, user_features(DEMOGRAPHIC, 0).vectors)


def measure_cold(method: Any, column: str, seed: int) -> dict[str, float]:
    """AUROC of cold tasks that were trained with the others, and of the same tasks added afterwards."""
    cold = problem(column, seed)
    method.set_params(random_state=seed)
    seen, unseen = cold.fit_with(clone(method)), cold.fit_without(clone(method))
    return cold.aurocs(seen, "seen") | cold.aurocs(unseen, "unseen")


@dataclass(frozen=True)
class Follower:
    """A detector that follows a stream.

    Args:
        detector: Unfitted.
        refit: Whether it is fitted anew to all that came so far after each piece, or takes the piece in.
    """

    detector: Any
    refit: bool = False


def measure_stream(follower: Follower, column: str, seed: int) -> dict[str, float]:
    """AUROC over the films that are tasks, after each piece, and the seconds it took to go on from the first."""
    split, users = setting(seed), user_features(DEMOGRAPHIC, 0, ENDS[0]).vectors
    detector, found, seconds = follower.detector.set_params(random_state=seed), {}, []
    for piece in replay(split.training()):
        start = perf_counter()
        if piece.end == ENDS[0] or follower.refit:
            detector.fit(users, piece.so_far.films, rows=piece.so_far.rows)
        else:
            detector.partial_fit(users, piece.fresh.films, rows=piece.fresh.rows)
        seconds.append(perf_counter() - start)
        familiarity = detector.familiarity(users[split.test_users], piece.films)
        judged = Setting(split.data, piece.films, split.test_users)
        found[f"to {piece.end}"] = judged.auroc(familiarity, "age", "lift")
    return found | {"seconds": sum(seconds[1:])}


COLD_METRICS = tuple(f"{name}, {count}" for name in ("seen", "unseen") for count in EXPOSURES)
STREAM_METRICS = tuple(f"to {end}" for end in ENDS)
TABLES = (
    Table(
        name="collaborative-cold-start",
        source=SOURCE,
        caption="AUROC of tasks with 2 to 50 exposures: trained with the others (seen), or added afterwards (unseen).",
        rows=ROWS,
        columns=("MNIST", "MovieLens-1M"),
        metrics=COLD_METRICS,
        measure=measure_cold,
        seeds=SEEDS,
        profiles={"cpu": {}, "paper": {}},
        needs=("mnist", "ml1m"),
        notes="MNIST: 20,000 images, tasks of three active classes, 80 that share the images and 40 that are cold. "
        "MovieLens-1M: 200 cold films beside 1,430 with all their exposures; user vectors with demographic fields; "
        "users of the most over- against those of the most under-represented age. The vectors come from a DeepFM "
        "trained on all ratings, those of cold films and of test users included. Every cold task comes five times, "
        "with 2, 5, 10, 20 and 50 exposures that no other has. Seen and unseen are the same tasks with the same "
        "exposures: in `fit`, or by `add_entity` after it. The learned embedding of a task that is added to the concat "
        "network leans to the mean of all tasks. The paper's does not: with two exposures it ranks one or two points "
        "better (on another seed), but its log ratios claim more than so few exposures tell.",
        higher_is_better=dict.fromkeys(COLD_METRICS, True),
        formats=dict.fromkeys(COLD_METRICS, ".2%"),
    ),
    Table(
        name="collaborative-stream",
        source=SOURCE,
        caption="MovieLens-1M replayed: AUROC after each piece of the stream, over the films that are tasks by then.",
        rows={name: Follower(detector) for name, detector in ROWS.items()}
        | {"two towers, fitted anew": Follower(ROWS["two towers, learned"], refit=True)},
        columns=("MovieLens-1M",),
        metrics=(*STREAM_METRICS, "seconds"),
        measure=measure_stream,
        seeds=SEEDS,
        profiles={"cpu": {}, "paper": {}},
        needs=("ml1m",),
        notes=f"The stream goes through every user's films in the order they were rated: the first {ENDS[0]} of each "
        f"are fitted, pieces up to place {', '.join(map(str, ENDS[1:-1]))} and the end follow by `partial_fit`. A film "
        f"becomes a task when it has {ENOUGH} exposures: 692 in the first piece, 1,630 in the end. User vectors (with "
        f"demographic fields) are learnt from the first {ENDS[0]} films of each user, so they know nothing of "
        "what comes after; which films take part was chosen as in the main table, by all ratings (972 films have "
        f"{ENOUGH} exposures in the first piece without that). Users of the most over- against those of the most "
        "under-represented age. Seconds: of all pieces but the first.",
        higher_is_better=dict.fromkeys(STREAM_METRICS, True),
        formats=dict.fromkeys(STREAM_METRICS, ".2%") | {"seconds": ".1f"},
    ),
)
