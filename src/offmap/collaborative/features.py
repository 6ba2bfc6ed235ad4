"""Features that closed forms are solved in: random, principal, or learnt."""

import torch
from torch import Tensor, nn

from offmap.nets import Standardise


class FourierFeatures(nn.Module):
    r"""Random Fourier features of a Gaussian kernel: $\sqrt{2/D} \cos(\Omega x / h + b)$, of standardised rows.

    The bandwidth $h$ is the median distance of two rows.

    Reference: Rahimi and Recht, Random Features for Large-Scale Kernel Machines, NeurIPS 2007.
    """

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.standardise = Standardise(inputs)
        self.register_buffer("directions", torch.randn(inputs, outputs))
        self.register_buffer("phases", 2 * torch.pi * torch.rand(outputs))

    def measure(self, X: Tensor) -> None:
        """Fits scale and bandwidth to rows."""
        rows = self.standardise.fit(X.flatten(1))(X.flatten(1))
        one, other = (rows[torch.randint(len(rows), (1000,), device=rows.device)] for _ in range(2))
        distances = (one - other).norm(dim=1)
        self.get_buffer("directions").div_(distances[distances > 0].median() if (distances > 0).any() else 1.0)

    def forward(self, X: Tensor) -> Tensor:
        """The features of rows."""
        directions, phases = self.get_buffer("directions"), self.get_buffer("phases")
        return (2 / len(phases)) ** 0.5 * torch.cos(self.standardise(X.flatten(1)) @ directions + phases)


class PrincipalFeatures(nn.Module):
    """The projection of rows onto their first principal axes, in units of the first's spread."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(inputs))
        self.register_buffer("axes", torch.zeros(inputs, min(inputs, outputs)))

    def measure(self, X: Tensor) -> None:
        """Finds the axes of rows."""
        rows = X.flatten(1).double()
        mean = rows.mean(dim=0)
        variance, axes = torch.linalg.eigh(torch.cov((rows - mean).T).reshape(rows.shape[1], rows.shape[1]))
        kept = self.get_buffer("axes").shape[1]
        self.get_buffer("mean").copy_(mean)
        self.get_buffer("axes").copy_(axes.flip(1)[:, :kept] / variance[-1].clamp(min=1e-30).sqrt())

    def forward(self, X: Tensor) -> Tensor:
        """The features of rows."""
        return (X.flatten(1) - self.get_buffer("mean")) @ self.get_buffer("axes")
