"""``OpenWorldEstimator``: the parameters, the encoder and the validated rows that every method shares.

What a method adds to it, a detector or a classifier, is the contract in ``base``.
"""

import os
from abc import ABC, abstractmethod
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, clone
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted
from torch import nn

from offmap import parameters, persist
from offmap.arrays import (
    Rows,
    check_fitted_rows,
    check_rows,
    holds_text,
    trial_rows,
    with_missing,
)
from offmap.calibration.contract import forget_fit
from offmap.calibration.cv import first_member
from offmap.calibration.promise import Promise
from offmap.calibration.surprise import surprise_steps
from offmap.data.module_encoder import ModuleEncoder
from offmap.data.table import TableEncoder, needs_encoding
from offmap.distributed import current
from offmap.parameters import Count, Device, Fraction
from offmap.random_state import RandomState, as_generator, seed_parts
from offmap.train import History, check_history


@dataclass(kw_only=True, eq=False, repr=False)
class OpenWorldEstimator(BaseEstimator, ABC):
    """What all methods share.

    Args:
        alpha: False-alarm rate that the threshold keeps. Lower it for fewer alarms; fewer novel rows are found then.
        calibration: Share of the rows held out from training to set the threshold and the p-values.
        confidence: Probability that the rate of this very model is at most ``alpha``, such as 0.9. By default the rate
            holds on average over models fitted like this one.
        encoder: Turns the input into feature rows first, as ``TextEncoder()`` does with texts; it is fitted too. A data
            frame that holds more than numbers gets a ``TableEncoder()`` by itself. Transformers of scikit-learn and
            torch networks are encoders too.
        image_shape: Height and width (and channels) of the image in each row of a flat ``X``.
        random_state: Seed; with one, the same data give the same model.
        device: Where torch computes, such as "cpu" or "cuda".
    """

    # Methods that see images as images, (n, c, h, w); for the others each image is one flat row.
    spatial: ClassVar[bool] = False
    # What every fitted model has: a file without it is refused.
    always_fitted: ClassVar[frozenset[str]] = frozenset({"history_", "input_shape_", "promise_"})
    # What a file does not decide for its user: where to write.
    local_parameters: ClassVar[frozenset[str]] = frozenset({"checkpoint"})

    alpha: Fraction = 0.05
    calibration: Fraction | Literal["cv"] = 0.1
    confidence: Fraction | None = None
    encoder: BaseEstimator | nn.Module | None = None
    image_shape: tuple[Count, ...] | None = None
    random_state: RandomState = None
    device: Device = "cpu"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the fitted model to one safetensors file; ``offmap.load`` reads it."""
        check_is_fitted(self, "promise_")
        persist.save(self, path)

    def _build(self) -> None:
        """Makes the networks from the parameters and the shapes that ``fit`` saw; ``load`` calls it too."""

    def _check_fitted(self) -> None:
        """Raises an error unless the fitted state can score rows; ``load`` calls it, since a file may say anything."""
        check_fitted_rows(self)
        check_history(self.history_)
        fitted = getattr(self, "encoder_", None)
        made = ModuleEncoder if isinstance(self.encoder, nn.Module) else type(self.encoder)
        # Without a given encoder there may be one for tables.
        if type(fitted) is not made and not (self.encoder is None and isinstance(fitted, TableEncoder)):
            raise ValueError("encoder_ must be the fitted encoder")
        rows = trial_rows(self)
        with torch.inference_mode():
            self._try_out(rows if self.spatial or rows.ndim == 2 else _flat(rows))

    @abstractmethod
    def _try_out(self, rows: Rows) -> None:
        """Scores a few rows and raises an error if the result is not one number per row."""

    def _row_width(self) -> int:
        """How many numbers scoring computes per row on the way, where they are many more than the row has."""
        return 0

    def _checked(self, X: Any) -> Rows:
        """Validated rows for a fitted model."""
        check_is_fitted(self, "promise_")
        return self._rows(X)

    def _encoder_for(self, X: Any) -> BaseEstimator | None:
        """The encoder to fit: the given one, or one for tables if ``X`` is a data frame of more than numbers."""
        if isinstance(self.encoder, nn.Module):
            return ModuleEncoder(module=self.encoder, device=self.device)
        return TableEncoder() if self.encoder is None and needs_encoding(X) else self.encoder

    def _encoded(self, X: Any, y: Any, train: NDArray[np.intp], rng: np.random.Generator) -> Rows:
        """Rows made by an encoder that was fitted on the training part alone: the held-out rows calibrate it too."""
        X = with_missing(X)
        self.encoder_ = clone(self._encoder_for(X))
        seed_parts(self.encoder_, rng)
        self.encoder_.fit(_safe_indexing(X, train), None if y is None else _safe_indexing(y, train))
        return self._rows(X, reset=True)

    def _rows(self, X: Any, *, reset: bool = False) -> Rows:
        """Encoded and validated rows."""
        if hasattr(self, "encoder_"):
            X = self.encoder_.transform(with_missing(X))
            X = X.toarray() if issparse(X) else X  # type: ignore[attr-defined] # every sparse matrix has it
        elif holds_text(X):
            raise ValueError("X holds text; give an encoder, such as encoder=TextEncoder(), or encode it before")
        rows = check_rows(self, X, reset=reset, image_shape=self.image_shape)
        return rows if self.spatial or rows.ndim == 2 else _flat(rows)

    def _join_members(self) -> Self:
        """Makes one promise of the members of the folds."""
        members = self.members_
        if hasattr(members[0], "encoder_"):
            self.input_shape_, self.n_features_in_ = members[0].input_shape_, members[0].n_features_in_
        rows = sum(len(member.calibration_novelty_) for member in members)
        self.promise_ = Promise(alpha=self.alpha).fit(surprise_steps(rows))
        return self

    def _start(self) -> np.random.Generator:
        """Checks the parameters and forgets the last fit."""
        parameters.check(self)
        forget_fit(self)
        if self.calibration == "cv" and self.confidence is not None:
            raise ValueError('confidence needs rows held out from one model; give calibration as a share, not "cv"')
        if not current().alone and not isinstance(self.random_state, Integral):
            raise ValueError("random_state must be an integer on several processes, which must draw the same numbers")
        self.history_: History = {}
        return as_generator(self.random_state)


def encoder_of(model: Any) -> Any:
    """The fitted encoder of a model, or of the first of its folds; None if it has none."""
    return getattr(first_member(model), "encoder_", None)


def _flat(images: Rows) -> Rows:
    """One flat row per image, with intensities in [0, 1]."""
    flat = images.reshape(len(images), -1)
    return flat / np.float32(255) if images.dtype == np.uint8 else flat
