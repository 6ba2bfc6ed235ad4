"""Pairs of variables whose mutual information is known in closed form."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import expm
from scipy.special import digamma, gammaln, ndtr

Array = NDArray[np.float64]
Pair = tuple[Array, Array]
Draw = Callable[[int, np.random.Generator], Pair]


@dataclass(frozen=True)
class Task:
    """Two variables with a known mutual information.

    Args:
        truth: The mutual information in nats.
        draw: Draws rows of both variables from a number of rows and a generator.
    """

    truth: float
    draw: Draw

    def warped(self, x: Callable[[Array], Array], y: Callable[[Array], Array] = np.asarray) -> "Task":
        """Maps both variables one to one, which does not change their mutual information."""

        def draw(rows: int, rng: np.random.Generator) -> Pair:
            before, after = self.draw(rows, rng)
            return x(before), y(after)

        return Task(self.truth, draw)


def normal(cross: Array, inner: float = 0.0) -> Task:
    r"""Gaussian variables of unit variance, $\frac12 \log(\det \Sigma_x \det \Sigma_y / \det \Sigma)$.

    Args:
        cross: Covariance ``(d_x, d_y)`` between them.
        inner: Covariance of any two columns of the same variable.
    """
    covariance = _covariance(cross, inner)
    root = np.linalg.cholesky(covariance)

    def draw(rows: int, rng: np.random.Generator) -> Pair:
        both = rng.normal(size=(rows, len(root))) @ root.T
        return both[:, : len(cross)], both[:, len(cross) :]

    return Task(_shared(covariance, len(cross)), draw)


def student(cross: Array, freedom: int, inner: float = 0.0) -> Task:
    """Student-t variables: Gaussians divided by a common chi variable, so they share even without correlation.

    Reference: Arellano-Valle, Contreras-Reyes and Genton, Shannon Entropy and Mutual Information for Multivariate
    Skew-Elliptical Distributions, 2013.
    """
    base, (left, right) = normal(cross, inner), cross.shape

    def draw(rows: int, rng: np.random.Generator) -> Pair:
        x, y = base.draw(rows, rng)
        scale = np.sqrt(freedom / rng.chisquare(freedom, size=(rows, 1)))
        return x * scale, y * scale

    def part(degrees: float) -> float:
        return float(gammaln(degrees / 2) - degrees / 2 * digamma(degrees / 2))

    common = part(freedom) + part(freedom + left + right) - part(freedom + left) - part(freedom + right)
    return Task(base.truth + common, draw)


def additive(noise: float) -> Task:
    """A uniform variable on [0, 1], and the same plus uniform noise on [-``noise``, ``noise``]."""

    def draw(rows: int, rng: np.random.Generator) -> Pair:
        x = rng.uniform(size=(rows, 1))
        return x, x + rng.uniform(-noise, noise, size=(rows, 1))

    return Task(noise - math.log(2 * noise) if noise <= 0.5 else 1 / (4 * noise), draw)


def _covariance(cross: Array, inner: float) -> Array:
    left, right = cross.shape
    blocks = [np.full((size, size), inner) + (1 - inner) * np.eye(size) for size in (left, right)]
    return np.block([[blocks[0], cross], [cross.T, blocks[1]]])


def _shared(covariance: Array, left: int) -> float:
    parts = (covariance[:left, :left], covariance[left:, left:], covariance)
    first, second, both = (np.linalg.slogdet(part)[1] for part in parts)
    return float(first + second - both) / 2


def sparse(left: int, right: int, correlations: tuple[float, ...] = (0.8, 0.8)) -> Array:
    """Covariance in which each of the first columns is correlated with its partner only."""
    cross = np.zeros((left, right))
    np.fill_diagonal(cross, [*correlations, *[0.0] * (min(left, right) - len(correlations))])
    return cross


def half_cube(values: Array) -> Array:
    """Gives each column heavy tails."""
    return values * np.sqrt(np.abs(values))


def bimodal(values: Array) -> Array:
    """Gives each column two modes: maps Gaussian values to quantiles of a mixture of two Gaussians."""
    grid = np.linspace(-12, 12, 20_001)
    return np.interp(ndtr(values), 0.3 * ndtr(grid / 0.3) + 0.7 * ndtr((grid - 5) / 0.5), grid)


def wiggly(values: Array) -> Array:
    """Maps each column by an increasing wave."""
    return values + 0.4 * np.sin(values) + 0.2 * np.sin(1.7 * values + 1) + 0.03 * np.sin(3.3 * values - 2.5)


def swiss_roll(values: Array) -> Array:
    """Rolls a line up in a plane."""
    angle = 1.5 * math.pi * (1 + 2 * ndtr(values))
    return np.hstack([angle * np.cos(angle), angle * np.sin(angle)]) / 21


def spiral(speed: float, places: tuple[int, int] = (0, 1)) -> Callable[[Array], Array]:
    """Rotates each row in the plane of two columns by an angle that grows with its length."""

    def turn(values: Array) -> Array:
        angle = speed * (values**2).sum(1)
        first, second = places
        turned = values.copy()
        turned[:, first] = np.cos(angle) * values[:, first] - np.sin(angle) * values[:, second]
        turned[:, second] = np.sin(angle) * values[:, first] + np.cos(angle) * values[:, second]
        return turned

    return turn


def mixed(warp: Callable[[Array], Array], seed: int) -> Callable[[Array], Array]:
    """Warps each column, then rotates all columns, so that ranks of single columns no longer undo the warp."""

    def turn(values: Array) -> Array:
        skew = np.random.default_rng(seed).normal(size=(values.shape[1], values.shape[1]))
        return warp(values) @ expm(skew - skew.T)

    return turn


def bounded(values: Array) -> Array:
    """Makes each column uniform."""
    return ndtr(values)


def one(correlation: float) -> Array:
    """The covariance of two single columns."""
    return np.array([[correlation]])


def dense(left: int, right: int, correlation: float = 0.5) -> Task:
    """Gaussian columns with the same correlation between any two."""
    return normal(np.full((left, right), correlation), inner=correlation)


TASKS: dict[str, Task] = {
    "normal 1×1": normal(one(0.75)),
    "normal 1×1, uniform margins": normal(one(0.75)).warped(bounded, bounded),
    "normal 1×1, bimodal margins": normal(one(0.75)).warped(bimodal, bimodal),
    "normal 1×1, wiggly": normal(one(0.75)).warped(wiggly, wiggly),
    "normal 1×1, half-cube": normal(one(0.9)).warped(half_cube, half_cube),
    "swiss roll 2×1": normal(one(0.8)).warped(swiss_roll),
    "uniform, noise 0.1": additive(0.1),
    "uniform, noise 0.75": additive(0.75),
    "student 1×1, 1 degree": student(one(0.0), 1),
    "student 1×1, 1 degree, asinh": student(one(0.75), 1).warped(np.arcsinh, np.arcsinh),
    "dense 2×2": dense(2, 2),
    "dense 3×3": dense(3, 3),
    "dense 5×5": dense(5, 5),
    "dense 25×25": dense(25, 25),
    "dense 5×5, half-cube": dense(5, 5).warped(half_cube, half_cube),
    "dense 25×25, half-cube": dense(25, 25).warped(half_cube, half_cube),
    "sparse 2×2": normal(sparse(2, 2)),
    "sparse 3×3": normal(sparse(3, 3)),
    "sparse 5×5": normal(sparse(5, 5)),
    "sparse 25×25": normal(sparse(25, 25)),
    "sparse 3×3, spiral": normal(sparse(3, 3)).warped(spiral(1 / 3), spiral(1 / 3, (1, 2))),
    "sparse 5×5, spiral": normal(sparse(5, 5)).warped(spiral(1 / 3), spiral(1 / 3, (1, 2))),
    "sparse 3×3, half-cube, mixed": normal(sparse(3, 3)).warped(mixed(half_cube, 1), mixed(half_cube, 2)),
    "sparse 5×5, bimodal, mixed": normal(sparse(5, 5)).warped(mixed(bimodal, 1), mixed(bimodal, 2)),
    "student 2×2, 1 degree": student(sparse(2, 2), 1),
    "student 3×3, 2 degrees": student(sparse(3, 3), 2),
    "student 3×3, 2 degrees, asinh": student(sparse(3, 3), 2).warped(np.arcsinh, np.arcsinh),
    "student 5×5, 2 degrees": student(sparse(5, 5), 2),
    "student 5×5, 3 degrees, uncorrelated": student(np.zeros((5, 5)), 3),
    "independent 5×5": normal(np.zeros((5, 5))),
}
