"""Fits a density that is conditioned on the embedding of an entity."""

from collections.abc import Callable
from typing import Protocol

from torch import Tensor, nn

from offmap.collaborative.embedding_detector import EmbeddingDetector
from offmap.collaborative.networks import flat_rows
from offmap.collaborative.observations import Observations
from offmap.collaborative.parts import Learned, PairHead
from offmap.collaborative.search import DensitySearch
from offmap.collaborative.training import EMBEDDING_LR_FACTOR, Schedule, fit_jointly


class OwnVectors(Protocol):
    """Makes the vectors that entities start from where a head says how wide they are."""

    def __call__(self, head: PairHead, entities: int, /) -> Tensor:
        """The vectors of so many entities."""
        ...


def build_density(detector: EmbeddingDetector, make_head: Callable[[], PairHead], own: bool = False) -> None:
    """Makes the parts of a density: standardised rows, the head, and what finds embeddings."""
    means = None if own else detector._means_of_rows(detector.embedding_size_)
    solver = DensitySearch(detector.embedding_size_, independent=own) if means is None else means
    detector._use_parts(flat_rows(detector.input_shape_), make_head(), solver)


def fit_density(
    detector: EmbeddingDetector,
    make_head: Callable[[], PairHead],
    observed: Observations,
    given: Tensor | None,
    own: OwnVectors | None = None,
) -> Learned:
    """Trains a density and the embeddings of all entities by maximum likelihood.

    Args:
        detector: Whose parameters and parts these are.
        make_head: Makes the head, once ``embedding_size_`` is known.
        observed: The training rows and their entities.
        given: Vectors that embeddings start from.
        own: Makes vectors to start from that fit the head, in place of ``detector.embedding``.
    """
    features = flat_rows(detector.input_shape_).to(detector.device).fit(observed.X)
    if own is None:
        first, means = detector._first_embeddings(observed, given)
        detector.embedding_size_ = first.shape[1]
        head = make_head().to(detector.device)
    else:
        head, means = make_head().to(detector.device), None
        first = own(head, len(observed.counts)).to(detector.device)
        detector.embedding_size_ = first.shape[1]
    vectors = nn.Embedding.from_pretrained(first, freeze=not detector.tune_embeddings, sparse=True)
    schedule = Schedule.of(detector)
    training, validation = schedule.split(observed)

    def loss(X: Tensor, embeddings: Tensor) -> Tensor:
        rows = features(X)
        return -head(rows, embeddings).mean() / rows.shape[1]

    # Vectors of an entity's own move only in batches that hold its rows.
    pace = 1.0 if own is None else EMBEDDING_LR_FACTOR
    detector.history_ = fit_jointly(loss, head, vectors, training, validation, schedule, lr_factor=pace)
    embeddings = vectors.weight.detach()
    detector._use_parts(features, head, _search(embeddings, own is not None) if means is None else means)
    return Learned({"embedding": embeddings})


def _search(embeddings: Tensor, independent: bool) -> DensitySearch:
    solver = DensitySearch(embeddings.shape[1], independent).to(embeddings.device)
    solver.prior.fit(embeddings)
    return solver
