"""What holds for every open-set classifier."""

import inspect
from typing import Any

import pytest

from offmap import openset
from offmap.estimator import OpenWorldEstimator

CLASSIFIERS = [getattr(openset, name) for name in openset.__all__]


@pytest.mark.parametrize("cls", CLASSIFIERS)
def test_the_calibrated_rule_is_the_default_and_the_papers_rule_an_option(cls: Any) -> None:
    assert cls().rule == "calibrated"
    assert cls.own_threshold is not None


@pytest.mark.parametrize("cls", CLASSIFIERS)
def test_a_method_is_final_and_at_most_four_classes_deep(cls: Any) -> None:
    assert cls.__final__
    depth = 1
    line = cls
    while line is not OpenWorldEstimator:
        line = next(base for base in line.__bases__ if issubclass(base, OpenWorldEstimator))
        assert inspect.isabstract(line) or line is OpenWorldEstimator
        depth += 1
    assert depth <= 4


@pytest.mark.parametrize("cls", CLASSIFIERS)
def test_fitted_attributes_are_documented(cls: Any) -> None:
    assert "\n    Attributes:\n        network_: " in cls.__doc__
