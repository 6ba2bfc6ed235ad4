"""What the detector scores, what it refuses, and what it can and cannot tell apart."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV, cross_val_score
from torch import nn

import offmap
from offmap.data import load
from offmap.density import VAEDetector
from offmap.density.vae import Negatives
from offmap.density.vae.network import VAE
from offmap.density.vae.scores import LikelihoodRegret
from offmap.density.vae.training import TrainingSchedule, mean_negative_elbo
from offmap.metrics import auroc
from offmap.nets import ConvEncoder, DCGANEncoder
from tests.density.cases import FEATURES, IMAGES, SMALL, Array
from tests.real_data import require


def test_training_lowers_the_bound_and_its_terms_are_in_nats_per_row() -> None:
    detector = VAEDetector(**SMALL | {"epochs": 30}, novelty_score="bpd", likelihood="gaussian").fit(FEATURES)
    total = np.add(detector.history_["reconstruction"], detector.history_["kl"])
    assert detector.history_.keys() == {"reconstruction", "kl"}
    assert total[-1] < total[0] - 0.1
    # The last epoch's mean over drawn latents, and the score of the same rows at one of them.
    assert abs(total[-1] - detector.novelty(FEATURES).mean() * 3 * math.log(2)) < 0.5


def test_features_are_standardised_and_times_in_seconds_do_not_diverge() -> None:
    rng = np.random.default_rng(0)
    rows = np.column_stack([1.7e9 + 600 * rng.normal(size=500), rng.normal(size=500)])
    detector = VAEDetector(**SMALL | {"epochs": 20}).fit(rows)
    assert detector.predict([[1.7e9, 0.0], [1.7e9 + 60_000, 0.0], [1.7e9, 30.0]]).tolist() == [1, -1, -1]


@pytest.mark.filterwarnings("ignore:.*copies of other rows")
def test_bernoulli_refuses_to_learn_from_values_outside_0_to_1() -> None:
    for rows in (FEATURES, np.full((30, 2), 1.01), np.full((30, 2), -0.01)):
        with pytest.raises(
            ValueError, match=r'likelihood="bernoulli" needs values of X in \[0, 1\]; use likelihood="gaussian_learned"'
        ):
            VAEDetector(**SMALL, likelihood="bernoulli").fit(rows)


def test_under_bernoulli_features_outside_0_to_1_are_infinitely_novel() -> None:
    rows = np.random.default_rng(0).random((300, 3))
    detector = VAEDetector(**SMALL, likelihood="bernoulli", novelty_score="bpd").fit(rows)
    novelty = detector.novelty([[0.5, 0.5, 0.5], [0.5, 0.5, 8.0], [-8.0, 0.5, 0.5]])
    assert np.isfinite(novelty).tolist() == [True, False, False]
    assert detector.predict([[0.5, 0.5, 8.0]]).tolist() == [-1]


@pytest.mark.parametrize(
    ("network", "shape", "expected"),
    [
        ("auto", (15, 15), nn.Sequential),
        ("auto", (16, 16), ConvEncoder),
        ("auto", (16, 17, 3), DCGANEncoder),
        ("mlp", (16, 16, 3), nn.Sequential),
        ("conv", (8, 8), ConvEncoder),
        ("dcgan", (8, 8), DCGANEncoder),
    ],
)
def test_the_network_is_the_one_asked_for(network: Any, shape: tuple[int, ...], expected: type) -> None:
    images = np.random.default_rng(0).random((200, *shape))
    for rows, image_shape in ((images, None), (images.reshape(200, -1), shape)):
        detector = VAEDetector(**SMALL | {"epochs": 1}, network=network, image_shape=image_shape).fit(rows)
        assert type(detector.network_.encoder) is expected


def test_colour_images_get_the_papers_latent_dimensions_and_prior() -> None:
    grey, colour = (np.random.default_rng(0).random((200, 8, 8, channels)) for channels in (1, 3))
    for images, latent, shift in ((grey, 10, 8), (colour, 100, 25)):
        detector = VAEDetector(epochs=1, random_state=0, negatives="uniform", hidden=(4,)).fit(images)
        assert len(detector.network_.draw) == latent
        # Before anything is learnt a posterior lies near 0, and the divergence from the other prior is known.
        assert detector.history_["negatives"][0] == pytest.approx(latent * shift**2 / 2, rel=0.3)


def test_convolutions_need_images() -> None:
    with pytest.raises(ValueError, match='network="conv" needs images; give image_shape'):
        VAEDetector(**SMALL, network="conv").fit(FEATURES)


def test_patience_looks_at_rows_drawn_from_all_of_x(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows may come sorted: a bound on the first of them alone says nothing of the rest."""
    rows = np.sort(np.random.default_rng(0).normal(size=(1000, 1)), axis=0)
    seen: list[Array] = []

    def watching(network: VAE, X: torch.Tensor) -> float:
        seen.append(X.numpy())
        return mean_negative_elbo(network, X)

    monkeypatch.setattr("offmap.density.vae.training.mean_negative_elbo", watching)
    VAEDetector(**SMALL, patience=2).fit(rows)
    assert seen[0].shape == (90, 1)
    assert abs(np.mean(seen[0])) < 0.4
    assert 0.7 < np.std(seen[0]) < 1.3


