"""Each source of negatives does what it says."""

from typing import Any

import numpy as np
import pytest
import torch

from offmap.density.vae.negatives import AddedNoise, AuxiliaryRows, Mutation, Negatives, UniformNoise
from offmap.random_state import local_seed


def test_auxiliary_negatives_are_rows_of_the_auxiliary_set() -> None:
    rows = torch.arange(20.0).reshape(10, 2)
    with local_seed(0):
        drawn = AuxiliaryRows(rows)(torch.zeros(500, 2))
    assert drawn.shape == (500, 2)
    assert {tuple(row.tolist()) for row in drawn} == {tuple(row.tolist()) for row in rows}


def test_noisy_negatives_are_the_rows_with_noise_of_that_width() -> None:
    X = torch.rand(200, 1, 16, 16)
    with local_seed(0):
        noise = AddedNoise(0.25)(X) - X
    assert abs(float(noise.std()) - 0.25) < 0.005
    assert abs(float(noise.mean())) < 0.005


def test_uniform_negatives_fill_the_range_of_pixels_or_of_each_feature() -> None:
    with local_seed(0):
        pixels = UniformNoise.like(torch.full((300, 1, 8, 8), 0.5))(torch.zeros(300, 1, 8, 8))
        features = torch.randn(400, 2) * torch.tensor([1.0, 50.0])
        drawn = UniformNoise.like(features)(torch.zeros(5000, 2))
    assert 0 <= pixels.min() < 0.01
    assert 0.99 < pixels.max() <= 1
    assert abs(float(pixels.std()) - 1 / 12**0.5) < 0.01
    assert (drawn >= features.amin(0)).all()
    assert (drawn <= features.amax(0)).all()
    assert (drawn.std(0) * 12**0.5 / (features.amax(0) - features.amin(0)) - 1).abs().max() < 0.05


def test_mutation_replaces_that_share_of_the_values() -> None:
    X = torch.full((100, 1, 20, 20), 2.0)
    with local_seed(0):
        mutated = Mutation(UniformNoise.like(X), 0.2)(X)
    changed = mutated != X
    assert abs(float(changed.float().mean()) - 0.2) < 0.01
    assert mutated[changed].max() <= 1


def test_auxiliary_rows_come_from_arrays_or_by_name() -> None:
    images = np.random.default_rng(0).integers(256, size=(5, 8, 8), dtype=np.uint8)
    found = Negatives(source=images).auxiliary_rows((8, 8, 1), "cpu")
    assert found.shape == (5, 1, 8, 8)
    assert float(found.max()) <= 1
    assert Negatives(source="digits").auxiliary_rows((8, 8, 1), "cpu").shape == (1797, 1, 8, 8)


@pytest.mark.parametrize(
    ("rows", "shape", "message"),
    [
        (np.zeros((5, 3)), (4,), r"negatives must be rows of the shape \(4,\) of X; got \(3,\)"),
        (np.full((5, 4), np.nan), (4,), "Input negatives contains NaN"),
        (np.zeros((5, 6, 8)), (8, 8, 1), "negatives must be rows of the shape"),
        ("digit", (8, 8, 1), "did you mean 'digits'"),
    ],
)
def test_rows_that_do_not_fit_are_named(rows: Any, shape: tuple[int, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Negatives(source=rows).auxiliary_rows(shape, "cpu")


def test_a_source_alone_stands_for_negatives_with_default_settings() -> None:
    found = Negatives.of("noise")
    assert found is not None
    assert found.get_params() == {"source": "noise", "weight": 1.0, "shift": None, "noise_sd": 0.25}
    given = Negatives(source="uniform", weight=2.0)
    assert Negatives.of(given) is given
    assert Negatives.of(None) is None


@pytest.mark.parametrize("settings", [{"weight": 0}, {"shift": -1.0}, {"noise_sd": "wide"}, {"source": 3}])
def test_settings_of_negatives_are_checked_and_named(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(settings))} must be"):
        Negatives.of(Negatives(**{"source": "noise"} | settings))


def test_each_source_has_its_sampler() -> None:
    X, none = torch.rand(40, 3), torch.empty(0, 3)
    with local_seed(0):
        wide = Negatives(source="noise", noise_sd=5.0).sampler(none, X)
        assert wide is not None
        assert 4 < float((wide(X) - X).std()) < 6
    assert isinstance(Negatives(source="uniform").sampler(none, X), UniformNoise)
    assert isinstance(Negatives(source=np.ones((5, 3))).sampler(X, X), AuxiliaryRows)
    assert Negatives(source="generated").sampler(none, X) is None
