"""What the detector scores, what it refuses, and what it can and cannot tell apart."""

import io
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV, cross_val_score
from torch import nn
from torch.distributions import Bernoulli, Normal, kl_divergence

import offmap
from offmap.data import load
from offmap.density import VAEDetector
from offmap.density.vae import Negatives, scores
from offmap.density.vae.network import VAE
from offmap.density.vae.scores import SCORES, WAIC, LikelihoodRatio, LikelihoodRegret
from offmap.density.vae.training import TrainingSchedule, mean_negative_elbo
from offmap.metrics import auroc
from offmap.nets import ConvEncoder, DCGANEncoder
from tests.real_data import require

Array = NDArray[Any]
FEATURES = np.random.default_rng(0).normal([5.0, -200.0, 0.0], [1.0, 30.0, 1e-3], size=(300, 3))
IMAGES = np.random.default_rng(0).random((240, 8, 6, 2))
SMALL: dict[str, Any] = {"epochs": 2, "hidden": (16,), "latent_dim": 3, "random_state": 0}
SCORE_NAMES: list[Any] = [name for name in SCORES if name not in ("complexity", "texture", "waic", "likelihood_ratio")]


@pytest.fixture(scope="module", params=["gaussian", "bernoulli", "gaussian_learned"])
def case(request: pytest.FixtureRequest) -> tuple[VAEDetector, Array]:
    rows = IMAGES if request.param == "bernoulli" else FEATURES
    settings = SMALL | {"likelihood": request.param, "novelty_score": "bpd", "extra_scores": tuple(SCORE_NAMES)}
    return VAEDetector(**settings).fit(rows), rows


def parts(detector: VAEDetector, rows: Array) -> tuple[Array, Array]:
    """−log p(x | z) and KL of each row in nats, by torch.distributions."""
    network, X = detector.network_, torch.from_numpy(rows.astype(np.float32))
    X = X.permute(0, 3, 1, 2) if X.ndim == 4 else network.prepare(X)
    with torch.no_grad():
        mean, log_var = network.encoder(X).chunk(2, dim=1)
        q = Normal(mean, (log_var / 2).exp())
        output = network.decoder(mean + q.stddev * network.draw)
        likelihoods: dict[str, Any] = {
            "gaussian": Normal(output, 1.0),
            "gaussian_learned": Normal(output, getattr(network.likelihood, "scale", torch.ones(()))),
            "bernoulli": Bernoulli(logits=output, validate_args=False),
        }
        p = likelihoods[detector.likelihood]
        reconstruction, kl = -p.log_prob(X).flatten(1).sum(1), kl_divergence(q, Normal(0.0, 1.0)).sum(1)
    return reconstruction.numpy(), kl.numpy()


def test_bpd_is_the_negative_bound_in_bits_per_dimension(case: tuple[VAEDetector, Array]) -> None:
    detector, rows = case
    reconstruction, kl = parts(detector, rows)
    bits = (reconstruction + kl) / math.log(2) / rows[0].size
    np.testing.assert_allclose(detector.novelty(rows), bits, rtol=1e-4, atol=1e-5)


