"""What the detector scores, what it refuses, and what it can and cannot tell apart."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from torch.distributions import Bernoulli, Normal, kl_divergence

from offmap.data import describe, load
from offmap.density import VAEDetector
from offmap.metrics import auroc
from offmap.nets import ConvEncoder

Array = NDArray[Any]
FEATURES = np.random.default_rng(0).normal([5.0, -200.0, 0.0], [1.0, 30.0, 1e-3], size=(300, 3))
IMAGES = np.random.default_rng(0).random((240, 8, 6, 2))
SMALL: dict[str, Any] = {"epochs": 2, "hidden": (16,), "latent": 3, "random_state": 0}


@pytest.fixture(scope="module", params=["gaussian", "bernoulli"])
def case(request: pytest.FixtureRequest) -> tuple[VAEDetector, Array]:
    rows = FEATURES if request.param == "gaussian" else IMAGES
    return VAEDetector(**SMALL, noise=request.param).fit(rows), rows


def parts(detector: VAEDetector, rows: Array) -> tuple[Array, Array]:
    """−log p(x | z) and KL of each row in nats, by torch.distributions."""
    network, X = detector.network_, torch.from_numpy(rows.astype(np.float32))
    X = X.permute(0, 3, 1, 2) if X.ndim == 4 else (X - network.prepare.mean) / network.prepare.scale
    with torch.no_grad():
        mean, log_var = network.encoder(X).chunk(2, dim=1)
        q = Normal(mean, (log_var / 2).exp())
        output = network.decoder(mean + q.stddev * network.draw)
        noises: dict[str, Any] = {
            "gaussian": Normal(output, 1.0),
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


def test_kl_is_the_divergence_in_nats_and_never_below_0(case: tuple[VAEDetector, Array]) -> None:
    detector, rows = case
    by_kl = VAEDetector(**detector.get_params() | {"score": "kl"}).fit(rows)
    np.testing.assert_allclose(by_kl.novelty(rows), parts(detector, rows)[1], rtol=1e-4, atol=1e-5)
    assert (by_kl.novelty(rows) >= 0).all()
    assert (by_kl.novelty(10 * FEATURES if rows is FEATURES else 1 - IMAGES) >= 0).all()


def test_scoring_twice_gives_the_same_bytes(case: tuple[VAEDetector, Array]) -> None:
    detector, rows = case
    first = detector.novelty(rows)
    torch.rand(7)
    assert detector.novelty(rows).tobytes() == first.tobytes()


def test_training_lowers_the_bound_and_its_terms_are_in_nats_a_row() -> None:
    detector = VAEDetector(**SMALL | {"epochs": 30}).fit(FEATURES)
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
        with pytest.raises(ValueError, match=r'noise="bernoulli" needs values of X in \[0, 1\]; use noise="gaussian"'):
            VAEDetector(**SMALL, noise="bernoulli").fit(rows)


def test_under_bernoulli_features_outside_0_to_1_are_infinitely_novel() -> None:
    rows = np.random.default_rng(0).random((300, 3))
    detector = VAEDetector(**SMALL, noise="bernoulli").fit(rows)
    novelty = detector.novelty([[0.5, 0.5, 0.5], [0.5, 0.5, 8.0], [-8.0, 0.5, 0.5]])
    assert np.isfinite(novelty).tolist() == [True, False, False]
    assert detector.predict([[0.5, 0.5, 8.0]]).tolist() == [-1]


@pytest.mark.parametrize(
    ("network", "side", "convolutional"),
    [("auto", 15, False), ("auto", 16, True), ("mlp", 16, False), ("conv", 8, True)],
)
def test_the_network_is_the_one_asked_for(network: Any, side: int, convolutional: bool) -> None:
    images = np.random.default_rng(0).random((200, side, side))
    for rows, shape in ((images, None), (images.reshape(200, -1), (side, side))):
        detector = VAEDetector(**SMALL | {"epochs": 1}, network=network, image_shape=shape).fit(rows)
        assert isinstance(detector.network_.encoder, ConvEncoder) == convolutional


def test_convolutions_need_images() -> None:
    with pytest.raises(ValueError, match='network="conv" needs images; give image_shape'):
        VAEDetector(**SMALL, network="conv").fit(FEATURES)


def test_patience_looks_at_rows_drawn_from_all_of_x() -> None:
    """Rows may come sorted: a bound on the first of them alone says nothing of the rest."""
    rows = np.sort(np.random.default_rng(0).normal(size=(1000, 1)), axis=0)
    seen: list[Array] = []

    class Watching(VAEDetector):
        def _mean_bound(self, X: torch.Tensor) -> float:
            seen.append(X.numpy())
            return super()._mean_bound(X)

    Watching(**SMALL, patience=2).fit(rows)
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


def test_digits_it_was_never_taught_are_less_likely() -> None:
    digits = load_digits()
    images, known = digits.images / 16, digits.target < 7
    training, test = images[known][:900], images[known][900:]
    detector = VAEDetector(noise="bernoulli", epochs=200, random_state=0).fit(training)
    assert auroc(detector.novelty(test), detector.novelty(images[~known])) > 0.83


def require(*names: str) -> None:
    for entry in describe():
        if entry.name in names and not entry.found:
            pytest.skip(f"{entry.name}: {entry.where}")


@pytest.mark.data
def test_digits_look_likelier_than_the_clothes_it_was_taught() -> None:
    """The known blind spot of the likelihood with Bernoulli noise."""
    require("fashion-mnist", "mnist")
    clothes, digits = load("fashion-mnist", "test").X[:1000], load("mnist", "test").X[:1000]
    detector = VAEDetector(noise="bernoulli", network="mlp", epochs=8, batch_size=64, random_state=0)
    detector.fit(load("fashion-mnist").X[:4000])
    assert auroc(detector.novelty(clothes), detector.novelty(digits)) < 0.5
    static = np.random.default_rng(0).integers(256, size=(200, 28, 28), dtype=np.uint8)
    assert auroc(detector.novelty(clothes), detector.novelty(static)) > 0.99