def test_held_out_rows_are_not_trained_on(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[torch.Tensor] = []
    train = TrainingSchedule.train

    def watching(schedule: TrainingSchedule, network: VAE, training: torch.Tensor, *rest: Any, **more: Any) -> Any:
        seen.extend([training, more["validation"]])
        return train(schedule, network, training, *rest, **more)

    monkeypatch.setattr(TrainingSchedule, "train", watching)
    VAEDetector(**SMALL, novelty_score="typicality", validation=0.2).fit(FEATURES)
    training, held_out = ({tuple(row) for row in rows.tolist()} for rows in seen)
    assert (len(training), len(held_out)) == (216, 54)
    assert training.isdisjoint(held_out)


def test_patience_stops_training_that_no_longer_helps() -> None:
    detector = VAEDetector(**SMALL | {"epochs": 200, "lr": 0.02}, patience=3).fit(FEATURES)
    validation = detector.history_["validation"]
    assert len(validation) < 200
    assert int(np.argmin(validation)) == len(validation) - 1 - 3


@pytest.mark.parametrize("validation", [0.001, 0.5, 0.999])
@pytest.mark.parametrize("rows", [2, 3, 20])
@pytest.mark.filterwarnings("ignore::offmap.calibration.CalibrationWarning")
def test_patience_leaves_rows_to_train_on(validation: float, rows: int) -> None:
    model = VAEDetector(**SMALL, patience=1, validation=validation).fit(FEATURES[:rows])
    assert np.isfinite(model.history_["reconstruction"]).all()


def test_validation_of_no_rows_is_refused() -> None:
    with pytest.raises(ValueError, match="validation must be a number between 0 and 1, both excluded; got 0"):
        VAEDetector(**SMALL, patience=1, validation=0).fit(FEATURES)


@pytest.mark.parametrize(("negatives", "normalised"), [("generated", False), ("uniform", True), (None, True)])
def test_batch_normalisation_gives_way_to_spectral_norms_in_adversarial_training(
    negatives: str | None, normalised: bool
) -> None:
    images = np.random.default_rng(0).random((200, 8, 8, 3))
    detector = VAEDetector(**SMALL | {"epochs": 1}, network="dcgan", negatives=negatives).fit(images)
    found = any(isinstance(layer, nn.BatchNorm2d) for layer in detector.network_.encoder.modules())
    assert found == normalised


def test_settings_of_negatives_reach_training() -> None:
    settings = SMALL | {"epochs": 1, "batch_size": 512}
    first = {
        weight: VAEDetector(**settings, negatives=Negatives(source="uniform", weight=weight, shift=30.0)).fit(FEATURES)
        for weight in (1.0, 2.0)
    }
    once, twice = (detector.history_["negatives"][0] for detector in first.values())
    assert once == pytest.approx(3 * 30**2 / 2, rel=0.05)
    assert twice == pytest.approx(2 * once)


def minus_mean_novelty(detector: VAEDetector, X: Array, y: object = None) -> float:
    return -float(detector.novelty(X).mean())


@pytest.mark.filterwarnings("ignore::offmap.calibration.CalibrationWarning")
def test_scikit_learn_scores_it_in_cross_validation() -> None:
    rows = np.concatenate([FEATURES, FEATURES + np.array([50, 0, 0])])
    labels = np.repeat([1, -1], len(FEATURES))
    model = VAEDetector(**SMALL)
    assert np.isfinite(cross_val_score(model, FEATURES, scoring=minus_mean_novelty, cv=3)).all()
    assert cross_val_score(model, rows, labels, scoring="roc_auc", cv=[(np.arange(250), np.arange(250, 600))])[0] > 0.99


@pytest.mark.filterwarnings("ignore::offmap.calibration.CalibrationWarning")
def test_a_grid_search_reaches_its_parameters_and_those_of_its_parts() -> None:
    model = VAEDetector(**SMALL, novelty_score=LikelihoodRegret(), negatives=Negatives(source="noise"))
    grid = {"latent_dim": [1, 2], "novelty_score__steps": [1, 2], "negatives__weight": [0.5]}
    search = GridSearchCV(model, grid, scoring=minus_mean_novelty, cv=2).fit(FEATURES)
    best = search.best_estimator_
    assert best.latent_dim_ == search.best_params_["latent_dim"]
    assert best.novelty_score.steps == search.best_params_["novelty_score__steps"]
    assert best.negatives.weight == 0.5
    # A fit works on copies of its parts: the model that was given stays as it was.
    assert model.get_params()["negatives__weight"] == 1.0


@pytest.mark.parametrize("source", ["noise", FEATURES[:40]])
def test_negatives_with_settings_are_saved(source: Any, tmp_path: Path) -> None:
    detector = VAEDetector(**SMALL, negatives=Negatives(source=source, weight=0.5)).fit(FEATURES)
    detector.save(tmp_path / "model")
    loaded = offmap.load(tmp_path / "model", device="cpu")
    assert loaded.negatives.weight == 0.5
    np.testing.assert_array_equal(loaded.negatives.source, source)
    assert loaded.novelty(FEATURES).tobytes() == detector.novelty(FEATURES).tobytes()


def test_negatives_that_are_no_images_are_named() -> None:
    with pytest.raises(ValueError, match="negatives holds images; expected uint8"):
        VAEDetector(**SMALL, negatives=255 * IMAGES.astype(np.float64)).fit(IMAGES)


@pytest.mark.parametrize("negatives", ["noise", "uniform", "generated", FEATURES[:50] * [2.0, 2.0, -3.0]])
@pytest.mark.parametrize("objective", ["elbo", "forward_kl"])
def test_negatives_end_up_away_from_the_prior(negatives: Any, objective: Any) -> None:
    settings = SMALL | {"epochs": 25, "lr": 5e-3}
    detector = VAEDetector(**settings, negatives=Negatives(source=negatives, shift=4.0), objective=objective).fit(
        FEATURES
    )
    history = detector.history_["negatives"]
    assert history[-1] < 0.8 * history[0]


def digits(known: int) -> tuple[Array, Array, Array]:
    """Images to learn, images to pass and images to notice."""
    data = load_digits()
    images, taught = data.images / 16, data.target < known
    return images[taught][:900], images[taught][900:], images[~taught]


def test_digits_that_were_not_in_training_are_novel_by_the_nearest_row() -> None:
    training, test, novel = digits(7)
    detector = VAEDetector(novelty_score="nearest", epochs=60, random_state=0).fit(training)
    assert auroc(detector.novelty(test), detector.novelty(novel)) > 0.93
    static = np.random.default_rng(0).random((200, 8, 8))
    flat = np.repeat(np.linspace(0, 1, 200), 64).reshape(200, 8, 8)
    for odd in (static, flat, 1 - test, 0.4 * test, test[:, ::-1].transpose(0, 2, 1)):
        assert auroc(detector.novelty(test), detector.novelty(odd)) > 0.9


def test_auxiliary_negatives_lift_the_divergence_over_the_baseline() -> None:
    """The paper's finding, on digits: 0 to 4 are taught, 5 to 7 are negatives, 8 and 9 are met."""
    data = load_digits()
    images, label = data.images / 16, data.target
    settings: dict[str, Any] = {"likelihood": "bernoulli", "novelty_score": "kl", "epochs": 40, "random_state": 0}
    training, test = images[label < 5][:700], images[label < 5][700:]
    novel, negatives = images[label > 7], images[(label > 4) & (label < 8)]
    plain, taught = (
        auroc(model.novelty(test), model.novelty(novel))
        for model in (VAEDetector(**settings, negatives=source).fit(training) for source in (None, negatives))
    )
    assert plain < 0.6
    assert taught > plain + 0.2


@pytest.mark.data
def test_digits_look_likelier_than_the_clothes_it_was_trained_on() -> None:
    """The known blind spot of the likelihood with the Bernoulli likelihood."""
    for name in ("fashion-mnist", "mnist"):
        require(name)
    clothes, digits = load("fashion-mnist", "test").X[:1000], load("mnist", "test").X[:1000]
    settings: dict[str, Any] = {"likelihood": "bernoulli", "novelty_score": "bpd", "network": "mlp"}
    detector = VAEDetector(**settings, epochs=8, batch_size=64, random_state=0)
    detector.fit(load("fashion-mnist").X[:4000])
    assert auroc(detector.novelty(clothes), detector.novelty(digits)) < 0.5
    static = np.random.default_rng(0).integers(256, size=(200, 28, 28), dtype=np.uint8)
    assert auroc(detector.novelty(clothes), detector.novelty(static)) > 0.99
