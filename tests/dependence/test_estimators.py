"""The estimators that are networks, against closed forms on Gaussians and against naive loops."""

import math
from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from offmap.dependence import BA, CLUB, JS, MINE, NWJ, SMILE, CLUBMean, Estimator, InfoNCE, SaturationWarning
from offmap.dependence.conditional import GaussianMarginal
from offmap.dependence.critic_estimator import DerangedEstimator
from offmap.dependence.donsker_varadhan import donsker_varadhan
from offmap.dependence.registry import NETWORKS
from offmap.nets.pairs import derangements, off_diagonal
from tests.dependence.gaussians import TrueCritic, correlated, information

WIDTH, CORRELATION = 2, 0.8
TRUTH = information(WIDTH, CORRELATION)


def known(cls: type[DerangedEstimator], shift: float = 0.0) -> DerangedEstimator:
    return cls(WIDTH, WIDTH, critic=partial(TrueCritic, correlation=CORRELATION, shift=shift), n_negatives=8).eval()


@pytest.mark.parametrize(("cls", "shift"), [(MINE, 0.0), (MINE, 3.0), (NWJ, 1.0), (JS, 0.0), (SMILE, 0.0)])
def test_the_best_critic_gives_the_truth(cls: type[DerangedEstimator], shift: float) -> None:
    x, y = correlated(20_000, WIDTH, CORRELATION)
    assert known(cls, shift).value(x, y).item() == pytest.approx(TRUTH, abs=0.05)


def test_infonce_with_the_best_critic_is_below_the_truth_and_nears_it_as_batches_grow() -> None:
    estimator = InfoNCE(WIDTH, WIDTH, critic=partial(TrueCritic, correlation=CORRELATION))
    x, y = correlated(4096, WIDTH, CORRELATION)
    means = [
        torch.stack([estimator.value(*part) for part in zip(x.split(n), y.split(n), strict=True)]).mean().item()
        for n in (16, 512)
    ]
    assert means[0] < means[1] < TRUTH + 0.05
    assert means[1] == pytest.approx(TRUTH, abs=0.05)


def test_nwj_with_a_critic_off_by_a_constant_is_lower() -> None:
    x, y = correlated(20_000, WIDTH, CORRELATION)
    assert known(NWJ, 0.0).value(x, y) < known(NWJ, 1.0).value(x, y) - 0.2


@pytest.mark.parametrize("cls", [JS, SMILE])
@pytest.mark.parametrize("shift", [-0.5, 0.5])
def test_the_loss_of_telling_pairs_is_lowest_at_the_log_ratio(cls: type[DerangedEstimator], shift: float) -> None:
    x, y = correlated(20_000, WIDTH, CORRELATION)
    assert known(cls).loss(x, y) < known(cls, shift).loss(x, y)


def test_smile_clips_the_ratio_of_other_pairs_alone() -> None:
    true, others = torch.tensor([[3.0, 9.0]]), torch.tensor([[[-7.0], [8.0]]])
    expected = 6.0 - math.log((math.exp(-5) + math.exp(5)) / 2)
    assert donsker_varadhan(true, others.clamp(-5, 5)).mean().item() == pytest.approx(expected, abs=1e-5)


def test_what_rows_add_has_the_donsker_varadhan_form_as_its_mean() -> None:
    true, others = torch.randn(3, 10), torch.randn(3, 10, 4)
    expected = true.mean(1) - others.exp().mean((1, 2)).log()
    torch.testing.assert_close(donsker_varadhan(true, others).mean(1), expected)


def test_infonce_is_the_naive_double_loop() -> None:
    estimator = InfoNCE(3, 2, hidden=(8,))
    x, y = torch.randn(7, 3), torch.randn(7, 2)

    def score(i: int, j: int) -> Tensor:
        a, b = estimator.critic.embed(x[None, i : i + 1], y[None, j : j + 1])
        return estimator.critic.score(a, b).squeeze()

    terms = [score(i, i) - torch.stack([score(i, j).exp() for j in range(7)]).mean().log() for i in range(7)]
    torch.testing.assert_close(estimator.value(x, y), torch.stack(terms).mean())


