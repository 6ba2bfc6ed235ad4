"""A variational autoencoder as a detector."""

import math
import typing
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn
from torch.optim import Adam, Optimizer, RMSprop

from offmap.arrays import in_chunks
from offmap.base import Detector
from offmap.calibration import FloatArray
from offmap.checkpoint import Checkpoint
from offmap.density.negatives import MADE_UP, Auxiliary, Mutation, Noisy, Source, Uniform, auxiliary_rows
from offmap.density.noise import OF_INTENSITIES
from offmap.density.objectives import Objective
from offmap.density.players import Made, one_player, two_players
from offmap.density.scores import SCORES, Judge, Models, Part, Score, Statistics
from offmap.density.vae import VAE, Network
from offmap.nets import Standardise
from offmap.parameters import Count, Fraction, Positive
from offmap.train import Batches, History, train

ScoreName = Literal[
    "auto",
    "bpd",
    "elbo",
    "kl",
    "importance",
    "typicality",
    "lpath",
    "views",
    "nearest",
    "complexity",
    "likelihood_ratio",
    "waic",
    "regret",
]


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
        image_shape: Height and width (and channels) of the image in each row of a flat ``X``.
        epochs: Passes over the training rows: by default as many as make 2,000 steps, or 10,000 for images. Rows that
            are not images then end with the network that was best on the validation rows, soon after it was.
        batch_size: Rows a step.
        lr: Step size.
        optimizer: "adam" or "rmsprop".
        patience: Epochs without a better bound on the validation rows after which training stops.
        validation: Share of the training rows that is kept aside for ``patience`` to look at and for scores that
            compare with normal rows; they are not those of ``calibration``.
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
    image_shape: tuple[Count, ...] | None = None
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
        rows = self._enter(X)
        if score not in typing.get_args(ScoreName):
            raise ValueError(f"score must be among {', '.join(map(repr, SCORES))} or 'auto'; got {score!r}")
        name = self._named(score)
        (novelty,) = in_chunks(lambda chunk: (self._judged(name, chunk),), rows, self.device)
        return np.nan_to_num(novelty.astype(np.float64), nan=np.inf, posinf=np.inf, neginf=-np.inf)

    def _novelty(self, X: Tensor) -> Tensor:
        return self._judged(self._named(self.score), X)

    def _judged(self, name: str, X: Tensor) -> Tensor:
        self._require_images(name)
        self._require_ready(name)
        score = SCORES[name]
        judge = self._judges.get(name) or score.judge(np.empty((0, 1)))
        return judge(score.statistics(self._models(), self.network_.prepare(X)))

    def _models(self) -> Models:
        return Models(self.network_, self.background_, self._others(), self.samples, self.regret_steps)

    def _others(self) -> list[VAE]:
        """The ensemble's networks but the first."""
        return [network for network in self.ensemble_ if isinstance(network, VAE)]

    def _build(self) -> None:
        for name in self._asked():
            self._require_images(name)
        self.network_ = self._new_network()
        self.background_ = self._new_network() if "background" in self._parts() else None
        others = self.ensemble - 1 if "ensemble" in self._parts() else 0
        self.ensemble_ = nn.ModuleList(self._new_network() for _ in range(others))
        # Full where a saved model is made anew; empty until a fit gets there.
        self._judges = self._make_judges(getattr(self, "normal_", {}))

    def _parts(self) -> set[Part]:
        """What the scores that were asked for need beside the network."""
        return {part for name in self._asked() for part in SCORES[name].needs}

    def _asked(self) -> list[str]:
        """The scores to make ready."""
        return [self._named(score) for score in (self.score, *self.also)]

    def _named(self, score: ScoreName) -> str:
        """What "auto" stands for: small images and other rows have no texture to view."""
        if score != "auto":
            return score
        return "views" if self._textured() else "nearest"

    def _textured(self) -> bool:
        return len(self.input_shape_) == 3 and min(self.input_shape_[:2]) >= _SMALLEST_WITH_TEXTURE

    def _new_network(self) -> VAE:
        images = len(self.input_shape_) == 3
        return VAE(
            self.input_shape_[-1:] + self.input_shape_[:-1] if images else self.input_shape_,
            latent=self.latent_,
            hidden=tuple(self.hidden) if self.hidden is not None else (256, 128) if images else (64,),
            noise=self.noise,
            network=self._kind_of_network(images),
            capacity=self.capacity,
            spectral=self.spectral,
        ).to(self.device)

    def _kind_of_network(self, images: bool) -> Network:
        if self.network == "auto":
            return ("dcgan" if self._colour() else "conv") if self._textured() else "mlp"
        if self.network != "mlp" and not images:
            given = f'network="{self.network}"'
            raise ValueError(f"{given} needs images; give image_shape, or X as (n, h, w) or (n, h, w, c)")
        return self.network

    def _colour(self) -> bool:
        return len(self.input_shape_) == 3 and self.input_shape_[-1] > 1

    def _fit(self, X: Tensor) -> None:
        self._require_intensities(X)
        self.normal_: dict[str, Statistics] = {}
        self.latent_ = self.latent or self._usual_latent(X)
        self._build()
        training, held_out = self._split(X)
        negatives = self._negative_rows(X)
        watching = self._patience() is not None and len(held_out) > 0
        checkpoint = Checkpoint.of(self, training, held_out if watching else held_out[:0], negatives)
        if isinstance(self.network_.prepare, Standardise):
            self.network_.prepare.fit(training)
        training, held_out, negatives = (self.network_.prepare(rows) for rows in (training, held_out, negatives))
        source = self._source(training, negatives)
        validate = (lambda: self._mean_bound(held_out)) if watching else None
        self.history_ = self._train(self.network_, training, source, validate=validate, checkpoint=checkpoint)
        self._train_others(training, source)
        self.normal_ = self._describe(held_out, training)
        self._judges = self._make_judges(self.normal_)

    def _split(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Rows to train on, and rows kept aside: drawn at random, for ``X`` may come sorted."""
        if self._patience() is None and "held_out" not in self._parts():
            return X, X[:0]
        count = min(max(1, round(self.validation * len(X))), len(X) - 1)
        order = torch.randperm(len(X))
        return X[order[count:]], X[order[:count]]

    def _often_enough(self, training: Tensor) -> Tensor:
        """By default an epoch of few rows goes over them several times: a look at the bound costs as much as a step."""
        if self.epochs is not None or training.ndim > 2:
            return training
        return training.repeat(math.ceil(_FEWEST_BATCHES * self.batch_size / len(training)), 1)

    def _patience(self) -> int | None:
        """Epochs to wait for a better bound: a network soon knows a few rows of features by heart."""
        by_itself = self.epochs is None and len(self.input_shape_) == 1
        return self.patience or (_USUAL_PATIENCE if by_itself else None)

    def _negative_rows(self, X: Tensor) -> Tensor:
        if self.negatives is None or self._made_up():
            return X[:0]
        rows = auxiliary_rows(self.negatives, self.input_shape_, self.device)
        self._require_intensities(rows, "negatives")
        return rows

    def _made_up(self) -> bool:
        return isinstance(self.negatives, str) and self.negatives in MADE_UP

    def _source(self, training: Tensor, negatives: Tensor) -> Source | None:
        if len(negatives):
            return Auxiliary(negatives)
        made_up: dict[str, Source] = {"noise": Noisy(self.negative_noise), "uniform": Uniform.like(training)}
        return made_up.get(str(self.negatives))

    def _train(
        self,
        network: VAE,
        training: Tensor,
        source: Source | None = None,
        *,
        mutate: Source | None = None,
        validate: Callable[[], float] | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> History:
        step, optimizers = self._step(network, source, mutate)
        rows = self._often_enough(training)
        return train(
            step,
            Batches((rows,), self.batch_size),
            epochs=self.epochs or self._usual_epochs(len(rows)),
            state={"network": network, **optimizers},
            validate=validate,
            patience=None if validate is None else self._patience(),
            checkpoint=checkpoint,
            label="VAE",
        )

    def _step(self, network: VAE, source: Source | None, mutate: Source | None) -> Made:
        """What is done with a batch; the background model is no player, whatever the negatives are."""
        shift = self.shift or (25.0 if self._colour() else 8.0)
        objective = Objective(self.objective, self.samples, shift, self.negative_weight)
        make = partial(_OPTIMIZERS[self.optimizer], lr=self.lr)
        if mutate is None and isinstance(self.negatives, str) and self.negatives == "generated":
            return two_players(network, objective, make)
        return one_player(network, objective, make, source=source, mutate=mutate)

    def _train_others(self, training: Tensor, source: Source | None) -> None:
        """The networks that only some scores ask for."""
        others = {f"network {place}": network for place, network in enumerate(self._others(), start=2)}
        histories = {name: self._train(network, training, source) for name, network in others.items()}
        if self.background_ is not None:
            mutate = Mutation(Uniform.like(training), self.mutation)
            histories["background"] = self._train(self.background_, training, mutate=mutate)
        for name, history in histories.items():
            self.history_ |= {f"{name} {term}": values for term, values in history.items()}

    def _describe(self, held_out: Tensor, training: Tensor) -> dict[str, Statistics]:
        """What each score that compares with normal rows sees in them."""
        # Too few kept aside are joined by training rows: some that are too familiar are better than none.
        aside = torch.cat([held_out, training[: max(_ENOUGH - len(held_out), 0)]])
        known = torch.cat([held_out, training])
        known = known[torch.randperm(len(known))[:_MOST_COMPARED]]
        rows = {"held_out": aside[:_MOST_ASIDE], "training": known}

        def seen(score: Score, X: Tensor) -> Statistics:
            parts = [score.statistics(self._models(), some) for some in X.split(256)]
            return torch.cat(parts).double().cpu().numpy()

        with torch.inference_mode():
            asked = {name: SCORES[name] for name in self._asked()}
            return {n: seen(score, rows[part]) for n, score in asked.items() for part in score.needs & rows.keys()}

    def _make_judges(self, normal: dict[str, Statistics]) -> dict[str, Judge]:
        return {name: SCORES[name].judge(statistics) for name, statistics in normal.items()}

    def _usual_epochs(self, rows: int) -> int:
        steps = _IMAGE_STEPS if len(self.input_shape_) == 3 else _ROW_STEPS
        return math.ceil(steps / math.ceil(rows / self.batch_size))

    def _usual_latent(self, X: Tensor) -> int:
        if X.ndim == 4:
            return 100 if self._colour() else 10
        correlations = torch.atleast_2d(X.double().T.corrcoef()).nan_to_num()
        variances = torch.linalg.eigvalsh(correlations).clamp(min=0)
        shares = variances.flip(0).cumsum(0) / variances.sum().clamp(min=1e-12)
        return int((shares < 0.9).sum().clamp(1, 31)) + 1

    def _mean_bound(self, X: Tensor) -> float:
        parts = [torch.stack(self.network_.bound(rows, self.network_.draw)).sum(0) for rows in X.split(1024)]
        return float(torch.cat(parts).mean())

    def _require_intensities(self, X: Tensor, argument: str = "X") -> None:
        if self.noise in OF_INTENSITIES and not (X.min() >= 0 and X.max() <= 1):
            advice = 'use noise="gaussian_learned" or rescale them'
            raise ValueError(f'noise="{self.noise}" needs values of {argument} in [0, 1]; {advice}')

    def _require_ready(self, score: str) -> None:
        there = {"held_out": score in self._judges, "training": score in self._judges}
        there |= {"background": self.background_ is not None, "ensemble": len(self.ensemble_) > 0}
        if not all(there[part] for part in SCORES[score].needs):
            raise ValueError(f"score {score!r} needs to be made ready while fitting: fit with also=({score!r},)")

    def _require_images(self, score: str) -> None:
        if SCORES[score].images_only and len(self.input_shape_) != 3:
            raise ValueError(f"score={score!r} needs images; give image_shape, or X as (n, h, w) or (n, h, w, c)")


# Smaller images have no parts to share weights over, and no texture: they are better off as plain rows.
_SMALLEST_WITH_TEXTURE = 16
_ROW_STEPS, _IMAGE_STEPS = 2_000, 10_000
# Rows kept aside that are enough to compare with, and the most that are; and the most training rows.
_ENOUGH, _MOST_ASIDE, _MOST_COMPARED = 1_000, 2_000, 10_000
_FEWEST_BATCHES, _USUAL_PATIENCE = 20, 10
_OPTIMIZERS: dict[str, Callable[..., Optimizer]] = {"adam": Adam, "rmsprop": RMSprop}
