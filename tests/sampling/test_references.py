"""References against SciPy, and their moments against those of the samples they follow."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from offmap.sampling.references import BetaReference, GaussianReference, fit_reference


def test_gaussian_density_is_scipys() -> None:
    reference = GaussianReference(torch.tensor([[1.0, -2.0]]), torch.tensor([[4.0, 0.25]]))
    x = torch.randn(50, 2)
    expected = np.asarray(stats.norm.logpdf(x.numpy(), [1.0, -2.0], [2.0, 0.5])).sum(1)
    np.testing.assert_allclose(reference.log_prob(x).numpy(), expected, rtol=1e-5)


@given(st.floats(0.5, 8), st.floats(0.5, 8), st.floats(-3, 0), st.floats(1, 4))
@settings(deadline=None, max_examples=30)
def test_beta_density_is_scipys_on_its_own_box(a: float, b: float, low: float, high: float) -> None:
    mean, variance = a / (a + b), a * b / ((a + b) ** 2 * (a + b + 1))
    box = (torch.tensor(low), torch.tensor(high))
    reference = BetaReference(torch.tensor([[mean]]).double(), torch.tensor([[variance]]).double(), *box)
    x = torch.linspace(low, high, 22, dtype=torch.float64)[1:-1, None]
    expected = stats.beta.logpdf(x.numpy()[:, 0], a, b, loc=low, scale=high - low)
    np.testing.assert_allclose(reference.log_prob(x).numpy(), expected, rtol=1e-4, atol=1e-4)


def test_beta_has_the_moments_of_the_samples_of_each_context() -> None:
    torch.manual_seed(0)
    t = torch.distributions.Beta(torch.tensor([[2.0], [5.0]]), torch.tensor([[3.0], [1.0]])).sample((200_000,))
    x = (-1 + 2 * t).movedim(0, 1)
    reference = BetaReference.fit(x, -1.0, 1.0, extra_variance=0.0)
    a, b = reference.shapes()
    np.testing.assert_allclose(a.flatten(), [2.0, 5.0], rtol=0.02)
    np.testing.assert_allclose(b.flatten(), [3.0, 1.0], rtol=0.02)
    drawn = reference.draw(100_000)
    assert drawn.shape == (2, 100_000, 1)
    torch.testing.assert_close(drawn.mean(1), x.mean(1), atol=0.01, rtol=0)
    torch.testing.assert_close(drawn.var(1), x.var(1), atol=0.01, rtol=0)


def test_moments_that_no_beta_has_give_a_broad_one() -> None:
    corners = torch.tensor([[-1.0], [1.0]])
    a, b = BetaReference.fit(corners, -1.0, 1.0).shapes()
    assert (float(a), float(b)) == (2.0, 2.0)


def test_points_on_the_boundary_have_a_finite_density_and_none_is_drawn_there() -> None:
    reference = BetaReference(torch.tensor([[0.5]]), torch.tensor([[0.2]]), torch.tensor(0.0), torch.tensor(1.0))
    assert reference.log_prob(torch.tensor([[0.0], [1.0]])).isfinite().all()
    drawn = reference.draw(10_000)
    assert float(drawn.min()) > 0
    assert float(drawn.max()) < 1


def test_a_uniform_share_of_each_dimension_is_drawn_and_counted() -> None:
    torch.manual_seed(0)
    box = (torch.tensor([-1.0, 0.0]), torch.tensor([1.0, 4.0]))
    reference = BetaReference(torch.tensor([[0.5, 0.5]]), torch.tensor([[1e-3, 0.05]]), *box, uniform_share=0.2)
    x = box[0] + (box[1] - box[0]) * torch.rand(50, 2)
    a, b = (shape[0].numpy() for shape in reference.shapes())
    t = ((x - box[0]) / (box[1] - box[0])).numpy()
    expected = np.log(0.8 * stats.beta.pdf(t, a, b) + 0.2) - np.log([2.0, 4.0])
    np.testing.assert_allclose(reference.log_prob(x).numpy(), expected.sum(1), rtol=1e-4, atol=1e-4)
    drawn = reference.draw(100_000)
    # The Beta of the first dimension has a standard deviation of 0.06, so only the uniform share is beyond 0.5.
    beyond = drawn[:, 0].abs() > 0.5
    assert float(beyond.float().mean()) == pytest.approx(0.1, abs=0.005)
    assert reference.toward(reference, 0.5).uniform_share == 0.2


@pytest.mark.parametrize("support", [None, (-2.0, 2.0), ((-2.0, -3.0), (2.0, 3.0))])
def test_no_gradient_flows_into_the_moments(support: tuple[float, float] | None) -> None:
    x = torch.rand(8, 2, requires_grad=True)
    reference = fit_reference(x, support)
    assert not reference.mean.requires_grad
    assert not reference.draw(3).requires_grad


def test_moments_move_by_the_given_share() -> None:
    near, far = (GaussianReference(torch.full((1, 1), m), torch.full((1, 1), v)) for m, v in ((0.0, 1.0), (4.0, 3.0)))
    moved = near.toward(far, 0.25)
    assert (float(moved.mean), float(moved.variance)) == (1.0, 1.5)
