"""A mixture of Gaussians as a detector."""

import math
import warnings
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from torch import Tensor

from offmap.base import Detector
from offmap.nets import Standardise
from offmap.nets.steady import steady_product
from offmap.parameters import Count, Positive
from offmap.random_state import torch_seed


@final
@dataclass(kw_only=True, eq=False, repr=False)
class GaussianMixtureDetector(Detector):
    r"""Flags rows of low density under a mixture of Gaussians.

    The novelty is $-\log \sum_k w_k \mathcal{N}(z; \mu_k, \Sigma_k)$ of the standardised row $z$. Suited to tables of a
    few dozen features whose rows form clusters; with many features each covariance needs many rows.

    Args:
        n_components: How many Gaussians. More of them follow more clusters and need more rows.
        regularisation: Variance added to each feature. Raise it if rows are few or repeat.

    Attributes:
        scaler_: Mean and standard deviation of each feature, a ``torch.nn.Module``.
        weights_: The weights $w_k$.
        means_: The means $\mu_k$.
        factors_: Matrices $F_k$ with $F_k F_k^\top = \Sigma_k^{-1}$.
        history_: Empty: nothing is trained by gradient.
        promise_: The ``Promise`` that decides, fitted on the calibration rows.
        threshold_: Rows with a novelty above it are flagged.
        calibration_novelty_: Novelty of the calibration rows, in ascending order.
        input_shape_: Shape of one row.

    Reference: McLachlan and Peel, Finite Mixture Models, 2000.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(600, 2)) + rng.choice([-9, 9], size=(600, 1))
        >>> GaussianMixtureDetector(n_components=2, random_state=0).fit(X).predict([[9.0, 9.0], [0.0, 0.0]])
        array([ 1, -1])
    """

    n_components: Count = 5
    regularisation: Positive = 1e-3

    def _fit(self, X: Tensor) -> None:
        self._build()
        self.scaler_.fit(X)
        components = min(self.n_components, len(X))
        mixture = GaussianMixture(components, reg_covar=self.regularisation, random_state=torch_seed())
        with warnings.catch_warnings():
            # A mixture that could still improve, or has fewer distinct rows than Gaussians, is a density all the same.
            warnings.simplefilter("ignore", ConvergenceWarning)
            mixture.fit(_repeated(self.scaler_(X).double().cpu().numpy()))
        self.weights_, self.means_ = torch.from_numpy(mixture.weights_), torch.from_numpy(mixture.means_)
        self.factors_ = torch.from_numpy(mixture.precisions_cholesky_)

    def _build(self) -> None:
        self.scaler_ = Standardise(math.prod(self.input_shape_)).to(self.device)

    def _novelty(self, X: Tensor) -> Tensor:
        rows = self.scaler_(X).double().cpu()
        logs = [self._log_density(rows, k) for k in range(len(self.weights_))]
        return -torch.logsumexp(torch.stack(logs, dim=1), dim=1)

    def _log_density(self, rows: Tensor, k: int) -> Tensor:
        """The logarithm of the weighted density of one Gaussian."""
        places = steady_product(rows - self.means_[k], self.factors_[k].T)
        volume = self.factors_[k].diagonal().log().sum() - 0.5 * rows.shape[1] * math.log(2 * math.pi)
        return self.weights_[k].log() + volume - 0.5 * places.square().sum(dim=1)


def _repeated(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """A single row twice, since scikit-learn's mixture needs two."""
    return np.repeat(rows, 2, axis=0) if len(rows) == 1 else rows
