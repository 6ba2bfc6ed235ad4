"""An ensemble that must agree."""

from typing import ClassVar

import torch
from torch import Tensor

from offmap.density.scores.bound import negative_elbo
from offmap.density.scores.score import Models, Part, Score


class WAIC(Score):
    r"""$\mathrm{Var}_\theta \log p_\theta(x) - \mathbb{E}_\theta \log p_\theta(x)$ over an ensemble, in nats.

    Models trained from different starts agree on normal rows and disagree on others. Cost: as many passes and trainings
    as there are members. Fails: members share their blind spots, so where all are wrong alike it is wrong too.

    Reference: Choi, Jang and Alemi, WAIC, but Why? Generative Ensembles for Robust Anomaly Detection, arXiv:1810.01392.
    """

    needs: ClassVar[frozenset[Part]] = frozenset({"ensemble"})

    def statistics(self, models: Models, X: Tensor) -> Tensor:
        """The criterion with its sign turned."""
        nats = torch.stack([negative_elbo(network, X) for network in (models.network, *models.ensemble)])
        return (nats.mean(0) + nats.var(0))[:, None]
