"""A variational autoencoder as a detector."""

import typing
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from offmap.base import Detector
from offmap.calibration import FloatArray
from offmap.checkpoint import Checkpoint
from offmap.density.jury import Jury, survey
from offmap.density.negatives import auxiliary_rows, source_of
from offmap.density.noise import require_intensities
from offmap.density.objectives import Objective
from offmap.density.regimen import Regimen
from offmap.density.scores import SCORES, Models, Part, ScoreName, Statistics
from offmap.density.usual import Usual
from offmap.density.vae import VAE
from offmap.nets import Standardise
from offmap.parameters import Count, Fraction, Positive


@dataclass(kw_only=True, eq=False, repr=False)
class VAEDetector(Detector):
    r"""Flags rows that a variational autoencoder was not made for.

    It is trained on the evidence lower bound of normal rows,

    $$\log p(x) \ge \mathbb{E}_{q(z \mid x)} \log p(x \mid z) - \mathrm{KL}(q(z \mid x) \| N(0, I)),$$

    and, if there are negatives $\bar x$, on sending those to a prior of their own, $\mathrm{KL}(q(z \mid \bar x) \|
    N(s \mathbf{1}, I))$. The likelihood alone has a known blind spot: a model of clothes finds digits likelier than
    clothes. The default score therefore looks at many statistics of a row, and at both sides of what is normal.

    Args:
        noise: What the decoder's output means: "gaussian_learned" or "gaussian" (of width 1) for any rows; "bernoulli"
            or "quantized_gaussian" (pixels with their rounding undone) for values in [0, 1].
        score: What novelty is read from; each is documented in ``offmap.density.scores``. "auto" is "views" for images
            of 16 pixels and more, and "nearest" for other rows.
        also: Further scores to make ready while fitting, for ``novelty_by``.
        negatives: Rows to send away from the prior: "noise" (training rows with noise), "uniform" noise, "generated"
            (by the model itself, trained as two players), an array of rows, or the name of a data set.
        shift: Each coordinate s of the centre of the negatives' prior: by default 8, and 25 for colour images.
        negative_weight: Weight of the negatives in the objective.
        negative_noise: Standard deviation of the noise of the negatives "noise".
        objective: "elbo", or "forward_kl", which fits the encoder by importance-weighted draws.
        samples: Latent draws a row, of "forward_kl" in training and of scores that average.
        latent: Latent dimensions. By default 10 for images, 100 if they are in colour; for other rows as many as there
            are principal components with 90 % of the variance, from 2 to 32.
        network: "conv" (of the papers' grey images), "dcgan" (of their colour images), or "mlp" for any rows; "auto"
            takes convolutions for images of 16 pixels and more.
        hidden: Widths of the hidden layers of the "mlp": by default 256 and 128 for images, 64 for other rows.
        capacity: Multiplies the channels of the convolutions.
        spectral: Spectral norms in place of batch normalisation in the encoder of "dcgan"; for "generated" negatives.
        epochs: Passes over the training rows: by default as many as make 2,000 steps, or 10,000 for images. Rows that
            are not images then end with the network that was best on the validation rows, soon after it was.
        batch_size: Rows a step.
        lr: Step size.
        optimizer: "adam" or "rmsprop".
        patience: Epochs without a better bound on the validation rows after which training stops.
        validation: Share of the training rows that is kept aside for ``patience`` to look at and for scores that
            compare with normal rows; they are not those of ``calibration``. If they are fewer than 1,000, training
            rows join them for those scores.
        ensemble: Networks of the score "waic", the first included.
        mutation: Share of the values drawn at random in the rows that train the background model of
            "likelihood_ratio".
        regret_steps: Steps of the score "regret".
        checkpoint: File to leave the state of training in after each epoch, and to go on from after a kill; it covers
            the first network.

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

    noise: Literal["gaussian_learned", "gaussian", "bernoulli", "quantized_gaussian"] = "gaussian_learned"
    score: ScoreName = "auto"
    also: tuple[ScoreName, ...] = ()
    negatives: np.ndarray[Any, Any] | str | None = None
    shift: Positive | None = None
    negative_weight: Positive = 1.0
    negative_noise: Positive = 0.25
    objective: Literal["elbo", "forward_kl"] = "elbo"
    samples: Count = 8
    latent: Count | None = None
    network: Literal["auto", "conv", "dcgan", "mlp"] = "auto"
    hidden: tuple[Count, ...] | None = None
    capacity: Count = 1
    spectral: bool = False
    epochs: Count | None = None
    batch_size: Count = 128
    lr: Positive = 1e-3
    optimizer: Literal["adam", "rmsprop"] = "adam"
    patience: Count | None = None
    validation: Fraction = 0.1
    ensemble: Count = 5
    mutation: Fraction = 0.2
    regret_steps: Count = 50
    checkpoint: str | None = None

    def novelty_by(self, score: ScoreName, X: ArrayLike) -> FloatArray:
        """Novelty by another score of the same fitted model; threshold and p-values belong to ``score`` alone.

        Args:
            score: One that needs nothing but the network, or one that was named in ``also``.
            X: Rows.
        """
        rows = self._checked(X)
        if score not in typing.get_args(ScoreName):
            raise ValueError(f"score must be among {', '.join(map(repr, SCORES))} or 'auto'; got {score!r}")
        return self._scored(partial(self._judged, score), rows)

    def _fit(self, X: Tensor) -> None:
        require_intensities(self.noise, X)
        self.normal_: dict[str, Statistics] = {}
        self.latent_ = self.latent or self._usual.latent(X)
        self._build()
        regimen = self._regimen()
        watching = regimen.patience is not None
        training, held_out = self._split(X, watching)
        negatives = auxiliary_rows(self.negatives, self.input_shape_, self.device)
        require_intensities(self.noise, negatives, "negatives")
        checkpoint = Checkpoint.of(self, training, held_out if watching else held_out[:0], negatives)
        if isinstance(self.network_.prepare, Standardise):
            self.network_.prepare.fit(training)
        training, held_out, negatives = map(self.network_.prepare, (training, held_out, negatives))
        source = source_of(self.negatives, negatives, training, sigma=self.negative_noise)
        self.history_ = regimen.train(self.network_, training, source, watched=held_out, checkpoint=checkpoint)
        self.history_ |= regimen.train_others(self._models(), training, source, held_out)
        self.normal_ = survey(self._asked(), self._models(), held_out, training)
        self._jury = Jury.shown(self.normal_)

    def _regimen(self) -> Regimen:
        usual = self._usual
        return Regimen(
            objective=Objective(self.objective, self.samples, self.shift or usual.shift, self.negative_weight),
            mutation=self.mutation,
            generated=isinstance(self.negatives, str) and self.negatives == "generated",
            epochs=self.epochs,
            steps=usual.steps,
            patience=self.patience or (usual.patience if self.epochs is None else None),
            batch_size=self.batch_size,
            lr=self.lr,
            optimizer=self.optimizer,
        )

    def _split(self, X: Tensor, watching: bool) -> tuple[Tensor, Tensor]:
        """Rows to train on, and rows kept aside: drawn at random, for ``X`` may come sorted."""
        if not watching and "held_out" not in self._parts():
            return X, X[:0]
        count = min(max(1, round(self.validation * len(X))), len(X) - 1)
        order = torch.randperm(len(X))
        return X[order[count:]], X[order[:count]]

    def _build(self) -> None:
        for name in self._asked():
            self._require_images(name)
        if "ensemble" in self._parts() and self.ensemble < 2:
            raise ValueError(f"ensemble must be at least 2 for score 'waic'; got {self.ensemble}")
        self.network_ = self._new_network()
        self.background_ = self._new_network() if "background" in self._parts() else None
        others = self.ensemble - 1 if "ensemble" in self._parts() else 0
        self.ensemble_ = nn.ModuleList(self._new_network() for _ in range(others))
        # Full where a saved model is made anew; empty until a fit gets there.
        self._jury = Jury.shown(getattr(self, "normal_", {}))

    def _new_network(self) -> VAE:
        usual = self._usual
        network = usual.network if self.network == "auto" else self.network
        if network != "mlp" and not usual.images:
            raise ValueError(f'network="{network}" {_NEEDS_IMAGES}')
        return VAE(
            self.input_shape_[-1:] + self.input_shape_[:-1] if usual.images else self.input_shape_,
            latent=self.latent_,
            hidden=usual.hidden if self.hidden is None else tuple(self.hidden),
            noise=self.noise,
            network=network,
            capacity=self.capacity,
            spectral=self.spectral,
        ).to(self.device)

    def _novelty(self, X: Tensor) -> Tensor:
        return self._judged(self.score, X)

    def _judged(self, score: ScoreName, X: Tensor) -> Tensor:
        name = self._named(score)
        self._require_images(name)
        return self._jury.novelty(name, self._models(), self.network_.prepare(X))

    def _models(self) -> Models:
        others = [network for network in self.ensemble_ if isinstance(network, VAE)]
        return Models(self.network_, self.background_, others, self.samples, self.regret_steps)

    def _asked(self) -> list[str]:
        """The scores to make ready."""
        return [self._named(score) for score in (self.score, *self.also)]

    def _parts(self) -> set[Part]:
        """What the scores that were asked for need beside the network."""
        return {part for name in self._asked() for part in SCORES[name].needs}

    def _named(self, score: ScoreName) -> str:
        return self._usual.score if score == "auto" else score

    @property
    def _usual(self) -> Usual:
        return Usual(self.input_shape_)

    def _require_images(self, score: str) -> None:
        if SCORES[score].images_only and not self._usual.images:
            raise ValueError(f"score={score!r} {_NEEDS_IMAGES}")


_NEEDS_IMAGES = "needs images; give image_shape, or X as (n, h, w) or (n, h, w, c)"
