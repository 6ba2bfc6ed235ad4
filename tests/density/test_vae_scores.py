"""What each score of the detector measures, and that it is saved with what it needs."""

import io
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.base import clone
from torch.distributions import Bernoulli, Normal, kl_divergence

import offmap
from offmap.density import VAEDetector
from offmap.density.vae import scores
from offmap.density.vae.scores import SCORES, WAIC, LikelihoodRatio, LikelihoodRegret
from offmap.density.vae.training import mean_negative_elbo
from tests.density.cases import FEATURES, IMAGES, SMALL, Array

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
