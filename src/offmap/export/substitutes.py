"""Functions of torch that ONNX has no operator for, replaced by ones of the same values while a model is traced."""

from typing import Any, Self

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from offmap.export.lookup import places


class Substitutes(TorchFunctionMode):
    """Replaces ``searchsorted``, ``cdist`` and ``special.ndtri`` of torch inside the block, and repeats random draws.

    The scores that draw latent noise draw the same for every row. The first block with an object notes the draws, and
    later ones repeat them: in a graph they must be constants.

    Example:
        >>> with Substitutes():
        ...     torch.searchsorted(torch.tensor([1.0, 2.0]), torch.tensor([1.5]))
        tensor([1])
    """

    def __init__(self) -> None:
        super().__init__()
        self._draws: list[Tensor] = []
        self._repeated = 0

    def again(self) -> Self:
        """The same object for another block, in which draws are repeated from the first on."""
        self._repeated = 0
        return self

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Calls the replacement of ``func``, or ``func`` itself."""
        if func is torch.randn:
            return self._drawn(*args, **(kwargs or {}))
        return _REPLACED.get(func, func)(*args, **(kwargs or {}))

    def _drawn(self, *args: Any, **kwargs: Any) -> Tensor:
        if self._repeated == len(self._draws):
            self._draws.append(torch.randn(*args, **kwargs))
        self._repeated += 1
        return self._draws[self._repeated - 1]


def _searchsorted(values: Tensor, wanted: Tensor, *, right: bool = False) -> Tensor:
    return places(values, wanted, right=right)


def _cdist(rows: Tensor, others: Tensor, p: float = 2.0, compute_mode: str | None = None) -> Tensor:
    """Distances from differences where torch is told so, and otherwise by a product, which needs less memory."""
    if p != 2:
        raise ValueError(f"distances of the norm {p:g} have no substitute")
    if compute_mode == "donot_use_mm_for_euclid_dist":
        return (rows[:, None] - others).square().sum(dim=2).sqrt()
    return squared_distances(rows.double(), others.double()).sqrt().to(rows.dtype)


def squared_distances(rows: Tensor, others: Tensor) -> Tensor:
    r"""$\|x\|^2 + \|r\|^2 - 2 x^T r$ of every row $x$ and every other row $r$."""
    lengths = rows.square().sum(dim=1, keepdim=True) + others.square().sum(dim=1)
    return (lengths - 2 * rows @ others.T).clamp(min=0)


def normal_quantile(p: Tensor) -> Tensor:
    r"""$\Phi^{-1}(p)$ to 16 digits, by rational functions.

    Reference: Wichura, Algorithm AS 241: The Percentage Points of the Normal Distribution, 1988.

    Example:
        >>> normal_quantile(torch.tensor([0.5, 0.975, 1e-9], dtype=torch.float64))
        tensor([ 0.0000,  1.9600, -5.9978], dtype=torch.float64)
    """
    centred = p - 0.5
    near = 0.180625 - centred * centred
    middle = centred * _ratio(near, _MIDDLE)
    r = (-torch.minimum(p, 1 - p).log()).sqrt()
    tail = torch.where(r <= 5, _ratio(r - 1.6, _TAIL), _ratio(r - 5, _FAR_TAIL))
    return torch.where(centred.abs() <= 0.425, middle, torch.where(centred < 0, -tail, tail))


def _ratio(x: Tensor, coefficients: tuple[tuple[float, ...], tuple[float, ...]]) -> Tensor:
    above, below = (_polynomial(x, each) for each in coefficients)
    return above / below


def _polynomial(x: Tensor, coefficients: tuple[float, ...]) -> Tensor:
    """The polynomial with these coefficients, the constant one first."""
    value = torch.full_like(x, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        value = value * x + coefficient
    return value


# Numerators and denominators of the algorithm, for the middle and the tails.
_MIDDLE = (
    (
        *(3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3, 1.3731693765509461125e4),
        *(4.5921953931549871457e4, 6.7265770927008700853e4, 3.3430575583588128105e4, 2.5090809287301226727e3),
    ),
    (
        *(1.0, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3),
        *(2.1213794301586595867e4, 3.9307895800092710610e4, 2.8729085735721942674e4, 5.2264952788528545610e3),
    ),
)
_TAIL = (
    (
        *(1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0, 3.64784832476320460504e0),
        *(1.27045825245236838258e0, 2.41780725177450611770e-1, 2.27238449892691845833e-2, 7.74545014278341407640e-4),
    ),
    (
        *(1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1),
        *(1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4, 1.05075007164441684324e-9),
    ),
)
_FAR_TAIL = (
    (
        *(6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0, 2.96560571828504891230e-1),
        *(2.65321895265761230930e-2, 1.24266094738807843860e-3, 2.71155556874348757815e-5, 2.01033439929228813265e-7),
    ),
    (
        *(1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2),
        *(7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7, 2.04426310338993978564e-15),
    ),
)
_REPLACED = {
    torch.searchsorted: _searchsorted,
    torch.cdist: _cdist,
    torch.special.ndtri: normal_quantile,
}
