"""Learning from samples: f-GANs with and without the entropy term, on eight Gaussians in a ring."""

from pathlib import Path
from typing import Any

from matplotlib.figure import Figure as Drawing

from offmap.files import replacing
from offmap.sampling import FGAN
from offmap_bench.densities import ring_of_gaussians
from offmap_bench.figure import Figure
from offmap_bench.sample_quality import modes_found, symmetric_kl, weight_error
from offmap_bench.table import Table

SOURCE = "Open-World Learning (thesis), chapter 5"
DENSITY = ring_of_gaussians()
GIVEN, DRAWN = 100_000, 20_480
WEIGHT = 0.1
DIVERGENCES = {
    "GAN": "non_saturating",
    "reverse KL": "reverse_kl",
    "KL": "kl",
    "Hellinger": "hellinger",
    "total variation": "total_variation",
    "Pearson": "pearson",
    "Neyman": "neyman",
}


def measure(method: FGAN, title: str, seed: int) -> dict[str, float]:
    """Fits to samples of the ring and measures new samples."""
    method.set_params(random_state=seed).fit(DENSITY.draw(GIVEN, seed).numpy())
    found = method.sample(DRAWN, random_state=seed)
    return {
        "symmetric KL": symmetric_kl(found, DENSITY),
        "modes": modes_found(found, DENSITY),
        "weight error": weight_error(found, DENSITY),
    }


def rows() -> dict[str, FGAN]:
    """Each divergence without and with the entropy term, and the GAN with a spectrally normalised critic."""
    found: dict[str, FGAN] = {}
    for label, name in DIVERGENCES.items():
        settings: dict[str, Any] = {"divergence": name, "scale": 0.5}
        found |= {label: FGAN(**settings), f"{label} + entropy": FGAN(**settings, cycle_weight=WEIGHT)}
    spectral: dict[str, Any] = {"scale": 0.5, "spectral": True}
    return found | {"SN-GAN": FGAN(**spectral), "SN-GAN + entropy": FGAN(**spectral, cycle_weight=WEIGHT)}


GANS = Table(
    name="sampling-gans",
    source=f"{SOURCE}, figure 5.2, and the authors' supplement",
    caption="Generators that learn from samples of the 8-GMM, with and without the entropy term.",
    rows=rows(),
    columns=("8-GMM",),
    metrics=("symmetric KL", "modes", "weight error"),
    measure=measure,
    seeds={"cpu": range(3), "paper": range(3)},
    profiles={
        "cpu": {"steps": 3000, "batch_size": 256, "lr": 1e-3, "critic_lr": 1e-3},
        "paper": {"steps": 50_000, "batch_size": 1024, "lr": 2e-4, "critic_lr": 2e-4},
    },
    printed={
        ("GAN", "8-GMM", "symmetric KL"): 18.5,
        ("GAN + entropy", "8-GMM", "symmetric KL"): 7.6,
        ("SN-GAN", "8-GMM", "symmetric KL"): 11.5,
        ("SN-GAN + entropy", "8-GMM", "symmetric KL"): 8.0,
    },
    notes="20,480 samples in square bins of side 0.01, as in the table of toy densities. The critic is a logistic "
    "regression, and the divergence sets the generator's objective (table 5.2.1); the GAN is the non-saturating one. "
    "The sign in the objective of total variation is smoothed, since its gradient is zero. "
    "The entropy term has a weight of 0.1 in all rows. The generator's weights are averaged, as in RAS.",
    higher_is_better={"symmetric KL": False, "modes": True, "weight error": False},
    formats={"modes": ".0f", "weight error": ".3f"},
)


def draw(path: Path, profile: str) -> None:
    """Plots samples of each divergence, without and with the entropy term, and the means of the modes."""
    drawing = Drawing(figsize=(12, 5.2), layout="constrained")
    panels = drawing.subplots(2, len(DIVERGENCES))
    given, means = DENSITY.draw(GIVEN, 0).numpy(), DENSITY.modes
    assert means is not None
    for column, label in enumerate(DIVERGENCES):
        for axes, title in zip(panels[:, column], (label, f"{label} + entropy"), strict=True):
            points = GANS.method(title, profile).set_params(random_state=0).fit(given).sample(3000, random_state=0)
            axes.scatter(
                points[:, 0], points[:, 1], s=1, color="#0072b2" if title == label else "#d55e00", linewidths=0
            )
            axes.scatter(means[:, 0], means[:, 1], s=8, color="black")
            axes.set(title=title, xlim=(-1, 1), ylim=(-1, 1), aspect="equal", xlabel="x₁", ylabel="x₂")
    with replacing(path) as fresh:
        drawing.savefig(fresh, dpi=110)


TABLES = (
    GANS,
    Figure(
        name="sampling-gans-figure",
        source=f"{SOURCE}, figure 5.2",
        caption="Generated samples (dots) and the means of the modes (black), without and with the entropy term.",
        draw=draw,
    ),
)
