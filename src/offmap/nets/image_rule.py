"""Decides from the shape of a row whether it is an image, and whether it is large enough for convolutions."""

# Images with a shorter side than this are treated as plain features.
SMALLEST_SIDE = 16


def is_image(shape: tuple[int, ...]) -> bool:
    """Whether rows of this shape are images: ``(h, w, c)``, or ``(c, h, w)``, and not ``(d,)``."""
    return len(shape) == 3


def is_large_image(shape: tuple[int, ...]) -> bool:
    """Whether rows of shape ``(h, w, c)`` are images with both sides of 16 pixels or more.

    ``network="auto"`` takes convolutions for these; smaller images have no parts to share weights over.

    Example:
        >>> is_large_image((28, 28, 1)), is_large_image((8, 8, 1)), is_large_image((784,))
        (True, False, False)
    """
    return is_image(shape) and min(shape[:2]) >= SMALLEST_SIDE
