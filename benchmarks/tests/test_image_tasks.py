"""Tasks made of classes: all choices of k, one task an image, and what counts as nominal."""

from math import comb

import numpy as np
import pytest

from offmap_bench.image_tasks import Images, active_classes, exposed_tasks


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5])
def test_every_choice_of_classes_is_a_task(k: int) -> None:
    active = active_classes(k)
    assert active.shape == (comb(10, k), 10)
    assert (active.sum(axis=1) == k).all()
    assert len(np.unique(active, axis=0)) == len(active)


def test_an_image_goes_to_one_of_the_tasks_its_class_is_active_in() -> None:
    rng = np.random.default_rng(0)
    y, active = rng.integers(10, size=4500), active_classes(2)
    tasks = exposed_tasks(y, active, rng)
    assert active[tasks, y].all()
    counts = np.bincount(tasks, minlength=45)
    assert counts.min() > 50
    assert counts.max() < 160


def test_images_of_active_classes_are_nominal() -> None:
    y = np.repeat(np.arange(10), 3)
    data = Images(np.zeros((0, 32, 32), np.uint8), y[:0], np.zeros((30, 32, 32), np.uint8), y)
    active = active_classes(3)
    truth = active[:, y].T.astype(float)
    assert data.auroc(truth, active) == 1
    assert data.auroc(-truth, active) == 0
    assert data.auroc(np.zeros_like(truth), active) == 0.5
