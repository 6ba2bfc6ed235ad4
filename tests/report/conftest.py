"""Sections of real and of drawn rows."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from offmap.report import Sample, Section, section_of
from tests.report.parts import Distance


@pytest.fixture(scope="module")
def digits() -> Section:
    data = load_digits()
    images, is_normal = data.data / 16, data.target < 7
    normal, novel = images[is_normal], images[~is_normal]
    detector = Distance(image_shape=(8, 8)).fit(normal[::2])
    return section_of(
        detector,
        Sample.assessed(detector, normal[1::2], labels=data.target[is_normal][1::2]),
        Sample.assessed(detector, novel, labels=data.target[~is_normal]),
        shown=5,
    )


@pytest.fixture(scope="module")
def plain() -> Section:
    rng = np.random.default_rng(0)
    detector = Distance(alpha=0.2).fit(rng.normal(size=(200, 3)))
    samples = (Sample.assessed(detector, X) for X in (rng.normal(size=(80, 3)), rng.normal(1.5, 1, size=(40, 3))))
    return section_of(detector, *samples, shown=4)
