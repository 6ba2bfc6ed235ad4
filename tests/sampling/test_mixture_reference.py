"""References that follow each component of a mixture of noise, against SciPy and naive loops."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from torch import Tensor

from offmap.sampling.mixture_reference import ComponentMoments, MixtureReference
from offmap.sampling.references import BetaReference

WEIGHTS = torch.tensor([0.2, 0.5, 0.3])
MOMENTS = ComponentMoments(
    torch.ones(3, 1),
    torch.tensor([[0.2, 0.5], [0.5, 0.7], [0.8, 0.3]]),
    torch.tensor([[0.01, 0.02], [0.005, 0.01], [0.02, 0.015]]),
)
BOX = ((-1.0, 10.0), (1.0, 14.0))


def reference(support: Any, share: float = 0.1) -> MixtureReference:
    return MixtureReference.of(MOMENTS, WEIGHTS, support, share)


def drawn(mixture: MixtureReference, n: int) -> Tensor:
    torch.manual_seed(0)
    return mixture.draw(n)


def test_a_mixture_of_gaussians_is_scipys() -> None:
    mixture, x = reference(None), torch.rand(40, 2)
    mean, variance = MOMENTS.mean.numpy(), MOMENTS.variance.numpy() + 1e-6
    middle = WEIGHTS.numpy() @ mean
    spread = WEIGHTS.numpy() @ (variance + (mean - middle) ** 2)
    parts = stats.norm.pdf(x.numpy()[:, None], mean, np.sqrt(variance)).prod(-1) @ WEIGHTS.numpy()
    broad = stats.norm.pdf(x.numpy(), middle, np.sqrt(spread)).prod(-1)
    np.testing.assert_allclose(mixture.log_prob(x), np.log(0.9 * parts + 0.1 * broad), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("share", [0.0, 0.1])
def test_a_mixture_of_betas_is_scipys_on_its_box(share: float) -> None:
    mixture, (low, high) = reference(BOX, share), map(np.array, BOX)
    t = torch.rand(40, 2).clamp(0.01, 0.99).numpy()
    assert isinstance(mixture.parts, BetaReference)
    a, b = (shape[:, 0].numpy() for shape in mixture.parts.shapes())
    parts = np.asarray(stats.beta.pdf(t[:, None], a, b)).prod(-1) @ WEIGHTS.numpy()
    expected = np.log((1 - share) * parts + share) - np.log(high - low).sum()
    found = mixture.log_prob(torch.tensor(low + (high - low) * t, dtype=torch.float32))
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=2e-3)


@pytest.mark.parametrize("support", [None, BOX])
def test_draws_have_the_moments_of_the_mixture(support: Any) -> None:
    x = drawn(reference(support, share=0.0), 100_000)
    low, width = (
        (torch.zeros(2), torch.ones(2)) if support is None else (torch.tensor(BOX[0]), torch.tensor([2.0, 4.0]))
    )
    t = (x - low) / width
    mean = WEIGHTS @ MOMENTS.mean
    variance = WEIGHTS @ (MOMENTS.variance + (MOMENTS.mean - mean).square())
    torch.testing.assert_close(t.mean(0), mean, atol=0.005, rtol=0)
    torch.testing.assert_close(t.var(0), variance, atol=0.002, rtol=0.03)


def test_the_broad_part_has_its_share() -> None:
    narrow = ComponentMoments(torch.ones(1, 1), torch.tensor([[0.5]]), torch.tensor([[1e-3]]))
    x = drawn(MixtureReference.of(narrow, torch.ones(1), (0.0, 1.0), 0.2), 50_000)
    # The only part has a standard deviation of 0.03, so only the uniform share is beyond 0.25 from the middle.
    assert float(((x - 0.5).abs() > 0.25).float().mean()) == pytest.approx(0.1, abs=0.005)


def test_a_component_of_weight_0_is_neither_drawn_nor_counted() -> None:
    weights = torch.tensor([0.0, 0.6, 0.4])
    mixture = MixtureReference.of(MOMENTS, weights, BOX, 0.0)
    x = torch.tensor([[-0.6, 12.0]], requires_grad=True)
    value = mixture.log_prob(x)
    rest = ComponentMoments(*(part[1:] for part in (MOMENTS.counts, MOMENTS.mean, MOMENTS.variance)))
    torch.testing.assert_close(value, MixtureReference.of(rest, weights[1:], BOX, 0.0).log_prob(x))
    (gradient,) = torch.autograd.grad(value.sum(), x)
    assert gradient.isfinite().all()
    assert (drawn(mixture, 10_000)[:, 0] < -0.8).float().mean() < 0.001


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 99), st.floats(0.0, 0.5))
def test_moments_are_those_of_a_naive_loop(seed: int, forget: float) -> None:
    """A start of one sample in the middle, then two batches, the first of which has lost a share."""
    rng = torch.Generator().manual_seed(seed)
    batches = [torch.randn(30, 1, generator=rng, dtype=torch.float64) + 50 for _ in range(2)]
    rows = [torch.randint(3, (30,), generator=rng) for _ in range(2)]
    moments = ComponentMoments.start(batches[0], 3)
    first = (float(batches[0].mean()), 0.1 * float(batches[0].var(correction=0)))
    for x, component in zip(batches, rows, strict=True):
        moments = moments.add(x, component, forget)
    for k in range(3):
        weighted = [((1 - forget) ** 2, first[0])]
        weighted += [(1 - forget, float(v)) for v in batches[0][rows[0] == k]]
        weighted += [(1.0, float(v)) for v in batches[1][rows[1] == k]]
        total = sum(w for w, _ in weighted)
        mean = sum(w * v for w, v in weighted) / total
        spread = sum(w * (v - mean) ** 2 for w, v in weighted) + (1 - forget) ** 2 * first[1]
        assert float(moments.counts[k]) == pytest.approx(total)
        assert float(moments.mean[k]) == pytest.approx(mean, rel=1e-9)
        assert float(moments.variance[k]) == pytest.approx(spread / total, rel=1e-6)


def test_no_gradient_flows_into_the_moments() -> None:
    x = torch.rand(8, 2, requires_grad=True)
    moments = ComponentMoments.start(x, 2).add(x, torch.arange(8) % 2)
    assert not moments.mean.requires_grad
    assert not moments.variance.requires_grad
    assert math.isclose(float(moments.counts.sum()), 8 + 2 * 0.95, rel_tol=1e-6)
