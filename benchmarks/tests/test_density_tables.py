"""The tables of density: the papers' numbers, disjoint images, and pictures that can be drawn."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure as Drawing

from offmap.data import DataNotFound
from offmap.density.vae.scores import SCORES
from offmap_bench.table import Table
from offmap_bench.tables import negative_sampling_epochs, novelty_scores, robustifying, speed_density
from offmap_bench.tables.negative_sampling import (
    COLOUR,
    GREY,
    NEGATIVES,
    NEGATIVES_COLOUR,
    NOISE,
    NOISE_COLOUR,
    Setting,
    images,
    measure,
    softened,
)
from offmap_bench.tables.novelty_scores import CONSTANT, QUICK, SLOW, Novel


def test_printed_numbers_stand_where_the_paper_has_them() -> None:
    assert NOISE.printed["Bernoulli", GREY, "auroc_bpd"] == 0.46
    assert NOISE.printed["Gaussian", "mnist → fashion-mnist", "auroc_kl"] == 0.71
    assert NOISE_COLOUR.printed["Quantized Gaussian", COLOUR, "auroc_bpd"] == 0.19
    assert NEGATIVES.printed["Bernoulli, generated", GREY, "auroc_kl"] == 0.88
    assert NEGATIVES.printed["Bernoulli, images with noise", GREY, "auroc_bpd"] == 0.44
    assert NEGATIVES_COLOUR.printed["Gaussian, generated", COLOUR, "auroc_kl"] == 0.63
    assert len(NOISE_COLOUR.printed) == 10


@pytest.mark.parametrize(
    ("table", "base", "pair"),
    [*zip(negative_sampling_epochs.TABLES, (NEGATIVES, NEGATIVES_COLOUR), (GREY, COLOUR), strict=True)],
    ids=["grey", "colour"],
)
def test_generated_negatives_are_trained_for_the_epochs_of_the_column(
    table: Table, base: Table, pair: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained: list[Any] = []
    monkeypatch.setattr(negative_sampling_epochs, "measure", lambda *how: trained.append(how))
    table.measure(table.method("Bernoulli, generated", "cpu"), "2 epochs", 1)
    assert trained == [(replace(base.method("Bernoulli, generated", "cpu"), epochs=2), pair, 1)]


def test_softened_images_keep_their_mean_and_lose_detail_or_contrast() -> None:
    sharp = np.random.default_rng(0).integers(0, 256, (600, 8, 8, 3), dtype=np.uint8)
    soft = softened(sharp)
    assert soft.shape == sharp.shape
    assert soft.dtype == np.uint8
    before, after = (each.astype(float) for each in (sharp, soft))
    assert np.abs(after.mean((1, 2)) - before.mean((1, 2))).max() < 1.0
    spread = after.std((1, 2)).mean(1) / before.std((1, 2)).mean(1)
    assert spread.max() < 1.001
    # A third at full detail, half of which keeps its contrast.
    assert 0.12 < (spread > 0.99).mean() < 0.22
    # White noise loses three quarters of its amplitude, and more by interpolation, where it is coarser by 4.
    assert 0.25 < (spread < 0.2).mean() < 0.5


def test_the_paper_profile_is_the_papers_protocol() -> None:
    grey, colour = NOISE.method("Gaussian", "paper"), NOISE_COLOUR.method("Gaussian", "paper")
    for setting, optimizer in ((grey, "rmsprop"), (colour, "adam")):
        found = setting.detector(3).get_params()
        expected = {"epochs": 100, "batch_size": 50, "lr": 1e-4, "optimizer": optimizer, "random_state": 3}
        assert {name: found[name] for name in expected} == expected


def test_every_score_is_in_a_table() -> None:
    assert {*QUICK, *SLOW, "elbo"} == {*SCORES}


def test_a_set_is_not_told_from_itself() -> None:
    assert all(math.isnan(value) for value in novelty_scores.measure(Novel(name="mnist"), "mnist", 0).values())


def test_images_that_show_nothing_take_the_shape_of_the_normal_ones() -> None:
    made = Novel(name=CONSTANT, tested=5).load(np.zeros((1, 6, 4, 3), dtype=np.uint8))
    assert made.shape == (5, 6, 4, 3)
    assert all(len(np.unique(image.reshape(-1, 3), axis=0)) == 1 for image in made)


def test_histograms_of_both_sets_share_their_bins(tmp_path: Path) -> None:
    drawing = Drawing()
    axes = drawing.subplots()
    rng = np.random.default_rng(0)
    robustifying.draw_panel(axes, GREY, "Bernoulli", (rng.normal(size=300), rng.normal(1, 1, size=300)))
    legend = axes.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["Fashion-MNIST", "MNIST"]
    assert "AUROC 0.7" in axes.get_title()
    drawing.savefig(tmp_path / "panel.png")


def test_contenders_score_the_same_images(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, Any] = {}

    class Rival:
        def fit(self, X: Any) -> "Rival":
            return self

        def decision_function(self, X: Any) -> Any:
            seen["rival"] = X.shape
            return X

    monkeypatch.setattr(speed_density, "pyod_vae", Rival)
    found = speed_density.measure(speed_density.Scoring(rows=200, side=16, turns=2), "1 thread", 0)
    assert set(found) == set(speed_density.IMAGES.metrics)
    assert 0 < found["ours / limit"] < 1.5
    assert seen["rival"] == (200, 256)


@pytest.mark.data
@pytest.mark.filterwarnings("ignore::offmap.calibration.CalibrationWarning")
def test_images_of_training_and_test_are_apart_and_a_row_can_be_measured() -> None:
    try:
        training, test = images("letters", "train", 10_000), images("letters", "test", 10_000)
        assert {image.tobytes() for image in training}.isdisjoint(image.tobytes() for image in test)
        assert len(training) == 3 * 5934 // 4
        setting = Setting(likelihood="bernoulli", images=200, tested=50, epochs=1)
        found = measure(setting, "letters → kmnist", 0)
    except DataNotFound as error:
        pytest.skip(str(error))
    assert set(found) == set(NOISE.metrics)
