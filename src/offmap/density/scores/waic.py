"""An ensemble that must agree."""

from typing import ClassVar

import torch
from torch import Tensor

from offmap.density.scores.bound import negative_importance_bound
from offmap.density.scores.score import Models, Part, Score


class WAIC(Score):
    r"""$\mathrm{Var}_\theta \log p_\theta(x) - \mathbb{E}_\theta \log p_\theta(x)$ over an ensemble, in nats.

    Models trained from different starts agree on normal rows and disagree on others. Likelihoods are
    importance-weighted: at a single draw the variance would be that of the draw. Cost: a training and ``samples``
    passes of the decoder for each member. Fails: members share their blind spots, so where all are wrong alike it is
    wrong too.

    Reference: Choi, Jang and Alemi, WAIC, but Why? Generative Ensembles for Robust Anomaly Detection, arXiv:1810.01392.
    """

    needs: ClassVar[frozenset[Part]] = frozenset({"ensemble"})

    def statistics(self, models: Models, X: Tensor) -> Tensor:
        """The criterion with its sign turned."""
        members, draws = (models.network, *models.ensemble), models.draws()
        nats = torch.stack([negative_importance_bound(network, X, draws) for network in members])
        return (nats.mean(0) + nats.var(0))[:, None]
