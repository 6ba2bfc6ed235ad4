"""Open intents on embeddings with features of letters beside them: how much weight, and what they bring."""

from dataclasses import dataclass
from typing import Any

from offmap.data import TextEncoder
from offmap.openset import ANSClassifier
from offmap_bench.open_set_scoring import score
from offmap_bench.open_shares import SHARES
from offmap_bench.plain_scores import PlainScore
from offmap_bench.table import Table
from offmap_bench.tables.decision_rules import sub_open_setting
from offmap_bench.tables.open_intents import COMPARED, FORMATS, HIGHER, SCORED, own, texts_of
from offmap_bench.tables.open_intents_shell import SHELL, score_sub_open
from offmap_bench.word_logits import WordLogits

# Chosen by the first of the two tables.
WEIGHT = 0.8


@dataclass(frozen=True)
class Weighted:
    """ANS on features of letters with some weight.

    Args:
        ngram_weight: That weight.
    """

    ngram_weight: float


def measure_weight(method: Weighted, title: str, seed: int) -> dict[str, float]:
    """Fits ANS to the sub-known classes, and scores how well sub-open rows are told from theirs."""
    return score_sub_open(own(ANSClassifier, random_state=seed), *sub_open_setting(title, seed, method.ngram_weight))


WEIGHTS = Table(
    name="open-intents-ngram-weight",
    source="No paper: features of letters beside embeddings",
    caption="ANS by the weight of features of letters; a half of the known classes plays the open ones.",
    rows={f"weight {weight:g}" if weight else "embeddings alone": Weighted(weight) for weight in (0.0, 0.4, 0.8, 1.2)},
    columns=SHELL.columns,
    metrics=SHELL.metrics,
    measure=measure_weight,
    seeds={"cpu": range(3)},
    profiles={"cpu": {}},
    needs=COMPARED.needs,
    notes="Only training rows of the known classes of each setting are used, as in decision-rules. The F1 is the mean "
    f"over shares of open rows of {', '.join(f'{share:.0%}' for share in SHARES)}: open rows are weighted. It is that "
    "of the own rule, then of the threshold that rejects 12 % of the test rows of sub-known classes, then of the best "
    "threshold in hindsight. False alarms are test rows of sub-known classes that the own rule rejects. Before this "
    "table, words, pairs of words and hashed words were tried in the place of letters on five of these settings with "
    "another seed: the mean F1 at 12 % was 85.0 to 85.5 with them, 85.7 with letters, 83.9 without. Seconds are to "
    "fit; other work shared the machine.",
    higher_is_better=SHELL.higher_is_better,
    formats=SHELL.formats,
    average=True,
)


def measure(method: Any, title: str, seed: int) -> dict[str, float]:
    """Fits the method to the texts of the known classes and evaluates it on the whole test set."""
    if not isinstance(method, WordLogits):
        method.set_params(encoder=TextEncoder(ngram_weight=WEIGHT, random_state=seed))
    return score(method.set_params(random_state=seed), texts_of(title, seed))


NGRAMS = Table(
    name="open-intents-ngrams",
    source=COMPARED.source,
    caption="The nine settings on embeddings with features of letters, which keep the words that name a topic.",
    rows={
        "ANS": own(ANSClassifier),
        "nearest neighbour": PlainScore(score="nearest"),
        "max logit": PlainScore(score="max logit"),
        "max logit, all words": WordLogits(),
    },
    columns=COMPARED.columns,
    metrics=SCORED,
    measure=measure,
    seeds={"cpu": range(10), "paper": range(10)},
    profiles=COMPARED.profiles,
    printed={key: value for key, value in COMPARED.printed.items() if key[0] == "ANS"},
    needs=COMPARED.needs,
    notes=f"As open-intents, with TextEncoder(ngram_weight={WEIGHT:g}): beside the frozen embedding of a text stand "
    "128 features of its letters, learnt without labels from the texts that train. The thesis tunes its encoder on the "
    "known classes, by which it learns which words matter. In open-intents-ngram-weight, on known classes, the weights "
    "0.8 and 1.2 are level, and 0.8 costs less on BANKING. The last row is a logistic regression on the embedding and "
    "the TF-IDF of all words and pairs of words, with twice the weight of the embedding (chosen on known classes, one "
    "seed). Before, other runs of these settings were looked at, whose thresholds came from a tenth of the training "
    "rows; no parameter was chosen by them.",
    higher_is_better=HIGHER,
    formats=FORMATS,
    average=True,
)

TABLES = (WEIGHTS, NGRAMS)
