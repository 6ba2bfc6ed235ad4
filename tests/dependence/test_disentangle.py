"""The autoencoder with groups of codes: what it learns on bundled digits, and what it promises."""

import pickle
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from torch import nn

from offmap.dependence.disentangle import CodeGroup, GroupedAutoencoder, swap_grid
from offmap.dependence.disentangle.adversary import Adversary, discriminator
from offmap.dependence.disentangle.groups import detach, join, shuffle, split
from offmap.dependence.disentangle.inputs import Inputs
from offmap.dependence.disentangle.networks import decoder, encoder
from offmap.dependence.disentangle.penalty import TotalCorrelationPenalty
from offmap.dependence.disentangle.targets import TargetHead, check_targets
from offmap.dependence.disentangle.training import CodeNetwork, CodeTraining, add_jitter

Array = NDArray[Any]
GROUPS = {
    "digit": CodeGroup(8, target="class"),
    "ink": CodeGroup(4, target="fraction", weight=10.0),
    "rest": CodeGroup(8),
}
SMALL: dict[str, Any] = {"groups": GROUPS, "epochs": 1, "conv_channels": 2, "hidden": (16,), "random_state": 0}


@pytest.fixture(scope="module")
def digits() -> tuple[Array, dict[str, Array]]:
    """Images of 8×8 pixels in [-1, 1], with their digits and their share of ink."""
    found = load_digits()
    images = found.images[:600].astype(np.float32) / 8 - 1
    return images, {"digit": found.target[:600], "ink": (images + 1).mean((1, 2)) / 2}


def some(digits: tuple[Array, dict[str, Array]], count: int) -> tuple[Array, dict[str, Array]]:
    return digits[0][:count], {name: target[:count] for name, target in digits[1].items()}


@pytest.mark.parametrize("adversary", [False, True])
@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("tc_weight", [0.0, 1.0])
def test_the_same_seed_gives_the_same_model_and_leaves_the_random_state(
    adversary: bool, flat: bool, tc_weight: float, digits: tuple[Array, dict[str, Array]]
) -> None:
    X, targets = some(digits, 100)
    X = X.reshape(100, -1) if flat else X
    state = torch.get_rng_state()
    settings = {**SMALL, "adversary": adversary, "tc_weight": tc_weight}
    first, second = (GroupedAutoencoder(**settings).fit(X, targets) for _ in "ab")
    assert torch.equal(torch.get_rng_state(), state)
    codes, again = first.encode(X), second.encode(X)
    assert {name: code.shape for name, code in codes.items()} == {"digit": (100, 8), "ink": (100, 4), "rest": (100, 8)}
    for name in codes:
        np.testing.assert_array_equal(codes[name], again[name])
    assert ("adversary" in first.history_) == adversary
    assert ("total_correlation" in first.history_) == (tc_weight > 0) == (first.correlation_ is not None)
    assert first.decode(codes).shape == X.shape
    assert first.classes_["digit"].tolist() == [*range(10)]


def test_a_row_gets_the_same_bytes_whatever_its_batch(digits: tuple[Array, dict[str, Array]]) -> None:
    X, targets = some(digits, 100)
    model = GroupedAutoencoder(**SMALL).fit(X, targets)
    whole, alone = model.encode(X), model.encode(X[5:6])
    for name, code in alone.items():
        np.testing.assert_array_equal(whole[name][5:6], code)
    np.testing.assert_array_equal(model.decode(whole)[5:6], model.decode(alone))


def test_codes_are_standardised_and_predict_their_targets(digits: tuple[Array, dict[str, Array]]) -> None:
    X, targets = some(digits, 300)
    model = GroupedAutoencoder(**{**SMALL, "epochs": 12, "batch_size": 32, "conv_channels": 8}).fit(X, targets)
    codes = model.encode(X)
    joined = np.hstack([*codes.values()])
    assert abs(joined.mean()) < 0.1
    assert 0.7 < joined.std(0).mean() < 1.3
    with torch.no_grad():
        logits = model.network_.heads[0].network(torch.from_numpy(codes["digit"]))  # type: ignore[operator]
    assert (logits.argmax(1).numpy() == targets["digit"]).mean() > 0.8


