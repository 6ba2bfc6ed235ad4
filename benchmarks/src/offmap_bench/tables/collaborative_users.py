"""What the vectors of users know that the tables on MovieLens-1M start from."""

from dataclasses import dataclass

from offmap_bench.film_stream import ENDS
from offmap_bench.table import Table
from offmap_bench.user_features import BEHAVIOUR, DEMOGRAPHIC, PROFILE, user_features


@dataclass(frozen=True)
class Known:
    """What a user is known by: some fields, and the first so many films, or all of them."""

    fields: tuple[str, ...]
    until: int | None = None


def measure(known: Known, column: str, seed: int) -> dict[str, float]:
    """How well the DeepFM tells held-out exposures from made-up ones."""
    found = user_features(known.fields, seed, known.until)
    return {"auroc": found.auroc, "epochs": found.epochs, "width": found.vectors.shape[1]}


TABLES = (
    Table(
        name="collaborative-users",
        source="Collaborative Anomaly Detection, appendix D.2.1",
        caption="DeepFM on MovieLens-1M: exposures that were held out against users paired with films of others.",
        rows={
            "id, gender, age, occupation, zip": Known(DEMOGRAPHIC),
            "id": Known(BEHAVIOUR),
            "gender, age, occupation, zip": Known(PROFILE),
            f"five fields, first {ENDS[0]} films": Known(DEMOGRAPHIC, ENDS[0]),
        },
        columns=("MovieLens-1M",),
        metrics=("auroc", "epochs", "width"),
        measure=measure,
        seeds={"cpu": range(3), "paper": range(3)},
        profiles={"cpu": {}, "paper": {}},
        needs=("ml1m",),
        notes="Every field has an equal part of the 100 numbers of a user's vector; the film has as many as a field. "
        "Films of the made-up pairs come as often as in the exposures, so popularity alone gives 50. Of the exposures, "
        "5 % stop the training and 5 % are judged. The last row knows the first films of each user only and serves the "
        "stream. The other tables start from the vectors of seed 0.",
        higher_is_better={"auroc": True},
        formats={"auroc": ".2%", "epochs": ".0f", "width": ".0f"},
    ),
)
