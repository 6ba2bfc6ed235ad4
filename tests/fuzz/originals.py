"""Small models of every public kind, and a world, whose files are then damaged."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from offmap.collaborative import EntityFlowDetector, RatioDetector
from offmap.data import TableEncoder
from offmap.density import MahalanobisDetector, NearestNeighborDetector, TextureDetector, VAEDetector
from offmap.loop import OpenWorld
from offmap.monitor import DriftMonitor
from offmap.openset import AnalyticClassifier, MSPClassifier
from offmap.sampling import FGAN, RAS, SVGD, AmortisedSVGD, BinaryVAE
from tests.estimators import CLASSIFIERS, DETECTORS, ENTITY_DETECTORS, brief

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(120, 3))
LABELS = np.array(["ant", "bee", "cow"])[np.arange(120) % 3]
ENTITIES = np.arange(120) % 5
TABLE = pd.DataFrame(
    {
        "amount": np.exp(RNG.normal(0, 2, 120)),
        "shop": np.array(["fuel", "food", "toys"])[RNG.integers(3, size=120)],
        "day": pd.Timestamp("2025-01-01") + pd.to_timedelta(RNG.integers(0, 900, 120), unit="h"),
        "age": np.where(RNG.random(120) < 0.2, np.nan, RNG.normal(40, 9, 120)),
    }
)
IMAGES = RNG.integers(256, size=(60, 8, 8), dtype=np.uint8)
_SMALL: dict[str, Any] = {"hidden": (4,), "random_state": 0}


def write_models(folder: Path) -> list[Path]:
    """One file per model."""
    models = [*_detectors(), *_classifiers(), *_entity_detectors(), *_samplers()]
    paths = [folder / f"{number}.safetensors" for number in range(len(models))]
    for model, path in zip(models, paths, strict=True):
        model.save(path)
    return paths


def _detectors() -> Iterator[Any]:
    for cls in DETECTORS:
        yield brief(cls).fit(IMAGES if cls is TextureDetector else ROWS)
    yield brief(VAEDetector, latent_dim=2, extra_scores=("waic", "regret")).fit(IMAGES)
    yield NearestNeighborDetector(random_state=0).fit(ROWS + 1e12)
    yield NearestNeighborDetector(encoder=TableEncoder(), random_state=0).fit(TABLE)
    yield MahalanobisDetector(calibration="cv", folds=3, random_state=0).fit(ROWS)


def _classifiers() -> Iterator[Any]:
    for cls in CLASSIFIERS:
        yield brief(cls).fit(ROWS, LABELS)
    yield brief(MSPClassifier, by_class="predicted").fit(ROWS, ENTITIES)
    yield brief(MSPClassifier, by_class="actual").fit(ROWS, ENTITIES)


def _entity_detectors() -> Iterator[Any]:
    for cls in ENTITY_DETECTORS:
        yield brief(cls).fit(ROWS, LABELS)
    yield brief(RatioDetector, head="concat", embedding="learned").fit(ROWS, ENTITIES)
    yield brief(RatioDetector, head="two_tower").fit(ROWS, ENTITIES)
    yield brief(RatioDetector, network="conv", augment="crop_flip").fit(IMAGES, ENTITIES[:60])
    yield brief(EntityFlowDetector, condition="affine").fit(ROWS, ENTITIES)
    yield brief(EntityFlowDetector, condition="prior").fit(ROWS, ENTITIES)


def _samplers() -> Iterator[Any]:
    small: dict[str, Any] = {"dim": 2, "steps": 2, "batch_size": 8, **_SMALL}
    yield FGAN(**small).fit(ROWS[:, :2].astype(np.float32))
    yield RAS(log_density=_log_density, **small).fit()
    yield RAS(log_density=_log_density, components=1, support=(-4.0, 4.0), **small).fit()
    yield AmortisedSVGD(log_density=_log_density, **small).fit()
    yield SVGD(log_density=_log_density, dim=2, particles=8, steps=2, random_state=0).fit()
    yield BinaryVAE(latent=2, epochs=1, **_SMALL).fit((ROWS > 0).astype(np.float32))


def write_monitor(folder: Path) -> Path:
    """The state of a monitor that has seen a change."""
    monitor = DriftMonitor(random_state=0).fit(ROWS[:, 0])
    monitor.update(np.concatenate([ROWS[:, 1], ROWS[:, 2] + 2]))
    monitor.save(folder / "monitor.safetensors")
    return folder / "monitor.safetensors"


def _log_density(x: torch.Tensor) -> torch.Tensor:
    return -x.square().sum(dim=1) / 2


def classifier() -> Any:
    """A fitted classifier that is asked about odd rows."""
    return brief(MSPClassifier).fit(ROWS, LABELS)


def write_world(folder: Path) -> Path:
    """A world in which rows were taught, observed, grouped, named and learnt; returns its folder."""
    centres = 9 * np.array([[0, 0], [1, 0], [0, 1], [1, 1]])
    y = np.tile(np.arange(4), 30)
    X = centres[y] + np.random.default_rng(0).normal(size=(120, 2))
    model = AnalyticClassifier(width=20, calibration=0.4, alpha=0.1, random_state=0)
    with OpenWorld.create(folder / "world", classifier=model, min_group=4) as world:
        world.teach(X[y < 3], y[y < 3])
        world.observe(X)
        for group in world.groups():
            world.name(group.id, 7)
        world.learn()
    return folder / "world"
