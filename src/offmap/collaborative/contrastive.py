"""Contrastive features with shifted instances, and a few exposures of each task to compare with."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, normalize, pad
from torch.optim import AdamW

from offmap.collaborative.exposures import Exposures
from offmap.collaborative.networked import NetworkDetector
from offmap.collaborative.networks import perceptron
from offmap.parameters import Count, Positive
from offmap.train import Batch, Batches, descend, train


def contrast(one: Tensor, other: Tensor, temperature: float) -> Tensor:
    r"""The normalised cross entropy of finding the other view of a row among all views of a batch.

    $$-\log \frac{\exp(\cos(z_i, z_i') / \tau)}{\sum_{j \ne i} \exp(\cos(z_i, z_j) / \tau)}$$

    Reference: Chen et al., A Simple Framework for Contrastive Learning of Visual Representations, ICML 2020, eq. 1.
    """
    views = normalize(torch.cat([one, other]), dim=1)
    likeness = views @ views.T / temperature
    likeness.fill_diagonal_(-torch.inf)
    partner = torch.arange(len(views), device=views.device).roll(len(one))
    return cross_entropy(likeness, partner)


def view(X: Tensor) -> Tensor:
    """Another look at the same rows: images are moved and change in brightness, features are blurred or left out."""
    if X.ndim == 2:
        blurred = X + 0.2 * torch.randn_like(X) * X.std(dim=0)
        return torch.where(torch.rand_like(X) < 0.2, X.mean(dim=0), blurred)
    down, right = (int(torch.randint(2 * _FARTHEST + 1, ())) for _ in range(2))
    moved = pad(X, (_FARTHEST,) * 4)[..., down : down + X.shape[2], right : right + X.shape[3]]
    return moved * (0.7 + 0.6 * torch.rand(len(X), 1, 1, 1, device=X.device)) + 0.05 * torch.randn_like(moved)


def shifted(X: Tensor) -> Tensor:
    """Rows that count as others than those they are made of: images turned upside down, features mirrored."""
    return X.flip(2, 3) if X.ndim == 4 else 2 * X.mean(dim=0) - X


@dataclass(kw_only=True, eq=False, repr=False)
class ContrastiveDetector(NetworkDetector):
    r"""Compares a row with a few exposures of the task, in features learnt by telling rows and shifted rows apart.

    The score follows CSI, $\max_k \cos(z(x), z_k) \, \|z(x)\|$ over kept exposures $z_k$ of the task. Sized for a CPU:
    one small encoder is trained on the exposures of all tasks, in place of a deep one for each, with one shift.

    Args:
        outputs: Width of the features.
        kept: Exposures that are kept of each task, drawn at random.
        temperature: τ of the contrastive loss.

    Reference: Tack et al., CSI: Novelty Detection via Contrastive Learning on Distributionally Shifted Instances,
    NeurIPS 2020.

    Example:
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> tasks = np.repeat(np.arange(20), 50)
        >>> X = rng.normal(size=(1000, 2)) + np.stack([np.cos(tasks), np.sin(tasks)], axis=1) * 3
        >>> detector = ContrastiveDetector(epochs=10, random_state=0).fit(X, tasks)
        >>> own, opposite = detector.novelty([[3.0, 0.0], [-3.0, 0.0]], [0, 0])
        >>> bool(own < opposite)
        True
    """

    outputs: Count = 32
    kept: Count = 16
    temperature: Positive = 0.5

    def _build_networks(self) -> None:
        body = self._body()
        widths = (body.outputs, *self.hidden)
        layers = nn.Sequential(perceptron(widths, self.dropout), nn.Linear(widths[-1], self.outputs))
        self.body_, self.layers_ = body.to(self.device), layers.to(self.device)

    def _fit(self, shown: Exposures, given: Tensor | None) -> Tensor:
        self._build_networks()
        self.body_.measure(shown.X)
        network = nn.ModuleList([self.body_, self.layers_])
        optimizer = AdamW(network.parameters(), lr=self.lr, weight_decay=self.weight_decay)

        def terms(batch: Batch) -> dict[str, Tensor]:
            rows = shown.X[batch[0]]
            both = torch.cat([rows, shifted(rows)])
            one, other = self._features(torch.cat([view(both), view(both)])).chunk(2)
            return {"contrast": contrast(one, other, self.temperature)}

        self.history_ = train(
            descend(optimizer, terms),
            Batches((shown.index,), self.batch_size),
            epochs=self.epochs,
            state={"network": network, "optimizer": optimizer},
            label="contrastive features",
        )
        return self._embed(self._all_features(shown.X), shown)

    def _features(self, X: Tensor) -> Tensor:
        return self.layers_(self.body_(X))

    def _familiarity(self, features: Tensor, embeddings: Tensor) -> Tensor:
        kept = embeddings.unflatten(1, (self.kept, self.outputs))
        return torch.einsum("nd,nkd->nk", features, kept).amax(dim=1)

    def _familiarity_to_all(self, features: Tensor, embeddings: Tensor) -> Tensor:
        kept = embeddings.view(len(embeddings) * self.kept, self.outputs)
        return (features @ kept.T).view(len(features), len(embeddings), self.kept).amax(dim=2)

    def _embed(self, features: Tensor, shown: Exposures) -> Tensor:
        """The directions of some exposures of each task, drawn at random; of fewer, some twice."""
        mixed = torch.randperm(len(shown), device=features.device)
        order = mixed[torch.argsort(shown.tasks[mixed], stable=True)]
        counts = shown.counts
        first = counts.cumsum(0) - counts
        rank = torch.arange(self.kept, device=features.device) % counts.unsqueeze(1)
        chosen = shown.index[order[first.unsqueeze(1) + rank]]
        return normalize(features[chosen], dim=2).flatten(1)

    def _learn_on(self, places: Tensor, features: Tensor, shown: Exposures) -> Tensor:
        """New exposures take the places of old ones, so often that all are as likely to be kept."""
        old = self.tasks_.column("embedding")[places].unflatten(1, (self.kept, self.outputs))
        new = self._embed(features, shown).unflatten(1, (self.kept, self.outputs))
        before = self.tasks_.column("count")[places, 0]
        share = shown.counts / (shown.counts + before)
        # Other draws for each piece of a stream, or the same places would stay for ever.
        generator = torch.Generator().manual_seed(int(before.sum()))
        taken = torch.rand(old.shape[:2], generator=generator).to(old.device) < share.unsqueeze(1)
        return torch.where(taken.unsqueeze(2), new, old).flatten(1)


# Pixels that a view may be moved by.
_FARTHEST = 2
