"""The tables of samplers: the authors' numbers, and that every row can be measured."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from offmap.sampling import RAS
from offmap_bench.densities import wave
from offmap_bench.plain_samplers import ImportanceResampling, Metropolis
from offmap_bench.random_densities import random_box
from offmap_bench.run import run
from offmap_bench.sample_quality import modes_found
from offmap_bench.tables.sampling_bounded import TABLES as BOUNDED
from offmap_bench.tables.sampling_gans import GANS
from offmap_bench.tables.sampling_mcmc import TemperedSMC, log_mixture
from offmap_bench.tables.sampling_random import BOXES, box_number
from offmap_bench.tables.sampling_random import TABLES as RANDOM
from offmap_bench.tables.sampling_toys import FUNNEL, MODES, TOYS, density_of
from offmap_bench.tables.speed_sampling import TRAINING, Bare

TINY: dict[str, Any] = {"steps": 2, "batch_size": 32, "hidden": (8,), "critic_lr": 1e-3}


def test_printed_numbers_stand_where_the_authors_have_them() -> None:
    assert TOYS.printed["RAS, both", "pot1_hard", "symmetric KL"] == 1.96
    assert TOYS.printed["RAS, no entropy", "pot2", "symmetric KL"] == 8.92
    assert BOUNDED[0].printed["RAS, Gaussian reference", "u1", "KS"] == 0.107
    assert GANS.printed["SN-GAN + entropy", "8-GMM", "symmetric KL"] == 8.0


@pytest.mark.parametrize(
    ("table", "rows"),
    [
        (TOYS, ["RAS, both", "amortised SVGD"]),
        (MODES, ["true samples", "RAS, annealing"]),
        (FUNNEL, ["RAS, annealing"]),
        (BOUNDED[0], ["RAS, Beta reference", "RAS, Gaussian reference"]),
        (GANS, ["SN-GAN + entropy", "Neyman", "total variation"]),
        (RANDOM[0], ["RAS", "importance resampling"]),
        (RANDOM[1], ["RAS, one Gaussian", "importance resampling"]),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_rows_can_be_measured(table: Any, rows: list[str], tmp_path: Path) -> None:
    tiny = replace(table, profiles=dict.fromkeys(table.profiles, TINY))
    cells = run(tiny, "cpu", tmp_path, rows=rows, columns=table.columns[:1], seeds=[0])
    for cell in cells:
        values = cell.runs[0].metrics
        assert set(values) == set(table.metrics)
        assert all(value is not None and np.isfinite(value) for value in values.values())


def test_one_setting_serves_all_densities() -> None:
    """Rows with one Gaussian as the noise differ in the entropy term alone; the mixture has the defaults."""
    for profile in ("cpu", "paper"):
        methods = [TOYS.method(row, profile) for row in TOYS.rows if row.startswith("RAS")]
        settings = [{**method.get_params(), "entropy": None} for method in methods if method.components == 1]
        assert len(settings) == 3
        assert all(setting == settings[0] for setting in settings)
    assert TOYS.rows["RAS, annealing, mixture"].get_params() == RAS().get_params()
    assert BOUNDED[0].rows["RAS, Beta reference"].get_params() == RAS(support=(-1.0, 1.0)).get_params()


def test_tempered_particles_find_every_mode() -> None:
    pytest.importorskip("blackjax", reason="the extra bench is not installed")
    density = density_of("8-GMM")
    assert modes_found(TemperedSMC(particles=400).samples(density, 1000, seed=0), density) == 8
    with pytest.raises(ValueError, match="mixture"):
        log_mixture(wave())


@pytest.mark.parametrize("sampler", [ImportanceResampling(), Metropolis(chains=500, burn_in=300)])
def test_plain_samplers_draw_from_a_random_box(sampler: Any) -> None:
    box = random_box(3, parts=2, dim=2)
    low, high = (torch.tensor(bound, dtype=torch.float32) for bound in box.support)
    assert box.ks(sampler.draw(box.log_u, low, high, 10_000, seed=0)) < 0.04


def test_settings_were_not_chosen_on_the_random_boxes_of_the_table() -> None:
    numbers = {box_number(column, seed) for column in BOXES for seed in RANDOM[0].seeds["cpu"]}
    assert len(numbers) == 12
    assert max(numbers) < 100


def test_the_bare_loop_does_the_same_work() -> None:
    bare, method = Bare(64, (16,)), TRAINING.rows["RAS"]
    assert method.critic_steps == 3
    before = [weight.clone() for weight in bare.critic.parameters()]
    assert bool(bare.step().isfinite())
    assert not any(torch.equal(old, new) for old, new in zip(before, bare.critic.parameters(), strict=True))
