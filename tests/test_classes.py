"""What holds for the class of every public method: it is final, not deep, and documents what it fits."""

import ast
import inspect
import re
from typing import Any

import numpy as np
import pytest

from offmap.estimator import OpenWorldEstimator
from offmap.parameters import hints
from tests.estimators import PUBLIC, brief

X, Y = np.random.default_rng(0).normal(size=(150, 4)), np.arange(150) % 3
# scikit-learn sets and documents it.
OF_SCIKIT_LEARN = {"n_features_in_"}


def line_of(cls: type) -> list[type]:
    """The class and its ancestors up to ``OpenWorldEstimator``."""
    line = [cls]
    while line[-1] is not OpenWorldEstimator:
        line.append(next(base for base in line[-1].__bases__ if issubclass(base, OpenWorldEstimator)))
    return line


@pytest.mark.parametrize("cls", PUBLIC)
def test_a_method_is_final_and_at_most_four_classes_deep(cls: Any) -> None:
    line = line_of(cls)
    assert cls.__final__
    assert len(line) <= 4
    assert all(inspect.isabstract(between) for between in line[1:-1])


@pytest.mark.parametrize("cls", PUBLIC)
def test_every_fitted_attribute_is_documented_and_every_documented_one_is_there(cls: Any) -> None:
    model = brief(cls).fit(X, Y)
    fitted = {name for name in vars(model) if name.endswith("_") and not name.startswith("_")}
    documented = set().union(*map(attributes_of, line_of(cls)))
    assert fitted - documented - OF_SCIKIT_LEARN == set()
    assert {name for name in documented if not hasattr(model, name)} == set()


def attributes_of(cls: type) -> set[str]:
    section = inspect.cleandoc(cls.__doc__ or "").partition("\nAttributes:\n")[2].partition("\n\n")[0]
    return set(re.findall(r"^    (\w+_): ", section, flags=re.MULTILINE))


@pytest.mark.parametrize("cls", PUBLIC)
def test_options_are_written_with_underscores(cls: Any) -> None:
    """As parameters are, so that nobody has to remember which of the two it was."""
    values = re.findall(r"'([^']*)'", " ".join(re.findall(r"Literal\[([^]]*)\]", str(hints(cls)))))
    assert all(re.fullmatch(r"[a-z0-9]+(_[a-z0-9]+)*", value) for value in values), values


@pytest.mark.parametrize("cls", PUBLIC)
def test_no_method_exists_only_to_raise(cls: Any) -> None:
    for name, method in inspect.getmembers(cls, inspect.isfunction):
        if method.__module__.startswith("offmap.") and name != "__init__":  # which the dataclass writes
            (tree,) = ast.parse(inspect.cleandoc("\n" + inspect.getsource(method))).body
            statements = [part for part in tree.body if not isinstance(part, ast.Expr)]  # type: ignore[attr-defined]
            assert not (statements and isinstance(statements[0], ast.Raise)), f"{cls.__name__}.{name}"
