"""Drawing speed of RAS, NUTS and tempered SMC, and training speed of RAS compared with a hand-written loop."""

import copy
import statistics
from typing import Any

import torch
from torch import Tensor
from torch.optim import Adam

from offmap.random_state import local_seed
from offmap.ratio import ratio_loss
from offmap.sampling import RAS
from offmap.sampling.networks import Critic, Generator
from offmap.sampling.references import GaussianReference
from offmap_bench.densities import Density, ring_of_gaussians
from offmap_bench.table import Table
from offmap_bench.tables.sampling_mcmc import NUTS, TemperedSMC
from offmap_bench.tables.sampling_toys import SETTING
from offmap_bench.tables.speed import take_turns
from offmap_bench.timing import timed

SOURCE = "No paper: the speed of this toolkit"
WANTED = 1_000_000
# Samples of the longer run, in multiples of the shorter one's: enough to stand out from the varying compilation time.
LONGER = 20
DENSITY = ring_of_gaussians()


def measure_drawing(method: Any, column: str, seed: int) -> dict[str, float]:
    """Seconds to prepare and to draw a million samples; chains and particles are extrapolated from shorter runs."""
    if isinstance(method, RAS):
        ready = timed(method.set_params(log_density=DENSITY.log_u, scale=0.5, random_state=seed).fit)
        turns = take_turns({"draw": lambda: method.sample(WANTED)}, turns=5)["draw"]
        return {"seconds to get ready": ready, "seconds for a million": statistics.median(turns)}
    size = method_size(method)
    short, long = (_timed(method, DENSITY, n, seed) for n in (size, LONGER * size))
    # Both runs include compilation and warm-up; the difference between them is drawing.
    each = (long - short) / ((LONGER - 1) * size)
    return {"seconds to get ready": short - each * size, "seconds for a million": each * WANTED}


def method_size(method: Any) -> int:
    """Samples of the shorter run."""
    return 10_000 if isinstance(method, NUTS) else int(method.particles)


def _timed(method: Any, density: Density, n: int, seed: int) -> float:
    chosen = method if isinstance(method, NUTS) else TemperedSMC(particles=n)
    return timed(lambda: chosen.samples(density, n, seed))


class Bare:
    """The training steps of RAS, written by hand for this one density."""

    def __init__(self, batch_size: int, hidden: tuple[int, ...]) -> None:
        self.n = batch_size
        self.generator = Generator(6, 2, hidden, scale=0.5, residual=True)
        self.critic = Critic(2, hidden, scale=0.125)
        betas = (0.5, 0.999)
        self.generator_optimizer = Adam(self.generator.parameters(), lr=1e-3, betas=betas, fused=True)
        self.critic_optimizer = Adam(self.critic.parameters(), lr=1e-3, betas=betas, fused=True)
        self.mean = copy.deepcopy(self.generator)
        self.reference = GaussianReference.fit(self.generator.draw(self.n))

    def step(self) -> Tensor:
        """Three steps of the critic and one of the generator."""
        x = self.generator.draw(self.n)
        self.reference = self.reference.toward(GaussianReference.fit(x), 0.05)
        for turn in range(3):
            with torch.no_grad():
                fresh = x.detach() if turn == 0 else self.generator.draw(self.n)
            w = self.critic(torch.cat([self.reference.draw(self.n), fresh]))
            self._descend(self.critic_optimizer, ratio_loss(w[: self.n], w[self.n :]))
        self.critic.requires_grad_(False)
        loss = -(self.critic(x) + DENSITY.log_u(x) - self.reference.log_prob(x)).mean()
        self._descend(self.generator_optimizer, loss)
        self.critic.requires_grad_(True)
        with torch.no_grad():
            for mean, weight in zip(self.mean.parameters(), self.generator.parameters(), strict=True):
                mean.lerp_(weight, 1e-3)
        return loss.detach()

    def _descend(self, optimizer: Adam, loss: Tensor) -> None:
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()


def measure_training(method: RAS, column: str, seed: int) -> dict[str, float]:
    """Generator steps per second of the library and of the hand-written loop, run in turns."""
    steps = 200
    with local_seed(seed):
        bare = Bare(method.batch_size, method.hidden)
        method.set_params(log_density=DENSITY.log_u, scale=0.5, random_state=seed, steps=steps)._begin_fit()

        def ours() -> None:
            method._build()
            method._train_generator(None)

        runners = {"ours": ours, "bare": lambda: [bare.step() for _ in range(steps)]}
        seconds = take_turns(runners, turns=7)
    rates = {name: steps / statistics.median(times) for name, times in seconds.items()}
    ratio = statistics.median(b / o for b, o in zip(seconds["bare"], seconds["ours"], strict=True))
    return {"ours, steps / s": rates["ours"], "bare, steps / s": rates["bare"], "ours / bare": ratio}


DRAWING = Table(
    name="speed-sampling",
    source=SOURCE,
    caption="A million samples of the 8-GMM.",
    rows={"RAS": RAS(**SETTING, components=1), "NUTS": NUTS(), "tempered SMC": TemperedSMC()},
    columns=("8-GMM",),
    metrics=("seconds to get ready", "seconds for a million"),
    measure=measure_drawing,
    seeds={"cpu": range(3)},
    profiles={"cpu": {}},
    formats={"seconds to get ready": ".1f", "seconds for a million": ".2f"},
    notes=(
        "RAS is prepared by training, once; the others by compilation and warm-up. Their time for a million samples "
        "is extrapolated from how much longer twenty times the samples take. Each draw of a chain counts as a sample, "
        "although successive draws are dependent and not all modes are visited: this favours NUTS."
    ),
)
TRAINING = Table(
    name="speed-sampling-training",
    source=SOURCE,
    caption="Generator steps per second of RAS, with three critic steps each: the library and a hand-written loop.",
    rows={"RAS": RAS(**SETTING, components=1)},
    columns=("8-GMM",),
    metrics=("ours, steps / s", "bare, steps / s", "ours / bare"),
    measure=measure_training,
    seeds={"cpu": range(3)},
    profiles={"cpu": {}},
    formats={"ours, steps / s": ".0f", "bare, steps / s": ".0f"},
    notes="Both run in turns; the ratio is the median of the ratios of the turns.",
)
TABLES = (DRAWING, TRAINING)
