"""What the detector scores, what it refuses, and what it can and cannot tell apart."""

import io
import math
import typing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image
from sklearn.datasets import load_digits
from torch import nn
from torch.distributions import Bernoulli, Normal, kl_divergence

import offmap
from offmap.data import load
from offmap.density import VAEDetector
from offmap.density.regimen import mean_bound
from offmap.density.scores import SCORES
from offmap.density.vae import VAE
from offmap.metrics import auroc
from offmap.nets import ConvEncoder, DCGANEncoder
from offmap.parameters import hints
from tests.real_data import require

Array = NDArray[Any]
FEATURES = np.random.default_rng(0).normal([5.0, -200.0, 0.0], [1.0, 30.0, 1e-3], size=(300, 3))
IMAGES = np.random.default_rng(0).random((240, 8, 6, 2))
SMALL: dict[str, Any] = {"epochs": 2, "hidden": (16,), "latent": 3, "random_state": 0}
SCORE_NAMES: list[Any] = [name for name in SCORES if name not in ("complexity", "views", "waic", "likelihood_ratio")]


@pytest.fixture(scope="module", params=["gaussian", "bernoulli", "gaussian_learned"])
def case(request: pytest.FixtureRequest) -> tuple[VAEDetector, Array]:
    rows = IMAGES if request.param == "bernoulli" else FEATURES
    return VAEDetector(**SMALL, noise=request.param, score="bpd", also=tuple(SCORE_NAMES)).fit(rows), rows


def parts(detector: VAEDetector, rows: Array) -> tuple[Array, Array]:
    """−log p(x | z) and KL of each row in nats, by torch.distributions."""
    network, X = detector.network_, torch.from_numpy(rows.astype(np.float32))
    X = X.permute(0, 3, 1, 2) if X.ndim == 4 else network.prepare(X)
    with torch.no_grad():
        mean, log_var = network.encoder(X).chunk(2, dim=1)
        q = Normal(mean, (log_var / 2).exp())
        output = network.decoder(mean + q.stddev * network.draw)
        noises: dict[str, Any] = {
            "gaussian": Normal(output, 1.0),
            "gaussian_learned": Normal(output, getattr(network.noise, "scale", torch.ones(()))),
            "bernoulli": Bernoulli(logits=output, validate_args=False),
        }
        p = noises[detector.noise]
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


def test_typicality_is_the_distance_from_the_mean_of_rows_kept_aside(case: tuple[VAEDetector, Array]) -> None:
    detector, rows = case
    centre = detector.normal_["typicality"].mean()
    expected = np.abs(detector.novelty_by("bpd", rows) - centre)
    np.testing.assert_allclose(detector.novelty_by("typicality", rows), expected, rtol=1e-4, atol=1e-5)
    assert abs(centre - detector.novelty(rows).mean()) < 0.2 * detector.novelty(rows).std()


def test_the_importance_weighted_bound_is_the_mean_of_the_weights(case: tuple[VAEDetector, Array]) -> None:
    detector, rows = case
    network, X = detector.network_, torch.from_numpy(rows.astype(np.float32))
    X = X.permute(0, 3, 1, 2) if X.ndim == 4 else network.prepare(X)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        draws = torch.randn(detector.samples, 1, 3, generator=generator)
        weights = torch.stack([network.log_weights(X, draw[None])[0] for draw in draws])
    bits = (math.log(detector.samples) - weights.logsumexp(0)).numpy() / math.log(2) / rows[0].size
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
    longer = VAEDetector(**detector.get_params() | {"also": (), "score": "regret", "regret_steps": 1}).fit(rows)
    assert regret.mean() > longer.novelty(rows[:40]).mean()


def test_training_lowers_the_bound_and_its_terms_are_in_nats_a_row() -> None:
    detector = VAEDetector(**SMALL | {"epochs": 30}, score="bpd", noise="gaussian").fit(FEATURES)
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
            ValueError, match=r'noise="bernoulli" needs values of X in \[0, 1\]; use noise="gaussian_learned"'
        ):
            VAEDetector(**SMALL, noise="bernoulli").fit(rows)


