"""Sampling on an interval: RAS with a Beta and a Gaussian reference, and SVGD."""

from typing import Any

import numpy as np

from offmap.sampling import RAS, AmortisedSVGD
from offmap_bench.densities import Density, bowl, falling_early, ramp
from offmap_bench.sample_quality import cdf_distances
from offmap_bench.table import Table
from offmap_bench.tables.sampling_toys import PAPER, Particles

DENSITIES = {"u1": ramp(), "u2": bowl()}
SAMPLES = 200_000
# How far inside its bounds a density begins to fall, and how steeply, for RAS without bounds.
MARGIN, FALL = 0.002, 100.0


def target(method: Any, density: Density) -> Density:
    """The density that a method is given."""
    unbounded = isinstance(method, RAS) and method.support is None
    return falling_early(density, MARGIN, FALL) if unbounded else density


def measure(method: Any, title: str, seed: int) -> dict[str, float]:
    """Distances between the distribution functions, and the share of the samples where the density is zero."""
    density = DENSITIES[title]
    if isinstance(method, Particles):
        samples = method.samples(density, SAMPLES, seed)
    else:
        method.set_params(log_density=target(method, density).log_u, dim=1, random_state=seed).fit()
        samples = method.sample(SAMPLES, random_state=seed)
    ks, w1 = cdf_distances(samples, density)
    return {"KS": ks, "W1": w1, "outside": float((np.abs(samples) > 1).mean())}


AMORTISED: dict[str, Any] = {"hidden": (64, 64), "steps": 5000, "batch_size": 512, "lr": 1e-3}

TABLES = (
    Table(
        name="sampling-bounded",
        source="Open-World Learning (thesis), chapter 5, and the authors' supplement",
        caption="Densities on [−1, 1]: distance between the distribution of the samples and the true one.",
        rows={
            "RAS, Beta reference": RAS(support=(-1.0, 1.0)),
            "RAS, Beta reference, as in the paper": RAS(support=(-1.0, 1.0), uniform_share=0.0, components=1),
            "RAS, Gaussian reference": RAS(components=1),
            "SVGD": Particles(),
            "amortised SVGD": AmortisedSVGD(**AMORTISED),
        },
        columns=tuple(DENSITIES),
        metrics=("KS", "W1", "outside"),
        measure=measure,
        seeds={"cpu": range(3), "paper": range(3)},
        profiles={"cpu": {}, "paper": {**PAPER, "noise_dim": 1}},
        printed={
            ("RAS, Beta reference", "u1", "KS"): 0.0066,
            ("RAS, Beta reference", "u1", "W1"): 0.005,
            ("RAS, Beta reference", "u2", "KS"): 0.0049,
            ("RAS, Beta reference", "u2", "W1"): 0.005,
            ("RAS, Beta reference, as in the paper", "u1", "KS"): 0.0066,
            ("RAS, Beta reference, as in the paper", "u1", "W1"): 0.005,
            ("RAS, Beta reference, as in the paper", "u2", "KS"): 0.0049,
            ("RAS, Beta reference, as in the paper", "u2", "W1"): 0.005,
            ("RAS, Gaussian reference", "u1", "KS"): 0.107,
            ("RAS, Gaussian reference", "u2", "KS"): 0.070,
            ("SVGD", "u1", "KS"): 0.19,
            ("SVGD", "u2", "KS"): 0.015,
            ("amortised SVGD", "u1", "KS"): 0.35,
            ("amortised SVGD", "u2", "KS"): 0.62,
        },
        notes="u1 = (1 − t) t³ and u2 = (1 − t)^½ t⁵ + (1 − t)⁵ t^½ with t = x/2 + ½. Samplers that are not given the "
        "bounds see a density that falls exponentially outside of [−1, 1]. 200,000 samples, for which true samples "
        "have a KS of about 0.002; SVGD has 1,000 particles, which are repeated. The paper's numbers are recomputed "
        "from the authors' samples. The first row has the defaults of RAS: a mixture as noise and a mixture of Betas "
        "as reference, of which a tenth is uniform over the box. The other rows of RAS have one Gaussian as noise and "
        "one reference, as in the paper, with as many steps, 1,500, and three critic steps each. For RAS with the "
        "Gaussian reference the density begins to fall 0.002 inside its bounds, with a slope of 100. Next to a bound "
        "the slope of its logarithm is up to 10⁵, and the few samples there made all steps of Adam small: with that "
        "slope the same row had a KS of 0.156 on u1 and 0.193 on u2 (3 seeds), and more steps did not help (seed 10: "
        "on u1 0.108 after 1,500 steps and 0.126 after 5,000, on u2 0.116 after 5,000). Margin and slope were chosen "
        "on seed 10. SVGD and amortised SVGD see the steep density. On a box, the critic of every row has terms "
        "that are steep at the boundary. Mixture, share and terms are additions of ours: the share and the terms were "
        "found on u2 with seeds 10 to 12, the mixtures on other densities.",
        higher_is_better={"KS": False, "W1": False},
        formats={"KS": ".4f", "W1": ".4f", "outside": ".1%"},
    ),
)
