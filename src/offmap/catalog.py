"""The public methods, read from each family's ``__all__``: the only registry there is."""

import dataclasses
import importlib
import inspect
import re
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

FAMILIES = ("openset", "density", "collaborative")


@dataclass(frozen=True)
class Method:
    """A public estimator: what the command line calls it, its family, its class and what it does."""

    name: str
    family: str
    cls: Any

    @property
    def summary(self) -> str:
        """The first sentence of its docstring."""
        return (inspect.getdoc(self.cls) or "").partition("\n")[0]

    def parameters(self) -> list[dict[str, Any]]:
        """Name, default and meaning of each parameter, its own first."""
        fields = dataclasses.fields(self.cls)
        own = [field for field in fields if field.name not in _SHARED]
        about = _documented(self.cls)
        return [
            {"parameter": field.name, "default": repr(field.default), "meaning": about.get(field.name, "")}
            for field in (*own, *(field for field in fields if field.name in _SHARED))
        ]


def methods() -> list[Method]:
    """Every public estimator, family by family.

    Example:
        >>> [method.name for method in methods() if method.family == "density"]
        ['nearestneighbor', 'texture', 'vae']
    """
    return [
        Method(_short(name), family, getattr(importlib.import_module(f"offmap.{family}"), name))
        for family in FAMILIES
        for name in importlib.import_module(f"offmap.{family}").__all__
        if name.endswith(_KINDS)
    ]


def method(name: str) -> Method:
    """The method called ``name`` on the command line."""
    known = {method.name: method for method in methods()}
    if name not in known:
        guess = get_close_matches(name, known, n=1)
        hint = f"did you mean {guess[0]!r}?" if guess else f"known methods: {', '.join(known)}"
        raise ValueError(f"there is no method {name!r}; {hint}")
    return known[name]


def public_class(path: str) -> Any | None:
    """The estimator at ``offmap.<package>.<Class>`` if it is public; nothing else is ever looked up.

    Example:
        >>> public_class("offmap.sampling.RAS").__name__
        'RAS'
    """
    package, _, name = path.rpartition(".")
    if package not in _PACKAGES:
        return None
    module = importlib.import_module(package)
    found = getattr(module, name) if name in module.__all__ else None
    return found if inspect.isclass(found) and hasattr(found, "get_params") else None


def public_path(cls: type) -> str:
    """The inverse of ``public_class``."""
    return f"{cls.__module__.rpartition('.')[0]}.{cls.__name__}"


def _documented(cls: type) -> dict[str, str]:
    """What the ``Args`` of a class and its bases say of each parameter."""
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        arguments = inspect.cleandoc(base.__doc__ or "").partition("\nArgs:\n")[2].partition("\n\n")[0]
        for entry in re.split(r"\n    (?=\w)", "\n" + arguments)[1:]:
            name, _, text = entry.partition(": ")
            found[name] = " ".join(text.split())
    return found


_SHARED = ("alpha", "calibration", "encoder", "random_state", "device", "rule", "unknown_label")
_KINDS = ("Detector", "Classifier")
# Where estimators are that can be saved, and what is saved with them.
_PACKAGES = tuple(
    f"offmap.{package}"
    for package in (*FAMILIES, "data", "density.vae", "density.vae.scores", "sampling", "sampling.rl")
)


def _short(name: str) -> str:
    for kind in _KINDS:
        name = name.removesuffix(kind)
    return name.lower()