def test_a_group_without_target_says_less_of_the_digit_under_the_penalty(
    digits: tuple[Array, dict[str, Array]],
) -> None:
    X, targets = some(digits, 500)
    groups = {"digit": CodeGroup(8, target="class"), "rest": CodeGroup(16)}
    settings = {**SMALL, "groups": groups, "epochs": 12, "conv_channels": 8, "batch_size": 32, "estimator": "js"}
    own = {"digit": targets["digit"]}
    free, held = (GroupedAutoencoder(**{**settings, "tc_weight": weight}).fit(X, own) for weight in (0.0, 20.0))
    assert _leakage(held, X, targets["digit"]) < _leakage(free, X, targets["digit"]) - 0.15


def _leakage(model: GroupedAutoencoder, X: Array, digits: Array) -> float:
    """How well noisy codes without a target tell the digit: the share of nearest neighbours with the same one."""
    rest = torch.from_numpy(model.encode(X)["rest"])
    rest = rest + model.jitter * torch.randn(rest.shape, generator=torch.Generator().manual_seed(0))
    distances = torch.cdist(rest, rest).fill_diagonal_(torch.inf)
    return float((digits[distances.argmin(1).numpy()] == digits).mean())


def training_of(groups: dict[str, CodeGroup], **settings: Any) -> CodeTraining:
    width = sum(group.width for group in groups.values())
    heads = {name: TargetHead(group, 3) for name, group in groups.items() if group.target is not None}
    network = CodeNetwork(encoder((5,), width, 2, (4,), standardised=True), decoder(width, (5,), 2, (4,)), heads)
    return CodeTraining(network=network, groups=groups, draw=add_jitter(0.5), reconstruction_weight=0.1, **settings)


@pytest.mark.parametrize("joint", [False, True])
def test_reconstruction_and_penalty_move_the_groups_without_a_target_alone_unless_joint(joint: bool) -> None:
    groups = {"a": CodeGroup(2, target="class"), "b": CodeGroup(2, target="number"), "c": CodeGroup(3)}
    how: dict[str, Any] = {"weight": 2.0, "estimator": "infonce", "hidden": (8,), "steps": 1, "lr": 1e-3}
    training = training_of(groups, penalty=TotalCorrelationPenalty([2, 2, 3], **how, device="cpu"), joint=joint)
    free = {*range(7)} if joint else {4, 5, 6}
    drawn = torch.randn(16, 7, requires_grad=True)
    batch = (drawn, drawn, torch.randn(16, 5), torch.randint(3, (16,)), torch.randn(16, 3))
    terms = training._objective(batch)
    assert [*terms] == ["reconstruction", "a", "b", "total_correlation"]
    for name, moved in (("reconstruction", free), ("total_correlation", free), ("a", {0, 1}), ("b", {2, 3})):
        (gradient,) = torch.autograd.grad(terms[name], drawn, retain_graph=True)
        assert {column for column in range(7) if (gradient[:, column] != 0).any()} == moved
    assert training.penalty is not None
    codes = split(drawn, groups)
    torch.testing.assert_close(terms["total_correlation"], 2 * training.penalty.correlation.value([*codes.values()]))


def test_the_adversary_moves_the_decoder_and_not_the_codes() -> None:
    groups = {"a": CodeGroup(2), "b": CodeGroup(3)}
    training = training_of(groups, adversary=Adversary(discriminator((5,), 2, (4,)), 1e-3))
    drawn = torch.randn(16, 5, requires_grad=True)
    term = training._objective((drawn, drawn, torch.randn(16, 5)))["decoder"]
    weight = next(training.network.decoder.parameters())
    codes, moved = torch.autograd.grad(term, (drawn, weight), allow_unused=True)
    assert codes is None
    assert moved is not None
    assert moved.abs().sum() > 0


