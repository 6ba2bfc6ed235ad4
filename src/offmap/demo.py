"""The main job on data that comes with scikit-learn: seven digits are taught, three are met for the first time."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from offmap.data import OpenSplit, hold_out_classes, load
from offmap.demo_loop import Turn, turn
from offmap.density import VAEDetector
from offmap.openset import ANSClassifier, MSPClassifier
from offmap.report import Report, Sample, Section, compare, section_of, write_report

TITLE = "Digits 0–6 are known; 7, 8 and 9 are not"
KNOWN = range(7)
# Title and format of the numbers that matter most, short enough for a terminal of 80 columns.
COLUMNS = {
    "known_accuracy": ("known acc.", ".1%"),
    "recall": ("unknown recall", ".1%"),
    "false_alarm_rate": ("false alarms", ".1%"),
    "promised_rate": ("promised", ".1%"),
    "auroc": ("AUROC", ".3f"),
}


@dataclass(frozen=True)
class Demo:
    """What the demo found: one section per method, where the report is, and a turn of the open-world loop."""

    sections: tuple[Section, ...]
    report: Path
    seconds: float
    turn: Turn


def run(folder: Path, seed: int = 0, tell: Callable[[str], None] = lambda message: None) -> Demo:
    """Fits three methods to the digits 0–6, meets 7–9, writes ``report.html``, and learns 7–9 in a turn of the loop.

    Args:
        folder: Where the report goes; made if it is not there.
        seed: Seed of the split and of the models.
        tell: Hears what is being done.
    """
    start = perf_counter()
    folder.mkdir(parents=True, exist_ok=True)
    digits = load("digits")
    split = hold_out_classes(digits.X, np.asarray(digits.y), known=list(KNOWN), test_size=0.4, seed=seed)
    sections = []
    for name, method in _methods(seed).items():
        tell(f"fitting {name} to {len(split.X_train)} images of the digits 0–6")
        method.fit(split.X_train, split.y_train)
        sections.append(_section(name, method, split))
    report = folder / "report.html"
    write_report(report, _report(sections, split, seed))
    learnt = turn(split, seed)
    return Demo(tuple(sections), report, perf_counter() - start, learnt)


def table_of(sections: Iterable[Section]) -> list[dict[str, str]]:
    """The numbers that matter most as text, one row per method."""
    return [{"method": section.name} | _texts(section.metrics) for section in sections]


def _texts(metrics: Mapping[str, float]) -> dict[str, str]:
    return {title: format(metrics[name], spec) if name in metrics else "–" for name, (title, spec) in COLUMNS.items()}


def _methods(seed: int) -> dict[str, Any]:
    return {
        "ANS": ANSClassifier(random_state=seed, calibration=0.3),
        "MSP": MSPClassifier(random_state=seed, calibration=0.3),
        "VAE": VAEDetector(
            random_state=seed, calibration=0.3, likelihood="bernoulli", novelty_score="nearest", epochs=100
        ),
    }


def _section(name: str, method: Any, split: OpenSplit) -> Section:
    groups = (~split.unknown, split.unknown)
    normal, novel = (Sample.assessed(method, split.X_test[rows], labels=split.y_test[rows]) for rows in groups)
    extra = {}
    if normal.verdict.closest is not None:
        extra["known_accuracy"] = float(np.mean(normal.verdict.closest == normal.labels))
    return section_of(method, normal, novel, name=name, metrics=extra)


def _report(sections: list[Section], split: OpenSplit, seed: int) -> Report:
    return Report(
        title=TITLE,
        summary="Each method learnt the digits 0–6 of scikit-learn's 8×8 digits. At test time 7, 8 and 9 appear too: "
        "how many are noticed, at what rate of false alarms?",
        sections=sections,
        tables=[compare(sections)],
        facts={"training images": len(split.X_train), "test images": len(split.X_test), "seed": seed},
    )
