"""Why variational autoencoders give outliers a high likelihood."""

from offmap_bench.claims import Claim
from offmap_bench.papers.page import Page

PAGE = Page(
    name="robustifying",
    title="Robustifying Generative Models",
    about="Does more capacity, or another divergence, fix the high likelihood of outliers?",
    items=("vae-likelihoods", "vae-capacity", "vae-forward-kl"),
    claims=(
        Claim(
            item="CIFAR-10 → SVHN, more channels do not help",
            table="vae-capacity",
            row="3 × the channels",
            metric="auroc_bpd",
            at_most=0.5,
        ),
        Claim(
            item="CIFAR-10 → SVHN, the forward divergence helps",
            table="vae-forward-kl",
            row="Gaussian, forward",
            above="Gaussian, reverse (ELBO)",
            columns=("cifar10 → svhn",),
            metric="auroc_bpd",
            cause="the paper proposes it without a test; it changes little",
        ),
    ),
    differences={"all of CIFAR-10": "20,000 training images", "the forward divergence is proposed": "it is tested"},
)
