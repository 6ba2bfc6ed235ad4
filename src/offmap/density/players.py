"""What is done with a batch: one descent for the whole model, or one for each of two players."""

from collections.abc import Callable

from torch import Tensor
from torch.optim import Optimizer

from offmap.density.negatives import Source
from offmap.density.objectives import Objective
from offmap.density.vae import VAE
from offmap.train import Batch, Step, descend

Made = tuple[Step, dict[str, Optimizer]]
MakeOptimizer = Callable[..., Optimizer]


def one_player(
    network: VAE, objective: Objective, make: MakeOptimizer, *, source: Source | None, mutate: Source | None
) -> Made:
    """Encoder and decoder descend together, on rows that may be mutated, with negatives that may be given."""

    def terms(batch: Batch) -> dict[str, Tensor]:
        X = batch[0] if mutate is None else mutate(batch[0])
        return objective.terms(network, X, None if source is None else source(X))

    optimizer = make(network.parameters())
    return descend(optimizer, terms), {"optimizer": optimizer}


def two_players(network: VAE, objective: Objective, make: MakeOptimizer) -> Made:
    """The encoder learns to send away what the decoder generates, the decoder to have it taken for real."""
    encoder = make(network.encoder.parameters())
    decoder = make([*network.decoder.parameters(), *network.noise.parameters()])
    one = descend(encoder, lambda batch: objective.encoder_terms(network, batch[0]))
    other = descend(decoder, lambda batch: objective.decoder_terms(network, batch[0]))
    return lambda batch: one(batch) | other(batch), {"encoder": encoder, "decoder": decoder}
