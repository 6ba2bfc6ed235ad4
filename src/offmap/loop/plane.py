"""Where rows lie in the plane, for a picture of them."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA

from offmap.loop.world import OpenWorld

# Rows that decide the axes; more would hardly turn them.
_MOST = 2000


class Plane:
    """Projects rows of a world onto their first two principal components.

    The axes are fitted once per version of the model, on the rows of the first call, so that a row keeps its place
    while a person names groups.

    Args:
        world: The world.

    Example:
        >>> import tempfile
        >>> from offmap.openset import AnalyticClassifier
        >>> y = np.repeat([0, 1], 30)
        >>> X = np.random.default_rng(0).normal(size=(60, 3)) + 9 * y[:, None]
        >>> classifier = AnalyticClassifier(width=20, calibration=0.5)
        >>> world = OpenWorld.create(f"{tempfile.mkdtemp()}/w", classifier=classifier)
        >>> _ = world.teach(X, y), world.observe(X[:3], ids=["a", "b", "c"])
        >>> Plane(world).places([world.state.numbers[row] for row in "abc"]).shape
        (3, 2)
        >>> world.close()
    """

    def __init__(self, world: OpenWorld) -> None:
        self._ledger = world._ledger
        self._fitted: tuple[int | None, PCA] | None = None

    def places(self, numbers: Sequence[int]) -> NDArray[np.float64]:
        """The coordinates of rows, one line per row."""
        vectors = self._ledger.memory.vectors(self._ledger.classifier, numbers)
        # One feature has no second direction: it is given an empty one.
        wide = np.pad(vectors, ((0, 0), (0, max(0, 2 - vectors.shape[1]))))
        version = self._ledger.state.version
        if self._fitted is None or self._fitted[0] != version:
            self._fitted = version, _axes(wide)
        return np.asarray(self._fitted[1].transform(wide), np.float64)


def _axes(vectors: NDArray[np.float32]) -> PCA:
    chosen = np.linspace(0, len(vectors) - 1, min(len(vectors), _MOST)).astype(int)
    sample = vectors[chosen] if len(vectors) > 1 else np.concatenate([vectors, vectors])
    return PCA(n_components=2, svd_solver="covariance_eigh").fit(sample)