def test_the_loss_is_the_weighted_sum_of_squares() -> None:
    groups = {"a": CodeGroup(2, target="fraction", weight=3.0), "b": CodeGroup(3)}
    training = training_of(groups)
    drawn, X, y = torch.randn(6, 5), torch.randn(6, 5), torch.rand(6, 3)
    terms = training._objective((drawn, drawn, X, y))
    decoded, predicted = training.network.decoder(drawn), training.network.heads[0].network(drawn[:, :2])  # type: ignore[operator]
    assert 0 < predicted.min() < predicted.max() < 1
    torch.testing.assert_close(terms["reconstruction"], 0.1 * ((decoded - X) ** 2).sum() / 6)
    torch.testing.assert_close(terms["a"], 3 * ((predicted - y) ** 2).sum() / 6)


def test_critics_learn_from_codes_without_moving_them() -> None:
    penalty = TotalCorrelationPenalty([2, 2], weight=1.0, estimator="js", hidden=(16,), steps=3, lr=1e-2, device="cpu")
    x = torch.randn(64, 2)
    codes = {"a": x.clone().requires_grad_(), "b": x * 2}
    before = penalty.correlation.loss([x, 2 * x]).item()
    for _ in range(30):
        penalty.learn(codes)
    assert penalty.correlation.loss([x, 2 * x]).item() < before - 0.2
    assert codes["a"].grad is None


def test_mixtures_take_each_group_from_other_rows() -> None:
    codes = {"a": torch.arange(50.0)[:, None], "b": torch.arange(50.0)[:, None]}
    mixed = shuffle(codes)
    assert sorted(mixed["a"][:, 0].tolist()) == [*range(50)]
    assert not torch.equal(mixed["a"], mixed["b"])
    kept = detach({"a": torch.ones(2, 1, requires_grad=True), "b": torch.ones(2, 1, requires_grad=True)}, keep=["b"])
    assert [code.requires_grad for code in kept.values()] == [False, True]
    assert torch.equal(
        join(split(torch.arange(6.0).view(1, 6), {"a": CodeGroup(2), "b": CodeGroup(4)})), torch.arange(6.0)[None]
    )


@pytest.mark.parametrize("shape", [(3, 32, 32), (1, 28, 28), (1, 8, 8), (2, 17, 9), (1, 3, 5), (1, 1, 4), (7,)])
def test_decoders_return_the_shape_that_encoders_took(shape: tuple[int, ...]) -> None:
    X = torch.rand(4, *shape)
    codes = encoder(shape, 6, 2, (5,), standardised=True)(X)
    assert codes.shape == (4, 6)
    assert decoder(6, shape, 2, (5,))(codes).shape == X.shape


def test_an_encoder_that_normalises_each_image_could_not_see_brightness() -> None:
    bright = torch.rand(4, 3, 32, 32) - 0.5
    layers = list(encoder((3, 32, 32), 8, 2, (), standardised=True).eval())[:3]  # type: ignore[call-overload]
    ours, instances = nn.Sequential(*layers), nn.Sequential(*map(_instance, layers))
    with torch.no_grad():
        torch.testing.assert_close(ours(bright / 2), ours(bright) / 2)
        torch.testing.assert_close(instances(bright / 2), instances(bright), atol=0.1, rtol=0.05)


def _instance(layer: nn.Module) -> nn.Module:
    return nn.InstanceNorm2d(layer.num_features) if isinstance(layer, nn.BatchNorm2d) else layer