def test_under_bernoulli_features_outside_0_to_1_are_infinitely_novel() -> None:
    rows = np.random.default_rng(0).random((300, 3))
    detector = VAEDetector(**SMALL, noise="bernoulli", score="bpd").fit(rows)
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
        return mean_bound(network, X)

    monkeypatch.setattr("offmap.density.regimen.mean_bound", watching)
    VAEDetector(**SMALL, patience=2).fit(rows)
    assert seen[0].shape == (90, 1)
    assert abs(np.mean(seen[0])) < 0.4
    assert 0.7 < np.std(seen[0]) < 1.3


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


@pytest.mark.parametrize("score", ["complexity", "waic", "likelihood_ratio", "auto", "views"])
def test_scores_with_parts_of_their_own_are_saved_with_them(score: Any, tmp_path: Path) -> None:
    detector = VAEDetector(**SMALL, score=score, ensemble=2).fit(IMAGES)
    detector.save(tmp_path / "model")
    loaded = offmap.load(tmp_path / "model")
    assert loaded.novelty(IMAGES).tobytes() == detector.novelty(IMAGES).tobytes()
    assert len(detector.ensemble_) == (score == "waic")
    assert (detector.background_ is not None) == (score == "likelihood_ratio")


def test_the_ratio_and_the_criterion_are_what_they_say() -> None:
    detector = VAEDetector(**SMALL, score="waic", also=("likelihood_ratio",), ensemble=3).fit(IMAGES)
    X = torch.from_numpy(IMAGES.astype(np.float32)).permute(0, 3, 1, 2)
    with torch.no_grad():
        networks = (detector.network_, *detector.ensemble_, detector.background_)
        members = (detector.network_, *detector.ensemble_)
        weights = [network.log_weights(X, detector._models().draws()).double().exp() for network in members]
        first, background = (sum(network.bound(X, network.draw)).numpy() for network in (networks[0], networks[-1]))
    nats = [-weight.mean(0).log().numpy() for weight in weights]
    expected = np.mean(nats, axis=0) + np.var(nats, axis=0, ddof=1)
    np.testing.assert_allclose(detector.novelty(IMAGES), expected, rtol=1e-3)
    ratio = (first - background) / IMAGES[0].size / math.log(2)
    np.testing.assert_allclose(detector.novelty_by("likelihood_ratio", IMAGES), ratio, rtol=1e-3, atol=1e-4)
    assert {"network 3 kl", "background kl"} <= detector.history_.keys()


def test_an_ensemble_of_one_is_refused_before_it_is_trained() -> None:
    with pytest.raises(ValueError, match="ensemble must be at least 2 for score 'waic'; got 1"):
        VAEDetector(**SMALL, score="waic", ensemble=1).fit(IMAGES)


def test_copies_of_one_image_among_normal_ones_leave_the_default_score_finite() -> None:
    rng = np.random.default_rng(0)
    X = rng.integers(0, 256, size=(220, 16, 16), dtype=np.uint8)
    X[::11] = 0
    detector = VAEDetector(epochs=1, random_state=0).fit(X)
    assert np.isfinite(detector.novelty(X)).all()
    assert np.isfinite(detector.threshold_)
    assert (detector.predict(np.full((3, 16, 16), 255, dtype=np.uint8)) == -1).all()


def test_negatives_that_are_no_images_are_named() -> None:
    with pytest.raises(ValueError, match="negatives holds images; expected uint8"):
        VAEDetector(**SMALL, negatives=255 * IMAGES.astype(np.float64)).fit(IMAGES)


def test_complexity_is_the_length_of_a_png_file_in_bits() -> None:
    detector = VAEDetector(**SMALL, score="complexity").fit(IMAGES[..., :1])
    pixels = np.round(255 * IMAGES[:3, ..., 0]).astype(np.uint8)
    expected = detector.novelty_by("bpd", pixels) + math.log2(255)
    for place, image in enumerate(pixels):
        file = io.BytesIO()
        Image.fromarray(image).save(file, "png")
        expected[place] -= 8 * len(file.getvalue()) / image.size
    np.testing.assert_allclose(detector.novelty(pixels), expected, rtol=1e-5)
    with pytest.raises(ValueError, match="score='complexity' needs images"):
        VAEDetector(**SMALL, score="complexity").fit(FEATURES)


