"""Training steps: one optimiser for the whole network, or encoder and decoder trained against each other."""

from collections.abc import Callable

from torch import Tensor
from torch.optim import Optimizer

from offmap.density.vae.negatives import Source
from offmap.density.vae.network import VAE
from offmap.density.vae.objective import Objective
from offmap.train import Batch, Step, descend

StepAndOptimizers = tuple[Step, dict[str, Optimizer]]
MakeOptimizer = Callable[..., Optimizer]


def joint_step(
    network: VAE, objective: Objective, make: MakeOptimizer, *, negatives: Source | None, mutate: Source | None
) -> StepAndOptimizers:
    """Updates encoder and decoder together.

    Args:
        network: The network to train.
        objective: Its loss.
        make: Makes an optimiser of parameters.
        negatives: Draws negatives for a batch.
        mutate: Changes the rows of a batch first, as for a background model.
    """

    def terms(batch: Batch) -> dict[str, Tensor]:
        X = batch[0] if mutate is None else mutate(batch[0])
        return objective.terms(network, X, None if negatives is None else negatives(X))

    optimizer = make(network.parameters())
    return descend(optimizer, terms), {"optimizer": optimizer}


def adversarial_step(network: VAE, objective: Objective, make: MakeOptimizer) -> StepAndOptimizers:
    """Updates the encoder, which maps generated rows away from the prior, then the decoder, which counters it."""
    encoder = make(network.encoder.parameters())
    decoder = make([*network.decoder.parameters(), *network.likelihood.parameters()])
    encoder_step = descend(encoder, lambda batch: objective.encoder_terms(network, batch[0]))
    decoder_step = descend(decoder, lambda batch: objective.decoder_terms(network, batch[0]))
    return lambda batch: encoder_step(batch) | decoder_step(batch), {"encoder": encoder, "decoder": decoder}
