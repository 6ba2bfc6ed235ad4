"""Monte Carlo samplers to compare with: NUTS and tempered sequential Monte Carlo, by blackjax."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from offmap_bench.densities import Density
from offmap_bench.rivals import rival

Array = NDArray[np.float32]


def log_mixture(density: Density) -> Callable[[Any], Any]:
    """The log density of a mixture at one point, as a jax function."""
    jnp = rival("jax.numpy", "JAX")
    if density.modes is None or density.mode_sd is None:
        raise ValueError("density must be a mixture")
    modes, variance = jnp.asarray(density.modes.numpy()), density.mode_sd**2
    logsumexp = rival("jax.scipy.special", "JAX").logsumexp
    return lambda x: logsumexp(-((x - modes) ** 2).sum(-1) / (2 * variance))


@dataclass(frozen=True)
class NUTS:
    """One chain of the no-U-turn sampler, started inside the window.

    Args:
        warmup: Steps that adapt the step size and the metric.
    """

    warmup: int = 1000

    def samples(self, density: Density, n: int, seed: int) -> Array:
        """Draws ``n`` states of the chain."""
        jax, blackjax = rival("jax", "JAX"), rival("blackjax", "BlackJAX")
        log_density = log_mixture(density)
        start, setting, drawing = jax.random.split(jax.random.key(seed), 3)
        first = jax.random.normal(start, (density.dim,)) * (density.high - density.low) / 4
        adaptation = blackjax.window_adaptation(blackjax.nuts, log_density)
        (state, tuned), _ = adaptation.run(setting, first, num_steps=self.warmup)
        kernel = blackjax.nuts(log_density, **tuned).step

        def step(state: Any, key: Any) -> tuple[Any, Any]:
            state, _ = kernel(key, state)
            return state, state.position

        return np.asarray(jax.lax.scan(step, state, jax.random.split(drawing, n))[1])


@dataclass(frozen=True)
class TemperedSMC:
    """Moves particles from a wide Gaussian to the density through adaptively chosen powers of it.

    Args:
        particles: Number of particles; samples are drawn from them with replacement.
        moves: Hamiltonian Monte Carlo steps per temperature.
        wide: Standard deviation of the Gaussian, in half widths of the window.
    """

    particles: int = 4000
    moves: int = 5
    wide: float = 0.5

    def samples(self, density: Density, n: int, seed: int) -> Array:
        """Draws ``n`` of the final particles."""
        jax, blackjax = rival("jax", "JAX"), rival("blackjax", "BlackJAX")
        jnp, sd = jax.numpy, self.wide * (density.high - density.low) / 2
        log_density = log_mixture(density)
        hmc = {
            "step_size": 0.5 * float(density.mode_sd or 1.0),
            "inverse_mass_matrix": jnp.ones(density.dim),
            "num_integration_steps": 10,
        }
        smc = blackjax.adaptive_tempered_smc(
            lambda x: -(x**2).sum(-1) / (2 * sd**2),
            lambda x: log_density(x) + (x**2).sum(-1) / (2 * sd**2),
            blackjax.hmc.build_kernel(),
            blackjax.hmc.init,
            blackjax.smc.extend_params(hmc),
            blackjax.smc.resampling.systematic,
            0.9,
            num_mcmc_steps=self.moves,
        )
        key = jax.random.key(seed)
        state = smc.init(sd * jax.random.normal(key, (self.particles, density.dim)))
        step = jax.jit(smc.step)
        while float(state.tempering_param if hasattr(state, "tempering_param") else state.lmbda) < 1:
            key, turn = jax.random.split(key)
            state, _ = step(turn, state)
        particles = np.asarray(state.particles)
        return particles[np.random.default_rng(seed).integers(len(particles), size=n)]
