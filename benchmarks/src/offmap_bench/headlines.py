"""The few results that the README shows, each with a plain rival, read from the stored cells."""

from pathlib import Path

from offmap_bench.places import RESULTS
from offmap_bench.samples import Samples, mean_sample, read_samples
from offmap_bench.table import Table
from offmap_bench.tables.collaborative_mixtures import TABLES as MIXTURES
from offmap_bench.tables.novelty_scores import TABLES as NOVELTY
from offmap_bench.tables.open_intents import COMPARED
from offmap_bench.tables.open_intents_together import TABLES as TOGETHER
from offmap_bench.tables.promises import RATES
from offmap_bench.tables.tabular_anomalies import TABLES as TABULAR

_TABLES = {table.name: table for table in (RATES, *MIXTURES, *NOVELTY, *TOGETHER, *TABULAR)}
_F1 = "f1, suggested rate"


def headlines(results: Path = RESULTS) -> list[str]:
    """Returns the lines of the README's table of results."""
    samples = {name: read_samples(table, "cpu", results)[0] for name, table in _TABLES.items()}

    def percent(table: str, row: str, metric: str, *columns: str) -> str:
        """The mean over the columns and seeds."""
        of = _TABLES[table]
        chosen = [samples[table][row, column, metric] for column in columns or of.columns]
        return f"{100 * mean_sample(chosen, of.format(metric)).mean:.1f}"

    small, large = "open-intents-together", "open-intents-together-encoder"
    entities, entity = "collaborative-mixtures", "12 Gaussians, 30 rows each"
    colour = ("novelty-scores-colour", "svhn")
    nearest = "nearest neighbour"
    return [
        _line(
            "reject unknown intents: mean F1 of nine settings, %",
            f"ANS {percent(small, 'ANS', _F1)}; rows judged together {percent(small, 'ANS', _F1 + ', together')}",
            f"nearest row {percent(small, nearest, _F1)} and {percent(small, nearest, _F1 + ', together')}; "
            f"ANS of the thesis {_thesis():.1f}",
        ),
        _line(
            "the same with an encoder of the size of BERT",
            f"ANS {percent(large, 'ANS', _F1)} and {percent(large, 'ANS', _F1 + ', together')}",
            f"nearest row {percent(large, nearest, _F1)} and {percent(large, nearest, _F1 + ', together')}",
        ),
        _line(
            "false alarms at a promised 5 %, 13 data sets, 100 splits each",
            _rates(samples[RATES.name], RATES),
            "",
        ),
        _line(
            "anomalies in 29 tables of ADBench: AUROC, %",
            f"nearest neighbour {percent('tabular-anomalies', 'NearestNeighborDetector', 'auroc')}, "
            f"VAE by its score `nearest` {percent('tabular-anomalies', 'VAEDetector, nearest', 'auroc')}",
            f"PyOD's KNN {percent('tabular-anomalies', 'KNN', 'auroc')}, "
            f"isolation forest {percent('tabular-anomalies', 'IsolationForest', 'auroc')}",
        ),
        _line(
            "house numbers (SVHN) among photos (CIFAR-10): AUROC, %",
            f"VAE by its score `texture` {percent(*colour, 'texture', 'cifar10')}",
            f"the same VAE by its likelihood {percent(*colour, 'bpd', 'cifar10')}",
        ),
        _line(
            "unusual for one of 300 entities, 30 rows each: AUROC, %",
            f"ratio {percent(entities, 'ratio, the default', 'seen', entity)}",
            f"nearest rows of the entity {percent(entities, 'nearest rows of the entity', 'seen', entity)}; "
            f"the true components {percent(entities, 'true components', 'seen', entity)}",
        ),
    ]


def _thesis() -> float:
    printed = [float(COMPARED.printed["ANS", column, "f1"]) for column in COMPARED.columns]
    return sum(printed) / len(printed)


def _rates(samples: Samples, table: Table) -> str:
    """The lowest and highest rate of models of one split; PyOD's ECOD depends on the batch and is promised nothing."""
    rows = [row for row in table.rows if row.endswith(", split") and "ECOD" not in row]
    rates = [samples[row, column, "rate"].mean for row in rows for column in table.columns]
    return f"{100 * min(rates):.1f} to {100 * max(rates):.1f} %"


def _line(task: str, ours: str, rivals: str) -> str:
    return f"| {task} | {ours} | {rivals} |"
