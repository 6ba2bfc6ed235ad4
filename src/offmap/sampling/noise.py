"""The noise that generators map to samples: one Gaussian, or a mixture of Gaussians whose weights are learnt."""

import math

import torch
from torch import Tensor, nn

# First standard deviation of each Gaussian of a mixture. All of them together start with a standard deviation of 1.
_SPREAD = 0.3
# Adam moves every number by about its learning rate per step; what is stored in larger units moves further.
_UNIT = 5.0
# Largest change of a log weight per step, in units of the rate: far from the target, log ratios are huge.
_LARGEST_CHANGE = 2.0
# A weight stays above this share of an equal weight: a Gaussian that is never drawn from could not come back.
_SMALLEST_SHARE = 0.02


class GaussianNoise(nn.Module):
    """Draws standard Gaussian noise.

    Args:
        dim: Dimensions of the noise.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def draw(self, shape: tuple[int, ...], device: torch.device, rng: torch.Generator | None = None) -> Tensor:
        """Draws noise ``(*shape, dim)`` from ``rng``, or else torch's global generator."""
        return torch.randn(*shape, self.dim, device=device, generator=rng)


class MixtureNoise(nn.Module):
    r"""Draws from a mixture of Gaussians with learnt means, standard deviations and weights.

    A generator maps one Gaussian continuously, so it has to spend samples between distant modes, and mass passes from
    one mode to another only through these few samples. A mixture has gaps of its own, and its weights move mass
    directly. The derivative of $\mathbb{E} \log u(x) / q(x)$ by the weight of a component is the mean of $\log u / q$
    over its samples, up to a constant; so weights grow in proportion to its exponential until all means agree.

    Args:
        components: Number of Gaussians.
        dim: Dimensions of the noise.

    Reference: Gurumurthy et al., DeLiGAN, arXiv:1706.02071, which learns means and standard deviations but not the
    weights.

    Example:
        >>> noise = MixtureNoise(components=2, dim=1)
        >>> component = torch.tensor([0, 0, 1, 1])
        >>> noise.reweight(component, torch.tensor([0.0, 0.0, 1.0, 1.0]), rate=0.5)
        >>> noise.log_weights.softmax(0)
        tensor([0.3775, 0.6225])
    """

    log_weights: Tensor

    def __init__(self, components: int, dim: int) -> None:
        super().__init__()
        self.dim = dim
        self.scaled_means = nn.Parameter(math.sqrt(1 - _SPREAD**2) * torch.randn(components, dim) / _UNIT)
        self.scaled_log_spread = nn.Parameter(torch.full((components, dim), math.log(_SPREAD) / _UNIT))
        self.register_buffer("log_weights", torch.full((components,), -math.log(components)))

    @property
    def means(self) -> Tensor:
        """Mean of each Gaussian, ``(components, dim)``."""
        return _UNIT * self.scaled_means

    @property
    def spread(self) -> Tensor:
        """Standard deviations of each Gaussian, ``(components, dim)``."""
        return (_UNIT * self.scaled_log_spread).exp()

    def draw(self, shape: tuple[int, ...], device: torch.device, rng: torch.Generator | None = None) -> Tensor:
        """Draws noise ``(*shape, dim)`` from ``rng``, or else torch's global generator."""
        return self._around(self._components(torch.rand(shape, device=device, generator=rng)), rng)

    def draw_evenly(self, n: int, device: torch.device, rng: torch.Generator | None = None) -> tuple[Tensor, Tensor]:
        """Draws noise ``(n, dim)`` in which every component has its share up to rounding, and the components."""
        start = torch.rand((), device=device, generator=rng)
        component = self._components((torch.arange(n, device=device) + start) / n)
        return self._around(component, rng), component

    @torch.no_grad()
    def reweight(self, component: Tensor, log_ratio: Tensor, rate: float) -> None:
        """Raises the weights of the components whose samples have a high mean of $\\log u / q$.

        Args:
            component: Component of each sample, ``(n,)``.
            log_ratio: Estimates of $\\log u / q$ at the samples, ``(n,)``, up to a constant.
            rate: Change of a log weight per unit of the mean. At 1, weights that are wrong by a factor would be right
                after one step if components did not overlap and the estimates had no noise.
        """
        excess = (log_ratio - log_ratio.mean()).clamp(-_LARGEST_CHANGE, _LARGEST_CHANGE)
        counts = torch.bincount(component, minlength=len(self.log_weights)).clamp(min=1)
        self.log_weights += rate * torch.zeros_like(self.log_weights).index_add(0, component, excess) / counts
        self.log_weights -= self.log_weights.logsumexp(0)
        self.log_weights.clamp_(min=math.log(_SMALLEST_SHARE / len(self.log_weights)))

    @torch.no_grad()
    def drop_unused(self) -> None:
        """Gives weight 0 to the components that are kept only in case they come back; call it after training.

        Such a component is hardly trained, so its samples may lie anywhere.
        """
        unused = self.log_weights < math.log(2 * _SMALLEST_SHARE / len(self.log_weights))
        self.log_weights[unused] = -math.inf

    def _components(self, uniform: Tensor) -> Tensor:
        edges = self.log_weights.softmax(0).cumsum(0)
        return torch.searchsorted(edges, uniform, right=True).clamp(max=len(edges) - 1)

    def _around(self, component: Tensor, rng: torch.Generator | None = None) -> Tensor:
        means = self.means[component]
        noise = torch.randn(means.shape, device=means.device, generator=rng)
        return means + self.spread[component] * noise
