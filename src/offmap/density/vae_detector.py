"""A variational autoencoder as a detector."""

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal, final

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from offmap.arrays import FloatArray, shifted
from offmap.base import Detector
from offmap.checkpoint import Checkpoint
from offmap.data.samplers import ParquetBatches
from offmap.density.vae.defaults import Defaults
from offmap.density.vae.likelihoods import LikelihoodName, require_intensities
from offmap.density.vae.negatives import Negatives, Source
from offmap.density.vae.network import VAE
from offmap.density.vae.objective import Objective
from offmap.density.vae.scores import SCORES, WAIC, LikelihoodRatio, Networks, Requirement, Score, ScoreName, Statistics
from offmap.density.vae.scoring import Scorer, reference_statistics
from offmap.density.vae.training import OptimizerName, TrainingSchedule
from offmap.nets import Standardise
from offmap.parameters import Count, Fraction, Positive, check


@final
@dataclass(kw_only=True, eq=False, repr=False)
class VAEDetector(Detector):
    r"""Flags rows that a variational autoencoder trained on normal rows finds unlikely, or images it finds atypical.

    The autoencoder is trained on the evidence lower bound of normal rows,

    $$\log p(x) \ge \mathbb{E}_{q(z \mid x)} \log p(x \mid z) - \mathrm{KL}(q(z \mid x) \| N(0, I)),$$

    and, if there are negatives $\bar x$, on $\mathrm{KL}(q(z \mid \bar x) \| N(s \mathbf{1}, I))$, which gives those a
    prior of their own. By default novelty is minus the bound, in bits per dimension; for images, where the likelihood
    has a blind spot, it is how unusual reconstruction error and latent code are, on either side (the likelihood path).

    Args:
        likelihood: Distribution of a row given its latent code: "gaussian_learned" or "gaussian" (of variance 1) for
            any rows; "bernoulli" or "quantized_gaussian" (dequantized pixels) for values in [0, 1].
        novelty_score: The score that ``novelty`` returns: a name, or an object with settings, such as
            ``LikelihoodRegret(steps=20)``; all are in ``offmap.density.vae.scores``. "auto" is "lpath" for images and
            "bpd" for other rows.
        extra_scores: Further scores to prepare in ``fit``, for ``novelty_by``.
        negatives: Rows that the encoder learns to map away from normal ones: "noise" (training rows with noise),
            "uniform" (uniform noise), "generated" (by the decoder, in adversarial training), an array of rows, the name
            of a data set, or a ``Negatives`` with settings.
        objective: "elbo", or "forward_kl", which fits the encoder by eight importance-weighted draws per row.
        latent_dim: Latent dimensions. By default 10 for grey and 100 for colour images; for other rows the number of
            principal components with 90 % of the variance, between 2 and 32.
        network: "conv" (the papers' network for grey images), "dcgan" (theirs for colour images), or "mlp" for any
            rows; "auto" uses convolutions for images of at least 16 × 16 pixels.
        hidden: Widths of the hidden layers of the "mlp": by default 256 and 128 for images, 64 for other rows.
        conv_factor: Multiplies the channels of the convolutions; increase it for more capacity.
        epochs: Passes over the training rows. By default as many as make 10,000 gradient steps for images, or 2,000 for
            other rows, for which training then stops early, with ``patience=10``.
        batch_size: Rows per gradient step.
        lr: Learning rate.
        optimizer: "adam" or "rmsprop".
        patience: Epochs without a better bound on the validation rows after which training stops and the best network
            is restored.
        validation: Share of the training rows held out for ``patience`` and for scores that compare with held-out rows,
            apart from those of ``calibration``. Below 1,000, training rows are added for the scores.
        checkpoint: File for the state of training of the first network; a killed fit continues from it.

    Attributes:
        network_: The trained autoencoder, a ``torch.nn.Module``.
        background_: The background model of the score "likelihood_ratio", or None.
        ensemble_: The further networks of the score "waic"; empty without it.
        latent_dim_: Latent dimensions of the network.
        reference_statistics_: For each score that compares with reference rows, their statistics.
        history_: The mean of each term of the objective per epoch, and "validation" with ``patience``.
        promise_: The ``Promise`` that decides, fitted on the calibration rows.
        threshold_: Rows with a novelty above it are flagged.
        calibration_novelty_: Novelty of the calibration rows, in ascending order.
        input_shape_: Shape of one row.

    Reference: Kingma and Welling, Auto-Encoding Variational Bayes, arXiv:1312.6114; Csiszárik, Benkő and Varga,
    Negative Sampling in Variational Autoencoders, arXiv:1910.02760.

    Example:
        >>> import numpy as np
        >>> X = np.random.default_rng(0).normal(size=(500, 3))
        >>> detector = VAEDetector(epochs=5, random_state=0).fit(X)
        >>> detector.predict([[0.0, 0.1, -0.2], [30.0, 30.0, 30.0]])
        array([ 1, -1])
    """

    spatial: ClassVar[bool] = True

    likelihood: LikelihoodName = "gaussian_learned"
    novelty_score: Literal["auto"] | ScoreName | Score = "auto"
    extra_scores: tuple[ScoreName | Score, ...] = ()
    negatives: np.ndarray[Any, Any] | str | Negatives | None = None
    objective: Literal["elbo", "forward_kl"] = "elbo"
    latent_dim: Count | None = None
    network: Literal["auto", "conv", "dcgan", "mlp"] = "auto"
    hidden: tuple[Count, ...] | None = None
    conv_factor: Count = 1
    epochs: Count | None = None
    batch_size: Count = 128
    lr: Positive = 1e-3
    optimizer: OptimizerName = "adam"
    patience: Count | None = None
    validation: Fraction = 0.1
    checkpoint: str | None = None

    def novelty_by(self, score: str, X: ArrayLike) -> FloatArray:
        """Novelty by another score of the same fitted model; threshold and p-values are those of ``novelty_score``.

        Args:
            score: Name of a score that needs the network only, or that ``extra_scores`` prepared.
            X: Rows.
        """
        rows = self._checked(X)
        if score not in SCORES:
            raise ValueError(f"score must be among {', '.join(map(repr, SCORES))}; got {score!r}")
        return self._scored(partial(self._novelty_by, self._scores().get(score, SCORES[score])), rows)

    def _fit(self, X: Tensor) -> None:
        self._begin(X)
        self._learn(*self._split(X, self._schedule()))

    def _fit_batches(self, sample: Tensor, batches: ParquetBatches) -> None:
        self._begin(sample)
        self._learn(sample, sample, batches)

    def _begin(self, X: Tensor) -> None:
        require_intensities(self.likelihood, X)
        self.reference_statistics_: dict[str, Statistics] = {}
        self.latent_dim_ = self.latent_dim or self._defaults.latent_dim(X)
        self._build()

    def _learn(self, rows: Tensor, held_out: Tensor, batches: ParquetBatches | None = None) -> None:
        """Trains on ``rows``; where there are ``batches``, trains on those, and ``rows`` sets the scales."""
        schedule, auxiliary = self._schedule(), self._auxiliary_rows(rows)
        checkpoint = Checkpoint.of(self, rows, held_out[: None if schedule.patience else 0], auxiliary)
        if isinstance(self.network_.prepare, Standardise):
            self.network_.prepare.fit(rows)
        rows, held_out, auxiliary = map(self.network_.prepare, (rows, held_out, auxiliary))
        draw = self._negatives.sampler(auxiliary, rows) if self._negatives else None
        training = rows if batches is None else batches.then(self.network_.prepare)
        self._train(schedule, training, held_out, draw, checkpoint)
        scores, known = self._scores().values(), rows[: None if batches is None else 0]
        self.reference_statistics_ = reference_statistics(scores, self._networks(), held_out, known)
        self._scorer = Scorer.fit(scores, self.reference_statistics_)

    def _train(
        self,
        schedule: TrainingSchedule,
        training: Tensor | ParquetBatches,
        held_out: Tensor,
        draw: Source | None,
        file: Checkpoint | None,
    ) -> None:
        self.history_ = schedule.train(self.network_, training, draw, validation=held_out, checkpoint=file)
        ratio = self._scores().get(LikelihoodRatio.name)
        mutation = ratio.mutation if isinstance(ratio, LikelihoodRatio) else 0.0
        self.history_ |= schedule.train_others(self._networks(), training, draw, held_out, mutation)

    def _schedule(self) -> TrainingSchedule:
        defaults, negatives = self._defaults, self._negatives
        shift, weight = (negatives.shift, negatives.weight) if negatives else (None, 1.0)
        return TrainingSchedule(
            objective=Objective(self.objective, shift=shift or defaults.shift, weight=weight),
            adversarial=negatives is not None and negatives.generated,
            epochs=self.epochs,
            steps=defaults.steps,
            patience=self.patience or (defaults.patience if self.epochs is None else None),
            batch_size=self.batch_size,
            lr=self.lr,
            optimizer=self.optimizer,
        )

    def _split(self, X: Tensor, schedule: TrainingSchedule) -> tuple[Tensor, Tensor]:
        """Training and held-out rows, split at random, since ``X`` may be sorted."""
        if schedule.patience is None and "held_out" not in self._required:
            return X, X[:0]
        count = min(max(1, round(self.validation * len(X))), len(X) - 1)
        order = torch.randperm(len(X))
        return X[order[count:]], X[order[:count]]

    def _auxiliary_rows(self, X: Tensor) -> Tensor:
        negatives = self._negatives
        if negatives is None:
            return X[:0]
        rows = negatives.auxiliary_rows(self.input_shape_, self.device, partial(shifted, self))
        require_intensities(self.likelihood, rows, "negatives")
        return rows

    def _build(self) -> None:
        scores = self._scores()
        for score in scores.values():
            check(score)
            self._require_images(score)
        self.network_ = self._new_network()
        self.background_ = self._new_network() if "background" in self._required else None
        waic = scores.get(WAIC.name)
        others = waic.n_networks - 1 if isinstance(waic, WAIC) else 0
        self.ensemble_ = nn.ModuleList(self._new_network() for _ in range(others))
        self._scorer = Scorer.fit(scores.values(), getattr(self, "reference_statistics_", {}))

    def _new_network(self) -> VAE:
        defaults, negatives = self._defaults, self._negatives
        network = defaults.network if self.network == "auto" else self.network
        if network != "mlp" and not defaults.images:
            raise ValueError(f'network="{network}" {_NEEDS_IMAGES}')
        return VAE(
            self.input_shape_[-1:] + self.input_shape_[:-1] if defaults.images else self.input_shape_,
            latent_dim=self.latent_dim_,
            hidden=defaults.hidden if self.hidden is None else tuple(self.hidden),
            likelihood=self.likelihood,
            network=network,
            conv_factor=self.conv_factor,
            # As the authors do: with batch normalisation adversarial training is unstable.
            spectral_norm=negatives is not None and negatives.generated,
        ).to(self.device)

    def _novelty(self, X: Tensor) -> Tensor:
        return self._novelty_by(self._main_score, X)

    def _novelty_by(self, score: Score, X: Tensor) -> Tensor:
        self._require_images(score)
        return self._scorer.novelty(score, self._networks(), self.network_.prepare(X))

    def _networks(self) -> Networks:
        others = [network for network in self.ensemble_ if isinstance(network, VAE)]
        return Networks(self.network_, self.background_, others)

    def _scores(self) -> dict[str, Score]:
        """The scores to prepare, by name; if one is given twice, the settings of the first count."""
        asked = [self._main_score, *map(_as_score, self.extra_scores)]
        return {score.name: score for score in reversed(asked)}

    @property
    def _main_score(self) -> Score:
        return _as_score(self._defaults.score if self.novelty_score == "auto" else self.novelty_score)

    @property
    def _required(self) -> set[Requirement]:
        return {part for score in self._scores().values() for part in score.requires}

    @property
    def _negatives(self) -> Negatives | None:
        return Negatives.of(self.negatives)

    @property
    def _defaults(self) -> Defaults:
        return Defaults(self.input_shape_)

    def _require_images(self, score: Score) -> None:
        if score.images_only and not self._defaults.images:
            raise ValueError(f"the score {score.name!r} {_NEEDS_IMAGES}")


def _as_score(score: str | Score) -> Score:
    return SCORES[score] if isinstance(score, str) else score


_NEEDS_IMAGES = "needs images; give image_shape, or X as (n, h, w) or (n, h, w, c)"
