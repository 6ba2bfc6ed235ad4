"""ANS: its parts against naive loops, and its behaviour on digits."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits, load_iris
from torch import nn
from torch.nn.functional import softplus

from offmap.class_statistics import class_means, class_variance
from offmap.data import hold_out_classes
from offmap.metrics import auroc, f1_open
from offmap.nets import Standardise
from offmap.nets.stacked import StackedLinear
from offmap.openset import ANSClassifier, MSPClassifier
from offmap.openset.adapter import Adapter, fit_adapter, fit_scale
from offmap.openset.ans_network import ANSNetwork
from offmap.openset.head_batches import HeadBatches
from offmap.openset.negatives import Shell, ascend

DIGITS = load_digits()
SPLIT = hold_out_classes(DIGITS.images / 16, DIGITS.target, known=list(range(7)), test_size=0.4)


def network(classes: int, inputs: int, hidden: tuple[int, ...], dropout: float = 0.0) -> ANSNetwork:
    torch.manual_seed(0)
    return ANSNetwork(inputs, classes, hidden, dropout, adapted=False)


def stacked_layers(made: ANSNetwork) -> list[StackedLinear]:
    return [layer for layer in made.heads if isinstance(layer, StackedLinear)]


def separate_head(made: ANSNetwork, place: int) -> nn.Sequential:
    """Head number ``place`` as a network of plain linear layers."""
    layers: list[nn.Module] = []
    for stacked in stacked_layers(made):
        assert stacked.bias is not None
        linear = nn.Linear(stacked.weight.shape[1], stacked.weight.shape[2])
        linear.weight.data, linear.bias.data = stacked.weight[place].T.clone(), stacked.bias[place, 0].clone()
        layers += [linear, nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def test_batched_heads_are_the_separate_heads() -> None:
    made = network(classes=6, inputs=5, hidden=(8, 4), dropout=0.3).eval()
    rows, own = torch.randn(11, 5), torch.randn(6, 3, 5)
    for place in range(6):
        head = separate_head(made, place)
        torch.testing.assert_close(made.head_logits(rows)[:, place], head(rows).squeeze(1), atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(made.own_logits(own)[place], head(own[place]).squeeze(1), atol=1e-5, rtol=1e-5)


def test_the_sum_over_heads_gives_each_head_its_own_gradient() -> None:
    made = network(classes=4, inputs=5, hidden=(8,))
    own = torch.randn(4, 3, 5)
    softplus(made.own_logits(own)).mean(1).sum().backward()
    gradient = stacked_layers(made)[0].weight.grad
    assert gradient is not None
    for place in range(4):
        head = separate_head(made, place)
        softplus(head(own[place])).mean().backward()
        torch.testing.assert_close(gradient[place].T, head[0].weight.grad)


def test_dropout_is_off_when_scoring() -> None:
    made = network(classes=3, inputs=4, hidden=(64,), dropout=0.5)
    rows = torch.randn(5, 4)
    assert not torch.equal(made.train().head_logits(rows), made.head_logits(rows))
    assert torch.equal(made.eval().head_logits(rows), made.head_logits(rows))


@settings(deadline=None)
@given(st.integers(0, 1000), st.floats(0.1, 5), st.floats(1.0, 3))
def test_projection_reaches_the_shell_along_the_radius(seed: int, radius: float, gamma: float) -> None:
    torch.manual_seed(seed)
    shell = Shell(torch.ones(2, 6), torch.tensor([radius, 2 * radius]), gamma * torch.tensor([radius, 2 * radius]))
    offset, codes = 3 * torch.rand(9, 1) * torch.randn(9, 6), torch.randint(2, (9,))
    moved = shell.project(offset, codes)
    for before, after, code in zip(offset, moved, codes, strict=True):
        inner = radius * (1 + int(code))
        length = float(before.norm())
        expected = inner if length < inner else min(length, gamma * inner)
        assert float(after.norm()) == pytest.approx(expected, rel=1e-4)
        torch.testing.assert_close(after / after.norm(), before / before.norm(), atol=1e-5, rtol=1e-4)


def test_the_radius_is_the_root_mean_square_distance_of_two_rows_of_the_class() -> None:
    torch.manual_seed(0)
    X, y = torch.randn(60, 4) * torch.tensor([1.0, 2.0, 0.5, 3.0]), torch.arange(60) % 3
    shell = Shell.around(X, y, 3, gamma=1.5)
    for code in range(3):
        squares = torch.cdist(X[y == code].double(), X[y == code].double()).square()
        assert float(shell.inner[code]) == pytest.approx(float(squares.mean().sqrt()), rel=1e-5)
        np.testing.assert_allclose(shell.deviation[code], X[y == code].std(0, correction=0), rtol=1e-4)
    torch.testing.assert_close(shell.outer, 1.5 * shell.inner)
    torch.testing.assert_close(Shell.around(X, y, 3, factor=1.6).inner, 1.6 * shell.inner)
    assert (Shell.around(X, y, 3, radius=8.0, factor=1.6).inner == 8).all()


@pytest.mark.parametrize("factor", [1.0, ANSClassifier().radius_factor, 2.4])
def test_the_default_shell_moves_most_gaussian_starts(factor: float) -> None:
    """In 64 or more dimensions a wide shell would hold every start, and projection would do nothing."""
    torch.manual_seed(0)
    X, y = torch.randn(200, 64) * torch.linspace(0.5, 2, 64), torch.arange(200) % 4
    shell = Shell.around(X, y, 4, factor=factor, gamma=ANSClassifier().gamma)
    start = shell.start(y)
    moved = (shell.project(start, y) - start).norm(dim=-1) > 1e-3 * start.norm(dim=-1)
    assert moved.float().mean() > 0.8


def test_ten_times_larger_rows_get_the_same_decisions() -> None:
    """Neither the radii nor the ascent steps may depend on the unit of the features."""
    rng = np.random.default_rng(0)
    y = np.arange(240) % 4
    X = nn.functional.normalize(torch.from_numpy(2 * np.eye(6)[y] + rng.normal(size=(240, 6)) / 2)).numpy()
    small, large = (ANSClassifier(rule="own", random_state=0, steps=60).fit(rows, y) for rows in (X, 10 * X))
    assert np.mean(small.predict(-X) == large.predict(-10 * X)) > 0.99
    assert np.mean(small.predict(X) == large.predict(10 * X)) > 0.99


def test_ascent_steps_grow_with_the_radius() -> None:
    model, made = ANSClassifier(projection=False, gaussian_start=False, ascent_size=0.25), network(2, 5, (8,))
    shell = Shell(torch.ones(2, 5), torch.tensor([2.0, 40.0]), torch.tensor([3.0, 60.0]))
    own = torch.randn(2, 7, 5)
    lengths = (model._negatives(made, own, shell) - own).norm(dim=-1)
    torch.testing.assert_close(lengths, torch.tensor([[0.5], [10.0]]).expand(2, 7), rtol=1e-4, atol=0)


def test_class_means_and_variances_are_those_of_a_loop() -> None:
    X, y = torch.randn(30, 3, dtype=torch.float64), torch.randint(4, (30,))
    for code in range(4):
        rows = X[y == code]
        if len(rows):
            torch.testing.assert_close(class_means(X, y, 4)[code], rows.mean(0))
            torch.testing.assert_close(class_variance(X, y, 4)[code], rows.var(0, correction=0))


def test_a_class_of_one_row_gets_the_spread_of_the_others() -> None:
    X, y = torch.randn(21, 3), torch.tensor([0] * 10 + [1] * 10 + [2])
    shell = Shell.around(X, y, 3)
    assert shell.inner[2] > 0
    torch.testing.assert_close(shell.deviation[2].square(), shell.deviation[:2].square().mean(0))


def test_the_start_is_gaussian_with_twice_the_deviation_of_the_class() -> None:
    torch.manual_seed(0)
    shell = Shell(torch.tensor([[1.0, 3.0], [0.5, 2.0]]), torch.ones(2), torch.ones(2))
    start = shell.start(torch.tensor([0, 1])[:, None].expand(2, 20000))
    torch.testing.assert_close(start.std(1), 2 * shell.deviation, rtol=0.05, atol=0)


def test_ascent_steps_have_their_length_and_raise_the_loss() -> None:
    made = network(classes=3, inputs=4, hidden=(16,)).eval()
    rows, offset = torch.randn(3, 8, 4), 0.1 * torch.randn(3, 8, 4)
    size = torch.linspace(0.01, 0.02, 24).reshape(3, 8)
    moved = ascend(made.own_logits, rows, offset, steps=1, size=size)
    torch.testing.assert_close((moved - offset).norm(dim=-1), size, rtol=1e-3, atol=0)
    assert (made.own_logits(rows + moved) > made.own_logits(rows + offset)).all()
    assert torch.equal(ascend(made.own_logits, rows, offset, steps=0, size=size), offset)
    assert all(parameter.grad is None for parameter in made.parameters())


def test_head_batches_hold_own_rows_and_rows_of_the_rest() -> None:
    torch.manual_seed(0)
    y = torch.tensor([2, 0, 1, 1, 0, 2, 2, 1, 1])
    seen_own: set[int] = set()
    seen_rest: dict[int, set[int]] = {0: set(), 1: set(), 2: set()}
    for own, rest in HeadBatches(y, classes=3, n_own=4, n_rest=2, steps=60):
        assert own.shape == (3, 4)
        assert rest.shape == (3, 8)
        for code in range(3):
            assert (y[own[code]] == code).all()
            assert (y[rest[code]] != code).all()
            seen_own |= set(own[code].tolist())
            seen_rest[code] |= set(rest[code].tolist())
    assert seen_own == set(range(9))
    assert all(seen_rest[code] == set(torch.where(y != code)[0].tolist()) for code in range(3))


def test_rows_on_a_sphere_keep_their_angles_and_others_are_standardised() -> None:
    torch.manual_seed(0)
    sphere = nn.functional.normalize(torch.randn(100, 5) + 1)
    layer = Standardise(5)
    fit_scale(layer, sphere, one_unit=False)
    scaled = layer(sphere)
    torch.testing.assert_close(nn.functional.normalize(scaled), sphere)
    assert float(scaled.std(0, correction=0).mean()) == pytest.approx(1, rel=1e-4)
    units = torch.randn(100, 5) * torch.tensor([1.0, 10, 100, 5, 2])
    fit_scale(layer, units, one_unit=False)
    assert float(layer.scale.max() / layer.scale.min()) > 20
    fit_scale(layer, units, one_unit=True)
    assert layer.scale.unique().numel() == 1


def test_a_large_constant_feature_is_no_sphere() -> None:
    torch.manual_seed(0)
    layer = Standardise(4)
    fit_scale(layer, torch.cat([torch.randn(100, 3), torch.full((100, 1), 1e4)], dim=1), one_unit=False)
    assert float(layer.mean[3]) == 1e4


def test_a_shifted_table_is_scored_as_before() -> None:
    iris = load_iris()
    X, y = iris.data, iris.target
    for table in (X, X + 1000, np.column_stack([X, np.full(len(X), 2000.0)])):
        model = ANSClassifier(random_state=0, calibration=0.3).fit(table[y < 2], y[y < 2])
        novelty = model.novelty(table)
        assert auroc(novelty[y < 2], novelty[y == 2]) > 0.8


def test_a_class_of_equal_rows_has_a_shell() -> None:
    X = torch.cat([torch.randn(20, 3), torch.ones(10, 3)])
    shell = Shell.around(X, torch.tensor([0] * 20 + [1] * 10), 2)
    assert shell.inner[1] == shell.inner[0] > 0


def test_negatives_that_nothing_moves_are_refused() -> None:
    with pytest.raises(ValueError, match="ascent_steps must be at least 1 with gaussian_start=False"):
        ANSClassifier(gaussian_start=False, ascent_steps=0).fit(SPLIT.X_train, SPLIT.y_train)


def test_the_adapter_starts_as_the_identity_and_brings_classes_together() -> None:
    torch.manual_seed(0)
    y = torch.arange(200) % 4
    X = nn.functional.normalize(torch.randn(200, 8) + 2 * torch.eye(8)[y])
    adapter = Adapter(8)
    torch.testing.assert_close(adapter(X), X)
    fit_adapter(adapter, X, y, epochs=300)
    with torch.no_grad():
        Z = adapter(X)

    def spread(rows: torch.Tensor) -> float:
        within = class_variance(rows, y, 4).sum(1).mean()
        return float(within / class_means(rows, y, 4).var(0, correction=0).sum())

    assert spread(Z) < 0.8 * spread(X)


@pytest.fixture(scope="module")
def fitted() -> ANSClassifier:
    return ANSClassifier(rule="own", random_state=0).fit(SPLIT.X_train, SPLIT.y_train)


def test_the_own_rule_rejects_a_row_when_every_head_does(fitted: ANSClassifier) -> None:
    with torch.no_grad():
        Z = fitted.network_.space(torch.from_numpy(SPLIT.X_test.reshape(-1, 64)).float())
        logits = fitted.network_.head_logits(Z)
    assert ((fitted.predict(SPLIT.X_test) == -1) == (logits < 0).all(1).numpy()).all()


def test_rejects_more_unknown_digits_than_msp_at_equal_known_accuracy() -> None:
    """Both thresholds pass the same share of known rows; the mean over three seeds."""
    known = ~SPLIT.unknown

    def caught(method: ANSClassifier | MSPClassifier) -> float:
        novelty = method.fit(SPLIT.X_train, SPLIT.y_train).novelty(SPLIT.X_test)
        assert np.mean(method.predict_closed(SPLIT.X_test[known]) == SPLIT.y_test[known]) > 0.94
        return float(np.mean(novelty[SPLIT.unknown] > np.quantile(novelty[known], 0.95)))

    ours = np.mean([caught(ANSClassifier(random_state=seed)) for seed in range(3)])
    theirs = np.mean([caught(MSPClassifier(random_state=seed)) for seed in range(3)])
    assert ours > theirs + 0.06


def test_without_negatives_the_own_rule_misses_unknown_rows(fitted: ANSClassifier) -> None:
    plain = ANSClassifier(rule="own", negative_weight=0.0, random_state=0).fit(SPLIT.X_train, SPLIT.y_train)
    known, labels = list(range(7)), SPLIT.y_test
    with_negatives = f1_open(labels, fitted.predict(SPLIT.X_test), known, -1)
    without = f1_open(labels, plain.predict(SPLIT.X_test), known, -1)
    assert with_negatives > without + 0.05
    assert with_negatives > 0.75


@pytest.mark.parametrize(
    "change",
    [{"gaussian_start": False}, {"projection": False}, {"ascent_steps": 0}, {"radius": 8.0}, {"space": "raw"}],
    ids=str,
)
def test_every_part_can_be_switched(change: dict[str, object], fitted: ANSClassifier) -> None:
    other = ANSClassifier(random_state=0, **change).fit(SPLIT.X_train, SPLIT.y_train)  # type: ignore[arg-type]
    novelty = other.novelty(SPLIT.X_test)
    assert not np.array_equal(novelty, fitted.novelty(SPLIT.X_test))
    assert auroc(novelty[~SPLIT.unknown], novelty[SPLIT.unknown]) > 0.85


def test_history_has_every_term(fitted: ANSClassifier) -> None:
    assert set(fitted.history_) == {"adapter", "own", "rest", "negatives"}
    assert len(fitted.history_["own"]) == 20
    assert fitted.history_["own"][-1] < fitted.history_["own"][0] < 7 * math.log(2) * 1.2


def test_two_classes_and_a_class_of_one_row_work() -> None:
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(40, 3)), rng.normal(size=(40, 3)) + 6, [[20.0, 20.0, 20.0]]])
    two = ANSClassifier(random_state=0, calibration=0.3).fit(X[:80], [0] * 40 + [1] * 40)
    assert np.mean(two.predict_closed(X[:80]) == [0] * 40 + [1] * 40) > 0.95
    three = ANSClassifier(random_state=0, calibration=0.3).fit(X, [0] * 40 + [1] * 40 + [2])
    assert three.predict_closed(X[-1:]) == [2]
