"""Means and variances of the features, class by class."""

import torch
from torch import Tensor


def class_means(X: Tensor, y: Tensor, classes: int = 0) -> Tensor:
    """Returns the mean row of each class; zeros for a class without rows.

    Args:
        X: Rows.
        y: The class of each row, as 0, 1, …
        classes: Number of classes, if the last ones may have no rows.

    Example:
        >>> class_means(torch.tensor([[1.0], [3.0], [5.0]]), torch.tensor([0, 0, 1]))
        tensor([[2.],
                [5.]])
    """
    counts = torch.bincount(y, minlength=classes).clamp_min(1)[:, None]
    return X.new_zeros(len(counts), X.shape[1]).index_add_(0, y, X) / counts


def class_variance(X: Tensor, y: Tensor, classes: int) -> Tensor:
    """Returns the variance of each feature within each class."""
    return class_means((X - class_means(X, y, classes)[y]).square(), y, classes)
