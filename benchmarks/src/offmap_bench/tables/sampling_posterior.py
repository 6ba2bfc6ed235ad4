"""RAS as a posterior: a small variational autoencoder of digits with a free-form and with a Gaussian posterior."""

from pathlib import Path

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from offmap.files import replacing
from offmap.sampling import BinaryVAE
from offmap_bench.figure import Figure
from offmap_bench.table import Table

SOURCE = "Open-World Learning (thesis), section 5.5: adversarial variational Bayes as a special case"
NAMES = {"RAS posterior": "ras", "Gaussian posterior": "gaussian"}


def digits(seed: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Training and test rows of scikit-learn's digits, binarised."""
    rows = (load_digits().data > 7.5).astype(np.float32)
    train, test = train_test_split(rows, test_size=0.2, random_state=seed)
    return train, test


def measure(method: BinaryVAE, column: str, seed: int) -> dict[str, float]:
    """Fits the model and scores test rows; ``gap`` is the log-likelihood minus its bound."""
    train, test = digits(seed)
    fitted = method.set_params(random_state=seed, latent=int(column.split()[0])).fit(train)
    likelihood, bound = (float(of(test).mean()) for of in (fitted.log_likelihood, fitted.elbo))
    return {
        "log_likelihood": likelihood,
        "elbo": bound,
        "gap": likelihood - bound,
        "train_log_likelihood": float(fitted.log_likelihood(train, draws=200).mean()),
    }


METRICS = ("log_likelihood", "elbo", "gap", "train_log_likelihood")
POSTERIORS = Table(
    name="vae-posterior",
    source=SOURCE,
    caption="Binarised digits of 8 × 8 pixels: log-likelihood of test rows in nats, and its lower bound.",
    rows={name: BinaryVAE(posterior=kind) for name, kind in NAMES.items()},  # type: ignore[arg-type]
    columns=("2 latent dimensions", "8 latent dimensions"),
    metrics=METRICS,
    measure=measure,
    seeds={"cpu": range(3), "paper": range(10)},
    profiles={"cpu": {"epochs": 150}, "paper": {"epochs": 1000}},
    notes="The thesis refers to the paper on adversarial variational Bayes for this experiment; the setting is ours. "
    "log_likelihood is estimated by importance sampling in both rows, with 1,000 draws from a Gaussian that has the "
    "posterior's moments and 1.5 times its variance, and does not depend on the critic. elbo of the RAS posterior uses "
    "the critic's density; it is approximate, and may exceed the log-likelihood. Decoder, encoder widths, steps and "
    "learning rate are the same.",
    higher_is_better={"log_likelihood": True, "elbo": True, "train_log_likelihood": True},
)

SPAN = 3.5


def draw_posterior(axes: Axes, fitted: BinaryVAE, row: NDArray[np.float32]) -> None:
    """Plots samples of the posterior of one row over its true density on a grid."""
    grid = torch.linspace(-SPAN, SPAN, 161)
    points = torch.cartesian_prod(grid, grid)[None]
    with torch.no_grad():
        joint = fitted.model_.log_joint(torch.from_numpy(row)[None], points)[0].reshape(161, 161).T
    axes.contourf(grid.numpy(), grid.numpy(), (joint - joint.max()).exp().numpy(), 12, cmap="Greys")
    drawn = fitted.sample_posterior(row[None], count=300)[0]
    axes.scatter(drawn[:, 0], drawn[:, 1], s=3, color="#d55e00", alpha=0.5, linewidths=0)
    axes.set(xlim=(-SPAN, SPAN), ylim=(-SPAN, SPAN), xlabel="$z_1$", ylabel="$z_2$", aspect="equal")


def least_gaussian(fitted: BinaryVAE, rows: NDArray[np.float32], count: int) -> NDArray[np.intp]:
    """The rows with the largest gap: those whose true posterior is farthest from the approximate one."""
    gap = fitted.log_likelihood(rows) - fitted.elbo(rows)
    return np.argsort(-gap)[:count]


def draw_posteriors(path: Path, profile: str) -> None:
    """Plots the four test rows that the Gaussian posterior fits worst: free-form above, Gaussian below."""
    train, test = digits(0)
    models = {name: POSTERIORS.method(name, profile).set_params(random_state=0, latent=2).fit(train) for name in NAMES}
    worst = test[least_gaussian(models["Gaussian posterior"], test, 4)]
    drawing = Drawing(figsize=(12, 6.2), layout="constrained")
    for line, (name, fitted) in zip(drawing.subplots(2, 4), models.items(), strict=True):
        for axes, row in zip(line, worst, strict=True):
            draw_posterior(axes, fitted, row)
            axes.set_title(name, fontsize=9)
    with replacing(path) as fresh:
        drawing.savefig(fresh, dpi=130)


TABLES = (
    POSTERIORS,
    Figure(
        name="vae-posterior-samples",
        source=SOURCE,
        caption="Samples of the posterior (orange) of four test digits over its true density (grey), two latent "
        "dimensions: the four that the Gaussian posterior fits worst. Each model has its own latent space.",
        draw=draw_posteriors,
    ),
)
