"""Each post-hoc score against a naive loop over its formula."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import logsumexp, softmax
from sklearn.covariance import ledoit_wolf_shrinkage
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from offmap.metrics import auroc
from offmap.scores import (
    FDBD,
    GEN,
    Energy,
    KNearest,
    Mahalanobis,
    MaxLogit,
    MaxSoftmax,
    NNGuide,
    Outputs,
    RankMean,
    RelativeMahalanobis,
    Score,
    ViM,
)
from offmap.scores.chunks import scored

Array = NDArray[np.float64]
CLASSES, WIDTH = 4, 6


class Problem:
    """Known and new rows of a linear classifier, as arrays and as outputs."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.W, self.b = rng.normal(size=(WIDTH, CLASSES)), rng.normal(size=CLASSES)
        self.y = np.arange(80) % CLASSES
        self.Z = (
            rng.normal(size=(80, WIDTH)) @ rng.normal(size=(WIDTH, WIDTH)) + 3 * rng.normal(size=(4, WIDTH))[self.y]
        )
        self.new = 3 * rng.normal(size=(7, WIDTH))
        self.L, self.l = self.Z @ self.W + self.b, self.new @ self.W + self.b

    @classmethod
    def of_digits(cls) -> tuple["Problem", NDArray[np.bool_]]:
        """The digits 0 to 6 and a logistic regression, and fresh rows with which of them are of other digits."""
        problem, (X, y) = cls(0), load_digits(return_X_y=True)
        X, known = X / 16, np.flatnonzero(y < 7)
        problem.Z, problem.y = X[known[:300]], y[known[:300]]
        new = np.concatenate([known[300:420], np.flatnonzero(y >= 7)[:80]])
        regression = LogisticRegression(max_iter=500).fit(problem.Z, problem.y)
        problem.W, problem.b, problem.new = regression.coef_.T, regression.intercept_, X[new]
        problem.L, problem.l = problem.Z @ problem.W + problem.b, problem.new @ problem.W + problem.b
        return problem, y[new] >= 7

    def found(self, score: Score) -> Array:
        known = Outputs(torch.from_numpy(self.Z), torch.from_numpy(self.L))
        new = Outputs(torch.from_numpy(self.new), torch.from_numpy(self.l))
        return score.fit(known, torch.from_numpy(self.y)).novelty(new).numpy()

    def covariance(self, residuals: Array, share: float) -> Array:
        S = np.sum([np.outer(r, r) for r in residuals], axis=0) / len(residuals)
        return (1 - share) * S + share * np.trace(S) / len(S) * np.eye(len(S))

    def residuals(self, Z: Array) -> Array:
        return np.array([z - Z[self.y == c].mean(0) for z, c in zip(Z, self.y, strict=True)])


def mahalanobis(p: Problem, Z: Array, new: Array) -> list[float]:
    R = p.residuals(Z)
    inverse = np.linalg.inv(p.covariance(R, ledoit_wolf_shrinkage(R, assume_centered=True)))
    means = [Z[p.y == c].mean(0) for c in range(p.L.shape[1])]
    return [min((z - m) @ inverse @ (z - m) for m in means) for z in new]


def unit(Z: Array) -> Array:
    return np.array([z / np.linalg.norm(z) for z in Z])


def relative(p: Problem) -> list[float]:
    R, centred = p.residuals(p.Z), p.Z - p.Z.mean(0)
    inverse = np.linalg.inv(p.covariance(centred, ledoit_wolf_shrinkage(R, assume_centered=True)))
    all_rows = [(z - p.Z.mean(0)) @ inverse @ (z - p.Z.mean(0)) for z in p.new]
    return [near - far for near, far in zip(mahalanobis(p, p.Z, p.new), all_rows, strict=True)]


def nearest(p: Problem, k: int) -> list[float]:
    known = unit(p.Z)
    return [sorted(float(np.linalg.norm(z - r)) for r in known)[k - 1] for z in unit(p.new)]


def vim(p: Problem, kept: int) -> list[float]:
    origin = -np.linalg.pinv(p.W.T) @ p.b
    values, vectors = np.linalg.eigh((p.Z - origin).T @ (p.Z - origin))
    outside = vectors[:, np.argsort(values)[: len(values) - kept]]
    a = p.L.max(1).mean() / np.mean([np.linalg.norm((z - origin) @ outside) for z in p.Z])
    return [a * np.linalg.norm((z - origin) @ outside) - logsumexp(row) for z, row in zip(p.new, p.l, strict=True)]


def nnguide(p: Problem, k: int) -> list[float]:
    energies, known, found = [logsumexp(row) for row in p.L], unit(p.Z), []
    for z, row in zip(unit(p.new), p.l, strict=True):
        pairs = sorted(((z @ r, e) for r, e in zip(known, energies, strict=True)), reverse=True)[:k]
        found.append(-logsumexp(row) * np.mean([cosine * energy for cosine, energy in pairs]))
    return found


def fdbd(p: Problem) -> list[float]:
    found = []
    for z, row in zip(p.new, p.l, strict=True):
        m = int(np.argmax(row))
        gaps = [abs(row[c] - row[m]) / np.linalg.norm(p.W[:, c] - p.W[:, m]) for c in range(len(row)) if c != m]
        found.append(-np.mean(gaps) / np.linalg.norm(z - p.Z.mean(0)))
    return found


def gen(p: Problem, top: int) -> list[float]:
    return [sum((q * (1 - q)) ** 0.1 for q in sorted(softmax(row), reverse=True)[:top]) for row in p.l]


