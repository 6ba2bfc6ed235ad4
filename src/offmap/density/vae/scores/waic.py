"""The Watanabe-Akaike information criterion of an ensemble."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from torch import Tensor

from offmap.density.vae.scores.bound import negative_importance_bound
from offmap.density.vae.scores.score import Networks, Requirement, Score
from offmap.parameters import Limit, Repeats


@dataclass(kw_only=True, eq=False, repr=False)
class WAIC(Score):
    r"""$\mathrm{Var}_\theta \log p_\theta(x) - \mathbb{E}_\theta \log p_\theta(x)$ over an ensemble, in nats.

    Networks trained from different initial weights agree on normal rows and disagree on others. Likelihoods are
    importance-weighted: with a single draw the variance would be that of the draw. Cost: one training per network, and
    ``n_samples`` passes through each decoder. Fails: where all networks have the same blind spot.

    Args:
        n_networks: Networks in the ensemble.
        n_samples: Latent draws per row and network.

    Reference: Choi, Jang and Alemi, WAIC, but Why? Generative Ensembles for Robust Anomaly Detection, arXiv:1810.01392.
    """

    name: ClassVar[str] = "waic"
    requires: ClassVar[frozenset[Requirement]] = frozenset({"ensemble"})

    n_networks: Annotated[int, Limit("at least 2", lambda value: value >= 2)] = 5
    n_samples: Repeats = 8

    def statistics(self, networks: Networks, X: Tensor) -> Tensor:
        """Minus the criterion of the paper."""
        members, draws = (networks.network, *networks.ensemble), networks.draws(self.n_samples)
        nats = torch.stack([negative_importance_bound(network, X, draws) for network in members])
        return (nats.mean(0) + nats.var(0))[:, None]
