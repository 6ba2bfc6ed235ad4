"""How long networks are trained, on what, and when they stop."""

from dataclasses import replace

import pytest
import torch

from offmap.density.objectives import Objective
from offmap.density.regimen import Regimen, mean_bound
from offmap.density.scores import Models
from offmap.density.vae import VAE
from offmap.random_state import local_seed

REGIMEN = Regimen(
    objective=Objective(),
    mutation=0.5,
    generated=False,
    epochs=None,
    steps=100,
    patience=None,
    batch_size=10,
    lr=1e-3,
    optimizer="adam",
)


def network() -> VAE:
    with local_seed(0):
        return VAE((3,), latent=2, hidden=(8,), noise="gaussian").eval()


def rows(count: int) -> torch.Tensor:
    return torch.randn(count, 3, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(("count", "epochs"), [(10, 5), (1_000, 1), (250, 4)])
def test_open_epochs_are_as_many_as_make_the_steps(count: int, epochs: int) -> None:
    """Few rows are gone over until an epoch has 20 batches."""
    assert len(REGIMEN.train(network(), rows(count))["kl"]) == epochs


def test_given_epochs_are_kept() -> None:
    assert len(replace(REGIMEN, epochs=3).train(network(), rows(10))["kl"]) == 3


def test_the_mean_bound_is_over_all_rows() -> None:
    model, X = network(), rows(1_500)
    with torch.no_grad():
        reconstruction, kl = model.bound(X, model.draw)
        assert mean_bound(model, X) == pytest.approx(float((reconstruction + kl).mean()), rel=1e-5)


def test_rows_are_watched_only_with_patience() -> None:
    regimen = replace(REGIMEN, epochs=2)
    assert "validation" not in regimen.train(network(), rows(50), watched=rows(20))
    assert "validation" in replace(regimen, patience=1).train(network(), rows(50), watched=rows(20))
    assert "validation" not in replace(regimen, patience=1).train(network(), rows(50), watched=rows(0))


def test_all_networks_stop_by_the_rows_that_are_watched() -> None:
    models = Models(network(), background=network(), ensemble=[network()])
    history = replace(REGIMEN, epochs=2, patience=1).train_others(models, rows(50), None, rows(20))
    assert {"network 2 validation", "background validation"} <= history.keys()


def test_generated_negatives_make_two_players_but_not_of_the_background() -> None:
    models = Models(network(), background=network(), ensemble=[network()])
    history = replace(REGIMEN, epochs=1, generated=True).train_others(models, rows(50), None, rows(0))
    of = {
        name: {term.removeprefix(name) for term in history if term.startswith(name)}
        for name in ("network 2 ", "background ")
    }
    assert of == {
        "network 2 ": {"reconstruction", "kl", "negatives", "generated"},
        "background ": {"reconstruction", "kl"},
    }
