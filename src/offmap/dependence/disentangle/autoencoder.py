"""The plain autoencoder: nothing keeps the codes apart."""

from dataclasses import dataclass

from offmap.dependence.disentangle.base import Disentangler


@dataclass(kw_only=True, eq=False, repr=False)
class AEDisentangler(Disentangler):
    """An autoencoder whose digit and colour codes are taught, and whose style code may say all of it once more.

    Example:
        >>> from offmap.dependence.disentangle import bundled_digits
        >>> digits = bundled_digits(count=64)
        >>> model = AEDisentangler(epochs=1, channels=4, random_state=0).fit(digits)
        >>> model.decode(model.encode(digits.images)).shape
        torch.Size([64, 3, 32, 32])
    """
