"""How long networks are trained, on what, and when they stop."""

from dataclasses import replace

import pytest
import torch

from offmap.density.vae.network import VAE
from offmap.density.vae.objective import Objective
from offmap.density.vae.scores import Networks
from offmap.density.vae.training import TrainingSchedule, mean_negative_elbo
from offmap.random_state import local_seed

SCHEDULE = TrainingSchedule(
    objective=Objective(),
    adversarial=False,
    epochs=None,
    steps=100,
    patience=None,
    batch_size=10,
    lr=1e-3,
    optimizer="adam",
)


def network() -> VAE:
    with local_seed(0):
        return VAE((3,), latent_dim=2, hidden=(8,), likelihood="gaussian").eval()


def rows(count: int) -> torch.Tensor:
    return torch.randn(count, 3, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(("count", "epochs"), [(10, 5), (1_000, 1), (250, 4)])
def test_without_epochs_there_are_as_many_as_make_the_steps(count: int, epochs: int) -> None:
    """Few rows are repeated until an epoch has 20 batches."""
    assert len(SCHEDULE.train(network(), rows(count))["kl"]) == epochs


def test_given_epochs_are_kept() -> None:
    assert len(replace(SCHEDULE, epochs=3).train(network(), rows(10))["kl"]) == 3


def test_the_mean_negative_elbo_is_over_all_rows() -> None:
    model, X = network(), rows(1_500)
    with torch.no_grad():
        reconstruction, kl = model.bound(X, model.draw)
        assert mean_negative_elbo(model, X) == pytest.approx(float((reconstruction + kl).mean()), rel=1e-5)


def test_rows_are_validated_only_with_patience() -> None:
    schedule = replace(SCHEDULE, epochs=2)
    assert "validation" not in schedule.train(network(), rows(50), validation=rows(20))
    assert "validation" in replace(schedule, patience=1).train(network(), rows(50), validation=rows(20))
    assert "validation" not in replace(schedule, patience=1).train(network(), rows(50), validation=rows(0))


def test_all_networks_stop_by_the_validation_rows() -> None:
    models = Networks(network(), background=network(), ensemble=[network()])
    history = replace(SCHEDULE, epochs=2, patience=1).train_others(models, rows(50), None, rows(20), mutation=0.5)
    assert {"network 2 validation", "background validation"} <= history.keys()


def test_generated_negatives_train_adversarially_but_not_the_background() -> None:
    models = Networks(network(), background=network(), ensemble=[network()])
    history = replace(SCHEDULE, epochs=1, adversarial=True).train_others(models, rows(50), None, rows(0), mutation=0.5)
    of = {
        name: {term.removeprefix(name) for term in history if term.startswith(name)}
        for name in ("network 2 ", "background ")
    }
    assert of == {
        "network 2 ": {"reconstruction", "kl", "negatives", "generated"},
        "background ": {"reconstruction", "kl"},
    }


def test_adversarial_training_updates_encoder_decoder_and_the_scale_of_the_likelihood() -> None:
    with local_seed(0):
        vae = VAE((3,), latent_dim=2, hidden=(8,), likelihood="gaussian_learned")
        before = {name: parameter.detach().clone() for name, parameter in vae.named_parameters()}
        replace(SCHEDULE, epochs=1, adversarial=True).train(vae, rows(50))
    assert all(not torch.equal(before[name], parameter) for name, parameter in vae.named_parameters())
