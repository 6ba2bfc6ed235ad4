"""The columns of the table that a model takes from MLflow, and the rows and entities in them."""

from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd

from offmap.collaborative.base import EntityDetector
from offmap.data import TableEncoder, TextEncoder
from offmap.estimator import encoder_of


class Columns(NamedTuple):
    """Which columns of a table a model reads.

    Args:
        text: Column of the text; None unless the model reads texts.
        features: Columns of the features; None if they have no names, in order.
        entity: Column of the entity; None unless the model knows entities.
        mixed: Whether the features may hold more than numbers.

    Example:
        >>> from offmap.density import MahalanobisDetector
        >>> X = pd.DataFrame(np.random.default_rng(0).normal(size=(99, 2)), columns=["paid", "lent"])
        >>> Columns.of(MahalanobisDetector(calibration=0.3, random_state=0).fit(X)).features
        ['paid', 'lent']
    """

    text: str | None = None
    features: list[str] | None = None
    entity: str | None = None
    mixed: bool = False

    @classmethod
    def of(cls, model: Any) -> Self:
        """The columns of a fitted model, by the names of its training data where it had any."""
        roles, encoder = getattr(model, "roles_", {}), encoder_of(model)
        entity = (roles.get("entity") or "entity") if isinstance(model, EntityDetector) else None
        if isinstance(encoder, TextEncoder):
            return cls(text=roles.get("text") or "text", entity=entity)
        if isinstance(encoder, TableEncoder):
            return cls(features=list(encoder.columns_), entity=entity, mixed=True)
        names = getattr(model, "feature_names_in_", None)
        if names is None and entity is not None:
            names = [f"x{place}" for place in range(model.n_features_in_)]
        return cls(features=None if names is None else [str(name) for name in names], entity=entity)

    def rows(self, model: Any, given: Any) -> Any:
        """The rows for a model, out of a table or an array."""
        if self.text is not None:
            texts = given[self.text] if isinstance(given, pd.DataFrame) and self.text in given else given
            return np.asarray(texts).ravel().tolist()
        if self.features is None or not isinstance(given, pd.DataFrame):
            return given.to_numpy() if isinstance(given, pd.DataFrame) else np.asarray(given)
        found = given.reindex(columns=self.features) if self.mixed else given[self.features]
        return found if hasattr(model, "feature_names_in_") or self.mixed else found.to_numpy()