def test_a_score_that_was_not_made_ready_says_how_to() -> None:
    detector = VAEDetector(**SMALL, score="bpd").fit(FEATURES)
    with pytest.raises(
        ValueError, match=r"score 'nearest' needs to be made ready while fitting: fit with also=\('nearest',\)"
    ):
        detector.novelty_by("auto", FEATURES)
    for name in ("lpath", "waic", "likelihood_ratio"):
        with pytest.raises(ValueError, match=f"score '{name}' needs to be made ready"):
            VAEDetector(**SMALL, score="bpd").fit(FEATURES).set_params(score=name).novelty(FEATURES)
    with pytest.raises(ValueError, match="score must be among 'bpd', 'elbo'"):
        detector.novelty_by("likelihood", FEATURES)  # type: ignore[arg-type]


def test_scores_have_one_name_everywhere() -> None:
    assert set(typing.get_args(hints(VAEDetector)["score"])) == {"auto", *SCORES}
    assert all("Cost" in (score.__doc__ or "") or "same failures" in (score.__doc__ or "") for score in SCORES.values())


@pytest.mark.parametrize("negatives", ["noise", "uniform", "generated", FEATURES[:50] * [2.0, 2.0, -3.0]])
@pytest.mark.parametrize("objective", ["elbo", "forward_kl"])
def test_negatives_end_up_away_from_the_prior(negatives: Any, objective: Any) -> None:
    settings = SMALL | {"epochs": 25, "lr": 5e-3}
    detector = VAEDetector(**settings, negatives=negatives, objective=objective, shift=4.0).fit(FEATURES)
    history = detector.history_["negatives"]
    assert history[-1] < 0.8 * history[0]


def digits(known: int) -> tuple[Array, Array, Array]:
    """Images to learn, images to pass and images to notice."""
    data = load_digits()
    images, taught = data.images / 16, data.target < known
    return images[taught][:900], images[taught][900:], images[~taught]


def test_digits_it_was_never_taught_are_novel_by_default() -> None:
    training, test, novel = digits(7)
    detector = VAEDetector(epochs=60, random_state=0, also=("bpd",)).fit(training)
    assert auroc(detector.novelty(test), detector.novelty(novel)) > 0.93
    static = np.random.default_rng(0).random((200, 8, 8))
    flat = np.repeat(np.linspace(0, 1, 200), 64).reshape(200, 8, 8)
    for odd in (static, flat, 1 - test, 0.4 * test, test[:, ::-1].transpose(0, 2, 1)):
        assert auroc(detector.novelty(test), detector.novelty(odd)) > 0.9


def test_auxiliary_negatives_lift_the_divergence_over_the_baseline() -> None:
    """The paper's finding, on digits: 0 to 4 are taught, 5 to 7 are negatives, 8 and 9 are met."""
    data = load_digits()
    images, label = data.images / 16, data.target
    settings: dict[str, Any] = {"noise": "bernoulli", "score": "kl", "epochs": 40, "random_state": 0}
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
    """The known blind spot of the likelihood with Bernoulli noise."""
    for name in ("fashion-mnist", "mnist"):
        require(name)
    clothes, digits = load("fashion-mnist", "test").X[:1000], load("mnist", "test").X[:1000]
    detector = VAEDetector(noise="bernoulli", score="bpd", network="mlp", epochs=8, batch_size=64, random_state=0)
    detector.fit(load("fashion-mnist").X[:4000])
    assert auroc(detector.novelty(clothes), detector.novelty(digits)) < 0.5
    static = np.random.default_rng(0).integers(256, size=(200, 28, 28), dtype=np.uint8)
    assert auroc(detector.novelty(clothes), detector.novelty(static)) > 0.99