@pytest.mark.parametrize("cls", [CLUB, CLUBMean])
def test_club_is_the_naive_double_loop(cls: type[CLUB | CLUBMean]) -> None:
    estimator = cls(3, 2, hidden=(8,))
    x, y = torch.randn(6, 3), torch.randn(6, 2)

    def log_density(i: int, j: int) -> Tensor:
        return estimator.conditional.log_density(x[None, i : i + 1], y[None, j : j + 1]).squeeze()

    own = torch.stack([log_density(i, i) for i in range(6)]).mean()
    others = torch.stack([log_density(i, j) for i in range(6) for j in range(6) if i != j]).mean()
    torch.testing.assert_close(estimator.value(x, y), own - others)


def teach_the_truth(estimator: CLUB | BA, correlation: float) -> None:
    """Puts the true conditional of ``correlated`` in the place of the networks."""
    spread = math.log(1 - correlation**2)

    def moments(x: Tensor) -> tuple[Tensor, Tensor]:
        return correlation * x, torch.full_like(x, spread)

    estimator.conditional.moments = moments  # type: ignore[method-assign]


@pytest.mark.parametrize(("total", "limit"), [(2, 4.2), (6, 14.0), (10, 25.9)])
def test_club_with_the_true_conditional_is_far_above_the_truth(total: float, limit: float) -> None:
    correlation = math.sqrt(1 - math.exp(-total / 20))
    estimator = CLUB(20, 20)
    teach_the_truth(estimator, correlation)
    value = estimator.value(*correlated(50_000, 20, correlation)).item()
    assert 2 * value == pytest.approx(limit, rel=0.03)
    assert 2 * value == pytest.approx(40 * correlation**2 / (1 - correlation**2), rel=0.03)


def test_ba_with_the_true_conditional_and_entropy_is_the_truth() -> None:
    estimator = BA(WIDTH, WIDTH, entropy=0.5 * WIDTH * math.log(2 * math.pi * math.e))
    teach_the_truth(estimator, CORRELATION)
    assert estimator.value(*correlated(50_000, WIDTH, CORRELATION)).item() == pytest.approx(TRUTH, abs=0.03)
    assert estimator.bound == "lower"
    assert estimator.sound_to_maximise


def test_the_marginal_of_ba_is_a_density_of_full_covariance() -> None:
    # An unlucky draw is nearly singular, and single precision then differs in the sixth digit.
    torch.manual_seed(0)
    marginal = GaussianMarginal([3, 2])
    for parameter in marginal.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    y = torch.randn(2, 5, 3)
    y[1, :, 2] = 0
    for term, width in enumerate((3, 2)):
        mixing = torch.eye(width) + marginal.mixing[term, :width, :width].triu(1)
        whitening = mixing * marginal.log_scale[term, 0, :width].exp()
        covariance = torch.linalg.inv(whitening @ whitening.T)
        expected = torch.distributions.MultivariateNormal(marginal.mean[term, 0, :width], covariance)
        torch.testing.assert_close(marginal.log_density(y)[term], expected.log_prob(y[term, :, :width]))


@pytest.mark.parametrize("decay", [0.0, 0.9])
def test_the_loss_of_mine_is_minus_its_value(decay: float) -> None:
    estimator = MINE(3, 2, hidden=(8,), n_negatives="all", decay=decay)
    x, y = torch.randn(9, 3), torch.randn(9, 2)
    estimator.loss(x, y)
    torch.testing.assert_close(estimator.loss(x, y), -estimator.value(x, y))


