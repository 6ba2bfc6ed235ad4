"""The public methods, read from each family's ``__all__``: the only registry there is. ``load`` finds classes in it."""

import dataclasses
import inspect
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from types import ModuleType
from typing import Any

from offmap import persist
from offmap.foreign_parts import foreign_class

FAMILIES = ("openset", "density", "collaborative")
# Where estimators are that can be saved, and the parts that are saved with them.
_PARTS = ("calibration", "data", "density.vae", "density.vae.scores", "sampling", "sampling.rl", "scores")
_PACKAGES = frozenset(f"offmap.{package}" for package in (*FAMILIES, *_PARTS))
_KINDS = ("Detector", "Classifier")
_SHARED = (
    *("alpha", "calibration", "folds", "confidence", "by_class", "contamination", "rule", "unknown_label"),
    *("encoder", "image_shape", "random_state", "device"),
)


def load(
    path: str | os.PathLike[str], device: str | None = None, *, model: Any = None, trusted: Sequence[str] = ()
) -> Any:
    """Restores a saved model, or raises a ``ModelFileError`` that says why it cannot.

    Args:
        path: The file.
        device: Where torch computes, if not where the model was fitted.
        model: The model of another library that ``Calibrated`` or ``Guarded`` was saved without; another model than
            the one that was saved is refused. With ``calibration="cv"``, the list of the models of all folds.
        trusted: What the file may use beyond itself and Offmap: names or folders of text models, import paths of
            classes. The file is refused if it needs another.

    Example:
        >>> import tempfile, numpy as np, offmap
        >>> from offmap.openset import MSPClassifier
        >>> X, y = np.random.default_rng(0).normal(size=(400, 2)), np.arange(400) % 2
        >>> classifier = MSPClassifier(epochs=1, random_state=0).fit(X, y)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     classifier.save(f"{folder}/model.safetensors")
        ...     offmap.load(f"{folder}/model.safetensors")
        MSPClassifier(epochs=1, random_state=0)
    """
    consent = persist.Consent(lambda name: public_class(name) or foreign_class(name, trusted), device, tuple(trusted))
    return persist.restore(path, consent, model)


@dataclass(frozen=True)
class Method:
    """A public estimator: its name on the command line, its family and its class."""

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
        shared = sorted((field for field in fields if field.name in _SHARED), key=lambda each: _SHARED.index(each.name))
        about = _documented(self.cls)
        return [
            {"parameter": field.name, "default": repr(field.default), "meaning": about.get(field.name, "")}
            for field in (*own, *shared)
        ]


def methods() -> list[Method]:
    """Every public estimator, family by family.

    Example:
        >>> [method.name for method in methods() if method.family == "openset"][:3]
        ['adb', 'ans', 'analytic']
    """
    found = [
        Method(_short(name), family, getattr(_package(family), name))
        for family in FAMILIES
        for name in _package(family).__all__
        if name.endswith(_KINDS)
    ]
    require_distinct(found)
    return found


def require_distinct(found: list[Method]) -> None:
    """Raises a ``ValueError`` if the command line would call two methods by one name."""
    seen: dict[str, Method] = {}
    for method in found:
        if method.name in seen:
            other = seen[method.name].cls.__name__
            raise ValueError(f"{other} and {method.cls.__name__} are both called {method.name!r}; rename one")
        seen[method.name] = method


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
        >>> public_class("offmap.sampling.RAS").__name__, public_class("os.system")
        ('RAS', None)
    """
    package, _, name = path.rpartition(".")
    if package not in _PACKAGES:
        return None
    module = _package(package.removeprefix("offmap."))
    found = getattr(module, name) if name in module.__all__ else None
    return found if inspect.isclass(found) and hasattr(found, "get_params") else None


def _package(name: str) -> ModuleType:
    """The package that holds public estimators under that name; only the one that is asked for is imported."""
    match name:
        case "openset":
            from offmap import openset

            return openset
        case "density":
            from offmap import density

            return density
        case "collaborative":
            from offmap import collaborative

            return collaborative
        case _:
            return _package_of_parts(name)


def _package_of_parts(name: str) -> ModuleType:
    """The package whose estimators are saved as parts of others, or are no methods of the command line."""
    match name:
        case "calibration":
            from offmap import calibration

            return calibration
        case "data":
            from offmap import data

            return data
        case "density.vae":
            from offmap.density import vae

            return vae
        case "density.vae.scores":
            from offmap.density.vae import scores as vae_scores

            return vae_scores
        case "sampling":
            from offmap import sampling

            return sampling
        case "sampling.rl":
            from offmap.sampling import rl

            return rl
        case "scores":
            from offmap import scores

            return scores
        case _:
            raise ValueError(f"no package {name!r} holds public estimators")


def _documented(cls: type) -> dict[str, str]:
    """What the ``Args`` of a class and its bases say of each parameter."""
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        arguments = inspect.cleandoc(base.__doc__ or "").partition("\nArgs:\n")[2].partition("\n\n")[0]
        for entry in re.split(r"\n    (?=\w)", "\n" + arguments)[1:]:
            name, _, text = entry.partition(": ")
            found[name] = " ".join(text.split())
    return found


def _short(name: str) -> str:
    """The words of a class name in lower case, joined by hyphens, without its kind.

    Example:
        >>> _short("NearestNeighborDetector"), _short("ANSClassifier")
        ('nearest-neighbor', 'ans')
    """
    for kind in _KINDS:
        name = name.removesuffix(kind)
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name).lower()