NAIVE: list[tuple[Score, Callable[[Problem], Any]]] = [
    (MaxSoftmax(), lambda p: [1 - max(softmax(row)) for row in p.l]),
    (MaxLogit(), lambda p: [-max(row) for row in p.l]),
    (Energy(), lambda p: [-np.log(sum(np.exp(row))) for row in p.l]),
    (GEN(top=3), lambda p: gen(p, 3)),
    (KNearest(), lambda p: nearest(p, 1)),
    (KNearest(n_neighbors=5), lambda p: nearest(p, 5)),
    (Mahalanobis(), lambda p: mahalanobis(p, p.Z, p.new)),
    (Mahalanobis(normalise=True), lambda p: mahalanobis(p, unit(p.Z), unit(p.new))),
    (RelativeMahalanobis(), relative),
    (ViM(components=5), lambda p: vim(p, 5)),
    (NNGuide(n_neighbors=3), lambda p: nnguide(p, 3)),
    (FDBD(), fdbd),
]


@pytest.mark.parametrize(("score", "naive"), NAIVE, ids=lambda part: str(part) if isinstance(part, Score) else "")
@settings(deadline=None, max_examples=10)
@given(seed=st.integers(0, 999))
def test_the_score_is_the_formula(score: Score, naive: Callable[[Problem], Any], seed: int) -> None:
    problem = Problem(seed)
    np.testing.assert_allclose(problem.found(score), naive(problem), rtol=2e-5, atol=1e-7)


@pytest.mark.parametrize(("score", "naive"), NAIVE, ids=lambda part: str(part) if isinstance(part, Score) else "")
def test_digits_are_told_apart_as_well_as_by_the_formula(score: Score, naive: Callable[[Problem], Any]) -> None:
    problem, unknown = Problem.of_digits()
    found, expected = problem.found(score), np.asarray(naive(problem))
    area = auroc(found[~unknown], found[unknown])
    assert area == pytest.approx(auroc(expected[~unknown], expected[unknown]), abs=0.005)
    assert area > 0.6


def test_the_rank_mean_counts_known_rows_that_were_scored_without_themselves() -> None:
    p = Problem(0)
    found = p.found(RankMean(scores=(KNearest(), Energy()), folds=4))
    known, left_out = unit(p.Z), []
    for i, z in enumerate(known):
        left_out.append(min(np.linalg.norm(z - r) for j, r in enumerate(known) if j % 4 != i % 4))
    ranks = [
        [sum(v < s for v in left_out) / 81 for s in nearest(p, 1)],
        [sum(-logsumexp(row) < -logsumexp(new) for row in p.L) / 81 for new in p.l],
    ]
    np.testing.assert_allclose(found, np.mean(ranks, axis=0), atol=1e-9)


def test_relative_distances_keep_their_direction_with_few_classes_and_many_features() -> None:
    """Shrunk by different shares, the two distances would differ more by the shares than by the rows."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(5, 200))
    Z, y = centres[np.arange(150) % 5] + rng.normal(size=(150, 200)), torch.arange(150) % 5
    same, other = centres[np.arange(50) % 5] + rng.normal(size=(50, 200)), 1.4 * rng.normal(size=(50, 200))
    score = RelativeMahalanobis().fit(Outputs(torch.from_numpy(Z)), y)
    known, novel = (score.novelty(Outputs(torch.from_numpy(rows))) for rows in (same, other))
    assert (known[:, None] < novel[None]).double().mean() > 0.9


@pytest.mark.parametrize("count", [1, 7])
def test_many_reference_rows_are_searched_block_by_block(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    p = Problem(1)
    whole = p.found(KNearest(n_neighbors=count))
    monkeypatch.setattr("offmap.scores.neighbors._BLOCK", 9)
    np.testing.assert_allclose(p.found(KNearest(n_neighbors=count)), whole)


@pytest.mark.parametrize(
    ("score", "outputs", "message"),
    [
        (KNearest(), Outputs(logits=torch.ones(5, 2)), "KNearest needs the model's features"),
        (ViM(), Outputs(features=torch.ones(5, 2)), "ViM needs the model's logits"),
        (RankMean(), Outputs(features=torch.ones(5, 2)), "Energy needs the model's logits"),
        (Mahalanobis(), Outputs(features=torch.ones(5, 2)), "needs the classes of the known rows"),
        (KNearest(n_neighbors=9), Outputs(features=torch.ones(5, 2)), "n_neighbors must be at most .* 5; got 9"),
        (KNearest(), Outputs(features=torch.ones(1, 2)), "at least 2 known rows; got 1"),
    ],
)
def test_what_a_score_lacks_is_named(score: Score, outputs: Outputs, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        score.fit(outputs)


@pytest.mark.parametrize("width", range(2, 24))
def test_a_row_scores_the_same_at_every_place_for_any_width_of_the_residual_space(width: int) -> None:
    rng = np.random.default_rng(width)
    Z = rng.normal(size=(200, width))
    score = ViM(components=1).fit(Outputs(torch.from_numpy(Z), torch.from_numpy(Z @ rng.normal(size=(width, 3)))))
    row, logits = torch.from_numpy(3 * rng.normal(size=(1, width))), torch.zeros(1, 3, dtype=torch.float64)
    found = scored(score, Outputs(row.repeat(300, 1), logits.repeat(300, 1)))
    assert len(np.unique(found)) == 1