@pytest.mark.parametrize("shape", [(1, 8, 8), (20,)])
def test_an_adversary_learns_to_tell_noise_from_data_under_a_bounded_norm(shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    real = torch.linspace(-1, 1, 20)[:20].expand(64, 20) if len(shape) == 1 else torch.ones(64, *shape)
    network = discriminator(shape, 4, (16,))
    adversary = Adversary(network, 8e-3)
    losses = []
    for _ in range(60):
        adversary.decoder_loss(torch.rand_like(real) - 0.5)
        losses.append(float(adversary.learn(real + 0.1 * torch.randn_like(real))["adversary"]))
    assert losses[-1] < losses[0] / 2
    for layer in network:
        if isinstance(layer, nn.Conv2d | nn.Linear):
            assert torch.linalg.matrix_norm(layer.weight.flatten(1), ord=2) < 1.6


def test_the_decoder_is_told_to_look_real() -> None:
    network = nn.Sequential(nn.Linear(1, 1), nn.Flatten(0))
    nn.init.constant_(network[0].weight, 1.0)  # type: ignore[arg-type]
    nn.init.zeros_(network[0].bias)  # type: ignore[arg-type]
    adversary = Adversary(network, 1e-3)
    loss = adversary.decoder_loss(torch.tensor([[2.0], [-1.0]]))
    assert loss.item() == pytest.approx(np.mean(np.log1p(np.exp([-2.0, 1.0]))), rel=1e-5)


def test_rows_and_images_come_back_in_their_scale() -> None:
    rows = np.random.default_rng(0).normal(5, 3, size=(40, 3)).astype(np.float32)
    inputs = Inputs.fit(rows)
    tensor = inputs.to_tensor(rows)
    torch.testing.assert_close(tensor.mean(0), torch.zeros(3), atol=1e-5, rtol=0)
    np.testing.assert_allclose(inputs.to_array(tensor), rows, rtol=1e-5)
    images = np.random.default_rng(0).integers(256, size=(5, 6, 4, 3), dtype=np.uint8)
    inputs = Inputs.fit(images)
    assert inputs.tensor_shape == (3, 6, 4)
    assert inputs.to_tensor(images)[0, 2, 1, 3] == pytest.approx(images[0, 1, 3, 2] / 127.5 - 1)
    np.testing.assert_allclose((inputs.to_array(inputs.to_tensor(images)) + 1) * 127.5, images, atol=1e-3)
    assert Inputs.fit(images[..., 0]).tensor_shape == (1, 6, 4)


def test_targets_are_labels_or_numbers() -> None:
    groups = {"word": CodeGroup(1, target="class"), "size": CodeGroup(1, target="number")}
    found = check_targets({"size": [10.0, 20.0, 30.0], "word": ["b", "a", "b"]}, groups, 3)
    assert [*found] == ["word", "size"]
    assert found["word"].values.tolist() == [1, 0, 1]
    assert found["word"].outputs == 2
    torch.testing.assert_close(found["size"].values, torch.tensor([[-(1.5**0.5)], [0.0], [1.5**0.5]]))


def test_a_grid_has_a_row_for_each_lender(digits: tuple[Array, dict[str, Array]]) -> None:
    X, targets = some(digits, 60)
    model = GroupedAutoencoder(**SMALL).fit(X, targets)
    grid = swap_grid(model, X[:4], X[4:7], "digit")
    assert grid.shape == (3, 4, 8, 8)
    codes, lent = model.encode(X[:4]), model.encode(X[4:7])
    expected = model.decode({name: code[1:2] for name, code in codes.items()} | {"digit": lent["digit"][2:3]})
    np.testing.assert_allclose(grid[2, 1], expected[0], atol=1e-6)
    with pytest.raises(ValueError, match="group must be one of 'digit', 'ink', 'rest'; got 'colour'"):
        swap_grid(model, X[:4], X[4:7], "colour")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epochs": 0}, "epochs must be an integer at least 1; got 0"),
        ({"reconstruction_weight": -1.0}, "reconstruction_weight must be a number above 0; got -1.0"),
        ({"estimator": "guess"}, "estimator must be one of"),
        ({"groups": {"all": CodeGroup(3)}}, "groups must be a mapping of at least 2 names to CodeGroup"),
        ({"groups": {"a": 3, "b": 4}}, "groups must be a mapping of at least 2 names to CodeGroup"),
        ({"groups": {"a": CodeGroup(3), "b": CodeGroup(3)}}, r"targets must be given for the groups \[\]"),
    ],
)
def test_settings_that_make_no_sense_are_refused(
    settings: dict[str, Any], message: str, digits: tuple[Array, dict[str, Array]]
) -> None:
    with pytest.raises(ValueError, match=message):
        GroupedAutoencoder(**{**SMALL, **settings}).fit(*some(digits, 40))