def test_the_gradient_of_mine_is_weighted_by_the_running_mean() -> None:
    estimator = MINE(3, 2, hidden=(8,), n_negatives="all", decay=0.5)
    x, y = torch.randn(9, 3), torch.randn(9, 2)
    estimator.log_mean.fill_(1.0)
    last = [*estimator.parameters()][-1]
    estimator.loss(x, y).backward()
    assert last.grad is not None
    mean = estimator.scores(x[None], y[None])[1].exp().mean().item()
    running = 0.5 * math.e + 0.5 * mean
    # The last bias moves every score alike: -1 by the true pairs, and the mean of e^f over the running one by others.
    assert last.grad.item() == pytest.approx(mean / running - 1, abs=1e-5)
    assert estimator.log_mean.item() == pytest.approx(math.log(running), abs=1e-5)


def test_mine_updates_its_running_mean_only_in_training() -> None:
    estimator = MINE(3, 2, hidden=(8,)).eval()
    estimator.loss(torch.randn(9, 3), torch.randn(9, 2))
    assert estimator.log_mean.isnan().all()


@given(rows=st.integers(2, 12), count=st.integers(1, 11), shuffled=st.booleans())
@settings(deadline=None)
def test_derangements_leave_no_row_in_its_place_and_repeat_no_pair(rows: int, count: int, shuffled: bool) -> None:
    places = derangements(rows, min(count, rows - 1), shuffled=shuffled)
    assert (places != torch.arange(rows)[:, None]).all()
    for column in places.T:
        assert sorted(column.tolist()) == [*range(rows)]
    for row in places:
        assert len(set(row.tolist())) == len(row)


def test_random_derangements_reach_every_pair() -> None:
    seen = {(i, j) for _ in range(200) for i, j in enumerate(derangements(4, 1)[:, 0].tolist())}
    assert len(seen) == 12


def test_all_negatives_are_all_pairs_but_the_true_ones() -> None:
    square = torch.randn(2, 5, 5)
    expected = square[:, ~torch.eye(5, dtype=torch.bool)].reshape(2, 5, 4)
    torch.testing.assert_close(off_diagonal(square), expected)


@pytest.mark.parametrize("cls", [MINE, NWJ, JS, SMILE])
def test_as_many_negatives_as_there_are_is_all(cls: type[DerangedEstimator]) -> None:
    some, every = cls(3, 2, hidden=(8,), n_negatives=5).eval(), cls(3, 2, hidden=(8,), n_negatives="all").eval()
    every.load_state_dict(some.state_dict())
    x, y = torch.randn(6, 3), torch.randn(6, 2)
    torch.testing.assert_close(some.loss(x, y), every.loss(x, y))
    torch.testing.assert_close(some.value(x, y), every.value(x, y))


@pytest.mark.parametrize("name", NETWORKS)
def test_a_stack_is_its_estimators_one_by_one(name: str) -> None:
    options: dict[str, object] = {"n_negatives": "all"} if name in ("mine", "nwj", "js", "smile") else {}
    stack = NETWORKS[name]([3, 2], [1, 4], hidden=(8,), **options).eval()
    x, y = torch.randn(2, 9, 3), torch.randn(2, 9, 4)
    x[0, :, 3:], x[1, :, 2:], y[0, :, 1:] = 0, 0, 0
    losses = []
    for term, (left, right) in enumerate(((3, 1), (2, 4))):
        alone = NETWORKS[name](left, right, hidden=(8,), **options).eval()
        cut = {
            key: stack.state_dict()[key][term : term + 1][tuple(slice(size) for size in value.shape)]
            for key, value in alone.state_dict().items()
        }
        alone.load_state_dict(cut)
        torch.testing.assert_close(stack.value(x, y)[term], alone.value(x[term, :, :left], y[term, :, :right]))
        losses.append(alone.loss(x[term, :, :left], y[term, :, :right]))
    torch.testing.assert_close(stack.loss(x, y), torch.stack(losses).sum())


@pytest.mark.parametrize("name", NETWORKS)
def test_gradients_reach_the_variables_and_the_parameters(name: str) -> None:
    estimator = NETWORKS[name](3, 2, hidden=(8,))
    x, y = torch.randn(9, 3, requires_grad=True), torch.randn(9, 2, requires_grad=True)
    estimator.value(x, y).backward()
    for moved in (x, y):
        assert moved.grad is not None
        assert moved.grad.abs().sum() > 0
    estimator.zero_grad()
    estimator.loss(x, y).backward()
    assert all(p.grad is not None for p in estimator.parameters() if p.requires_grad)


