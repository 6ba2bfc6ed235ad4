"""Reference-based adversarial sampling."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor

import offmap
from offmap.sampling import RAS
from offmap.sampling.ras_losses import RASLosses
from offmap.train import TrainingError

SMALL: dict[str, Any] = {"hidden": (32, 32), "steps": 300, "batch_size": 128, "lr": 3e-3, "random_state": 0}


def gaussian(x: Tensor) -> Tensor:
    """N((1, −1), diag(0.25, 4)), times 7."""
    return -2 * (x[:, 0] - 1).square() - (x[:, 1] + 1).square() / 8 + math.log(7)


def shifted(x: Tensor, context: Tensor) -> Tensor:
    return -((x - context) / 0.5).square().sum(1) / 2


@pytest.fixture(scope="module")
def fitted() -> RAS:
    return RAS(log_density=gaussian, dim=2, **(SMALL | {"steps": 600})).fit()


def test_a_gaussian_is_learnt(fitted: RAS) -> None:
    samples = fitted.sample(20_000, random_state=0)
    np.testing.assert_allclose(samples.mean(0), [1, -1], atol=0.15)
    np.testing.assert_allclose(samples.std(0), [0.5, 2.0], rtol=0.15)
    assert len(fitted.history_["critic"]) == 600 // 50


def test_the_critic_estimates_the_constant_the_density_and_the_sample_size(fitted: RAS) -> None:
    assert fitted.log_z() == pytest.approx(math.log(7 * 2 * math.pi * 0.5 * 2), abs=0.1)
    assert 0.8 < fitted.ess() <= 1
    points = np.array([[1.0, -1.0], [1.2, 0.0], [0.6, -2.0]])
    expected = np.asarray(stats.norm.logpdf(points, [1, -1], [0.5, 2])).sum(1)
    np.testing.assert_allclose(fitted.log_prob_estimate(points), expected, atol=0.35)


def test_samples_are_reproducible_and_leave_the_callers_random_state_alone(fitted: RAS) -> None:
    before = torch.get_rng_state()
    first, second = fitted.sample(5000, random_state=1), fitted.sample(5000, random_state=1)
    assert np.array_equal(first, second)
    assert not np.array_equal(first, fitted.sample(5000, random_state=2))
    assert not np.array_equal(fitted.sample(10), fitted.sample(10))
    again = RAS(log_density=gaussian, dim=2, **SMALL | {"steps": 5}).fit().sample(9, random_state=0)
    assert np.array_equal(
        again, RAS(log_density=gaussian, dim=2, **SMALL | {"steps": 5}).fit().sample(9, random_state=0)
    )
    assert torch.equal(before, torch.get_rng_state())


def test_a_file_holds_the_sampler_but_not_the_log_density(fitted: RAS, tmp_path: Path) -> None:
    fitted.save(tmp_path / "ras.safetensors")
    loaded = offmap.load(tmp_path / "ras.safetensors")
    assert type(loaded) is RAS
    assert loaded.get_params() == fitted.get_params() | {"log_density": None}
    assert np.array_equal(loaded.sample(50, random_state=3), fitted.sample(50, random_state=3))
    points = fitted.sample(20, random_state=0)
    assert np.array_equal(loaded.log_prob_estimate(points), fitted.log_prob_estimate(points))
    with pytest.raises(ValueError, match="log_density must be given"):
        loaded.log_z()
    assert loaded.set_params(log_density=gaussian).log_z() == fitted.log_z()


def test_the_uniform_share_of_the_reference_is_used() -> None:
    def drawn(uniform_share: float) -> Any:
        sampler = RAS(
            log_density=gaussian, dim=2, support=(-9.0, 9.0), uniform_share=uniform_share, **SMALL | {"steps": 5}
        )
        return sampler.fit().sample(9, random_state=0)

    assert np.array_equal(drawn(0.1), drawn(0.1))
    assert not np.array_equal(drawn(0.1), drawn(0.0))


def test_samples_stay_in_the_support_and_follow_the_density() -> None:
    """Beta(4, 2) on [−1, 1] × [0, 3]."""

    def log_density(x: Tensor) -> Tensor:
        t = torch.stack([(x[:, 0] + 1) / 2, x[:, 1] / 3], dim=1).clamp(1e-6, 1 - 1e-6)
        return ((1 - t).log() + 3 * t.log()).sum(1)

    sampler = RAS(log_density=log_density, dim=2, support=((-1.0, 0.0), (1.0, 3.0)), **SMALL).fit()
    samples = sampler.sample(20_000, random_state=0)
    assert (samples >= [-1, 0]).all()
    assert (samples <= [1, 3]).all()
    for column, (low, width) in enumerate(((-1, 2), (0, 3))):
        assert stats.kstest(samples[:, column], stats.beta(4, 2, low, width).cdf).statistic < 0.08
    assert sampler.log_z() == pytest.approx(math.log(2 * 3) + 2 * math.log(1 / 20), abs=0.1)


def test_one_sampler_serves_many_contexts() -> None:
    contexts = np.random.default_rng(0).uniform(-3, 3, size=(500, 2))
    sampler = RAS(log_density=shifted, dim=2, **SMALL | {"batch_size": 512}).fit(contexts)
    asked = np.array([[2.0, -2.0], [-1.0, 0.5]])
    samples = sampler.sample(2000, asked, random_state=0)
    assert samples.shape == (2, 2000, 2)
    np.testing.assert_allclose(samples.mean(1), asked, atol=0.25)
    np.testing.assert_allclose(samples.std(1), 0.5, atol=0.2)
    assert sampler.sample(3, asked[0]).shape == (3, 2)
    assert sampler.log_z(context=asked[0]) == pytest.approx(math.log(2 * math.pi * 0.25), abs=0.3)
    with pytest.raises(ValueError, match="context must have 2 columns"):
        sampler.sample(3)
    with pytest.raises(ValueError, match="context must be"):
        sampler.sample(3, [[1.0]])


MODES = torch.cartesian_prod(*[torch.tensor([-5.0, 0.0, 5.0])] * 2)


def nine_modes(x: Tensor) -> Tensor:
    """Gaussians of variance 0.3 on a square grid."""
    return torch.logsumexp(-(x[:, None] - MODES).square().sum(-1) / 0.6, dim=1)


def modes_found(entropy: Any) -> int:
    """Modes with at least a tenth of their share of the samples within three standard deviations."""
    settings = SMALL | {"steps": 500, "scale": 1.0}
    sampler = RAS(log_density=nine_modes, dim=2, entropy=entropy, **settings).fit()
    distance, nearest = torch.cdist(torch.from_numpy(sampler.sample(5000, random_state=0)), MODES).min(dim=1)
    counts = torch.bincount(nearest[distance <= 3 * math.sqrt(0.3)], minlength=9)
    return int((counts >= 0.1 * 5000 / 9).sum())


def test_annealing_finds_modes_that_are_missed_without() -> None:
    found = {entropy: modes_found(entropy) for entropy in (None, "anneal")}
    assert found["anneal"] >= 6
    assert found["anneal"] >= found[None] + 3


def test_a_mixture_of_noise_gives_modes_their_weights() -> None:
    """Modes far apart with weights 0.1, 0.3 and 0.6: one Gaussian, mapped continuously, gets them wrong."""
    modes, weights = torch.tensor([[-4.0, 0.0], [4.0, 0.0], [0.0, 5.0]]), torch.tensor([0.1, 0.3, 0.6])

    def three(x: Tensor) -> Tensor:
        return torch.logsumexp(weights.log() - (x[:, None] - modes).square().sum(-1), dim=1)

    def error(components: int) -> float:
        sampler = RAS(log_density=three, dim=2, scale=3.0, components=components, **SMALL | {"steps": 500}).fit()
        nearest = torch.cdist(torch.from_numpy(sampler.sample(20_000, random_state=0)), modes).argmin(1)
        return float((torch.bincount(nearest, minlength=3) / 20_000 - weights).abs().sum() / 2)

    mixed = error(32)
    assert mixed < 0.06
    assert mixed < error(1) / 1.5


def test_where_a_box_lies_makes_no_difference() -> None:
    """Beta(2, 6) on [0, 1], and on a narrow box far from 0, which a critic of raw coordinates cannot resolve."""

    def distance(low: float, width: float) -> float:
        def log_density(x: Tensor) -> Tensor:
            t = ((x[:, 0] - low) / width).clamp(1e-6, 1 - 1e-6)
            return t.log() + 5 * torch.log1p(-t)

        sampler = RAS(log_density=log_density, dim=1, support=(low, low + width), **SMALL).fit()
        samples = sampler.sample(20_000, random_state=0)[:, 0].astype(float)
        return float(stats.kstest(samples, stats.beta(2, 6, low, width).cdf).statistic)

    assert distance(0.0, 1.0) < 0.05
    assert distance(8.0, 0.25) < 0.05


def test_a_reference_per_component_leaves_little_to_learn() -> None:
    """Twelve modes: the error of their weights is 0.03 here, and 0.14 with one reference for all samples."""
    modes = torch.cartesian_prod(torch.arange(4.0), torch.arange(3.0)) * 5 - torch.tensor([7.5, 5.0])

    def twelve(x: Tensor) -> Tensor:
        return torch.logsumexp(-(x[:, None] - modes).square().sum(-1), dim=1)

    settings = SMALL | {"steps": 300, "batch_size": 256, "scale": 4.0}
    sampler = RAS(log_density=twelve, dim=2, **settings).fit()
    samples = torch.from_numpy(sampler.sample(20_000, random_state=0))
    shares = torch.bincount(torch.cdist(samples, modes).argmin(1), minlength=12) / 20_000
    assert float((shares - 1 / 12).abs().sum() / 2) < 0.07


@pytest.mark.parametrize("divergence", ["hellinger", "gan", "non_saturating", "total_variation"])
def test_other_divergences_learn_too(divergence: Any) -> None:
    sampler = RAS(log_density=gaussian, dim=2, divergence=divergence, entropy="both", **SMALL).fit()
    np.testing.assert_allclose(sampler.sample(5000, random_state=0).mean(0), [1, -1], atol=0.7)
    assert all(np.isfinite(values).all() for values in sampler.history_.values())


@pytest.mark.parametrize(
    ("log_density", "message"),
    [
        (lambda x: (-x.square()).sum(1).sqrt(), "finite value.*nan"),
        (lambda x: torch.where(x[:, 0] > 0, x[:, 0], -math.inf), "finite value.*-inf.*support"),
        (lambda x: -x.square(), r"shape \(64,\), one value per point; got shape \(64, 2\)"),
        (lambda x: 3.0, "got a float"),
        (lambda x: -x.detach().square().sum(1), "differentiable"),
        (lambda x: -np.square(x).sum(1), "log_density must be differentiable: compute it with torch"),
        (lambda x: torch.zeros(len(x), requires_grad=True), "depend on the points"),
        (lambda x: -x.abs().sum(1).sub(x.abs().sum(1).detach()).sqrt(), "finite gradient"),
    ],
)
def test_a_log_density_that_cannot_be_used_is_refused(log_density: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RAS(log_density=log_density, dim=2, **SMALL).fit()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"log_density": None}, "log_density must be given"),
        ({"steps": 0}, "steps must be"),
        ({"entropy": "more"}, "entropy must be"),
        ({"support": (1.0, -1.0)}, "support must be finite"),
        ({"support": ((0.0, 0.0, 0.0), 1.0)}, "support must hold"),
        ({"support": (0.0,)}, "support must be a pair"),
        ({"support": 1.0}, r"support must be a pair \(lower, upper\), such as \(0, 1\) or .*; got 1.0"),
        ({"support": "01"}, r"support must be a pair \(lower, upper\), such as .*; got '01'"),
        ({"support": ("low", "high")}, r"support must be a pair .*; got \('low', 'high'\)"),
        ({"support": ((0.0, 0.0, 0.0), (1.0, 1.0))}, "support must hold one number or 2 numbers per bound"),
        ({"support": np.zeros((2, 3))}, r"support must hold .*; got array\(\[\[0., 0., 0.\], \[0., 0., 0.\]\]\)"),
    ],
)
def test_parameters_are_checked(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RAS(**{"log_density": gaussian, **parameters}).fit()


def test_bad_calls_are_refused(fitted: RAS) -> None:
    with pytest.raises(ValueError, match="n must be an integer at least 1"):
        fitted.sample(0)
    with pytest.raises(ValueError, match="context must be None"):
        fitted.sample(3, [1.0])
    with pytest.raises(ValueError, match=r"X must be \(n, 2\)"):
        fitted.log_prob_estimate([[1.0]])
    with pytest.raises(ValueError, match="X must hold finite numbers"):
        fitted.log_prob_estimate([[1.0, np.nan]])


def test_the_cycle_term_ends_with_the_annealing_share() -> None:
    """Of two epochs of 50 steps, only the first has a cycle term if it ends after 40 steps."""
    settings = SMALL | {"steps": 100, "entropy": "cycle", "annealing_share": 0.4}
    history = RAS(log_density=gaussian, dim=2, **settings).fit().history_
    assert (len(history["cycle"]), len(history["generator"])) == (1, 2)
    assert len(history["final critic"]) == 1


@pytest.mark.parametrize(("parameters", "per_step"), [({}, 1), ({"components": 1}, 3), ({"critic_steps": 2}, 2)])
def test_the_critic_takes_more_steps_where_it_has_more_to_learn(
    parameters: dict[str, Any], per_step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh: list[bool] = []
    draw = RASLosses.critic_batch

    def counted(losses: RASLosses, fresh_samples: bool = False) -> Any:
        fresh.append(fresh_samples)
        return draw(losses, fresh_samples)

    monkeypatch.setattr(RASLosses, "critic_batch", lambda losses, fresh=False: counted(losses, fresh))
    RAS(log_density=gaussian, dim=2, **SMALL | {"steps": 10} | parameters).fit()
    # A fifth of the steps fits the critic to the final generator.
    assert len(fresh) == 10 * per_step + 2
    assert sum(fresh) == 10 * (per_step - 1)


def test_the_critic_sees_points_in_units_of_its_resolution() -> None:
    settings = SMALL | {"steps": 1, "scale": 3.0, "critic_resolution": 5.0}
    x = torch.tensor([[1.0, -2.0]])
    torch.testing.assert_close(RAS(log_density=gaussian, dim=2, **settings).fit().critic_.rescale(x), 5 * x / 3)
    box = ((-2.0, 100.0), (6.0, 100.4))
    critic = RAS(log_density=gaussian, dim=2, support=box, **settings).fit().critic_
    corners = critic.rescale(torch.tensor(box))
    torch.testing.assert_close(corners, torch.tensor([[-10.0, -10.0], [10.0, 10.0]]), rtol=1e-3, atol=0)


def flat(x: Tensor) -> Tensor:
    return 0 * x.sum(1)


def test_the_estimated_density_is_zero_outside_of_the_support() -> None:
    sampler = RAS(log_density=flat, dim=1, support=(0.1, 0.7), **SMALL | {"steps": 20}).fit()
    found = sampler.log_prob_estimate([[0.4], [0.0999], [0.7001], [50.0]])
    assert np.isfinite(found).tolist() == [True, False, False, False]
    assert (found[1:] == -np.inf).all()
    # Rounding puts the largest samples above 0.7 in single precision.
    top = sampler.generator_.squash(torch.tensor([[30.0], [-30.0]]))
    assert np.isfinite(sampler.log_prob_estimate(top.numpy())).all()


def test_the_box_may_have_bounds_per_dimension() -> None:
    sampler = RAS(log_density=flat, dim=2, support=((0, -1), (10, 1)), **SMALL | {"steps": 3}).fit()
    found = sampler.log_prob_estimate([[9.0, 0.0], [0.5, -2.0], [11.0, 0.0]])
    assert (found == -np.inf).tolist() == [False, True, True]


@pytest.mark.parametrize(
    "support", [[-1, 3], np.array([-1.0, 3.0]), np.array([[-1, -1], [3, 3]]), torch.tensor([-1, 3])]
)
def test_a_support_may_be_a_list_or_an_array(support: Any, tmp_path: Path) -> None:
    settings = SMALL | {"steps": 3, "log_density": gaussian, "dim": 2}
    expected = RAS(support=(-1, 3), **settings).fit().sample(5, random_state=0)
    sampler = RAS(support=support, **settings).fit()
    assert np.array_equal(sampler.sample(5, random_state=0), expected)
    sampler.save(tmp_path / "ras.safetensors")
    assert np.array_equal(offmap.load(tmp_path / "ras.safetensors").sample(5, random_state=0), expected)


@pytest.mark.parametrize("contexts", [None, np.zeros((20, 2))])
def test_a_log_density_in_double_precision_gives_the_samples_of_single_precision(contexts: Any) -> None:
    """The density is exact in both precisions, and so are its gradients."""

    def single(x: Tensor, context: Any = None) -> Tensor:
        return x.sum(1) / 4

    def double(x: Tensor, context: Any = None) -> Tensor:
        return single(x).double()

    asked = None if contexts is None else contexts[0]
    drawn = [
        RAS(log_density=density, dim=2, support=(0, 1), **SMALL | {"steps": 20})
        .fit(contexts)
        .sample(50, asked, random_state=0)
        for density in (single, double)
    ]
    assert np.array_equal(drawn[0], drawn[1])


@pytest.mark.parametrize("value", [-math.inf, math.nan])
@pytest.mark.parametrize("changes", [{}, {"components": 1}, {"divergence": "gan"}])
def test_training_that_meets_an_unusable_value_blames_the_log_density(value: float, changes: dict[str, Any]) -> None:
    """No sample of the 64 that are checked first lies beyond 3.2."""

    def cut(x: Tensor) -> Tensor:
        return torch.where(x[:, 0] > 3.2, value, -x[:, 0].square() / 2)

    with pytest.raises(
        TrainingError, match=rf"log_density is {value} at \d+ of 128 samples; .*pass the box as support"
    ):
        RAS(log_density=cut, dim=1, **SMALL | {"steps": 200} | changes).fit()


def test_samples_that_diverge_are_not_blamed_on_impossible_points() -> None:
    def steep(x: Tensor) -> Tensor:
        """Its gradient is nan beyond 3, where no sample is checked first."""
        beyond = torch.where(x[:, 0] > 3, x[:, 0] - x[:, 0].detach(), 1.0)
        return -x[:, 0].square() / 2 + beyond.sqrt()

    with pytest.raises(TrainingError, match=r"the samples became nan or infinite; .* the gradient of log_density"):
        RAS(log_density=steep, dim=1, **SMALL | {"steps": 200}).fit()