def test_data_that_make_no_sense_are_refused(digits: tuple[Array, dict[str, Array]]) -> None:
    X, targets = some(digits, 40)
    model = GroupedAutoencoder(**SMALL).fit(X, targets)
    with pytest.raises(ValueError, match=r"X must have rows of shape \(8, 8\), as in fit; got \(4, 8\)"):
        model.encode(X[:, :4])
    with pytest.raises(ValueError, match="codes must be arrays"):
        model.decode(model.encode(X) | {"ink": np.zeros((40, 3))})
    with pytest.raises(ValueError, match="codes must have the same number of rows"):
        model.decode(model.encode(X) | {"ink": np.zeros((3, 4))})
    with pytest.raises(ValueError, match=r"codes must be given for the groups \['digit', 'ink', 'rest'\]"):
        model.decode({"digit": np.zeros((2, 8))})
    with pytest.raises(ValueError, match="X must have at least 2 rows; got 1"):
        GroupedAutoencoder(**SMALL).fit(*some(digits, 1))
    with pytest.raises(ValueError, match=r"targets\['ink'\] must have 40 rows, like X; got 39"):
        GroupedAutoencoder(**SMALL).fit(X, targets | {"ink": targets["ink"][1:]})
    with pytest.raises(ValueError, match=r"targets\['ink'\] must lie between 0 and 1"):
        GroupedAutoencoder(**SMALL).fit(X, targets | {"ink": targets["ink"] + 1})
    with pytest.raises(ValueError, match="X must hold images as uint8, or as floats from -1 to 1"):
        GroupedAutoencoder(**SMALL).fit(X * 16, targets)
    with pytest.raises(ValueError, match=r"X must have shape \(n, d\), \(n, h, w\) or \(n, h, w, c\)"):
        GroupedAutoencoder(**SMALL).fit(X.ravel(), targets)
    with pytest.raises(ValueError, match="width must be an integer at least 1; got 0"):
        CodeGroup(0)


@pytest.mark.parametrize("missing", [np.nan, None])
def test_a_row_without_a_label_is_refused(missing: Any) -> None:
    labels = np.array([0, 1, 0, missing, 1], dtype=object if missing is None else float)
    with pytest.raises(ValueError, match=r"targets\['kind'\] must have a label in each row; row 3 has none"):
        check_targets({"kind": labels}, {"kind": CodeGroup(2, target="class")}, 5)


def test_a_target_of_one_class_is_refused() -> None:
    with pytest.raises(ValueError, match=r"targets\['kind'\] must have at least 2 classes; all rows have"):
        check_targets({"kind": np.zeros(5)}, {"kind": CodeGroup(2, target="class")}, 5)


def test_codes_that_are_not_finite_are_refused(digits: tuple[Array, dict[str, Array]]) -> None:
    X, targets = some(digits, 40)
    model = GroupedAutoencoder(**SMALL).fit(X, targets)
    codes = model.encode(X)
    codes["ink"][7, 1] = np.nan
    with pytest.raises(ValueError, match=r"codes\['ink'\] must be finite; row 7 is not"):
        model.decode(codes)


def test_a_pickled_model_gives_the_same_bytes(digits: tuple[Array, dict[str, Array]]) -> None:
    X, targets = some(digits, 40)
    model = GroupedAutoencoder(**SMALL).fit(X, targets)
    again = pickle.loads(pickle.dumps(model))
    codes = model.encode(X)
    for name, code in again.encode(X).items():
        np.testing.assert_array_equal(code, codes[name])
    np.testing.assert_array_equal(again.decode(codes), model.decode(codes))


@pytest.mark.parametrize(("setting", "value"), [("batch_size", 1), ("random_state", -1)])
def test_settings_out_of_range_are_refused_by_name(
    setting: str, value: int, digits: tuple[Array, dict[str, Array]]
) -> None:
    with pytest.raises(ValueError, match=f"{setting} must be .* got {value}"):
        GroupedAutoencoder(**SMALL | {setting: value}).fit(*some(digits, 40))