def test_elbo_and_kl_are_in_nats_and_kl_is_never_below_0(case: tuple[VAEDetector, Array]) -> None:
    detector, rows = case
    reconstruction, kl = parts(detector, rows)
    np.testing.assert_allclose(detector.novelty_by("kl", rows), kl, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(detector.novelty_by("elbo", rows), reconstruction + kl, rtol=1e-4, atol=1e-3)
    assert (detector.novelty_by("kl", 10 * FEATURES if rows is FEATURES else 1 - IMAGES) >= 0).all()


def test_typicality_is_the_distance_from_the_mean_of_held_out_rows(case: tuple[VAEDetector, Array]) -> None:
    detector, rows = case
    centre = detector.reference_statistics_["typicality"].mean()
    expected = np.abs(detector.novelty_by("bpd", rows) - centre)
    np.testing.assert_allclose(detector.novelty_by("typicality", rows), expected, rtol=1e-4, atol=1e-5)
    assert abs(centre - detector.novelty(rows).mean()) < 0.2 * detector.novelty(rows).std()


def test_the_importance_weighted_bound_is_the_mean_of_the_weights(case: tuple[VAEDetector, Array]) -> None:
    detector, rows = case
    network, X = detector.network_, torch.from_numpy(rows.astype(np.float32))
    X = X.permute(0, 3, 1, 2) if X.ndim == 4 else network.prepare(X)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        draws = torch.randn(8, 1, 3, generator=generator)
        weights = torch.stack([network.log_weights(X, draw[None])[0] for draw in draws])
    bits = (math.log(8) - weights.logsumexp(0)).numpy() / math.log(2) / rows[0].size
    np.testing.assert_allclose(detector.novelty_by("importance", rows), bits, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("score", SCORE_NAMES)
def test_scoring_twice_and_row_by_row_gives_the_same_bytes(case: tuple[VAEDetector, Array], score: Any) -> None:
    detector, rows = case
    first = detector.novelty_by(score, rows)
    torch.rand(7)
    assert detector.novelty_by(score, rows).tobytes() == first.tobytes()
    assert detector.novelty_by(score, rows[5:9]).tobytes() == first[5:9].tobytes()


def test_regret_is_what_a_posterior_of_its_own_would_gain(case: tuple[VAEDetector, Array]) -> None:
    detector, rows = case
    regret = detector.novelty_by("regret", rows[:40])
    assert (regret >= 0).all()
    assert regret.max() > 0.01
    shorter = clone(detector).set_params(extra_scores=(), novelty_score=LikelihoodRegret(steps=1)).fit(rows)
    assert regret.mean() > shorter.novelty(rows[:40]).mean()


def test_regret_compares_both_bounds_at_the_same_draws(
    case: tuple[VAEDetector, Array], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A posterior that does not move has nothing to gain; other draws would show a gain of their own."""
    detector, rows = case
    monkeypatch.setattr("offmap.density.vae.scores.regret._LEARNING_RATE", 0.0)
    assert (detector.novelty_by("regret", rows) == 0).all()


def test_training_lowers_the_bound_and_its_terms_are_in_nats_a_row() -> None:
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


@pytest.mark.parametrize("score", ["complexity", WAIC(n_networks=2), "likelihood_ratio", "auto", "texture", "nearest"])
def test_scores_with_parts_of_their_own_are_saved_with_them(score: Any, tmp_path: Path) -> None:
    detector = VAEDetector(**SMALL, novelty_score=score, extra_scores=(LikelihoodRegret(steps=2),)).fit(IMAGES)
    detector.save(tmp_path / "model")
    loaded = offmap.load(tmp_path / "model")
    assert loaded.novelty(IMAGES).tobytes() == detector.novelty(IMAGES).tobytes()
    assert loaded.novelty_by("regret", IMAGES[:9]).tobytes() == detector.novelty_by("regret", IMAGES[:9]).tobytes()
    assert repr(loaded) == repr(detector)
    assert len(detector.ensemble_) == isinstance(score, WAIC)
    assert (detector.background_ is not None) == (score == "likelihood_ratio")


def test_the_ratio_and_the_criterion_are_what_they_say() -> None:
    detector = VAEDetector(**SMALL, novelty_score=WAIC(n_networks=3), extra_scores=("likelihood_ratio",)).fit(IMAGES)
    X = torch.from_numpy(IMAGES.astype(np.float32)).permute(0, 3, 1, 2)
    with torch.no_grad():
        networks = (detector.network_, *detector.ensemble_, detector.background_)
        members = (detector.network_, *detector.ensemble_)
        weights = [network.log_weights(X, detector._networks().draws(8)).double().exp() for network in members]
        first, background = (sum(network.bound(X, network.draw)).numpy() for network in (networks[0], networks[-1]))
    nats = [-weight.mean(0).log().numpy() for weight in weights]
    expected = np.mean(nats, axis=0) + np.var(nats, axis=0, ddof=1)
    np.testing.assert_allclose(detector.novelty(IMAGES), expected, rtol=1e-3)
    ratio = (first - background) / IMAGES[0].size / math.log(2)
    np.testing.assert_allclose(detector.novelty_by("likelihood_ratio", IMAGES), ratio, rtol=1e-3, atol=1e-4)
    assert {"network 3 kl", "background kl"} <= detector.history_.keys()


def test_the_background_model_learns_from_mutated_rows() -> None:
    """With nearly all values replaced it learns their range alone, and fits the rows themselves worse."""
    bounds = {}
    for mutation in (0.01, 0.99):
        ratio = LikelihoodRatio(mutation=mutation)
        detector = VAEDetector(**SMALL | {"epochs": 30}, novelty_score=ratio).fit(FEATURES)
        assert detector.background_ is not None
        prepared = detector.network_.prepare(torch.from_numpy(FEATURES).float())
        with torch.no_grad():
            bounds[mutation] = mean_negative_elbo(detector.background_, prepared)
    assert bounds[0.01] < bounds[0.99] - 0.3


def test_an_ensemble_of_one_is_refused_before_it_is_trained() -> None:
    with pytest.raises(ValueError, match="n_networks must be an integer at least 2; got 1"):
        VAEDetector(**SMALL, novelty_score=WAIC(n_networks=1)).fit(IMAGES)


def test_copies_of_one_image_among_normal_ones_leave_the_texture_score_finite() -> None:
    rng = np.random.default_rng(0)
    X = rng.integers(0, 256, size=(220, 16, 16), dtype=np.uint8)
    X[::11] = 0
    detector = VAEDetector(novelty_score="texture", epochs=1, random_state=0).fit(X)
    assert np.isfinite(detector.novelty(X)).all()
    assert np.isfinite(detector.threshold_)
    assert (detector.predict(np.full((3, 16, 16), 255, dtype=np.uint8)) == -1).all()


@pytest.mark.parametrize(("rows", "score"), [(FEATURES, "bpd"), (IMAGES, "lpath")])
def test_the_default_score_is_the_likelihood_and_for_images_its_path(rows: Array, score: str) -> None:
    detector = VAEDetector(**SMALL).fit(rows)
    assert detector.novelty(rows).tobytes() == detector.novelty_by(score, rows).tobytes()


def test_the_first_settings_of_a_score_that_is_given_twice_count() -> None:
    twice = VAEDetector(**SMALL, novelty_score=WAIC(n_networks=2), extra_scores=("waic",)).fit(FEATURES)
    assert len(twice.ensemble_) == 1
    assert twice.novelty_by("waic", FEATURES).tobytes() == twice.novelty(FEATURES).tobytes()


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


def test_complexity_is_the_length_of_a_png_file_in_bits() -> None:
    detector = VAEDetector(**SMALL, novelty_score="complexity").fit(IMAGES[..., :1])
    pixels = np.round(255 * IMAGES[:3, ..., 0]).astype(np.uint8)
    expected = detector.novelty_by("bpd", pixels) + math.log2(255)
    for place, image in enumerate(pixels):
        file = io.BytesIO()
        Image.fromarray(image).save(file, "png")
        expected[place] -= 8 * len(file.getvalue()) / image.size
    np.testing.assert_allclose(detector.novelty(pixels), expected, rtol=1e-5)
    with pytest.raises(ValueError, match="the score 'complexity' needs images"):
        VAEDetector(**SMALL, novelty_score="complexity").fit(FEATURES)


def test_a_score_that_fit_did_not_prepare_says_how_to() -> None:
    detector = VAEDetector(**SMALL, novelty_score="bpd").fit(FEATURES)
    with pytest.raises(
        ValueError, match=r"the score 'nearest' was not prepared by fit: fit with extra_scores=\('nearest',\)"
    ):
        detector.novelty_by("nearest", FEATURES)
    for name in ("lpath", "waic", "likelihood_ratio"):
        with pytest.raises(ValueError, match=f"the score '{name}' was not prepared by fit"):
            VAEDetector(**SMALL, novelty_score="bpd").fit(FEATURES).set_params(novelty_score=name).novelty(FEATURES)
    with pytest.raises(ValueError, match="score must be among 'lpath', 'bpd'"):
        detector.novelty_by("likelihood", FEATURES)


def test_scores_have_one_name_everywhere() -> None:
    assert all(score.name == name and type(score).__name__ in scores.__all__ for name, score in SCORES.items())
    for score in SCORES.values():
        assert "ost" in (score.__doc__ or "")
        assert "ail" in (score.__doc__ or "")
    with pytest.raises(ValueError, match="novelty_score must be 'auto', a str among 'lpath', 'bpd'"):
        VAEDetector(novelty_score="likelihood").fit(FEATURES)


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
def test_digits_look_likelier_than_the_clothes_it_was_taught() -> None:
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
