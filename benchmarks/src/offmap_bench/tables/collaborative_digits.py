"""Small digits: which entities embeddings are learnt from, and how a flow is conditioned."""

from typing import Any

import numpy as np

from offmap.collaborative import EntityFlowDetector, RatioDetector
from offmap.metrics import entity_auroc
from offmap_bench.table import Table
from offmap_bench.tables.collaborative_mixtures import DIGITS, digits

SEED_ENTITIES = (5, 20)


def measure(method: Any, column: str, seed: int) -> dict[str, float]:
    """Mean AUROC over the entities that were fitted, and over those that were added."""
    problem = digits(seed)
    fitted = problem.entities < problem.first_added
    model = method.set_params(random_state=seed).fit(problem.X[fitted], problem.entities[fitted])
    model.partial_fit(problem.X[~fitted], problem.entities[~fitted])
    found = entity_auroc(model.familiarity(problem.asked, np.arange(problem.own.shape[1])), problem.own, ~problem.own)
    first = problem.first_added
    return {"seen": float(found[:first].mean()), "added": float(found[first:].mean())}


def learned(count: int, choice: Any) -> RatioDetector:
    """The paper's network with embeddings from so many seed entities."""
    return RatioDetector(
        head="concat", embedding="learned", seed_entities=count, seed_choice=choice, embedding_size=16, hidden=(64, 32),
        epochs=25, patience=8, lr=2e-3, calibration=0.0,
    )  # fmt: skip


def flow(condition: Any) -> EntityFlowDetector:
    """A flow of all entities together."""
    return EntityFlowDetector(
        condition=condition, embedding="random", embedding_size=10, lr=3e-3, batch_size=128, epochs=20, patience=5,
        calibration=0.0,
    )  # fmt: skip


METRICS = ("seen", "added")
CHOICES = {"at random": "random", "k-centre": "k_centre", "leverage": "leverage"}
TABLES = (
    Table(
        name="collaborative-digits",
        source="Collaborative Anomaly Detection, sections 4 and 6 and appendix B.2, on small data",
        caption="Choice of the seed entities of learned embeddings, and scales and biases of a flow: a linear map of "
        "an embedding, or each entity's own.",
        rows={
            f"learned, {count} seeds {name}": learned(count, choice)
            for count in SEED_ENTITIES
            for name, choice in CHOICES.items()
        }
        | {"flow, linear map": flow("affine"), "flow, own vectors": flow("own")},
        columns=(DIGITS,),
        metrics=METRICS,
        measure=measure,
        seeds={"cpu": range(5)},
        profiles={"cpu": {}},
        notes="The digits of `collaborative-mixtures`: 8 × 8 pixels, 40 entities fitted and 10 added, about 27 rows "
        "each. The paper draws seed tasks at random and names a better choice as future work. k-centre takes one "
        "entity after another, the farthest from those taken; leverage draws by the leverage of the entities' means. "
        "Seed by seed, k-centre is above drawing at random for entities that are added if there are only five seed "
        "entities, the only one of eight comparisons with drawing at random beyond two standard errors.",
        higher_is_better=dict.fromkeys(METRICS, True),
        formats=dict.fromkeys(METRICS, ".2%"),
    ),
)
