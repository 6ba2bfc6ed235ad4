"""Features for closed forms: random Fourier features, principal components; and a penalty far from all rows."""

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

    def fit(self, X: Tensor) -> None:
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
    """The projection of rows onto their first principal axes, in units of the spread along the first."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(inputs))
        self.register_buffer("axes", torch.zeros(inputs, min(inputs, outputs)))

    def fit(self, X: Tensor) -> None:
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


class RangePenalty(nn.Module):
    r"""What is subtracted from the log ratio of a row far outside the training rows, where features mean nothing.

    With the distance $d$ of a row from the mean of the training rows, and $r$ that of the outermost one, a row beyond
    $2 r$ loses $10 \log(d / 2 r)$: more than a ratio that is linear in the features can gain on the way. Other
    rows lose nothing. Distances are of standardised features; all pixels of an image have one scale.
    """

    farthest: Tensor

    def __init__(self, inputs: int, images: bool) -> None:
        super().__init__()
        self.standardise = Standardise(1 if images else inputs)
        self.register_buffer("farthest", torch.ones(()))

    def fit(self, X: Tensor) -> None:
        """Finds the outermost of the training rows."""
        self.standardise.fit(X.reshape(-1, len(self.standardise.mean)))
        # Training rows that are all alike are no reason to doubt rows within a unit of them.
        self.farthest.copy_(self._distance(X).max().clamp(min=1.0))

    def forward(self, X: Tensor) -> Tensor:
        """The penalty of each row."""
        return 10 * (self._distance(X) / (2 * self.farthest)).clamp(min=1.0).log()

    def _distance(self, X: Tensor) -> Tensor:
        rows = X.flatten(1)
        return self.standardise(rows).norm(dim=1) / rows.shape[1] ** 0.5