@pytest.mark.parametrize("name", NETWORKS)
def test_the_value_is_the_mean_of_what_rows_add(name: str) -> None:
    estimator = NETWORKS[name](3, 2, hidden=(8,)).eval()
    x, y = torch.randn(9, 3), torch.randn(9, 2)
    torch.testing.assert_close(estimator.pointwise(x, y).mean(), estimator.value(x, y))
    assert estimator.pointwise(x, y).shape == (9,)


@pytest.mark.parametrize("name", NETWORKS)
def test_evaluation_does_not_depend_on_chance(name: str) -> None:
    estimator = NETWORKS[name](3, 2, hidden=(8,)).eval()
    x, y = torch.randn(9, 3), torch.randn(9, 2)
    assert torch.equal(estimator.value(x, y), estimator.value(x, y))


@pytest.mark.parametrize("name", ["infonce", "club", "ba"])
def test_the_order_of_the_rows_does_not_matter(name: str) -> None:
    estimator = NETWORKS[name](3, 2, hidden=(8,))
    x, y, order = torch.randn(9, 3), torch.randn(9, 2), torch.randperm(9)
    torch.testing.assert_close(estimator.value(x, y), estimator.value(x[order], y[order]))


def test_infonce_warns_near_its_ceiling_and_not_in_its_loss() -> None:
    estimator = InfoNCE(WIDTH, WIDTH, critic=partial(TrueCritic, correlation=0.9999))
    x, y = correlated(64, WIDTH, 0.9999)
    with pytest.warns(SaturationWarning, match=r"log\(64\) = 4\.16"):
        value = estimator.value(x, y)
    assert value <= math.log(64)
    estimator.loss(x, y)


def test_bounds_are_what_they_are() -> None:
    bounds = {name: cls(2, 2, hidden=(4,)).bound for name, cls in NETWORKS.items()}
    assert bounds == {
        "ba": None,
        "mine": "lower",
        "nwj": "lower",
        "infonce": "lower",
        "club": "upper",
        "club_mean": None,
        "js": None,
        "smile": None,
    }
    for cls in NETWORKS.values():
        estimator = cls(2, 2, hidden=(4,))
        assert estimator.sound_to_maximise == (estimator.bound == "lower")
        assert estimator.sound_to_minimise == (estimator.bound == "upper")


def test_shapes_that_do_not_fit_are_refused_by_name() -> None:
    single, stack = JS(3, 2, hidden=(8,)), JS([3, 2], [2, 2], hidden=(8,))
    with pytest.raises(ValueError, match=r"x must have shape \(n, 3\); got \(5, 2\)"):
        single.value(torch.zeros(5, 2), torch.zeros(5, 2))
    with pytest.raises(ValueError, match=r"y must have shape \(2, n, 2\)"):
        stack.value(torch.zeros(2, 5, 3), torch.zeros(1, 5, 2))
    with pytest.raises(ValueError, match="the same number of rows, at least 2; got 5 and 4"):
        single.value(torch.zeros(5, 3), torch.zeros(4, 2))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: JS(0, 2), "x_width must be at least 1"),
        (lambda: JS([1, 2], [1]), "y_width must have one width per term"),
        (lambda: JS(1, 2, critic="cubic"), "critic must be one of 'joint'"),
        (lambda: JS(1, 2, n_negatives=0), "n_negatives must be an integer at least 1, or 'all'"),
        (lambda: MINE(1, 2, decay=1.0), "decay must be between 0 and 1"),
        (lambda: SMILE(1, 2, clip=0.0), "clip must be above 0"),
    ],
)
def test_settings_that_make_no_sense_are_refused_by_name(make: "partial[Estimator]", words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make()
