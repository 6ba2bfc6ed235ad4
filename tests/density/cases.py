"""Rows, images and small settings for the tests of the autoencoder."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
FEATURES = np.random.default_rng(0).normal([5.0, -200.0, 0.0], [1.0, 30.0, 1e-3], size=(300, 3))
IMAGES = np.random.default_rng(0).random((240, 8, 6, 2))
SMALL: dict[str, Any] = {"epochs": 2, "hidden": (16,), "latent_dim": 3, "random_state": 0}
