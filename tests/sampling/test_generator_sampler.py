"""Saving and loading of the samplers with a generator."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.exceptions import NotFittedError
from torch import Tensor

import offmap
from offmap import tensorfile
from offmap.persist import ModelFileError
from offmap.sampling import FGAN, RAS, AmortisedSVGD

SMALL: dict[str, Any] = {"dim": 2, "hidden": (8,), "steps": 3, "batch_size": 16, "random_state": 0}


def gaussian(x: Tensor) -> Tensor:
    return -x.square().sum(1) / 2


def in_context(x: Tensor, context: Tensor) -> Tensor:
    return -(x - context).square().sum(1) / 2


ROWS = np.random.default_rng(0).normal(size=(50, 2))
SAMPLERS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "ras": (RAS(log_density=gaussian, **SMALL), ()),
    "ras on a box": (RAS(log_density=gaussian, support=(np.array([0.0, -1.0]), 2.0), **SMALL), ()),
    "ras with contexts": (RAS(log_density=in_context, **SMALL), (ROWS[:5],)),
    "fgan": (FGAN(**SMALL), (ROWS,)),
    "spectral fgan": (FGAN(spectral=True, **SMALL), (ROWS,)),
    "amortised svgd": (AmortisedSVGD(log_density=gaussian, **SMALL), ()),
}


@pytest.mark.parametrize(("sampler", "data"), SAMPLERS.values(), ids=SAMPLERS.keys())
def test_a_loaded_sampler_draws_the_same_samples(sampler: Any, data: tuple[Any, ...], tmp_path: Path) -> None:
    sampler.fit(*data)
    context = [0.5, 1.0] if sampler.context_dim_ else None
    sampler.save(tmp_path / "sampler")
    before = torch.get_rng_state()
    loaded = offmap.load(tmp_path / "sampler")
    assert torch.equal(torch.get_rng_state(), before)
    assert type(loaded) is type(sampler)
    assert vars(loaded).keys() == vars(sampler).keys()
    assert loaded.history_ == sampler.history_
    drawn, again = (one.sample(30, context, random_state=1) for one in (sampler, loaded))
    assert drawn.tobytes() == again.tobytes()


def test_an_unfitted_sampler_cannot_be_saved(tmp_path: Path) -> None:
    with pytest.raises(NotFittedError):
        RAS(log_density=gaussian).save(tmp_path / "sampler")


@pytest.mark.parametrize("name", ["context_dim_", "history_"])
def test_a_file_that_lacks_an_attribute_is_refused(name: str, tmp_path: Path) -> None:
    FGAN(**SMALL).fit(np.eye(2)).save(tmp_path / "sampler")
    content = tensorfile.read(tmp_path / "sampler")
    del content["attributes"][name]
    tensorfile.write(tmp_path / "sampler", content)
    with pytest.raises(ModelFileError, match=f"it lacks {name}"):
        offmap.load(tmp_path / "sampler")
